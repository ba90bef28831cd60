r"""Features as a linear classifier sees them, standardised or whitened, and the way back for its weights.

Whitening by the strength s: with the mean mu and the covariance S (d, d) of N items, m = tr(S) / d,

    z = A (x - mu),   A = (S + s m I)^(-1/2),   w = A v                                               (6.21)

so that weights v_j ~ N(0, 1/omega) of z are weights w ~ N(0, (S + s m I)^-1 / omega) of x, with the same
decisions. With fewer items than features A is not formed: the eigenvalues l and vectors U of X X^T / N, X
being the centred items, say everything (r = s m),

    A = r^(-1/2) I - X^T U diag(1 / (sqrt(r (l + r)) (sqrt(r) + sqrt(l + r)))) U^T X / N              (6.22)

where no eigenvalue is divided by, so that it is as exact for those that are 0.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kruskal.errors import InputError, number_or_nan, shown

STRENGTHS = 1e-3, 1e6
"""Below, rounding errors in (6.22) begin to count; above, all directions have the same prior in any case."""
CONSTANT = 1e-12
"""A feature that differs from its mean by at most so many times of it is constant but for rounding."""


class Prepared(NamedTuple):
    """values : (N, d) what is fitted to;  restore : weights (d + 1,) in the units of the features given."""

    values: np.ndarray
    restore: Callable[[np.ndarray], np.ndarray]


def check_whitening(whiten: Any) -> float | None:
    """The strength, None for none, or an InputError."""
    if whiten is None:
        return None
    strength, (least, most) = number_or_nan(whiten), STRENGTHS
    if not least <= strength <= most:
        raise InputError(f"whiten must be None or a number of {least:g} to {most:g}, not {shown(whiten)}")
    return strength


def prepare(X: np.ndarray, standardize: bool, strength: float | None) -> Prepared:
    """Features X (N, d) standardised, or whitened by a strength (6.21), or the one after the other."""
    if not standardize and strength is None:
        return Prepared(X, _unchanged)
    mean, scale = X.mean(axis=0, dtype=np.float64), np.ones(X.shape[1])
    if standardize:
        scale = X.std(axis=0, dtype=np.float64)
        scale[scale <= CONSTANT * np.abs(mean)] = 1.0
    values = (X - mean) / scale
    back: Callable[[np.ndarray], np.ndarray] = _unchanged
    if strength is not None:
        noise = np.abs(values).max(axis=0) <= CONSTANT * np.abs(mean) / scale
        values[:, noise] = 0.0  # what rounding left of constant features is no direction of its own
        values, back = _whitened(values, strength)

    def restore(weights: np.ndarray) -> np.ndarray:
        plain = back(weights[:-1]) / scale
        return np.append(plain, weights[-1] - plain @ mean)

    return Prepared(values, restore)


def _unchanged(weights: np.ndarray) -> np.ndarray:
    return weights


def _whitened(values: np.ndarray, strength: float) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Z = X A of centred items X, and v -> A v."""
    n_items, n_features = values.shape
    unit = np.ldexp(1.0, int(np.frexp(np.abs(values).max())[1]))  # squares of tiny numbers would be 0
    values = values / unit
    ridge = strength * float(np.einsum("nd,nd->", values, values)) / values.size
    if ridge == 0.0:  # all features are constant
        ridge = strength
    if n_features <= n_items:
        spread, vectors = np.linalg.eigh(values.T @ values / n_items)
        matrix = (vectors / np.sqrt(np.maximum(spread, 0.0) + ridge)) @ vectors.T
        return values @ matrix, lambda weights: matrix @ weights / unit
    spread, vectors = np.linalg.eigh(values @ values.T / n_items)
    small, large = np.sqrt(ridge), np.sqrt(np.maximum(spread, 0.0) + ridge)
    taken = (vectors / (n_items * small * large * (small + large))) @ vectors.T

    def back(weights: np.ndarray) -> np.ndarray:
        restored: np.ndarray = (weights / small - values.T @ (taken @ (values @ weights))) / unit
        return restored

    return ((vectors / large) @ vectors.T) @ values, back
