"""info: arrays, results and checkpoints."""

import json

import numpy as np
import pytest
from cli_tools import SMALL

import kruskal
from kruskal.engines import training_files
from kruskal.engines.training import TRACED
from kruskal.estimators.picture_classifier import PictureClassifier
from kruskal.estimators.svm import BayesianSVM


def test_array_with_mask(cli, damaged, picture):
    found = json.loads(cli("info", "damaged.npz", "--json").out)
    assert found["shape"] == [20, 20] and found["dtype"] == "float64" and found["result_dtype"] == "uint8"
    assert found["share_observed"] == damaged.observed.mean()
    assert found["minimum"] == damaged.values[damaged.observed].min()
    assert found["suggested_patch"] == [12, 12]  # as much is missing
    assert found["n_items"] == 9 * 9


def test_table_for_people(cli, picture):
    answer = cli("info", "picture.png")
    rows = dict(line.split(maxsplit=1) for line in answer.out.splitlines())
    assert rows["shape"] == "20x20" and rows["dtype"] == "uint8"
    assert rows["minimum"] == str(picture.min())
    assert answer.status == 0 and answer.err == ""


def test_strange_values_are_described_not_refused(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[np.nan, np.inf, 2.0], [np.nan, -np.inf, 4.0]]))
    found = json.loads(cli("info", "x.npy", "--json").out)
    assert found["infinite"] == 2 and found["mean"] == 3.0
    assert found["share_observed"] == 4 / 6
    np.save(tmp_path / "x.npy", np.full((2, 3), np.nan))
    assert json.loads(cli("info", "x.npy", "--json").out)["minimum"] is None


def test_key(cli, refused, tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((3, 3)), b=np.ones(7))
    assert json.loads(cli("info", "two.npz", "--key", "b", "--json").out)["shape"] == [7]
    assert "choose one by --key from a (3x3), b (7)" in refused("info", "two.npz")


def test_saved_result(cli, picture):
    assert cli("denoise", "picture.png", "-o", "out.png", "--save", "all.npz", *SMALL).status == 0
    found = json.loads(cli("info", "all.npz", "--json").out)
    assert found["format"] == "result of kruskal"
    assert found["shape"] == [20, 20] and found["n_items"] == 81 and found["noise_std"] > 0
    assert found["model"] == "kfa" and found["sweeps"] == 5
    assert not {"batch_size", "batches", "passes"} & set(found)
    assert json.loads(cli("info", "all.npz", "--key", "mean", "--json").out)["format"] == "npz"


def test_checkpoint(cli, refused, picture, tmp_path):
    assert cli("denoise", "picture.png", "-o", "out.png", "--checkpoint", "run", *SMALL).status == 0
    found = json.loads(cli("info", "run", "--json").out)
    assert found["finished"] is True and found["sweeps_done"] == 5 and found["command"] == "denoise"
    assert not {"batch_size", "batches", "passes"} & set(found)
    assert found["output"] == str(tmp_path / "out.png") and "go_on_with" not in found
    job = tmp_path / "run" / "job.json"
    job.write_text(job.read_text().replace('"finished": true', '"finished": false'))
    assert "kruskal resume run" in cli("info", "run").out
    for text in ("{", '{"done": 3, "settings": []}'):
        (tmp_path / "run" / "state.json").write_text(text)
        assert "damaged" in refused("info", "run")


def images(n_images):
    """Noisy pictures with a bright bar at a random place."""
    random = np.random.default_rng(0)
    found = 0.1 * random.random((n_images, 10, 10))
    for image, (i, j) in zip(found, random.integers(0, 6, (n_images, 2))):
        image[i : i + 4, j] = 1.0
    return found.astype(np.float32)


def test_deep_model_and_classifier(cli, refused, tmp_path):
    X = images(12)
    sizes = {"n_atoms": (4, 5), "atom_sizes": ((4, 4), (2, 2)), "pooling": ((2, 2),), "sweeps": 4}
    deep = kruskal.DeepCKFA(**sizes, rank=1, threads=1)
    deep.fit(X).save(tmp_path / "deep.npz")
    found = json.loads(cli("info", "deep.npz", "--json").out)
    assert found["format"] == "deep model of kruskal" and found["format_version"] == 1
    assert (found["model"], found["n_layers"], found["picture_shape"]) == ("DeepCKFA", 2, [10, 10, 1])
    assert found["layer_1"]["n_atoms"] == deep.n_atoms_[0] and found["layer_1"]["atom_shape"] == "4x4x1"
    classifier = PictureClassifier(deep, BayesianSVM(calibration_folds=0), layers=[1, 2])
    classifier.fit(X[..., None], np.array(["a", "b"] * 6)).save(tmp_path / "classes.npz")
    found = json.loads(cli("info", "classes.npz", "--json").out)
    assert found["format"] == "picture classifier of kruskal" and found["classes"] == ["a", "b"]
    assert found["n_layers"] == 2 and found["n_features"] == classifier.coef_.shape[1]
    assert "feature layers  1,2\n" in cli("info", "classes.npz").out
    with np.load(tmp_path / "classes.npz") as archive:
        np.savez(tmp_path / "classes.npz", **{**archive, "version": 9})
    assert "has version 9" in refused("info", "classes.npz")


def test_training_checkpoint(cli, refused, tmp_path):
    header = {"format": 1, "digest": "", "done": 7, "state": "training-00000007.npz"}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "training.json").write_text(json.dumps(header))
    assert "is damaged" in refused("info", "run")
    training_files.save(
        tmp_path / "run", "", 7, {"parameters": np.zeros(31), "trace": np.zeros((2, len(TRACED)))}
    )
    found = json.loads(cli("info", "run", "--json").out)
    assert found["format"] == "training checkpoint of kruskal" and found["model"] == "DGDN"
    assert (found["steps_done"], found["epochs_done"], found["n_parameters"]) == (7, 2, 31)


def test_what_cannot_be_described(refused, tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"PK nonsense")
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04 nonsense")  # begins like a zip
    np.savez(tmp_path / "cut.npz", mean=np.arange(500.0))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:300])
    (tmp_path / "folder").mkdir()
    assert refused("info", "junk.npz").startswith("cannot read 'junk.npz': ")
    assert refused("info", "cut.npz").startswith("cannot read 'cut.npz': ")
    assert "broken.npz" in refused("info", "broken.npz")
    assert "absent.npy" in refused("info", "absent.npy")
    assert "folder" in refused("info", "folder")


def test_extended_precision(cli, tmp_path):
    values = np.arange(20.0).reshape(4, 5).astype(np.longdouble)
    np.save(tmp_path / "x.npy", values)
    found = json.loads(cli("info", "x.npy", "--json").out)
    assert (found["minimum"], found["maximum"], found["mean"]) == (0.0, 19.0, 9.5)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no extended precision here")
def test_numbers_beyond_double_precision(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(20).reshape(4, 5) * np.longdouble("1e4000"))
    answer = cli("info", "x.npy", "--json")
    found = json.loads(answer.out)
    assert (answer.err, found["minimum"], found["maximum"], found["mean"]) == ("", 0.0, None, None)


@pytest.mark.filterwarnings("error")
def test_mean_of_huge_numbers(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.linspace(1.0e308, 1.4e308, 20).reshape(4, 5))
    answer = cli("info", "x.npy", "--json")
    assert answer.err == "" and json.loads(answer.out)["mean"] == pytest.approx(1.2e308)
