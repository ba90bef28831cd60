r"""Pooling blocks: which cell of each is used, and the three products of a layer with one cell per block.

A map is cut into blocks of p_x x p_y cells, partial ones at the border. In the generative model a block has
its value at one cell; going upwards the cell is the one where the atom fits best, or is drawn with

    P(g) ~ exp(tau l_g^2 / 2) for l_g > 0,  1 otherwise                                                 (6.15)

the weight (5.10) of a cell with a non-negative slab but for the mass of its tail. Given the cells
(``places``: position x * (map columns) + y of the cell in its map), a layer is bilinear in values v and
atoms D:

    <place(v, D), h> = <v, correlate_at(h, D)> = <D, accumulate(v, h)>
"""

import math

import numpy as np

from kruskal.gibbs.conv_local import Layout
from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.philox import philox, uniform_32

_NEGLIGIBLE = 17.0
"""Cells whose log weight is so far below the largest are never drawn: 4e-8 of its weight."""


def largest_cells(maps: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """The places and values (n, blocks, K) of the largest cells of maps (n, places, K)."""
    shape = (len(maps), layout.n_blocks, maps.shape[2])
    places, values = np.empty(shape, np.int32), np.empty(shape, maps.dtype)
    _largest(maps, layout.numbers, layout.grid, places, values)
    return places, values


def drawn_cells(
    maps: np.ndarray,
    layout: Layout,
    sharpness: float,
    items: np.ndarray,
    seed: int,
    stream: Stream,
    layer: int,
    number: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Places and values of cells drawn by (6.15) with tau = ``sharpness``.

    ``items`` (n,) are the indices of the images and ``number`` that of the step or chain; with seed, stream
    and layer they address the randomness.
    """
    shape = (len(maps), layout.n_blocks, maps.shape[2])
    places, values = np.empty(shape, np.int32), np.empty(shape, maps.dtype)
    address = (np.uint64(layer << 28), np.uint64(number), np.uint64(int(stream)), *key_of(seed))
    _draw(maps, layout.numbers, layout.grid, 0.5 * sharpness, items, address, places, values)
    return places, values


def place(values: np.ndarray, places: np.ndarray, dictionary: np.ndarray, layout: Layout) -> np.ndarray:
    """Images (n, M_x, M_y C): every value times its atom, at its place."""
    rows, width, channels = layout.image_shape
    images = np.zeros((len(values), rows, width * channels), values.dtype)
    _place(values, places, dictionary, layout.numbers, images)
    return images


def correlate_at(
    images: np.ndarray, places: np.ndarray, dictionary: np.ndarray, layout: Layout
) -> np.ndarray:
    """D corr x at the places, (n, blocks, K)."""
    values = np.empty(places.shape, images.dtype)
    _correlate(images, places, dictionary, layout.numbers, values)
    return values


def accumulate(values: np.ndarray, places: np.ndarray, images: np.ndarray, layout: Layout) -> np.ndarray:
    """(K, P): the sum over images and blocks of the value times the patch at its place."""
    total = np.zeros((values.shape[2], math.prod(layout.atom_shape)), values.dtype)
    _accumulate(values, places, images, layout.numbers, total)
    return total


@kernel
def _largest(maps, layout, grid, places, values):
    _, _, _, rows, columns, p_x, p_y = layout
    n_atoms = maps.shape[2]
    for n in range(maps.shape[0]):
        image, block = np.uint64(n), np.uint64(0)
        for i in range(grid[0]):
            for j in range(grid[1]):
                for x in range(i * p_x, min((i + 1) * p_x, rows)):
                    for y in range(j * p_y, min((j + 1) * p_y, columns)):
                        at = np.uint64(x * columns + y)
                        first = x == i * p_x and y == j * p_y
                        for k in range(n_atoms):
                            atom = np.uint64(k)
                            value = maps[image, at, atom]
                            better = first or value > values[image, block, atom]
                            values[image, block, atom] = value if better else values[image, block, atom]
                            places[image, block, atom] = at if better else places[image, block, atom]
                block += np.uint64(1)


@kernel
def _draw(maps, layout, grid, half_sharpness, items, address, places, values):
    _, _, _, rows, columns, p_x, p_y = layout
    base, number, stream, key_0, key_1 = address
    n_atoms = maps.shape[2]
    fits, tops = np.empty((p_x * p_y, n_atoms), maps.dtype), np.empty(n_atoms, maps.dtype)
    weights = np.empty(p_x * p_y)
    for n in range(maps.shape[0]):
        block = 0
        for i in range(grid[0]):
            for j in range(grid[1]):
                height = min((i + 1) * p_x, rows) - i * p_x
                width = min((j + 1) * p_y, columns) - j * p_y
                corner = i * p_x * columns + j * p_y
                _fit(maps, n, corner, height, width, columns, half_sharpness, fits, tops)
                for k in range(n_atoms):
                    if k % 4 == 0:
                        counter = base + np.uint64(block * n_atoms + k)
                        words = philox(counter, items[n], number, stream, key_0, key_1)
                    cell = _draw_one(fits, tops[k], k, height * width, uniform_32(words[k % 4]), weights)
                    at = corner + (cell // width) * columns + cell % width
                    places[n, block, k] = at
                    values[n, block, k] = maps[n, at, k]
                block += 1


@kernel
def _fit(maps, n, corner, height, width, columns, half_sharpness, fits, tops):
    """Log weights (cells, K) of the cells of one block, and the largest (K,) of each atom."""
    image, factor = np.uint64(n), maps.dtype.type(half_sharpness)
    zero = maps.dtype.type(0)
    for k in range(tops.shape[0]):
        tops[k] = zero
    for cell in range(height * width):
        at = np.uint64(corner + (cell // width) * columns + cell % width)
        line = np.uint64(cell)
        for k in range(tops.shape[0]):
            atom = np.uint64(k)
            positive = max(maps[image, at, atom], zero)
            fits[line, atom] = factor * positive * positive
            tops[atom] = max(tops[atom], fits[line, atom])


@kernel
def _draw_one(fits, top, k, n_cells, u, weights):
    """The cell of one block and atom, as row * width + column."""
    if top == 0.0:
        return int(u * n_cells)
    total = 0.0
    for cell in range(n_cells):
        below = top - fits[cell, k]
        weights[cell] = math.exp(-below) if below < _NEGLIGIBLE else 0.0
        total += weights[cell]
    left, chosen = u * total, 0
    for cell in range(n_cells):
        if weights[cell] > 0.0:
            chosen = cell
            if left < weights[cell]:
                break
            left -= weights[cell]
    return chosen


@kernel
def _place(values, places, dictionary, layout, images):
    m_x, run, n_channels, _, columns, _, _ = layout
    for n in range(values.shape[0]):
        image = np.uint64(n)
        for k in range(values.shape[2]):
            atom = np.uint64(k)
            for b in range(values.shape[1]):
                value = values[image, np.uint64(b), atom]
                if value != 0.0:
                    at = places[image, np.uint64(b), atom]
                    x, left = np.uint64(at // columns), np.uint64((at % columns) * n_channels)
                    for i in range(m_x):
                        row, first = x + np.uint64(i), np.uint64(i * run)
                        for j in range(run):
                            images[image, row, left + np.uint64(j)] += (
                                value * dictionary[atom, first + np.uint64(j)]
                            )


@kernel
def _correlate(images, places, dictionary, layout, values):
    m_x, run, n_channels, _, columns, _, _ = layout
    for n in range(values.shape[0]):
        image = np.uint64(n)
        for k in range(values.shape[2]):
            atom = np.uint64(k)
            for b in range(values.shape[1]):
                at = places[image, np.uint64(b), atom]
                x, left = np.uint64(at // columns), np.uint64((at % columns) * n_channels)
                total = images[image, x, left] * 0
                for i in range(m_x):
                    row, first = x + np.uint64(i), np.uint64(i * run)
                    for j in range(run):
                        total += (
                            images[image, row, left + np.uint64(j)] * dictionary[atom, first + np.uint64(j)]
                        )
                values[image, np.uint64(b), atom] = total


@kernel
def _accumulate(values, places, images, layout, total):
    m_x, run, n_channels, _, columns, _, _ = layout
    for n in range(values.shape[0]):
        image = np.uint64(n)
        for k in range(values.shape[2]):
            atom = np.uint64(k)
            for b in range(values.shape[1]):
                value = values[image, np.uint64(b), atom]
                if value != 0.0:
                    at = places[image, np.uint64(b), atom]
                    x, left = np.uint64(at // columns), np.uint64((at % columns) * n_channels)
                    for i in range(m_x):
                        row, first = x + np.uint64(i), np.uint64(i * run)
                        for j in range(run):
                            total[atom, first + np.uint64(j)] += (
                                value * images[image, row, left + np.uint64(j)]
                            )
