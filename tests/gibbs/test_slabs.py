"""The joint draw of an item's slabs and the expected items: equal to their plain twins."""

import math
from itertools import pairwise

import numpy as np
import pytest

from kruskal.gibbs.codes import atom_products, draw_codes
from kruskal.gibbs.expected import expect_items
from kruskal.gibbs.local import split
from kruskal.gibbs.slabs import draw_slabs
from kruskal.patches import Grid, cut
from tests.gibbs.reference import World
from tests.gibbs.test_codes import after, code_world
from tests.gibbs.twins import draw_all_codes, draw_all_slabs, expected_item
from tests.gibbs.worlds import (
    all_codes,
    cases,
    codes_of,
    dense_codes,
    make_shards,
    make_strong_world,
    make_world,
    model_of,
)

VARIANCE = 1e-5
"""What single precision leaves of the variances of the expected items, and so of their weights."""
SIZES = [(1, (3, 2)), (5, (1,)), (7, (8,)), (9, (3, 3)), (33, (5, 3)), (70, (2, 3, 2))]


def slab_world(n_atoms, shape, n_items, masked, seed=0, share=0.4) -> World:
    """Items with none, few and many atoms in use; the middle item of masked worlds is not observed at all."""
    world = code_world(n_atoms, shape, n_items, "mixed", masked, seed=seed, n_regions=2)
    random = np.random.default_rng([seed, 1])
    used = random.random(world.used.shape) < share * random.random((n_items, 1)) * 2.0
    used[0], used[1] = False, True
    used[n_items // 2, 0] = True
    return world.changed(used=used)


def as_stored(world: World, dtype) -> World:
    """The world with atoms and data in the precision of the data."""
    return world.changed(
        values=world.values.astype(dtype).astype(float), gaussian=world.gaussian.astype(dtype).astype(float)
    )


def draw(world: World, dtype=np.float64, seed=5, sweep=3, keep_mask=False):
    """(shards, reports) after a joint draw in which z is that of the world."""
    shards = make_shards(world, dtype, keep_mask)
    model = model_of(world, dtype, keep_mask)
    return shards, [draw_slabs(shard, model, seed=seed, sweep=sweep) for shard in shards]


# ------------------------------------------------------------------------------------------- the joint draw


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("n_atoms, shape", SIZES)
def test_kernel_draws_what_the_twin_draws(n_atoms, shape, masked, dtype):
    """Values, their squares, the residual and its squares; float32 only rounds the result."""
    world = as_stored(slab_world(n_atoms, shape, 13, masked), dtype)
    (shard,), (drawn,) = draw(world, dtype)
    expected = draw_all_slabs(world, seed=5, sweep=3)
    codes = dense_codes(shard.codes, n_atoms)
    assert shard.codes.value.dtype == dtype
    np.testing.assert_array_equal(codes != 0.0, world.used)
    precise = 1e-10 if dtype == np.float64 else 1e-7
    np.testing.assert_allclose(codes, expected, rtol=precise, atol=1e-10)
    np.testing.assert_allclose(drawn.squares, (codes**2).sum(axis=0), rtol=precise)
    rest = world.values - codes @ world.atoms  # of the codes as they are stored
    assert drawn.residual_squares == pytest.approx(float((rest[world.observed] ** 2).sum()), rel=1e-10)
    if masked:
        np.testing.assert_allclose(shard.residual, rest[world.observed], rtol=10 * precise, atol=precise)
    else:
        assert shard.residual.size == 0


@pytest.mark.parametrize("make", [make_world, make_strong_world], ids=["prior", "strong"])
@pytest.mark.parametrize("case", cases((0, 2)), ids=str)
def test_orders_one_to_four(case, make):
    """The worlds whose conditional `test_density_ratios` holds to the joint density."""
    world = make(case)
    (shard,), (drawn,) = draw(world)
    expected = draw_all_slabs(world, seed=5, sweep=3)
    np.testing.assert_allclose(dense_codes(shard.codes, case.n_atoms), expected, rtol=1e-9, atol=1e-9)
    rest = (world.values - expected @ world.atoms)[world.observed]
    assert drawn.residual_squares == pytest.approx(float(rest @ rest), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_items_of_later_shards_have_their_own_random_numbers(masked):
    world = slab_world(6, (2, 2), 1100, masked)
    shards, reports = draw(world)
    assert len(shards) > 1
    expected = draw_all_slabs(world, seed=5, sweep=3)
    np.testing.assert_allclose(all_codes(shards, 6), expected, rtol=1e-9, atol=1e-9)
    squares = sum(drawn.squares for drawn in reports)
    np.testing.assert_allclose(squares, (expected**2).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_after_the_draw_of_the_codes(masked):
    """As a sweep does it: z one at a time, then all s anew; what is reported fits both."""
    world = code_world(30, (4, 3), 25, "mixed", masked, n_regions=3)
    (shard,) = make_shards(world)
    model = model_of(world)
    first = draw_codes(shard, model, seed=5, sweep=2)
    single = dense_codes(shard.codes, 30)
    draw_slabs(shard, model, seed=5, sweep=2)
    between = after(world, draw_all_codes(world, seed=5, sweep=2))
    expected = draw_all_slabs(between, seed=5, sweep=2)
    codes = dense_codes(shard.codes, 30)
    np.testing.assert_allclose(codes, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(codes != 0.0, single != 0.0)
    counts = [(expected[world.region == g] != 0.0).sum(axis=0) for g in range(3)]
    np.testing.assert_array_equal(first, counts)
    assert np.abs(codes - single).max() > 0.1


def test_codes_are_replaced_not_changed():
    """The state from before an interrupted sweep must still be there."""
    world = slab_world(6, (2, 2), 20, False)
    (shard,) = make_shards(world)
    before = shard.codes
    copies = [part.copy() for part in before]
    model = model_of(world)
    draw_slabs(shard, model, seed=1, sweep=1)
    assert shard.codes is not before
    for part, copy in zip(before, copies):
        np.testing.assert_array_equal(part, copy)


def test_a_mask_that_is_all_true_draws_the_same():
    world = slab_world(20, (3, 3), 40, False)
    (shard,), (drawn,) = draw(world)
    (masked,), (same,) = draw(world, keep_mask=True)
    assert not masked.items.complete
    np.testing.assert_allclose(masked.codes.value, shard.codes.value, rtol=1e-9, atol=1e-10)
    assert same.residual_squares == pytest.approx(drawn.residual_squares, rel=1e-10)


EXTREMES = [(1e-9, 1e-6), (1e-6, 1e-9), (1e-3, 1e8), (1e6, 1e-3), (1e-12, 1e4), (1e12, 1e15)]


@pytest.mark.parametrize("code_precision, noise_precision", EXTREMES)
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_extreme_precisions(masked, code_precision, noise_precision):
    """Scratch space is used again item after item, with fewer and more atoms in turn: nothing leaks through.

    Atoms in use are fewer than observed entries, so that the system stays well conditioned.
    """
    world = slab_world(3, (4, 4), 700, masked, share=0.5)
    world = world.changed(code_precision=code_precision, noise_precision=noise_precision)
    shards, _ = draw(world)
    expected = draw_all_slabs(world, seed=5, sweep=3)
    np.testing.assert_allclose(all_codes(shards, 3), expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    (shard,) = shards
    if code_precision * 1e12 > noise_precision:  # beyond, single precision shows in the variances
        assert_slab(expect(shard, world), *naive(world, shard.items))


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_equal_atoms_with_hardly_any_noise(masked):
    """Lambda has 14 digits between its eigenvalues: codes keep the size of their prior and explain the data.

    Beyond 16 digits (gamma_eps |d|^2 / gamma_s) there is nothing left of gamma_s, and the draw breaks down.
    """
    world = slab_world(12, (3, 2), 200, masked, share=0.5)
    atoms = np.repeat(world.atoms[:2], 6, axis=0)
    world = world.changed(gaussian=atoms, code_precision=1.0, noise_precision=1e14)
    world = world.changed(values=world.codes @ atoms)
    (shard,), (drawn,) = draw(world)
    codes, slab = dense_codes(shard.codes, 12), expect(shard, world)
    assert np.abs(codes).max() < 10.0
    assert all(np.isfinite(part).all() for part in slab[1:]) and (slab.weight > 0.0).all()
    rest = (world.values - codes @ atoms)[world.observed]
    assert np.abs(rest).max() < 6e-7
    assert drawn.residual_squares == pytest.approx(float(rest @ rest), rel=1e-2)


# ------------------------------------------------------------------------------------------- expected items


def naive(world: World, items, weighted=True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sum w, sum w m, sum w (m^2 + v)) at every flat entry, item by item."""
    weight, total, square = (np.zeros(len(items.flat)) for _ in range(3))
    for n in range(world.n_items):
        mean, variance = expected_item(world, n)
        precision = trust(world, n) / (variance + 1.0 / world.noise_precision) if weighted else 1.0
        at = items.origin[n] + items.offset
        weight[at] += precision
        total[at] += precision * mean
        square[at] += precision * (mean**2 + variance)
    return weight, total, square


def trust(world: World, n: int) -> float:
    """Of eight observed entries (or all, if an item has fewer) on an item is trusted, without any hardly."""
    return max(min(1.0, world.observed[n].sum() / min(8, world.n_entries)), 1e-6)


def expect(shard, world: World, dtype=np.float64, weighted=True):
    """The slab of a shard, with what the chain gives to it."""
    dictionary = world.atoms.astype(dtype)
    products = atom_products(dictionary, shard.items.complete)
    return expect_items(shard, dictionary, products, world.code_precision, world.noise_precision, weighted)


def assert_slab(slab, weight, total, square):
    """To single precision, in which the variances are computed."""
    here = slice(slab.first, slab.first + len(slab.weight))
    for mine, naively in zip(slab[1:], (weight, total, square)):
        np.testing.assert_allclose(mine, naively[here], rtol=VARIANCE, atol=VARIANCE * np.abs(naively).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("n_atoms, shape", SIZES)
def test_expected_items(n_atoms, shape, masked, dtype):
    """Mean, variance and weight; with items that use nothing and items of which nothing is observed."""
    world = as_stored(slab_world(n_atoms, shape, 13, masked), dtype)
    (shard,) = make_shards(world, dtype)
    slab = expect(shard, world, dtype)
    assert slab.first == 0 and len(slab.weight) == world.values.size
    assert {part.dtype for part in slab[1:]} == {np.dtype(np.float64)}
    weight, total, square = naive(world, shard.items)
    assert_slab(slab, weight, total, square)
    # items do not overlap here: the weight cancels, and the mean has all its digits
    np.testing.assert_allclose(slab.total / slab.weight, total / weight, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_expected_items_with_the_same_weight(masked):
    """Whatever is observed of them; where they overlap each counts once."""
    world = slab_world(4, (3, 2), 9, masked)
    (shard,) = make_shards(world)
    slab = expect(shard, world, weighted=False)
    np.testing.assert_array_equal(slab.weight, 1.0)
    assert_slab(slab, *naive(world, shard.items, weighted=False))


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_an_item_that_uses_nothing(masked):
    """Its mean and variance are 0, its weight is that of the noise."""
    world = slab_world(4, (3,), 6, masked)
    (shard,) = make_shards(world.changed(used=np.zeros_like(world.used)))
    slab = expect(shard, world)
    trusts = np.repeat([trust(world, n) for n in range(6)], 3)
    np.testing.assert_allclose(slab.weight, trusts * world.noise_precision, rtol=1e-15)
    np.testing.assert_array_equal(slab.total, 0.0)
    np.testing.assert_array_equal(slab.square, 0.0)


def test_an_item_of_which_nothing_is_observed():
    """Its slabs have their prior: mean 0, variance sum_k d_k^2 / gamma_s; a small weight, but some."""
    world = slab_world(4, (3,), 3, True)
    (shard,) = make_shards(world.with_entry("observed", 1, False))
    slab = expect(shard, world)
    variance = (world.atoms**2).sum(axis=0) / world.code_precision  # item 1 uses all atoms
    weight = 1e-6 / (variance + 1.0 / world.noise_precision)
    np.testing.assert_allclose(slab.weight[3:6], weight, rtol=VARIANCE)
    np.testing.assert_array_equal(slab.total[3:6], 0.0)
    np.testing.assert_allclose(slab.square[3:6], weight * variance, rtol=VARIANCE)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize(
    "array, patch, stride", [((40,), (7,), 2), ((12, 9), (4, 3), 1), ((6, 5, 4), (3, 2, 2), 1)]
)
def test_overlapping_items_in_several_shards(array, patch, stride, masked):
    """Weighted sums over patches that overlap, and slabs that do: together they are the naive sums."""
    random = np.random.default_rng([3, *array, masked])
    grid = Grid.over(array, patch, stride)
    values = random.standard_normal(array)
    observed = random.random(array) < 0.5 if masked else None
    items = cut(values, observed, grid)
    n_items, n_entries, n_atoms = items.n_items, math.prod(patch), 5
    at = items.origin[:, None] + items.offset
    seen = np.ones(at.shape, bool) if observed is None else observed.ravel()[at]
    world = code_world(n_atoms, patch, n_items, "mixed", False).changed(
        values=items.flat[at], observed=seen, used=random.random((n_items, n_atoms)) < 0.4
    )
    assert world.n_entries == n_entries
    cuts = [0, n_items // 3, n_items // 3 + 1, n_items]
    sums = [np.zeros(values.size) for _ in range(3)]
    for first, stop in pairwise(cuts):
        (shard,) = split(items.part(first, stop))
        shard.codes = codes_of(world.codes[first:stop])
        slab = expect(shard, world)
        assert slab.first == items.origin[first:stop].min()
        for total, part in zip(sums, slab[1:]):
            total[slab.first : slab.first + len(part)] += part
    for total, naively in zip(sums, naive(world, items)):
        np.testing.assert_allclose(total, naively, rtol=VARIANCE, atol=VARIANCE)


def test_the_expected_items_do_not_depend_on_the_slabs():
    """They are averaged out: only z counts."""
    world = slab_world(6, (3, 2), 12, True)
    (shard,) = make_shards(world)
    first = expect(shard, world)
    shard.codes = shard.codes._replace(value=2.0 + shard.codes.value)
    for one, other in zip(first, expect(shard, world)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_expected_items_are_the_average_over_the_draws(masked):
    """The mean over many joint draws of Dw, and its variance: two kernels, one distribution."""
    world = slab_world(5, (3, 2), 4, masked)
    (shard,) = make_shards(world)
    model = model_of(world)
    n_draws = 4000
    items = np.empty((n_draws, 4, 6))
    for sweep in range(n_draws):
        draw_slabs(shard, model, seed=9, sweep=sweep)
        items[sweep] = dense_codes(shard.codes, 5) @ world.atoms
    slab = expect(shard, world)
    weight, total, square = (part.reshape(4, 6) for part in slab[1:])
    mean = total / weight
    variance = square / weight - mean**2
    trusts = np.array([[trust(world, n)] for n in range(4)])
    np.testing.assert_allclose(weight, trusts / (variance + 1.0 / world.noise_precision), rtol=VARIANCE)
    error = np.sqrt(variance[1:] / n_draws)  # item 0 uses nothing
    assert (np.abs(items.mean(axis=0) - mean)[1:] < 4.5 * error).all()
    ratio = items.var(axis=0)[1:] / variance[1:]
    assert (np.abs(ratio - 1.0) < 4.5 * np.sqrt(2.0 / n_draws)).all()
