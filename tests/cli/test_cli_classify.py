"""classify train and classify predict, end to end on tiny pictures."""

import csv
import gzip
import json
import struct
from contextlib import contextmanager

import numpy as np
import pytest
from cli_tools import CtrlC

from kruskal import data
from kruskal.engines import progress
from kruskal.estimators import image_learning
from kruskal.estimators.deep import DeepCFA
from kruskal.estimators.picture_classifier import PictureClassifier

TINY = ("--atoms", "4,5", "--atom-size", "4x4,2x2", "--pooling", "2x2", "--sweeps", "8", "--threads", "1")


def strokes(n_images, seed):
    """Vertical (class 1) and horizontal (class 0) strokes, uint8."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 12, (n_images, 10, 10)).astype(np.uint8)
    y = np.arange(n_images) % 2
    for image, label in zip(X, y):
        for _ in range(3):
            i, j = random.integers(0, 6, 2)
            image[(slice(i, i + 4), j) if label else (i, slice(j, j + 4))] = 230
    return X, y


@pytest.fixture
def folder(tmp_path):
    """Pictures of two classes in two subfolders; some without a class in ``new``."""
    X, y = strokes(40, 0)
    names = np.array(["across", "down"])
    for name in (*(f"known/{one}" for one in names), "new"):
        (tmp_path / name).mkdir(parents=True)
    for n in range(30):
        data.write(tmp_path / "known" / names[y[n]] / f"{n:02d}.png", X[n], dtype="uint8")
    for n in range(30, 40):
        data.write(tmp_path / "new" / f"{n}.png", X[n], dtype="uint8")
    return names[y[30:]]


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_folder_of_pictures(cli, folder, tmp_path):
    words = ("classify", "train", "known", "-o", "m.npz", "--per-class", "12", "--figures", "atoms", "--json")
    answer = cli(*words, *TINY)
    assert answer.status == 0, answer.err
    told = json.loads(answer.out)
    assert told["pictures"] == 24 and told["tested"] == 6 and told["classes"] == 2 and told["accuracy"] >= 0.8
    first, second = told["atoms"]
    assert told["parameters"] == first * (1 + 4 + 4 + 1) + second * (1 + 2 + 2 + first)
    assert "layer 1 of 2" in answer.err and "layer 2 of 2" in answer.err and "sweep 8/8" in answer.err
    assert sorted(path.name for path in (tmp_path / "atoms").iterdir()) == ["layer1.png", "layer2.png"]

    answer = cli("classify", "predict", "m.npz", "new", "-o", "l.csv")
    assert answer.status == 0, answer.err
    found = rows("l.csv")
    assert [row["picture"] for row in found] == [f"{n}.png" for n in range(30, 40)]
    assert np.mean([row["class"] for row in found] == folder) >= 0.8
    answer = cli("classify", "predict", "m.npz", "known", "-o", "l.csv", "--json")
    assert json.loads(answer.out)["accuracy"] >= 0.9 and rows("l.csv")[0]["picture"] == "across/00.png"
    for name, other in (("across", "a"), ("down", "b")):
        (tmp_path / "known" / name).rename(tmp_path / "known" / other)
    told = json.loads(cli("classify", "predict", "m.npz", "known", "-o", "l.csv", "--json").out)
    assert "accuracy" not in told and len(rows("l.csv")) == 30
    assert "none of the classes of the pictures ('a, b') occurs in the model ('across, down')" in told["note"]


def test_npz_and_idx_files(cli, tmp_path):
    X, y = strokes(24, 1)
    np.savez(tmp_path / "both.npz", X=X, y=y)
    np.savez(tmp_path / "alone.npz", X=X)
    for prefix in ("train", "t10k"):
        for name, array in ((f"{prefix}-images-idx3-ubyte.gz", X), (f"{prefix}-labels-idx1-ubyte.gz", y)):
            head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            (tmp_path / "idx").mkdir(exist_ok=True)
            (tmp_path / "idx" / name).write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))
    free = ("--model", "cfa", "--feature-layers", "2", "--contrast", "-q", "--usage", "by_image")
    assert cli("classify", "train", "both.npz", "-o", "1.npz", *TINY, *free).status == 0
    assert cli("classify", "train", "idx", "-o", "2.npz", *TINY, *free).status == 0
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()
    for source in ("alone.npz", "both.npz", "idx"):
        answer = cli("classify", "predict", "1.npz", source, "-o", f"{source[:3]}.csv")
        assert answer.status == 0, answer.err
        assert ("accuracy" in answer.out) == (source != "alone.npz")
    assert rows("alo.csv") == rows("bot.csv") == rows("idx.csv")
    model = PictureClassifier.load(tmp_path / "1.npz")
    assert model.layers == [2] and model.contrast and model.image_shape == (10, 10, 1)
    assert [layer.usage for layer in model.deep.layers_] == ["by_image", "by_image"]


def test_ctrl_c_leaves_nothing(refused, folder, monkeypatch):
    monkeypatch.setattr(progress, "choose", lambda quiet: CtrlC(2))
    words = ("classify", "train", "known", "-o", "m.npz", "--figures", "atoms", *TINY)
    assert refused(*words, status=130) == "interrupted."


def test_compilation_is_told(cli, folder, monkeypatch):
    """As if the kernels of layer 1 were not in the cache."""

    @contextmanager
    def compiling(callback):
        callback()
        yield

    monkeypatch.setattr(image_learning, "watch_compilation", compiling)
    answer = cli("classify", "train", "known", "-o", "m.npz", *TINY)
    assert answer.status == 0 and f"kruskal: {progress.COMPILING}\n" in answer.err


@pytest.mark.parametrize("cost", ["-1", "0", "nan", "inf"])
def test_a_wrong_cost_is_refused_before_the_layers_are_learned(refused, folder, monkeypatch, cost):
    def never(*_, **__):
        raise AssertionError("no layer must be learned")

    monkeypatch.setattr(DeepCFA, "fit", never)
    sentence = refused("classify", "train", "known", "-o", "m.npz", "--cost", cost, *TINY)
    assert sentence.startswith("--cost must be a finite number above 0, not ")


def test_mistakes(refused, folder, tmp_path):
    train = ("classify", "train", "known")
    assert "--output must name a .npz file" in refused(*train, "-o", "m.txt")
    assert "--atoms takes whole numbers such as 50,200, not 'many'" in refused(
        *train, "-o", "m.npz", "--atoms", "many"
    )
    for text in ("²", "4,٣", "1" * 5000):
        for option in ("--atoms", "--feature-layers"):
            sentence = refused(*train, "-o", "m.npz", option, text)
            assert sentence.startswith(f"{option} takes whole numbers such as 50,200, not '")
    sentence = refused(*train, "-o", "m.npz", "--size", "999999999")
    assert sentence == "--size must be a whole number of 1 to 16384, not 999999999."
    assert "--atom-size takes pairs" in refused(*train, "-o", "m.npz", "--atom-size", "4,4")
    assert "--usage" in refused(*train, "-o", "m.npz", "--usage", "own")
    assert "--feature-layers must be from 1 to 2" in refused(*train, "-o", "m.npz", "--feature-layers", "3")
    sentence = refused(*train, "-o", "m.npz", "--per-class", "15", *TINY)
    assert sentence.startswith("class across has 15 items, expected more than --per-class = 15,")
    sentence = refused(*train, "-o", "m.npz", "--per-class", "0", *TINY)
    assert sentence.startswith("--per-class must be a whole number of at least 1, not 0")
    assert "no such file or folder" in refused("classify", "train", "nowhere", "-o", "m.npz")
    sentence = refused(*train, "-o", "m.npz", "-q", "--atoms", "4,5", "--atom-size", "4x4,9x9")
    assert sentence.startswith("--atom-size of layer 2 are 9x9")
    (tmp_path / "m.npz").write_bytes(b"no model")
    assert "is damaged or no file" in refused("classify", "predict", "m.npz", "new", "-o", "l.csv")
