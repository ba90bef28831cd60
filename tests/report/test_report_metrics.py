"""The measures against formulas written down a second time, and against hand-made cases."""

import json
import math

import numpy as np
import pytest

from kruskal.errors import InputError
from kruskal.report import coverage, default_peak, psnr, rrse, scores, ssim


@pytest.fixture
def pair():
    generator = np.random.default_rng(1)
    reference = generator.integers(0, 256, (20, 23)).astype(np.uint8)
    estimate = reference + generator.normal(0, 8, reference.shape)
    return estimate, reference


def test_psnr_of_bytes(pair):
    estimate, reference = pair
    mean_square = (
        sum((float(a) - float(b)) ** 2 for a, b in zip(estimate.flat, reference.flat)) / reference.size
    )
    assert psnr(estimate, reference) == pytest.approx(10 * math.log10(255**2 / mean_square), abs=1e-10)


def test_psnr_of_two_byte_arrays_does_not_wrap_around():
    assert psnr(np.full(4, 255, np.uint8), np.zeros(4, np.uint8)) == pytest.approx(0.0)


def test_psnr_where_counts_only_the_chosen(pair):
    estimate, reference = pair
    where = np.zeros(reference.shape, dtype=bool)
    where[3, 4] = True
    expected = 20 * math.log10(255 / abs(estimate[3, 4] - float(reference[3, 4])))
    assert psnr(estimate, reference, where=where) == pytest.approx(expected)


def test_psnr_of_identical_arrays_is_infinite(pair):
    assert psnr(pair[1], pair[1]) == math.inf


def test_psnr_and_rrse_are_consistent_with_peak_max():
    """The identity that shows the paper's amino convention: PSNR + 20 log10 RRSE depends on X only."""
    generator = np.random.default_rng(2)
    reference = generator.gamma(2.0, 100.0, (5, 6, 7))
    root_mean_square = math.sqrt((reference**2).mean())
    for noise in (1.0, 30.0):
        estimate = reference + noise * generator.normal(size=reference.shape)
        total = psnr(estimate, reference) + 20 * math.log10(rrse(estimate, reference))
        assert total == pytest.approx(20 * math.log10(reference.max() / root_mean_square))


@pytest.mark.parametrize(
    ("reference", "peak"),
    [
        (np.array([1, 2], np.uint8), 255),
        (np.array([1, 2], np.uint16), 65535),
        (np.array([1, 2], np.int16), 32767),
        (np.array([0.25, 0.5, np.nan]), 0.5),
        (np.array([-3.0, -1.0]), 2),
        (np.array([0.0, 0.0]), 0),
    ],
)
def test_default_peak(reference, peak):
    assert default_peak(reference) == peak


def test_rrse_is_the_frobenius_ratio(pair):
    estimate, reference = pair
    truth = reference.astype(float)
    assert rrse(estimate, reference) == pytest.approx(
        math.sqrt(((estimate - truth) ** 2).sum()) / math.sqrt((truth**2).sum())
    )
    assert rrse(2 * truth, reference) == pytest.approx(1.0)
    assert rrse(np.zeros(3), np.zeros(3)) == 0
    assert rrse(np.ones(3), np.zeros(3)) == math.inf


def test_entries_without_a_finite_reference_are_left_out(pair):
    estimate, reference = pair[0], pair[1].astype(float)
    where = np.ones(reference.shape, dtype=bool)
    where[2:5] = False
    partly_known = np.where(where, reference, np.nan)
    assert psnr(estimate, partly_known, 255) == psnr(estimate, reference, 255, where)
    assert rrse(estimate, partly_known) == rrse(estimate, reference, where)
    assert ssim(estimate, partly_known) is None


def plain_ssim(estimate, reference, peak, window):
    """Wang's index with a flat window and sample covariances, window by window."""
    first, second = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    found = []
    for corner in np.ndindex(*(side - window + 1 for side in reference.shape)):
        place = tuple(slice(start, start + window) for start in corner)
        x, y = reference[place].astype(float).ravel(), estimate[place].ravel()
        covariance = np.cov(x, y)
        found.append(
            (2 * x.mean() * y.mean() + first)
            * (2 * covariance[0, 1] + second)
            / (x.mean() ** 2 + y.mean() ** 2 + first)
            / (covariance[0, 0] + covariance[1, 1] + second)
        )
    return np.mean(found)


def test_ssim_of_a_picture(pair):
    assert ssim(*pair) == pytest.approx(plain_ssim(*pair, peak=255, window=7), abs=1e-9)


