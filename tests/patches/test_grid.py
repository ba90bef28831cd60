"""Grids of patches of any order: where they lie, and that nothing is left out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruskal.errors import InputError
from kruskal.patches import Grid, Items, cut


@st.composite
def grids(draw):
    """A grid of order 1 to 5 over a small array."""
    order = draw(st.integers(1, 5))
    most = {1: 30, 2: 9, 3: 6, 4: 4, 5: 3}[order]
    array = [draw(st.integers(1, most)) for _ in range(order)]
    patch = [draw(st.integers(1, size)) for size in array]
    stride = [draw(st.integers(1, size)) for size in patch]
    return Grid.over(array, patch, stride)


@given(grid=grids())
@settings(max_examples=80, deadline=None)
def test_corners(grid):
    """They begin at 0, go on in steps, and the last patch ends at the edge."""
    for starts, large, small, step in zip(grid.corners(), grid.array_shape, grid.patch_shape, grid.stride):
        assert starts[0] == 0 and starts[-1] == large - small
        gaps = np.diff(starts)
        assert (gaps > 0).all() and (gaps <= step).all() and (gaps[:-1] == step).all()


@given(grid=grids())
@settings(max_examples=80, deadline=None)
def test_items_are_the_patches(grid):
    array = np.arange(math.prod(grid.array_shape), dtype=np.float64).reshape(grid.array_shape)
    items = cut(array, None, grid)
    assert items.complete and items.n_items == grid.n_items and items.shape == grid.patch_shape
    patches = items.flat[items.origin[:, None] + items.offset]
    lists = [list(starts) for starts in grid.corners()]
    for n, where in enumerate(np.ndindex(*map(len, lists))):
        corner = [starts[i] for starts, i in zip(lists, where)]
        window = tuple(slice(c, c + size) for c, size in zip(corner, grid.patch_shape))
        np.testing.assert_array_equal(patches[n], array[window].ravel())


@given(grid=grids())
@settings(max_examples=60, deadline=None)
def test_every_entry_is_covered(grid):
    items = cut(np.zeros(grid.array_shape), None, grid)
    covered = np.unique(items.origin[:, None] + items.offset)
    assert len(covered) == math.prod(grid.array_shape)


def blocks_along_axes(grid, region):
    """For every axis the block of each corner along it; fails unless regions are products of such blocks."""
    table = region.reshape([len(starts) for starts in grid.corners()]).astype(np.int64)
    counts, blocks = [], []
    for axis in range(table.ndim):
        line = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)[:, 0]
        blocks.append(np.unique(line, return_inverse=True)[1])
        counts.append(blocks[-1].max() + 1)
    product = np.zeros((1,) * table.ndim, np.int64)
    for axis, (block, count) in enumerate(zip(blocks, counts)):
        product = product * count + block.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    np.testing.assert_array_equal(table, product)
    return blocks


@given(grid=grids(), most=st.integers(1, 70))
@settings(max_examples=150, deadline=None)
def test_regions(grid, most):
    """Blocks of neighbouring patches: as many as allowed, a power of two, none empty, all about as large."""
    region = grid.regions(most)
    n_regions = int(region.max()) + 1
    assert region.shape == (grid.n_items,) and region.dtype == np.uint16
    assert n_regions <= most and n_regions & (n_regions - 1) == 0
    assert (np.bincount(region) > 0).all()
    blocks = blocks_along_axes(grid, region)
    for block in blocks:
        assert (np.diff(block) >= 0).all()
        sizes = np.bincount(block)
        assert sizes.max() - sizes.min() <= 1
    if 2 * n_regions <= most:  # more would be allowed: no axis can be halved any more
        assert all(len(block) < 2 * (block.max() + 1) for block in blocks)


@given(grid=grids())
@settings(max_examples=40, deadline=None)
def test_one_region_and_more_regions_than_patches(grid):
    np.testing.assert_array_equal(grid.regions(1), 0)
    sizes = np.bincount(grid.regions(10_000))
    assert len(sizes) <= grid.n_items and sizes.min() >= 1
    assert sizes.max() <= 2 ** len(grid.array_shape)  # along an axis at most two: three are cut into 2 and 1


@pytest.mark.parametrize(
    "array, patch, most, blocks",
    [
        ((200,), (8,), 7, (4,)),
        ((64, 64), (8, 8), 64, (8, 8)),
        ((64, 64), (8, 8), 63, (8, 4)),
        ((64, 64), (8, 8), 3, (2, 1)),
        ((30, 200), (8, 8), 8, (1, 8)),
        ((100, 100, 3), (8, 8, 3), 16, (4, 4, 1)),
        ((40, 40, 10), (4, 4, 4), 8, (4, 2, 1)),
        ((9, 8, 7, 6), (4, 4, 4, 4), 8, (2, 2, 2, 1)),
        ((4, 4, 4, 4, 4), (2, 2, 2, 2, 2), 32, (2, 2, 2, 2, 2)),
    ],
)
def test_the_longest_side_is_halved_first(array, patch, most, blocks):
    grid = Grid.over(array, patch, 1)
    found = blocks_along_axes(grid, grid.regions(most))
    assert tuple(block.max() + 1 for block in found) == blocks


def test_items_know_their_regions():
    """`cut` numbers them; a part of the items keeps the numbers, a matrix has one region."""
    grid = Grid.over((12, 12), (3, 3), 1)
    items = cut(np.zeros((12, 12)), None, grid, regions=4)
    np.testing.assert_array_equal(items.region, grid.regions(4))
    assert items.n_regions == 4 and cut(np.zeros((12, 12)), None, grid).n_regions == 1
    part = items.part(30, 60)
    np.testing.assert_array_equal(part.region, items.region[30:60])
    np.testing.assert_array_equal(part.origin, items.origin[30:60])
    assert Items.from_matrix(np.zeros((4, 3))).n_regions == 1


def test_one_stride_goes_for_every_axis():
    assert Grid.over((9, 8), (3, 3), 2) == Grid.over((9, 8), (3, 3), (2, 2))


def test_missing_entries_are_zeroed_and_an_all_true_mask_is_no_mask():
    values = np.array([[1.0, np.nan], [1e30, 4.0]])
    observed = np.array([[True, False], [False, True]])
    items = cut(values, observed, Grid.over((2, 2), (1, 2), 1))
    np.testing.assert_array_equal(items.flat, [1.0, 0.0, 0.0, 4.0])
    np.testing.assert_array_equal(items.observed, observed.ravel())
    assert cut(np.ones((2, 2)), np.ones((2, 2), bool), Grid.over((2, 2), (1, 2), 1)).complete


def test_arrays_in_any_memory_order():
    values = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    grid = Grid.over((3, 4), (2, 2), 1)
    np.testing.assert_array_equal(cut(values, None, grid).flat, np.arange(12.0))
    observed = np.asfortranarray(values % 3 != 0)
    np.testing.assert_array_equal(cut(values, observed, grid).observed, np.arange(12) % 3 != 0)


def test_items_from_a_matrix():
    values = np.arange(24.0).reshape(4, 3, 2)
    items = Items.from_matrix(values)
    assert items.complete and items.n_items == 4 and items.shape == (3, 2)
    np.testing.assert_array_equal(items.flat[items.origin[:, None] + items.offset], values.reshape(4, 6))
    assert Items.from_matrix(values.astype(int)).flat.dtype == np.float32
    observed = values % 5 != 0
    items = Items.from_matrix(np.where(observed, values, np.nan), observed)
    np.testing.assert_array_equal(items.flat, np.where(observed, values, 0.0).ravel())


@pytest.mark.parametrize(
    "array, patch, stride, said",
    [
        ((5, 5), (6, 2), 1, "larger than the array"),
        ((5, 5), (2,), 1, "one size per axis"),
        ((5, 5), (0, 2), 1, "patch_shape must hold whole numbers"),
        ((5, 5), (2.5, 2), 1, "patch_shape must hold whole numbers"),
        ((5, 5), "8x8", 1, "patch_shape must hold whole numbers"),
        ((5, 5), (2, 2), 0, "stride must be a whole number of at least 1"),
        ((5, 5), (2, 2), (1, 1, 1), "stride must be one number"),
    ],
)
def test_bad_grids(array, patch, stride, said):
    with pytest.raises(InputError, match=said):
        Grid.over(array, patch, stride)
