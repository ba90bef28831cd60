"""Every conditional agrees with the joint density; the paper's misprints do not.

For a conditional p(v | rest) and two values of v, log p(v') - log p(v) must equal the difference of the log
joint densities. The package's own parameters are used where it hands them out; the formulas that live inside
its kernels are those of `tests.gibbs.reference`, which `test_codes` and `test_atoms` tie to the kernels.
"""

import math

import numpy as np
import pytest
from scipy.special import logit

from kruskal.gibbs import moves, precision, shrinkage, usage
from tests.gibbs import reference as ref
from tests.gibbs.reference import World
from tests.gibbs.worlds import PRIORS, REGIONS, Case, cases, make_strong_world, make_world

EXACT = 1e-9
CLEARLY_WRONG = 0.5  # nats

KRUSKAL = cases((1, 3))
GAUSSIAN = cases((0,))
ALL = KRUSKAL + GAUSSIAN


def joint_difference(old: World, new: World, inactive: bool = True) -> float:
    return ref.log_joint(new, PRIORS, inactive) - ref.log_joint(old, PRIORS, inactive)


def error(difference: float, old: World, new: World, inactive: bool = True) -> float:
    """How far a difference of log densities is from that of the joint, relative to its size if large."""
    joint = joint_difference(old, new, inactive)
    return abs(difference - joint) / max(1.0, abs(joint))


def nats(difference: float, old: World, new: World) -> float:
    """The same, not relative."""
    return abs(difference - joint_difference(old, new))


def step(log_density, new, old, *parameters) -> float:
    """What a log density gains from ``old`` to ``new``."""
    return float(np.sum(log_density(new, *parameters) - log_density(old, *parameters)))


def atom_arguments(world: World, k: int):
    """(weights, modes, q, p) of one atom."""
    return world.weights[k], [mode[k] for mode in world.modes], *ref.atom_terms(world, k)


def random_for(case: Case) -> np.random.Generator:
    return np.random.default_rng([99, *case.shape, case.rank, case.n_atoms, case.masked])


# ------------------------------------------------------------------------------------------------- codes


@pytest.mark.parametrize("case", ALL, ids=str)
def test_slab(case):
    world, random = make_world(case), random_for(case)
    for n, k in np.ndindex(world.used.shape):
        mean, precise = 0.0, world.code_precision
        if world.used[n, k]:
            mean, precise = ref.slab_conditional(world.code_precision, *ref.code_terms(world, n, k))
        new = world.with_entry("slab", (n, k), random.normal())
        difference = step(ref.log_normal, new.slab[n, k], world.slab[n, k], mean, precise)
        assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("make", [make_world, make_strong_world], ids=["prior", "strong"])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_all_slabs_of_an_item(case, make):
    """Also of an item that uses nothing, and of one of which nothing is observed."""
    world, random = make(case), random_for(case)
    world = world.with_entry("used", 1, False)
    for n in range(world.n_items):
        active = world.used[n]
        new = world.with_entry("slab", (n, active), random.normal(size=active.sum()))
        conditional = ref.slabs_conditional(world, n)
        difference = step(ref.log_gaussian_vector, new.slab[n, active], world.slab[n, active], *conditional)
        assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("n_regions", [1, REGIONS])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_usage_indicator_given_the_slab(case, n_regions):
    world = make_world(case, n_regions=n_regions)
    for n, k in np.ndindex(world.used.shape):
        off, on = world.with_entry("used", (n, k), False), world.with_entry("used", (n, k), True)
        here = world.usage[world.region[n], k]
        log_odds = ref.logit_uncollapsed(here, world.slab[n, k], *ref.code_terms(world, n, k))
        gain = ref.log_bernoulli(True, log_odds) - ref.log_bernoulli(False, log_odds)
        assert error(gain, off, on) < EXACT


