"""Rows of the factors of complete data, and what goes over all entries; see `kruskal.gibbs.rows`."""

import numpy as np
from scipy.linalg import solve_triangular

from kruskal.gibbs.rows import Term, factorise, row_normals
from kruskal.gibbs.stack import Part
from kruskal.kernel import kernel
from kruskal.patches import Slab

_CHUNK = 2**18  # entries that are gathered at once
_CHUNK_ENTRIES = 2**14  # of an item, when all of its entries are formed


def draw_items(
    part: Part, found: np.ndarray | None = None, *, factors: np.ndarray, others: np.ndarray, root: np.ndarray,
    scale: np.ndarray, seed: int, sweep: int,
) -> np.ndarray:  # fmt: skip
    """Draw the rows of the first mode of one part of complete data, in place; Z = U^(1)^T X.

    Parameters
    ----------
    found : (R, P) Z of other parts, to which that of this one is added;  factors : (sum m_t, R)
    others : (P, R) products of the factors of the other modes;  root : Cholesky factor (R, R) of Q
    scale : (R,) gamma_eps lambda
    """
    n_items, rank = part.items.n_items, others.shape[1]
    rows = row_normals(seed, sweep, part.first, n_items, rank)
    data = np.zeros((rank, len(others))) if found is None else found
    for here in _chunks(part):
        values = gather(part, here)
        linear = (values @ others) * scale
        half = solve_triangular(root, linear.T, lower=True, check_finite=False) + rows[here].T
        rows[here] = solve_triangular(root, half, lower=True, trans="T", check_finite=False).T
        data += rows[here].T @ values
    factors[part.first : part.first + n_items] = rows
    return data


def gather(part: Part, here: slice) -> np.ndarray:
    """(n, P) values of some items of a part."""
    items = part.items
    return items.flat[items.origin[here, None] + items.offset[None, :]].astype(np.float64)


def residual_squares_complete(
    part: Part, factors: np.ndarray, weights: np.ndarray, others: np.ndarray
) -> float:
    """Sum of squared residuals of one part of complete data."""
    squares = 0.0
    for here in _chunks(part):
        rows = factors[part.first + here.start : part.first + here.stop]
        rest = gather(part, here) - (rows * weights) @ others.T
        squares += float(np.vdot(rest, rest))
    return squares


def expect_items(part: Part, factors: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> Slab:
    """Sums over the items of one part of their values in this draw; see `kruskal.patches.Slab`.

    Parameters
    ----------
    rows : (P, T - 1) from `kruskal.tensor.entry_rows`, shifted by the number of items
    """
    items = part.items
    if items.n_items == 0:
        return Slab(0, np.zeros(0), np.zeros(0), np.zeros(0))
    first = int(items.origin.min())
    size = int(items.origin.max()) + int(items.offset[-1]) + 1 - first
    slab = Slab(first, np.zeros(size), np.zeros(size), np.zeros(size))
    own = factors[part.first : part.first + items.n_items] * weights
    for entry in range(0, len(rows), _CHUNK_ENTRIES):
        here = slice(entry, entry + _CHUNK_ENTRIES)
        others = entry_products(factors, rows[here]).T
        for item in _chunks(part):
            _add_items(own[item] @ others, items.origin[item], items.offset[here], *slab)
    return slab


def _chunks(part: Part) -> list[slice]:
    n_items = part.items.n_items
    step = max(1, _CHUNK // len(part.items.offset))
    return [slice(first, min(first + step, n_items)) for first in range(0, n_items, step)]


@kernel
def _add_items(values, origin, offset, first, weight, total, square):
    for n in range(values.shape[0]):
        for i in range(values.shape[1]):
            place = origin[n] + offset[i] - first
            weight[place] += 1.0
            total[place] += values[n, i]
            square[place] += values[n, i] * values[n, i]


def entry_products(factors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(P, R) products over the modes of an item: prod_{t>1} u^(t)_{i_t r}; ``rows`` (P, T - 1)."""
    result = factors[rows[:, 0]]
    for t in range(1, rows.shape[1]):
        result *= factors[rows[:, t]]
    return result


def gram_of(factors: np.ndarray, bounds: list[int], left_out: int = -1) -> np.ndarray:
    """(R, R) product over the modes but one of U^(t)^T U^(t); ``bounds`` says where the modes begin."""
    rank = factors.shape[1]
    result = np.ones((rank, rank))
    for t in range(len(bounds) - 1):
        if t != left_out:
            mode = factors[bounds[t] : bounds[t + 1]]
            result *= mode.T @ mode
    return result


def row_root(gram: np.ndarray, term: Term) -> np.ndarray:
    """Cholesky factor of Q = diag(omega) + gamma_eps lambda lambda^T o G."""
    root = term.noise_precision * np.outer(term.weights, term.weights) * gram
    root[np.diag_indices_from(root)] += term.precision
    factorise(root)
    return np.tril(root)


def mode_data(data: np.ndarray, factors: np.ndarray, rows: np.ndarray, mode: int) -> np.ndarray:
    """(m_t, R) h_j of the rows of a mode from ``data`` Z^T (P, R); ``mode`` counts the modes of an item."""
    product = data.copy()
    for t in range(rows.shape[1]):
        if t != mode:
            product *= factors[rows[:, t]]
    sizes = rows[-1] - rows[0] + 1
    axes = tuple(t for t in range(len(sizes)) if t != mode)
    return product.reshape(*sizes, -1).sum(axis=axes)


def draw_mode(linear: np.ndarray, root: np.ndarray, term: Term, normals: np.ndarray) -> np.ndarray:
    """Rows (m_t, R) given h (m_t, R) and the Cholesky factor of their common Q."""
    scaled = linear * (term.noise_precision * term.weights)
    half = solve_triangular(root, scaled.T, lower=True, check_finite=False) + normals.T
    return solve_triangular(root, half, lower=True, trans="T", check_finite=False).T
