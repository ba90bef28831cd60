"""The regions of the items of a run: which items share a usage."""

from collections.abc import Callable

from kruskal.engines.tasks import blas_on_one_thread
from kruskal.gibbs.likeness import group_alike
from kruskal.patches import Items


def in_regions(
    items_of: Callable[[int], Items], most: int, grouping: str, seed: int, array_shape: tuple[int, ...]
) -> Items:
    """Items in at most ``most`` regions: neighbours by "place", or items that look alike by "likeness".

    ``items_of`` cuts them out of an array of this shape, in so many regions by place.
    """
    if grouping == "place" or most == 1:
        return items_of(most)
    with blas_on_one_thread():  # or the groups would depend on the number of threads
        return group_alike(items_of(1), most, seed, array_shape)
