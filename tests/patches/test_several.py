"""Items of several arrays in one flat array."""

import numpy as np
import pytest

from kruskal.errors import InputError
from kruskal.patches import Grid, cut, cut_together, lay_together, together_shape


def entries(items):
    return items.flat[items.origin[:, None] + items.offset[None, :]]


@pytest.mark.parametrize(
    "shapes", [[(7, 9)], [(7, 9), (6, 4), (9, 9)], [(5, 4, 6), (4, 7, 5)], [(11,), (8,)]]
)
@pytest.mark.parametrize("masked", [False, True])
def test_items_are_those_of_each_array(shapes, masked):
    random = np.random.default_rng(0)
    arrays = [random.random(shape).astype(np.float32) for shape in shapes]
    masks = [random.random(shape) < 0.7 for shape in shapes]
    patch = (3, 2, 4)[: len(shapes[0])]
    grids = [Grid.over(shape, patch, 2) for shape in shapes]
    n_items = sum(grid.n_items for grid in grids)
    region = np.arange(n_items).astype(np.uint16)
    seen = lay_together(masks) if masked else None
    items = cut_together(lay_together(arrays), seen, grids, region)
    apart = [cut(array, mask if masked else None, grid) for array, mask, grid in zip(arrays, masks, grids)]
    np.testing.assert_array_equal(entries(items), np.concatenate([entries(part) for part in apart]))
    assert items.n_items == n_items and items.shape == patch and items.complete == (not masked)
    np.testing.assert_array_equal(items.region, region)
    if masked:
        seen = items.observed[items.origin[:, None] + items.offset[None, :]]
        parts = [part.observed[part.origin[:, None] + part.offset[None, :]] for part in apart]
        np.testing.assert_array_equal(seen, np.concatenate(parts))


def test_one_array_is_not_changed():
    array = np.random.default_rng(0).random((7, 9))
    np.testing.assert_array_equal(lay_together([array]), array)
    grid = Grid.over((7, 9), (3, 3), 1)
    together, alone = (
        cut_together(array, None, [grid], np.zeros(grid.n_items, np.uint16)),
        cut(array, None, grid),
    )
    for one, other in zip(together, alone):
        np.testing.assert_array_equal(one, other)


def test_arrays_of_different_order_are_refused():
    with pytest.raises(InputError, match="the first has 2, number 3 has 1"):
        together_shape([(3, 3), (2, 2), (4,)])
