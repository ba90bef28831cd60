"""MGP-CP: every conditional against the log joint density, every kernel against plain NumPy."""

import math

import numpy as np
import pytest

from kruskal.engines.threads import StackEngine
from kruskal.gibbs import moves, rows, stack, terms
from kruskal.gibbs.precision import precision_conditional
from kruskal.models import MGPCPModel
from kruskal.models.term_rows import Layout, draw_rows_complete, draw_rows_masked, sum_residual_squares
from kruskal.patches import Items
from tests.gibbs import term_worlds as tw
from tests.gibbs.reference import log_gamma

EXACT = 1e-9
CASES = [(order, rank, masked) for order in (2, 3, 4) for rank in (1, 3) for masked in (False, True)]
cases = pytest.mark.parametrize(
    "case", CASES, ids=lambda c: f"order{c[0]}-rank{c[1]}-{'masked' if c[2] else 'complete'}"
)


def error(difference: float, old: tw.TermWorld, new: tw.TermWorld) -> float:
    expected = tw.log_joint(new) - tw.log_joint(old)
    return abs(difference - expected) / max(1.0, abs(expected))


# -------------------------------------------------------------------------------- the formulas of the tests


@cases
def test_row_of_a_mode(case):
    world, random = tw.make_term_world(*case), np.random.default_rng(1)
    for t, size in enumerate(world.shape):
        for j in range(size):
            precision, linear = tw.row_conditional(world, t, j)
            mode = world.modes[t].copy()
            mode[j] = random.normal(size=world.rank)
            difference = tw.log_gaussian(mode[j], precision, linear)
            difference -= tw.log_gaussian(world.modes[t][j], precision, linear)
            assert error(difference, world, world.with_mode(t, mode)) < EXACT


@cases
def test_weights(case):
    world = tw.make_term_world(*case)
    precision, linear = tw.weight_conditional(world)
    new = world.changed(weights=np.random.default_rng(2).normal(size=world.rank))
    difference = tw.log_gaussian(new.weights, precision, linear)
    difference -= tw.log_gaussian(world.weights, precision, linear)
    assert error(difference, world, new) < EXACT


# ------------------------------------------------------------------------------------ the package's kernels


def sweep_rows(world: tw.TermWorld, threads: int = 1):
    """All rows of all modes by the package."""
    factors, layout = world.factors, Layout.of(world.shape)
    with StackEngine(world.items(), threads) as engine:
        draw = draw_rows_complete if engine.complete else draw_rows_masked
        sums = draw(world.state(), factors, layout, engine, 5, 3)
        squares = sum_residual_squares(world.state(), layout, engine)
    return factors, sums, squares


def check_rows(world: tw.TermWorld) -> None:
    factors, sums, squares = sweep_rows(world)
    new, first = world, 0
    for t, size in enumerate(world.shape):
        normals = rows.row_normals(5, 3, first, size, world.rank)
        mode = np.stack([tw.draw_gaussian(*tw.row_conditional(new, t, j), normals[j]) for j in range(size)])
        np.testing.assert_allclose(factors[first : first + size], mode, rtol=1e-9, atol=1e-11)
        new, first = new.with_mode(t, mode), first + size
    square, data = tw.term_sums(new)
    np.testing.assert_allclose(np.tril(sums.products), np.tril(square), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sums.data, data, rtol=1e-9, atol=1e-11)
    rest = (world.values - world.mean())[world.observed]
    assert squares == pytest.approx(float(rest @ rest), rel=1e-12)


@cases
def test_rows_are_those_of_their_twins(case):
    check_rows(tw.make_term_world(*case))


@pytest.mark.parametrize("entries_per_part", [1, 3, 5])
@cases
def test_rows_of_many_parts(case, entries_per_part, monkeypatch):
    """Rows whose entries lie in several parts, parts without entries, rows without entries."""
    monkeypatch.setattr(stack, "_ENTRIES_PER_PART", entries_per_part)
    world = tw.make_term_world(*case)
    parts = stack.cut_stack(stack.as_stack(world.items()))
    assert len(parts) > 1
    if not world.items().complete:
        assert entries_per_part > 1 or any(mode.open_before for part in parts for mode in part.modes)
        for t, size in enumerate(world.shape):
            here = [part.modes[t] for part in parts]
            assert sum(len(mode.values) for mode in here) == world.observed.sum()
            covered = np.concatenate([mode.first + np.arange(mode.n_rows) for mode in here])
            np.testing.assert_array_equal(np.unique(covered), np.arange(size))
    check_rows(world)


def test_a_long_row():
    """More entries than a block of eight, and no multiple of it; more terms than a vector has lanes."""
    random = np.random.default_rng(0)
    observed = random.random((3, 41)) < 0.8
    check_rows(tw.simulate_terms(random, (3, 41), 11, observed, 1)[0])