@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("slab", [0.0, -1.7])
def test_usage_indicator_with_the_slab_integrated_out(case, slab):
    """The integral over s is joint(z, s) / p(s | z), whatever s is looked at."""
    world = make_world(case)
    for n, k in np.ndindex(world.used.shape):
        c, linear = ref.code_terms(world, n, k)
        off = world.with_entry("used", (n, k), False).with_entry("slab", (n, k), slab)
        on = off.with_entry("used", (n, k), True)
        marginal_on = -ref.log_normal(slab, *ref.slab_conditional(world.code_precision, c, linear))
        marginal_off = -ref.log_normal(slab, 0.0, world.code_precision)
        log_odds = ref.logit_collapsed(world.usage[0, k], world.code_precision, c, linear)
        assert error(log_odds - (marginal_on - marginal_off), off, on) < EXACT


# ------------------------------------------------------------------------------------------------- atoms


@pytest.mark.parametrize("case", GAUSSIAN, ids=str)
def test_gaussian_atoms(case):
    world, random = make_world(case), random_for(case)
    for k in range(world.n_atoms):
        mean, precise = ref.gaussian_atom(*ref.atom_terms(world, k))
        new = world.with_entry("gaussian", k, random.normal(size=world.n_entries))
        difference = step(ref.log_normal, new.gaussian[k], world.gaussian[k], mean, precise)
        assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_mode_vectors_blocked_over_terms(case):
    world, random = make_world(case), random_for(case)
    for k in range(world.n_atoms):
        for t, size in enumerate(world.shape):
            new = world.with_mode(t, k, random.normal(size=(size, world.rank)))
            difference = 0.0
            for j in range(size):
                row = ref.factor_row(*atom_arguments(world, k), t, j)
                difference += step(ref.log_gaussian_vector, new.modes[t][k, j], world.modes[t][k, j], *row)
            assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_mode_vectors_one_term_at_a_time(case):
    """All rows of a mode are drawn at once: their conditionals must not depend on each other."""
    world, random = make_world(case), random_for(case)
    for k in range(world.n_atoms):
        for t, size in enumerate(world.shape):
            for r in range(world.rank):
                new = world.with_mode(t, (k, slice(None), r), random.normal(size=size))
                difference = 0.0
                for j in range(size):
                    entry = ref.factor_entry(*atom_arguments(world, k), t, j, r)
                    difference += step(ref.log_normal, new.modes[t][k, j, r], world.modes[t][k, j, r], *entry)
                assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_weights_blocked_over_terms(case):
    world, random = make_world(case), random_for(case)
    for k in range(world.n_atoms):
        weights, modes, q, p = atom_arguments(world, k)
        block = ref.weight_block(weights, modes, world.tau[k], q, p)
        new = world.with_entry("weights", k, random.normal(size=world.rank))
        difference = step(ref.log_gaussian_vector, new.weights[k], weights, *block)
        assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_weights_one_term_at_a_time(case):
    world, random = make_world(case), random_for(case)
    for k in range(world.n_atoms):
        weights, modes, q, p = atom_arguments(world, k)
        for r in range(world.rank):
            entry = ref.weight_entry(weights, modes, world.tau[k], q, p, r)
            new = world.with_entry("weights", (k, r), random.normal())
            difference = step(ref.log_normal, new.weights[k, r], weights[r], *entry)
            assert error(difference, world, new) < EXACT


