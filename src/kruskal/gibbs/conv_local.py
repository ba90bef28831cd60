"""Local state of the convolutional models: the images of one shard and their sparse maps.

An image is an item. Its maps W_k, one per atom, have a place for every position of the atom inside the image
and are cut into pooling blocks with at most one non-zero each (1x1 without pooling). The sampler visits the
blocks of an image row by row, and the atoms within a block; that is also the order in which non-zeros are
kept. Shards depend on the number of images only, never on the number of threads.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

_MOST_SHARDS = 16


class Layout(NamedTuple):
    """Sizes that follow from the images, the atoms and the pooling.

    Attributes
    ----------
    image_shape : (M_x, M_y, C);  atom_size : (m_x, m_y);  pooling : (p_x, p_y), one block of a map
    """

    image_shape: tuple[int, int, int]
    atom_size: tuple[int, int]
    pooling: tuple[int, int]

    @property
    def atom_shape(self) -> tuple[int, int, int]:
        """(m_x, m_y, C)."""
        return (*self.atom_size, self.image_shape[2])

    @property
    def map_shape(self) -> tuple[int, int]:
        """(M_x - m_x + 1, M_y - m_y + 1)."""
        return (
            self.image_shape[0] - self.atom_size[0] + 1,
            self.image_shape[1] - self.atom_size[1] + 1,
        )

    @property
    def grid(self) -> tuple[int, int]:
        """Number of blocks along x and y; the last ones may be partial."""
        return -(-self.map_shape[0] // self.pooling[0]), -(-self.map_shape[1] // self.pooling[1])

    @property
    def n_blocks(self) -> int:
        """Number of blocks of one map."""
        return math.prod(self.grid)

    @property
    def n_cells(self) -> int:
        """Number of cells of a whole block."""
        return math.prod(self.pooling)

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the kernels take: m_x, m_y C, C, map rows, map columns, p_x, p_y."""
        channels = self.image_shape[2]
        return (self.atom_size[0], self.atom_size[1] * channels, channels, *self.map_shape, *self.pooling)


class Maps(NamedTuple):
    """The non-zero W_kn[p] of consecutive images, image by image, block by block, atoms in increasing order.

    Attributes
    ----------
    start : (n + 1,) int64, where the non-zeros of each image begin
    atom : (nnz,) uint16
    place : (nnz,) uint32, position x * (map columns) + y
    value : (nnz,) float of the data's precision
    """

    start: np.ndarray
    atom: np.ndarray
    place: np.ndarray
    value: np.ndarray

    @classmethod
    def empty(cls, n_images: int, dtype: np.dtype) -> "Maps":
        """Nothing is used anywhere."""
        return cls(
            np.zeros(n_images + 1, np.int64), np.zeros(0, np.uint16), np.zeros(0, np.uint32),
            np.zeros(0, dtype),
        )  # fmt: skip


@dataclass
class ImageShard:
    """Consecutive images with their maps.

    Attributes
    ----------
    first : index of the first image among all; random numbers are addressed by it
    values : (n, M_x, M_y C), zero where missing
    observed : the same shape, bool, or (0, 0, 0) when nothing is missing
    maps : current maps; replaced by a sweep, never changed
    """

    first: int
    values: np.ndarray
    observed: np.ndarray
    maps: Maps

    @property
    def n_images(self) -> int:
        """Number of images of this shard."""
        return len(self.values)

    @property
    def complete(self) -> bool:
        """True when no entry is missing."""
        return self.observed.size == 0

    @property
    def n_observed(self) -> int:
        """Number of observed entries."""
        return self.values.size if self.complete else int(np.count_nonzero(self.observed))


def split_images(values: np.ndarray, observed: np.ndarray | None) -> list[ImageShard]:
    """Cut images (N, M_x, M_y, C) into shards with empty maps; a function of the number of images alone.

    ``observed`` of the same shape, or None; where it is False the values become zero.
    """
    n_images, rows = values.shape[:2]
    values = np.ascontiguousarray(values).reshape(n_images, rows, -1)
    mask = np.zeros((0, 0, 0), bool)
    if observed is not None and not observed.all():
        mask = np.ascontiguousarray(observed).reshape(values.shape)
        values = np.where(mask, values, values.dtype.type(0))
    bounds = np.linspace(0, n_images, min(_MOST_SHARDS, n_images) + 1).astype(np.int64)
    return [
        ImageShard(
            int(first), values[first:stop], mask[first:stop] if mask.size else mask,
            Maps.empty(int(stop - first), values.dtype),
        )
        for first, stop in pairwise(bounds)
    ]  # fmt: skip


def dense_maps(maps: Maps, n_atoms: int, map_shape: tuple[int, int]) -> np.ndarray:
    """W of all images of a shard, (n, K, map rows, map columns)."""
    n_images = len(maps.start) - 1
    out = np.zeros((n_images, n_atoms, math.prod(map_shape)), maps.value.dtype)
    image = np.repeat(np.arange(n_images), np.diff(maps.start))
    out[image, maps.atom, maps.place] = maps.value
    return out.reshape(n_images, n_atoms, *map_shape)


def in_order(maps: Maps, layout: Layout) -> Maps:
    """The same maps in the order of another pooling; non-zeros of one atom in one block by their place."""
    x, y = np.divmod(maps.place.astype(np.int64), layout.map_shape[1])
    block = (x // layout.pooling[0]) * layout.grid[1] + y // layout.pooling[1]
    image = np.repeat(np.arange(len(maps.start) - 1), np.diff(maps.start))
    order = np.lexsort((maps.place, maps.atom, block, image))
    return Maps(maps.start, maps.atom[order], maps.place[order], maps.value[order])


def sparse_maps(dense: np.ndarray, layout: Layout) -> Maps:
    """The non-zeros of W (n, K, map rows, map columns) in the order of the sampler."""
    image, atom, x, y = np.nonzero(dense)
    start = np.concatenate([[0], np.cumsum(np.bincount(image, minlength=len(dense)))]).astype(np.int64)
    place = (x * layout.map_shape[1] + y).astype(np.uint32)
    return in_order(Maps(start, atom.astype(np.uint16), place, dense[image, atom, x, y]), layout)
