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
        part = ("--part", "train") if source == "idx" else ()
        answer = cli("classify", "predict", "1.npz", source, "-o", f"{source[:3]}.csv", *part)
        assert answer.status == 0, answer.err
        assert ("accuracy" in answer.out) == (source != "alone.npz")
    assert rows("alo.csv") == rows("bot.csv") == rows("idx.csv")
    model = PictureClassifier.load(tmp_path / "1.npz")
    assert model.layers == [2] and model.contrast and model.image_shape == (10, 10, 1)
    assert [layer.usage for layer in model.deep.layers_] == ["by_image", "by_image"]


def predicted(cli, pictures, model="m.npz"):
    """What is told of a prediction, as JSON has it."""
    answer = cli("classify", "predict", model, pictures, "-o", "l.csv", "--json", "--threads", "1")
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_pictures_on_another_scale_are_refused(cli, refused, tmp_path):
    """Of another type of numbers, for which they are not divided, or by another number."""
    X, y = strokes(24, 1)
    made = {
        "bytes": X, "units": X / 255.0, "floats": X.astype(float), "long": X.astype(np.int64),
        "short": X.astype(np.int16), "deep": 257 * X.astype(np.uint16), "black": np.zeros(X.shape),
    }  # fmt: skip
    for name, values in made.items():
        np.savez(tmp_path / f"{name}.npz", X=values, y=y)
        np.savez(tmp_path / f"{name}-alone.npz", X=values)
    sentence = refused("classify", "train", "long.npz", "-o", "m.npz", *TINY)
    assert sentence.startswith("'long.npz' has pictures of whole numbers up to 230 of type int64, by whose ")
    assert cli("classify", "train", "bytes.npz", "-o", "m.npz", "-q", *TINY).status == 0
    for name in ("bytes", "units", "deep"):
        assert predicted(cli, f"{name}.npz") == {"pictures": 24, "written": ["l.csv"], "accuracy": 1.0}
    assert predicted(cli, "black.npz")["accuracy"] == 0.5  # on any scale

    model = PictureClassifier.load(tmp_path / "m.npz")
    assert model.types_ == ("uint8",) and model.lowest_ == 0.0
    with np.load(tmp_path / "m.npz") as file:  # a file from before: how its pictures were given is not known
        np.savez(
            tmp_path / "old.npz", **{name: file[name] for name in file if name not in ("types", "lowest")}
        )
    assert predicted(cli, "bytes.npz", "old.npz")["accuracy"] == 1.0
    for words, expected in (("m.npz", "uint8 or floats from 0 to 1"), ("old.npz", "floats on that scale")):
        predict = ("classify", "predict", words)
        for name in ("floats", "floats-alone"):
            sentence = refused(*predict, f"{name}.npz", "-o", "n.csv")
            assert sentence.startswith(f"{name}.npz has floats with a root mean square of ")
            assert sentence.endswith(
                f"but what was learned from had {model.deep.scales_[0]:.3g}: expected {expected}."
            )
        sentence = refused(*predict, "short.npz", "-o", "n.csv")
        assert sentence.startswith("short.npz has int16 numbers, divided by the largest of their type, with ")
        assert sentence.endswith(f"expected {expected}.")
        assert "of type int64" in refused(*predict, "long.npz", "-o", "n.csv")
        sentence = refused(*predict, "long-alone.npz", "-o", "n.csv")
        assert sentence.startswith("long-alone.npz has int64 numbers, divided by the largest of their type, ")

    assert cli("classify", "train", "floats.npz", "-o", "f.npz", "-q", *TINY).status == 0
    assert predicted(cli, "floats.npz", "f.npz")["accuracy"] == 1.0
    for name in ("bytes", "units"):
        sentence = refused("classify", "predict", "f.npz", f"{name}.npz", "-o", "n.csv")
        assert sentence.endswith("expected floats on that scale.")


def test_local_contrast_knows_no_scale(cli, tmp_path):
    X, y = strokes(24, 1)
    np.savez(tmp_path / "bytes.npz", X=X, y=y)
    np.savez(tmp_path / "floats.npz", X=X - 100.0, y=y)
    assert cli("classify", "train", "bytes.npz", "-o", "m.npz", "-q", "--contrast", *TINY).status == 0
    assert predicted(cli, "floats.npz") == predicted(cli, "bytes.npz")