def test_ssim_window_shrinks_and_order_is_free(pair):
    estimate, reference = pair[0].ravel()[:120].reshape(5, 6, 4), pair[1].ravel()[:120].reshape(5, 6, 4)
    swapped = estimate.transpose(2, 0, 1), reference.transpose(2, 0, 1)
    assert ssim(*swapped) == pytest.approx(plain_ssim(*swapped, peak=255, window=3), abs=1e-9)
    assert ssim(estimate[:, 0, 0], reference[:, 0, 0]) == pytest.approx(
        plain_ssim(estimate[:, 0, 0], reference[:, 0, 0], peak=255, window=5), abs=1e-9
    )
    assert ssim(estimate[:2], reference[:2]) is None


def test_ssim_of_colours_is_the_mean_of_the_channels(pair):
    estimate, reference = pair
    colours = np.stack([reference, reference[::-1], reference // 2], axis=-1)
    restored = np.stack([estimate, estimate[:, ::-1], estimate / 3], axis=-1)
    channels = [plain_ssim(restored[..., c], colours[..., c], peak=255, window=7) for c in range(3)]
    assert ssim(restored, colours) == pytest.approx(np.mean(channels), abs=1e-9)
    assert ssim(restored[..., None], colours[..., None]) == pytest.approx(np.mean(channels), abs=1e-9)


def test_ssim_where_averages_the_windows_around_the_chosen(pair):
    estimate, reference = pair
    where = np.zeros(reference.shape, dtype=bool)
    where[10, 12] = True
    window = np.s_[7:14, 9:16]
    assert ssim(estimate, reference, where=where) == pytest.approx(ssim(estimate[window], reference[window]))
    where[:] = False
    where[0, 0] = True
    assert ssim(estimate, reference, where=where) is None


def test_coverage_counts():
    mean, std = np.zeros(5), np.array([0.0, 3.0, 4.0, 0.0, 0.0])
    reference = np.array([7.9, 9.9, 11.4, -8.1, 100.0])
    assert coverage(mean, std, 4.0, reference) == pytest.approx(0.4)
    assert coverage(mean, std, 4.0, reference, where=np.arange(5) >= 3) == 0
    assert coverage(mean, std, 4.0, reference, width=3.0) == pytest.approx(0.8)


def test_coverage_of_a_gaussian():
    generator = np.random.default_rng(3)
    std = 1 + generator.random(40000)
    reference = np.hypot(std, 0.5) * generator.normal(size=std.size)
    assert coverage(np.zeros(std.size), std, 0.5, reference) == pytest.approx(0.9545, abs=0.005)


def test_scores_are_the_measures_over_each_set(pair):
    estimate, reference = pair
    observed = np.random.default_rng(4).random(reference.shape) < 0.3
    found = scores(estimate, reference, observed)
    assert found == {
        "psnr": psnr(estimate, reference),
        "rrse": rrse(estimate, reference),
        "ssim": ssim(estimate, reference),
        "psnr_observed": psnr(estimate, reference, where=observed),
        "rrse_observed": rrse(estimate, reference, observed),
        "ssim_observed": ssim(estimate, reference, where=observed),
        "psnr_missing": psnr(estimate, reference, where=~observed),
        "rrse_missing": rrse(estimate, reference, ~observed),
        "ssim_missing": ssim(estimate, reference, where=~observed),
    }
    assert all(type(value) is float for value in found.values())


def test_scores_fit_into_json(pair):
    _, reference = pair
    everything = np.ones(reference.shape, dtype=bool)
    found = json.loads(json.dumps(scores(reference, reference, everything), allow_nan=False))
    assert found["psnr"] is None and found["rrse"] == 0 and found["ssim"] == pytest.approx(1)
    assert found["psnr_missing"] is None and found["rrse_missing"] is None and found["ssim_missing"] is None
    nothing_to_see = scores(np.ones(4), np.zeros(4), np.ones(4, dtype=bool))
    assert json.loads(json.dumps(nothing_to_see, allow_nan=False))["psnr"] is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: psnr(np.zeros(3), np.zeros(4)), "shape"),
        (lambda: psnr(np.zeros(3), np.ones(3), peak=0), "peak"),
        (lambda: psnr(np.zeros(3), np.ones(3), where=np.zeros(3, dtype=bool)), "no entry"),
        (lambda: psnr(np.zeros(3), np.ones(3), where=np.ones(2, dtype=bool)), "where"),
        (lambda: rrse(np.array([np.nan, 0]), np.ones(2)), "not finite"),
        (lambda: rrse(np.zeros(2, dtype=complex), np.ones(2)), "real numbers"),
        (lambda: rrse(np.zeros(2), np.array(["a", "b"])), "real numbers"),
        (lambda: coverage(np.zeros(2), np.zeros(3), 1.0, np.zeros(2)), "std"),
        (lambda: scores(np.zeros(2), np.zeros(2), np.ones(3, dtype=bool)), "observed"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(InputError, match=words):
        call()
