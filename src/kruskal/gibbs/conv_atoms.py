r"""Atoms of convolutional models: D_k given the statistics of the images, Gaussian (CFA) or Kruskal (CKFA).

With Q_k and p_k of `kruskal.gibbs.conv_statistics`, P = m_x m_y C entries, and Q_k diagonal in the channels:

Gaussian:  the channels of D_k ~ N((P I + Q_kc)^-1 p_kc, (P I + Q_kc)^-1)

Kruskal, all R terms of a mode at once. d = A u for the stacked vectors u = (u_r)_r of a mode, with A what the
weights and the other modes make of them:

    u ~ N(L^-1 A^T p, L^-1),        L = m_t I + A^T Q A           (5.7), (5.8); the rows of x or y are coupled
    lambda ~ N(L^-1 F^T p, L^-1),   L = diag(tau) + F^T Q F       (5.9)

For complete data Q_kc = gamma_eps Toeplitz(r_kk) is the same for all channels; it is written out, which costs
no more than its Cholesky factor. For masked data there is one matrix per channel.
All randomness comes in as arrays of standard normals: the kernels are plain functions.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.atoms import AtomNoise
from kruskal.gibbs.conv_kruskal import draw_kruskal, draw_vector, factorise
from kruskal.gibbs.conv_statistics import LagStatistics, MaskedStatistics, add_convolved
from kruskal.kernel import kernel


class ConvAtoms(NamedTuple):
    """Everything about the atoms that their draw changes or needs; arrays are changed in place.

    Attributes
    ----------
    dictionary : (K, P);  weights : (K, R) lambda, R = 0 for Gaussian atoms
    factors : (K, m_x + m_y + C, R);  log_precision : (K, R) log tau;  shape : (m_x, m_y, C)
    """

    dictionary: np.ndarray
    weights: np.ndarray
    factors: np.ndarray
    log_precision: np.ndarray
    shape: tuple[int, int, int]


def draw_atoms_lags(
    state: ConvAtoms, first: int, statistics: LagStatistics, noise_precision: float, noise: AtomNoise,
) -> None:  # fmt: skip
    """Draw the atoms first <= k < first + b of complete data in order, in place."""
    _sweep_lags(*state, first, *statistics, noise_precision, *noise)


def draw_atom_masked(
    state: ConvAtoms, k: int, statistics: MaskedStatistics, noise_precision: float, noise: AtomNoise,
) -> None:  # fmt: skip
    """Draw atom k of masked data, in place."""
    _draw_masked(*state, k, *statistics, noise_precision, *noise)


@kernel
def _sweep_lags(
    dictionary, weights, factors, log_precision, shape, first, pairs, correlations, noise_precision,
    entry_noise, weight_noise,
):  # fmt: skip
    m_x, m_y, _ = shape
    n_entries = dictionary.shape[1]
    correlations = correlations.copy()
    precision = np.empty((1, m_x * m_y, m_x * m_y))
    p, change = np.empty(n_entries), np.empty(n_entries)
    for a in range(pairs.shape[0]):
        k = first + a
        atom = dictionary[k]
        _fill_toeplitz(pairs[a, a], m_x, m_y, noise_precision, precision)
        for i in range(n_entries):
            p[i] = noise_precision * correlations[a, i]
            change[i] = -atom[i]
        _draw_atom(
            atom, weights[k], factors[k], log_precision[k], shape, p, precision, entry_noise[k],
            weight_noise[k],
        )  # fmt: skip
        for i in range(n_entries):
            change[i] += atom[i]
            change[i] = -change[i]
        for later in range(a + 1, pairs.shape[0]):
            add_convolved(pairs[later, a], 1, change, shape, correlations[later])


@kernel
def _draw_masked(
    dictionary, weights, factors, log_precision, shape, k, products, correlations, noise_precision,
    entry_noise, weight_noise,
):  # fmt: skip
    _draw_atom(
        dictionary[k], weights[k], factors[k], log_precision[k], shape, noise_precision * correlations,
        noise_precision * products, entry_noise[k], weight_noise[k],
    )  # fmt: skip


@kernel
def _draw_atom(atom, weights, factors, log_precision, shape, p, precision, noise, weight_noise):
    """Draw one atom given its correlations with the residual times gamma_eps (``p``, changed) and Q."""
    n_channels = shape[2]
    size = precision.shape[1]
    for c in range(n_channels):  # p += Q d
        matrix = precision[c if precision.shape[0] > 1 else 0]
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += matrix[i, j] * atom[j * n_channels + c]
            p[i * n_channels + c] += total
    if weights.shape[0] == 0:
        _gaussian(atom, p, precision, noise, n_channels)
    else:
        draw_kruskal(atom, weights, factors, log_precision, shape, p, precision, noise, weight_noise)


@kernel
def _gaussian(atom, p, precision, noise, n_channels):
    size = precision.shape[1]
    factor = np.empty((size, size))
    linear, deviates, drawn = np.empty(size), np.empty(size), np.empty(size)
    for c in range(n_channels):
        if c == 0 or precision.shape[0] > 1:
            for i in range(size):
                for j in range(size):
                    factor[i, j] = precision[c, i, j]
                factor[i, i] += float(atom.shape[0])
            factorise(factor, float(atom.shape[0]))
        for i in range(size):
            linear[i], deviates[i] = p[i * n_channels + c], noise[i * n_channels + c]
        draw_vector(factor, linear, deviates, drawn)
        for i in range(size):
            atom[i * n_channels + c] = drawn[i]


@kernel
def _fill_toeplitz(lags, m_x, m_y, scale, out):
    """out[0, j, j'] = scale r[j - j'], and 0 beyond the lags that there are."""
    reach_x, reach_y = lags.shape[0] // 2, lags.shape[1] // 2
    for i in range(m_x * m_y):
        for j in range(m_x * m_y):
            down, across = i // m_y - j // m_y, i % m_y - j % m_y
            out[0, i, j] = 0.0
            if abs(down) <= reach_x and abs(across) <= reach_y:
                out[0, i, j] = scale * lags[reach_x + down, reach_y + across]
