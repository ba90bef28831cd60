"""The regions of the items of a run: which items share a usage."""

from collections.abc import Callable

import numpy as np

from kruskal.engines.tasks import blas_on_one_thread
from kruskal.gibbs.likeness import group_alike
from kruskal.patches import Items


def in_regions(
    items_of: Callable[[int], Items], most: int, grouping: str, seed: int, array_shape: tuple[int, ...]
) -> Items:
    """Items in at most ``most`` regions at first: neighbours, or those that look alike by "likeness".

    ``items_of`` cuts them out of an array of this shape, in so many regions by place.
    """
    if grouping == "place" or most == 1:
        return items_of(most)
    with blas_on_one_thread():  # or the groups would depend on the number of threads
        return group_alike(items_of(1), most, seed, array_shape)


def alike_in(estimate: np.ndarray, items: Items, seed: int, array_shape: tuple[int, ...]) -> np.ndarray:
    """Regions (N,) of items that look alike in ``estimate`` (flat) of their array of this shape.

    There are not more of them than the items have.
    """
    restored = items._replace(flat=estimate.astype(items.flat.dtype), observed=np.zeros(0, bool))
    with blas_on_one_thread():
        return group_alike(restored, items.n_regions, seed, array_shape, number=1).region
