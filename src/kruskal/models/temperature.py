r"""Probabilities from decision values: one temperature for all classes.

    p(c | x) = exp(t f_c(x)) / sum_c' exp(t f_c'(x))          several classes
    p(1 | x) = 1 / (1 + exp(-t f(x)))                         two classes, f the decision for the second

The scale t > 0 is that of greatest likelihood on decisions of items that were not trained on. One scale keeps
the order of the classes, so the most probable class is the predicted one. Targets are smoothed as if every
class had been seen once more (Platt 1999), so that t stays finite when no item is on the wrong side.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

SMALLEST, LARGEST = 1e-4, 1e4


def _both(decisions: np.ndarray) -> np.ndarray:
    """(N, Y) scores; the decisions (N, 1) of two classes become -f/2 and f/2."""
    return decisions if decisions.shape[1] > 1 else np.hstack([-0.5 * decisions, 0.5 * decisions])


def probabilities(decisions: np.ndarray, scale: float) -> np.ndarray:
    """p(c | x) (N, Y) for decisions (N, Y), or (N, 1) of two classes."""
    return np.exp(log_softmax(scale * _both(decisions), axis=1))


def fit_scale(decisions: np.ndarray, labels: np.ndarray) -> float:
    """The scale t for decisions (N, Y) or (N, 1) and the true classes (N,)."""
    scores = _both(decisions)
    n_items, n_classes = scores.shape
    smoothing = n_classes / (n_items + n_classes)
    targets = np.full(scores.shape, smoothing / n_classes)
    targets[np.arange(n_items), labels] += 1.0 - smoothing

    def loss(log_scale: float) -> float:
        return -float((targets * log_softmax(np.exp(log_scale) * scores, axis=1)).sum())

    bounds = (np.log(SMALLEST), np.log(LARGEST))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
