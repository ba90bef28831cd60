"""Loops over a tile of places of complete images, for `kruskal.gibbs.conv_maps_complete`.

They take whole arrays and indices, never slices: a slice costs two atomic reference counts.
"""

import numpy as np

from kruskal.kernel import kernel


@kernel
def copy_image(images, n, rests, m):
    """rests[m] = images[n]."""
    source, target = np.uint64(n), np.uint64(m)
    for i in range(images.shape[1]):
        for j in range(images.shape[2]):
            rests[target, i, j] = images[source, i, j]


@kernel
def sum_squares(rests, m):
    """Sum of the squares of image m, in double precision."""
    image = np.uint64(m)
    total = 0.0
    for i in range(rests.shape[1]):
        for j in range(rests.shape[2]):
            total += float(rests[image, i, j]) * float(rests[image, i, j])
    return total


@kernel
def inside(place, n_columns, upper, left, height, width):
    """Whether a place lies in a block."""
    x, y = place // n_columns, place % n_columns
    return upper <= x < upper + height and left <= y < left + width


@kernel
def set_merits(correlations, corner, n_columns, height, width, nonnegative, bar, merit):
    """merit[k] = largest V_k^2 over the cells of the block (V_k > 0 only, if cut off), less the bar."""
    nothing = correlations.dtype.type(0)
    for k in range(bar.shape[0]):
        merit[k] = nothing
    for i in range(height):
        for j in range(width):
            at = np.uint64(corner + i * n_columns + j)
            if nonnegative:
                for k in range(bar.shape[0]):
                    value = max(correlations[at, k], nothing)
                    merit[k] = max(merit[k], np.float32(value * value))
            else:
                for k in range(bar.shape[0]):
                    value = correlations[at, k]
                    merit[k] = max(merit[k], np.float32(value * value))
    for k in range(bar.shape[0]):
        merit[k] -= bar[k]


@kernel
def propagate(correlations, table, k, amount, at_x, at_y, base, top, bottom, upper, left, layout):
    """Take ``amount`` times the correlations with atom k at (at_x, at_y) off the rest of a tile."""
    m_x, run, n_channels, _, n_columns, p_x, _ = layout
    m_y = run // n_channels
    reach = (table.shape[2] - 1) // 2
    n_padded = np.uint64(correlations.shape[1])
    atom = np.uint64(k)
    values, lags = correlations.reshape(-1), table.reshape(-1)
    plane, line = np.uint64(table.shape[1] * table.shape[2]), np.uint64(table.shape[2])
    for x in range(max(upper, at_x - m_x + 1), min(bottom, at_x + m_x)):
        first = max(left if x < upper + p_x else 0, at_y - m_y + 1)
        length = (min(n_columns, at_y + m_y) - first) * correlations.shape[1]
        to = np.uint64(base + (x - top) * n_columns + first) * n_padded
        lag_x, lag_y = np.uint64(x - at_x + p_x - 1), np.uint64(first - at_y + reach)
        lag = (atom * plane + lag_x * line + lag_y) * n_padded
        for i in range(length):
            values[to + np.uint64(i)] -= amount * lags[lag + np.uint64(i)]
