r"""The terms of one Kruskal tensor as a whole: their weights, the precisions of their factors, their scale.

    lambda ~ N(L^-1 gamma_eps F^T x, L^-1),  L = diag(tau) + gamma_eps F^T F                             (1.6)
    omega_rt ~ Gamma(c + m_t/2,  d + ||u_r^(t)||^2 / 2)                                                 (1.17)

Two exact moves along which plain draws creep, as omega and u hold each other fast. Both are generalised Gibbs
steps (Liu and Sabatti 2000) on u_r^(t) -> e^h u_r^(t), omega_rt -> e^-2h omega_rt, which leaves
p(u | omega) du alone:

    `scale_terms`, with all weights integrated out. A Metropolis step in h on
        (b^T M^-1 b - log det M) / 2 - 2 c h - d omega (e^-2h - 1),
        M = I + gamma_eps tau^-1/2 F^T F tau^-1/2,  b = gamma_eps tau^-1/2 F^T x,  F_.r -> e^h F_.r.
        A term that explains nothing, or nothing that the others could not, moves freely over orders of
        magnitude, where the draws of u and omega in turn need thousands of sweeps.
    `balance_terms`: lambda_r -> e^-h lambda_r, so that the tensor stays. e^-2h ~ Gamma(c + 1/2,
        d omega + tau lambda^2 / 2).
"""

import math

import numpy as np

from kruskal.gibbs.precision import LARGEST, SMALLEST, GammaPrior, precision_conditional
from kruskal.gibbs.rows import TermSums, draw_gaussian, factorise, solve_forward
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
    sums: TermSums, precision: np.ndarray, log_precision: np.ndarray, noise_precision: float,
    prior: GammaPrior, random: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """One Metropolis step per mode and term; ``precision`` (T, R) and ``sums`` change in place.

    Steps are normal with a standard deviation between 0.05 and 5: small ones for terms that the data hold.

    Returns
    -------
    (T, R) e^h, by which the factors are to be multiplied
    """
    width = 5.0 * 10.0 ** (-2.0 * random.random(precision.shape))
    steps = width * random.standard_normal(precision.shape)
    log_uniforms = np.log(random.random(precision.shape))
    deviation = np.exp(-0.5 * log_precision)
    _scale(*sums, precision, deviation, noise_precision, *prior, steps, log_uniforms)
    return np.exp(steps)


@kernel
def _scale(products, data, precision, deviation, noise_precision, shape, rate, steps, log_uniforms):
    """Decides on every step in turn; a refused step becomes 0."""
    rank = data.shape[0]
    root = np.zeros((rank, rank))
    linear = np.zeros(rank)
    for r in range(rank):
        square, rest = _last_pivot(products, data, deviation, noise_precision, r, root, linear)
        moved = 0.0
        for t in range(precision.shape[0]):
            h = steps[t, r]
            new = precision[t, r] * math.exp(-2.0 * h)
            gain = log_evidence(square, rest, moved + h) - log_evidence(square, rest, moved)
            gain -= 2.0 * shape * h + rate * (new - precision[t, r])
            if log_uniforms[t, r] < gain and SMALLEST < new < LARGEST:
                precision[t, r] = new
                moved += h
            else:
                steps[t, r] = 0.0
        factor = math.exp(moved)
        data[r] *= factor
        for s in range(rank):
            products[r, s] *= factor
            products[s, r] *= factor


@kernel
def log_evidence(square, rest, h):
    """The part of (b^T M^-1 b - log det M) / 2 that depends on h, for F_.r -> e^h F_.r.

    ``square`` and ``rest`` are S - 1 and y S^1/2 for the pivot S of term r, eliminated last, and its entry y
    of the forward solution: S = 1 + e^2h square, y^2 = e^2h rest^2 / S.
    """
    grown = math.exp(2.0 * h)
    pivot = 1.0 + grown * square
    return 0.5 * (grown * rest * rest / pivot - math.log(pivot))


@kernel
def _last_pivot(products, data, deviation, noise_precision, last, root, linear):
    """``square`` and ``rest`` of `log_evidence` by a factorisation of M with term ``last`` in the end."""
    rank = data.shape[0]
    for i in range(rank):
        r = _place(i, last, rank)
        scaled = noise_precision * deviation[r]
        linear[i] = scaled * data[r]
        for j in range(i + 1):
            s = _place(j, last, rank)
            root[i, j] = scaled * deviation[s] * (products[r, s] if s <= r else products[s, r])
        root[i, i] += 1.0
    factorise(root)
    solve_forward(root, linear)
    pivot = root[rank - 1, rank - 1]
    return max(pivot * pivot - 1.0, 0.0), linear[rank - 1] * pivot


@kernel
def _place(i, last, rank):
    """Term at place i when ``last`` trades places with the last term."""
    if i == rank - 1:
        return last
    return rank - 1 if i == last else i


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