# ------------------------------------------------------------- what the package hands out: prior parameters


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_delta(case):
    world, random = make_world(case), random_for(case)
    for i in range(world.rank):
        shape, rates = shrinkage.delta_conditional(np.log(world.delta), world.weights, world.alpha, i)
        for k in range(world.n_atoms):
            assert (shape, rates[k]) == pytest.approx(
                ref.delta_conditional(world.delta[k], world.weights[k], world.alpha, i), rel=1e-12
            )
            new = world.with_entry("delta", (k, i), random.gamma(2.0))
            difference = step(ref.log_gamma, new.delta[k, i], world.delta[k, i], shape, rates[k])
            assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_alpha(case):
    world = make_world(case)
    statistics = shrinkage.alpha_statistics(np.log(world.delta), shrinkage.AlphaPrior(*PRIORS.alpha))
    for alpha in (0.01, 0.8, 7.0, 300.0):
        new = world.changed(alpha=alpha)
        difference = step(shrinkage.log_alpha_density, alpha, world.alpha, statistics)
        assert error(difference, world, new) < EXACT
        twin = step(ref.log_alpha_conditional, alpha, world.alpha, world.delta, PRIORS)
        assert error(twin, world, new) < EXACT


@pytest.mark.parametrize("case", ALL, ids=str)
def test_usage(case):
    world, random = make_world(case), random_for(case)
    counts = world.used.sum(axis=0)
    first, second = usage.usage_conditional(counts, world.n_items, usage.UsagePrior(*PRIORS.usage))
    for k in range(world.n_atoms):
        assert (first[k], second[k]) == pytest.approx(ref.usage_conditional(world, k, PRIORS), rel=1e-14)
        new = world.with_entry("usage", (0, k), random.random())
        difference = step(ref.log_beta, new.usage[0, k], world.usage[0, k], first[k], second[k])
        assert error(difference, world, new) < EXACT


def usage_arguments(world: World):
    """(Usage, counts, sizes, priors) of a world, as the package holds them."""
    counts = np.array([world.used[world.region == g].sum(axis=0) for g in range(world.n_regions)])
    sizes = np.bincount(world.region, minlength=world.n_regions)
    now = usage.Usage(logit(world.usage), world.usage_mean, world.concentration)
    return now, counts, sizes, usage.UsagePrior(*PRIORS.usage), precision.GammaPrior(*PRIORS.concentration)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_usage_of_regions(case, monkeypatch):
    """The shapes that the package gives to the beta draw, with eta and h as it has just drawn them."""
    world, random = make_world(case, n_regions=REGIONS), random_for(case)
    asked = []

    def scripted(first, second, random):
        asked.append((first, second))
        return np.zeros(first.shape)

    monkeypatch.setattr(usage, "draw_beta_log_odds", scripted)
    now, counts, sizes, prior, concentration_prior = usage_arguments(world)
    drawn = usage.draw_usage(now, counts, sizes, prior, concentration_prior, False, np.random.default_rng(0))
    assert len(asked) == 1 and drawn.log_odds.shape == (REGIONS, case.n_atoms)
    world = world.changed(usage_mean=drawn.mean, concentration=drawn.concentration)
    for g, k in np.ndindex(world.usage.shape):
        shapes = asked[0][0][g, k], asked[0][1][g, k]
        assert shapes == pytest.approx(ref.region_usage_conditional(world, g, k), rel=1e-14)
        new = world.with_entry("usage", (g, k), random.random())
        difference = step(ref.log_beta, new.usage[g, k], world.usage[g, k], *shapes)
        assert error(difference, world, new) < EXACT


def log_joint_without_usage(world: World) -> float:
    """log of the joint density with pi integrated out: joint / p(pi | rest), whatever pi is looked at."""
    total = ref.log_joint(world, PRIORS)
    for g, k in np.ndindex(world.usage.shape):
        total -= float(ref.log_beta(world.usage[g, k], *ref.region_usage_conditional(world, g, k)))
    return total


def marginal_error(difference: float, old: World, new: World) -> float:
    joint = log_joint_without_usage(new) - log_joint_without_usage(old)
    return abs(difference - joint) / max(1.0, abs(joint))


