r"""Usage: pi_k, the probability that an item uses atom k; one for all items, or one per region of the array.

One for all:

    pi_k ~ Beta(a_pi / K + sum_n z_kn, b_pi (K - 1) / K + N - sum_n z_kn)                          (1.14)

Per region g (a hierarchical beta prior, an extension of the paper's model), with n_kg = sum_{n in g} z_kn:

    eta_k ~ Beta(a_pi / K, b_pi (K - 1) / K),   pi_kg ~ Beta(h eta_k, h (1 - eta_k)),   h ~ Gamma(e_h, f_h)
    pi_kg | . ~ Beta(h eta_k + n_kg, h (1 - eta_k) + N_g - n_kg)

eta_k and h are drawn by Metropolis steps with all pi integrated out, that is from the beta-binomial

    log p(n_k | eta_k, h) = sum_g log (h eta_k)_(n_kg) + log (h (1 - eta_k))_(N_g - n_kg) - log (h)_(N_g)

where (a)_(n) = Gamma(a + n) / Gamma(a); then pi. Usage is kept as log odds, which do not underflow.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from kruskal.gibbs.precision import GammaPrior
from kruskal.kernel import kernel

CONCENTRATION_PRIOR = GammaPrior(2.0, 0.1)
"""(e_h, f_h) of the concentration of the regions' usage: mean 20."""
_STEPS = 2  # Metropolis steps of eta per sweep
_STIRLING = 10.0  # from here on Stirling's series has all digits
_LONG = 8  # products of fewer factors are not left to it


class UsagePrior(NamedTuple):
    """The two parameters a_pi, b_pi of the beta process; K atoms have Beta(a_pi / K, b_pi (K - 1) / K)."""

    a: float
    b: float

    def shapes(self, n_atoms: int) -> tuple[float, float]:
        """The two shapes of the beta prior of one atom. One atom alone gets b_pi, as the limit would be 0."""
        return self.a / n_atoms, self.b * max(n_atoms - 1, 1) / n_atoms


class Usage(NamedTuple):
    """How often atoms are used: ``log_odds`` (G, K) logit pi; ``mean`` (K,) eta and ``concentration`` h of
    the regions (with one region they mean nothing and stay as they are)."""

    log_odds: np.ndarray
    mean: np.ndarray
    concentration: float


def usage_conditional(
    counts: np.ndarray, n_items: float | np.ndarray, prior: UsagePrior
) -> tuple[np.ndarray, np.ndarray]:
    """Shapes (K,), (K,) of the beta conditional, given counts_k = sum_n z_kn."""
    used, unused = prior.shapes(len(counts))
    return used + counts, unused + (n_items - counts)


def draw_usage(
    usage: Usage, counts: np.ndarray, sizes: np.ndarray, prior: UsagePrior,
    concentration_prior: GammaPrior, shared: bool, random: np.random.Generator,
) -> Usage:  # fmt: skip
    """The usage given ``counts`` (G, K) of the items that use each atom and ``sizes`` (G,) of the regions,
    or (G, K) where they differ by atom.

    ``shared`` gives all regions one and the same pi, whatever their number.
    """
    if shared or len(sizes) == 1:
        total = counts.sum(axis=0)
        log_odds = draw_beta_log_odds(*usage_conditional(total, sizes.sum(axis=0), prior), random)
        mean = np.clip(expit(log_odds), 1e-9, 1.0 - 1e-9)
        return Usage(np.tile(log_odds, (len(sizes), 1)), mean, usage.concentration)
    mean, concentration = usage.mean, usage.concentration
    mean = move_means(mean, concentration, counts, sizes, prior, random, _STEPS)
    concentration = move_concentration(mean, concentration, counts, sizes, concentration_prior, random)
    unused = sizes.reshape(len(sizes), -1) - counts
    log_odds = draw_beta_log_odds(*region_conditional(mean, concentration, counts, unused), random)
    return Usage(log_odds, mean, concentration)


