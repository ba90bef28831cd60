"""MGP-CP: one Kruskal tensor for a whole array, or for all items stacked, with an inferred number of terms."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from kruskal.errors import InputError
from kruskal.gibbs.moves import move_alpha_delta, swap_terms
from kruskal.gibbs.precision import GammaPrior, draw_precision
from kruskal.gibbs.rows import Term, TermSums, row_normals
from kruskal.gibbs.rows_complete import (
    draw_items, draw_mode, entry_products, expect_items, gram_of, mode_data, residual_squares_complete, row_root,
)  # fmt: skip
from kruskal.gibbs.rows_masked import close_rows, draw_rows, residual_squares
from kruskal.gibbs.shrinkage import AlphaPrior, alpha_mode, alpha_statistics, draw_alpha, draw_delta
from kruskal.gibbs.stack import Part
from kruskal.gibbs.statistics import sum_in_order
from kruskal.gibbs.term_start import start_factors
from kruskal.gibbs.terms import (
    balance_terms, draw_factor_precisions, draw_weights, factor_squares, scale_terms,
)  # fmt: skip
from kruskal.models.base import VAGUE, SweepReport
from kruskal.models.kfa import ALPHA_MODES
from kruskal.patches import Items, Slab
from kruskal.random import Stream, generator
from kruskal.tensor import entry_rows

T = TypeVar("T")
ALPHA_PRIOR = AlphaPrior(3.0, 1.0)
RANK_TOLERANCE = 0.01


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

    def map(self, function: Callable[[Part], T]) -> list[T]:
        """``function`` of every part, in the order of the parts."""
        ...


@dataclass(frozen=True, kw_only=True)
class MGPCPModel:
    """The multiplicative gamma process Kruskal decomposition.

    Parameters
    ----------
    shape : shape of one item;  sizes : of the modes of the stack, see `kruskal.gibbs.stack.stack_shape`
    rank : number of terms R at most
    alpha_mode : ``sample``, ``map`` or ``fixed``;  alpha_start : its first value
    alpha_prior : (a, b);  factor_prior : of omega;  noise_prior : of gamma_eps
    delay : sweeps before what governs the terms is learned
    """

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    rank: int
    alpha_mode: str = "sample"
    alpha_start: float = 3.0
    alpha_prior: AlphaPrior = ALPHA_PRIOR
    factor_prior: GammaPrior = VAGUE
    noise_prior: GammaPrior = VAGUE
    delay: int = 5
    moves: bool = True
    bounds: list[int] = field(init=False, repr=False, compare=False)
    rows: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.alpha_mode not in ALPHA_MODES:
            raise InputError(f"alpha_mode must be one of {', '.join(ALPHA_MODES)}, not {self.alpha_mode!r}")
        bounds = [0, *np.cumsum(self.sizes).tolist()]
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "rows", entry_rows(self.sizes[1:]) + self.sizes[0])

    @property
    def n_atoms(self) -> int:
        """Number of terms R."""
        return self.rank

    def start(self, name: str, items: Items, seed: int) -> Terms:
        """The state in which a chain begins: factors with entries of about one, delta = 1."""
        weights, factors = start_factors(name, items, self.sizes, self.rank, generator(seed, Stream.START, 0))
        return Terms(
            weights, factors, np.ones((len(self.sizes), self.rank)), np.zeros(self.rank),
            float(self.alpha_start), 100.0,
        )  # fmt: skip

    def sweep(
        self, state: Terms, engine: StackedEngine, seed: int, number: int
    ) -> tuple[Terms, SweepReport]:
        """One exact Gibbs sweep: rows mode by mode, weights, scales, precisions, shrinkage."""
        factors = state.factors.copy()
        draw = self._draw_complete if engine.complete else self._draw_masked
        sums = draw(state, factors, engine, seed, number)
        weights = draw_weights(
            sums, np.cumsum(state.log_delta), state.noise_precision,
            generator(seed, Stream.TERM_WEIGHTS, number).standard_normal(self.rank),
        )  # fmt: skip
        state = state._replace(weights=weights, factors=factors)
        if self.moves:
            state = self._move(state, sums, seed, number)
        squares = self._residual_squares(state, engine)
        state = state._replace(
            noise_precision=draw_precision(
                engine.n_observed, squares, self.noise_prior, generator(seed, Stream.NOISE_PRECISION, number)
            )
        )
        if number > self.delay:
            state = self._draw_prior(state, seed, number)
        active = self.active(state, engine.n_observed)
        return state, SweepReport(active * engine.n_items, squares, float(active.sum()))

    def _term(self, state: Terms, mode: int) -> Term:
        return Term(state.weights, state.factor_precision[mode], state.noise_precision)

    def _draw_masked(
        self, state: Terms, factors: np.ndarray, engine: StackedEngine, seed: int, number: int
    ) -> TermSums:
        """The rows of every mode in turn, ``factors`` in place; returns what the weights need."""
        for t, (first, stop) in enumerate(zip(self.bounds, self.bounds[1:])):
            term = self._term(state, t)
            drawn = engine.map(
                partial(
                    _of_mode, mode=t, offset=first, factors=factors, term=term, seed=seed, sweep=number
                )
            )
            factors[first:stop], sums = close_rows(drawn, first, stop - first, term, seed, number)
        return sums

    def _draw_complete(
        self, state: Terms, factors: np.ndarray, engine: StackedEngine, seed: int, number: int
    ) -> TermSums:
        """The same when nothing is missing: one visit to the data."""
        term = self._term(state, 0)
        parts = engine.map(
            partial(
                draw_items, others=entry_products(factors, self.rows),
                root=row_root(gram_of(factors, self.bounds, 0), term),
                scale=term.noise_precision * term.weights, seed=seed, sweep=number,
            )
        )  # fmt: skip
        factors[: self.sizes[0]] = np.concatenate([part.rows for part in parts])
        data = parts[0].data
        for part in parts[1:]:
            data += part.data
        data = np.ascontiguousarray(data.T)
        for t in range(1, len(self.sizes)):
            first, stop = self.bounds[t], self.bounds[t + 1]
            linear = mode_data(data, factors, self.rows, t - 1)
            root = row_root(gram_of(factors, self.bounds, t), self._term(state, t))
            normals = row_normals(seed, number, first, stop - first, self.rank)
            factors[first:stop] = draw_mode(linear, root, self._term(state, t), normals)
        last = factors[self.bounds[-2] :]
        return TermSums(gram_of(factors, self.bounds), (linear * last).sum(axis=0))

    def _residual_squares(self, state: Terms, engine: StackedEngine) -> float:
        visit: Callable[[Part], float] = partial(
            residual_squares, factors=state.factors, weights=state.weights
        )
        if engine.complete:
            visit = partial(
                residual_squares_complete, factors=state.factors, weights=state.weights,
                others=entry_products(state.factors, self.rows),
            )  # fmt: skip
        return float(sum(engine.map(visit)))

    def _move(self, state: Terms, sums: TermSums, seed: int, number: int) -> Terms:
        """Scales of the terms, scales between weights and factors, order of the terms."""
        weights, precision = state.weights.copy(), state.factor_precision.copy()
        log_precision = np.cumsum(state.log_delta)
        random = generator(seed, Stream.TERM_SCALES, number)
        scales = scale_terms(sums, weights, precision, state.noise_precision, self.factor_prior, random)
        scales *= balance_terms(weights, precision, log_precision, self.factor_prior, random)
        factors = state.factors * np.repeat(scales, self.sizes, axis=0)
        stacked = np.concatenate([factors, precision])  # swapped terms take their precisions along
        swap_terms(weights[None], stacked[None], log_precision[None], generator(seed, Stream.MOVES, number))
        return state._replace(
            weights=weights, factors=stacked[: len(factors)], factor_precision=stacked[len(factors) :]
        )

    def _draw_prior(self, state: Terms, seed: int, number: int) -> Terms:
        """omega, delta and alpha."""
        precision = draw_factor_precisions(
            factor_squares(state.factors, self.bounds), self.sizes, self.factor_prior,
            generator(seed, Stream.TERM_PRECISION, number),
        )  # fmt: skip
        alpha, weights = state.alpha, state.weights[None]
        log_delta = draw_delta(
            state.log_delta[None], weights, alpha, generator(seed, Stream.SHRINKAGE, number)
        )
        statistics = alpha_statistics(log_delta, self.alpha_prior)
        random = generator(seed, Stream.CONCENTRATION, number)
        if self.alpha_mode == "sample":
            alpha = draw_alpha(alpha, statistics, random)
            alpha, log_delta = move_alpha_delta(alpha, log_delta, weights, self.alpha_prior, random)
        elif self.alpha_mode == "map":
            alpha = alpha_mode(statistics)
        return state._replace(factor_precision=precision, log_delta=log_delta[0], alpha=alpha)

    def strengths(self, state: Terms) -> np.ndarray:
        """(R,) Frobenius norm of every term: |lambda_r| prod_t ||u_r^(t)||."""
        return np.abs(state.weights) * np.sqrt(factor_squares(state.factors, self.bounds)).prod(axis=0)

    def active(self, state: Terms, n_observed: int) -> np.ndarray:
        """(R,) which terms count: `RANK_TOLERANCE` of the strongest, and more than noise alone can be.

        A term that is fitted to noise of standard deviation sigma at n of the N entries has a norm of about
        sigma sqrt(N / n) sum_t sqrt(m_t).
        """
        strengths = self.strengths(state)
        spread = math.sqrt(math.prod(self.sizes) / n_observed / state.noise_precision)
        edge = spread * sum(math.sqrt(size) for size in self.sizes)
        return strengths > max(RANK_TOLERANCE * strengths.max(), edge)

    def expect(self, state: Terms, engine: StackedEngine) -> Sequence[Slab]:
        """The reassembled array of this draw, part by part."""
        others = entry_products(state.factors, self.rows)
        return engine.map(partial(expect_items, factors=state.factors, weights=state.weights, others=others))


def _of_mode(part: Part, mode: int, **options):
    return part.modes[mode], draw_rows(part, mode, **options)
