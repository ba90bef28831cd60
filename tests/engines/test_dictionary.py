"""Dictionary files: a round trip without loss, the same bytes, and one sentence for every bad file."""

import zipfile

import numpy as np
import pytest
from scipy.special import expit, logit

import kruskal
from kruskal.engines.dictionary import Dictionary, is_dictionary, one_region
from kruskal.errors import InputError
from kruskal.models import FIRST_NOISE_PRECISION


@pytest.fixture(scope="module", params=["kfa", "bpfa"])
def learned(request):
    grid = np.arange(24.0)
    x = np.sin(grid[:, None] / 3) + np.cos(grid / 2)
    return kruskal.learn([x], patch_shape=(5, 4), model=request.param, n_atoms=6, sweeps=4, threads=1)


@pytest.fixture
def path(learned, tmp_path):
    learned.save(tmp_path / "d.npz")
    return tmp_path / "d.npz"


def changed(path, **arrays):
    """The file with some arrays replaced, or left out where None is given."""
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files} | arrays
    np.savez(path, **{name: array for name, array in content.items() if array is not None})


def test_round_trip(learned, path):
    again = Dictionary.load(path)
    for name in ("shape", "scaling", "kept", "n_items", "package", "model", "rank", "n_atoms", "noise_std"):
        assert getattr(again, name) == getattr(learned, name), name
    for one, other in zip(again.state, learned.state):
        np.testing.assert_array_equal(one, other)
    for name in ("dictionary", "mean_dictionary", "ranks", "usage"):
        np.testing.assert_array_equal(getattr(again, name), getattr(learned, name))
    assert set(again.trace) == set(learned.trace)
    assert again.settings["patch_shape"] == [5, 4] and again.settings["array_shapes"] == [[24, 24]]
    assert is_dictionary(path) and repr(again).startswith("<Dictionary of 6 atoms of 5x4 by ")


def test_the_same_dictionary_gives_the_same_bytes(learned, path, tmp_path):
    learned.save(tmp_path / "again.npz")
    assert path.read_bytes() == (tmp_path / "again.npz").read_bytes()
    Dictionary.load(path).save(tmp_path / "third.npz")
    assert path.read_bytes() == (tmp_path / "third.npz").read_bytes()


def test_nothing_is_pickled(path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                assert np.lib.format.read_array(file, allow_pickle=False).dtype.kind in "Uif"


def test_a_failed_save_leaves_nothing(learned, tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        learned.save(tmp_path / "missing" / "d.npz")
    with pytest.raises(InputError, match=r"path must end in \.npz, not 'd\.txt'"):
        learned.save(tmp_path / "d.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arrays, sentence",
    [
        ({"format": None}, "is no dictionary file of kruskal"),
        ({"format": np.asarray("a song")}, "is no dictionary file of kruskal"),
        ({"version": np.asarray(2)}, "has version 2; this package reads 1"),
        ({"version": None}, "is damaged: 'version' is missing"),
        ({"usage": None}, "is damaged: 'usage' is missing"),
        ({"weights": np.zeros((3, 2))}, "is damaged: dictionary has shape"),
        ({"dictionary": np.full((6, 20), np.nan)}, "is damaged: it holds numbers that are not finite"),
        ({"noise_precision": np.asarray(-1.0)}, "is damaged: it holds numbers that are not positive"),
        ({"scale": np.asarray(0.0)}, "is damaged: it holds numbers that are not positive"),
        ({"settings": np.asarray("{")}, "is damaged: "),
        ({"shape": np.asarray([4, 4])}, "is damaged: dictionary has shape"),
    ],
)
def test_files_that_are_refused(path, arrays, sentence):
    changed(path, **arrays)
    with pytest.raises(InputError, match=sentence) as caught:
        Dictionary.load(path)
    assert "\n" not in str(caught.value)


def test_other_files_are_refused(path, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        Dictionary.load(tmp_path / "nowhere.npz")
    (tmp_path / "words.npz").write_text("no zip")
    np.save(tmp_path / "array.npy", np.eye(3))
    for name in ("words.npz", "array.npy"):
        assert not is_dictionary(tmp_path / name)
        with pytest.raises(InputError, match="is no dictionary file of kruskal"):
            Dictionary.load(tmp_path / name)
    half = path.read_bytes()
    path.write_bytes(half[: len(half) // 2])
    with pytest.raises(InputError, match="is damaged"):
        Dictionary.load(path)


def test_the_usage_of_regions_becomes_their_mean(learned):
    usage = np.random.default_rng(0).uniform(0.1, 0.9, (3, 6))
    state = one_region(learned.state._replace(log_odds=logit(usage)), np.array([10, 30, 60]))
    np.testing.assert_allclose(expit(state.log_odds), [0.1 * usage[0] + 0.3 * usage[1] + 0.6 * usage[2]])
    first = learned.first_state(4)
    assert first.log_odds.shape == (4, 6) and first.noise_precision == FIRST_NOISE_PRECISION
    np.testing.assert_array_equal(first.dictionary, learned.state.dictionary)


def test_upper_case_suffix(learned, path, tmp_path):
    learned.save(tmp_path / "D.NPZ")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["D.NPZ", "d.npz"]
    assert (tmp_path / "D.NPZ").read_bytes() == path.read_bytes()
