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
from kruskal.random.philox import philox

_BITS_PER_NAT = 1.0 / math.log(2.0)
_LEAST_POWER = -100.0
"""Weights are powers of two relative to the largest; below 2^-100 they might as well be that."""


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
    """All steps run over the atoms of one block side by side, which the compiler turns into vectors."""
    _, _, _, rows, columns, p_x, p_y = layout
    n_atoms = maps.shape[2]
    weights, totals = np.empty((p_x * p_y, n_atoms), np.float32), np.empty(n_atoms, np.float32)
    uniforms, chosen = np.empty(n_atoms + 3, np.float32), np.empty(n_atoms, np.int32)
    for n in range(maps.shape[0]):
        for i in range(grid[0]):
            for j in range(grid[1]):
                height = min((i + 1) * p_x, rows) - i * p_x
                width = min((j + 1) * p_y, columns) - j * p_y
                corner, block = i * p_x * columns + j * p_y, i * grid[1] + j
                _weigh(maps, n, corner, height, width, columns, half_sharpness, weights, totals)
                _fill_uniforms(uniforms, block * n_atoms, items[n], address)
                _choose(weights, totals, uniforms, height * width, chosen)
                for k in range(n_atoms):
                    at = corner + (chosen[k] // width) * columns + chosen[k] % width
                    places[n, block, k] = at
                    values[n, block, k] = maps[n, at, k]


@kernel
def _weigh(maps, n, corner, height, width, columns, half_sharpness, weights, totals):
    """Weights (cells, K) of the cells of one block, relative to the largest, and their sums (K,)."""
    image, n_atoms = np.uint64(n), totals.shape[0]
    factor, zero = np.float32(half_sharpness * _BITS_PER_NAT), np.float32(0.0)
    tops, fraction = np.zeros(n_atoms, np.float32), np.empty(n_atoms, np.float32)
    bits = np.empty(n_atoms, np.int32)
    power = bits.view(np.float32)
    for cell in range(height * width):
        at, line = np.uint64(corner + (cell // width) * columns + cell % width), np.uint64(cell)
        for k in range(n_atoms):
            positive = max(np.float32(maps[image, at, np.uint64(k)]), zero)
            weights[line, np.uint64(k)] = factor * positive * positive
            tops[np.uint64(k)] = max(tops[np.uint64(k)], weights[line, np.uint64(k)])
    totals[:] = zero
    for cell in range(height * width):
        line = np.uint64(cell)
        for k in range(n_atoms):  # 2^t: the whole part of t goes into the exponent of a float
            t = max(weights[line, np.uint64(k)] - tops[np.uint64(k)], np.float32(_LEAST_POWER))
            whole = np.floor(t + np.float32(0.5))
            fraction[np.uint64(k)] = t - whole
            bits[np.uint64(k)] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        for k in range(n_atoms):
            weight = _power_of_two(fraction[np.uint64(k)]) * power[np.uint64(k)]
            weights[line, np.uint64(k)] = weight
            totals[np.uint64(k)] += weight


@kernel
def _power_of_two(x):
    """2^x for |x| <= 1/2 in single precision: the first seven terms of its series."""
    one = np.float32(1.0)
    y = x * np.float32(0.6931471805599453)
    value = one + y * np.float32(1 / 6)
    value = one + y * np.float32(1 / 5) * value
    value = one + y * np.float32(1 / 4) * value
    value = one + y * np.float32(1 / 3) * value
    value = one + y * np.float32(1 / 2) * value
    return one + y * value


@kernel
def _fill_uniforms(uniforms, first, item, address):
    """Uniforms in (0, 1) of 24 bits for the atoms of a block, four from each counter."""
    base, number, stream, key_0, key_1 = address
    scale = np.float32(2.0**-24)
    for k in range(0, uniforms.shape[0] - 3, 4):
        words = philox(base + np.uint64(first + k), item, number, stream, key_0, key_1)
        for q in range(4):
            uniforms[k + q] = (np.float32(words[q] >> np.uint64(8)) + np.float32(0.5)) * scale


@kernel
def _choose(weights, totals, uniforms, n_cells, chosen):
    """The cell (K,) where the running sum of the weights passes a uniform share of their total."""
    n_atoms = totals.shape[0]
    for k in range(n_atoms):
        chosen[np.uint64(k)] = 0
        uniforms[np.uint64(k)] *= totals[np.uint64(k)]
    for cell in range(n_cells - 1):
        line = np.uint64(cell)
        for k in range(n_atoms):
            uniforms[np.uint64(k)] -= weights[line, np.uint64(k)]
            chosen[np.uint64(k)] += np.int32(uniforms[np.uint64(k)] >= np.float32(0.0))


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
