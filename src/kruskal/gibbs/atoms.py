r"""Atoms: d_k given the statistics of the data, one after the other, Gaussian (BPFA) or Kruskal (KFA).

An atom is drawn given p_ik and q_ik, the linear and the quadratic term of the data at its entries:

    d_ik ~ N(p_ik / (P + q_ik), 1 / (P + q_ik))

if it is Gaussian; `kruskal.gibbs.kruskal_atom` has the draw of a Kruskal atom.
All randomness comes in as arrays of standard normals: the kernels are plain functions.
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.kruskal_atom import draw_kruskal
from kruskal.gibbs.pair_sums import PairStatistics, pair_row
from kruskal.gibbs.statistics import AtomTerms, BlockStatistics, CompleteStatistics, pair_index
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


def draw_atoms_block(
    state: AtomState, first: int, statistics: BlockStatistics, noise_precision: float, noise: AtomNoise,
    options: AtomOptions, past: AtomTerms | None = None,
) -> np.ndarray:  # fmt: skip
    """Draw the atoms first <= k < first + b of masked data; returns their change (b, P)."""
    past = AtomTerms.zero(*state.dictionary.shape) if past is None else past
    return _sweep_block(*state, first, *statistics, *past, noise_precision, *noise, *options)


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
            draw_kruskal(
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
            draw_kruskal(
                dictionary[k], weights[k], factors[k], log_precision[k], rows, sizes, p, q, False,
                entry_noise[k], weight_noise[k], blocked, fixed_weights,
            )  # fmt: skip


@kernel
def _sweep_block(
    dictionary, weights, factors, log_precision, rows, sizes, first, squares, correlations, products,
    past_linear, past_quadratic, noise_precision, entry_noise, weight_noise, blocked, fixed_weights,
):  # fmt: skip
    size, n_entries = squares.shape
    change = np.empty((size, n_entries))
    correlations = correlations.copy()
    p = np.empty(n_entries)
    q = np.empty(n_entries)
    for a in range(size):
        k = first + a
        atom = dictionary[k]
        for i in range(n_entries):
            p[i] = noise_precision * (correlations[a, i] + squares[a, i] * atom[i] + past_linear[k, i])
            q[i] = noise_precision * (squares[a, i] + past_quadratic[k, i])
            change[a, i] = -atom[i]
        if weights.shape[1] == 0:
            _gaussian(atom, p, q, entry_noise[k])
        else:
            draw_kruskal(
                atom, weights[k], factors[k], log_precision[k], rows, sizes, p, q, False,
                entry_noise[k], weight_noise[k], blocked, fixed_weights,
            )  # fmt: skip
        for i in range(n_entries):
            change[a, i] += atom[i]
        for later in range(a + 1, size):
            product = products[pair_index(a, later, size)]
            correlation = correlations[later]
            for i in range(n_entries):
                correlation[i] -= change[a, i] * product[i]
    return change


@kernel
def _gaussian(atom, p, q, noise):
    n_entries = atom.shape[0]
    for i in range(n_entries):
        precision = n_entries + q[i]
        atom[i] = p[i] / precision + noise[i] / math.sqrt(precision)
