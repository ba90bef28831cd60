"""Learning from several arrays, and runs that start from what was learned."""

import numpy as np
import pytest

import kruskal
from kruskal.engines.progress import Silent
from kruskal.errors import InputError
from kruskal.report import psnr

OPTIONS = {"patch_shape": (5, 5), "n_atoms": 10, "sweeps": 6, "threads": 1, "seed": 2}


def waves(rows, columns, shift=0.0):
    """A picture of waves in two directions."""
    r, c = np.mgrid[:rows, :columns]
    return 100 + 50 * np.sin(r / 2 + shift) + 40 * np.cos((r + 2 * c) / 3 + shift)


def test_the_number_of_threads_has_no_influence():
    arrays = [waves(40, 50), waves(60, 45, 1.0)]
    masks = [np.random.default_rng(i).random(array.shape) < 0.5 for i, array in enumerate(arrays)]
    one, two = (kruskal.learn(arrays, masks, **OPTIONS | {"threads": threads}) for threads in (1, 2))
    np.testing.assert_array_equal(one.state.dictionary, two.state.dictionary)
    np.testing.assert_array_equal(one.mean_dictionary, two.mean_dictionary)
    np.testing.assert_array_equal(one.usage, two.usage)
    assert one.settings["regions"] > 1 and one.state.log_odds.shape == (1, 10)


def test_values_at_missing_entries_have_no_influence():
    x = waves(30, 30)
    mask = np.random.default_rng(0).random(x.shape) < 0.5
    learned = kruskal.learn([x], [mask], **OPTIONS)
    for other in (np.where(mask, x, np.nan), np.ma.array(np.where(mask, x, 1e9), mask=~mask)):
        np.testing.assert_array_equal(
            kruskal.learn([other], **OPTIONS).state.dictionary, learned.state.dictionary
        )


def test_a_single_array_need_not_stand_in_a_list():
    x = waves(30, 30)
    one, two = kruskal.learn(x, **OPTIONS), kruskal.learn([x], **OPTIONS)
    np.testing.assert_array_equal(one.state.dictionary, two.state.dictionary)
    assert one.n_items == 26 * 26 and one.kept == 3 and len(one.trace["alpha"]) == 6


def test_the_mean_dictionary_is_one_of_the_draws_in_use():
    """Atoms that no item uses do not count, and the average of the others lies near the last draw."""
    x = waves(40, 40) + np.random.default_rng(0).standard_normal((40, 40))
    learned = kruskal.learn(x, **OPTIONS | {"sweeps": 30, "n_atoms": 30})
    used = learned.usage > 0.05
    assert used.any() and not learned.mean_dictionary[learned.usage == 0].any()
    last, mean = learned.dictionary[used], learned.mean_dictionary[used]
    cosine = (
        (last * mean).sum(axis=(1, 2)) / np.linalg.norm(last, axis=(1, 2)) / np.linalg.norm(mean, axis=(1, 2))
    )
    assert np.median(cosine) > 0.95


def test_defaults_fit_the_smallest_array():
    learned = kruskal.learn([waves(40, 50), waves(12, 30)], n_atoms=5, sweeps=2, threads=1)
    assert all(size <= 12 for size in learned.shape)
    colours = [np.stack([waves(20, 20)] * 3, axis=2), np.stack([waves(24, 18)] * 3, axis=2)]
    assert kruskal.learn(colours, n_atoms=5, sweeps=2, threads=1).shape[-1] == 3


def test_short_volumes_are_no_colours():
    random = np.random.default_rng(0)
    volume = np.cumsum(random.normal(size=(12, 12, 12)), axis=0)
    volume[random.random(volume.shape) < 0.6] = np.nan
    colour = np.cumsum(random.normal(size=(16, 16, 3)), axis=0)
    colour[random.random(colour.shape) < 0.6] = np.nan
    short = {"n_atoms": 4, "sweeps": 2, "threads": 1}
    assert kruskal.learn([volume], patch_shape=(4, 4, 4), **short).settings["sparsity"] == 2.0
    assert kruskal.learn([colour], patch_shape=(4, 4, 3), **short).settings["sparsity"] == 64.0
    assert kruskal.learn([colour], patch_shape=(4, 4, 3), channels="cut", **short).settings["sparsity"] == 2.0