def test_normals_are_normal():
    draws = rows.row_normals(1, 2, 0, 2_000, 9).ravel()
    assert abs(draws.mean()) < 0.03 and abs(draws.std() - 1.0) < 0.03
    assert len(np.unique(draws)) == draws.size
    np.testing.assert_array_equal(rows.row_normals(1, 2, 100, 3, 9), rows.row_normals(1, 2, 0, 103, 9)[100:])


@cases
def test_weights_are_those_of_their_twin(case):
    world, normals = tw.make_term_world(*case), np.linspace(-1.0, 2.0, case[1])
    sums = rows.TermSums(*tw.term_sums(world))
    drawn = terms.draw_weights(sums, np.log(world.tau), world.noise_precision, normals)
    precision, linear = tw.weight_conditional(world)
    scale = np.diag(world.tau**-0.5)
    expected = scale @ tw.draw_gaussian(scale @ precision @ scale, scale @ linear, normals)
    np.testing.assert_allclose(drawn, expected, rtol=1e-9)


def test_weights_far_below_any_number():
    """tau beyond the floating-point numbers: such a term is off, the others are drawn as ever."""
    sums = rows.TermSums(np.eye(2), np.ones(2))
    drawn = terms.draw_weights(sums, np.array([0.0, 3000.0]), 4.0, np.zeros(2))
    np.testing.assert_allclose(drawn, [0.8, 0.0], atol=1e-300)


@cases
def test_precisions_of_the_factors(case):
    world = tw.make_term_world(*case)
    squares = terms.factor_squares(world.factors, Layout.of(world.shape).bounds)
    shape, rate = precision_conditional(np.array(world.shape)[:, None], squares, tw.FACTOR)
    new = world.changed(omega=world.omega * 1.7)
    difference = (log_gamma(new.omega, shape, rate) - log_gamma(world.omega, shape, rate)).sum()
    assert error(difference, world, new) < EXACT
    draws = terms.draw_factor_precisions(squares, world.shape, tw.FACTOR, np.random.default_rng(0))
    gammas = np.random.default_rng(0).standard_gamma(np.broadcast_to(shape, squares.shape))
    np.testing.assert_allclose(draws, gammas / rate)


# ---------------------------------------------------------------------------------------------------- moves


def log_joint_without_weights(world: tw.TermWorld) -> float:
    """All weights integrated out."""
    return tw.log_joint(world) - tw.log_gaussian(world.weights, *tw.weight_conditional(world))


def scaled(world: tw.TermWorld, t: int, r: int, h: float) -> tw.TermWorld:
    mode, omega = world.modes[t].copy(), world.omega.copy()
    mode[:, r] *= math.exp(h)
    omega[t, r] *= math.exp(-2.0 * h)
    return world.with_mode(t, mode).changed(omega=omega)


@cases
def test_scale_of_a_term(case):
    """A step is made exactly when log u is below the ratio of the densities of h."""
    world = tw.make_term_world(*case)
    refused = 0
    for t, r, h in [(0, 0, 0.4), (len(world.shape) - 1, world.rank - 1, -1.1), (1, 0, 1.5)]:
        new = scaled(world, t, r, h)
        # Jacobian of u -> e^h u, omega -> e^-2h omega; the latter also from the measure of log omega
        log_ratio = log_joint_without_weights(new) - log_joint_without_weights(world)
        log_ratio += (world.shape[t] - 2.0) * h
        for offset in (-1e-7, 1e-7):
            log_u = min(log_ratio + offset, -1e-12)
            steps, log_uniforms = np.zeros_like(world.omega), np.full_like(world.omega, -1.0)
            steps[t, r], log_uniforms[t, r] = h, log_u
            sums, omega = rows.TermSums(*tw.term_sums(world)), world.omega.copy()
            deviation = world.tau**-0.5
            terms._scale(*sums, omega, deviation, world.noise_precision, *tw.FACTOR, steps, log_uniforms)
            after = new if log_u < log_ratio else world
            refused += log_u >= log_ratio
            np.testing.assert_allclose(omega, after.omega, rtol=1e-12)
            assert steps[t, r] == (h if after is new else 0.0)
            for found, expected in zip(sums, tw.term_sums(after)):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert refused > 0, "no step could be refused: the test would not see a wrong ratio"


class ScriptedGamma:
    """Stands in for a generator: remembers the shapes that are asked for."""

    def __init__(self, draw: float) -> None:
        self.draw, self.shapes = draw, []

    def standard_gamma(self, shape, size):
        self.shapes.append(shape)
        return np.full(size, self.draw)


