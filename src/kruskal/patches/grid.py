"""Where the items lie: a regular grid of patches over an array of any order.

Patches are never copied out. An item is an origin into the flattened array, and all items share one table of
offsets: entry i of item n is ``flat[origin[n] + offset[i]]``. A plain matrix of items fits the same form.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kruskal.errors import InputError, shown, whole_number


class Items(NamedTuple):
    """The data that a sampler sees: overlapping views into one flat array.

    Attributes
    ----------
    flat : (size,) float32 (tests also use float64), zero where missing
    observed : (size,) bool, or of length zero when everything is observed
    origin : (N,) int64
    offset : (P,) int64
    shape : shape (m_1, .., m_T) of one item, P = prod(shape)
    region : (N,) uint16, which items share a usage: those of a part of the array, or that look alike; from 0
    """

    flat: np.ndarray
    observed: np.ndarray
    origin: np.ndarray
    offset: np.ndarray
    shape: tuple[int, ...]
    region: np.ndarray

    @property
    def n_items(self) -> int:
        """Number of items N."""
        return len(self.origin)

    @property
    def size(self) -> int:
        """Number of entries of the array."""
        return len(self.flat)

    @property
    def n_regions(self) -> int:
        """Number of regions G."""
        return int(self.region.max()) + 1

    def part(self, first: int, stop: int) -> "Items":
        """The items first <= n < stop."""
        return self._replace(origin=self.origin[first:stop], region=self.region[first:stop])

    def take(self, chosen: np.ndarray) -> "Items":
        """The items with these numbers (n,), in their order."""
        return self._replace(origin=self.origin[chosen], region=self.region[chosen])

    @property
    def complete(self) -> bool:
        """True when no entry is missing."""
        return len(self.observed) == 0

    @classmethod
    def from_matrix(cls, items: np.ndarray, observed: np.ndarray | None = None) -> "Items":
        """Items given one by one: ``items`` has shape (N, m_1, .., m_T), ``observed`` the same or None.

        They all lie in one region, unless it is replaced.
        """
        n_items, shape = len(items), items.shape[1:]
        size = math.prod(shape)
        flat, mask = items.ravel(), np.zeros(0, dtype=bool)
        if observed is not None and not observed.all():
            flat, mask = np.where(observed, items, 0).ravel(), observed.ravel()
        if flat.dtype not in (np.float32, np.float64):
            flat = flat.astype(np.float32)
        origin = np.arange(n_items, dtype=np.int64) * size
        region = np.zeros(n_items, np.uint16)
        return cls(flat, mask, origin, np.arange(size, dtype=np.int64), shape, region)


class Grid(NamedTuple):
    """A grid of patches: ``patch_shape`` at every ``stride``; the last corner of each axis is always in."""

    array_shape: tuple[int, ...]
    patch_shape: tuple[int, ...]
    stride: tuple[int, ...]

    @classmethod
    def over(
        cls, array_shape: Sequence[int], patch_shape: Sequence[int], stride: int | Sequence[int]
    ) -> "Grid":
        """Check the three shapes against each other; a single stride goes for every axis."""
        array_shape = tuple(int(n) for n in array_shape)
        patch = _whole_numbers("patch_shape", patch_shape)
        if len(patch) != len(array_shape):
            raise InputError(
                f"patch_shape must have one size per axis of the array: {_times(patch)} was given "
                f"for an array of shape {_times(array_shape)}"
            )
        for axis, (small, large) in enumerate(zip(patch, array_shape)):
            if small > large:
                raise InputError(
                    f"patch_shape {_times(patch)} is larger than the array {_times(array_shape)} "
                    f"along axis {axis}"
                )
        if isinstance(stride, (int, float, np.number)):
            stride = (whole_number("stride", stride, 1),) * len(patch)
        steps = _whole_numbers("stride", stride)
        if len(steps) != len(patch):
            raise InputError(f"stride must be one number or one per axis ({len(patch)}), not {_times(steps)}")
        for axis, (step, small, large) in enumerate(zip(steps, patch, array_shape)):
            if step > small and large > small:
                raise InputError(
                    f"stride {_times(steps)} is larger than the patch {_times(patch)} along axis {axis}: "
                    "entries between the patches would not be restored"
                )
        return cls(array_shape, patch, steps)

    def corners(self) -> list[np.ndarray]:
        """First index of the patches along each axis; the last one ends at the array's edge."""
        result = []
        for large, small, step in zip(self.array_shape, self.patch_shape, self.stride):
            starts = np.arange(0, large - small + 1, step, dtype=np.int64)
            if starts[-1] != large - small:
                starts = np.append(starts, large - small)
            result.append(starts)
        return result

    @property
    def n_items(self) -> int:
        """Number of patches."""
        return math.prod(len(starts) for starts in self.corners())

    def origins(self) -> np.ndarray:
        """(N,) flat index of the first entry of each patch, in C order of the grid."""
        return self.origins_at(self.corners())

    def origins_at(self, corners: list[np.ndarray]) -> np.ndarray:
        """The same for patches that begin at other indices along each axis."""
        origin = np.zeros(1, dtype=np.int64)
        for starts, step in zip(corners, self.memory_steps()):
            origin = (origin[:, None] + starts[None, :] * step).ravel()
        return origin

    def offsets(self) -> np.ndarray:
        """(P,) flat distance of each entry of a patch from its first."""
        offset = np.zeros(1, dtype=np.int64)
        for size, step in zip(self.patch_shape, self.memory_steps()):
            offset = (offset[:, None] + np.arange(size, dtype=np.int64)[None, :] * step).ravel()
        return offset

    def regions(self, most: int) -> np.ndarray:
        """(N,) uint16 region of every patch, see `regions_at`."""
        return regions_at(self.corners(), most)

    def memory_steps(self) -> list[int]:
        """How far apart neighbours along each axis lie in the flat array."""
        return [math.prod(self.array_shape[axis + 1 :]) for axis in range(len(self.array_shape))]


