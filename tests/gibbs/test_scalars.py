"""Precisions, delta and alpha: the samplers follow the conditionals that the ratio tests approve."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, psi

from kruskal.gibbs import precision, shrinkage
from kruskal.gibbs.shrinkage import AlphaPrior
from tests.gibbs.reference import alpha_grid

SURE = 1e-4  # smallest p-value that a correct sampler is allowed to have (fixed seeds)


def test_precision_draws():
    prior = precision.GammaPrior(2.0, 3.0)
    random = np.random.default_rng(1)
    draws = np.array([precision.draw_precision(7, 4.0, prior, random) for _ in range(5000)])
    assert stats.kstest(draws, stats.gamma(2.0 + 3.5, scale=1.0 / (3.0 + 2.0)).cdf).pvalue > SURE


@pytest.mark.parametrize("count, squares", [(7, 4.0), (0, 0.0), (1, 1.0), (2_000_000, 1_900_000.0)])
@pytest.mark.parametrize("share", [1.0, 0.9, 0.3, 0.1001, 0.0999, 0.01, 1e-6])
def test_precision_draws_above_a_bound(count, squares, share):
    """Both ways of drawing, by the share of the distribution that is left; also where a shape is below 1."""
    prior = precision.GammaPrior(0.7, 0.5)
    whole = stats.gamma(*precision.precision_conditional(count, squares, prior)[:1])
    rate = prior.rate + 0.5 * squares
    least = 0.0 if share == 1.0 else whole.isf(share) / rate
    random = np.random.default_rng(5)
    draws = np.array([precision.draw_precision(count, squares, prior, random, least) for _ in range(4000)])
    left = whole.sf(draws * rate) / whole.sf(least * rate)
    assert draws.min() >= least
    assert stats.kstest(left, "uniform").pvalue > SURE


@pytest.mark.parametrize("count, squares", [(7, 4.0), (0, 0.0), (1, 1.0), (2_000_000, 1_900_000.0)])
@pytest.mark.parametrize("share", [0.9, 0.3, 0.1001, 0.0999, 0.01, 1e-6])
def test_precision_draws_below_a_bound(count, squares, share):
    """All ways of drawing."""
    prior = precision.GammaPrior(0.7, 0.5)
    whole = stats.gamma(*precision.precision_conditional(count, squares, prior)[:1])
    rate = prior.rate + 0.5 * squares
    most = whole.ppf(share) / rate
    random = np.random.default_rng(5)
    draws = np.array(
        [precision.draw_precision(count, squares, prior, random, most=most) for _ in range(4000)]
    )
    assert draws.max() <= most
    assert stats.kstest(whole.cdf(draws * rate) / whole.cdf(most * rate), "uniform").pvalue > SURE


def test_an_upper_bound_far_out_in_the_tail():
    prior, random = precision.GammaPrior(1e-6, 1e-6), np.random.default_rng(6)
    draws = np.array([precision.draw_precision(1e6, 1e6, prior, random, most=0.5) for _ in range(4000)])
    rate = 0.5e6 / 0.5 - 0.5e6
    assert draws.max() <= 0.5
    assert stats.kstest(0.5 - draws, stats.expon(scale=1.0 / rate).cdf).pvalue > SURE


def test_a_bound_far_out_in_the_tail():
    """The density is then nearly that of an exponential; and draws come at once."""
    prior, random = precision.GammaPrior(1e-6, 1e-6), np.random.default_rng(6)
    least = 2.0
    draws = np.array([precision.draw_precision(1e6, 1e6, prior, random, least) for _ in range(4000)])
    rate = 0.5e6 - 0.5e6 / least
    assert draws.min() >= least
    assert stats.kstest(draws - least, stats.expon(scale=1.0 / rate).cdf).pvalue > SURE


def test_a_bound_that_is_met_changes_no_draw():
    prior = precision.GammaPrior(2.0, 3.0)
    free, bounded = (
        precision.draw_precision(700, 400.0, prior, np.random.default_rng(3), least) for least in (0.0, 1.0)
    )
    assert free == bounded


def test_precision_of_noise_free_data_is_finite():
    draw = precision.draw_precision(10**6, 0.0, precision.GammaPrior(1e-6, 1e-300), np.random.default_rng(1))
    assert draw == precision.LARGEST


def test_delta_draws_are_sequential():
    """Level 1 given the old later levels, level 2 given the new level 1, ..: by the probability transform."""
    n_atoms, rank, alpha = 4000, 3, 2.5
    random = np.random.default_rng(2)
    weights = np.tile(np.array([0.8, -1.1, 0.4]), (n_atoms, 1))
    old = np.tile(np.log(np.array([0.7, 1.9, 3.0])), (n_atoms, 1))
    new = shrinkage.draw_delta(old, weights, alpha, random)
    np.testing.assert_array_equal(old, np.tile(np.log(np.array([0.7, 1.9, 3.0])), (n_atoms, 1)))
    delta = np.exp(old)
    for i in range(rank):
        rate = np.ones(n_atoms)
        for r in range(i, rank):
            rate += 0.5 * np.prod(np.delete(delta[:, : r + 1], i, axis=1), axis=1) * weights[:, r] ** 2
        delta[:, i] = np.exp(new[:, i])
        transform = stats.gamma.cdf(delta[:, i] * rate, alpha + 0.5 * (rank - i))
        assert stats.kstest(transform, "uniform").pvalue > SURE


def test_delta_of_hopeless_terms_is_finite():
    log_delta = shrinkage.draw_delta(
        np.full((2, 5), math.log(1e6)), np.ones((2, 5)), 1e6, np.random.default_rng(0)
    )
    assert np.isfinite(log_delta).all()


ALPHA_STATISTICS = {
    "prior": (math.log(4.0), 2.0),
    "few": (3.0, 6.0),
    "small alpha": (-40.0, 10.0),
    "many": (1500.0, 800.0),
}


@pytest.mark.parametrize("name", ALPHA_STATISTICS)
def test_alpha_draws(name):
    """Slice sampling against inversion on a fine grid, and from a start far away."""
    statistics = ALPHA_STATISTICS[name]

    def log_density(alpha):
        return (alpha - 1.0) * statistics[0] - statistics[1] * gammaln(alpha)

    random = np.random.default_rng(3)
    mode = shrinkage.alpha_mode(statistics)
    grid, below = alpha_grid(log_density, 1e-7, 12.0 * mode + 20.0 / (1.0 + statistics[1]), 400_001)
    draws, alpha = [], 1e5
    for _ in range(3000):
        alpha = shrinkage.draw_alpha(alpha, statistics, random)
        draws.append(alpha)
    kept = np.array(draws[20::2])
    assert stats.kstest(kept, lambda a: np.interp(a, grid, below)).pvalue > SURE


def test_alpha_does_not_leave_its_range():
    """The paper's prior with R = 1 runs away; the cut-off is part of the prior."""
    random = np.random.default_rng(0)
    statistics = shrinkage.alpha_statistics(np.full((3, 1), 40.0), AlphaPrior(1e6, 1e-6))
    alpha = 10.0
    for _ in range(50):
        alpha = shrinkage.draw_alpha(alpha, statistics, random)
        assert 0.0 < alpha <= shrinkage.LARGEST_ALPHA
    assert alpha > 0.5 * shrinkage.LARGEST_ALPHA


@pytest.mark.parametrize("value", [-1e6, -300.0, -2.3, -2.2, 0.0, 1.0, 7.3, 500.0])
def test_inverse_digamma(value):
    assert psi(shrinkage.inverse_digamma(value)) == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ALPHA_STATISTICS)
def test_alpha_mode_is_the_maximum(name):
    statistics = ALPHA_STATISTICS[name]
    mode = shrinkage.alpha_mode(statistics)
    best = shrinkage.log_alpha_density(mode, statistics)
    for factor in (0.5, 0.99, 1.01, 2.0):
        assert shrinkage.log_alpha_density(factor * mode, statistics) < best


def test_alpha_mode_is_capped():
    assert shrinkage.alpha_mode((1e9, 1.0)) == shrinkage.LARGEST_ALPHA
    assert shrinkage.alpha_mode((-1e12, 1.0)) > 0.0


def test_a_sum_that_is_not_finite_does_not_hang():
    for squares in (np.inf, np.nan):
        draw = precision.draw_precision(10, squares, precision.GammaPrior(1.0, 1.0), np.random.default_rng(0))
        assert not draw > precision.SMALLEST