@cases
def test_balance_between_weights_and_factors(case):
    world = tw.make_term_world(*case)
    weights, omega, random = world.weights.copy(), world.omega.copy(), ScriptedGamma(3.1)
    scales = terms.balance_terms(weights, omega, np.log(world.tau), tw.FACTOR, random)
    old = world
    for t, size in enumerate(world.shape):
        y = scales[t] ** 2
        mode = old.modes[t] * scales[t]
        changed = old.omega.copy()
        changed[t] /= y
        new = old.with_mode(t, mode).changed(omega=changed, weights=old.weights / scales[t])
        np.testing.assert_allclose(new.mean(), world.mean(), rtol=1e-10, atol=1e-12)
        # v = 1 / y ~ Gamma(shape, rate); at the draw 3.1 = rate v, so the rate is 3.1 y
        shape, rate = random.shapes[t], 3.1 * y
        difference = (shape * np.log(1.0 / y) - rate * (1.0 / y - 1.0)).sum()
        jacobian = ((0.5 * size - 1.0 - 0.5) * np.log(y)).sum()
        assert error(difference - jacobian, old, new) < EXACT
        old = new
    np.testing.assert_allclose(weights, old.weights)
    np.testing.assert_allclose(omega, old.omega)


class AlwaysSwap:
    """Every uniform is next to zero: every proposal is accepted."""

    def random(self, size):
        return np.full(size, 1e-300)


def test_swapped_terms_take_their_precisions_along():
    """What changes is the prior of the weights alone."""
    world = tw.make_term_world(3, 3, True)
    stacked = np.concatenate([world.factors, world.omega])
    weights = world.weights.copy()
    moves.swap_terms(weights[None], stacked[None], np.log(world.tau)[None], AlwaysSwap())
    np.testing.assert_array_equal(weights, world.weights[[1, 2, 0]])
    n_rows = sum(world.shape)
    modes = np.split(stacked[:n_rows], np.cumsum(world.shape)[:-1])
    new = world.changed(weights=weights, modes=tuple(modes), omega=stacked[n_rows:])
    assert error(-0.5 * float(world.tau @ (weights**2 - world.weights**2)), world, new) < EXACT


# ----------------------------------------------------------------------------------------- stacks and states


def test_a_stack_of_items_is_a_tensor():
    """Items that overlap in an array: modes, values and reassembly; an axis of length one is left out."""
    flat = np.arange(20.0)
    items = Items(
        flat, np.arange(20) % 3 > 0, np.array([0, 2, 9]), np.array([0, 1, 4, 5]), (2, 1, 2),
        np.zeros(3, np.uint16),
    )  # fmt: skip
    assert stack.stack_shape(items.n_items, items.shape) == (3, 2, 2)
    model = MGPCPModel(item_shape=(2, 1, 2), sizes=(3, 2, 2), rank=2)
    with StackEngine(items) as engine:
        assert engine.n_observed == sum(items.observed[o + p] for o in items.origin for p in items.offset)
        state = model.start("random", items, 1)
        assert model.atoms(state).shape == (2, 2, 1, 2)
        dense = np.einsum("r,nr,ar,br->nab", state.weights, *np.split(state.factors, [3, 5]))
        weight, total = np.zeros(20), np.zeros(20)
        for slab in model.expect(state, engine):
            here = slice(slab.first, slab.first + len(slab.weight))
            weight[here] += slab.weight
            total[here] += slab.total
    expected, count = np.zeros(20), np.zeros(20)
    for n, origin in enumerate(items.origin):
        np.add.at(expected, origin + items.offset, dense[n].ravel())
        np.add.at(count, origin + items.offset, 1.0)
    np.testing.assert_allclose(total, expected, atol=1e-12)
    np.testing.assert_array_equal(weight, count)


@pytest.mark.parametrize("name", ["pca", "random"])
@pytest.mark.parametrize("masked", [False, True])
def test_starts(name, masked):
    world = tw.make_term_world(3, 3, masked)
    model = MGPCPModel(item_shape=world.shape[1:], sizes=world.shape, rank=7)
    state = model.start(name, world.items(), 3)
    assert state.factors.shape == (9, 7) and np.isfinite(state.factors).all()
    again = model.start(name, world.items(), 3)
    np.testing.assert_array_equal(state.factors, again.factors)


@pytest.mark.parametrize("order", [2, 3])
def test_terms_in_order_make_up_the_tensor(order):
    world = tw.make_term_world(order, 3, False)
    model = MGPCPModel(item_shape=world.shape[1:], sizes=world.shape, rank=3)
    weights, factors = model.sorted_terms(world.state())
    assert (np.diff(np.abs(weights)) <= 0.0).all()
    np.testing.assert_allclose(np.abs(weights), np.sort(model.strengths(world.state()))[::-1])
    spec = "r,ar,br->ab" if order == 2 else "r,ar,br,cr->abc"
    np.testing.assert_allclose(np.einsum(spec, weights, *factors), world.mean(), atol=1e-12)
    for factor in factors:
        np.testing.assert_allclose(np.linalg.norm(factor, axis=0), 1.0)
