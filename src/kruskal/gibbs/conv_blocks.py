r"""One pooling block of one map: its cell and value, given how well the atom fits at each cell.

A block is off (g = 0) or has one non-zero s at one of its cells. With s integrated out,

    log weight(g) / weight(off) = log(theta_g / theta_0) + 1/2 log(gamma_s / (gamma_s + c_g)) + x_g^2 / 2
                                                                                                  (5.10)

where x_g = l_g / sqrt(gamma_s + c_g), and for non-negative slabs, s ~ N(0, 1/gamma_s) on s > 0, plus
log(2 Phi(x_g)). A map without pooling has blocks of one cell, and this is (1.13).

The uniform that decides whether a block is on is compared as in `kruskal.gibbs.pairs`: the sum over the cells
is at most its largest term with theta_g replaced by sum_g theta_g, and 2 Phi is at most 2.
"""

import math

import numpy as np

from kruskal.kernel import kernel
from kruskal.random import Stream
from kruskal.random.half_normal import log_half_mass, positive_normal
from kruskal.random.normal import normal_quantile
from kruskal.random.philox import philox, uniform_52

MAP_CODES = int(Stream.MAP_CODES)
_CELLS = int(Stream.MAP_CELLS)
_SLABS = int(Stream.MAP_SLABS)


def log_totals(log_odds: np.ndarray, nonnegative: bool) -> np.ndarray:
    """(K,) bound of what the cells of a block can add: log sum_g theta_g / theta_0, plus log 2 if cut off."""
    return np.logaddexp.reduce(log_odds, axis=1) + (math.log(2.0) if nonnegative else 0.0)


@kernel
def row_of_image(image_log_odds, image):
    """Where the log odds of an image are: all images have the same row if there is one only."""
    return image if image_log_odds.shape[0] > 1 else 0


@kernel
def is_visited(b, grid_x, grid_y, step):
    """Whether a sweep over every ``step``-th block along x and y, and over the last ones, visits block b."""
    x, y = b // grid_y, b % grid_y
    return (x % step[0] == 0 or x == grid_x - 1) and (y % step[1] == 0 or y == grid_y - 1)


@kernel
def copy_codes(atom, place, value, begin, end, new_atom, new_place, new_value, filled):
    """Copy the non-zeros begin <= c < end to ``filled`` and on; returns where they end there."""
    for c in range(begin, end):
        new_atom[filled], new_place[filled], new_value[filled] = atom[c], place[c], value[c]
        filled += 1
    return filled


@kernel
def same_atom(atom, begin, end):
    """Where the non-zeros from ``begin`` on that are of one and the same atom end."""
    stop = begin + 1
    while stop < end and atom[stop] == atom[begin]:
        stop += 1
    return stop


@kernel
def slab_gain(x, nonnegative):
    """x^2 / 2, plus log(2 Phi(x)) for non-negative slabs."""
    return log_half_mass(x) if nonnegative else 0.5 * x * x


@kernel
def log_sum(log_weights):
    """log sum exp of the weights of the cells; cells that do not exist have -inf."""
    largest = log_weights[0]
    for g in range(1, log_weights.shape[0]):
        largest = max(largest, log_weights[g])
    if log_weights.shape[0] == 1:
        return largest
    total = 0.0
    for g in range(log_weights.shape[0]):
        total += math.exp(log_weights[g] - largest)
    return largest + math.log(total)


@kernel
def draw_cell(log_weights, total, k, block, address):
    """A cell of a block that is on, with ``total`` from `log_sum`."""
    n_cells = log_weights.shape[0]
    if n_cells == 1:
        return 0
    key_0, key_1, sweep, _ = address
    word_0, word_1, _, _ = philox(k, block, sweep, _CELLS, key_0, key_1)
    left = uniform_52(word_0, word_1)
    chosen = 0
    for g in range(n_cells):
        share = math.exp(log_weights[g] - total)
        if share > 0.0:
            chosen = g
            if left < share:
                break
            left -= share
    return chosen


@kernel
def draw_value(x, deviation, nonnegative, used, block, address):
    """s ~ N(x deviation, deviation^2), cut off at 0 or not: the ``used``-th non-zero of the block's atoms."""
    key_0, key_1, sweep, _ = address
    word_0, word_1, _, _ = philox(used, block, sweep, _SLABS, key_0, key_1)
    u = uniform_52(word_0, word_1)
    if nonnegative:
        return deviation * positive_normal(x, u)
    return deviation * (x + normal_quantile(u))
