"""Resizing and local contrast normalisation."""

import numpy as np
import pytest

from kruskal.data import normalize_contrast, resize
from kruskal.errors import InputError


def twin(picture, window, spread):
    """The formula, one pixel at a time."""
    rows, columns, _ = picture.shape
    reach = window // 2

    def around(i, j):
        for p in range(max(i - reach, 0), min(i + reach + 1, rows)):
            for q in range(max(j - reach, 0), min(j + reach + 1, columns)):
                yield p, q, np.exp(-0.5 * ((p - i) ** 2 + (q - j) ** 2) / spread**2)

    def mean(values, i, j):
        parts = [(w, values[p, q].mean()) for p, q, w in around(i, j)]
        return sum(w * v for w, v in parts) / sum(w for w, _ in parts)

    centred = np.array([[picture[i, j] - mean(picture, i, j) for j in range(columns)] for i in range(rows)])
    deviation = np.array([[mean(centred**2, i, j) ** 0.5 for j in range(columns)] for i in range(rows)])
    return centred / np.maximum(deviation, deviation.mean())[..., None]


@pytest.mark.parametrize("channels", [1, 3])
def test_contrast_agrees_with_its_twin(channels):
    pictures = np.random.default_rng(0).random((2, 9, 7, channels))
    found = normalize_contrast(pictures, window=5, spread=1.5)
    assert found.dtype == np.float32
    for picture, one in zip(pictures, found):
        np.testing.assert_allclose(one, twin(picture, 5, 1.5), atol=1e-5)


def test_brightness_and_contrast_of_a_picture_do_not_matter():
    pictures = np.random.default_rng(1).random((3, 20, 16))
    plain = normalize_contrast(pictures)
    assert plain.shape == pictures.shape
    np.testing.assert_allclose(normalize_contrast(7.0 * pictures + 3.0), plain, atol=1e-4)


def test_edges_of_weak_and_strong_contrast_become_alike():
    picture = np.zeros((1, 32, 64))
    picture[0, :, 16:32] = 0.2
    picture[0, :, 48:] = 1.0
    found = normalize_contrast(picture)[0]
    assert 0.2 < np.abs(found[:, 14:18]).max() / np.abs(found[:, 46:50]).max() < 1.2
    assert np.abs(found).max() < 5.0


@pytest.mark.parametrize("value", [0.0, 0.3, 255.0])
def test_flat_pictures_become_zero(value):
    assert not normalize_contrast(np.full((1, 12, 12, 3), value)).any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((np.zeros((4, 4)),), r"pictures have shape \(4, 4\), expected \(N, rows, columns\)"),
        ((np.zeros((1, 4, 4)), 4), "window must be an odd number of pixels, not 4"),
        ((np.zeros((1, 4, 4)), 3, 0), "spread must be a number of pixels above 0, not 0"),
        ((np.full((2, 4, 4), np.nan),), "picture 0 has entries that are NaN or infinite"),
    ],
)
def test_bad_pictures(arguments, message):
    with pytest.raises(InputError, match=message):
        normalize_contrast(*arguments)


def test_shrinking_averages_areas():
    picture = np.random.default_rng(2).random((12, 9)).astype(np.float32)
    np.testing.assert_allclose(
        resize(picture, (4, 3)), picture.reshape(4, 3, 3, 3).mean(axis=(1, 3)), atol=1e-6
    )
    assert resize(picture, (4, 5)).mean() == pytest.approx(picture.mean(), abs=0.02)
    stripes = np.tile([0.0, 1.0], (8, 32))  # the finest stripes become grey, not coarser stripes
    np.testing.assert_allclose(resize(stripes, (8, 32)), 0.5)


def test_growing_interpolates():
    ramp = np.tile(np.arange(5.0), (3, 1))
    found = resize(ramp, (3, 10))
    np.testing.assert_allclose(found[:, 1:-1], np.tile(np.arange(0.25, 4.0, 0.5), (3, 1)), atol=1e-6)
    both = resize(np.stack([ramp, 2.0 * ramp, ramp], axis=-1), (2, 10))  # rows shrink, columns grow
    assert both.shape == (2, 10, 3)
    np.testing.assert_allclose(both[0, :, 1], 2.0 * found[0], atol=1e-6)


def test_the_same_size_changes_nothing():
    picture = np.random.default_rng(3).random((5, 6, 3)).astype(np.float32)
    np.testing.assert_array_equal(resize(picture, (5, 6)), picture)
    with pytest.raises(InputError, match="picture has shape"):
        resize(np.zeros(4), 2)
