r"""Atoms: d_k given the statistics of the data, Gaussian (BPFA) or Kruskal (KFA).

Gaussian:  d_ik ~ N(p_ik / (P + q_ik), 1 / (P + q_ik)).

Kruskal: blocked over the terms (`kruskal.gibbs.kruskal_atom`), or one coefficient at a time
(`kruskal.gibbs.kruskal_scalar`).

All randomness comes in as arrays of standard normals: the kernels are plain functions.
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.kruskal_atom import draw_kruskal
from kruskal.gibbs.kruskal_scalar import draw_kruskal_scalar
from kruskal.gibbs.pair_sums import PairStatistics, pair_row
from kruskal.gibbs.statistics import AtomTerms, CompleteStatistics
from kruskal.kernel import kernel


class AtomState(NamedTuple):
    """Everything about the atoms that their draw changes or needs; arrays are changed in place.

    ``weights`` has R = 0 columns for Gaussian atoms.

    Attributes
    ----------
    dictionary : (K, P);  weights : (K, R) lambda;  factors : (K, sum m_t, R);  log_precision : (K, R) log tau
    rows : (P, T) from `kruskal.tensor.entry_rows`;  sizes : (T,) int64 mode sizes
    """

    dictionary: np.ndarray
    weights: np.ndarray
    factors: np.ndarray
    log_precision: np.ndarray
    rows: np.ndarray
    sizes: np.ndarray


class AtomNoise(NamedTuple):
    """Standard normals for one sweep: ``entries`` (K, P) for Gaussian or (K, sum m_t, R) for Kruskal atoms
    flattened to (K, .), ``weights`` (K, R)."""

    entries: np.ndarray
    weights: np.ndarray


class AtomOptions(NamedTuple):
    """How Kruskal atoms are drawn: ``blocked`` over terms or one by one; weights drawn or kept fixed."""

    blocked: bool = True
    fixed_weights: bool = False


def draw_atoms_complete(
    state: AtomState,
    statistics: CompleteStatistics,
    noise_precision: float,
    noise: AtomNoise,
    options: AtomOptions,
    past: AtomTerms | None = None,
) -> None:
    """Draw all atoms in order from the statistics of complete data (3.1), and ``past`` terms of others."""
    past = AtomTerms.zero(*state.dictionary.shape) if past is None else past
    constant = bool((past.quadratic == past.quadratic[:, :1]).all())  # unless the other items had gaps
    _sweep_complete(*state, *statistics, *past, constant, noise_precision, *noise, *options)


def draw_atoms_pairs(
    state: AtomState, statistics: PairStatistics, noise_precision: float, noise: AtomNoise,
    options: AtomOptions,
) -> None:  # fmt: skip
    """Draw all atoms of masked data in order, from the sums of pairs at every entry (3.3)."""
    _sweep_pairs(*state, *statistics, noise_precision, *noise, *options)


@kernel
def _sweep_complete(
    dictionary, weights, factors, log_precision, rows, sizes, code_products, data_products, past_linear,
    past_quadratic, constant, noise_precision, entry_noise, weight_noise, blocked, fixed_weights,
):  # fmt: skip
    n_atoms, n_entries = dictionary.shape
    p = np.empty(n_entries)
    q = np.empty(n_entries)
    for k in range(n_atoms):
        for i in range(n_entries):
            p[i] = data_products[k, i]
        for other in range(n_atoms):
            if other != k and code_products[k, other] != 0.0:
                w = code_products[k, other]
                row = dictionary[other]
                for i in range(n_entries):
                    p[i] -= w * row[i]
        for i in range(n_entries):
            p[i] = noise_precision * (p[i] + past_linear[k, i])
            q[i] = noise_precision * (code_products[k, k] + past_quadratic[k, i])
        if weights.shape[1] == 0:
            _gaussian(dictionary[k], p, q, entry_noise[k])
        else:
            _kruskal(
                dictionary[k], weights[k], factors[k], log_precision[k], rows, sizes, p, q, constant,
                entry_noise[k], weight_noise[k], blocked, fixed_weights,
            )  # fmt: skip


@kernel
def _sweep_pairs(
    dictionary, weights, factors, log_precision, rows, sizes, products, data_products, noise_precision,
    entry_noise, weight_noise, blocked, fixed_weights,
):  # fmt: skip
    n_atoms, n_entries = dictionary.shape
    p = np.empty(n_entries)
    q = np.empty(n_entries)
    for k in range(n_atoms):
        atom = np.uint64(k)
        for i in range(n_entries):
            p[i] = data_products[atom, i]
        for other in range(n_atoms):
            if other != k:
                pair, row = np.uint64(pair_row(k, other, n_atoms)), np.uint64(other)
                for i in range(n_entries):
                    p[i] -= products[pair, i] * dictionary[row, i]
        own = np.uint64(pair_row(k, k, n_atoms))
        for i in range(n_entries):
            p[i] *= noise_precision
            q[i] = noise_precision * max(products[own, i], 0.0)  # sums that were taken back leave rounding
        if weights.shape[1] == 0:
            _gaussian(dictionary[k], p, q, entry_noise[k])
        else:
            _kruskal(
                dictionary[k], weights[k], factors[k], log_precision[k], rows, sizes, p, q, False,
                entry_noise[k], weight_noise[k], blocked, fixed_weights,
            )  # fmt: skip


@kernel
def draw_block(
    dictionary, weights, factors, log_precision, rows, sizes, first, width, size, sums, past_linear,
    past_quadratic, noise_precision, entry_noise, weight_noise, blocked, fixed_weights, change,
):  # fmt: skip
    """Draw the atoms first <= k < first + width from the sums of `kruskal.gibbs.blocks`, which are used up.

    ``change`` (size, P) becomes the change of the atoms.
    """
    n_entries = dictionary.shape[1]
    squares, correlations, products = sums[:size], sums[size : 2 * size], sums[2 * size :]
    exact = np.empty(n_entries)  # the change of an atom before it is rounded to the data's precision
    p = np.empty(n_entries)
    q = np.empty(n_entries)
    for a in range(width):
        k = first + a
        atom = dictionary[k]
        for i in range(n_entries):
            p[i] = noise_precision * (correlations[a, i] + squares[a, i] * atom[i] + past_linear[k, i])
            q[i] = noise_precision * (squares[a, i] + past_quadratic[k, i])
            exact[i] = -atom[i]
        if weights.shape[1] == 0:
            _gaussian(atom, p, q, entry_noise[k])
        else:
            _kruskal(
                atom, weights[k], factors[k], log_precision[k], rows, sizes, p, q, False,
                entry_noise[k], weight_noise[k], blocked, fixed_weights,
            )  # fmt: skip
        for i in range(n_entries):
            exact[i] += atom[i]
            change[a, i] = exact[i]
        for later in range(a + 1, width):
            product = products[pair_index(a, later, size)]
            correlation = correlations[later]
            for i in range(n_entries):
                correlation[i] -= exact[i] * product[i]


@kernel
def pair_index(k, other, size):
    """Place of the pair k < other among all pairs of ``size`` atoms."""
    return k * (2 * size - k - 1) // 2 + other - k - 1


@kernel
def _gaussian(atom, p, q, noise):
    n_entries = atom.shape[0]
    for i in range(n_entries):
        precision = n_entries + q[i]
        atom[i] = p[i] / precision + noise[i] / math.sqrt(precision)


@kernel
def _kruskal(
    atom, weights, factors, log_precision, rows, sizes, p, q, constant_q, noise, weight_noise, blocked,
    fixed_weights,
):  # fmt: skip
    if blocked:
        draw_kruskal(
            atom, weights, factors, log_precision, sizes, p, q, constant_q, noise, weight_noise, fixed_weights
        )
    else:
        draw_kruskal_scalar(
            atom, weights, factors, log_precision, rows, sizes, p, q, noise, weight_noise, fixed_weights
        )
