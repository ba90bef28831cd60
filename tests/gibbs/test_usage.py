"""Usage: one beta draw for all items, or a hierarchy over regions; functions, draws and Metropolis steps."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, expit, gammaln, logit

from kruskal.gibbs import usage
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.usage import Usage, UsagePrior
from tests.gibbs.reference import alpha_grid, log_beta, log_gamma
from tests.gibbs.test_scalars import SURE

NO_HYPER = GammaPrior(2.0, 0.1)

# ---------------------------------------------------------------------------------------------- functions

SIZES = [0, 1, 2, 7, 8, 9, 10, 11, 12, 20, 100, 1000, 10**4, 10**5, 10**6]
SHAPES = [*10.0 ** np.arange(-8, 7), 0.5, 2.0, 3.3, 9.0, 9.9999999, 10.0, 10.5, 123.4]


@pytest.mark.parametrize("a", SHAPES)
def test_log_rising(a):
    """Against the sum of logarithms in extended precision: to 2e-11 of the larger of 1 and the value.

    The worst is a = 1e6 with n just above 8, where values of 1e7 are subtracted; up to a = 1e3 it is 1e-12.
    SciPy's gammaln, which subtracts too, agrees to 1e-13 of what it subtracts.
    """
    logarithms = np.log(np.longdouble(a) + np.arange(max(SIZES), dtype=np.longdouble))
    for n in SIZES:
        exact = float(logarithms[:n].sum())
        value = usage.log_rising(a, n)
        assert abs(value - exact) <= (2e-11 if a > 1e3 else 1e-12) * max(1.0, abs(exact)), n
        largest = max(1.0, abs(gammaln(a + n)), abs(gammaln(a)))
        assert abs(value - (gammaln(a + n) - gammaln(a))) <= 1e-13 * largest, n


@pytest.mark.parametrize("a", [1e-300, 1e-100])
def test_log_rising_of_hardly_anything(a):
    """A mean usage at the end of its range: log a + log (n - 1)! to rounding, without an underflow."""
    for n in (1, 2, 7, 8, 50, 10**6):
        assert usage.log_rising(a, n) == pytest.approx(np.log(a) + gammaln(n), rel=1e-12)


def test_stirling():
    """To 1e-12 near 10, where the series is cut off; beyond, to the rounding of SciPy's gammaln."""
    x = np.concatenate([np.linspace(10.0, 40.0, 601), 10.0 ** np.linspace(1.0, 6.5, 200)])
    series = np.array([usage._stirling(value) for value in x])
    exact = gammaln(x) - 0.5 * np.log(2.0 * np.pi)
    assert np.abs(series - exact)[:601].max() < 1e-12
    assert (np.abs(series - exact) / np.abs(exact)).max() < 1e-13


@pytest.mark.parametrize("concentration", [1e-3, 0.7, 20.0, 3e4])
@pytest.mark.parametrize("mean", [1e-12, 1e-3, 0.4, 1.0 - 1e-6])
def test_likelihood_of_regions(mean, concentration):
    """Every combination of few and many items, of none, some and all of which use the atom."""
    sizes = np.array([1, 5, 8, 300, 300, 20_000])
    counts = np.array([[0, 1, 1], [0, 2, 5], [0, 7, 8], [0, 9, 300], [0, 299, 300], [0, 60, 20_000]])
    value = usage.region_log_likelihood(np.full(3, mean), concentration, counts, sizes)
    first, second = concentration * mean, concentration * (1.0 - mean)
    for k in range(3):
        used, unused = counts[:, k], sizes - counts[:, k]
        rising = gammaln(first + used) - gammaln(first) + gammaln(second + unused) - gammaln(second)
        exact = (rising - gammaln(concentration + sizes) + gammaln(concentration)).sum()
        assert value[k] == pytest.approx(exact, rel=1e-10, abs=1e-8)
        ratios = betaln(first + used, second + unused) - betaln(first, second)
        assert value[k] == pytest.approx(ratios.sum(), rel=1e-8, abs=1e-8)


