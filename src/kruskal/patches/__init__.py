"""A grid of items of any order over an array: where they lie, and how to put them back together."""

from kruskal.patches.assemble import PartialDraw, RunningMoments, Slab
from kruskal.patches.grid import Grid, Items, cut

__all__ = ["Grid", "Items", "PartialDraw", "RunningMoments", "Slab", "cut"]
