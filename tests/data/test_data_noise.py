"""The quick look at the noise level."""

import warnings

import numpy as np
import pytest

from kruskal.data import growth_of_differences, rough_noise

SHAPES = [(40_000,), (200, 210), (36, 34, 32)]


def smooth(shape):
    """A smooth array of any order, about 0 to 200."""
    grid = np.meshgrid(*(np.linspace(0, 2, size) for size in shape), indexing="ij")
    return 100 + 100 * np.sin(sum(grid))


def noisy(shape, std=5.0):
    return smooth(shape) + std * np.random.default_rng(3).standard_normal(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_of_a_smooth_array(shape):
    values = noisy(shape)
    assert rough_noise(values, np.ones(shape, bool)) == pytest.approx(5.0, rel=0.05)
    assert rough_noise(smooth(shape), np.ones(shape, bool)) < 0.2  # what curvature looks like


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("absent", [np.nan, 1e6, np.inf])
def test_missing_entries_do_not_count(shape, absent):
    observed = np.random.default_rng(4).random(shape) < 0.6
    values = np.where(observed, noisy(shape), absent)
    assert rough_noise(values, observed) == pytest.approx(5.0, rel=0.1)


def test_it_is_the_median_of_second_differences_to_the_last_digit():
    values = noisy((30, 2))  # the second axis is too short
    second = values[:-2] - 2 * values[1:-1] + values[2:]
    assert second.size < 100 and rough_noise(values, np.ones(values.shape, bool)) is None
    values = noisy((60, 2))
    second = values[:-2] - 2 * values[1:-1] + values[2:]
    expected = np.median(np.abs(second)) / (0.6744897501960817 * 6.0**0.5)
    assert rough_noise(values, np.ones(values.shape, bool)) == expected


def test_the_best_axis_counts():
    values = noisy((100, 100)) + 50.0 * (np.arange(100) % 2)  # stripes along one axis only
    assert rough_noise(values, np.ones(values.shape, bool)) == pytest.approx(5.0, rel=0.05)


def test_too_few_triples():
    values = noisy((40, 40))
    observed = np.zeros(values.shape, bool)
    observed[::2, ::2] = True
    assert rough_noise(values, observed) is None
    assert rough_noise(values[:2, :2], np.ones((2, 2), bool)) is None


def test_integers():
    values = np.rint(noisy((200, 210))).astype(np.int16)
    assert rough_noise(values, np.ones(values.shape, bool)) == pytest.approx(5.0, rel=0.05)


@pytest.mark.parametrize("exponent", [-1040, -300, 300, 1015])
def test_very_large_and_very_small_numbers(exponent):
    values = noisy((200, 210))
    observed = np.ones(values.shape, bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rough_noise(np.ldexp(values, exponent), observed)
        at_the_limit = rough_noise(np.where(np.indices(values.shape).sum(0) % 2, 1.7e308, -1.7e308), observed)
    exact = np.ldexp(rough_noise(values, observed), exponent)
    assert found == (exact if exponent > -1000 else pytest.approx(exact, rel=1e-3))
    assert at_the_limit > 1e308
    assert rough_noise(np.zeros(values.shape), observed) == 0


def test_differences_grow_faster_in_what_is_smooth():
    """Five for a plane, three for a random walk, less for what is rough; noise does not matter."""
    random = np.random.default_rng(0)
    every = np.ones((200, 200), bool)
    plane = np.add.outer(np.arange(200.0), 2 * np.arange(200.0))
    walk = np.cumsum(random.standard_normal(40_000))
    stripes = np.broadcast_to(np.arange(200) // 4 % 2, (200, 200)).astype(float)
    for values, expected, tolerance in ((plane, 5.0, 0.01), (walk, 3.0, 0.1)):
        whole = np.ones(values.shape, bool)
        assert growth_of_differences(values, whole) == pytest.approx(expected, abs=tolerance)
        noisy = values + 2.0 * random.standard_normal(values.shape)
        assert growth_of_differences(noisy, whole) == pytest.approx(expected, abs=0.3)
        holes = random.random(values.shape) < 0.7
        assert growth_of_differences(np.where(holes, noisy, np.nan), holes) == pytest.approx(
            expected, abs=0.4
        )
    assert growth_of_differences(stripes, every) < 2.0
    assert growth_of_differences(random.standard_normal((200, 200)), every) is None
    assert growth_of_differences(plane[:6, :6], every[:6, :6]) is None
