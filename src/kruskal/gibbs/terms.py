r"""The terms of one Kruskal tensor as a whole: their weights, the precisions of their factors, their scale.

    lambda ~ N(L^-1 gamma_eps F^T x, L^-1),  L = diag(tau) + gamma_eps F^T F                               (1.6)
    omega_rt ~ Gamma(c + m_t/2,  d + ||u_r^(t)||^2 / 2)                                                    (1.17)

Two exact moves along which plain draws creep, as omega and u hold each other fast. Both are generalised Gibbs
steps (Liu and Sabatti 2000) on u_r^(t) -> e^h u_r^(t), omega_rt -> e^-2h omega_rt, which leaves
p(u | omega) du alone:

    `scale_terms`: lambda stays. A Metropolis step in h on
        - gamma_eps (lambda_r^2 F_rr (e^2h - 1) / 2 - lambda_r g_r (e^h - 1)) - 2 c h - d omega (e^-2h - 1),
        g_r = (F^T x)_r - sum_{s != r} F_rs lambda_s.  A term that explains nothing moves freely over orders of
        magnitude, where the draws of u and omega in turn need thousands of sweeps.
    `balance_terms`: lambda_r -> e^-h lambda_r, so that the tensor stays. e^-2h ~ Gamma(c + 1/2,
        d omega + tau lambda^2 / 2).
"""

import math

import numpy as np

from kruskal.gibbs.precision import LARGEST, SMALLEST, GammaPrior, precision_conditional
from kruskal.gibbs.rows import TermSums, draw_gaussian
from kruskal.kernel import kernel


def draw_weights(
    sums: TermSums, log_precision: np.ndarray, noise_precision: float, normals: np.ndarray
) -> np.ndarray:
    """All weights (R,) jointly, as lambda = tau^-1/2 eta: tau may be beyond any floating-point number."""
    deviation = np.exp(-0.5 * log_precision)
    precision = noise_precision * np.outer(deviation, deviation) * sums.products
    precision[np.diag_indices_from(precision)] += 1.0
    drawn = noise_precision * deviation * sums.data
    draw_gaussian(precision, normals, drawn)
    return deviation * drawn


def factor_squares(factors: np.ndarray, bounds: list[int]) -> np.ndarray:
    """(T, R) ||u_r^(t)||^2."""
    return np.add.reduceat(factors**2, bounds[:-1], axis=0)


def draw_factor_precisions(
    squares: np.ndarray, sizes: tuple[int, ...], prior: GammaPrior, random: np.random.Generator
) -> np.ndarray:
    """omega (T, R) given the squares of the factors (T, R)."""
    shape, rate = precision_conditional(np.array(sizes)[:, None], squares, prior)
    return np.clip(random.standard_gamma(np.broadcast_to(shape, squares.shape)) / rate, SMALLEST, LARGEST)


def scale_terms(
    sums: TermSums, weights: np.ndarray, precision: np.ndarray, noise_precision: float, prior: GammaPrior,
    random: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """One Metropolis step per mode and term; ``precision`` (T, R) changes in place. Returns e^h (T, R).

    Steps are normal with a standard deviation between 0.05 and 5: small ones for terms that the data hold.
    """
    width = 5.0 * 10.0 ** (-2.0 * random.random(precision.shape))
    steps = width * random.standard_normal(precision.shape)
    log_uniforms = np.log(random.random(precision.shape))
    products = np.tril(sums.products) + np.tril(sums.products, -1).T
    _scale(products, sums.data.copy(), weights, precision, noise_precision, *prior, steps, log_uniforms)
    return np.exp(steps)


@kernel
def _scale(products, data, weights, precision, noise_precision, shape, rate, steps, log_uniforms):
    """Decides on every step in turn; a refused step becomes 0."""
    rank = weights.shape[0]
    for t in range(precision.shape[0]):
        for r in range(rank):
            rest = data[r]
            for s in range(rank):
                if s != r:
                    rest -= products[r, s] * weights[s]
            h = steps[t, r]
            gain = scale_log_ratio(
                h, weights[r], products[r, r], rest, precision[t, r], noise_precision, shape, rate
            )
            new = precision[t, r] * math.exp(-2.0 * h)
            if log_uniforms[t, r] >= gain or new < SMALLEST or new > LARGEST:
                steps[t, r] = 0.0
                continue
            precision[t, r] = new
            factor = math.exp(h)
            data[r] *= factor
            for s in range(rank):
                products[r, s] *= factor
            for s in range(rank):
                products[s, r] *= factor


@kernel
def scale_log_ratio(h, weight, square, rest, precision, noise_precision, shape, rate):
    """Log acceptance ratio of `scale_terms` for one term: ``square`` F_rr, ``rest`` g_r."""
    likelihood = weight * rest * math.expm1(h) - 0.5 * weight * weight * square * math.expm1(2.0 * h)
    return noise_precision * likelihood - 2.0 * shape * h - rate * precision * math.expm1(-2.0 * h)


def balance_terms(
    weights: np.ndarray, precision: np.ndarray, log_precision: np.ndarray, prior: GammaPrior,
    random: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Move scale between the weights and the factors of each mode in turn, in place; returns e^h (T, R)."""
    scales = np.empty_like(precision)
    for t in range(len(precision)):
        quadratic = (np.exp(0.5 * np.minimum(log_precision, 1380.0)) * weights) ** 2
        shape, rate = precision_conditional(1.0, quadratic, prior)
        rate = rate - prior.rate + prior.rate * precision[t]
        y = rate / np.maximum(random.standard_gamma(shape, len(weights)), 1e-100)
        sound = (precision[t] / y > SMALLEST) & (precision[t] / y < LARGEST)
        scales[t] = np.where(sound, np.sqrt(y), 1.0)
        precision[t] /= scales[t] ** 2
        weights /= scales[t]
    return scales
