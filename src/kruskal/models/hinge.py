"""The search for the weights of greatest pseudo-posterior density, which knows how far it is from them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from kruskal.gibbs import hinge
from kruskal.gibbs.hinge_newton import floored_primal, line_minimum, newton_direction
from kruskal.gibbs.svm import Features, Prior, combination, decisions, draw_weights
from kruskal.random import Stream, generator

FIRST_FLOOR, FLOOR_FACTOR, LAST_FLOOR = 0.5, 0.15, 1e-9
"""The floor of |1 - y f|: in EM, from one round of Newton's method to the next, and where these end."""
NEWTON_STEPS = 25
"""Steps of a round at most; usually it ends before, at the exact minimum."""
FREE_PASSES = 10
"""Passes over the items inside their bounds for one pass over all: those at a bound mostly stay there."""


class Optimum(NamedTuple):
    """Weights (d + 1,), their objective (6.11), and its relative distance from the best at most."""

    weights: np.ndarray
    objective: float
    gap: float


class Search:
    """The best primal and the best dual point so far, and three ways to better ones.

    Parameters
    ----------
    features : of N items;  signs : (N,) +-1;  cost : C;  prior : of the weights
    tolerance : every way ends when the relative duality gap is at most this,
    stop : or when this is true after a step
    """

    def __init__(
        self,
        features: Features,
        signs: np.ndarray,
        cost: float,
        prior: Prior,
        tolerance: float,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.features, self.signs, self.cost, self.prior = features, signs, cost, prior
        self.tolerance, self.stop = tolerance, stop
        self.weights, self.upper = np.zeros(features.values.shape[1] + 1), 2.0 * cost * len(signs)
        self.amounts, self.lower = np.zeros(len(signs)), 0.0

    @property
    def result(self) -> Optimum:
        """The best so far."""
        return Optimum(self.weights, self.upper, hinge.relative_gap(self.upper, self.lower))

    def ended(self) -> bool:
        """Whether the best is good enough, or time is up."""
        return self.result.gap <= self.tolerance or self.stop()

    def em(self, steps: int) -> None:
        """EM from the best weights."""
        weights = self.weights
        gaps = self._gaps(weights)
        for _ in range(steps):
            if self.ended():
                return
            scales = hinge.expected_inverse_scales(gaps, self.cost, FIRST_FLOOR)
            weights = draw_weights(self.features, self.signs, scales, self.cost, self.prior, None)
            gaps = self._gaps(weights)
            self._offer(weights, gaps, hinge.dual_of_gaps(gaps, self.cost, FIRST_FLOOR))

    def newton(self) -> None:
        """Newton's method from the best weights, at ever lower floors.

        The objective is piecewise quadratic: a full step that ends on the piece where it began has found the
        minimum. A round begins with the step that would be right if the items near the margin were those of
        the round before, although the lower floor has moved them off their piece.
        """
        weights, floor = self.weights, FIRST_FLOOR
        gaps = self._gaps(weights)
        near = np.flatnonzero(np.abs(gaps) < floor)
        while floor > LAST_FLOOR and not self.ended():
            direction, change = self._newton_direction(weights, gaps, near, floor)
            ahead = weights + direction, gaps + change
            if self._floored(*ahead, floor) < self._floored(weights, gaps, floor):
                weights, gaps = ahead
            for _ in range(NEWTON_STEPS):
                near = np.flatnonzero(np.abs(gaps) < floor)
                direction, change = self._newton_direction(weights, gaps, near, floor)
                step = line_minimum(weights, direction, gaps, change, self.cost, floor, self.prior)
                weights, gaps = weights + step * direction, gaps + step * change
                same = np.array_equal(near, np.flatnonzero(np.abs(gaps) < floor))
                if self.stop() or (same and step == 1.0):
                    break
            gaps = self._gaps(weights)
            self._offer(weights, gaps, hinge.dual_of_gaps(gaps, self.cost, floor))
            floor *= FLOOR_FACTOR

    def _newton_direction(
        self, weights: np.ndarray, gaps: np.ndarray, near: np.ndarray, floor: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The step to the minimum if the items ``near`` are on the parabola, and the change of the gaps."""
        amounts = hinge.dual_of_gaps(gaps, self.cost, floor)
        amounts[near] = self.cost * (1.0 + gaps[near] / floor)
        gradient = self.prior.diagonal(len(weights) - 1) * weights
        gradient -= combination(self.features.values, amounts * self.signs)
        direction = newton_direction(self.features, gradient, near, self.cost / floor, self.prior)
        return direction, -self.signs * decisions(self.features.values, direction)

    def _floored(self, weights: np.ndarray, gaps: np.ndarray, floor: float) -> float:
        return floored_primal(weights, gaps, self.cost, floor, self.prior)

    def ascend(self, passes: int, seed: int, class_number: int) -> None:
        """Coordinate ascent from the best dual point; ``seed`` and ``class_number`` address the order."""
        values, amounts = self.features.values, self.amounts.copy()
        lengths = hinge.lengths(values, self.prior)
        for number in range(1, passes + 1):
            if self.ended():
                return
            random = generator(seed, Stream.SVM_ORDER, (class_number << 32) + number)
            weights = hinge.dual_weights(values, self.signs, amounts, self.prior)
            order = random.permutation(len(amounts))
            for _ in range(1 + FREE_PASSES):
                hinge.ascend(values, self.signs, amounts, weights, lengths, order, self.cost, *self.prior)
                free = np.flatnonzero((amounts > 0.0) & (amounts < 2.0 * self.cost))
                order = random.permutation(free)
            self._offer(weights, self._gaps(weights), amounts)

    def expand(self, features: Features) -> "Search":
        """The same points for all features, when this search was made in the coordinates of their factor F.

        The optimum lies in the span of the items: X = F B with orthonormal rows of B, so weights b of F are
        weights B^T b = X^T F^-T b of X, with the same decisions and the same length.
        """
        assert features.factor is not None
        amounts = solve_triangular(features.factor, self.weights[:-1], lower=True, trans="T")
        weights = combination(features.values, amounts)
        weights[-1] = self.weights[-1]
        whole = Search(features, self.signs, self.cost, self.prior, self.tolerance, self.stop)
        whole._offer(weights, whole._gaps(weights), self.amounts)
        return whole

    def _gaps(self, weights: np.ndarray) -> np.ndarray:
        return 1.0 - self.signs * decisions(self.features.values, weights)

    def _offer(self, weights: np.ndarray, gaps: np.ndarray, amounts: np.ndarray) -> None:
        """Take a primal and a feasible dual point if they are better than what is known."""
        upper = hinge.primal(weights, gaps, self.cost, self.prior)
        if upper < self.upper:
            self.weights, self.upper = weights.copy(), upper
        lower = hinge.dual(
            amounts, hinge.dual_weights(self.features.values, self.signs, amounts, self.prior), self.prior
        )
        if lower > self.lower:
            self.amounts, self.lower = amounts.copy(), lower
