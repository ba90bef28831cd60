"""Normals that are cut off at zero, in the middle and far out."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import kstest, truncnorm

from kruskal.random.half_normal import log_half_mass, positive_normal


@pytest.mark.parametrize("x", [-1e6, -300.0, -40.0, -8.0001, -7.9999, -1.0, 0.0, 0.5, 3.0, 30.0, 1e4])
def test_mass(x):
    exact = math.log(2.0) + float(log_ndtr(x)) + 0.5 * x * x
    tolerance = max(1e-12 * x * x, 1e-12)  # what the difference of two large numbers leaves
    assert log_half_mass(x) == pytest.approx(exact, abs=tolerance)


@pytest.mark.parametrize("x", [-200.0, -30.0, -8.5, -7.5, -2.0, 0.0, 2.0, 9.0])
def test_draws_follow_the_distribution(x):
    """Quantiles agree with those of SciPy, and draws with its distribution function."""
    for u in (1e-12, 1e-3, 0.3, 0.9, 1.0 - 1e-9):
        draw = positive_normal(x, u)
        assert draw >= 0.0
        # log P(N(x, 1) > draw | > 0) = log u
        survival = float(log_ndtr(x - draw)) - float(log_ndtr(x))
        assert survival == pytest.approx(math.log(u), rel=1e-6, abs=1e-7 * max(1.0, abs(x)) * 1e-3 + 1e-9)
    draws = np.array([positive_normal(x, u) for u in np.random.default_rng(0).random(2000)])
    if x > -30.0:
        assert kstest(draws - x, truncnorm(-x, np.inf).cdf).pvalue > 1e-3
