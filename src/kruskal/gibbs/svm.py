r"""The Bayesian support vector machine of one class against the others: scales and weights.

Items n = 1..N with features x_n (d,), signs y_n = +-1, f_n = beta^T phi_n with phi_n = [x_n; 1]. The hinge
loss is a pseudo-likelihood, a mixture of normals over a scale lambda_n (Polson and Scott 2011):

    exp(-2C max(0, 1 - y_n f_n))
        = int_0^inf (2 pi lambda)^(-1/2) exp(-(lambda + C (1 - y_n f_n))^2 / (2 lambda)) d lambda        (6.2)
    beta_j ~ N(0, 1/omega), j = 1..d,   beta_0 ~ N(0, 1/omega_0)

    1 / lambda_n ~ InverseGaussian(mean 1 / |C (1 - y_n f_n)|, shape 1)                                  (6.3)
    beta ~ N(Q^-1 h, Q^-1),  Q = diag(omega) + C^2 sum_n phi_n phi_n^T / lambda_n,
                             h = C sum_n phi_n y_n (1 + C / lambda_n)                                    (6.4)

that is, a regression of t_n = y_n (1 + lambda_n / C) on phi_n with noise variance lambda_n / C^2. With more
features than items the same draw is made from N x N matrices: a draw from the prior, moved by what the
regression says about its residual (Bhattacharya, Chakraborty and Mallick 2016):

    beta = u + P^-1 Phi^T (Phi P^-1 Phi^T + S)^-1 (t - Phi u - e),   u ~ N(0, P^-1), e ~ N(0, S)        (6.4')

with P = diag(omega), S = diag(lambda) / C^2.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.inverse_gaussian import inverse_gaussian
from kruskal.random.normal import normal
from kruskal.random.philox import philox, uniform_52

LARGEST_INVERSE_SCALE = 1e10
"""1 / lambda is kept below, so that Q can be factorised. A draw beyond it takes |1 - y f| below 1e-5 / C and
a normal below 1e-5."""
TINY = 1e-11
"""What is added to the diagonal of X X^T, relative to its mean, before it is factorised."""
ROWS, GRAM_ROWS = 256, 2048
"""Items at a time: in products with a vector, so that what is converted to float64 stays in the cache, and in
the sums of their outer products."""


class Prior(NamedTuple):
    """Precisions of the weights (omega) and of the bias (omega_0)."""

    weights: float
    bias: float

    def diagonal(self, n_features: int) -> np.ndarray:
        """(d + 1,), the bias last."""
        return np.append(np.full(n_features, self.weights), self.bias)


class Features(NamedTuple):
    """What all classes share.

    Attributes
    ----------
    values : (N, d) float32 or float64, X
    products : (N, N) float64, X X^T, when weights are drawn by (6.4'); else None
    factor : (N, N) float64, lower triangular F with F F^T = X X^T, with the products
    """

    values: np.ndarray
    products: np.ndarray | None = None
    factor: np.ndarray | None = None

    @property
    def n_noise(self) -> int:
        """How many normals a draw of the weights takes."""
        n_items, n_features = self.values.shape
        return n_features + 1 + (0 if self.products is None else n_items)


def features_of(values: np.ndarray, dual: bool | None = None) -> Features:
    """Features in the cheaper form, or in the one that ``dual`` says."""
    if dual is None:
        dual = values.shape[0] < values.shape[1] + 1
    if not dual:
        return Features(values)
    values = values.astype(np.float64, copy=False)
    products = values @ values.T
    shifted = products.copy()  # equal items make X X^T singular
    shifted.flat[:: len(shifted) + 1] += TINY * max(float(np.trace(products)) / len(products), TINY)
    return Features(values, products, np.linalg.cholesky(shifted))


def decisions(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """f = Phi beta (N,), or (N, Y) for weights (d + 1, Y)."""
    out = np.empty((len(values), *weights.shape[1:]))
    for first in range(0, len(values), ROWS):
        rows = values[first : first + ROWS].astype(np.float64, copy=False)
        out[first : first + ROWS] = rows @ weights[:-1] + weights[-1]
    return out


def combination(values: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """Phi^T a (d + 1,) for amounts (N,)."""
    total = np.zeros(values.shape[1] + 1)
    for first in range(0, len(values), ROWS):
        rows = values[first : first + ROWS].astype(np.float64, copy=False)
        total[:-1] += amounts[first : first + ROWS] @ rows
    total[-1] = amounts.sum()
    return total


def draw_inverse_scales(
    gaps: np.ndarray, cost: float, seed: int, class_number: int, sweep: int
) -> np.ndarray:
    """1 / lambda (N,) given the gaps 1 - y f (6.3)."""
    drawn = np.empty(len(gaps))
    _fill_inverse_scales(gaps, cost, class_number, sweep, int(Stream.SVM_SCALES), *key_of(seed), drawn)
    return np.minimum(drawn, LARGEST_INVERSE_SCALE)


@kernel
def _fill_inverse_scales(gaps, cost, class_number, sweep, stream, key_0, key_1, drawn):
    for n in range(gaps.shape[0]):
        word_0, word_1, word_2, word_3 = philox(n, class_number, sweep, stream, key_0, key_1)
        drawn[n] = inverse_gaussian(abs(cost * gaps[n]), normal(word_0, word_1), uniform_52(word_2, word_3))


def weights_conditional(
    values: np.ndarray, signs: np.ndarray, inverse_scales: np.ndarray, cost: float, prior: Prior
) -> tuple[np.ndarray, np.ndarray]:
    """Q (d + 1, d + 1) and h (d + 1,) of (6.4)."""
    n_features = values.shape[1]
    precision = np.diag(prior.diagonal(n_features))
    scaled = np.empty((min(GRAM_ROWS, len(values)), n_features + 1))
    for first in range(0, len(values), GRAM_ROWS):
        root = cost * np.sqrt(inverse_scales[first : first + GRAM_ROWS])
        rows = scaled[: len(root)]
        np.multiply(values[first : first + GRAM_ROWS], root[:, None], out=rows[:, :-1])
        rows[:, -1] = root
        precision += rows.T @ rows
    return precision, combination(values, cost * signs * (1.0 + cost * inverse_scales))


def draw_weights(
    features: Features,
    signs: np.ndarray,
    inverse_scales: np.ndarray,
    cost: float,
    prior: Prior,
    noise: np.ndarray | None,
) -> np.ndarray:
    """beta (d + 1,) from (6.4) with ``n_noise`` standard normals; their mean, Q^-1 h, without."""
    if features.products is not None:
        return _draw_dual(features, signs, inverse_scales, cost, prior, noise)
    precision, linear = weights_conditional(features.values, signs, inverse_scales, cost, prior)
    factor = np.linalg.cholesky(precision)
    half = solve_triangular(factor, linear, lower=True, check_finite=False)
    if noise is not None:
        half += noise
    return solve_triangular(factor, half, lower=True, trans="T", check_finite=False)


def _draw_dual(
    features: Features,
    signs: np.ndarray,
    inverse_scales: np.ndarray,
    cost: float,
    prior: Prior,
    noise: np.ndarray | None,
) -> np.ndarray:
    values, products = features.values, features.products
    assert products is not None
    variances = prior.diagonal(values.shape[1]) ** -1
    scatter = 1.0 / (cost * cost * inverse_scales)
    residual = signs * (1.0 + cost * scatter)
    start = np.zeros(len(variances))
    if noise is not None:
        start = np.sqrt(variances) * noise[: len(variances)]
        residual -= decisions(values, start) + np.sqrt(scatter) * noise[len(variances) :]
    covariance = products / prior.weights
    covariance += 1.0 / prior.bias
    covariance.flat[:: len(covariance) + 1] += scatter
    factor = np.linalg.cholesky(covariance)
    half = solve_triangular(factor, residual, lower=True, check_finite=False)
    solved = solve_triangular(factor, half, lower=True, trans="T", check_finite=False)
    return start + variances * combination(values, solved)
