"""Patches of images as rows of a matrix, and back: what makes a convolution a matrix product.

Images are (n, M_x, M_y C), channels last, so that a row of an atom is one contiguous run of m_y C numbers.
Row (n, x, y) of the columns is the part of image n under an atom at place (x, y), in the order of an atom.
"""

import math

import numpy as np

from kruskal.gibbs.conv_local import Layout
from kruskal.gibbs.conv_synthesis import gather_patches
from kruskal.kernel import kernel

_CACHE = 2**18
"""About so many numbers of columns are made at a time: they stay in the cache until they are multiplied."""


def columns_of(images: np.ndarray, layout: Layout) -> np.ndarray:
    """All patches (n * places, P)."""
    places, size = math.prod(layout.map_shape), math.prod(layout.atom_shape)
    columns = np.empty((len(images) * places, size), images.dtype)
    _gather(images, layout.numbers, columns)
    return columns


def images_of(columns: np.ndarray, layout: Layout) -> np.ndarray:
    """The adjoint: images (n, M_x, M_y C) in which every row of ``columns`` is added at its place."""
    rows, width, channels = layout.image_shape
    n_images = len(columns) // math.prod(layout.map_shape)
    images = np.zeros((n_images, rows, width * channels), columns.dtype)
    _scatter(columns, layout.numbers, images)
    return images


def correlate(images: np.ndarray, dictionary: np.ndarray, layout: Layout) -> np.ndarray:
    """D corr x (n, places, K), a few images at a time."""
    places, size = math.prod(layout.map_shape), dictionary.shape[1]
    maps = np.empty((len(images), places, len(dictionary)), images.dtype)
    step = max(1, _CACHE // (places * size))
    atoms = dictionary.T
    columns = np.empty((min(step, len(images)) * places, size), images.dtype)
    for first in range(0, len(images), step):
        part = images[first : first + step]
        used = columns[: len(part) * places]
        _gather(part, layout.numbers, used)
        np.matmul(used, atoms, out=maps[first : first + step].reshape(len(used), -1))
    return maps


@kernel
def _gather(images, layout, columns):
    _, _, _, rows, n_columns, _, _ = layout
    for n in range(images.shape[0]):
        gather_patches(images, n, 0, rows, layout, columns, n * rows * n_columns)


@kernel
def _scatter(columns, layout, images):
    m_x, run, n_channels, rows, n_columns, _, _ = layout
    line = np.uint64(0)
    for n in range(images.shape[0]):
        image = np.uint64(n)
        for x in range(rows):
            for y in range(n_columns):
                left = np.uint64(y * n_channels)
                for i in range(m_x):
                    row, first = np.uint64(x + i), np.uint64(i * run)
                    for j in range(run):
                        images[image, row, left + np.uint64(j)] += columns[line, first + np.uint64(j)]
                line += np.uint64(1)
