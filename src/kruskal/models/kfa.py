"""KFA: Kruskal-factor analysis. Every atom is a Kruskal tensor whose rank is inferred."""

from dataclasses import dataclass

import numpy as np

from kruskal.gibbs.atoms import AtomOptions
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.gibbs.start import kruskal_start
from kruskal.models.base import FactorModel, Global
from kruskal.models.kruskal_prior import PAPER_ALPHA, check_alpha_mode, draw_kruskal_prior
from kruskal.patches import Items
from kruskal.random import Stream, generator
from kruskal.tensor import RANK_TOLERANCE, compose, effective_ranks


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
        check_alpha_mode(self.alpha_mode)

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
        return draw_kruskal_prior(
            state, self.shape, self.alpha_mode, self.alpha_prior, self.moves, number > self.delay, seed,
            number,
        )  # fmt: skip

    def ranks(self, state: Global, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
        """(K,) rank of every atom at a relative tolerance."""
        return effective_ranks(state.weights, state.factors, self.shape, tolerance)