@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("changed", ["mean", "concentration", "both"])
def test_likelihood_of_regions_with_the_usage_integrated_out(case, changed):
    """The beta-binomial of the package, for one atom and for all."""
    world, random = make_world(case, n_items=40, n_regions=REGIONS), random_for(case)
    now, counts, sizes, _, _ = usage_arguments(world)
    shapes = PRIORS.usage_shapes(case.n_atoms)
    new = world
    if changed != "concentration":
        new = new.changed(usage_mean=random.random(case.n_atoms))
    if changed != "mean":
        new = new.changed(concentration=random.gamma(2.0, 10.0))
    before = usage.region_log_likelihood(now.mean, now.concentration, counts, sizes)
    after = usage.region_log_likelihood(new.usage_mean, new.concentration, counts, sizes)
    for k in range(case.n_atoms):
        assert before[k] == pytest.approx(ref.log_region_marginal(world, k), rel=1e-9, abs=1e-9)
        assert after[k] == pytest.approx(ref.log_region_marginal(new, k), rel=1e-9, abs=1e-9)
    difference = float(after.sum() - before.sum())
    difference += step(ref.log_beta, new.usage_mean, world.usage_mean, *shapes)
    difference += step(ref.log_gamma, new.concentration, world.concentration, *PRIORS.concentration)
    assert marginal_error(difference, world, new) < EXACT


class ScriptedSteps:
    """Stands in for a generator: the same normal deviate for all, uniforms one call after the other."""

    def __init__(self, deviate: float, *uniforms: float) -> None:
        self.deviate, self.uniforms = deviate, list(uniforms)

    def standard_normal(self, size):
        return np.full(size, self.deviate)

    def normal(self):
        return self.deviate

    def random(self, size=()):
        return np.full(size, self.uniforms.pop(0))[()]


def around(log_ratio: float) -> list[float]:
    """log u just below and just above a log acceptance ratio; u = 1 - (1 - u) is rounded to 1e-16."""
    room = EXACT * max(1.0, abs(log_ratio)) + 4e-16 * math.exp(-log_ratio)
    return [min(log_ratio - room, -1e-12), min(log_ratio + room, -1e-12)]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_steps_of_the_mean_usage(case):
    """Taken exactly when log u is below the gain of the joint density of logit eta, pi integrated out."""
    world = make_world(case, n_items=20, n_regions=REGIONS)
    now, counts, sizes, prior, _ = usage_arguments(world)
    refused = 0

    def move(deviate, log_u):
        random = ScriptedSteps(deviate, -math.expm1(log_u))
        return usage.move_means(now.mean, now.concentration, counts, sizes, prior, random)

    for deviate in (-1.3, 1.3):
        moved = move(deviate, -36.0)  # every step is taken
        assert (np.sign(moved - now.mean) == np.sign(deviate)).all()
        for k in range(case.n_atoms):
            new = world.with_entry("usage_mean", k, moved[k])
            log_ratio = log_joint_without_usage(new) - log_joint_without_usage(world)
            log_ratio += np.log(moved[k] - moved[k] ** 2) - np.log(now.mean[k] - now.mean[k] ** 2)  # Jacobian
            for log_u in around(log_ratio):
                assert move(deviate, log_u)[k] == (moved[k] if log_u < log_ratio else now.mean[k])
                refused += log_u >= log_ratio
    assert refused > 0, "no step could be refused: the test would not see a wrong ratio"


@pytest.mark.parametrize("case", ALL, ids=str)
def test_steps_of_the_concentration(case):
    """Likewise for log h."""
    world = make_world(case, n_items=20, n_regions=REGIONS)
    now, counts, sizes, _, prior = usage_arguments(world)
    refused = 0
    for deviate in (-1.3, 1.3):
        log_factor = 0.5 * deviate * 10.0**-0.6
        new = world.changed(concentration=world.concentration * math.exp(log_factor))
        log_ratio = log_joint_without_usage(new) - log_joint_without_usage(world) + log_factor
        for log_u in around(log_ratio):
            random = ScriptedSteps(deviate, 0.3, -math.expm1(log_u))
            after = usage.move_concentration(now.mean, now.concentration, counts, sizes, prior, random)
            expected = new.concentration if log_u < log_ratio else world.concentration
            assert after == pytest.approx(expected, rel=1e-14)
            refused += log_u >= log_ratio
    assert refused > 0, "no step could be refused: the test would not see a wrong ratio"