# -------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize(
    "first, second",
    [(1.5, 2.5), (0.3, 0.2), (200.0, 3000.0), (0.05, 4.0), (7.0, 0.02), (1e-3, 1e-3), (1e-2, 30.0)],
)
def test_beta_log_odds(first, second):
    """Against SciPy's distribution of y, or of 1 - y when that is smaller: one of them has digits left."""
    n_draws, random = 20_000, np.random.default_rng(5)
    draws = usage.draw_beta_log_odds(np.full(n_draws, first), np.full(n_draws, second), random)
    assert np.isfinite(draws).all()
    small, large = draws < 0.0, draws >= 0.0
    below = np.empty(len(draws))
    below[small] = stats.beta(first, second).cdf(expit(draws[small]))
    below[large] = stats.beta(second, first).sf(expit(-draws[large]))
    vanished = expit(-np.abs(draws)) == 0.0  # y below 1e-320: P(Y <= y) ~ y^first / (first B(first, second))
    tail = np.where(small, first, second) * -np.abs(draws) - np.log(np.where(small, first, second))
    tail = np.exp(tail - betaln(first, second))
    below[vanished] = np.where(small, tail, 1.0 - tail)[vanished]
    assert stats.kstest(below, "uniform").pvalue > SURE
    assert vanished.mean() > 0.3 if first == second == 1e-3 else vanished.mean() < 0.01


@pytest.mark.parametrize("shape", [1e-300, 1e-30, 1e-9])
def test_beta_log_odds_of_tiny_shapes(shape):
    """-first log odds is a standard exponential, whatever rounds to nothing."""
    draws = usage.draw_beta_log_odds(np.full(5000, shape), np.full(5000, 40.0), np.random.default_rng(0))
    assert np.isfinite(draws).all() and (draws < 0.0).all()
    assert stats.kstest(-draws * shape, "expon").pvalue > SURE


def start(n_regions: int, n_atoms: int, mean: float = 0.3, concentration: float = 5.0) -> Usage:
    return Usage(np.full((n_regions, n_atoms), logit(mean)), np.full(n_atoms, mean), concentration)


@pytest.mark.parametrize("n_regions, shared", [(1, False), (1, True), (3, True)])
def test_usage_of_all_items(n_regions, shared):
    """The paper's beta conditional, for one region and for several that share it."""
    sizes = np.array([1000]) if n_regions == 1 else np.array([600, 0, 400])
    total = np.array([0, 3, 200, 1000])
    counts = total[None] if n_regions == 1 else np.array([[0, 3, 150, 600], [0, 0, 0, 0], [0, 0, 50, 400]])
    prior, random = UsagePrior(4.0, 2.0), np.random.default_rng(0)
    before = start(n_regions, 4)
    draws = []
    for _ in range(4000):
        drawn = usage.draw_usage(before, counts, sizes, prior, NO_HYPER, shared, random)
        assert drawn.log_odds.shape == (n_regions, 4) and (drawn.log_odds == drawn.log_odds[0]).all()
        assert drawn.concentration == before.concentration
        draws.append(drawn.log_odds[0])
        assert (drawn.mean > 0.0).all() and (drawn.mean < 1.0).all()
    for k, (a, b) in enumerate(zip(*usage.usage_conditional(total, 1000, prior))):
        assert stats.kstest(expit(np.array(draws)[:, k]), stats.beta(a, b).cdf).pvalue > SURE


def test_usage_of_regions_given_their_mean(monkeypatch):
    """pi with eta and h held fixed: independent betas, each region with its own counts and size."""
    monkeypatch.setattr(usage, "move_means", lambda mean, *_: mean)
    monkeypatch.setattr(usage, "move_concentration", lambda mean, concentration, *_: concentration)
    sizes, counts = np.array([50, 3, 400]), np.array([[0, 30], [1, 3], [2, 400]])
    before = Usage(np.zeros((3, 2)), np.array([0.02, 0.7]), 4.0)
    random = np.random.default_rng(1)
    drawn = [usage.draw_usage(before, counts, sizes, UsagePrior(2.0, 2.0), NO_HYPER, False, random)
             for _ in range(4000)]  # fmt: skip
    assert all(one.mean is before.mean and one.concentration == 4.0 for one in drawn)
    log_odds = np.array([one.log_odds for one in drawn])
    for g, k in np.ndindex(counts.shape):
        first = 4.0 * before.mean[k] + counts[g, k]
        second = 4.0 * (1.0 - before.mean[k]) + sizes[g] - counts[g, k]
        assert stats.kstest(expit(log_odds[:, g, k]), stats.beta(first, second).cdf).pvalue > SURE
    correlations = np.corrcoef(log_odds.reshape(-1, 6), rowvar=False) - np.eye(6)
    assert np.abs(correlations).max() * np.sqrt(len(drawn)) < 4.5


