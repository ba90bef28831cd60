r"""Atoms as functions of what is learned: free ones, and Kruskal tensors with their chain rule.

A Kruskal dictionary is held as in `kruskal.tensor`: ``weights`` lambda (K, R) and ``factors``
(K, m_x + m_y + C, R) with the modes stacked, D_k = c sum_r lambda_kr u_r^x o u_r^y o u_r^c. The constant c
sets the scale once.
"""

from collections.abc import Sequence

import numpy as np


def compose_kruskal(weights: np.ndarray, factors: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """D (K, P), by one product of matrices per atom."""
    plane, channel = _halves(weights, factors, shape)
    return (plane @ channel.transpose(0, 2, 1)).reshape(len(weights), -1)


def kruskal_gradient(
    weights: np.ndarray, factors: np.ndarray, shape: Sequence[int], slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The slopes in weights and factors of an objective with ``slope`` (K, P) in the atoms (6.9)."""
    n_atoms, rank = weights.shape
    m_x, m_y, _ = shape
    x, y, c = _modes(factors, shape)
    plane, channel = _halves(weights, factors, shape)
    slope = slope.reshape(n_atoms, m_x * m_y, -1)
    of_plane = (slope @ channel).reshape(n_atoms, m_x, m_y, rank)
    of_channel = slope.transpose(0, 2, 1) @ plane
    of_factors = np.concatenate(
        [
            np.einsum("kijr,kjr->kir", of_plane, y),
            np.einsum("kijr,kir->kjr", of_plane, x),
            of_channel * weights[:, None, :],
        ],
        axis=1,
    )
    return np.einsum("kcr,kcr->kr", of_channel, c), of_factors


def _modes(factors: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m_x, m_y, _ = shape
    return factors[:, :m_x], factors[:, m_x : m_x + m_y], factors[:, m_x + m_y :]


def _halves(weights: np.ndarray, factors: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """u^x o u^y (K, m_x m_y, R) and lambda u^c (K, C, R)."""
    x, y, c = _modes(factors, shape)
    plane = (x[:, :, None, :] * y[:, None, :, :]).reshape(len(weights), -1, weights.shape[1])
    return plane, c * weights[:, None, :]