def test_progress_is_told():
    class Told(Silent):
        seen: list = []  # noqa: RUF012

        def update(self, done, values):
            self.seen.append((done, values["noise_std"]))

    told = Told()
    learned = kruskal.learn(waves(20, 20), **OPTIONS, progress=told)
    assert [done for done, _ in told.seen] == list(range(1, 7))
    assert told.seen[-1][1] == pytest.approx(learned.trace["noise_std"][-1])


@pytest.mark.parametrize(
    "arrays, options, sentence",
    [
        ([], {}, "arrays must hold at least one array"),
        ([waves(20, 20), np.zeros(9)], {}, "all arrays must have the same number of axes: the first has 2"),
        ([np.ones((9, 9))] * 2, {}, "arrays are constant: all 162 observed entries are 1.0"),
        (np.ones((9, 9)), {}, r"arrays\[0\] is constant: all 81 observed entries are 1.0"),
        ([np.ones((1, 1))], {}, r"arrays\[0\] is constant: the only observed entry is 1.0"),
        ([waves(20, 20), np.full((9, 9), np.nan)], {}, r"nothing of arrays\[1\] is observed: all 81"),
        (
            [waves(20, 20), waves(9, 9)],
            {"patch_shape": (10, 5)},
            "patch_shape 10x5 is larger than the array 9x9",
        ),
        ([waves(20, 20)], {"observed": [None, None]}, "observed must hold one mask per array: 2 for 1"),
        ([np.ones((9, 9, 3)), np.ones((9, 9, 4))], {}, r"different numbers of channels \(3 and 4\)"),
        ([waves(20, 20)], {"rank": 9}, "rank 9 is not possible"),
        (
            [waves(20, 20)],
            {"observed": [np.ones(3)]},
            r"^observed\[0\] has shape \(3,\), expected \(20, 20\)",
        ),
        (
            [waves(20, 20)],
            {"observed": 3},
            "observed must be an array or a list of arrays, not an object of type int",
        ),
        (None, {}, "arrays must be an array or a list of arrays, not an object of type NoneType"),
        ([np.array([["a"]])], {}, r"^arrays\[0\] has dtype <U1, expected real numbers"),
    ],
)
def test_bad_input(arrays, options, sentence):
    with pytest.raises(InputError, match=sentence):
        kruskal.learn(arrays, **{"n_atoms": 4, "sweeps": 2, "threads": 1} | options)


@pytest.fixture(scope="module")
def half():
    """A dictionary of the left half of a picture of bricks, and the right half with its mask."""
    from skimage.data import brick

    picture = brick()[:128, :128].astype(float)
    mask = np.random.default_rng(0).random(picture.shape) < 0.3
    learned = kruskal.learn(
        picture[:, :64], [mask[:, :64]], patch_shape=(6, 6), n_atoms=48, sweeps=25, threads=2, seed=0
    )
    return learned, picture[:, 64:], mask[:, 64:]


@pytest.mark.parametrize("adapt", [False, True])
def test_what_one_half_taught_helps_with_the_other(half, adapt):
    learned, truth, mask = half
    run = {"sweeps": 4, "burn_in": 2, "threads": 2, "seed": 0, "regions": 1}
    anew = kruskal.inpaint(truth, mask, patch_shape=(6, 6), n_atoms=48, **run)
    reused = kruskal.inpaint(truth, mask, dictionary=learned, adapt=adapt, **run)
    assert psnr(reused.mean, truth, where=~mask) > psnr(anew.mean, truth, where=~mask) + 0.3
    same = np.array_equal(reused.dictionary, learned.dictionary)
    assert same != adapt and reused.settings["known_atoms"] == ("adapted" if adapt else "fixed")


def test_units_need_not_agree(half):
    """Data are scaled by their own range: powers of two make no difference at all."""
    learned, truth, mask = half
    run = {"dictionary": learned, "sweeps": 2, "threads": 1}
    one, other = kruskal.inpaint(truth, mask, **run), kruskal.inpaint(truth / 1024.0, mask, **run)
    np.testing.assert_allclose(other.mean, one.mean / 1024.0, rtol=1e-12)


