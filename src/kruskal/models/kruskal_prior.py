"""What governs Kruskal atoms, drawn given their weights and factors: the same for all such models."""

from typing import Any, TypeVar

import numpy as np

from kruskal.errors import one_of
from kruskal.gibbs.moves import balance_factors, move_alpha_delta, swap_terms
from kruskal.gibbs.shrinkage import AlphaPrior, alpha_mode, alpha_statistics, draw_alpha, draw_delta
from kruskal.random import Stream, generator

State = TypeVar("State", bound=Any)
ALPHA_MODES = ("sample", "map", "fixed")
PAPER_ALPHA = AlphaPrior(1e6, 1e-6)
PROPER_ALPHA = AlphaPrior(3.0, 1.0)
"""With its mode at 3.5. The paper's has no end: where terms are few, alpha grows until every atom has one."""


def check_alpha_mode(mode: str) -> None:
    """An InputError unless ``mode`` is one of `ALPHA_MODES`."""
    one_of("alpha_mode", mode, ALPHA_MODES)


def draw_kruskal_prior(
    state: State, shape: tuple[int, ...], mode: str, prior: AlphaPrior, moves: bool, learn: bool, seed: int,
    number: int,
) -> State:  # fmt: skip
    """Swap and scale moves inside the atoms if ``moves``, then delta and alpha if ``learn``.

    ``state`` is a NamedTuple with weights (K, R), factors (K, sum m_t, R), log_delta (K, R) and alpha.
    """
    weights, factors = state.weights.copy(), state.factors.copy()
    log_precision = np.cumsum(state.log_delta, axis=1)
    if moves:
        random = generator(seed, Stream.MOVES, number)
        swap_terms(weights, factors, log_precision, random)
        balance_factors(weights, factors, log_precision, shape, random)
    state = state._replace(weights=weights, factors=factors)
    return draw_shrinkage(state, mode, prior, moves, seed, number) if learn else state


def draw_shrinkage(state: State, mode: str, prior: AlphaPrior, moves: bool, seed: int, number: int) -> State:
    """delta, then alpha as ``mode`` says, and, where it is sampled and if ``moves``, both along their ridge.

    ``state`` is a NamedTuple with weights and log_delta, (K, R) or, of a single tensor, (R,), and alpha.
    """
    weights, log_delta = np.atleast_2d(state.weights, state.log_delta)
    log_delta = draw_delta(log_delta, weights, state.alpha, generator(seed, Stream.SHRINKAGE, number))
    alpha, statistics = state.alpha, alpha_statistics(log_delta, prior)
    random = generator(seed, Stream.CONCENTRATION, number)
    if mode == "sample":
        alpha = draw_alpha(alpha, statistics, random)
        if moves:
            alpha, log_delta = move_alpha_delta(alpha, log_delta, weights, prior, random)
    elif mode == "map":
        alpha = alpha_mode(statistics)
    return state._replace(log_delta=log_delta.reshape(state.log_delta.shape), alpha=alpha)