def region_conditional(
    mean: np.ndarray, concentration: float, counts: np.ndarray, unused: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shapes (G, K), (G, K) of the beta conditional of pi_kg, given items that use the atom or do not."""
    return concentration * mean + counts, concentration * (1.0 - mean) + unused


def draw_beta_log_odds(first, second, random: np.random.Generator) -> np.ndarray:
    """log(y / (1 - y)) for y ~ Beta(first, second), also where y itself would underflow."""
    return log_gamma_draw(first, random) - log_gamma_draw(second, random)


def log_gamma_draw(shape, random: np.random.Generator) -> np.ndarray:
    """log g for g ~ Gamma(shape, 1): g = g' u^(1 / shape) with g' ~ Gamma(shape + 1, 1)."""
    uniform = 1.0 - random.random(np.shape(shape))  # never 0
    return np.log(random.standard_gamma(shape + 1.0)) + np.log(uniform) / shape


def move_means(
    mean: np.ndarray, concentration: float, counts: np.ndarray, sizes: np.ndarray, prior: UsagePrior,
    random: np.random.Generator, steps: int = 1,
) -> np.ndarray:  # fmt: skip
    """Metropolis steps of logit eta_k for every atom, pi integrated out.

    What is known of eta_k grows with the number of regions that use the atom; so do the steps shrink.
    """
    width = 2.0 / np.sqrt(1.0 + (counts > 0).sum(axis=0))
    first, second = prior.shapes(len(mean))
    log_likelihood = region_log_likelihood(mean, concentration, counts, sizes)
    for _ in range(steps):
        old = np.log(mean) - np.log1p(-mean)
        new = old + width * random.standard_normal(mean.shape)
        proposal = np.clip(expit(new), 1e-300, 1.0 - 1e-16)
        proposed = region_log_likelihood(proposal, concentration, counts, sizes)
        # beta prior and the Jacobian eta (1 - eta) of the logit
        log_ratio = proposed - log_likelihood
        log_ratio += first * (np.log(proposal) - np.log(mean))
        log_ratio += second * (np.log1p(-proposal) - np.log1p(-mean))
        taken = np.log(1.0 - random.random(mean.shape)) < log_ratio
        mean = np.where(taken, proposal, mean)
        log_likelihood = np.where(taken, proposed, log_likelihood)
    return mean


def move_concentration(
    mean: np.ndarray, concentration: float, counts: np.ndarray, sizes: np.ndarray, prior: GammaPrior,
    random: np.random.Generator,
) -> float:  # fmt: skip
    """One Metropolis step of log h, pi integrated out, of a random size (0.5 to 0.005)."""
    log_factor = 0.5 * random.normal() * 10.0 ** (-2.0 * random.random())
    proposal = concentration * math.exp(log_factor)
    log_ratio = float(
        region_log_likelihood(mean, proposal, counts, sizes).sum()
        - region_log_likelihood(mean, concentration, counts, sizes).sum()
    )
    log_ratio += prior.shape * log_factor - prior.rate * (proposal - concentration)
    return proposal if math.log(1.0 - random.random()) < log_ratio else concentration


def region_log_likelihood(
    mean: np.ndarray, concentration: float, counts: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """(K,) log p(n_k | eta_k, h), the beta-binomial over the regions without its binomial coefficients."""
    out = np.empty(len(mean))
    _region_log_likelihood(mean, concentration, counts, sizes.reshape(len(sizes), -1), out)
    return out


@kernel
def _region_log_likelihood(mean, concentration, counts, sizes, out):
    all_items = 0.0
    for k in range(mean.shape[0]):
        column = min(k, sizes.shape[1] - 1)  # one column of sizes is that of every atom
        if k == column:
            all_items = 0.0
            for g in range(sizes.shape[0]):
                all_items += log_rising(concentration, sizes[g, column])
        total = -all_items
        used, unused = concentration * mean[k], concentration * (1.0 - mean[k])
        start = _stirling(max(unused, _STIRLING))  # the same for all regions, mostly
        for g in range(sizes.shape[0]):
            rest = sizes[g, column] - counts[g, k]
            total += log_rising(used, counts[g, k])
            if unused >= _STIRLING and rest >= _LONG and rest == np.floor(rest):
                total += _stirling(unused + rest) - start
            else:
                total += log_rising(unused, rest)
        out[k] = total


@kernel
def log_rising(a, n):
    """log Gamma(a + n) / Gamma(a): a short product, or Stirling's series when n is large.

    Counts of items that are partly forgotten are not whole.
    """
    if n != np.floor(n):
        return math.lgamma(a + n) - math.lgamma(a)
    product, start = 1.0, a
    factors = 0
    while factors < n and (start < _STIRLING or n < _LONG):
        product *= start
        start += 1.0
        factors += 1
    log_product = math.log(product) if factors > 0 else 0.0
    if factors == n:
        return log_product
    return log_product + _stirling(a + n) - _stirling(start)


@kernel
def _stirling(x):
    """log Gamma(x) - log(2 pi) / 2 for x of at least 10, to 1e-12."""
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))
    return (x - 0.5) * math.log(x) - x + series
