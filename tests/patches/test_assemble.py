"""Putting items back together, against naive loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruskal.patches import RunningMoments, Slab, cover, cut, item_weights, scatter
from kruskal.patches.assemble import OPINION_SHARE
from tests.gibbs.worlds import codes_of
from tests.patches.test_grid import grids


def naive(items, codes, dictionary, weights, size):
    """(sum v Dw, sum v (Dw)^2, sum v) for every entry of the array."""
    total, square, covered = np.zeros(size), np.zeros(size), np.zeros(size)
    for n in range(items.n_items):
        item = codes[n] @ dictionary
        for i, offset in enumerate(items.offset):
            at = items.origin[n] + offset
            total[at] += weights[n] * item[i]
            square[at] += weights[n] * item[i] ** 2
            covered[at] += weights[n]
    return total, square, covered


@given(grid=grids(), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_scatter_and_cover(grid, seed):
    """All items at once, and in two parts whose slabs are added."""
    random = np.random.default_rng(seed)
    size = math.prod(grid.array_shape)
    items = cut(np.zeros(grid.array_shape), None, grid)
    dictionary = random.standard_normal((3, len(items.offset)))
    codes = random.standard_normal((items.n_items, 3)) * (random.random((items.n_items, 3)) < 0.6)
    weights = random.random(items.n_items)
    total, square, covered = naive(items, codes, dictionary, weights, size)
    np.testing.assert_allclose(cover(items, weights, size), covered, rtol=1e-12)
    half = items.n_items // 2
    parts = [slice(0, half), slice(half, None)] if half else [slice(None)]
    sums, squares = np.zeros(size), np.zeros(size)
    for part in parts:
        shard = items._replace(origin=items.origin[part])
        slab = scatter(shard, codes_of(codes[part]), dictionary, weights[part])
        sums[slab.first : slab.first + len(slab.total)] += slab.total
        squares[slab.first : slab.first + len(slab.square)] += slab.square
    np.testing.assert_allclose(sums, total, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(squares, square, rtol=1e-10, atol=1e-12)


def test_an_item_without_observed_entries_counts_next_to_nothing():
    weights = item_weights(np.array([0, 1, 64]))
    np.testing.assert_array_equal(weights[1:], [1.0, 64.0])
    assert 0.0 < weights[0] < 1e-3


def slabs_of(draw, square, rng):
    """The same sums in overlapping slabs."""
    size = len(draw)
    share = rng.random(size)
    middle = size // 2
    return [
        Slab(0, draw * share, square * share),
        Slab(middle, (draw * (1 - share))[middle:], (square * (1 - share))[middle:]),
        Slab(0, (draw * (1 - share))[:middle], (square * (1 - share))[:middle]),
    ]


@pytest.mark.parametrize("n_draws", [1, 2, 17])
def test_running_moments(n_draws):
    random = np.random.default_rng(n_draws)
    covered = np.array([2.0, 1.0, 0.5, 3.0, 0.0, 1.0])
    draws = random.standard_normal((n_draws, 6)) * covered + 1e3 * covered
    squares = draws**2 / np.maximum(covered, 1e-9) + random.random((n_draws, 6)) * covered
    moments = RunningMoments.zero(6)
    for draw, square in zip(draws, squares):
        moments = moments.with_draw(slabs_of(draw, square, random), covered)
    divided = np.where(covered > 0, covered, 1.0)
    averages = draws / divided
    assert moments.draws == n_draws
    np.testing.assert_allclose(moments.mean, averages.mean(axis=0), rtol=1e-12)
    expected = averages.var(axis=0, ddof=1) if n_draws > 1 else np.zeros(6)
    np.testing.assert_allclose(moments.draw_variance(), expected, rtol=1e-6, atol=1e-9)
    second = (squares / divided).mean(axis=0)
    np.testing.assert_allclose(moments.square, second, rtol=1e-12)
    spread = np.maximum(second - averages.mean(axis=0) ** 2 - expected, 0.0)
    np.testing.assert_allclose(moments.variance(), expected + OPINION_SHARE * spread, rtol=1e-6, atol=1e-6)
    assert moments.mean[4] == 0.0  # covered by nothing


def test_variance_is_never_negative():
    """Rounding of square - mean^2 must not make it so."""
    moments = RunningMoments.zero(1)
    for _ in range(10):
        moments = moments.with_draw([Slab(0, np.array([0.1]), np.array([0.1**2]))], np.ones(1))
    assert moments.variance()[0] >= 0.0
