"""DGDN and KruskalDGDN as a user meets them."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import kruskal
from kruskal.errors import InputError
from kruskal.estimators import deep_fit

from .bars import SIZES, bars

FIT = {**SIZES, "least_steps": 200, "batch_size": 50, "seed": 1, "threads": 1}


@pytest.fixture(scope="module")
def data():
    return (*bars(300), *bars(200, seed=1))


@pytest.fixture(scope="module")
def generative(data):
    X, y, _, _ = data
    return kruskal.KruskalDGDN(**FIT, rank=2, generative=0.3).fit(X, y)


@pytest.mark.parametrize(
    "options", [{"atoms": "gaussian"}, {"atoms": "kruskal"}, {"cells": "drawn", "chains": 3}]
)
def test_bars_are_told_apart(data, options):
    X, y, X_test, y_test = data
    model = kruskal.DGDN(**FIT, **options).fit(X, y, validation=(X_test, y_test))
    assert model.score(X_test, y_test) >= 0.97
    assert model.trace_["validation_error"][-1] <= 0.03
    assert model.predict_proba(X_test).sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (model.predict_proba(X_test).argmax(axis=1) == model.predict(X_test)).all()
    assert model.transform(X_test).shape == (200, model.coef_.shape[1])


def test_the_numbers_of_parameters():
    X, y = bars(40)
    sizes = {**SIZES, "epochs": 1, "least_steps": 0}
    assert kruskal.DGDN(**sizes).fit(X, y).n_dictionary_parameters_ == 8 * 16 + 12 * 9 * 8
    found = kruskal.KruskalDGDN(**sizes, rank=3).fit(X, y).n_dictionary_parameters_
    assert found == 3 * (8 * (1 + 4 + 4 + 1) + 12 * (1 + 3 + 3 + 8))


def test_decisions_do_not_depend_on_the_threads_of_blas():
    X, y = bars(40)
    model = kruskal.DGDN(**SIZES, epochs=1, least_steps=0, threads=1).fit(X, y)
    random = np.random.default_rng(0)
    model.coef_ = random.standard_normal((3, 5000)).astype(np.float32)
    features, found = random.random((300, 5000)).astype(np.float32), []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(model._decide(features))
    np.testing.assert_array_equal(*found)


def test_mnist_sizes_of_the_paper():
    model = kruskal.KruskalDGDN(epochs=1, least_steps=0).fit(
        np.random.default_rng(0).random((4, 28, 28)), [0, 1, 2, 0]
    )
    assert model.coef_.shape == (3, 608)
    assert model.n_dictionary_parameters_ == 36 * 18 + 152 * 49


def test_caltech_sizes_of_the_paper():
    from kruskal.deep.network import build_network

    network = build_network((128, 128, 1), (64, 125, 128), ((16, 16), (9, 9), (5, 5)), ((4, 4), (2, 2)))
    assert [layout.image_shape[0] for layout in network.layers] == [128, 29, 11]
    assert network.n_features == 6272


@pytest.mark.parametrize("svm", ["em", "gibbs"])
def test_the_support_vector_machine_is_fitted_to_the_features(data, svm):
    X, y, X_test, y_test = data
    names = np.array(["down", "right", "slant"])[y]
    options = {"n_sweeps": 20, "burn_in": 10} if svm == "gibbs" else {}
    model = kruskal.KruskalDGDN(**FIT, svm=svm, svm_options=options).fit(X, names)
    assert (model.predict(X_test) == np.array(["down", "right", "slant"])[y_test]).mean() >= 0.97
    assert model.svm_.coef_.shape == model.coef_.shape
    assert model.predict_proba(X_test).shape == (200, 3)
    assert (model.decision_function(X_test) == model.svm_.decision_function(model.transform(X_test))).all()


def test_two_classes_have_one_decision(data):
    X, y, X_test, y_test = data
    few, test = y < 2, y_test < 2
    model = kruskal.DGDN(**FIT).fit(X[few], y[few])
    f = model.decision_function(X_test[test])
    assert f.shape == (test.sum(),)
    assert (model.predict(X_test[test]) == (f > 0)).all() and model.score(X_test[test], y_test[test]) > 0.95
    assert model.predict_proba(X_test[test])[:, 1] == pytest.approx(
        1 / (1 + np.exp(-model.temperature_ * f)), abs=1e-5
    )


def test_images_without_label_help_by_their_likelihood_only(data):
    X, y, X_test, y_test = data
    partial = np.where(np.arange(len(y)) < 120, y, -1)
    model = kruskal.DGDN(**FIT, generative=0.05).fit(X, partial)
    assert list(model.classes_) == [0, 1, 2] and model.score(X_test, y_test) > 0.9
    named = np.array([None if label < 0 else f"c{label}" for label in partial], dtype=object)
    other = kruskal.DGDN(**FIT, generative=0.05).fit(X, named)
    assert list(other.classes_) == ["c0", "c1", "c2"]
    masked = kruskal.DGDN(**FIT, generative=0.05).fit(X, np.ma.array(y, mask=partial < 0))
    assert (other.coef_ == model.coef_).all() and (masked.coef_ == model.coef_).all()
    # labels that are -1 do not exist: without the generative term such images have no influence
    changed = X.copy()
    changed[120:] = np.random.default_rng(0).permutation(changed[120:])
    fits = [kruskal.DGDN(**FIT).fit(images, partial) for images in (X, changed)]
    assert (fits[0].coef_ == fits[1].coef_).all()


def test_without_any_label(data):
    X, _, X_test, _ = data
    model = kruskal.DGDN(**FIT, generative=1.0).fit(X)
    assert len(model.classes_) == 0 and list(model.trace_) == ["residual"]
    assert model.trace_["residual"][-1] < 0.6 * model.trace_["residual"][0]
    assert ((model.reconstruct(X_test) - X_test) ** 2).sum() < 0.5 * (X_test**2).sum()
    with pytest.raises(InputError, match="no labels"):
        model.predict(X_test)
    with pytest.raises(InputError, match="generative is 0"):
        kruskal.DGDN(**FIT).fit(X)


def test_pictures(generative, data):
    _, _, X_test, _ = data
    squares = ((generative.reconstruct(X_test) - X_test) ** 2).sum() / (X_test**2).sum()
    assert squares < 0.5
    for prior in ("joint", "independent"):
        drawn = generative.sample(200, prior=prior)
        assert drawn.shape == (200, 12, 12) and np.isfinite(drawn).all()
        assert (drawn == generative.sample(200, prior=prior)).all()
        assert (drawn != generative.sample(200, prior=prior, seed=5)).any()
    assert generative.sample(500).mean() == pytest.approx(X_test.mean(), abs=0.1)
    assert generative.pixel_atoms(1).shape == (8, 4, 4, 1)
    assert generative.pixel_atoms(1) == pytest.approx(generative.atoms_[0])
    assert generative.pixel_atoms(2).shape == (12, 9, 9, 1)


def test_missing_pixels_are_filled_in():
    """Smooth pictures of four shapes: what is missing follows from what is there, far better than a mean."""
    random = np.random.default_rng(0)
    x, y = np.mgrid[:12, :12]
    shapes = [np.exp(-((x - a) ** 2 + (y - b) ** 2) / 8) for a, b in ((3, 3), (8, 4), (4, 8), (8, 8))]
    X = np.tensordot(random.random((300, 4)), shapes, 1).astype(np.float32)
    model = kruskal.DGDN(**(FIT | {"least_steps": 800}), generative=1.0).fit(X[:200])
    observed = random.random((100, 12, 12)) > 0.3
    filled = model.inpaint(np.where(observed, X[200:], np.nan), observed)
    assert (filled[observed] == X[200:][observed]).all()
    error = ((filled - X[200:]) ** 2).sum()
    blank = ((X[:200].mean(axis=0) - X[200:])[~observed] ** 2).sum()
    assert error < 0.5 * blank


def test_colour_and_rows_of_numbers():
    X, y = bars(60)
    short = {**SIZES, "epochs": 1, "least_steps": 0, "generative": 0.1}
    colour = np.stack([X, 0.5 * X, 0 * X], axis=-1)
    assert kruskal.DGDN(**short).fit(colour, y).reconstruct(colour[:2]).shape == (2, 12, 12, 3)
    rows = kruskal.DGDN(**short, image_shape=(12, 12)).fit(X.reshape(60, -1), y)
    plain = kruskal.DGDN(**short, image_shape=(12, 12, 1)).fit(X, y)
    assert (rows.coef_ == plain.coef_).all()
    assert rows.reconstruct(X[:2].reshape(2, -1)).shape == (2, 144)
    bytes_ = kruskal.DGDN(**short).fit((255 * X).astype(np.uint8), y)
    assert bytes_.predict((255 * X[:5]).astype(np.uint8)).shape == (5,)


def test_literal_training_keeps_its_promises(data):
    """It runs, explains the images, and fits its training labels far better than it predicts others."""
    X, y, X_test, _ = data
    model = kruskal.DGDN(**(FIT | {"least_steps": 60}), method="mcem", chains=1).fit(X, y)
    assert model.trace_["residual"][-1] < 0.5 * (X**2).sum(axis=(1, 2)).mean()
    assert model.predict(X_test[:50]).shape == (50,)
    with pytest.raises(InputError, match="2 layers"):
        kruskal.DGDN(n_atoms=(2, 2, 2), atom_sizes=(3, 2, 2), pooling=(2, 2), method="mcem").fit(X, y)


def test_pretrained_atoms_are_a_start(data):
    X, y, X_test, y_test = data
    options = {"pretrain": True, "pretrain_images": 60, "pretrain_sweeps": 5}
    for cls in (kruskal.DGDN, kruskal.KruskalDGDN):
        model = cls(**FIT, **options).fit(X, y)
        assert model.score(X_test, y_test) > 0.9


BAD = [
    ({"atoms": "wood"}, "atoms must be one of gaussian, kruskal"),
    ({"method": "magic"}, "method must be one of"),
    ({"cells": "some"}, "cells must be one of"),
    ({"svm": "best"}, "svm must be one of"),
    ({"rank": 0, "atoms": "kruskal"}, "rank must be a whole number of at least 1"),
    ({"rank": 5, "atoms": "kruskal"}, "rank 5 of layer 1 is not possible: no tensor of shape 4x4x1 has a"),
    ({"n_atoms": (3, 70_000)}, "n_atoms must be a whole number of 1 to 65535, not 70000"),
    ({"n_atoms": (3,)}, "expected L, L and L - 1"),
    ({"n_atoms": 3}, "must be lists"),
    ({"atom_sizes": (13, 3)}, "atom_sizes has atoms of 13x13 in layer 1"),
    ({"atom_sizes": (4, (3, 3, 3))}, "atom_sizes must be a whole number of at least 1 or a pair"),
    ({"pooling": (0,)}, "pooling must be a whole number"),
    ({"epochs": 0}, "epochs must be a whole number"),
    ({"batch_size": 1.5}, "batch_size must be a whole number"),
    ({"dropout": 1.0}, "dropout must be a number from 0 to below 1"),
    ({"learning_rate": -1}, "learning_rate must be a finite number above 0"),
    ({"generative": -0.1}, "generative must be a finite number of at least 0, not -0.1"),
    ({"weight_decay": -1}, "weight_decay must be a finite number of at least 0, not -1"),
    ({"averaging": -1}, "averaging must be a number from 0 to below 1, not -1"),
    ({"sharpness": 0}, "sharpness must be"),
    ({"chains": 0}, "chains must be"),
    ({"seed": -1}, "seed must be"),
    ({"threads": 0}, "threads must be"),
    ({"pretrain": "x"}, "pretrain must be True or False, not 'x'"),
    ({"progress": 3}, "progress must be None or have the methods start, note, update and stop, not be 3"),
    ({"checkpoint": 3}, "checkpoint must be"),
    ({"svm": "em", "decide_on": [1, 1]}, r"decide_on must name every layer once, not \[1, 1\]"),
    ({"svm": "em", "decide_on": [2, 1, 2.0]}, r"decide_on must name every layer once, not \[2, 1, 2.0\]"),
    ({"svm_options": 3}, "svm_options must be a dictionary of options by name, or None, not 3"),
]


def test_a_folder_that_cannot_be_had_is_told_before_anything_is_learned(tmp_path, monkeypatch):
    X, y = bars(10)
    kruskal.DGDN(**SIZES, epochs=1, least_steps=0, checkpoint=tmp_path / "fit").fit(X, y)

    def never(*_):
        raise AssertionError("no start must be made")

    monkeypatch.setattr(deep_fit, "_start", never)
    for folder, message in (("no/such", "does not exist"), ("fit", "a fit of other data or settings")):
        with pytest.raises(InputError, match=message):
            kruskal.DGDN(**SIZES, epochs=2, least_steps=0, checkpoint=tmp_path / folder).fit(X, y)


@pytest.mark.parametrize("options, message", BAD)
def test_bad_options(options, message):
    X, y = bars(10)
    with pytest.raises(InputError, match=message):
        kruskal.DGDN(**(SIZES | options)).fit(X, y)


@pytest.mark.parametrize(
    "X, y, message",
    [
        (np.zeros((4, 144)), [0, 1, 0, 1], "X has shape"),
        (np.full((4, 12, 12), np.nan), [0, 1, 0, 1], "NaN or infinity"),
        (np.full((4, 12, 12), 1e39), [0, 1, 0, 1], "values as large as 1e+39".replace("+", r"\+")),
        (np.full((4, 12, 12), "a"), [0, 1, 0, 1], "expected real numbers"),
        (
            np.full((4, 12, 12), 1e18),
            [0, 1, 0, 1],
            r"X holds values as large as 1e\+18, expected numbers below",
        ),
        (1e-20 * np.eye(12)[None].repeat(4, 0), [0, 1, 0, 1], "X holds no value larger than 1e-20"),
        (np.eye(12, dtype=np.int64)[None].repeat(4, 0), [0, 1, 0, 1], "whole numbers up to 1 of type int64"),
        (
            np.ma.masked_less(np.zeros((4, 12, 12)), 1),
            [0, 1, 0, 1],
            "X has 576 masked entries, expected none",
        ),
        ([[1.0, 2.0], [3.0]], [0, 1], "X is not an array: its rows differ in length"),
        (np.zeros((4, 12, 12)), [None, "a", "b", 1], "y mixes strings with other labels"),
        (np.zeros((4, 12, 12)), [[0], [1, 2], [0], [1]], "y has lists of different lengths"),
        (np.zeros((4, 12, 12)), [0, 1, 0], "y has shape"),
        (np.zeros((4, 12, 12)), [1, 1, -1, 1], "one class only"),
        (np.zeros((0, 12, 12)), [], "X holds no images"),
        (np.zeros((4, 12, 12)), [0, 1, 0, 1], "^X is constant: all 576 observed entries are 0.0"),
        (np.full((4, 12, 12), 3, np.uint8), None, "^X is constant: all 576 observed entries are 3,"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(InputError, match=message):
        kruskal.DGDN(**SIZES).fit(X, y)


def test_a_fit_that_fails_leaves_the_former_one(data, monkeypatch):
    X, y, X_test, _ = data
    model = kruskal.DGDN(**SIZES, epochs=1, least_steps=0).fit(X, y)
    wanted = model.predict_proba(X_test)
    with pytest.raises(InputError, match="X is constant"):
        model.fit(np.zeros((4, 12, 12)), ["a", "b", "c", "d"])
    np.testing.assert_array_equal(model.predict_proba(X_test), wanted)

    def fail(self, X, y, groups=None):
        raise InputError("it cannot be fitted")

    monkeypatch.setattr(kruskal.BayesianSVM, "fit", fail)
    with pytest.raises(InputError, match="it cannot be fitted"):
        model.set_params(svm="em").fit(X[:, :11, :11], np.where(y, "a", "b"))
    np.testing.assert_array_equal(model.predict_proba(X_test), wanted)


def test_bad_use(data, generative):
    X, y, X_test, _ = data
    with pytest.raises(ValueError, match="not fitted"):
        kruskal.DGDN().predict(X)
    model = kruskal.DGDN(**SIZES, epochs=1, least_steps=0).fit(X, y)
    with pytest.raises(InputError, match="generative above 0"):
        model.sample()
    with pytest.raises(InputError, match="X has images of shape"):
        model.predict(np.zeros((2, 11, 12)))
    with pytest.raises(InputError, match=r"observed has shape \(200, 12, 11\), expected"):
        generative.inpaint(X_test, np.ones((200, 12, 11)))
    with pytest.raises(InputError, match="X has dtype <U1, expected real numbers"):
        generative.inpaint(np.full(X_test.shape, "a"), np.ones(X_test.shape, bool))
    with pytest.raises(InputError, match="seed must be a whole number"):
        generative.sample(seed="a")
    with pytest.raises(InputError, match=r"y has shape \(1,\), expected one label for each image"):
        generative.score(X_test, [0])
    for wrong, words in (({"D": 1}, "D is no parameter of BayesianSVM"), ({"C": -1.0}, "C must be")):
        with pytest.raises(InputError, match=words):  # before hours of training
            kruskal.DGDN(**SIZES, least_steps=10**9, svm="em", svm_options=wrong).fit(X, y)
    for shape in (3, (12,), (-12, -12), (12.5, 12), "ab"):
        with pytest.raises(InputError, match=r"image_shape must be \(rows, columns\) or"):
            kruskal.DGDN(**SIZES, image_shape=shape).fit(X.reshape(len(X), -1), y)
    for shape in ((3, 3), (12, 12, 3)):
        with pytest.raises(InputError, match=r"X has images of shape \(12, 12, 1\), but image_shape is"):
            kruskal.DGDN(**SIZES, image_shape=shape).fit(X, y)
    with pytest.raises(InputError, match="prior must be"):
        generative.sample(prior="none")
    with pytest.raises(InputError, match="layer must be"):
        generative.pixel_atoms(3)
    with pytest.raises(InputError, match="validation has labels"):
        kruskal.DGDN(**SIZES).fit(X, y, validation=(X_test, np.full(len(X_test), 9)))


def test_parameters_can_be_read_and_set():
    model = kruskal.KruskalDGDN(rank=4, generative=0.1)
    assert model.get_params()["rank"] == 4 and "atoms" not in model.get_params()
    assert model.set_params(dropout=0.1).dropout == 0.1
    sklearn = pytest.importorskip("sklearn.base")
    twin = sklearn.clone(model)
    assert twin.rank == 4 and twin.atoms == "kruskal" and twin.generative == 0.1
