"""Synthesis: what the maps of an image add up to, and its adjoint, for single images.

    (D * W)[a, c] = sum_k sum_p W_k[p] D_k[a - p, c],      (D corr H)_k[p] = sum_j sum_c D_k[j, c] H[p + j, c]

Images are rows of M_y C numbers, channels last, so that a row of an atom is contiguous in both.
"""

import numpy as np

from kruskal.gibbs.conv_local import ImageShard, Layout
from kruskal.kernel import kernel


def synthesise(shard: ImageShard, dictionary: np.ndarray, layout: Layout) -> np.ndarray:
    """D * W of every image of a shard, (n, M_x, M_y C); ``dictionary`` (K, P)."""
    out = np.zeros_like(shard.values)
    _subtract_all(out, *shard.maps, -dictionary.astype(shard.values.dtype), layout.numbers)
    return out


@kernel
def _subtract_all(rests, start, atom, place, value, dictionary, layout):
    for n in range(rests.shape[0]):
        subtract_maps(rests, n, start[n], start[n + 1], atom, place, value, dictionary, layout)


@kernel
def subtract_maps(rests, n, begin, end, atom, place, value, dictionary, layout):
    """rests[n] -= D * W for the non-zeros begin <= i < end."""
    for i in range(begin, end):
        subtract_atom(rests, n, place[i], atom[i], value[i], dictionary, layout)


@kernel
def subtract_atom(rests, n, place, k, amount, dictionary, layout):
    """rests[n] -= ``amount`` times atom k at ``place``."""
    m_x, run, n_channels, _, columns, _, _ = layout
    image, atom = np.uint64(n), np.uint64(k)
    x, y = np.uint64(place // columns), np.uint64((place % columns) * n_channels)
    for i in range(m_x):
        row, first = x + np.uint64(i), np.uint64(i * run)
        for j in range(run):
            rests[image, row, y + np.uint64(j)] -= amount * dictionary[atom, first + np.uint64(j)]


@kernel
def gather_patches(rests, n, first_row, last_row, layout, patches, at):
    """Rows at, at + 1, .. of ``patches``: the image under the atom, for all places of these map rows."""
    m_x, run, n_channels, _, columns, _, _ = layout
    image = np.uint64(n)
    line = np.uint64(at)
    for x in range(first_row, last_row):
        for y in range(columns):
            left = np.uint64(y * n_channels)
            for i in range(m_x):
                row, first = np.uint64(x + i), np.uint64(i * run)
                for j in range(run):
                    patches[line, first + np.uint64(j)] = rests[image, row, left + np.uint64(j)]
            line += np.uint64(1)
