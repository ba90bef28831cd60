r"""Probabilities from decision values: one temperature for all classes.

    p(c | x) = exp(t f_c(x)) / sum_c' exp(t f_c'(x))          several classes
    p(1 | x) = 1 / (1 + exp(-t f(x)))                         two classes, f the decision for the second

The scale t > 0 is the most probable one given decisions of items that were not trained on, with the prior of
Jeffreys:

    p(t | y) ~ prod_n p(y_n | x_n) sqrt(I(t)),   I(t) = sum_n sum_c p(c | x_n) (f_c(x_n) - E f(x_n))^2

I is the Fisher information, E the mean over the classes. Without the prior t would be too large on average,
and infinite when no item is on the wrong side (Firth 1993). It is worth one item, however many classes there
are: where r of N items are right and all are equally clear, t gives them the probability (r + 1/2) / (N + 1).

One scale keeps the order of the classes, so the most probable class is the predicted one.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

SMALLEST, LARGEST = 1e-4, 1e4
"""The scale, if what the best class is ahead of the others were 1 on average."""
GRID = 33
"""Scales that are tried before the search: decisions of very different sizes have more than one mode."""
TINY = np.finfo(np.float64).tiny


def _both(decisions: np.ndarray) -> np.ndarray:
    """(N, Y) scores; the decisions (N, 1) of two classes become -f/2 and f/2."""
    return decisions if decisions.shape[1] > 1 else np.hstack([-0.5 * decisions, 0.5 * decisions])


def probabilities(decisions: np.ndarray, scale: float) -> np.ndarray:
    """p(c | x) (N, Y) for decisions (N, Y), or (N, 1) of two classes."""
    return np.exp(log_softmax(scale * _both(decisions), axis=1))


def fit_scale(decisions: np.ndarray, labels: np.ndarray) -> float:
    """The scale t for decisions (N, Y) or (N, 1) and the true classes (N,); 1 if all decisions are equal."""
    scores = _both(decisions).astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)  # so that what is small below keeps its digits
    unit = -float(scores.mean())
    if unit == 0.0:
        return 1.0
    scores /= unit
    true = np.arange(len(labels)), labels

    def loss(log_scale: float) -> float:
        log_p = log_softmax(np.exp(log_scale) * scores, axis=1)
        p = np.exp(log_p)
        information = (p * (scores - (p * scores).sum(axis=1, keepdims=True)) ** 2).sum()
        return -float(log_p[true].sum() + 0.5 * np.log(max(information, TINY)))

    grid = np.linspace(np.log(SMALLEST), np.log(LARGEST), GRID)
    best = int(np.argmin([loss(log_scale) for log_scale in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x) / unit)