@pytest.mark.parametrize("case", ALL, ids=str)
def test_noise_precision(case):
    world = make_world(case)
    rest = (world.values - world.codes @ world.atoms)[world.observed]
    prior = precision.GammaPrior(*PRIORS.noise)
    parameters = precision.precision_conditional(len(rest), float(rest @ rest), prior)
    assert parameters == pytest.approx(ref.noise_conditional(world, PRIORS), rel=1e-14)
    new = world.changed(noise_precision=2.5)
    difference = step(ref.log_gamma, 2.5, world.noise_precision, *parameters)
    assert error(difference, world, new) < EXACT


@pytest.mark.parametrize("inactive", [True, False], ids=["all_codes", "active_codes"])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_code_precision(case, inactive):
    """(1.16) with all s, (1.16') with the unused ones integrated out: the package has the latter."""
    world = make_world(case)
    slab = world.slab.ravel() if inactive else world.slab[world.used]
    prior = precision.GammaPrior(*PRIORS.code)
    parameters = precision.precision_conditional(len(slab), float(slab @ slab), prior)
    assert parameters == pytest.approx(ref.code_precision_conditional(world, PRIORS, inactive), rel=1e-14)
    new = world.changed(code_precision=0.4)
    difference = step(ref.log_gamma, 0.4, world.code_precision, *parameters)
    assert error(difference, world, new, inactive) < EXACT


# ------------------------------------------------------------------------------------------------- moves


def log_scale_density(log_y, p, a, b):
    """log density of log y for y ~ GIG(p, a, b), up to a constant."""
    return p * log_y - 0.5 * (a * math.exp(log_y) + b * math.exp(-log_y))


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_scale_between_mode_vector_and_weight(case, monkeypatch):
    """The move is made with a scripted scale; parameters and Jacobian c^(m_t - 1) are held to the joint."""
    world = make_world(case)
    asked = []

    def scripted(p, a, b, random):
        asked.append(np.broadcast_arrays(np.asarray(p, float), a, b))
        log_y = np.zeros(asked[-1][1].shape)
        log_y.flat[len(asked) % log_y.size] = 0.7
        return log_y

    monkeypatch.setattr(moves, "draw_log_scale", scripted)
    weights, factors = world.weights.copy(), np.concatenate(world.modes, axis=1)
    moves.balance_factors(weights, factors, np.log(world.tau), world.shape, np.random.default_rng(0))
    assert len(asked) == len(world.shape)
    old = world
    # the modes were balanced one after the other: so they are replayed
    for t, size in enumerate(world.shape):
        k, r = np.unravel_index((t + 1) % old.weights.size, old.weights.shape)
        c = math.exp(0.35)
        new = old.with_mode(t, (k, slice(None), r), old.modes[t][k, :, r] * c)
        new = new.with_entry("weights", (k, r), old.weights[k, r] / c)
        p, a, b = (array[k, r] for array in asked[t])
        difference = step(log_scale_density, 0.7, 0.0, p, a, b)
        assert error(difference - (size - 1) * math.log(c), old, new) < EXACT
        old = new
    np.testing.assert_allclose(weights, old.weights, rtol=1e-13)
    np.testing.assert_allclose(factors, np.concatenate(old.modes, axis=1), rtol=1e-13)


class ScriptedUniform:
    """Stands in for a generator: ``random`` gives the number it was told."""

    def __init__(self, uniform: float) -> None:
        self.uniform = uniform

    def random(self, size=None):
        return np.full(size, self.uniform)


