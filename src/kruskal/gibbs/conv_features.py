r"""What images look like to a dictionary, without sampling: correlations with its atoms, pooled by blocks.

    l_kn[p] = <D_k / |D_k|, x_n at p>,      v_kn[block] = l of largest size in the block, with its sign

For non-negative maps only the non-negative part of l counts, and v is its maximum. This is the first step of
inference in the model, given the atoms; it is not a posterior mean.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def correlate(images: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Valid correlation (n, rows, columns, K) of images (n, M_x, M_y, C) with atoms (K, m_x, m_y, C)."""
    windows = sliding_window_view(images, atoms.shape[1:3], axis=(1, 2))  # (n, rows, columns, C, m_x, m_y)
    n, rows, columns = windows.shape[:3]
    flat = atoms.transpose(3, 1, 2, 0).reshape(-1, len(atoms))
    return (windows.reshape(n * rows * columns, -1) @ flat).reshape(n, rows, columns, -1)


def pool_maps(maps: np.ndarray, pooling: tuple[int, int]) -> np.ndarray:
    """The entry of largest size of every block, with its sign; of equal ones the positive.

    ``maps`` (n, rows, columns, K) are cut into blocks of ``pooling``; the last ones may be partial.
    """
    if pooling == (1, 1):
        return maps
    high = maps[:, :: pooling[0], :: pooling[1]].copy()
    low = high.copy()
    for i in range(pooling[0]):
        for j in range(pooling[1]):
            part = maps[:, i :: pooling[0], j :: pooling[1]]
            here = np.s_[:, : part.shape[1], : part.shape[2]]
            np.maximum(high[here], part, out=high[here])
            np.minimum(low[here], part, out=low[here])
    return np.where(high >= -low, high, low)


def unit_atoms(atoms: np.ndarray) -> np.ndarray:
    """Atoms (K, m_x, m_y, C) of norm 1; an atom that is zero stays zero."""
    norms = np.sqrt((atoms**2).sum(axis=(1, 2, 3), keepdims=True))
    return atoms / np.where(norms > 0.0, norms, 1.0)


def bottom_up(
    images: np.ndarray, atoms: np.ndarray, pooling: tuple[int, int], nonnegative: bool
) -> np.ndarray:
    """Pooled correlations (n, blocks of rows, blocks of columns, K) of images with atoms of norm 1."""
    maps = correlate(images, atoms)
    return pool_maps(np.maximum(maps, 0.0, out=maps) if nonnegative else maps, pooling)


def project(atoms: np.ndarray, below: np.ndarray, pooling: tuple[int, int]) -> np.ndarray:
    """Atoms over the pooled maps of a layer as sums of that layer's atoms.

    Parameters
    ----------
    atoms : (K', a, b, K), of which every entry is put into the middle of its block
    below : (K, m_x, m_y, C), the atoms of the layer below;  pooling : (p_x, p_y) of its maps

    Returns
    -------
    (K', (a - 1) p_x + m_x, (b - 1) p_y + m_y, C)
    """
    n_atoms, rows, columns, _ = atoms.shape
    m_x, m_y, channels = below.shape[1:]
    size = ((rows - 1) * pooling[0] + m_x, (columns - 1) * pooling[1] + m_y)
    out = np.zeros((n_atoms, *size, channels))
    for i in range(rows):
        for j in range(columns):
            x, y = i * pooling[0], j * pooling[1]
            out[:, x : x + m_x, y : y + m_y] += np.tensordot(atoms[:, i, j], below, 1)
    return out
