"""Counts: restored as roots, told as counts."""

import numpy as np
import pytest
from scipy import stats

import kruskal
from kruskal import data
from kruskal.cli import main
from kruskal.data import counts_of_roots, noise_grows, roots_of_counts
from kruskal.data.counts import LEAST
from kruskal.engines.chain import Chain
from kruskal.engines.progress import Silent

QUICK = {"patch_shape": (6, 6), "n_atoms": 24, "sweeps": 24, "seed": 1, "threads": 1, "auto": False}


def bumps(peak):
    """Mean counts with dark and bright places, and one draw of them."""
    rows, columns = np.mgrid[:64, :64]
    mean = peak * (
        0.02 + np.exp(-((rows - 20) ** 2 + (columns - 40) ** 2) / 300.0) * (1 + np.sin(rows / 4.0)) / 2
    )
    return mean, np.random.default_rng(2).poisson(mean)


def error(found, truth):
    return np.sqrt(np.mean((found - truth) ** 2))


@pytest.mark.parametrize("mean", [0.3, 1.0, 4.0, 20.0, 300.0])
def test_the_way_back_is_that_of_the_mean_root(mean):
    """Against the exact mean and spread of the roots of Poisson counts."""
    counts = np.arange(int(mean + 20 * np.sqrt(mean)) + 30)
    share = stats.poisson(mean).pmf(counts)
    roots = roots_of_counts(counts, np.ones(counts.shape, bool))
    root = share @ roots
    back, std = counts_of_roots(np.array([root]), np.array([0.0]))
    assert back[0] == pytest.approx(mean, rel=0.01, abs=0.02) and std[0] == 0.0
    if mean >= 4.0:
        assert share @ (roots - root) ** 2 == pytest.approx(1.0, abs=0.05)


def test_uncertainty_of_counts():
    """By the slope of the way back and its bend, and a mean that lies above that of the mean root."""
    root, step = np.array([3.0, 9.0, 40.0]), 1e-5
    middle, std = counts_of_roots(root, np.full(3, 0.2))
    above, _ = counts_of_roots(root + step, np.zeros(3))
    below, _ = counts_of_roots(root - step, np.zeros(3))
    slope = (above - below) / (2 * step)
    np.testing.assert_allclose(std**2, (0.2 * slope) ** 2 + 0.2**4 / 8, rtol=1e-6)
    np.testing.assert_allclose(middle - counts_of_roots(root, np.zeros(3))[0], 0.01, rtol=1e-9)


def test_uncertainty_of_counts_of_which_little_is_known():
    """A normal root whose spread is as large as itself, squared."""
    roots = np.random.default_rng(0).normal(12.0, 12.0, 1_000_000)
    mean, std = counts_of_roots(np.array([12.0]), np.array([12.0]))
    assert mean[0] == pytest.approx((roots**2 / 4).mean(), rel=0.01)
    assert std[0] == pytest.approx((roots**2 / 4).std(), rel=0.01)


def test_no_count_is_negative():
    mean, std = counts_of_roots(np.array([-3.0, 0.0, LEAST]), np.zeros(3))
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    assert (std == 0.0).all()


def test_photon_noise():
    """One noise level for all takes the noise of bright places for detail."""
    truth, counts = bumps(60.0)
    plain = kruskal.denoise(counts, **QUICK)
    found = kruskal.denoise(counts, counts=True, **QUICK)
    assert error(found.mean, truth) < 0.7 * error(plain.mean, truth)
    assert error(found.mean, truth) < 0.35 * error(counts, truth)
    assert found.mean.min() >= 0.0 and found.mean.mean() == pytest.approx(truth.mean(), rel=0.03)
    assert found.noise_std == pytest.approx(np.sqrt(truth.mean()), rel=0.2)
    assert found.trace["noise_std"][-1] == pytest.approx(1.0, abs=0.2)  # in units of roots
    assert np.mean(np.abs(found.mean - truth) < 2 * found.std + 0.1) > 0.8
    assert found.settings["counts"] is True and plain.settings["counts"] is False


def test_few_photons_in_the_dark():
    """Where hardly any is counted there is hardly any noise, which says nothing of the rest."""
    truth, counts = bumps(6.0)
    assert np.mean(counts == 0) > 0.5
    found = kruskal.denoise(counts, counts=True, **QUICK)
    assert found.trace["noise_std"].min() >= 1.0 and found.settings["least_noise"] == 1.0
    assert found.settings["most_noise"] is None
    assert error(found.mean, truth) < 0.4 * error(counts, truth)


def test_missing_counts_and_threads_and_resume(tmp_path):
    truth, counts = bumps(60.0)
    seen = np.random.default_rng(3).random(counts.shape) < 0.6
    values = np.where(seen, counts, np.nan)
    values[~seen & (np.arange(64) % 2 == 0)] = -7.0  # whatever is missing may be anything
    one = kruskal.inpaint(values, seen, counts=True, checkpoint=tmp_path / "run", **QUICK)
    two = kruskal.inpaint(values, seen, counts=True, **QUICK | {"threads": 2})
    np.testing.assert_array_equal(one.mean, two.mean)
    again = kruskal.resume(tmp_path / "run")
    np.testing.assert_array_equal(one.mean, again.mean)
    np.testing.assert_array_equal(one.std, again.std)
    assert error(one.mean, truth) < 0.5 * error(counts, truth)