def test_a_run_from_a_file_can_be_stopped_and_resumed(half, tmp_path):
    learned, truth, mask = half
    learned.save(tmp_path / "d.npz")
    run = {"dictionary": tmp_path / "d.npz", "adapt": True, "sweeps": 5, "threads": 1}
    whole = kruskal.inpaint(truth, mask, **run)

    class Stop(Silent):
        def update(self, done, values):
            if done == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint(truth, mask, **run, checkpoint=tmp_path / "run", progress=Stop())
    (tmp_path / "d.npz").unlink()  # the folder has its own
    resumed = kruskal.resume(tmp_path / "run", threads=1)
    np.testing.assert_array_equal(resumed.mean, whole.mean)
    np.testing.assert_array_equal(resumed.dictionary, whole.dictionary)


def test_a_run_that_was_stopped_before_its_first_sweep_starts_from_the_dictionary(half, tmp_path):
    learned, truth, mask = half
    run = {"dictionary": learned, "sweeps": 2, "threads": 1}

    class Stop(Silent):
        def start(self, total, done=0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint(truth, mask, **run, checkpoint=tmp_path / "run", progress=Stop())
    resumed = kruskal.resume(tmp_path / "run", threads=1)
    np.testing.assert_array_equal(resumed.mean, kruskal.inpaint(truth, mask, **run).mean)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"patch_shape": (5, 5)}, "patch_shape 5x5 contradicts the dictionary, which has 6x6"),
        ({"n_atoms": 5}, "n_atoms 5 contradicts the dictionary, which has 48"),
        ({"rank": 6}, "rank 6 contradicts the dictionary, which has 2"),
        ({"model": "bpfa"}, "model bpfa contradicts the dictionary, which has kfa"),
        ({"auto": True}, "auto tests patch, sparsity and rank, but a dictionary settles them"),
        ({"start": "random"}, "start random contradicts the dictionary, with which the atoms begin"),
        ({"dictionary": None, "adapt": True}, "adapt needs atoms to start from: give dictionary"),
        (
            {"dictionary": 5},
            "dictionary must be a kruskal.Dictionary or the path of one, not an object of type int",
        ),
        ({"dictionary": np.eye(9)}, "the path of one, not an object of type ndarray$"),
    ],
)
def test_what_contradicts_the_dictionary(half, options, sentence):
    learned, truth, mask = half
    with pytest.raises(InputError, match=sentence):
        kruskal.inpaint(truth, mask, **{"dictionary": learned, "sweeps": 2} | options)


def test_what_agrees_with_the_dictionary_may_be_said(half):
    learned, truth, mask = half
    options = {"patch_shape": [6, 6], "n_atoms": 48, "rank": learned.rank, "model": "kfa"}
    run = {"dictionary": learned, "sweeps": 2, "threads": 1}
    said, silent = kruskal.inpaint(truth, mask, **run, **options), kruskal.inpaint(truth, mask, **run)
    np.testing.assert_array_equal(said.mean, silent.mean)


@pytest.mark.parametrize("shape", [(64, 5), (20, 20, 3)])
def test_an_array_that_the_atoms_do_not_fit(half, shape):
    with pytest.raises(
        InputError, match="dictionary has atoms of shape 6x6, which do not fit into an array of"
    ):
        kruskal.inpaint(np.random.default_rng(0).random(shape), dictionary=half[0], sweeps=2)


def test_free_atoms_are_reused_too():
    learned = kruskal.learn(waves(30, 30), model="bpfa", **OPTIONS)
    result = kruskal.inpaint(waves(30, 30, 1.0), dictionary=learned, sweeps=3, threads=1)
    assert result.settings["model"] == "bpfa" and "alpha" not in result.trace
    np.testing.assert_array_equal(result.dictionary, learned.dictionary)


def test_an_array_that_makes_the_patches_of_all_smaller_is_named():
    class Told(Silent):
        def __init__(self):
            self.notes = []

        def note(self, text):
            self.notes += [text] if text.startswith("patches") else []

    for small, wanted in (((3, 2), ["(3, 2)", "(2, 1)", "(8, 8)"]), ((40, 30), None)):
        told, arrays = Told(), [waves(*small), waves(64, 64), waves(*small, 1.0)]
        kruskal.learn(arrays, n_atoms=4, sweeps=2, threads=1, progress=told)
        assert len(told.notes) == (wanted is not None)
        assert all(word in told.notes[0] for word in wanted or ())
