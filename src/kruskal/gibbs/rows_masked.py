"""Rows of the factors from observed entries; the formulas are in `kruskal.gibbs.rows`."""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.rows import Term, TermSums, draw_gaussian, row_normals
from kruskal.gibbs.stack import ModeRows, Part
from kruskal.kernel import kernel

_BLOCK = 8  # entries whose products are added at once: one load and store of the sums for all of them


class RowDraw(NamedTuple):
    """What one part of masked data reports of a mode: its rows, its open rows' shares, its sums."""

    rows: np.ndarray
    open_products: np.ndarray
    open_data: np.ndarray
    sums: TermSums


def draw_rows(part: Part, mode: int, offset: int, factors: np.ndarray, term: Term, seed: int, sweep: int):
    """Draw the rows of one mode that lie in one part; open rows are left to `close_rows`.

    Parameters
    ----------
    offset : first row of the mode in ``factors`` (sum m_t, R)

    Returns
    -------
    RowDraw
    """
    here, rank = part.modes[mode], factors.shape[1]
    normals = row_normals(seed, sweep, offset + here.first, here.n_rows, rank)
    drawn = RowDraw(
        np.empty((here.n_rows, rank)), np.zeros((2, rank, rank)), np.zeros((2, rank)), TermSums.zero(rank)
    )
    _draw_rows(*here[1:], factors, *term, normals, *drawn[:3], *drawn.sums)
    return drawn


def close_rows(
    parts: list[tuple[ModeRows, RowDraw]], offset: int, size: int, term: Term, seed: int, sweep: int
) -> tuple[np.ndarray, TermSums]:
    """All rows (m_t, R) of a mode, the open ones drawn from the sums of their shares; and the term sums."""
    rank = len(term.weights)
    rows, sums = np.empty((size, rank)), TermSums.zero(rank)
    shares: dict[int, TermSums] = {}
    for here, drawn in parts:
        rows[here.first : here.first + here.n_rows] = drawn.rows
        _add(sums, drawn.sums)
        for place, row in _open_rows(here):
            _add(
                shares.setdefault(row, TermSums.zero(rank)),
                TermSums(drawn.open_products[place], drawn.open_data[place]),
            )
    for row, share in shares.items():
        normals = row_normals(seed, sweep, offset + row, 1, rank)[0]
        _draw_row(*share, *term, normals, np.empty((rank, rank)), rows[row])
        _add_row(*share, rows[row], *sums)
    return rows, sums


def _open_rows(here: ModeRows) -> list[tuple[int, int]]:
    """(place among the reported shares, row) of the open rows of a part."""
    last = here.first + here.n_rows - 1
    found = [(0, here.first)] if here.open_before else []
    if here.open_after and not (here.open_before and here.n_rows == 1):
        found.append((1, last))
    return found


def _add(total: TermSums, part: TermSums) -> None:
    total.products[:] += part.products
    total.data[:] += part.data


@kernel
def _draw_rows(
    start, others, values, open_before, open_after, factors, weights, precision, noise_precision,
    normals, rows, open_products, open_data, sum_products, sum_data,
):  # fmt: skip
    n_rows, rank = rows.shape
    products = np.zeros((rank, rank))
    data = np.zeros(rank)
    work = np.zeros((rank, rank))
    block = np.zeros((_BLOCK, rank))
    for j in range(n_rows):
        products[:] = 0.0
        data[:] = 0.0
        _row_sums(start[j], start[j + 1], others, values, factors, block, products, data)
        if open_before and j == 0:
            open_products[0] = products
            open_data[0] = data
        elif open_after and j == n_rows - 1:
            open_products[1] = products
            open_data[1] = data
        else:
            _draw_row(products, data, weights, precision, noise_precision, normals[j], work, rows[j])
            _add_row(products, data, rows[j], sum_products, sum_data)


@kernel
def _row_sums(begin, end, others, values, factors, block, products, data):
    """Add a a^T (lower triangle) and x a over the entries begin <= e < end."""
    rank = data.shape[0]
    for e in range(begin, end, _BLOCK):
        filled = min(_BLOCK, end - e)
        for b in range(filled):
            line = block[b]
            row = factors[others[e + b, 0]]
            for r in range(rank):
                line[r] = row[r]
            for t in range(1, others.shape[1]):
                row = factors[others[e + b, t]]
                for r in range(rank):
                    line[r] *= row[r]
            x = float(values[e + b])
            for r in range(rank):
                data[r] += x * line[r]
        for b in range(filled, _BLOCK):
            block[b, :] = 0.0
        _add_products(block, products)


@kernel
def _add_products(block, products):
    """Add a a^T of eight vectors to the lower triangle, whole vectors beyond the diagonal included."""
    rank = products.shape[0]
    for r in range(rank):
        a0, a1, a2, a3 = block[0, r], block[1, r], block[2, r], block[3, r]
        a4, a5, a6, a7 = block[4, r], block[5, r], block[6, r], block[7, r]
        for s in range(min(rank, (r // 8 + 1) * 8)):
            products[r, s] += (
                a0 * block[0, s] + a1 * block[1, s] + a2 * block[2, s] + a3 * block[3, s]
                + a4 * block[4, s] + a5 * block[5, s] + a6 * block[6, s] + a7 * block[7, s]
            )  # fmt: skip


@kernel
def _draw_row(products, data, weights, precision, noise_precision, normals, work, row):
    rank = row.shape[0]
    for r in range(rank):
        scaled = noise_precision * weights[r]
        for s in range(r + 1):
            work[r, s] = scaled * weights[s] * products[r, s]
        work[r, r] += precision[r]
        row[r] = scaled * data[r]
    draw_gaussian(work, normals, row)


@kernel
def _add_row(products, data, row, sum_products, sum_data):
    for r in range(row.shape[0]):
        for s in range(r + 1):
            sum_products[r, s] += products[r, s] * row[r] * row[s]
        sum_data[r] += data[r] * row[r]


def residual_squares(part: Part, factors: np.ndarray, weights: np.ndarray) -> float:
    """Sum over the observed entries of one part of masked data of the squared residual."""
    here = part.modes[0]
    return _residual_squares(here.first, here.start, here.others, here.values, factors, weights)


@kernel
def _residual_squares(first, start, others, values, factors, weights):
    rank = weights.shape[0]
    line = np.empty(rank)
    squares = 0.0
    for j in range(start.shape[0] - 1):
        for r in range(rank):
            line[r] = weights[r] * factors[first + j, r]
        for e in range(start[j], start[j + 1]):
            x = float(values[e])
            if others.shape[1] == 2:
                one, two = factors[others[e, 0]], factors[others[e, 1]]
                total = 0.0
                for r in range(rank):
                    total += line[r] * one[r] * two[r]
            else:
                total = 0.0
                for r in range(rank):
                    product = line[r]
                    for t in range(others.shape[1]):
                        product *= factors[others[e, t], r]
                    total += product
            squares += (x - total) * (x - total)
    return squares
