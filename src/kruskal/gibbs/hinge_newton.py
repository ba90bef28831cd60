r"""Newton's method on the floored hinge of EM (see `gibbs.hinge`).

With floor e > 0, EM minimises the smooth, piecewise quadratic objective (g_n = 1 - y_n f_n)

    1/2 beta^T P beta + C sum_n (g_n + H(g_n)),   H(g) = |g| if |g| > e, else (g^2 / e + e) / 2        (6.19)

but needs ever more steps for it as e falls. Its gradient is P beta - sum_n a_n y_n phi_n with a_n of (6.13),
its Hessian P + (C / e) sum over |g_n| < e of phi_n phi_n^T: few items count, so a Newton step is cheap, and
with an exact line search a few of them end at the minimum (Chapelle 2007).
"""

import numpy as np

from kruskal.gibbs.hinge import dual_of_gaps, primal
from kruskal.gibbs.svm import GRAM_ROWS, Features, Prior, combination, decisions

HALVINGS, FLAT = 40, 1e-9
"""Halvings of a step at most; a slope of FLAT times the first is 0, up to rounding."""


def floored_primal(weights: np.ndarray, gaps: np.ndarray, cost: float, floor: float, prior: Prior) -> float:
    """The objective (6.19)."""
    size = np.abs(gaps)
    bend = np.where(size > floor, size, 0.5 * (gaps * gaps / floor + floor))
    return primal(weights, np.zeros(1), cost, prior) + cost * float((gaps + bend).sum())


def newton_direction(
    features: Features, gradient: np.ndarray, near: np.ndarray, curvature: float, prior: Prior
) -> np.ndarray:
    """-(P + curvature Phi_A^T Phi_A)^-1 gradient (d + 1,), for the items A with indices ``near``."""
    values, products = features.values, features.products
    diagonal = prior.diagonal(values.shape[1])
    if len(near) == 0:
        return -gradient / diagonal
    if len(near) >= len(diagonal):
        hessian = np.diag(diagonal)
        for first in range(0, len(near), GRAM_ROWS):
            rows = _rows(values, near[first : first + GRAM_ROWS])
            hessian += curvature * (rows.T @ rows)
        return -np.linalg.solve(hessian, gradient)
    if products is None:
        rows = _rows(values, near)
        inner = (rows / diagonal) @ rows.T
    else:
        inner = products[np.ix_(near, near)] / prior.weights + 1.0 / prior.bias
    inner.flat[:: len(near) + 1] += 1.0 / curvature
    steepest = gradient / diagonal
    amounts = np.linalg.solve(inner, decisions(values[near], steepest))
    return combination(values[near], amounts) / diagonal - steepest


def line_minimum(
    weights: np.ndarray,
    direction: np.ndarray,
    gaps: np.ndarray,
    change: np.ndarray,
    cost: float,
    floor: float,
    prior: Prior,
) -> float:
    """The t in (0, 1] with the smallest (6.19) at weights + t direction, where gaps are gaps + t change."""
    diagonal = prior.diagonal(len(weights) - 1)
    linear, square = direction @ (diagonal * weights), direction @ (diagonal * direction)

    def slope(t: float) -> float:
        return float(linear + t * square + dual_of_gaps(gaps + t * change, cost, floor) @ change)

    if slope(1.0) <= FLAT * abs(slope(0.0)):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if slope(middle) <= 0.0:
            low = middle
        else:
            high = middle
        if high - low < 1e-3 * high:
            break
    return low if low > 0.0 else high


def _rows(values: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Rows of Phi."""
    rows = np.ones((len(near), values.shape[1] + 1))
    rows[:, :-1] = values[near]
    return rows
