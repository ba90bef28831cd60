r"""Shrinkage: the multiplicative gamma process of the Kruskal weights, and its concentration alpha.

    tau_kr = prod_{i<=r} delta_ki,   lambda_kr ~ N(0, 1/tau_kr),   delta_ki ~ Gamma(alpha, 1)

    delta_ki ~ Gamma(alpha + (R-i+1)/2,  1 + 1/2 sum_{r>=i} tau_kr^(-i) lambda_kr^2), i = 1..R in turn  (1.7)
    log p(alpha | .) = (alpha-1) A - n log Gamma(alpha),   A = log a + sum log delta,  n = b + RK        (1.8)

with tau^(-i) = tau / delta_i. Everything is kept as logarithms: tau reaches 1e6^R. The prior of alpha is cut
off at `LARGEST_ALPHA`, without which the paper's a = 1e6, b = 1e-6 is as good as improper and alpha drifts to
infinity when R = 1.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma, psi

from kruskal.errors import refuse_not_finite

LARGEST_ALPHA = 1e8
_SMALLEST_ALPHA = 1e-8


class AlphaPrior(NamedTuple):
    """p(alpha) ~ a^(alpha-1) Gamma(alpha)^-b on (0, LARGEST_ALPHA)."""

    a: float
    b: float


def delta_conditional(
    log_delta: np.ndarray, weights: np.ndarray, alpha: float, i: int
) -> tuple[float, np.ndarray]:
    """Shape and rates (K,) of level ``i`` (from 0) of delta, given ``log_delta`` and ``weights`` (K, R)."""
    rank = weights.shape[1]
    log_rest = np.cumsum(log_delta, axis=1)[:, i:] - log_delta[:, i : i + 1]
    rate = 1.0 + 0.5 * (np.exp(np.minimum(log_rest, 690.0)) * weights[:, i:] ** 2).sum(axis=1)
    return alpha + 0.5 * (rank - i), rate


def draw_delta(
    log_delta: np.ndarray, weights: np.ndarray, alpha: float, random: np.random.Generator
) -> np.ndarray:
    """New log delta (K, R): the levels of one atom one after the other, all atoms at once."""
    log_delta = log_delta.copy()
    for i in range(weights.shape[1]):
        shape, rate = delta_conditional(log_delta, weights, alpha, i)
        draw = random.standard_gamma(shape, size=len(rate))
        log_delta[:, i] = np.log(np.maximum(draw, 1e-300)) - np.log(rate)
    return log_delta


def alpha_statistics(log_delta: np.ndarray, prior: AlphaPrior) -> tuple[float, float]:
    """(A, n) of the conditional of alpha."""
    return math.log(prior.a) + float(log_delta.sum()), prior.b + log_delta.size


def log_alpha_density(alpha: float, statistics: tuple[float, float]) -> float:
    """log p(alpha | .) up to a constant."""
    total, count = statistics
    return (alpha - 1.0) * total - count * float(gammaln(alpha))


def inverse_digamma(value: float) -> float:
    """The alpha with digamma(alpha) = ``value``, by Newton's method."""
    if value > 700.0:
        return math.inf
    alpha = math.exp(value) + 0.5 if value >= -2.22 else -1.0 / (value - float(psi(1.0)))
    for _ in range(8):
        alpha -= (float(psi(alpha)) - value) / float(polygamma(1, alpha))
    return alpha


def alpha_mode(statistics: tuple[float, float]) -> float:
    """The maximum of the conditional of alpha (1.9)."""
    total, count = statistics
    return min(max(inverse_digamma(total / count), _SMALLEST_ALPHA), LARGEST_ALPHA)


def draw_alpha(
    alpha: float, statistics: tuple[float, float], random: np.random.Generator, repeats: int = 5
) -> float:
    """Slice sampling of log alpha (Neal 2003): leaves (1.8) exactly invariant.

    The density of log alpha has one mode, so the slice is an interval and any way of stepping out that ends
    outside of it is valid; doubling the step copes with a start far from the mode.
    """
    refuse_not_finite(statistics, "a draw of alpha")  # the slice would never end
    low_end, high_end = math.log(_SMALLEST_ALPHA), math.log(LARGEST_ALPHA)

    def height(log_alpha: float) -> float:
        return log_alpha_density(math.exp(log_alpha), statistics) + log_alpha

    position = min(max(math.log(alpha), low_end), high_end)
    for _ in range(repeats):
        level = height(position) - random.standard_exponential()
        low, high = position, position
        step = 1.0 / math.sqrt(1.0 + statistics[1])
        while low > low_end and height(low) > level:
            low, step = max(low - step, low_end), 2.0 * step
        step = 1.0 / math.sqrt(1.0 + statistics[1])
        while high < high_end and height(high) > level:
            high, step = min(high + step, high_end), 2.0 * step
        while True:
            proposal = low + (high - low) * random.random()
            if height(proposal) > level:
                position = proposal
                break
            if proposal < position:
                low = proposal
            else:
                high = proposal
    return math.exp(position)
