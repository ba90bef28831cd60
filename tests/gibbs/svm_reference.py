"""The Bayesian support vector machine written down a second time: its joint density and exact draws from it.

The pseudo-likelihood L(y f) = exp(-2C max(0, 1 - y f)) is not normalised in y, so "data given parameters"
does not exist as such. But L is summable over the two values of y, and

    p(omega, beta, y) ~ p(omega) p(beta | omega) prod_n L(y_n f_n)

is a proper joint distribution over (omega, beta, y): its conditional given y is exactly the pseudo-posterior
that the sampler claims to draw from, and given beta the y_n are independent with odds L(f_n) / L(-f_n).
Its marginal of (omega, beta) is the prior times prod_n (L(f_n) + L(-f_n)), each factor of which is at most
1 + exp(-4C) (reached at |f| = 1): rejection from the prior draws it exactly. That is all that Geweke's joint
distribution test needs (see `tests.gibbs.geweke`).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln


class Machine(NamedTuple):
    """Features and hyper-parameters; ``gamma`` is (shape, rate) of omega, or None if it is fixed."""

    values: np.ndarray
    cost: float
    precision: float
    bias_precision: float
    gamma: tuple[float, float] | None


def log_loss(margins, cost):
    """log L(y f)."""
    return -2.0 * cost * np.maximum(0.0, 1.0 - margins)


def log_joint(machine: Machine, signs, weights, precision, scales) -> float:
    """log p(omega, beta, lambda, y) up to the constant of y, one term at a time."""
    total = 0.0
    for n, x in enumerate(machine.values):
        decision = sum(weights[j] * x[j] for j in range(len(x))) + weights[-1]
        shift = scales[n] + machine.cost * (1.0 - signs[n] * decision)
        total += -0.5 * math.log(2.0 * math.pi * scales[n]) - shift**2 / (2.0 * scales[n])
    for weight in weights[:-1]:
        total += 0.5 * math.log(precision / (2.0 * math.pi)) - 0.5 * precision * weight**2
    total += -0.5 * machine.bias_precision * weights[-1] ** 2
    if machine.gamma is not None:
        shape, rate = machine.gamma
        total += shape * math.log(rate) - gammaln(shape) + (shape - 1.0) * math.log(precision)
        total -= rate * precision
    return total


def draw_signs(decisions, cost, random):
    """y | beta."""
    log_odds = log_loss(decisions, cost) - log_loss(-decisions, cost)
    return np.where(random.random(decisions.shape) < expit(log_odds), 1.0, -1.0)


def draw_joint(machine: Machine, n_draws: int, random: np.random.Generator):
    """Independent (omega (S,), beta (S, d + 1), y (S, N)) from the joint distribution above."""
    n_items, n_features = machine.values.shape
    phi = np.hstack([machine.values, np.ones((n_items, 1))])
    kept: list[tuple] = []
    n_kept = 0
    while n_kept < n_draws:
        size = 4 * n_draws
        omega = np.full(size, machine.precision)
        if machine.gamma is not None:
            omega = random.gamma(machine.gamma[0], 1.0 / machine.gamma[1], size)
        std = np.column_stack(
            [
                np.repeat(omega[:, None] ** -0.5, n_features, axis=1),
                np.full(size, machine.bias_precision**-0.5),
            ]
        )
        beta = std * random.standard_normal((size, n_features + 1))
        f = beta @ phi.T
        both = np.exp(log_loss(f, machine.cost)) + np.exp(log_loss(-f, machine.cost))
        ratio = np.prod(both / (1.0 + math.exp(-4.0 * machine.cost)), axis=1)
        assert ratio.max() <= 1.0 + 1e-12
        accepted = random.random(size) < ratio
        kept.append((omega[accepted], beta[accepted], draw_signs(f[accepted], machine.cost, random)))
        n_kept += int(accepted.sum())
    omega, beta, signs = (np.concatenate(parts)[:n_draws] for parts in zip(*kept))
    return omega, beta, signs
