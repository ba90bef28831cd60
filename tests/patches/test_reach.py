"""Holes: how much is observed nearby, and what it means for the uncertainty of what lies in them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kruskal
from kruskal.engines.progress import Silent
from kruskal.patches import Ordinary, RunningMoments, Slab, hole_variance, nearby_share
from kruskal.patches.assemble import OPINION_SHARE

PLANE = np.add.outer(np.sin(np.arange(40) / 4.0), 2.0 + np.cos(np.arange(36) / 5.0))
OPTIONS = {"patch_shape": (6, 6), "n_atoms": 24, "sweeps": 20, "seed": 1, "threads": 1}


def by_hand(observed, patch_shape):
    """Box by box."""
    result = np.zeros(observed.shape)
    for place in itertools.product(*map(range, observed.shape)):
        box = tuple(
            slice(None) if side == size else slice(max(i - side // 2, 0), i + side // 2 + 1)
            for i, size, side in zip(place, observed.shape, patch_shape)
        )
        result[place] = observed[box].mean()
        for axis, (i, side, size) in enumerate(zip(place, patch_shape, observed.shape)):
            if side == size > 1 and not observed.take(i, axis=axis).any():
                result[place] = 0.0
    return result


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_share_nearby_is_that_of_a_box(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    patch = tuple(data.draw(st.integers(1, size)) for size in shape)
    observed = np.random.default_rng(data.draw(st.integers(0, 99))).random(shape) < 0.4
    found = nearby_share(observed, patch)
    assert found.dtype == np.float32 and found.shape == shape
    np.testing.assert_allclose(found, by_hand(observed, patch), rtol=1e-6)


def test_a_part_of_an_array_that_is_one_patch_long_is_not_the_whole():
    observed = np.arange(40) < 20
    whole = nearby_share(observed, (8,))
    assert (nearby_share(observed[14:], (8,), (40,))[4:] == whole[18:]).all()
    part = nearby_share(observed[19:27], (8,), (40,))
    assert ((part > 0.0) == (whole[19:27] > 0.0)).all() and part[7] == 0.0
    # as if patches took the axis whole: what is not observed in any of them is known of none
    assert ((nearby_share(observed[19:27], (8,)) > 0.0) == observed[19:27]).all()


def test_the_channels_of_a_grey_picture_in_colour_are_counted():
    observed = np.ones(PLANE.shape, bool)
    observed[10:26, 12:28] = False
    told = Told()
    colours = np.repeat(np.where(observed, PLANE, np.nan)[..., None], 3, axis=-1)
    options = {name: OPTIONS[name] for name in ("n_atoms", "sweeps", "seed", "threads")}
    result = kruskal.inpaint(colours, **options, auto=False, progress=told)
    far = nearby_share(observed, result.settings["patch_shape"]) == 0
    assert any(note.startswith(f"{3 * far.sum()} missing entries") for note in told.notes)


def some_moments(size, seed=0):
    random = np.random.default_rng(seed)
    moments = RunningMoments.zero(size)
    for mean in random.standard_normal((4, size)):
        weight = 0.5 + random.random(size)
        moments = moments.with_draw([Slab(0, weight, weight * mean, weight * (mean**2 + 3.0))])
    return moments


def test_without_holes_the_variance_is_as_it_was():
    moments, observed = some_moments(60), np.ones((6, 10), bool)
    observed[::3, ::4] = False
    nearby = nearby_share(observed, (2, 2))
    assert (hole_variance(moments, observed, nearby, Ordinary(0.0, 99.0)) == moments.variance()).all()


def test_the_share_of_the_spread_grows_into_a_hole():
    moments, observed = some_moments(40), np.arange(40) < 20
    nearby = nearby_share(observed, (9,))
    variance = hole_variance(moments, observed, nearby, Ordinary(0.0, 1e-9))
    average = moments.draw_variance()
    spread = (moments.variance() - average) / OPINION_SHARE
    share = (variance - average) / spread
    usual = nearby[:20].mean()
    assert share[:19] == pytest.approx(OPINION_SHARE)
    alone = 1.0 - 2.0 * nearby[20:24] / usual
    assert (alone > 0.0).all() and share[20:24] == pytest.approx(
        OPINION_SHARE + (1.0 - OPINION_SHARE) * np.maximum(alone, 0.0)
    )
    assert share[24:] == pytest.approx(1.0)
    for mean in (0.0, 3.0):
        found = hole_variance(moments, observed, nearby, Ordinary(mean, 7.0))
        assert (found[:24] == variance[:24]).all()
        assert found[24:] == pytest.approx(7.0 + (moments.mean()[24:] - mean) ** 2)
    nothing = np.zeros(40, bool)
    found = hole_variance(moments, nothing, nearby_share(nothing, (9,)), Ordinary(0.0, 7.0))
    assert found == pytest.approx(7.0 + moments.mean() ** 2)


class Told(Silent):
    """Keeps the notes."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_a_restoration_is_unsure_in_a_hole_and_says_so():
    observed = np.random.default_rng(0).random(PLANE.shape) < 0.7
    observed[10:26, 12:28] = False
    told = Told()
    result = kruskal.inpaint(np.where(observed, PLANE, np.nan), **OPTIONS, progress=told)
    far = np.zeros(PLANE.shape, bool)
    far[13:23, 15:25] = True
    assert ((nearby_share(observed, (6, 6)) == 0) == far).all()
    assert (result.std[far] >= 0.999 * PLANE[observed].std()).all()
    assert result.std[observed].mean() < 0.2 * PLANE[observed].std()
    assert [note for note in told.notes if "compil" not in note] == [
        "100 missing entries lie more than half a patch from any observed one, or in a slice of the array "
        "that has none: what is written there is a guess, and the standard deviation at least that of the "
        "observed entries"
    ]
    assert result.notes == tuple(note for note in told.notes if "compil" not in note)


