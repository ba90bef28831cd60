"""The visits of MGP-CP to its data: all rows of all modes, and the residual."""

import operator
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from kruskal.gibbs.rows import Term, TermSums, row_normals
from kruskal.gibbs.rows_complete import (
    draw_items,
    draw_mode,
    entry_products,
    gram_of,
    mode_data,
    residual_squares_complete,
    row_root,
)
from kruskal.gibbs.rows_masked import RowDraw, close_rows, draw_rows, residual_squares
from kruskal.gibbs.stack import ModeRows, Part
from kruskal.tensor import entry_rows

T = TypeVar("T")


class Terms(NamedTuple):
    """The state: one Kruskal tensor of R terms and what governs it.

    Attributes
    ----------
    weights : (R,) lambda;  factors : (sum m_t, R) u, mode below mode;  factor_precision : (T, R) omega
    log_delta : (R,);  alpha : float;  noise_precision : gamma_eps
    """

    weights: np.ndarray
    factors: np.ndarray
    factor_precision: np.ndarray
    log_delta: np.ndarray
    alpha: float
    noise_precision: float


class StackedEngine(Protocol):
    """Who runs it: holds the parts of a stack and applies a function to each of them, results in order."""

    n_items: int
    n_observed: int
    complete: bool
    mean_square: float  # of the observed entries

    def map(self, function: Callable[[Part], T]) -> list[T]:
        """``function`` of every part, in the order of the parts."""
        ...

    def total(self, visit: Callable[[Part, T | None], T], add: Callable[[T, T], T]) -> T:
        """The sum over all parts of what ``visit`` finds, added to what it found before."""
        ...


class Layout(NamedTuple):
    """Where the modes of a stack lie in its factors.

    Attributes
    ----------
    bounds : [0, m_1, m_1 + m_2, ..], where the modes begin
    rows : (P, T - 1) int64, rows of the factors that make up each entry of an item
    """

    bounds: list[int]
    rows: np.ndarray

    @classmethod
    def of(cls, sizes: tuple[int, ...]) -> "Layout":
        """For modes of these sizes."""
        return cls([0, *np.cumsum(sizes).tolist()], entry_rows(sizes[1:]) + sizes[0])


def draw_rows_masked(
    state: Terms, factors: np.ndarray, layout: Layout, engine: StackedEngine, seed: int, number: int
) -> TermSums:
    """The rows of every mode in turn, ``factors`` in place; returns what the weights need."""
    for t, (first, stop) in enumerate(pairwise(layout.bounds)):
        term = _term(state, t)
        visit = partial(
            _draw_mode_rows, mode=t, offset=first, factors=factors, term=term, seed=seed, sweep=number
        )
        factors[first:stop], sums = close_rows(engine.map(visit), first, stop - first, term, seed, number)
    return sums


def _draw_mode_rows(part: Part, mode: int, **options: Any) -> tuple[ModeRows, RowDraw]:
    return part.modes[mode], draw_rows(part, mode, **options)


def draw_rows_complete(
    state: Terms, factors: np.ndarray, layout: Layout, engine: StackedEngine, seed: int, number: int
) -> TermSums:
    """The same when nothing is missing: one visit to the data."""
    bounds, term = layout.bounds, _term(state, 0)
    visit = partial(
        draw_items,
        factors=factors,
        others=entry_products(factors, layout.rows),
        root=row_root(gram_of(factors, bounds, 0), term),
        scale=term.noise_precision * term.weights,
        seed=seed,
        sweep=number,
    )
    data = np.ascontiguousarray(engine.total(visit, operator.iadd).T)
    for t in range(1, len(bounds) - 1):
        first, stop = bounds[t], bounds[t + 1]
        term = _term(state, t)
        linear = mode_data(data, factors, layout.rows, t - 1)
        normals = row_normals(seed, number, first, stop - first, len(term.weights))
        factors[first:stop] = draw_mode(linear, row_root(gram_of(factors, bounds, t), term), term, normals)
    return TermSums(gram_of(factors, bounds), (linear * factors[first:stop]).sum(axis=0))


def sum_residual_squares(state: Terms, layout: Layout, engine: StackedEngine) -> float:
    """Sum over the observed entries of the squared residual."""
    visit: Callable[[Part], float] = partial(residual_squares, factors=state.factors, weights=state.weights)
    if engine.complete:
        visit = partial(
            residual_squares_complete, factors=state.factors, weights=state.weights,
            others=entry_products(state.factors, layout.rows),
        )  # fmt: skip
    return float(sum(engine.map(visit)))


def _term(state: Terms, mode: int) -> Term:
    return Term(state.weights, state.factor_precision[mode], state.noise_precision)
