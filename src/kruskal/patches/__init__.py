"""A grid of items of any order over an array: where they lie, and how to put them back together."""

from kruskal.patches.assemble import PartialDraw, RunningMoments, Slab
from kruskal.patches.blocks import Blocks, Part, choose_block, within
from kruskal.patches.grid import Grid, Items, cut
from kruskal.patches.reach import Ordinary, Slices, hole_sentence, hole_variance, nearby_share, seen_slices
from kruskal.patches.several import cut_together, lay_together, together_shape

__all__ = [
    "Blocks",
    "Grid",
    "Items",
    "Ordinary",
    "Part",
    "PartialDraw",
    "RunningMoments",
    "Slab",
    "Slices",
    "choose_block",
    "cut",
    "cut_together",
    "hole_sentence",
    "hole_variance",
    "lay_together",
    "nearby_share",
    "seen_slices",
    "together_shape",
    "within",
]
