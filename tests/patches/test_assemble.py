"""Putting items back together, against plain sums over all draws; the slabs: tests/gibbs/test_slabs.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruskal.patches import PartialDraw, RunningMoments, Slab
from kruskal.patches.assemble import OPINION_SHARE


def draws_of(random, n_draws, size, n_items=5):
    """(w, m, v), each (draws, items, entries): weights, means and variances; an item covers a part only.

    The first entry is covered by no item at all, the second by one item, always with the same weight.
    """
    weight = random.gamma(2.0, size=(n_draws, n_items, size)) * (random.random((n_items, size)) < 0.6)
    weight[:, :, :2] = 0.0
    weight[:, 0, 1] = 3.0
    mean = 5.0 + random.standard_normal((n_draws, 1, size)) + 0.3 * random.standard_normal(weight.shape)
    return weight, mean, random.gamma(1.0, size=weight.shape)


def slabs_of(weight, mean, variance, random):
    """The slabs of one draw: items in turn, in overlapping pieces of the array."""
    size = weight.shape[1]
    slabs = []
    for w, m, v in zip(weight, mean, variance):
        first, stop = np.nonzero(w)[0][[0, -1]] if w.any() else (0, 0)
        first = int(random.integers(0, first + 1))
        here = slice(first, int(random.integers(stop + 1, size + 1)))
        slabs.append(Slab(first, w[here], (w * m)[here], (w * (m**2 + v))[here]))
    return slabs


@given(seed=st.integers(0, 1000), n_draws=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_running_moments(seed, n_draws):
    """Mean, variance from draw to draw and spread of the items, all weighted."""
    random = np.random.default_rng(seed)
    size = 9
    weight, mean, variance = draws_of(random, n_draws, size)
    moments = RunningMoments.zero(size)
    for parts in zip(weight, mean, variance):
        moments = moments.with_draw(slabs_of(*parts, random))
    together = weight.sum(axis=(0, 1))
    covered = together > 0.0
    divided = np.where(covered, together, 1.0)
    average = (weight * mean).sum(axis=(0, 1)) / divided
    per_draw = weight.sum(axis=1)
    of_draw = (weight * mean).sum(axis=1) / np.where(per_draw > 0.0, per_draw, 1.0)
    between = (per_draw * (of_draw - average) ** 2).sum(axis=0) / divided * n_draws / max(1, n_draws - 1)
    around = weight * ((mean - average) ** 2 + variance)
    spread = np.maximum(around.sum(axis=(0, 1)) / divided - between, 0.0)
    assert moments.draws == n_draws
    np.testing.assert_allclose(moments.weight, together, rtol=1e-12)
    np.testing.assert_allclose(moments.mean(), average, rtol=1e-12)
    np.testing.assert_allclose(moments.draw_variance(), between, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(moments.variance(), between + OPINION_SHARE * spread, rtol=1e-9, atol=1e-12)
    assert moments.mean()[0] == moments.variance()[0] == 0.0  # covered by nothing
    if n_draws > 1:  # equal weights: what everybody calls the variance
        np.testing.assert_allclose(moments.draw_variance()[1], mean[:, 0, 1].var(ddof=1), rtol=1e-9)


def test_one_draw_has_no_variance_from_draw_to_draw():
    """What is left is the share of the spread of its items."""
    weight, mean, variance = np.array([1.0, 3.0]), np.array([2.0, 4.0]), np.array([0.5, 0.1])
    sums = weight, weight * mean, weight * (mean**2 + variance)
    slab = Slab(0, *(np.array([total.sum()]) for total in sums))
    moments = RunningMoments.zero(1).with_draw([slab])
    np.testing.assert_array_equal(moments.draw_variance(), 0.0)
    assert moments.mean()[0] == 3.5
    spread = (1.0 * (1.5**2 + 0.5) + 3.0 * (0.5**2 + 0.1)) / 4.0
    assert moments.variance()[0] == pytest.approx(OPINION_SHARE * spread, rel=1e-14)


def test_moments_are_not_changed_by_a_draw():
    moments = RunningMoments.zero(3)
    later = moments.with_draw([Slab(1, np.ones(2), np.ones(2), np.ones(2))])
    assert moments.draws == 0 and not moments.weight.any() and later.draws == 1
    assert later.with_draw([]).draws == 2  # nothing covered: nothing changes
    np.testing.assert_array_equal(later.with_draw([]).mean(), later.mean())


def test_far_from_zero():
    """The variance from draw to draw does not suffer when the mean is large."""
    random = np.random.default_rng(1)
    values = 1e6 + random.standard_normal(200)
    moments = RunningMoments.zero(1)
    for value in values:
        sums = (np.array([2.0 * total]) for total in (1.0, value, value**2))
        moments = moments.with_draw([Slab(0, *sums)])
    assert moments.draw_variance()[0] == pytest.approx(values.var(ddof=1), rel=1e-6)


def test_variance_is_never_negative():
    """Rounding of square - mean^2 must not make it so."""
    moments = RunningMoments.zero(1)
    for _ in range(10):
        moments = moments.with_draw([Slab(0, np.array([1.0]), np.array([0.1]), np.array([0.1**2]))])
    assert moments.variance()[0] >= 0.0


def test_parts_of_a_large_array():
    """Whoever adds to which part, and in which order: the moments are those of sums over the whole array."""
    random = np.random.default_rng(4)
    size = 40_000
    moments, twin = RunningMoments.zero(size), RunningMoments.zero(size)

    def backwards(function, n_tasks):
        assert n_tasks == 3
        for i in reversed(range(n_tasks)):
            function(i)

    for _ in range(3):
        slabs = []
        for first, stop in ((0, 17_000), (15_000, 33_001), (16_384, 32_768), (39_999, size)):
            weight, total, square = random.gamma(2.0, size=(3, stop - first))
            slabs.append(Slab(first, weight, total, square))
        moments = moments.with_draw(slabs, backwards)
        twin = twin.with_whole(PartialDraw.zero(size).with_slabs(slabs))
    for name in ("weight", "total", "square", "deviation"):
        np.testing.assert_array_equal(getattr(moments, name), getattr(twin, name))
    assert (moments.weight[33_001:39_999] == 0.0).all() and moments.weight[-1] > 0.0
