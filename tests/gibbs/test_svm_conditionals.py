"""The Bayesian SVM: conditionals agree with the joint density, and draws with the conditionals."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from kruskal.gibbs import svm
from kruskal.gibbs.hinge import expected_inverse_scales
from kruskal.gibbs.precision import GammaPrior, precision_conditional
from kruskal.random import Stream, key_of
from kruskal.random.inverse_gaussian import inverse_gaussian
from kruskal.random.philox import philox
from tests.gibbs.svm_reference import Machine, log_joint, log_loss
from tests.gibbs.twins import uniform_52

EXACT = 1e-9
SURE = 1e-4
COST = 0.7


def world(n_items=5, n_features=3, seed=0):
    """(machine, signs, weights, precision, scales) at an arbitrary point."""
    random = np.random.default_rng(seed)
    machine = Machine(random.normal(size=(n_items, n_features)), COST, 1.3, 0.4, (3.0, 2.0))
    signs = np.where(random.random(n_items) < 0.5, 1.0, -1.0)
    return machine, signs, random.normal(size=n_features + 1), 1.7, random.gamma(2.0, size=n_items)


def joint_step(machine, signs, old, new):
    return log_joint(machine, signs, *new) - log_joint(machine, signs, *old)


@pytest.mark.parametrize("margin", [-2.0, 0.3, 1.0, 1.8])
@pytest.mark.parametrize("cost", [0.3, 2.0])
def test_the_hinge_is_a_mixture_of_normals(margin, cost):
    def density(scale):
        shift = scale + cost * (1.0 - margin)
        return math.exp(-(shift**2) / (2.0 * scale)) / math.sqrt(2.0 * math.pi * scale)

    total = sum(integrate.quad(density, *ends)[0] for ends in [(0.0, 1.0), (1.0, 20.0), (20.0, np.inf)])
    assert total == pytest.approx(math.exp(log_loss(np.array(margin), cost)), rel=1e-6)


def scale_error(factor: float) -> float:
    """How far (6.3), with ``factor`` times the mean, is from the joint density of the inverse scales."""
    machine, signs, weights, precision, scales = world()
    gaps = 1.0 - signs * svm.decisions(machine.values, weights)
    new_scales = scales * np.linspace(0.4, 2.1, len(scales))
    mean = factor / np.abs(COST * gaps)

    def log_density(inverse):
        """Of 1 / lambda at shape 1: scipy's invgauss has mean mu * scale and shape scale."""
        return stats.invgauss.logpdf(inverse, mean).sum()

    difference = log_density(1.0 / new_scales) - log_density(1.0 / scales)
    jacobian = 2.0 * np.log(new_scales / scales).sum()  # |d lambda / d (1 / lambda)| = lambda^2
    old, new = (weights, precision, scales), (weights, precision, new_scales)
    return abs(difference - joint_step(machine, signs, old, new) - jacobian)


def test_scales():
    assert scale_error(1.0) < EXACT
    assert scale_error(2.0) > 0.2


def test_weights():
    machine, signs, weights, precision, scales = world()
    prior = svm.Prior(precision, machine.bias_precision)
    quadratic, linear = svm.weights_conditional(machine.values, signs, 1.0 / scales, COST, prior)

    def log_density(beta):
        return -0.5 * beta @ quadratic @ beta + linear @ beta

    new = weights + np.array([0.5, -1.0, 0.3, 0.8])
    expected = joint_step(machine, signs, (weights, precision, scales), (new, precision, scales))
    assert log_density(new) - log_density(weights) == pytest.approx(expected, abs=EXACT)


def test_precision():
    machine, signs, weights, precision, scales = world()
    shape, rate = precision_conditional(3, float(weights[:-1] @ weights[:-1]), GammaPrior(*machine.gamma))
    log_density = stats.gamma(shape, scale=1.0 / rate).logpdf
    expected = joint_step(machine, signs, (weights, precision, scales), (weights, 0.6, scales))
    assert log_density(0.6) - log_density(precision) == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (3, 6)])