def test_what_was_done_to_the_pictures_is_told(cli, refused, tmp_path):
    X, y = strokes(24, 1)
    np.savez(tmp_path / "bytes.npz", X=X, y=y)
    assert cli("classify", "train", "bytes.npz", "-o", "m.npz", "-q", *TINY).status == 0
    wide = np.pad(X, ((0, 0), (1, 1), (2, 2)))
    np.savez(tmp_path / "wide.npz", X=wide, y=y)
    resized = "pictures of 12x14 were resized to 10x10, the size of those that were learned from"
    assert predicted(cli, "wide.npz")["note"] == resized
    answer = cli("classify", "predict", "m.npz", "wide.npz", "-o", "l.csv")
    assert answer.out.count(resized) == 1 and f"note: {resized}\n" in answer.out
    (tmp_path / "new").mkdir()
    data.write(tmp_path / "new" / "0.png", X[0], dtype="uint8")
    assert "note" not in predicted(cli, "new")
    data.write(tmp_path / "new" / "1.png", wide[0], dtype="uint8")
    data.write(tmp_path / "new" / "2.png", np.repeat(X[0, :8, :, None], 3, axis=2), dtype="uint8")
    assert predicted(cli, "new")["note"] == (
        "pictures of 8x10 (and 1 other size) were resized to 10x10, the size of those that were learned "
        "from; colour pictures were made grey, as those that were learned from"
    )
    np.savez(tmp_path / "signed.npz", X=X / 127.5 - 1.0)
    assert predicted(cli, "signed.npz")["note"] == (
        "the pictures have numbers below 0 (-1), what was learned from had none"
    )
    np.savez(tmp_path / "dark.npz", X=X / 2550.0)
    assert predicted(cli, "dark.npz")["note"].startswith("the pictures have a root mean square of 0.0")
    np.savez(tmp_path / "three.npz", X=X, y=np.where(np.arange(24) < 6, 2, y))
    told = predicted(cli, "three.npz")
    assert told["accuracy"] == 0.75
    assert told["note"] == "pictures of classes that the model does not know ('2') count as errors"
    np.savez(tmp_path / "nan.npz", X=np.where(X == 230, np.nan, 0.5))
    sentence = refused("classify", "predict", "m.npz", "nan.npz", "-o", "n.csv")
    assert sentence.startswith("'nan.npz': X has entries that are NaN or infinite")
    np.savez(tmp_path / "channels.npz", X=np.repeat(X[..., None], 2, axis=3), y=y)
    assert cli("classify", "train", "channels.npz", "-o", "c.npz", "-q", *TINY).status == 0
    sentence = refused("classify", "predict", "c.npz", "bytes.npz", "-o", "n.csv")
    assert sentence == "bytes.npz has images of shape (10, 10, 1), expected (10, 10, 2) as in fit."


def test_options_that_do_not_apply(refused, folder):
    train = ("classify", "train", "known", "-o", "m.npz", *TINY)
    for rank in (1, 2):
        sentence = refused(*train, "--model", "cfa", "--rank", rank)
        assert sentence == (
            f"--rank is {rank}, but the atoms of --model cfa have no Kruskal terms: leave --rank out, or "
            "give --model ckfa."
        )
    assert refused(*train, "--feature-layers", "1,1").startswith(
        "--feature-layers must name every layer once"
    )
    sentence = refused("classify", "predict", "m.npz", "new", "-o", "l.csv", "--part", "train")
    assert sentence == "--part is train, but new is no folder with MNIST's files: leave --part out."


@pytest.mark.parametrize("place", ["known/down", "known/new", "known"])
def test_figures_do_not_go_among_the_pictures(refused, folder, place):
    """There they could replace one, and would be learned from the next time."""
    said = refused("classify", "train", "known", "-o", "m.npz", "--figures", place, *TINY)
    assert said.startswith(f"--figures {place} ") and said.endswith(" known; give another name.")


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
    assert "--atoms takes whole numbers of at least 1 such as 1,2, not 'many'" in refused(
        *train, "-o", "m.npz", "--atoms", "many"
    )
    for text in ("²", "4,٣", "1" * 5000):
        for option in ("--atoms", "--feature-layers"):
            sentence = refused(*train, "-o", "m.npz", option, text)
            assert sentence.startswith(f"{option} takes whole numbers of at least 1 such as 1,2, not '")
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
