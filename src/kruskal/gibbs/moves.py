r"""Moves along directions in which the likelihood does not change.

Plain Gibbs steps creep along these ridges; a draw of the scale from its own conditional jumps along them.
All are exact: generalised Gibbs steps (Liu and Sabatti 2000) or Metropolis steps.

    factor <-> weight:  y ~ GIG((m_t - 1)/2, m_t ||u||^2, tau lambda^2);  u * sqrt(y), lambda / sqrt(y)
    swap terms r, r':   accept with min(1, exp(-(tau_r - tau_r')(lambda_r'^2 - lambda_r^2) / 2))
    (alpha, delta):     alpha * c, delta * c, log c normal, Metropolis

GIG(p, a, b) has density ~ y^(p-1) exp(-(a y + b / y) / 2). The scale between an atom and its codes is left
alone on purpose: drawing it too was measured to slow learning (docs/choices.md).
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln

from kruskal.gibbs.shrinkage import LARGEST_ALPHA, AlphaPrior


def draw_log_scale(p, a, b, random: np.random.Generator) -> np.ndarray:
    """One Metropolis step from y = 1 for y ~ GIG(p, a, b); returns log y (0 where the proposal is refused).

    log y has the log-concave density p t - (a e^t + b e^-t) / 2; the proposal is the normal at its mode with
    its curvature, widened by a fifth. Where a or b is 0 there is nothing to balance and y stays 1.
    """
    p, a, b = np.broadcast_arrays(np.asarray(p, float), a, b)
    sound = (a > 1e-290) & (b > 1e-290) & np.isfinite(a) & np.isfinite(b)
    a, b = np.where(sound, a, 1.0), np.where(sound, b, 1.0)
    root = np.hypot(p, np.sqrt(a) * np.sqrt(b))
    # the mode y = (p + root) / a = b / (root - p): the sum that does not cancel
    larger = np.abs(p) + root
    mode = np.where(p >= 0, np.log(larger) - np.log(a), np.log(b) - np.log(larger))
    width = 1.2 / np.sqrt(np.maximum(root, 1e-12))
    proposal = mode + width * random.standard_normal(p.shape)

    def log_ratio(t):
        target = p * t - 0.5 * (a * np.exp(np.minimum(t, 690.0)) + b * np.exp(np.minimum(-t, 690.0)))
        return target + 0.5 * ((t - mode) / width) ** 2

    accepted = np.log(random.random(p.shape)) < log_ratio(proposal) - log_ratio(np.zeros_like(proposal))
    return np.where(sound & accepted, proposal, 0.0)


def balance_factors(
    weights: np.ndarray, factors: np.ndarray, log_precision: np.ndarray, sizes: Sequence[int],
    random: np.random.Generator,
) -> None:  # fmt: skip
    """Move scale between each mode vector and its weight, in place; (K, R) and (K, sum m_t, R)."""
    start = 0
    for size in sizes:
        vectors = factors[:, start : start + size]
        prior = np.exp(np.minimum(log_precision, 690.0)) * weights**2
        log_y = draw_log_scale(0.5 * (size - 1), size * (vectors**2).sum(axis=1), prior, random)
        vectors *= np.exp(0.5 * log_y)[:, None, :]
        weights *= np.exp(-0.5 * log_y)
        start += size


def swap_terms(
    weights: np.ndarray, factors: np.ndarray, log_precision: np.ndarray, random: np.random.Generator
) -> None:
    """Propose to swap neighbouring Kruskal terms of every atom, in place: strong ones come to the front."""
    precision = np.exp(np.minimum(log_precision, 690.0))
    for r in range(weights.shape[1] - 1):
        gain = weights[:, r + 1] ** 2 - weights[:, r] ** 2
        log_ratio = -0.5 * (precision[:, r] - precision[:, r + 1]) * gain
        swapped = np.log(random.random(len(weights))) < log_ratio
        for array in (weights[:, None, :], factors):
            array[swapped, :, r], array[swapped, :, r + 1] = (
                array[swapped, :, r + 1],
                array[swapped, :, r].copy(),
            )


def alpha_delta_log_ratio(
    log_c: float, alpha: float, log_delta: np.ndarray, weights: np.ndarray, prior: AlphaPrior
) -> float:
    """Log acceptance ratio of (alpha, delta) -> (c alpha, c delta) with the weights kept."""
    n_atoms, rank = weights.shape
    c, scaled = math.exp(log_c), math.exp(log_c) * alpha
    if scaled >= LARGEST_ALPHA:
        return -math.inf
    total, size = float(log_delta.sum()), log_delta.size
    with np.errstate(over="ignore"):
        gammas = (
            (scaled - 1.0) * (total + size * log_c) - c * np.exp(log_delta).sum() - size * gammaln(scaled)
            - (alpha - 1.0) * total + np.exp(log_delta).sum() + size * gammaln(alpha)
        )  # fmt: skip
    power = np.arange(1, rank + 1)
    quadratic = np.exp(np.minimum(np.cumsum(log_delta, axis=1), 690.0)) * weights**2
    slab = n_atoms * 0.5 * power.sum() * log_c - 0.5 * (np.expm1(power * log_c) * quadratic).sum()
    hyper = (scaled - alpha) * math.log(prior.a) - prior.b * float(gammaln(scaled) - gammaln(alpha))
    return float(gammas + slab + hyper + (size + 1) * log_c)


def move_alpha_delta(
    alpha: float, log_delta: np.ndarray, weights: np.ndarray, prior: AlphaPrior, random: np.random.Generator
) -> tuple[float, np.ndarray]:
    """One Metropolis step along the ridge of alpha and delta, of a random size (0.5 to 0.005)."""
    log_c = 0.5 * random.normal() * 10.0 ** (-2.0 * random.random())
    if math.log(random.random()) < alpha_delta_log_ratio(log_c, alpha, log_delta, weights, prior):
        return alpha * math.exp(log_c), log_delta + log_c
    return alpha, log_delta
