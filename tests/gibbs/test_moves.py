"""The moves leave what they must leave, and their scales have the right distribution."""

import math

import numpy as np
import pytest
from scipy import stats

from kruskal.gibbs import moves
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.tensor import compose, entry_rows
from tests.gibbs.test_scalars import SURE
from tests.gibbs.worlds import Case, atom_state, make_world


@pytest.mark.parametrize(
    "p, a, b", [(1.5, 2.0, 3.0), (-40.0, 3.0, 100.0), (0.5, 50.0, 1e-3), (-0.5, 1e-4, 2.0)]
)
def test_scale_draw_is_invariant_for_the_generalised_inverse_gaussian(p, a, b):
    """Many orbits in parallel, each moved 40 times from a bad start; y is the product of the moves."""
    n_chains = 4000
    random = np.random.default_rng(5)
    log_y = np.full(n_chains, 0.3)
    moved = 0.0
    for _ in range(40):
        step = moves.draw_log_scale(p, a * np.exp(log_y), b * np.exp(-log_y), random)
        log_y = log_y + step
        moved += np.mean(step != 0.0) / 40
    scale = math.sqrt(b / a)  # scipy has density ~ x^(p-1) exp(-c (x + 1/x) / 2)
    assert moved > 0.5
    assert stats.kstest(np.exp(log_y) / scale, stats.geninvgauss(p, math.sqrt(a * b)).cdf).pvalue > SURE


def test_scale_stays_where_there_is_nothing_to_balance():
    random = np.random.default_rng(0)
    log_y = moves.draw_log_scale(
        0.5, np.array([0.0, 1.0, 0.0, np.inf]), np.array([1.0, 0.0, 0.0, 1.0]), random
    )
    np.testing.assert_array_equal(log_y, 0.0)


@pytest.mark.parametrize("rank", [1, 3])
def test_moves_inside_atoms_keep_the_atoms(rank):
    world = make_world(Case((3, 2, 2), rank, 5, False))
    state = atom_state(world)
    rows = entry_rows(world.shape)
    weights, factors = state.weights.copy(), state.factors.copy()
    random = np.random.default_rng(1)
    for _ in range(5):
        moves.swap_terms(weights, factors, state.log_precision, random)
        moves.balance_factors(weights, factors, state.log_precision, world.shape, random)
    assert np.abs(weights - state.weights).max() > 1e-3
    np.testing.assert_allclose(compose(weights, factors, rows), state.dictionary, rtol=1e-10, atol=1e-12)


def test_swaps_put_the_strong_terms_first():
    weights = np.tile(np.array([0.01, 0.1, 2.0]), (50, 1))
    factors = np.tile(np.arange(3.0), (50, 4, 1))
    log_precision = np.tile(np.array([0.0, 4.0, 8.0]), (50, 1))
    random = np.random.default_rng(0)
    for _ in range(4):
        moves.swap_terms(weights, factors, log_precision, random)
    np.testing.assert_array_equal(weights[:, 0], 2.0)
    np.testing.assert_array_equal(factors[:, :, 0], 2.0)
    assert (np.sort(weights, axis=1) == np.array([0.01, 0.1, 2.0])).all()


def test_alpha_and_delta_move_together():
    """A move multiplies both by the same number, or changes nothing."""
    random = np.random.default_rng(2)
    alpha, log_delta, weights = 3.0, np.log(np.full((2, 2), 2.5)), np.full((2, 2), 0.3)
    accepted = 0
    for _ in range(200):
        new_alpha, new_delta = moves.move_alpha_delta(alpha, log_delta, weights, AlphaPrior(4.0, 2.0), random)
        np.testing.assert_allclose(new_delta - log_delta, math.log(new_alpha / alpha), rtol=1e-9, atol=1e-12)
        accepted += new_alpha != alpha
        alpha, log_delta = new_alpha, new_delta
    assert 50 < accepted < 200


def test_alpha_and_delta_are_not_scaled_beyond_the_range():
    from kruskal.gibbs.shrinkage import LARGEST_ALPHA

    ratio = moves.alpha_delta_log_ratio(
        0.1, LARGEST_ALPHA * 0.95, np.zeros((1, 1)), np.ones((1, 1)), AlphaPrior(1e6, 1e-6)
    )
    assert ratio == -math.inf
