"""Items from several arrays: the arrays are laid into one, and every grid keeps to its own part of it.

All items share one table of offsets, so the arrays must share their strides: they lie one after the other
along the first axis, and the other axes are padded to the longest. No item reaches into the padding.
"""

from collections.abc import Sequence

import numpy as np

from kruskal.errors import InputError
from kruskal.patches.grid import Grid, Items


def lay_together(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """All arrays in one of shape (sum n_0, max n_1, .., max n_T), zero (False) in between.

    >>> lay_together([np.ones((1, 2), int), np.full((2, 1), 7)])
    array([[1, 1],
           [7, 0],
           [7, 0]])
    """
    shapes = [array.shape for array in arrays]
    whole = np.zeros(together_shape(shapes), np.result_type(*arrays))
    first = 0
    for array in arrays:
        here = (slice(first, first + len(array)), *(slice(0, size) for size in array.shape[1:]))
        whole[here] = array
        first += len(array)
    return whole


def together_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Shape of the array that holds all arrays of these shapes; InputError unless they have as many axes."""
    for number, shape in enumerate(shapes):
        if len(shape) != len(shapes[0]):
            raise InputError(
                f"all arrays must have the same number of axes: the first has {len(shapes[0])}, "
                f"number {number + 1} has {len(shape)}"
            )
    return (sum(shape[0] for shape in shapes), *(max(sizes) for sizes in list(zip(*shapes))[1:]))


def cut_together(
    values: np.ndarray, observed: np.ndarray | None, grids: Sequence[Grid], region: np.ndarray
) -> Items:
    """The items of all grids, in order; ``values`` and ``observed`` are laid together, scaled, in step.

    Parameters
    ----------
    observed : None means that nothing is missing (but the padding)
    grids : one per array, of equal patch shape
    region : (N,) uint16 region of every item
    """
    whole = Grid(values.shape, grids[0].patch_shape, grids[0].stride)
    origins, first = [], 0
    for grid in grids:
        origins.append(whole.origins_at(grid.corners()) + first)
        first += grid.array_shape[0] * whole.memory_steps()[0]
    flat, mask = values.reshape(-1), np.zeros(0, bool)
    if observed is not None:
        mask = observed.reshape(-1)
        flat = np.where(mask, flat, flat.dtype.type(0))
    return Items(flat, mask, np.concatenate(origins), whole.offsets(), whole.patch_shape, region)
