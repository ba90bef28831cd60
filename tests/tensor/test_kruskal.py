"""Kruskal algebra: composing, approximating, counting terms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruskal.tensor import compose, decompose, effective_ranks, entry_rows
from tests.gibbs.reference import compose as slow_compose

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)


def split_modes(factors, shape):
    return np.split(factors, np.cumsum(shape)[:-1])


@given(shape=shapes, rank=st.integers(1, 4), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_compose(shape, rank, seed):
    random = np.random.default_rng(seed)
    weights, factors = random.standard_normal((2, rank)), random.standard_normal((2, sum(shape), rank))
    dictionary = compose(weights, factors, entry_rows(shape))
    assert dictionary.shape == (2, math.prod(shape))
    for k in range(2):
        expected = slow_compose(weights[k], split_modes(factors[k], shape))
        np.testing.assert_allclose(dictionary[k], expected, rtol=1e-12, atol=1e-12)


@given(shape=shapes)
@settings(max_examples=40, deadline=None)
def test_entry_rows(shape):
    rows = entry_rows(shape)
    offsets = np.cumsum((0, *shape[:-1]))
    for i, index in enumerate(np.ndindex(*shape)):
        assert tuple(rows[i] - offsets) == index


@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (1, 4)])
def test_decompose_a_matrix_is_its_svd(shape):
    atom = np.random.default_rng(0).standard_normal(shape)
    values = np.linalg.svd(atom, compute_uv=False)
    for rank in range(1, 6):
        weights, factors = decompose(atom, rank)
        error = np.linalg.norm(compose(weights[None], factors[None], entry_rows(shape))[0] - atom.ravel())
        assert error == pytest.approx(np.linalg.norm(values[rank:]), abs=1e-12)
        for mode in split_modes(factors, shape):
            np.testing.assert_allclose(np.linalg.norm(mode, axis=0), 1.0, rtol=1e-12)


@pytest.mark.parametrize("shape", [(6,), (3, 4, 2), (2, 3, 2, 3)])
def test_decompose_recovers_a_rank_one_tensor(shape):
    random = np.random.default_rng(1)
    atom = slow_compose(np.array([-2.5]), [random.standard_normal((m, 1)) for m in shape]).reshape(shape)
    weights, factors = decompose(atom, 2)
    composed = compose(weights[None], factors[None], entry_rows(shape))[0]
    np.testing.assert_allclose(composed, atom.ravel(), rtol=1e-6, atol=1e-8)
    assert abs(weights[1]) < 1e-6 * abs(weights[0])
    for mode in split_modes(factors, shape):
        np.testing.assert_allclose(np.linalg.norm(mode, axis=0), 1.0, rtol=1e-9)


def test_decompose_improves_with_the_number_of_terms():
    atom = np.random.default_rng(2).standard_normal((4, 3, 3))
    errors = []
    for rank in range(1, 12):
        weights, factors = decompose(atom, rank)
        errors.append(
            np.linalg.norm(compose(weights[None], factors[None], entry_rows(atom.shape))[0] - atom.ravel())
        )
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 0.3 * errors[0]


@pytest.mark.parametrize("shape", [(3, 3), (4,), (2, 2, 3)])
def test_decompose_of_zero_is_zero_and_not_stuck(shape):
    weights, factors = decompose(np.zeros(shape), 2)
    np.testing.assert_array_equal(weights, 0.0)
    for mode in split_modes(factors, shape):
        assert (np.linalg.norm(mode, axis=0) > 0.5).all()


def test_effective_rank_of_matrices_counts_singular_values():
    random = np.random.default_rng(3)
    shape, rank = (5, 4), 4
    factors = random.standard_normal((3, 9, rank))
    weights = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1e-9], [0.0, 0.0, 0.0, 0.0]])
    factors[0, :, 1] = factors[0, :, 0]  # two equal terms are one
    np.testing.assert_array_equal(effective_ranks(weights, factors, shape, 0.01), [3, 2, 0])


@pytest.mark.parametrize("shape", [(6,), (2, 3, 4)])
def test_effective_rank_of_other_orders_counts_terms(shape):
    factors = np.ones((2, sum(shape), 3))
    weights = np.array([[5.0, -0.06, 0.04], [0.0, 0.0, 2.0]])
    np.testing.assert_array_equal(effective_ranks(weights, factors, shape, 0.01), [2, 1])
    factors[0, 0, 2] = 100.0  # a small weight with a long vector counts
    np.testing.assert_array_equal(effective_ranks(weights, factors, shape, 0.01), [3, 1])
