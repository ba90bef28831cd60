"""An array in blocks, for one that does not fit into memory: patches that begin in or reach into a block.

A block of the array is a box of entries. Patches belong to the block that their first entry lies in; what is
learned from a block is learned from these. To restore a block all patches are needed that reach into it, and
some of them begin in front of it or end behind it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kruskal.patches.grid import Grid, Items, cut_at

MOST_ENTRIES = 2**20
"""Entries of a block, unless the user says otherwise."""


class Part(NamedTuple):
    """Some patches of a grid and the box of the array that they lie in.

    Attributes
    ----------
    first : first index of the box along each axis
    grid : the grid's patch and stride, with the box as its array
    corners : first indices of the patches along each axis, within the box
    """

    first: tuple[int, ...]
    grid: Grid
    corners: list[np.ndarray]

    @property
    def n_items(self) -> int:
        """Number of patches."""
        return math.prod(len(starts) for starts in self.corners)

    @property
    def box(self) -> tuple[slice, ...]:
        """Where the box lies in the array."""
        return tuple(slice(a, a + size) for a, size in zip(self.first, self.grid.array_shape))

    def cut(self, values: np.ndarray, observed: np.ndarray, regions: int = 1) -> Items:
        """The items, given the scaled entries of the box."""
        return cut_at(values, observed, self.grid, self.corners, regions)


class Blocks(NamedTuple):
    """The blocks of an array, numbered in C order; the last along an axis may be smaller."""

    grid: Grid
    block_shape: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of blocks along each axis."""
        return tuple(-(-large // small) for large, small in zip(self.grid.array_shape, self.block_shape))

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return math.prod(self.counts)

    def core(self, number: int) -> tuple[slice, ...]:
        """The entries of a block."""
        place = np.unravel_index(number, self.counts)
        return tuple(
            slice(int(i) * step, min((int(i) + 1) * step, large))
            for i, step, large in zip(place, self.block_shape, self.grid.array_shape)
        )

    def own(self, number: int) -> Part | None:
        """The patches that begin in a block; None if there are none."""
        return self._part([(here.start, here.stop) for here in self.core(number)])

    def covering(self, number: int) -> Part:
        """The patches that reach into a block; their box contains it."""
        reach = [
            (here.start - size + 1, here.stop) for here, size in zip(self.core(number), self.grid.patch_shape)
        ]
        part = self._part(reach)
        assert part is not None  # patches leave no entry out
        return part

    def surroundings(self, number: int) -> tuple[slice, ...]:
        """The box of `covering`, or more of the array where that ends within half a patch of the block."""
        axes = zip(self.core(number), self.covering(number).box, self.grid.patch_shape, self.grid.array_shape)
        return tuple(
            slice(
                min(box.start, max(core.start - side // 2, 0)),
                max(box.stop, min(core.stop + side // 2, size)),
            )
            for core, box, side, size in axes
        )

    def _part(self, bounds: list[tuple[int, int]]) -> Part | None:
        """The patches whose corners lie within ``bounds`` (begin, end) along each axis."""
        corners = [
            starts[(starts >= begin) & (starts < end)]
            for starts, (begin, end) in zip(self.grid.corners(), bounds)
        ]
        if min(map(len, corners)) == 0:
            return None
        first = tuple(int(starts[0]) for starts in corners)
        shape = tuple(
            int(starts[-1] - starts[0]) + size for starts, size in zip(corners, self.grid.patch_shape)
        )
        inside = [starts - starts[0] for starts in corners]
        return Part(first, Grid(shape, self.grid.patch_shape, self.grid.stride), inside)


def within(box: tuple[slice, ...], part: tuple[slice, ...]) -> tuple[slice, ...]:
    """Where a part of a box lies in it."""
    return tuple(slice(p.start - b.start, p.stop - b.start) for b, p in zip(box, part))


def choose_block(
    array_shape: Sequence[int], chunks: Sequence[int] | None, most: int = MOST_ENTRIES
) -> tuple[int, ...]:
    """A block of at most ``most`` entries, its sides about equal, of whole chunks if these are small.

    >>> choose_block((2000, 2000, 32), (250, 250, 32), 2**21)
    (250, 250, 32)
    >>> choose_block((300, 40), None, 2**12)
    (64, 40)
    """
    unit = [min(size, large) for size, large in zip(chunks or [1] * len(array_shape), array_shape)]
    if math.prod(unit) > 2 * most:
        unit = [1] * len(unit)
    block = unit
    while True:
        open_axes = [axis for axis, size in enumerate(block) if size < array_shape[axis]]
        for axis in sorted(open_axes, key=lambda axis: block[axis]):
            wider = [*block]
            wider[axis] = min(2 * block[axis], array_shape[axis])
            if math.prod(wider) <= most:
                block = wider
                break
        else:
            return tuple(block)
