"""The bound on the noise from the covariance of patches."""

import time
import warnings

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from kruskal.data import noise_bound, signal_directions
from kruskal.defaults import Look

SAMPLES = [
    ((1_000,), (32,)),
    ((20_000,), (32,)),
    ((50, 50), (8, 8)),
    ((100, 90), (8, 8)),
    ((256, 256), (8, 8)),
    ((64, 64, 3), (8, 8, 3)),
    ((12, 12, 12), (4, 4, 4)),
    ((40, 30, 35), (4, 4, 4)),
    ((9, 9, 9, 9), (3, 3, 3, 3)),
]


def white(shape, seed=3, std=5.0):
    return std * np.random.default_rng(seed).standard_normal(shape)


def texture(shape=(128, 128), power=1.5):
    """Fills all directions of patch space, the smoother ones more: amplitudes fall as 1 / frequency^power."""
    frequency = np.hypot(*np.meshgrid(*(np.fft.fftfreq(size) for size in shape), indexing="ij"))
    frequency[0, 0] = np.inf
    waves = np.fft.fft2(np.random.default_rng(8).standard_normal(shape)) / frequency**power
    values = np.fft.ifft2(waves).real
    return 100 + 40 * values / values.std()


@pytest.mark.parametrize("shape, patch", SAMPLES)
def test_of_white_noise_it_is_about_its_standard_deviation(shape, patch):
    """Never clearly less; more where the sample is small."""
    bounds = [noise_bound(white(shape, seed), patch) for seed in range(8)]
    small = np.prod(shape) < 12_500
    assert min(bounds) > 5.0 * (0.95 if small else 0.985)
    assert np.mean(bounds) == pytest.approx(5.0, rel=0.2 if small else 0.06)


@pytest.mark.parametrize("shape", [(3,), (40,), (9, 9), (20, 20), (6, 5, 4), (4, 4, 4, 4)])
def test_tiny_arrays_have_none(shape):
    patch = tuple((size + 1) // 2 for size in shape)
    assert noise_bound(white(shape), patch) is None


def test_texture_is_not_noise():
    """It is above the noise, and far below what second differences take for noise."""
    values = texture()
    noisy = values + white(values.shape)
    assert 4.8 < noise_bound(noisy, (8, 8)) < 6.5
    assert noise_bound(noisy + white(values.shape, seed=4, std=12.0), (8, 8)) == pytest.approx(13.0, rel=0.1)


@pytest.mark.parametrize("width", [0.6, 0.8, 1.2])
def test_correlated_noise_has_none(width):
    noise = gaussian_filter(white((128, 128), std=20.0), width)
    smooth = 100 * np.sin(np.add.outer(np.arange(128), np.arange(128)) / 40)
    assert noise_bound(noise, (8, 8)) is None
    assert noise_bound(smooth + noise, (8, 8)) is None


@pytest.mark.parametrize("exponent", [-1000, -300, 300, 1015])
def test_very_large_and_very_small_numbers(exponent):
    values = white((100, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = noise_bound(np.ldexp(values, exponent), (8, 8))
    assert found == np.ldexp(noise_bound(values, (8, 8)), exponent)


def test_what_says_nothing():
    values = white((100, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert noise_bound(np.zeros((100, 100)), (8, 8)) is None
        assert noise_bound(np.full((100, 100), 7.0), (8, 8)) is None
        values[50, 50] = 1e12  # an outlier is in all directions: a bound that says nothing
        assert noise_bound(values, (8, 8)) > 1e9
        assert noise_bound(np.add.outer(np.arange(100.0), np.arange(100.0)), (8, 8)) is None


def test_any_dtype_and_order_in_memory():
    values = np.rint(white((100, 100), std=20.0)).astype(np.int16)
    bound = noise_bound(values, (8, 8))
    assert bound == pytest.approx(20.0, rel=0.1)
    assert noise_bound(np.asfortranarray(values), (8, 8)) == bound
    assert noise_bound(values.astype(np.float32), (8, 8)) == pytest.approx(bound, rel=1e-6)


def test_directions_in_which_there_is_more_than_noise():
    """None in noise, about three in what is smooth, more in texture; units do not matter."""
    assert signal_directions(white((100, 100)), (8, 8), 5.5) < 0.2
    smooth = gaussian_filter(white((200, 200)), 25.0)
    smooth *= 100.0 / smooth.std()
    assert signal_directions(smooth + white(smooth.shape), (8, 8), 5.5) == pytest.approx(3.0, abs=0.3)
    rough = texture()
    few, many = (signal_directions(rough + white(rough.shape), (8, 8), noise) for noise in (20.0, 5.0))
    assert 3.0 < few < many < 64.0
    assert signal_directions(np.ldexp(rough, 900), (8, 8), np.ldexp(5.0, 900)) == pytest.approx(
        signal_directions(rough, (8, 8), 5.0)
    )


def test_it_takes_little_time():
    values = white((2_200, 2_000))
    began = time.process_time()  # whatever else the machine is doing
    assert noise_bound(values, (8, 8)) == pytest.approx(5.0, rel=0.03)
    assert time.process_time() - began < 5.0  # about half a second


@pytest.mark.parametrize("noise", [(5.0, 15.0, 15.0), (7.0, 5.0, 10.0)])
def test_channels_with_different_noise_are_bounded_by_their_mean(noise):
    """The cleanest of them must not bound all."""
    random = np.random.default_rng(2)
    x = texture((64, 64))[..., None] + np.array(noise) * random.standard_normal((64, 64, 3))
    look = Look.at(x, np.ones(x.shape, bool), 256.0)
    mean = float(np.sqrt(np.mean(np.square(noise))))
    assert look.most_noise is None or look.most_noise > 0.97 * mean


def test_signals_are_no_pictures():
    """Whether their axis is alone or beside one of length 1."""
    x = np.cumsum(np.random.default_rng(0).standard_normal(3_000)) + 3.0 * white((3_000,))
    looks = [Look.at(y, np.ones(y.shape, bool), 100.0) for y in (x, x[:, None], x[None])]
    assert all(look.growth is None and look.directions is None for look in looks)
    assert looks[0].most_noise == looks[1].most_noise == looks[2].most_noise
