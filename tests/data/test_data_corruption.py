"""Damage is seeded, has the right statistics, and is remembered in its file."""

import numpy as np
import pytest

from kruskal.data import Metadata, corrupt, read, write, write_corrupted
from kruskal.errors import InputError

CLEAN = np.random.default_rng(3).integers(0, 256, size=(200, 250)).astype(np.uint8)


def test_share_of_kept_entries():
    values, observed = corrupt(CLEAN, keep=0.2, seed=1)
    assert values.dtype == np.float64
    assert observed.dtype == bool
    deviation = np.sqrt(0.2 * 0.8 / CLEAN.size)
    assert abs(observed.mean() - 0.2) < 4 * deviation
    # independent of the neighbour
    both = (observed[:, 1:] & observed[:, :-1]).mean()
    assert abs(both - 0.04) < 5 * np.sqrt(0.04 / CLEAN.size)
    np.testing.assert_array_equal(values[observed], CLEAN[observed])
    assert np.isnan(values[~observed]).all()


def test_channels_are_dropped_independently():
    _, observed = corrupt(np.zeros((100, 100, 3)), keep=0.5)
    assert 0.1 < observed.all(axis=-1).mean() < 0.15


def test_noise():
    values, observed = corrupt(CLEAN, noise=10, seed=1)
    assert observed.all()
    noise = values - CLEAN
    assert abs(noise.mean()) < 4 * 10 / np.sqrt(CLEAN.size)
    assert abs(noise.std() / 10 - 1) < 4 / np.sqrt(2 * CLEAN.size)
    assert abs(np.mean(noise**4) / 1e4 - 3) < 0.2
    assert abs(np.mean(noise[:, 1:] * noise[:, :-1])) < 4 * 100 / np.sqrt(CLEAN.size)
    assert values.min() < 0  # not clipped
    assert values.max() > 255


def test_mask_and_noise_are_independent():
    plain = corrupt(CLEAN, keep=0.3, seed=5)
    noisy = corrupt(CLEAN, keep=0.3, noise=4, seed=5)
    np.testing.assert_array_equal(plain.observed, noisy.observed)
    complete = corrupt(CLEAN, noise=4, seed=5)
    np.testing.assert_array_equal(complete.values[noisy.observed], noisy.values[noisy.observed])
    more = corrupt(CLEAN, keep=0.6, seed=5)
    assert more.observed[plain.observed].all()


def test_seed():
    first, again, other = (corrupt(CLEAN, keep=0.5, noise=1, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.values, again.values)
    assert abs((first.observed == other.observed).mean() - 0.5) < 0.02


def test_known_numbers():
    """Pins our own output: a change of the streams would silently change every reported number."""
    values, observed = corrupt(np.zeros(6), keep=0.5, noise=1.0, seed=1)
    assert observed.tolist() == [True, True, True, False, True, True]
    expected = [
        0.32803279065429286,
        -0.9807355767331037,
        -0.8872121302602107,
        -1.6198778241540226,
        1.05807772495662,
    ]
    np.testing.assert_allclose(values[observed], expected, rtol=1e-12)


def test_what_was_missing_stays_missing():
    _, observed = corrupt(np.array([1.0, np.nan, 3.0]))
    assert observed.tolist() == [True, False, True]
    _, observed = corrupt(np.ma.masked_array([1, 2, 3], mask=[1, 0, 0]))
    assert observed.tolist() == [False, True, True]


def test_input_is_not_changed():
    values = np.arange(5.0)
    corrupt(values, keep=0.5, noise=1)
    np.testing.assert_array_equal(values, np.arange(5.0))


@pytest.mark.parametrize(
    "options, word",
    [
        ({"keep": 0}, "keep is 0"),
        ({"keep": 1.1}, "keep is 1.1"),
        ({"keep": -0.1}, "keep"),
        ({"keep": float("nan")}, "keep is nan"),
        ({"keep": "half"}, "keep is 'half'"),
        ({"noise": -1}, "noise is -1"),
        ({"noise": float("inf")}, "noise is inf"),
        ({"noise": float("nan")}, "noise"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"seed": 1.5}, "seed must be a whole number from 0 to"),
        ({"seed": 2**64}, "seed must be a whole number from 0 to"),
        ({"keep": 1e-12}, "leaves none"),
    ],
)
def test_wrong_options(options, word):
    with pytest.raises(InputError, match=word):
        corrupt(np.zeros(10), **options)


def test_file_remembers_mask_and_dtype(tmp_path):
    write(tmp_path / "clean.png", CLEAN)
    clean = read(tmp_path / "clean.png")
    damaged = corrupt(clean.values, keep=0.2, noise=10, seed=1)
    for name in ("a.npz", "b.npz"):
        write_corrupted(tmp_path / name, damaged.values, damaged.observed, clean.metadata)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = read(tmp_path / "a.npz")
    np.testing.assert_array_equal(loaded.values, damaged.values)
    np.testing.assert_array_equal(loaded.observed, damaged.observed)
    assert loaded.values.dtype == np.float64
    assert loaded.metadata.dtype == np.uint8
    with np.load(tmp_path / "a.npz") as file:
        assert sorted(file.files) == ["dtype", "observed", "values"]
    # a restored array can be written as a picture
    write(tmp_path / "restored.png", np.nan_to_num(loaded.values), like=loaded.metadata)
    assert read(tmp_path / "restored.png").values.dtype == np.uint8


def test_file_without_metadata(tmp_path):
    write_corrupted(tmp_path / "a.npz", [1.0, np.nan], np.array([True, False]))
    assert read(tmp_path / "a.npz").metadata.dtype == np.float64


def test_wrong_files(tmp_path):
    observed = np.array([True, False])
    with pytest.raises(InputError, match=r"\.npz"):
        write_corrupted(tmp_path / "a.npy", [1.0, 2.0], observed)
    with pytest.raises(InputError, match="does not exist"):
        write_corrupted(tmp_path / "none" / "a.npz", [1.0, 2.0], observed)
    with pytest.raises(InputError, match="observed"):
        write_corrupted(tmp_path / "a.npz", [1.0, 2.0, 3.0], observed)
    np.savez(tmp_path / "b.npz", values=np.zeros(3), dtype=np.array("nonsense"))
    with pytest.raises(InputError, match="nonsense"):
        read(tmp_path / "b.npz")
    assert not (tmp_path / "a.npz").exists()


def test_metadata_default():
    assert Metadata("npy", ".npy", np.dtype("u1"), (1,)).extras == {}


@pytest.mark.filterwarnings("error")
def test_noise_beyond_double_precision_is_refused():
    with pytest.raises(InputError, match=r"noise is 1e\+308, with which values would leave the range"):
        corrupt(np.zeros(100), noise=1e308)
    assert np.isfinite(corrupt(np.zeros(100), noise=1e307).values).all()
