"""Values far outside of all others: told, or refused where arithmetic would not survive them."""

import numpy as np
import pytest

import kruskal
from kruskal.data import far_entries
from kruskal.errors import InputError
from kruskal.gibbs.shrinkage import draw_alpha

QUICK = {"patch_shape": (6, 6), "n_atoms": 8, "sweeps": 4, "auto": False, "threads": 1}


def usual(scale=1.0, shape=(60, 60)):
    return scale * np.random.default_rng(0).standard_normal(shape)


def told_of(x, seen=None):
    return far_entries(x, np.ones(x.shape, bool) if seen is None else seen, "x")


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1.0, 1e290])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_is_told(scale, sign):
    x, seen = usual(scale), np.ones((60, 60), bool)
    assert told_of(x, seen) is None
    x[3, 4] = sign * 50.0 * scale  # a spike is no code for nothing
    assert told_of(x, seen) is None
    x[3, 4] = x[7, 1] = sign * 1e5 * scale
    told = told_of(x, seen)
    assert told.startswith(
        f"2 observed entries hold {sign * 1e5 * scale:g}, more than 1,000 times the spread"
    )
    x[7, 1] = 0.0
    x[3, 4] = sign * 1e9 * scale
    with pytest.raises(InputError, match=r"^x holds .*mark such entries as missing"):
        told_of(x, seen)
    seen[3, 4] = False
    assert told_of(x, seen) is None


@pytest.mark.parametrize("share", [0.001, 0.04, 0.06, 0.3, 0.7])
@pytest.mark.parametrize("code", [-9999.0, 1e20, -3.4e38])
def test_codes_on_any_share_of_the_entries(share, code):
    x = usual(shape=(120, 120))
    coded = np.random.default_rng(1).random(x.shape) < share
    x[coded] = code
    if share < 0.002 and abs(code) > 1e9:
        with pytest.raises(InputError, match="mark such entries as missing"):
            told_of(x)
    else:
        assert told_of(x).startswith(f"{coded.sum()} observed entries hold {code:g}")


def stars():
    i, j = np.mgrid[:128, :128]
    peaks = [(20, 30, 1e4), (90, 40, 7e3), (64, 64, 9e3), (100, 100, 2e3), (30, 110, 5e3)]
    return sum(height * np.exp(-((i - a) ** 2 + (j - b) ** 2) / 4.0) for a, b, height in peaks)


def blurred():
    x = np.zeros((128, 128))
    x[30:34, 40:50], x[90:100, 90:95] = 200.0, 100.0
    i = np.fft.fftfreq(128, 1 / 128)
    spread = np.exp(-(i[:, None] ** 2 + i**2) / 4.0)
    return np.fft.ifft2(np.fft.fft2(x) * np.fft.fft2(spread / spread.sum())).real


@pytest.mark.parametrize(
    "x",
    [
        stars(),
        stars() + usual(1.0, (128, 128)),
        blurred(),
        blurred().astype(np.float32),
        blurred() + usual(1e-6, (128, 128)),
        np.exp(-np.add.outer((np.arange(128.0) - 60) ** 2, (np.arange(128.0) - 70) ** 2) / 2.0),
        np.where(usual(1.0, (100, 100)) > 1.6, np.exp(3.0 * usual(1.0, (100, 100))), 0.0),
        np.minimum(np.random.default_rng(0).poisson(200.0, (60, 60)), 230).astype(np.uint8),
        np.random.default_rng(0).integers(0, 2, (60, 60)).astype(bool),
        np.where(usual() > 0, -128, 0).astype(np.int8),
        np.where(np.arange(3600).reshape(60, 60) % 2 > 0, 3.0, 7.0),
        np.array([1.0, 2.0]),
    ],
    ids=[
        "stars",
        "noisy",
        "blurred",
        "single",
        "dusty",
        "peak",
        "lognormal",
        "saturated",
        "bool",
        "int8",
        "two",
        "few",
    ],
)
def test_data_that_are_none_of_it(x):
    """Little on a nearly empty background, long tails, saturation."""
    assert told_of(x) is None


def test_sparse_data_and_the_smallest_whole_number_are_restored():
    x = blurred()
    found = kruskal.inpaint(x, np.random.default_rng(0).random(x.shape) < 0.6, **QUICK | {"sweeps": 12})
    assert np.sqrt(((found.mean - x) ** 2).sum() / (x**2).sum()) < 0.3 and not found.notes
    assert kruskal.denoise(np.where(usual() > 0, -128, 0).astype(np.int8), **QUICK).noise_std > 0


def test_the_largest_floats_and_a_constant_rest():
    x, seen = usual(), np.ones((60, 60), bool)
    x[0, 0], x[0, 1] = np.nan, np.finfo(float).max
    seen[0, 0] = False
    with pytest.raises(InputError, match=r"x holds 1\.797"):
        told_of(x, seen)
    few = np.where(np.random.default_rng(3).random((60, 60)) < 0.03, usual(), 0.0)
    few[5, 5] = 1e5
    assert "holds 100000" in told_of(few)


def test_runs_say_it_and_refuse(tmp_path):
    x = usual()
    x[5, 5] = -9999.0
    assert "1 observed entry holds -9999" in kruskal.denoise(x, **QUICK).notes[0]
    large = {"patch_shape": (6, 6), "n_atoms": 8, "epochs": 1, "threads": 1}
    assert "holds -9999" in kruskal.inpaint_large(x, tmp_path / "out.npy", **large).notes[0]
    with pytest.warns(UserWarning, match="holds -9999"):
        kruskal.KFA(4, sweeps=2).fit(x)
    counts = np.random.default_rng(0).poisson(5.0, (60, 60)).astype(float)
    counts[5, 5] = 1e5
    assert "holds 100000" in kruskal.denoise(counts, counts=True, **QUICK).notes[0]
    x[5, 5] = 1e20
    for call in (
        lambda: kruskal.denoise(x, **QUICK),
        lambda: kruskal.inpaint_large(x, tmp_path / "out.npy", **large),
        lambda: kruskal.learn(x, patch_shape=(6, 6), n_atoms=8, sweeps=2),
        lambda: kruskal.KFA(4, sweeps=2).fit(x),
        lambda: kruskal.BPFA(4, sweeps=2).partial_fit(x),
        lambda: kruskal.CFA(4, (3, 3), sweeps=2).fit(x[None]),
    ):
        with pytest.raises(InputError, match="holds 1e"):
            call()
    x[5, 5] = np.nan
    assert not any("holds" in note for note in kruskal.inpaint(x, **QUICK).notes)


def test_out_of_core_all_blocks_are_looked_at(tmp_path):
    """The first look is at a few of them."""
    x = usual(shape=(120, 120))
    x[119, 119] = 1e20
    with pytest.raises(InputError, match=r"too large beside those of a first look|holds 1e"):
        kruskal.inpaint_large(
            x, tmp_path / "out.npy", block_shape=(20, 20), patch_shape=(6, 6), n_atoms=8, epochs=1, threads=1
        )


def test_numbers_that_are_not_finite_end_a_run(monkeypatch):
    with pytest.raises(InputError, match="not finite in a draw of alpha"):
        draw_alpha(3.0, (np.nan, 40.0), np.random.default_rng(0))
    watched = kruskal.models.KFA.watched

    def broken(self, state, report):
        return watched(self, state, report) | {"noise_std": np.nan}

    monkeypatch.setattr(kruskal.models.KFA, "watched", broken)
    with pytest.raises(InputError, match="not finite in sweep 1"):
        kruskal.denoise(usual(), **QUICK)
