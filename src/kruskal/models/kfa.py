"""KFA: Kruskal-factor analysis. Every atom is a Kruskal tensor whose rank is inferred."""

from dataclasses import dataclass

import numpy as np

from kruskal.errors import InputError
from kruskal.gibbs.atoms import AtomOptions
from kruskal.gibbs.moves import balance_factors, move_alpha_delta, swap_terms
from kruskal.gibbs.shrinkage import AlphaPrior, alpha_mode, alpha_statistics, draw_alpha, draw_delta
from kruskal.gibbs.start import kruskal_start
from kruskal.models.base import FactorModel, Global
from kruskal.patches import Items
from kruskal.random import Stream, generator
from kruskal.tensor import compose, effective_ranks

ALPHA_MODES = ("sample", "map", "fixed")
PAPER_ALPHA = AlphaPrior(1e6, 1e-6)


@dataclass(frozen=True, kw_only=True)
class KFA(FactorModel):
    """Kruskal-factor analysis.

    Parameters
    ----------
    rank : number of Kruskal terms R an atom may have
    alpha_mode : ``sample``, ``map`` or ``fixed``;  alpha_start : its first value
    alpha_prior : (a, b)
    blocked : draw Kruskal coefficients in blocks over the terms, or one at a time
    fixed_weights : keep the weights lambda as they are (then delta and alpha are kept too)
    moves : whether to make the scale and swap moves between factors and weights

    See `FactorModel` for the others.
    """

    rank: int
    alpha_mode: str = "sample"
    alpha_start: float = 10.0
    alpha_prior: AlphaPrior = PAPER_ALPHA
    blocked: bool = True
    fixed_weights: bool = False
    moves: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha_mode not in ALPHA_MODES:
            raise InputError(f"alpha_mode must be one of {', '.join(ALPHA_MODES)}, not {self.alpha_mode!r}")

    def start(self, name: str, items: Items, seed: int) -> Global:
        """The global state in which a chain begins: delta = 1, nothing is shrunk before it is learned."""
        weights, factors = kruskal_start(
            name, items, self.n_atoms, self.rank, generator(seed, Stream.START, 0)
        )
        if self.fixed_weights:
            weights = np.ones_like(weights)
        return self.initial(
            compose(weights, factors, self.rows),
            items,
            weights=weights,
            factors=factors,
            log_delta=np.zeros_like(weights),
            alpha=float(self.alpha_start),
        )

    def atom_options(self) -> AtomOptions:
        """How atoms are drawn."""
        return AtomOptions(self.blocked, self.fixed_weights)

    def draw_atom_prior(self, state: Global, seed: int, number: int) -> Global:
        """Swap and scale moves inside the atoms, then delta and alpha."""
        if self.fixed_weights:
            return state
        weights, factors = state.weights.copy(), state.factors.copy()
        log_precision = np.cumsum(state.log_delta, axis=1)
        if self.moves:
            random = generator(seed, Stream.MOVES, number)
            swap_terms(weights, factors, log_precision, random)
            balance_factors(weights, factors, log_precision, self.shape, random)
        alpha, log_delta = state.alpha, state.log_delta
        if number > self.delay:
            log_delta = draw_delta(log_delta, weights, alpha, generator(seed, Stream.SHRINKAGE, number))
            statistics = alpha_statistics(log_delta, self.alpha_prior)
            random = generator(seed, Stream.CONCENTRATION, number)
            if self.alpha_mode == "sample":
                alpha = draw_alpha(alpha, statistics, random)
                if self.moves:
                    alpha, log_delta = move_alpha_delta(alpha, log_delta, weights, self.alpha_prior, random)
            elif self.alpha_mode == "map":
                alpha = alpha_mode(statistics)
        return state._replace(weights=weights, factors=factors, log_delta=log_delta, alpha=alpha)

    def ranks(self, state: Global, tolerance: float = 0.01) -> np.ndarray:
        """(K,) rank of every atom at a relative tolerance."""
        return effective_ranks(state.weights, state.factors, self.shape, tolerance)
