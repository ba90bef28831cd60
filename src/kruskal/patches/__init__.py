"""A grid of items of any order over an array: where they lie, and how to put them back together."""

from kruskal.patches.assemble import RunningMoments, Slab
from kruskal.patches.grid import Grid, Items, cut

__all__ = ["Grid", "Items", "RunningMoments", "Slab", "cut"]