@pytest.mark.parametrize("case", [case for case in KRUSKAL if case.rank > 1], ids=str)
def test_swap_of_terms(case):
    """A swap happens exactly when log u is below the difference of the joint densities."""
    world = make_world(case)
    undecided = 0
    for k in range(world.n_atoms):
        order = [1, 0, *range(2, world.rank)]
        new = world.with_entry("weights", k, world.weights[k, order])
        for t in range(len(world.shape)):
            new = new.with_mode(t, k, world.modes[t][k][:, order])
        log_ratio = ref.log_joint(new, PRIORS) - ref.log_joint(world, PRIORS)
        for offset in (-EXACT, EXACT):
            log_u = min(log_ratio + offset * max(1.0, abs(log_ratio)), -1e-12)
            expected = new if log_u < log_ratio else world
            # two terms only, so that there is one proposal
            weights = world.weights[k : k + 1, :2].copy()
            factors = np.concatenate(world.modes, axis=1)[k : k + 1, :, :2].copy()
            log_tau = np.log(world.tau[k : k + 1, :2])
            moves.swap_terms(weights, factors, log_tau, ScriptedUniform(math.exp(log_u)))
            np.testing.assert_array_equal(weights[0], expected.weights[k, :2])
            np.testing.assert_array_equal(factors[0], np.concatenate(expected.modes, axis=1)[k][:, :2])
            undecided += log_u >= log_ratio
    assert undecided > 0, "no swap of this world could be refused: the test would not see a wrong ratio"


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
@pytest.mark.parametrize("log_c", [0.6, -0.9])
def test_joint_scaling_of_alpha_and_delta(case, log_c):
    world = make_world(case)
    c = math.exp(log_c)
    new = world.changed(alpha=c * world.alpha, delta=c * world.delta)
    ratio = moves.alpha_delta_log_ratio(
        log_c, world.alpha, np.log(world.delta), world.weights, shrinkage.AlphaPrior(*PRIORS.alpha)
    )
    assert error(ratio - (world.delta.size + 1) * log_c, world, new) < EXACT


# --------------------------------------------------------------------- the paper's misprints must not pass


MISPRINTS = [case for case in KRUSKAL if case.n_atoms == 3]
MISPRINTS_MASKED = [case for case in ALL if case.masked]


@pytest.mark.parametrize("case", [case for case in MISPRINTS if case.rank > 1], ids=str)
def test_misprint_e1_mean_of_a_mode_vector(case):
    """(mu_i - b_i) a_i for (p_i - q_i b_i) a_i. With one term b is zero and nothing is wrong."""
    world, random = make_strong_world(case), random_for(case)
    k, t, r = 0, 0, 1
    weights, modes, q, p = atom_arguments(world, k)
    new = world.with_mode(t, (k, slice(None), r), random.normal(size=world.shape[t]))
    right = wrong = 0.0
    for j in range(world.shape[t]):
        mean, precise = ref.factor_entry(weights, modes, q, p, t, j, r)
        atom, misprinted = world.atoms[k], 0.0
        for i, index in enumerate(ref.entries_of(world.shape)):
            if index[t] == j:
                a = ref.others(weights, modes, index, t)[r]
                misprinted += (p[i] - (atom[i] - a * modes[t][j, r])) * a
        values = new.modes[t][k, j, r], world.modes[t][k, j, r]
        right += step(ref.log_normal, *values, mean, precise)
        wrong += step(ref.log_normal, *values, misprinted / precise, precise)
    assert error(right, world, new) < EXACT
    assert nats(wrong, world, new) > CLEARLY_WRONG


