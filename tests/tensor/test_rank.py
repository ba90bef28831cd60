"""Ranks of shapes against brute force: the dimension of secant varieties by Terracini's lemma."""

import itertools
import math

import numpy as np
import pytest

from kruskal.errors import InputError
from kruskal.tensor import expected_rank, generic_rank, maximal_rank

PRIME = 2_147_483_647


def rank_modulo(matrix: np.ndarray) -> int:
    """Rank over the integers modulo PRIME, by elimination."""
    matrix = matrix.copy() % PRIME
    rank = 0
    for column in range(matrix.shape[1]):
        pivots = np.flatnonzero(matrix[rank:, column])
        if len(pivots) == 0:
            continue
        pivot = rank + pivots[0]
        matrix[[rank, pivot]] = matrix[[pivot, rank]]
        matrix[rank] = matrix[rank] * pow(int(matrix[rank, column]), -1, PRIME) % PRIME
        below = np.flatnonzero(matrix[rank + 1 :, column]) + rank + 1
        matrix[below] = (matrix[below] - matrix[below, column][:, None] * matrix[rank] % PRIME) % PRIME
        rank += 1
        if rank == len(matrix):
            break
    return rank


def tangent_dimension(shape: tuple[int, ...], n_terms: int) -> int:
    """Dimension of the span of the tangent spaces at ``n_terms`` random rank-one tensors."""
    random = np.random.default_rng([*shape, n_terms])
    rows = []
    for _ in range(n_terms):
        vectors = [random.integers(1, PRIME, m) for m in shape]
        for t, m in enumerate(shape):
            for j in range(m):
                product = np.ones(1, dtype=np.int64)
                for s in range(len(shape)):
                    factor = (np.arange(m) == j).astype(np.int64) if s == t else vectors[s]
                    product = np.multiply.outer(product, factor) % PRIME
                rows.append(product.ravel())
    return rank_modulo(np.array(rows, dtype=np.int64))


SMALL = [
    shape
    for order, most in ((2, 8), (3, 8), (4, 5), (5, 3))
    for shape in itertools.combinations_with_replacement(range(2, most + 1), order)
    if math.prod(shape) <= 128
]
STRASSEN = [(3, 3, 3), (3, 5, 5), (3, 7, 7)]


@pytest.mark.parametrize("shape", [*SMALL, (3, 7, 7)], ids=str)
def test_generic_rank_by_terracini(shape):
    """The tangent spaces fill the space with the generic number of terms and with no fewer."""
    rank = generic_rank(shape)
    assert tangent_dimension(shape, rank) == math.prod(shape)
    assert tangent_dimension(shape, rank - 1) < math.prod(shape)


def test_only_strassen_shapes_differ_from_the_expected_rank():
    different = [shape for shape in [*SMALL, (3, 7, 7)] if generic_rank(shape) != expected_rank(shape)]
    assert different == STRASSEN
    assert all(generic_rank(shape) == expected_rank(shape) + 1 for shape in different)


@pytest.mark.parametrize(
    "shape, expected, generic",
    [
        ((8, 8), 8, 8), ((7, 7, 3), 10, 11), ((8, 8, 8), 24, 24), ((5, 50, 4), 20, 20),
        ((5, 5, 5, 5), 37, 37), ((8, 8, 1000), 64, 64), ((2, 2, 2), 2, 2), ((2, 2, 2, 2), 4, 4),
        ((3, 4, 4), 6, 6), ((6,), 1, 1), ((1, 1), 1, 1), ((1, 8, 1, 8), 8, 8),
    ],
)  # fmt: skip
def test_ranks_of_known_shapes(shape, expected, generic):
    assert (expected_rank(shape), generic_rank(shape)) == (expected, generic)
    for order in itertools.permutations(shape):
        assert (expected_rank(order), generic_rank(order)) == (expected, generic)


def test_default_and_maximal_rank():
    assert maximal_rank((8, 8)) == 8 and maximal_rank((5, 50, 4)) == 20 and maximal_rank((9,)) == 1
    for shape in SMALL:
        assert 1 <= expected_rank(shape) <= generic_rank(shape) <= maximal_rank(shape)


@pytest.mark.parametrize("shape", [(0, 3), (-1,), (2.5, 2), (True, 2)])
def test_bad_shapes(shape):
    with pytest.raises(InputError, match="whole numbers"):
        generic_rank(shape)
