r"""The cells of the lowest layer given everything else: the unpooling of the generative model.

With h the residual without the block, v its value and D its atom, all cells alike before the data are seen,

    log P(g) = v l_g + const,   l_g = gamma_eps (D corr h)[g]                                            (6.6)

(the term -v^2 gamma_eps ||D||^2 / 2 is the same for all cells of complete images). Blocks are visited in
order, the atoms one after the other, and the residual follows.
"""

import math

import numpy as np

from kruskal.gibbs.conv_local import Layout
from kruskal.gibbs.conv_synthesis import subtract_atom
from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.philox import philox, uniform_52


def draw_unpooling(
    rests: np.ndarray,
    values: np.ndarray,
    places: np.ndarray,
    dictionary: np.ndarray,
    layout: Layout,
    noise_precision: float,
    items: np.ndarray,
    seed: int,
    number: int,
    stream: Stream = Stream.DEEP_UNPOOLING,
) -> None:
    """Draw ``places`` (n, blocks, K) anew; ``rests`` (n, M_x, M_y C), the residuals, follow. Both change.

    ``items`` (n,), ``number``, ``seed`` and ``stream`` address the randomness.
    """
    address = (np.uint64(number), np.uint64(int(stream)), *key_of(seed))
    _draw(rests, values, places, dictionary, layout.numbers, layout.grid, noise_precision, items, address)


@kernel
def _draw(rests, values, places, dictionary, layout, grid, noise_precision, items, address):
    _, _, _, rows, columns, p_x, p_y = layout
    number, stream, key_0, key_1 = address
    log_weights = np.empty(p_x * p_y)
    for n in range(rests.shape[0]):
        for i in range(grid[0]):
            for j in range(grid[1]):
                block = i * grid[1] + j
                height = min((i + 1) * p_x, rows) - i * p_x
                width = min((j + 1) * p_y, columns) - j * p_y
                corner = i * p_x * columns + j * p_y
                for k in range(values.shape[2]):
                    value = values[n, block, k]
                    subtract_atom(rests, n, places[n, block, k], k, -value, dictionary, layout)
                    largest = -np.inf
                    for cell in range(height * width):
                        at = corner + (cell // width) * columns + cell % width
                        fit = _fit(rests, n, at, k, dictionary, layout)
                        log_weights[cell] = noise_precision * value * fit
                        largest = max(largest, log_weights[cell])
                    word_0, word_1, _, _ = philox(
                        block * values.shape[2] + k, items[n], number, stream, key_0, key_1
                    )
                    cell = _pick(log_weights, largest, height * width, uniform_52(word_0, word_1))
                    at = corner + (cell // width) * columns + cell % width
                    places[n, block, k] = at
                    subtract_atom(rests, n, at, k, value, dictionary, layout)


@kernel
def _pick(log_weights, largest, n_cells, u):
    total = 0.0
    for cell in range(n_cells):
        log_weights[cell] = math.exp(log_weights[cell] - largest)
        total += log_weights[cell]
    left, chosen = u * total, 0
    for cell in range(n_cells):
        if log_weights[cell] > 0.0:
            chosen = cell
            if left < log_weights[cell]:
                break
            left -= log_weights[cell]
    return chosen


@kernel
def _fit(rests, n, at, k, dictionary, layout):
    """(D_k corr rests[n])[at]."""
    m_x, run, n_channels, _, columns, _, _ = layout
    image, atom = np.uint64(n), np.uint64(k)
    x, left = np.uint64(at // columns), np.uint64((at % columns) * n_channels)
    total = rests[image, x, left] * 0
    for i in range(m_x):
        row, first = x + np.uint64(i), np.uint64(i * run)
        for j in range(run):
            total += rests[image, row, left + np.uint64(j)] * dictionary[atom, first + np.uint64(j)]
    return total