def regions_at(corners: list[np.ndarray], most: int) -> np.ndarray:
    """(N,) uint16 region of patches at ``corners``: a coarse grid of at most ``most`` blocks of equal sides.

    Axes are halved, the longest block first, as long as there are not more blocks than ``most`` and every
    block has patches.
    """
    blocks = [1] * len(corners)
    while math.prod(blocks) * 2 <= most:
        sides = [
            (starts[-1] - starts[0] + 1) / count if len(starts) >= 2 * count else 0.0
            for starts, count in zip(corners, blocks)
        ]
        longest = int(np.argmax(sides))
        if sides[longest] == 0.0:
            break
        blocks[longest] *= 2
    region = np.zeros(1, np.int64)
    for starts, count in zip(corners, blocks):
        block = np.arange(len(starts)) * count // len(starts)
        region = (region[:, None] * count + block[None, :]).ravel()
    return region.astype(np.uint16)


def cut(values: np.ndarray, observed: np.ndarray | None, grid: Grid, regions: int = 1) -> Items:
    """The items of ``grid`` over a scaled array, in at most ``regions`` regions; ``observed`` None means that
    nothing is missing."""
    return cut_at(values, observed, grid, grid.corners(), regions)


def cut_at(
    values: np.ndarray, observed: np.ndarray | None, grid: Grid, corners: list[np.ndarray], regions: int = 1
) -> Items:
    """The same for patches that begin at other indices along each axis."""
    flat = np.ascontiguousarray(values).reshape(-1)
    mask = np.zeros(0, dtype=bool)
    if observed is not None and not observed.all():
        mask = np.ascontiguousarray(observed, dtype=bool).reshape(-1)
        flat = np.where(mask, flat, flat.dtype.type(0))
    region = regions_at(corners, regions)
    return Items(flat, mask, grid.origins_at(corners), grid.offsets(), grid.patch_shape, region)


def _whole_numbers(name: str, numbers: Sequence[int]) -> tuple[int, ...]:
    try:
        result = tuple(whole_number(name, number, 1) for number in numbers)
    except (TypeError, InputError):
        result = ()
    if not result:
        raise InputError(
            f"{name} must hold whole numbers of at least 1, such as (8, 8), not {shown(numbers)}"
        )
    return result


def _times(shape: Sequence[int]) -> str:
    return "x".join(str(size) for size in shape)