def test_draws_of_weights_have_the_right_mean_and_covariance(dual, shape):
    """A draw is linear in its normals: unit vectors tell mean and covariance exactly, in both forms."""
    machine, signs, _, precision, scales = world(*shape)
    prior = svm.Prior(precision, machine.bias_precision)
    features = svm.features_of(machine.values, dual)
    arguments = (features, signs, 1.0 / scales, COST, prior)
    mean = svm.draw_weights(*arguments, None)
    quadratic, linear = svm.weights_conditional(machine.values, signs, 1.0 / scales, COST, prior)
    np.testing.assert_allclose(mean, np.linalg.solve(quadratic, linear), rtol=1e-9)
    root = np.array([svm.draw_weights(*arguments, unit) - mean for unit in np.eye(features.n_noise)]).T
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(quadratic), rtol=1e-8, atol=1e-12)


def test_the_cheaper_form_is_chosen():
    assert svm.features_of(np.zeros((5, 3)) + 1.0).products is None
    assert svm.features_of(np.zeros((4, 3))).products is None
    assert svm.features_of(np.eye(3, 5)).products is not None


def test_float32_features_are_used_as_they_are():
    machine, signs, weights, _, scales = world(9000, 3)
    single = machine.values.astype(np.float32)
    np.testing.assert_allclose(
        svm.decisions(single, weights), single.astype(float) @ weights[:-1] + weights[-1], rtol=1e-12
    )
    prior = svm.Prior(1.0, 1.0)
    ours = svm.weights_conditional(single, signs, 1.0 / scales, COST, prior)
    wide = svm.weights_conditional(single.astype(float), signs, 1.0 / scales, COST, prior)
    for one, other in zip(ours, wide):
        np.testing.assert_allclose(one, other, rtol=1e-12)


# ------------------------------------------------------------------------------------ inverse Gaussian


@pytest.mark.parametrize("mean", [1e-3, 0.2, 1.0, 30.0, 1e4])
def test_inverse_gaussian(mean):
    random = np.random.default_rng(5)
    draws = [
        inverse_gaussian(1.0 / mean, z, u) for z, u in zip(random.standard_normal(4000), random.random(4000))
    ]
    assert stats.kstest(draws, stats.invgauss(mean).cdf).pvalue > SURE


def test_inverse_gaussian_of_infinite_mean():
    """An item exactly on the margin: 1 over a chi-squared."""
    normals = np.random.default_rng(6).standard_normal(4000)
    draws = np.array([inverse_gaussian(0.0, z, 0.999) for z in normals])
    np.testing.assert_allclose(draws, normals**-2.0)


def test_inverse_gaussian_is_precise_for_large_means():
    """The textbook form loses all digits here: the smaller root is about 1 / z^2."""
    assert inverse_gaussian(1e-12, 1.5, 0.1) == pytest.approx(1.0 / 2.25, rel=1e-5)


def test_the_kernel_agrees_with_its_twin():
    gaps, seed, class_number, sweep = np.array([1.5, -0.2, 0.0, 3.0]), 77, 3, 9
    drawn = svm.draw_inverse_scales(gaps, COST, seed, class_number, sweep)
    for n, gap in enumerate(gaps):
        words = philox(n, class_number, sweep, int(Stream.SVM_SCALES), *key_of(seed))
        v = stats.norm.ppf(uniform_52(words[0], words[1])) ** 2
        a = abs(COST * gap)
        x = 1.0 / v
        if a > 0.0:
            mu = 1.0 / a
            x = mu + 0.5 * mu**2 * v - 0.5 * mu * math.sqrt(4.0 * mu * v + mu**2 * v**2)
            if uniform_52(words[2], words[3]) > mu / (mu + x):
                x = mu**2 / x
        assert drawn[n] == pytest.approx(x, rel=1e-6)


def test_expected_scales_are_the_means_of_the_drawn():
    gaps = np.full(20_000, -1.7)
    drawn = svm.draw_inverse_scales(gaps, COST, 1, 0, 1)
    assert drawn.mean() == pytest.approx(expected_inverse_scales(gaps[:1], COST, 1e-9)[0], rel=0.03)


def test_draws_of_scales_are_bounded():
    drawn = svm.draw_inverse_scales(np.zeros(200_000), 1.0, 1, 0, 1)
    assert drawn.max() <= svm.LARGEST_INVERSE_SCALE