@pytest.mark.parametrize("n_regions", [1, 3])
def test_log_odds_stay_finite(n_regions):
    """A prior shape near zero makes the beta draw underflow to 0 or 1, but not its log odds."""
    sizes = np.full(n_regions, 5)
    counts = np.tile(np.array([0, 5]), (n_regions, 1))
    now, random = start(n_regions, 2), np.random.default_rng(0)
    for _ in range(200):
        now = usage.draw_usage(now, counts, sizes, UsagePrior(1e-3, 1e-3), NO_HYPER, False, random)
        assert np.isfinite(now.log_odds).all() and (now.mean > 0.0).all() and (now.mean < 1.0).all()
    assert (now.log_odds[:, 0] < -3.0).all() and (now.log_odds[:, 1] > 3.0).all()


# ----------------------------------------------------------------------------------------- Metropolis steps

TARGETS = {  # counts and sizes of the regions, and the shapes of the prior of eta
    "no items": ([0, 0, 0], [0, 0, 0], (1.5, 0.7)),
    "one region uses it": ([0, 2, 0], [4, 5, 6], (1.0, 3.0)),
    "all use it": ([9, 30, 17], [20, 40, 300], (1.0, 40.0)),
    "every item uses it": ([4, 12, 200], [4, 12, 200], (1.0, 1.0)),
    "nobody uses it": ([0, 0, 0], [50, 1000, 3], (0.2, 1.0)),
    "many regions": ([0, 1, 2, 3] * 8, [12, 9, 200, 30] * 8, (1.0, 10.0)),
}


def grid_of_mean(name: str, concentration: float) -> tuple[np.ndarray, np.ndarray]:
    """Grid over logit eta and the distribution function of its conditional, pi integrated out."""
    counts, sizes, shapes = TARGETS[name]

    def log_density(position):
        eta, rest = expit(position), expit(-position)
        total = log_beta(eta, *shapes) + np.log(eta) + np.log(rest)
        for used, size in zip(counts, sizes):
            total = total + betaln(concentration * eta + used, concentration * rest + size - used)
            total = total - betaln(concentration * eta, concentration * rest)
        return total

    return alpha_grid(log_density, -150.0 if shapes[0] < 0.5 else -35.0, 30.0, 60_001)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("concentration", [0.8, 25.0])
def test_means_against_inversion(name, concentration):
    """2,000 atoms of the same counts, moved 300 times from a bad start: independent draws for one atom."""
    counts, sizes, shapes = TARGETS[name]
    n_atoms, sizes = 2000, np.array(sizes)
    table = np.tile(np.array(counts)[:, None], (1, n_atoms))
    prior = UsagePrior(shapes[0] * n_atoms, shapes[1] * n_atoms / (n_atoms - 1))
    assert prior.shapes(n_atoms) == pytest.approx(shapes)
    grid, below = grid_of_mean(name, concentration)
    random = np.random.default_rng(3)
    mean = np.full(n_atoms, 0.02)
    moved = 0.0
    for _ in range(300):
        new = usage.move_means(mean, concentration, table, sizes, prior, random)
        moved += np.mean(new != mean) / 300
        mean = new
    assert 0.2 < moved < 1.0
    assert stats.kstest(logit(mean), lambda x: np.interp(x, grid, below)).pvalue > SURE


