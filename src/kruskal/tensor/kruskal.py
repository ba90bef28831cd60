"""Kruskal tensors of any order: composing, approximating, reading off their rank.

An atom of shape (m_1, .., m_T) with R terms is held as ``weights`` (R,) and ``factors`` (m_1 + .. + m_T, R):
the mode matrices u^(1), .., u^(T) stacked on top of each other. ``entry_rows`` says which rows an entry uses.
"""

import math
from collections.abc import Sequence

import numpy as np

from kruskal.kernel import kernel

RANK_TOLERANCE = 0.01
"""What counts for the rank: this share of the strongest term or singular value, unless said otherwise."""


def entry_rows(shape: Sequence[int]) -> np.ndarray:
    """Rows of the stacked factors that make up each entry, in C order.

    Returns
    -------
    rows : (prod(shape), len(shape)) int64
        ``rows[i, t]`` is the row of mode t for entry i: offset of the mode plus i_t.
    """
    offsets = np.concatenate([[0], np.cumsum(shape)[:-1]]).astype(np.int64)
    return np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1).astype(np.int64) + offsets


def compose(weights: np.ndarray, factors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The dictionary d_ik = sum_r lambda_kr prod_t u^(kt)_{i_t r}   (0.2).

    Parameters
    ----------
    weights : (K, R);  factors : (K, sum m_t, R);  rows : (P, T) from `entry_rows`.

    Returns
    -------
    (K, P) float64
    """
    n_atoms = len(weights)
    dictionary = np.empty((n_atoms, len(rows)))
    for k in range(n_atoms):
        compose_atom(weights[k], factors[k], rows, dictionary[k])
    return dictionary


@kernel
def compose_atom(weights, factors, rows, atom):
    """Write one Kruskal tensor (weights (R,), factors (sum m_t, R)) into ``atom`` (P,)."""
    n_entries, order = rows.shape
    for i in range(n_entries):
        total = 0.0
        for r in range(weights.shape[0]):
            product = weights[r]
            for t in range(order):
                product *= factors[rows[i, t], r]
            total += product
        atom[i] = total


def decompose(atom: np.ndarray, rank: int, iterations: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """A Kruskal approximation of one atom: the SVD for a matrix, greedy rank-one deflation otherwise.

    Parameters
    ----------
    atom : array of shape (m_1, .., m_T)
    rank : number of terms R; terms beyond what the atom holds get weight zero.

    Returns
    -------
    weights : (R,), factors : (sum m_t, R) with columns of unit norm in each mode.
    """
    if atom.ndim == 2:
        left, values, right = np.linalg.svd(atom, full_matrices=False)
        kept = min(rank, len(values))
        weights = np.zeros(rank)
        weights[:kept] = values[:kept]
        factors = np.zeros((sum(atom.shape), rank))
        factors[: atom.shape[0], :kept] = left[:, :kept]
        factors[atom.shape[0] :, :kept] = right[:kept].T
    else:
        weights = np.zeros(rank)
        factors = np.zeros((sum(atom.shape), rank))
        remainder = atom.astype(np.float64)
        for r in range(rank):
            weights[r], vectors = _best_rank_one(remainder, iterations)
            factors[:, r] = np.concatenate(vectors)
            remainder = remainder - weights[r] * _outer(vectors)
    _complete_columns(factors, atom.shape)
    return weights, factors


def _best_rank_one(tensor: np.ndarray, iterations: int) -> tuple[float, list[np.ndarray]]:
    """A rank-one approximation by alternating maximisation, started from the leading mode-wise vectors."""
    vectors = []
    for t in range(tensor.ndim):
        unfolded = np.moveaxis(tensor, t, 0).reshape(tensor.shape[t], -1)
        vectors.append(np.linalg.eigh(unfolded @ unfolded.T)[1][:, -1])
    weight = 0.0
    for _ in range(iterations):
        previous = weight
        for t in range(tensor.ndim):
            image = _contract_all_but(tensor, vectors, t)
            weight = float(np.linalg.norm(image))
            if weight == 0.0:
                return 0.0, vectors
            vectors[t] = image / weight
        if abs(weight - previous) <= 1e-6 * weight:
            break
    return weight, vectors


def _contract_all_but(tensor: np.ndarray, vectors: list[np.ndarray], kept: int) -> np.ndarray:
    for t in range(tensor.ndim - 1, -1, -1):
        if t != kept:
            tensor = np.tensordot(tensor, vectors[t], axes=(t, 0))
    return tensor


def _outer(vectors: list[np.ndarray]) -> np.ndarray:
    result = vectors[0]
    for vector in vectors[1:]:
        result = np.multiply.outer(result, vector)
    return result


def _complete_columns(factors: np.ndarray, shape: Sequence[int]) -> None:
    """Give columns that the decomposition left empty a unit vector, so that no term is stuck at zero."""
    start = 0
    for size in shape:
        block = factors[start : start + size]
        empty = ~block.any(axis=0)
        block[:, empty] = 1.0 / math.sqrt(size)
        start += size


def effective_ranks(
    weights: np.ndarray, factors: np.ndarray, shape: Sequence[int], tolerance: float
) -> np.ndarray:
    """Rank of every atom at a relative tolerance.

    For matrices the singular values of the atom count, relative to the largest. For other orders the terms
    count, |lambda_kr| prod_t ||u_r^(kt)|| relative to the largest (exact only for a minimal decomposition).

    Returns
    -------
    (K,) int64
    """
    if len(shape) == 2:
        atoms = compose(weights, factors, entry_rows(shape)).reshape(-1, *shape)
        strength = np.linalg.svd(atoms, compute_uv=False)
    else:
        strength = np.abs(weights)
        start = 0
        for size in shape:
            strength = strength * np.linalg.norm(factors[:, start : start + size], axis=1)
            start += size
    largest = strength.max(axis=1, keepdims=True)
    return np.where(largest[:, 0] > 0, (strength > tolerance * largest).sum(axis=1), 0)
