r"""What the atoms of convolutional models need to know of the images, summed over the images of a shard.

As a function of atom k the log likelihood is -1/2 d^T Q_k d + p_k^T d, and with the residual h = x - D * W

    complete:  Q_k[(j, c), (j', c)] = gamma_eps r_kk[j - j'],  r_kk'[lag] = sum_n sum_p W_kn[p] W_k'n[p + lag]
    masked:    Q_k[(j, c), (j', c)] = gamma_eps sum_n sum_p W_kn[p] W_kn[p + j - j'] omega_n[p + j, c]
    both:      p_k = gamma_eps sum_n W_kn corr (omega h_n) + Q_k d_k                               (5.6)

Q_k is block-Toeplitz for complete data: atoms at neighbouring places overlap. Complete data are taken in
blocks of atoms: with r_kk' for all pairs of a block, its atoms can be drawn in order from one visit, and
one block holds all atoms if they are few enough. Masked data have one visit per atom. A visit makes the
residuals that it needs from the maps and the atoms as they are then, so nothing has to be kept up to date.
All statistics here are free of gamma_eps.
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.conv_local import ImageShard, Layout
from kruskal.gibbs.conv_synthesis import subtract_maps
from kruskal.kernel import kernel

_LARGEST = 2**22
"""Numbers that the pairs of a block of atoms may take, all shards together."""


class LagStatistics(NamedTuple):
    """Sums over complete images for the atoms first <= k < first + b.

    Attributes
    ----------
    pairs : (b, b, lags along x, lags along y) r_kk' for k >= k', lag 0 in the middle
    correlations : (b, P) sum_n W_k corr h_n
    """

    pairs: np.ndarray
    correlations: np.ndarray


class MaskedStatistics(NamedTuple):
    """Sums over masked images for one atom: ``products`` (C, m_x m_y, m_x m_y) Q without gamma_eps and
    ``correlations`` (P,) sum_n W_k corr (omega h_n)."""

    products: np.ndarray
    correlations: np.ndarray


def lag_reach(layout: Layout) -> tuple[int, int]:
    """The largest lags along x and y at which two places of an atom overlap."""
    (m_x, m_y), (rows, columns) = layout.atom_size, layout.map_shape
    return min(m_x, rows) - 1, min(m_y, columns) - 1


def lag_block_size(layout: Layout, n_atoms: int, n_shards: int) -> int:
    """Atoms per block: all if the numbers of their pairs are few enough."""
    reach = lag_reach(layout)
    lags = (2 * reach[0] + 1) * (2 * reach[1] + 1)
    return max(1, min(n_atoms, math.isqrt(_LARGEST // (lags * n_shards))))


def lag_statistics(
    shard: ImageShard, found: LagStatistics | None = None, *, dictionary: np.ndarray, layout: Layout,
    first: int, size: int,
) -> LagStatistics:  # fmt: skip
    """Statistics of a block of atoms of one complete shard, added to what was ``found`` in others.

    ``dictionary`` (K, P) as it is now.
    """
    reach = lag_reach(layout)
    result = found or LagStatistics(
        np.zeros((size, size, 2 * reach[0] + 1, 2 * reach[1] + 1)), np.zeros((size, dictionary.shape[1]))
    )
    atoms = np.ascontiguousarray(dictionary, shard.values.dtype)
    _lags(shard.values, *shard.maps, atoms, layout.numbers, first, *result)
    return result


def masked_statistics(
    shard: ImageShard, dictionary: np.ndarray, layout: Layout, atom: int
) -> MaskedStatistics:
    """Statistics of one atom of one masked shard; ``dictionary`` (K, P) as it is now."""
    size = math.prod(layout.atom_size)
    result = MaskedStatistics(np.zeros((layout.image_shape[2], size, size)), np.zeros(dictionary.shape[1]))
    atoms = np.ascontiguousarray(dictionary, shard.values.dtype)
    _masked(shard.values, shard.observed, *shard.maps, atoms, layout.numbers, atom, *result)
    return result


@kernel
def _lags(images, start, atom, place, value, dictionary, layout, first, pairs, correlations):
    m_x, run, n_channels, _, n_columns, p_x, _ = layout
    m_y = run // n_channels
    size = pairs.shape[0]
    reach_x, reach_y = pairs.shape[2] // 2, pairs.shape[3] // 2
    rest = np.empty((1, images.shape[1], images.shape[2]), images.dtype)
    most = 0
    for n in range(images.shape[0]):
        most = max(most, start[n + 1] - start[n])
    member, w = np.empty(most, np.int64), np.empty(most)
    x, y = np.empty(most, np.int64), np.empty(most, np.int64)
    for n in range(images.shape[0]):
        begin, end = start[n], start[n + 1]
        count = 0
        for i in range(begin, end):
            k = np.int64(atom[i]) - first
            if 0 <= k < size:
                member[count], w[count] = k, value[i]
                x[count], y[count] = place[i] // n_columns, place[i] % n_columns
                count += 1
        if count == 0:
            continue
        rest[0] = images[n]
        subtract_maps(rest, 0, begin, end, atom, place, value, dictionary, layout)
        for i in range(count):
            _add_patch(rest, x[i], y[i] * n_channels, w[i], m_x, run, correlations, member[i])
            beyond = x[i] + m_x + p_x - 1  # places are in order of block rows, and unordered within
            for j in range(i, count):
                if x[j] >= beyond:
                    break
                across, down = y[j] - y[i], x[j] - x[i]
                if abs(across) < m_y and abs(down) < m_x:
                    both = w[i] * w[j]
                    if member[i] > member[j] or i == j:
                        pairs[member[i], member[j], reach_x + down, reach_y + across] += both
                    elif member[i] < member[j]:
                        pairs[member[j], member[i], reach_x - down, reach_y - across] += both
                    else:
                        pairs[member[i], member[i], reach_x + down, reach_y + across] += both
                        pairs[member[i], member[i], reach_x - down, reach_y - across] += both


@kernel
def _add_patch(rest, row, left, amount, m_x, run, out, k):
    """out[k] += ``amount`` times the image under the atom at (row, left)."""
    target, first_row, first = np.uint64(k), np.uint64(row), np.uint64(left)
    for i in range(m_x):
        here, at = first_row + np.uint64(i), np.uint64(i * run)
        for j in range(run):
            out[target, at + np.uint64(j)] += amount * rest[0, here, first + np.uint64(j)]


@kernel
def _masked(images, observed, start, atom, place, value, dictionary, layout, k, products, correlations):
    m_x, run, n_channels, _, n_columns, _, _ = layout
    m_y = run // n_channels
    rest = np.empty((1, images.shape[1], images.shape[2]), images.dtype)
    for n in range(images.shape[0]):
        begin, end = start[n], start[n + 1]
        users = np.empty(end - begin, np.int64)
        rows, columns = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
        count = 0
        for i in range(begin, end):
            users[count] = i
            rows[count], columns[count] = place[i] // n_columns, place[i] % n_columns
            count += atom[i] == k
        if count == 0:
            continue
        rest[0] = images[n]
        subtract_maps(rest, 0, begin, end, atom, place, value, dictionary, layout)
        seen = observed[n]
        for a in range(count):
            w, x, y = float(value[users[a]]), rows[a], columns[a]
            for i in range(m_x):
                for j in range(run):
                    if seen[x + i, y * n_channels + j]:
                        correlations[i * run + j] += w * rest[0, x + i, y * n_channels + j]
            for b in range(count):
                down, across = rows[b] - x, columns[b] - y
                if abs(down) >= m_x or abs(across) >= m_y:
                    continue
                both = w * float(value[users[b]])
                for i in range(max(0, down), min(m_x, m_x + down)):
                    for j in range(max(0, across), min(m_y, m_y + across)):
                        here, there = i * m_y + j, (i - down) * m_y + j - across
                        for ch in range(n_channels):
                            if seen[x + i, (y + j) * n_channels + ch]:
                                products[ch, here, there] += both


@kernel
def add_convolved(lags, sign, atom, shape, out):
    """out[j] += sum_lag r[sign lag] atom[j - lag]."""
    m_x, m_y, n_channels = shape
    reach_x, reach_y = lags.shape[0] // 2, lags.shape[1] // 2
    for i in range(m_x):
        for down in range(max(-reach_x, i - m_x + 1), min(reach_x, i) + 1):
            for j in range(m_y):
                for across in range(max(-reach_y, j - m_y + 1), min(reach_y, j) + 1):
                    r = lags[reach_x + sign * down, reach_y + sign * across]
                    to, of = (i * m_y + j) * n_channels, ((i - down) * m_y + j - across) * n_channels
                    for c in range(n_channels):
                        out[to + c] += r * atom[of + c]
