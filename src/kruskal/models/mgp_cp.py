"""MGP-CP: one Kruskal tensor for a whole array, or for all items stacked, with an inferred rank."""

import math
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from kruskal.gibbs.moves import swap_terms
from kruskal.gibbs.precision import GammaPrior, annealed_cap, draw_precision
from kruskal.gibbs.rows_complete import entry_products, expect_items
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.gibbs.stack import mean_square
from kruskal.gibbs.term_start import start_factors
from kruskal.gibbs.terms import (
    balance_terms,
    draw_factor_precisions,
    draw_weights,
    factor_squares,
    scale_terms,
)
from kruskal.models.base import DELAY, VAGUE, SweepReport
from kruskal.models.kruskal_prior import PROPER_ALPHA, check_alpha_mode, draw_shrinkage
from kruskal.models.term_rows import (
    Layout,
    StackedEngine,
    Terms,
    draw_rows_complete,
    draw_rows_masked,
    sum_residual_squares,
)
from kruskal.patches import Items, Slab
from kruskal.random import Stream, generator
from kruskal.tensor import RANK_TOLERANCE

_CLEAN = 1e3


@dataclass(frozen=True, kw_only=True)
class MGPCPModel:
    """The multiplicative gamma process Kruskal decomposition.

    Parameters
    ----------
    item_shape : shape of one item of the stack
    sizes : of the modes of the stack, see `kruskal.gibbs.stack.stack_shape`
    rank : number of terms R at most
    alpha_mode : ``sample``, ``map`` or ``fixed``;  alpha_start : its first value
    alpha_prior : (a, b);  factor_prior : of omega;  noise_prior : of gamma_eps
    delay : sweeps before what governs the terms is learned
    annealing : sweeps in which the noise may not fall below a bound that sinks from the size of the data to a
        fortieth of it: strong terms are found first, and no second term shares what one can explain
    moves : whether to make the moves between weights, factors and their precisions
    """

    item_shape: tuple[int, ...]
    sizes: tuple[int, ...]
    rank: int
    alpha_mode: str = "sample"
    alpha_start: float = 3.0
    alpha_prior: AlphaPrior = PROPER_ALPHA
    factor_prior: GammaPrior = VAGUE
    noise_prior: GammaPrior = VAGUE
    delay: int = DELAY
    annealing: int = 30
    moves: bool = True
    layout: Layout = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_alpha_mode(self.alpha_mode)
        object.__setattr__(self, "layout", Layout.of(self.sizes))

    @property
    def n_atoms(self) -> int:
        """Number of terms R."""
        return self.rank

    def start(self, name: str, items: Items, seed: int) -> Terms:
        """The state in which a chain begins: factors with entries of about one, delta = 1.

        Without annealing the data are taken to be clean: noise of three percent of their range.
        """
        weights, factors = start_factors(name, items, self.sizes, self.rank, generator(seed, Stream.START, 0))
        return Terms(
            weights, factors, np.ones((len(self.sizes), self.rank)), np.zeros(self.rank),
            float(self.alpha_start), 1.0 / mean_square(items) if self.annealing else _CLEAN,
        )  # fmt: skip

    def sweep(self, state: Terms, engine: StackedEngine, seed: int, number: int) -> tuple[Terms, SweepReport]:
        """One exact Gibbs sweep: rows mode by mode, weights, scales, precisions, shrinkage."""
        factors = state.factors.copy()
        draw = draw_rows_complete if engine.complete else draw_rows_masked
        sums = draw(state, factors, self.layout, engine, seed, number)
        precision = state.factor_precision.copy()
        if self.moves:
            random = generator(seed, Stream.TERM_SCALES, number)
            scales = scale_terms(
                sums, precision, np.cumsum(state.log_delta), state.noise_precision, self.factor_prior, random
            )
            factors *= np.repeat(scales, self.sizes, axis=0)
        weights = draw_weights(
            sums, np.cumsum(state.log_delta), state.noise_precision,
            generator(seed, Stream.TERM_WEIGHTS, number).standard_normal(self.rank),
        )  # fmt: skip
        state = state._replace(weights=weights, factors=factors, factor_precision=precision)
        if self.moves:
            state = self._move(state, seed, number)
        squares = sum_residual_squares(state, self.layout, engine)
        noise_precision = draw_precision(
            engine.n_observed, squares, self.noise_prior, generator(seed, Stream.NOISE_PRECISION, number)
        )
        cap = annealed_cap(number, self.annealing, 1.0 / engine.mean_square)
        state = state._replace(noise_precision=min(noise_precision, cap))
        if number > self.delay:
            state = self._draw_prior(state, seed, number)
        # terms change places along the chain: what is counted is the strongest one, the next one, and so on
        active = np.sort(self.active(state, engine.n_observed))[::-1]
        return state, SweepReport(active * engine.n_items, squares, float(active.sum()))

    def _move(self, state: Terms, seed: int, number: int) -> Terms:
        """Scales between weights and factors, order of the terms."""
        weights, precision = state.weights.copy(), state.factor_precision.copy()
        log_precision = np.cumsum(state.log_delta)
        random = generator(seed, Stream.MOVES, number)
        scales = balance_terms(weights, precision, log_precision, self.factor_prior, random)
        factors = state.factors * np.repeat(scales, self.sizes, axis=0)
        stacked = np.concatenate([factors, precision])  # swapped terms take their precisions along
        swap_terms(weights[None], stacked[None], log_precision[None], random)
        return state._replace(
            weights=weights, factors=stacked[: len(factors)], factor_precision=stacked[len(factors) :]
        )

    def _draw_prior(self, state: Terms, seed: int, number: int) -> Terms:
        """omega, delta and alpha."""
        precision = draw_factor_precisions(
            factor_squares(state.factors, self.layout.bounds), self.sizes, self.factor_prior,
            generator(seed, Stream.TERM_PRECISION, number),
        )  # fmt: skip
        state = state._replace(factor_precision=precision)
        return draw_shrinkage(state, self.alpha_mode, self.alpha_prior, self.moves, seed, number)

    def strengths(self, state: Terms) -> np.ndarray:
        """(R,) Frobenius norm |lambda_r| prod_t ||u_r^(t)|| of every term; of matrices the singular values.

        The terms of a matrix are not unique, as those of higher order are: turned into each other they make
        the same matrix, and only the singular values tell its rank.
        """
        if len(self.sizes) == 2:
            return self.sorted_terms(state)[0]
        return np.abs(state.weights) * np.sqrt(factor_squares(state.factors, self.layout.bounds)).prod(axis=0)

    def active(self, state: Terms, n_observed: int) -> np.ndarray:
        """(R,) which terms count: `RANK_TOLERANCE` of the strongest, and more than noise alone can be.

        A term that is fitted to noise of standard deviation sigma at n of the N entries has a norm of about
        sigma sqrt(N / n) sum_t sqrt(m_t).
        """
        strengths = self.strengths(state)
        spread = math.sqrt(math.prod(self.sizes) / n_observed / state.noise_precision)
        edge = spread * sum(math.sqrt(size) for size in self.sizes)
        return strengths > max(RANK_TOLERANCE * strengths.max(), edge)

    def expect(self, state: Terms, engine: StackedEngine) -> list[Slab]:
        """The reassembled array of this draw, part by part."""
        return engine.map(
            partial(expect_items, factors=state.factors, weights=state.weights, rows=self.layout.rows)
        )

    def watched(self, state: Terms, report: SweepReport) -> dict[str, float]:
        """What the trace holds of a sweep: every item uses all terms that count."""
        return {
            "noise_std": state.noise_precision**-0.5,
            "code_std": 0.0,
            "active_per_item": report.active_per_item,
            "atoms_used": report.active_per_item,
            "alpha": float(state.alpha),
        }

    def atoms(self, state: Terms) -> np.ndarray:
        """(R, ..) what every term adds to an item where its row of the first mode has the typical size."""
        typical = np.sqrt((state.factors[: self.sizes[0]] ** 2).mean(axis=0))
        atoms = entry_products(state.factors, self.layout.rows) * (typical * state.weights)
        return np.ascontiguousarray(atoms.T).reshape(-1, *self.item_shape)

    def ranks(self, state: Terms, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
        """(R,) of -1: the terms have no rank of their own, their number is the rank."""
        return np.full(self.rank, -1)

    def sorted_terms(self, state: Terms) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Weights (R,) and factors (m_t, R) of every mode with columns of unit norm, the strongest first.

        The terms of a matrix are its singular pairs.
        """
        modes = [state.factors[first:stop] for first, stop in pairwise(self.layout.bounds)]
        if len(modes) == 2:
            (left, one), (right, other) = (np.linalg.qr(mode) for mode in modes)
            turned, values, back = np.linalg.svd((one * state.weights) @ other.T)
            return values, (left @ turned, right @ back.T)
        norms = [np.maximum(np.linalg.norm(mode, axis=0), 1e-300) for mode in modes]
        weights = state.weights * math.prod(norms)
        order = np.argsort(-np.abs(weights), kind="stable")
        return weights[order], tuple((mode / norm)[:, order] for mode, norm in zip(modes, norms))