@pytest.mark.parametrize("counts", [False, True])
def test_the_middle_of_a_deep_hole_is_uncertain_by_more_than_the_guess_is_off(counts):
    """The prior's guess is zero there; data far from it, whose spread is small, are not."""
    random = np.random.default_rng(0)
    truth = 100.0 * (1.0 + 0.7 * np.outer(np.sin(np.arange(48) / 7.0), np.cos(np.arange(48) / 9.0)))
    x = random.poisson(truth).astype(float) if counts else truth + random.normal(0.0, 5.0, truth.shape)
    x[8:40, 8:40] = np.nan
    result = kruskal.inpaint(x, **OPTIONS, counts=counts)
    middle = np.s_[16:32, 16:32]
    assert np.abs(result.mean - truth)[middle].mean() > 20.0  # deeper than patches reach
    within = np.abs(result.mean - truth) < 2.0 * result.std
    assert within[middle].all()


@pytest.mark.parametrize("hole", [np.s_[10:26, 12:28], np.s_[24:40, 10:30]])
@pytest.mark.parametrize("blocks", [(9, 13), (39, 36)])  # the latter leaves a block of one row
def test_blocks_are_as_unsure_in_a_hole_as_the_whole(tmp_path, hole, blocks):
    observed = np.random.default_rng(0).random(PLANE.shape) < 0.7
    observed[hole] = False
    options = OPTIONS | {"sweeps": 6, "block_shape": blocks, "std": tmp_path / "std.npy"}
    told = Told()
    kruskal.inpaint_large(PLANE, tmp_path / "mean.npy", observed, **options, progress=told)
    std = np.load(tmp_path / "std.npy")
    far = nearby_share(observed, (6, 6)) == 0
    assert told.notes[-1].startswith(f"{far.sum()} missing entries lie more than half a patch")
    assert far.any() and (std[far] >= 0.9 * PLANE[observed].std()).all()
    assert std[observed].mean() < 0.3 * PLANE[observed].std()
    assert math.isfinite(std.sum())


def test_blocks_see_what_is_observed_across_their_borders(tmp_path):
    """Also where patches lie side by side, so that those of a block do not reach beyond it."""
    observed = np.random.default_rng(3).random(PLANE.shape) < 0.06
    told = Told()
    options = OPTIONS | {"sweeps": 2, "block_shape": (12, 12), "stride": (6, 6), "std": tmp_path / "std.npy"}
    kruskal.inpaint_large(PLANE, tmp_path / "mean.npy", observed, **options, progress=told)
    far = np.count_nonzero(nearby_share(observed, (6, 6)) == 0)
    lonely = [note for note in told.notes if "missing entries lie" in note]
    assert far > 0 and len(lonely) == 1 and lonely[0].startswith(f"{far} missing entries lie")


def test_a_channel_of_which_nothing_is_observed_is_a_guess():
    """Patches reach across all channels, but nothing says what that one is like."""
    colours = np.stack([100.0 + 20.0 * PLANE, 80.0 + 30.0 * PLANE, 60.0 + 20.0 * PLANE], axis=2)
    x = np.where(np.random.default_rng(0).random(colours.shape) < 0.7, colours, np.nan)
    x[..., 2] = np.nan
    options = OPTIONS | {"patch_shape": (6, 6, 3), "channels": "keep"}
    result = kruskal.inpaint(x, **options)
    assert len(result.notes) == 1 and result.notes[0].startswith(f"{PLANE.size} missing entries lie")
    off = np.abs(result.mean - colours)[..., 2]
    assert off.mean() > 10.0 and (off < 2.0 * result.std[..., 2]).mean() > 0.9


@pytest.mark.parametrize("blocks", [(20, 18, 3), (40, 36, 3)])
def test_blocks_know_of_channels_without_data(tmp_path, blocks):
    colours = np.stack([100.0 + 20.0 * PLANE, 80.0 + 30.0 * PLANE, 60.0 + 20.0 * PLANE], axis=2)
    x = np.where(np.random.default_rng(0).random(colours.shape) < 0.7, colours, np.nan)
    x[..., 2] = np.nan
    x[:20, :18, 1] = np.nan  # which is observed in other blocks
    told = Told()
    options = OPTIONS | {"sweeps": 6, "patch_shape": (6, 6, 3), "channels": "keep", "progress": told}
    kruskal.inpaint_large(x, tmp_path / "mean.npy", block_shape=blocks, std=tmp_path / "std.npy", **options)
    assert any(note.startswith(f"{PLANE.size} missing entries lie") for note in told.notes)
    off = np.abs(np.load(tmp_path / "mean.npy") - colours)[..., 2]
    assert (off < 2.0 * np.load(tmp_path / "std.npy")[..., 2]).mean() > 0.7  # 0 without


def test_what_took_everything_for_noise_says_so():
    noise = np.random.default_rng(0).standard_normal((12, 12))
    result = kruskal.inpaint(noise, **OPTIONS | {"patch_shape": (4, 4)})
    assert result.noise_std > 0.95 * np.sqrt(np.mean(noise**2))
    assert any(note.startswith("nearly all of the data was taken for noise, ") for note in result.notes)
    assert kruskal.inpaint(PLANE, **OPTIONS).notes == ()


def test_one_kept_draw_of_a_decomposition_tells_no_uncertainty():
    options = {"model": "mgp-cp", "sweeps": 1, "seed": 1, "threads": 1}
    assert "only one draw was kept" in kruskal.inpaint(PLANE, **options).notes[-1]