@pytest.mark.parametrize(
    "options", [{"model": "bpfa"}, {"online": True, "sweeps": None, "epochs": 3}], ids=str
)
def test_other_ways_to_learn(options):
    truth, counts = bumps(60.0)
    found = kruskal.denoise(counts, counts=True, **QUICK | options)
    assert error(found.mean, truth) < 0.6 * error(counts, truth)


def test_grey_counts_in_three_channels():
    _, counts = bumps(20.0)
    options = {"n_atoms": 8, "sweeps": 4, "seed": 1, "threads": 1, "auto": False, "counts": True}
    found = kruskal.denoise(np.repeat(counts[..., None], 3, axis=-1), **options)
    assert found.mean.shape == (64, 64, 3) and np.array_equal(found.mean[..., 0], found.mean[..., 2])


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"counts": "yes"}, "counts must be True or False, not 'yes'"),
        ({"counts": True, "model": "mgp-cp"}, "counts is no option of the model mgp-cp"),
        ({"counts": True, "dictionary": "atoms.npz"}, "counts is not for runs from a dictionary"),
    ],
    ids=str,
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.denoise(bumps(5.0)[1], **options)


def test_negative_numbers_are_no_counts():
    values = bumps(5.0)[1].astype(float)
    values[3, 4] = -0.5
    with pytest.raises(kruskal.InputError, match=r"x holds -0\.5, but counts are never negative"):
        kruskal.denoise(values, counts=True)


@pytest.mark.parametrize("factor", [1 / 200.0, 1e-18])
def test_fractions_of_one_are_no_counts(factor):
    with pytest.raises(kruskal.InputError, match="but each count is 1: multiply x, or leave counts out"):
        kruskal.denoise(bumps(60.0)[1] * factor, counts=True)
    kruskal.denoise(np.minimum(bumps(3.0)[1], 1), counts=True, **QUICK | {"sweeps": 2})  # no fractions
    kruskal.denoise(bumps(60.0)[1] / 1.7, counts=True, **QUICK | {"sweeps": 2})  # by the gain of a camera


def test_few_photons_are_noisy():
    """Most are 0, which looks clean; but the noise of roots is known."""
    found = kruskal.denoise(bumps(3.0)[1], counts=True, n_atoms=8, sweeps=2, seed=1, threads=1, auto=False)
    assert found.settings["grouping"] == "likeness" and found.settings["sparsity"] > 0.0


def interrupted_at(sweep, advance):
    def interrupted(self, *options, **more):
        if self.done == sweep:
            raise KeyboardInterrupt
        advance(self, *options, **more)

    return interrupted


def test_resumed_in_the_middle(tmp_path, monkeypatch):
    _, counts = bumps(6.0)
    whole = kruskal.denoise(counts, counts=True, **QUICK)
    monkeypatch.setattr(Chain, "advance", interrupted_at(9, Chain.advance))
    with pytest.raises(KeyboardInterrupt):
        kruskal.denoise(counts, counts=True, checkpoint=tmp_path / "run", **QUICK)
    monkeypatch.undo()
    np.testing.assert_array_equal(kruskal.resume(tmp_path / "run").mean, whole.mean)


@pytest.mark.parametrize("suffix, kind", [(".npy", np.float32), (".png", np.uint8)])
def test_restored_counts_in_files(suffix, kind, tmp_path):
    """They are not whole, and only pictures round them."""
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    data.write(source, bumps(40.0)[1].astype(np.uint8), dtype=np.uint8)
    options = ["--counts", "--sweeps", "4", "--atoms", "8", "--threads", "1", "--quiet"]
    assert main(["denoise", str(source), "-o", str(target), *options]) == 0
    assert data.read(target).values.dtype == kind


def test_notes_are_resumed(tmp_path, monkeypatch):
    """What there was to say before the interrupt is in the result, once."""
    counts, options = bumps(40.0)[1], {"n_atoms": 8, "sweeps": 6, "auto": False, "threads": 1}
    counts = np.where(np.random.default_rng(0).random(counts.shape) < 0.9, counts, np.nan)
    counts[:20, :20] = np.nan
    whole = kruskal.inpaint(counts, **options)
    monkeypatch.setattr(Chain, "advance", interrupted_at(3, Chain.advance))
    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint(counts, checkpoint=tmp_path / "run", **options)
    monkeypatch.undo()
    assert len(whole.notes) == 2 and kruskal.resume(tmp_path / "run").notes == whole.notes


def test_noise_that_grows_is_seen():
    truth, counts = bumps(60.0)
    everything = np.ones(truth.shape, bool)
    assert noise_grows(counts, everything)
    assert noise_grows(counts, np.random.default_rng(1).random(truth.shape) < 0.8)
    even = truth + 40.0 + 3.0 * np.random.default_rng(1).standard_normal(truth.shape)
    assert not noise_grows(even, everything)
    assert not noise_grows(even - 45.0, everything)  # negative: no counts
    even[:12] = 0.0  # padding has no noise
    assert not noise_grows(even, everything)
    assert noise_grows(1e303 * counts, everything)  # without overflow
    for shape in ((2, 2), (5,), (1, 9)):
        assert not noise_grows(np.ones(shape), np.ones(shape, bool))


class Notes(Silent):
    """Remembers what it is told."""

    def __init__(self):
        self.told = []

    def note(self, text):
        self.told.append(text)


@pytest.mark.parametrize("told", [False, True])
def test_who_does_not_say_counts_is_told_to(told):
    progress = Notes()
    options = QUICK | {"sweeps": 2, "progress": progress, "counts": told}
    kruskal.denoise(bumps(60.0)[1], **options)
    assert any("counts=True, --counts" in text for text in progress.told) is not told