def test_several_steps_of_the_means_are_steps_one_after_the_other():
    counts, sizes = np.random.default_rng(5).integers(0, 40, (6, 30)), np.full(6, 40)
    start, prior = np.full(30, 0.3), UsagePrior(3.0, 2.0)
    together = usage.move_means(start, 25.0, counts, sizes, prior, np.random.default_rng(6), 4)
    random, single, taken = np.random.default_rng(6), start, 0
    for _ in range(4):
        before, single = single, usage.move_means(single, 25.0, counts, sizes, prior, random)
        taken += (single != before).sum()
    assert np.array_equal(together, single)
    assert 0 < taken < 4 * 30  # some steps were refused


def test_means_of_one_atom_in_a_long_chain():
    """One atom alone, thinned: the same distribution as over many."""
    name, concentration = "one region uses it", 6.0
    counts, sizes, shapes = TARGETS[name]
    grid, below = grid_of_mean(name, concentration)
    random, mean, kept = np.random.default_rng(8), np.array([0.5]), []
    for step in range(30_000):
        mean = usage.move_means(
            mean, concentration, np.array(counts)[:, None], np.array(sizes), UsagePrior(*shapes), random
        )
        if step >= 100 and step % 15 == 0:
            kept.append(logit(mean[0]))
    assert stats.kstest(kept, lambda x: np.interp(x, grid, below)).pvalue > SURE


@pytest.mark.parametrize("items", ["none", "few", "many"])
def test_concentration_against_inversion(items):
    """2,000 chains begin with exact draws of h and are there still after 60 steps."""
    sizes = np.array({"none": [0, 0], "few": [5, 9, 2, 6], "many": [400, 900, 120, 30]}[items])
    means = np.array([0.1, 0.5, 0.03])
    share = np.array([[0.2, 0.9, 0.0], [0.0, 0.1, 0.1], [0.4, 0.5, 0.0], [0.1, 1.0, 0.3]])[: len(sizes)]
    counts = np.floor(share * sizes[:, None]).astype(np.int64)
    prior = GammaPrior(3.0, 0.4)

    def log_density(position):
        h = np.exp(position)
        total = log_gamma(h, *prior) + position
        for (g, k), used in np.ndenumerate(counts):
            first, second = h * means[k], h * (1.0 - means[k])
            total = total + betaln(first + used, second + sizes[g] - used) - betaln(first, second)
        return total

    grid, below = alpha_grid(log_density, -6.0, 5.0, 20_001)
    random = np.random.default_rng(4)
    exact = np.interp(random.random(2000), below, grid)
    last = []
    for position in exact:
        h = float(np.exp(position))
        for _ in range(60):
            h = usage.move_concentration(means, h, counts, sizes, prior, random)
        last.append(np.log(h))
    assert stats.kstest(last, lambda x: np.interp(x, grid, below)).pvalue > SURE
    assert np.mean(np.array(last) != exact) > 0.99  # the chains have moved
    assert abs(np.corrcoef(last, exact)[0, 1]) < 0.7


def test_all_of_the_usage_is_drawn():
    """One call moves eta, h and pi of every region, and leaves what it was given alone."""
    sizes, counts = np.array([30, 20, 50]), np.array([[3, 10], [0, 20], [9, 1]])
    before = start(3, 2)
    copies = [np.copy(part) for part in before]
    random = np.random.default_rng(0)
    now = before
    for _ in range(100):
        now = usage.draw_usage(now, counts, sizes, UsagePrior(2.0, 2.0), GammaPrior(4.0, 0.5), False, random)
    for part, copy in zip(before, copies):
        np.testing.assert_array_equal(part, copy)
    assert (now.mean != before.mean).all() and now.concentration != before.concentration
    assert len(np.unique(now.log_odds)) == 6


@pytest.mark.parametrize("a", [0.01, 0.7, 12.5, 4_000.0])
@pytest.mark.parametrize("n", [0.02, 0.3, 1.5, 7.9, 8.25, 1234.5])
def test_rising_factorial_of_counts_that_are_partly_forgotten(a, n):
    assert usage.log_rising(a, n) == pytest.approx(gammaln(a + n) - gammaln(a), rel=1e-9, abs=1e-9)
