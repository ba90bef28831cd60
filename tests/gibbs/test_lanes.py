"""The loops in vector instructions: equal to NumPy, in both precisions, and only where they should write."""

import numpy as np
import pytest
from numba import njit

from kruskal.gibbs import cells, lanes
from kruskal.gibbs.systems import most_active, sort_window
from kruskal.gibbs.vectors import ITEMS, LANES

PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ROW = np.array([4, 0, 3, 6, 6, 1], np.uint16)
HERE = slice(LANES, 2 * LANES)


def arrays(dtype):
    """Values (3, 2 LANES), a matrix (7, 2 LANES), weights (6,) and bars (2 LANES,)."""
    random = np.random.default_rng(3)
    values, matrix = random.standard_normal((3, 2 * LANES)), random.standard_normal((7, 2 * LANES))
    bars = 2.0 * random.random(2 * LANES)
    return (
        values.astype(dtype),
        matrix.astype(dtype),
        random.standard_normal(6).astype(dtype),
        bars.astype("f"),
    )


def bits(flags) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)


@njit
def _look(values, bars):
    mask = lanes.above(values, 2, LANES, bars)
    return mask, lanes.lowest(mask)


@njit
def _add(values, weight, matrix, row, bars):
    lanes.add_rows(values, 1, LANES, weight, matrix, row, 1, 5)
    return lanes.add_row(values, 1, LANES, weight[0], matrix, 5, bars)


@njit
def _sum(values, squares, again, weight, matrix, row):
    lanes.sum_rows(values, squares, LANES, weight, matrix, row, 1, 5)
    lanes.set_rows(again, LANES, weight, matrix, row, 1, 5)
    return lanes.dot(matrix, 2, matrix, 5, 2 * LANES)


@njit
def _solve(rows, weight, matrix, squares):
    lanes.solve_row(rows, 2, LANES, weight, 3, matrix, 6, rows.dtype.type(0.5), squares)


@PRECISIONS
def test_comparison(dtype):
    values, _, _, bars = arrays(dtype)
    flags = values[2, HERE].astype(float) ** 2 > bars[HERE]
    assert _look(values, bars) == (bits(flags), np.flatnonzero(flags)[0])


@PRECISIONS
def test_adding_rows(dtype):
    values, matrix, weight, bars = arrays(dtype)
    expected = values.copy()
    expected[1, HERE] += weight[1:5] @ matrix[ROW[1:5], HERE] + weight[0] * matrix[5, HERE]
    mask = _add(values, weight, matrix, ROW, bars)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)
    assert mask == bits(values[1, HERE].astype(float) ** 2 > bars[HERE])


def test_adding_rows_of_single_precision_to_double():
    values, matrix, weight, _ = arrays(np.float64)
    matrix, weight = matrix.astype("f"), weight.astype("f")
    expected = values[1, HERE] + weight[1:5].astype(float) @ matrix[ROW[1:5], HERE].astype(float)
    _add_mixed(values, weight, matrix, ROW)
    np.testing.assert_allclose(values[1, HERE], expected, rtol=1e-13, atol=1e-13)


@njit
def _add_mixed(values, weight, matrix, row):
    lanes.add_rows(values, 1, LANES, weight, matrix, row, 1, 5)


@PRECISIONS
def test_sums_of_rows(dtype):
    _, matrix, weight, _ = arrays(dtype)
    values, squares, again = np.zeros((3, 2 * LANES), dtype)
    product = _sum(values, squares, again, weight, matrix, ROW)
    picked = matrix[ROW[1:5], HERE]
    np.testing.assert_allclose(values[HERE], weight[1:5] @ picked, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(again, values)
    np.testing.assert_allclose(squares[HERE], (picked**2).sum(axis=0), rtol=1e-5)
    assert not values[:LANES].any() and not squares[:LANES].any()
    assert product == pytest.approx(float(matrix[2] @ matrix[5]), rel=1e-4)


@PRECISIONS
def test_one_row_of_a_triangular_solution(dtype):
    rows, matrix, weight, _ = arrays(dtype)
    squares = np.ones(2 * LANES, dtype)
    expected = 0.5 * (matrix[6, HERE] + weight[3] * rows[0, HERE] + weight[4] * rows[1, HERE])
    _solve(rows, weight, matrix, squares)
    np.testing.assert_allclose(rows[2, HERE], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(squares[HERE], 1.0 + expected**2, rtol=1e-5)
    assert (squares[:LANES] == 1.0).all()


@njit
def _cells(first, second, third, fourth, rows, scale):
    cells.multiply_rows(first, 2, 5, rows, 4, 6, 9, 3)
    cells.reduce_rows(second, 2, 6, 30, 4, scale, 1)
    cells.invert_pivot(third, 3, 0.25, third, 0)
    cells.subtract_row(fourth, rows, 7, 5, scale, 2)


def test_cells():
    random = np.random.default_rng(5)
    rows, scale = random.standard_normal((30, ITEMS)), random.standard_normal((3, ITEMS))
    before = random.standard_normal((4, 40, ITEMS))
    after = before.copy()
    before[2, 3, :4] = after[2, 3, :4] = -2.0  # such a pivot is lifted
    _cells(*after, rows, scale)
    expected = before.copy()
    for r in range(cells.ROWS):
        expected[0, 2 + 5 * r] = (rows[4 + 6 * r : 7 + 6 * r] * rows[9:12]).sum(axis=0)
        line = slice(2 + 6 * r, 6 + 6 * r)
        expected[1, 6 + 6 * r] -= (before[1, line] * before[1, 30:34]).sum(axis=0)
        expected[1, 6 + 6 * r] *= scale[1]
    expected[2, 0] = np.maximum(before[2, 3] + 0.25, 0.25) ** -0.5
    expected[3, :5] -= rows[7:12] * scale[2]
    np.testing.assert_allclose(after, expected, rtol=1e-12, atol=1e-12)


def test_zeros_at_lines_of_the_cache():
    for sample in (np.zeros(1, "f"), np.zeros(1)):
        zeros = lanes.aligned_zeros(3, 8, sample)
        assert zeros.shape == (3, 8) and zeros.dtype == sample.dtype and not zeros.any()
        assert zeros.ctypes.data % 64 == 0 and zeros.flags.c_contiguous


def test_items_of_a_window_by_size():
    sizes = np.array([9, 2, 0, 5, 2, 7, 0])
    start = np.append(0, np.cumsum(sizes))
    order = np.zeros(8, np.int64)
    assert most_active(start) == 9
    sort_window(start, 1, 7, order, np.zeros(10, np.int64))
    assert list(order) == [5, 3, 1, 4, 2, 6, -1, -1]
