r"""The maximum of the pseudo-posterior of the Bayesian support vector machine.

The weights that maximise it minimise a strictly convex objective; a bounded dual problem has the same
optimum, so every feasible dual point says how far a primal one can be from the best (Phi, y, C, P as in
`gibbs.svm`):

    primal(beta) = 1/2 beta^T P beta + 2C sum_n max(0, 1 - y_n f_n)                                     (6.11)
    dual(a)      = sum_n a_n - 1/2 v^T P^-1 v,   v = sum_n a_n y_n phi_n,   0 <= a_n <= 2C              (6.12)

EM. Given beta, E[1 / lambda_n] = 1 / (C |1 - y_n f_n|); the maximum over beta is Q^-1 h of (6.4). An item on
the margin would get infinite weight and never leave: |1 - y f| is floored, which replaces the hinge near its
kink by a parabola. The stationary point has

    a_n = C (1 + (1 - y_n f_n) / max(|1 - y_n f_n|, floor))                                            (6.13)

which is feasible: from it EM knows its distance to the optimum.

From there Newton's method goes on at ever lower floors (`gibbs.hinge_newton`).

Coordinate ascent on the dual, one item at a time in random order (Hsieh, Chang, Lin, Keerthi and Sundararajan
2008), costs N d per pass instead of N d^2:

    a_n <- min(max(a_n + (1 - y_n f_n) / (phi_n^T P^-1 phi_n), 0), 2C),   beta = P^-1 v                 (6.14)
"""

import math

import numpy as np

from kruskal.gibbs.svm import ROWS, Prior, combination
from kruskal.kernel import kernel


def primal(weights: np.ndarray, gaps: np.ndarray, cost: float, prior: Prior) -> float:
    """The objective (6.11) of weights whose gaps 1 - y f are ``gaps``."""
    squares = prior.weights * weights[:-1] @ weights[:-1] + prior.bias * weights[-1] ** 2
    return float(0.5 * squares + 2.0 * cost * np.maximum(gaps, 0.0).sum())


def dual(amounts: np.ndarray, weights: np.ndarray, prior: Prior) -> float:
    """The bound (6.12), given the weights P^-1 v of the dual variables ``amounts``."""
    squares = prior.weights * weights[:-1] @ weights[:-1] + prior.bias * weights[-1] ** 2
    return float(amounts.sum() - 0.5 * squares)


def dual_weights(values: np.ndarray, signs: np.ndarray, amounts: np.ndarray, prior: Prior) -> np.ndarray:
    """P^-1 v (d + 1,)."""
    return combination(values, amounts * signs) / prior.diagonal(values.shape[1])


def expected_inverse_scales(gaps: np.ndarray, cost: float, floor: float) -> np.ndarray:
    """E[1 / lambda] given the gaps."""
    return 1.0 / (cost * np.maximum(np.abs(gaps), floor))


def dual_of_gaps(gaps: np.ndarray, cost: float, floor: float) -> np.ndarray:
    """A feasible dual point for weights with these gaps (6.13)."""
    return cost * (1.0 + gaps / np.maximum(np.abs(gaps), floor))


def lengths(values: np.ndarray, prior: Prior) -> np.ndarray:
    """phi_n^T P^-1 phi_n (N,)."""
    out = np.empty(len(values))
    for first in range(0, len(values), ROWS):
        rows = values[first : first + ROWS].astype(np.float64, copy=False)
        out[first : first + ROWS] = np.einsum("nd,nd->n", rows, rows) / prior.weights
    return out + 1.0 / prior.bias


@kernel
def ascend(values, signs, amounts, weights, lengths, order, cost, weight_precision, bias_precision):
    """One pass of (6.14) over the items ``order``; changes ``amounts`` (N,) and ``weights`` (d + 1,)."""
    n_features = values.shape[1]
    for position in range(order.shape[0]):
        n = order[position]
        decision = weights[n_features]
        for j in range(n_features):
            decision += weights[j] * values[n, j]
        old = amounts[n]
        new = min(max(old + (1.0 - signs[n] * decision) / lengths[n], 0.0), 2.0 * cost)
        if new != old:
            amounts[n] = new
            change = (new - old) * signs[n]
            weights[n_features] += change / bias_precision
            change /= weight_precision
            for j in range(n_features):
                weights[j] += change * values[n, j]


def relative_gap(upper: float, lower: float) -> float:
    """(primal - dual) / primal: an upper bound of the relative distance from the optimum."""
    return max(upper - lower, 0.0) / upper if upper > 0.0 else math.inf