@pytest.mark.parametrize("misprint", ["a_slab_for_code", "b_residual_with_the_atom"])
@pytest.mark.parametrize("case", MISPRINTS, ids=str)
def test_misprint_e4_statistics_of_the_weights(case, misprint):
    """E4a: s for w = s z. E4b: the current residual instead of the one with atom k added back."""
    world = make_strong_world(case)
    k, r = 0, 0
    weights, modes, q, p = atom_arguments(world, k)
    code = world.slab[:, k] if misprint[0] == "a" else world.codes[:, k]
    rest = ref.residual_without(world, k)
    if misprint[0] == "b":
        rest = rest - np.outer(world.codes[:, k], world.atoms[k])
    wrong_q = world.noise_precision * (world.observed * code[:, None] ** 2).sum(axis=0)
    wrong_p = world.noise_precision * np.where(world.observed, code[:, None] * rest, 0.0).sum(axis=0)
    new = world.with_entry("weights", (k, r), world.weights[k, r] + 1.5)

    def difference(q, p):
        entry = ref.weight_entry(weights, modes, world.tau[k], q, p, r)
        return step(ref.log_normal, new.weights[k, r], weights[r], *entry)

    assert error(difference(q, p), world, new) < EXACT
    assert nats(difference(wrong_q, wrong_p), world, new) > CLEARLY_WRONG


@pytest.mark.parametrize("case", ALL, ids=str)
def test_misprint_e5_mean_of_the_slab(case):
    """The mean of s without the factor Sigma_s."""
    world = make_strong_world(case)
    n, k = 0, 0
    c, linear = ref.code_terms(world, n, k)
    mean, precise = ref.slab_conditional(world.code_precision, c, linear)
    new = world.with_entry("slab", (n, k), world.slab[n, k] + 2.0)

    def difference(mean):
        return step(ref.log_normal, new.slab[n, k], world.slab[n, k], mean, precise)

    assert error(difference(mean), world, new) < EXACT
    assert nats(difference(linear), world, new) > CLEARLY_WRONG


@pytest.mark.parametrize("case", ALL, ids=str)
def test_misprint_e6_cross_term_of_the_indicator(case):
    """s^2 c - s l for s^2 c - 2 s l."""
    world = make_strong_world(case).with_entry("slab", (0, 0), 2.0)
    c, linear = ref.code_terms(world, 0, 0)
    off, on = world.with_entry("used", (0, 0), False), world.with_entry("used", (0, 0), True)
    log_odds = ref.logit_uncollapsed(world.usage[0, 0], 2.0, c, linear)
    misprinted = logit(world.usage[0, 0]) - 0.5 * (4.0 * c - 2.0 * linear)
    assert error(log_odds, off, on) < EXACT
    assert nats(misprinted, off, on) > CLEARLY_WRONG


@pytest.mark.parametrize("case", MISPRINTS_MASKED, ids=str)
def test_misprint_e10_shape_of_the_noise_precision(case):
    """PN/2 for half the number of observed entries; they differ when entries are missing."""
    world = make_strong_world(case)
    shape, rate = ref.noise_conditional(world, PRIORS)
    misprinted = PRIORS.noise[0] + 0.5 * world.values.size
    new = world.changed(noise_precision=2.0 * world.noise_precision)

    def difference(shape):
        return step(ref.log_gamma, new.noise_precision, world.noise_precision, shape, rate)

    assert error(difference(shape), world, new) < EXACT
    assert nats(difference(misprinted), world, new) > CLEARLY_WRONG


def test_the_densities_are_normalised():
    """The log densities that everything above is built of have the integral one."""
    grid = np.linspace(1e-4, 40.0, 400_001)
    assert np.trapezoid(np.exp(ref.log_gamma(grid, 2.5, 1.7)), grid) == pytest.approx(1.0, abs=1e-6)
    grid = np.linspace(-20.0, 20.0, 400_001)
    assert np.trapezoid(np.exp(ref.log_normal(grid, 0.3, 2.0)), grid) == pytest.approx(1.0, abs=1e-6)
    grid = np.linspace(1e-9, 1.0 - 1e-9, 400_001)
    assert np.trapezoid(np.exp(ref.log_beta(grid, 1.5, 2.5)), grid) == pytest.approx(1.0, abs=1e-6)
