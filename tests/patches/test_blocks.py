"""Blocks of an array: a patch begins in one of them, and each is restored from all that reach into it."""

import doctest
import math

import numpy as np
import pytest

from kruskal.patches import Blocks, Grid, blocks, choose_block

LAYOUTS = [
    ((23, 17), (4, 5), (2, 3), (8, 8)),
    ((23, 17), (4, 5), (4, 5), (3, 2)),
    ((9, 8, 7), (3, 3, 2), (1, 2, 2), (4, 8, 5)),
    ((30,), (7,), (3,), (30,)),
    ((12, 5), (5, 5), (2, 1), (5, 2)),
]


def grid_and_blocks(layout):
    array_shape, patch_shape, stride, block_shape = layout
    grid = Grid.over(array_shape, patch_shape, stride)
    return grid, Blocks(grid, block_shape)


def origins(part, grid):
    """Flat indices, in the whole array, of the first entries of a part's patches."""
    return grid.origins_at([starts + first for starts, first in zip(part.corners, part.first)])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_patch_begins_in_one_block(layout):
    grid, cut = grid_and_blocks(layout)
    parts = [part for part in map(cut.own, range(cut.n_blocks)) if part is not None]
    assert sum(part.n_items for part in parts) == grid.n_items
    assert np.array_equal(
        np.sort(np.concatenate([origins(part, grid) for part in parts])), np.sort(grid.origins())
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_put_together_are_the_array(layout):
    """Sums over patches, each with a number of its own, agree with those over the whole grid."""
    grid, cut = grid_and_blocks(layout)
    size = math.prod(grid.array_shape)
    number = np.random.default_rng(0).random(size)  # by the patch's first entry
    whole = np.zeros(size)
    for origin in grid.origins():
        whole[origin + grid.offsets()] += number[origin]
    result = np.zeros(grid.array_shape)
    for block in range(cut.n_blocks):
        part, core = cut.covering(block), cut.core(block)
        sums = np.zeros(math.prod(part.grid.array_shape))
        for inside, origin in zip(part.grid.origins_at(part.corners), origins(part, grid)):
            sums[inside + part.grid.offsets()] += number[origin]
        here = tuple(slice(one.start - first, one.stop - first) for one, first in zip(core, part.first))
        assert (result[core] == 0).all()
        result[core] = sums.reshape(part.grid.array_shape)[here]
    assert np.allclose(result, whole.reshape(grid.array_shape))


def test_items_of_a_part_are_those_of_the_array():
    grid, cut = grid_and_blocks(LAYOUTS[0])
    values = np.arange(23.0 * 17).reshape(23, 17).astype(np.float32)
    part = cut.covering(4)
    items = part.cut(values[part.box], np.ones(values[part.box].shape, bool), regions=4)
    found = items.flat[items.origin[:, None] + items.offset]
    assert np.array_equal(found[:, 0], origins(part, grid))
    assert np.array_equal(found, (origins(part, grid)[:, None] + grid.offsets()).astype(np.float32))
    assert items.complete and items.n_regions == 4


def test_blocks_follow_the_chunks():
    assert doctest.testmod(blocks).failed == 0
    assert choose_block((2000, 2000, 32), (125, 125, 32)) == (250, 125, 32)
    assert choose_block((10, 10), (64, 64)) == (10, 10)
    assert choose_block((10**9,), None) == (2**20,)
    # a chunk that is far too large is no unit
    assert math.prod(choose_block((4000, 4000), (4000, 4000))) <= 2**20
