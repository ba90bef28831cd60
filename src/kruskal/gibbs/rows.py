r"""Rows of the factors of one Kruskal tensor x_i ~ N(sum_r lambda_r prod_t u^(t)_{i_t r}, 1/gamma_eps).

Row j of mode t, all terms at once, with a_i = (prod_{t' != t} u^(t')_{i_t' r})_r over the observed entries:

    G_j = sum_{i: i_t = j} a_i a_i^T,   h_j = sum_{i: i_t = j} x_i a_i
    u^(t)_j ~ N(Q_j^-1 gamma_eps lambda o h_j, Q_j^-1)                                                   (1.4)
    Q_j = diag(omega_t) + gamma_eps lambda lambda^T o G_j

Complete data: G is the same for all rows of a mode, the product over t' != t of U^(t')^T U^(t'). The rows of
the first mode need X K with K the products of the other factors, and once they are drawn Z = U^(1)^T X is all
that the other modes need of the data: one visit to the data per sweep.

What the weights need (`TermSums`) falls out of the rows of the last mode: F^T F = sum_j G_j o u_j u_j^T and
F^T x = sum_j h_j o u_j with f_ir = prod_t u^(t)_{i_t r}.
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.normal import normal
from kruskal.random.philox import philox

_TERM_ROWS = int(Stream.TERM_ROWS)
_SMALLEST_PIVOT = 1e-13  # of the diagonal: below it, rounding decides


class Term(NamedTuple):
    """What the draw of a mode's rows is given: weights (R,), omega (R,), gamma_eps."""

    weights: np.ndarray
    precision: np.ndarray
    noise_precision: float


class TermSums(NamedTuple):
    """F^T F (R, R) and F^T x (R,) over the observed entries."""

    products: np.ndarray
    data: np.ndarray

    @classmethod
    def zero(cls, rank: int) -> "TermSums":
        """Nothing added."""
        return cls(np.zeros((rank, rank)), np.zeros(rank))


def row_normals(seed: int, sweep: int, first: int, n_rows: int, rank: int) -> np.ndarray:
    """(n_rows, R) standard normals for rows of the stacked factors from ``first`` on."""
    normals = np.empty((n_rows, rank))
    _fill_normals(normals, first, sweep, *key_of(seed))
    return normals


@kernel
def _fill_normals(normals, first, sweep, key_0, key_1):
    n_rows, rank = normals.shape
    for j in range(n_rows):
        for r in range(0, rank, 2):
            word_0, word_1, word_2, word_3 = philox(r // 2, first + j, sweep, _TERM_ROWS, key_0, key_1)
            normals[j, r] = normal(word_0, word_1)
            if r + 1 < rank:
                normals[j, r + 1] = normal(word_2, word_3)


@kernel
def factorise(matrix):
    """Cholesky factor in the lower triangle of a positive definite matrix (lower triangle read), in place."""
    n = matrix.shape[0]
    for i in range(n):
        line = matrix[i]
        diagonal = line[i]
        for j in range(i):
            other = matrix[j]
            total = line[j]
            for m in range(j):
                total -= line[m] * other[m]
            line[j] = total / other[j]
        total = diagonal
        for m in range(i):
            total -= line[m] * line[m]
        line[i] = math.sqrt(max(total, _SMALLEST_PIVOT * diagonal))


@kernel
def solve_forward(root, vector):
    """L^-1 h in the place of h, for L in the lower triangle of ``root``."""
    for j in range(vector.shape[0]):
        line = root[j]
        total = vector[j]
        for m in range(j):
            total -= line[m] * vector[m]
        vector[j] = total / line[j]


@kernel
def draw_gaussian(precision, normals, vector):
    """vector ~ N(Q^-1 h, Q^-1) for Q ``precision`` (destroyed, lower triangle read); ``vector`` holds h."""
    n = vector.shape[0]
    factorise(precision)
    solve_forward(precision, vector)
    for j in range(n):
        vector[j] += normals[j]
    for j in range(n - 1, -1, -1):
        line = precision[j]
        vector[j] /= line[j]
        for m in range(j):
            vector[m] -= line[m] * vector[j]
