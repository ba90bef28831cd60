"""A deep model that begins with given atoms, and decisions on the weights of several layers."""

from copy import deepcopy

import numpy as np
import pytest

import kruskal
from kruskal.data import Scaling
from kruskal.deep.places import place_features, shifted_copies
from kruskal.errors import InputError

from .bars import SIZES, bars

OPTIONS = {
    "svm": "em", "svm_options": {"calibration_folds": 0}, "least_steps": 0, "seed": 1, "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def layers():
    X, _ = bars(60)
    return kruskal.DeepCKFA((6, 9), ((4, 4), (3, 3)), ((2, 2),), sweeps=4, seed=1, threads=1).fit(X)


def test_places_hold_the_largest_and_the_mean_weight():
    maps = np.random.default_rng(0).random((2, 5, 4, 3))
    found = place_features(maps, 2).reshape(2, 2, 2, 2, 3)  # (images, largest or mean, x, y, atoms)
    assert found[:, 0, 0, 0] == pytest.approx(maps[:, :3, :2].max(axis=(1, 2)))
    assert found[:, 0, 1, 0] == pytest.approx(maps[:, 2:, :2].max(axis=(1, 2)))
    assert found[:, 1, 0, 1] == pytest.approx(maps[:, :3, 2:].mean(axis=(1, 2)))
    assert place_features(maps, 7).shape == (2, 2 * 49 * 3)


def test_copies_are_shifted_along_the_diagonals():
    images = np.random.default_rng(0).random((2, 6, 5, 3))
    plain, *copies = shifted_copies(images.reshape(2, 6, 15), 3, 2)
    assert (plain.reshape(images.shape) == images).all() and len(copies) == 4
    down = copies[0].reshape(images.shape)
    assert (down[:, 2:, 2:] == images[:, :-2, :-2]).all()
    assert (down[:, 0, 2:] == images[:, 2, :-2]).all()  # mirrored at the border
    up = copies[3].reshape(images.shape)
    assert (up[:, :-2, :-2] == images[:, 2:, 2:]).all()
    assert len(shifted_copies(images.reshape(2, 6, 15), 3, 0)) == 1


@pytest.mark.parametrize("atoms", ["gaussian", "kruskal"])
def test_without_training_the_pass_is_that_of_the_given_layers(layers, atoms):
    """Top weights are those of `DeepCKFA.transform` but for the scale."""
    X, y = bars(40)
    model = kruskal.DGDN(atoms=atoms, rank=1, start=layers, epochs=0, **OPTIONS).fit(X, y)
    found, wanted = model.transform(X), layers.transform(X)
    assert found.shape == wanted.shape
    assert found / found.max() == pytest.approx(wanted / wanted.max(), abs=1e-4)


def far(images, dtype=np.float32):
    """Images in 200 .. 205."""
    return np.round(200 + 5 * images, 2 if dtype == np.float32 else 0).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_the_pass_is_that_of_the_given_layers_also_far_from_zero(dtype):
    """Images are less the offset, offsets of upper layers become biases; whole numbers are in other units."""
    X, y = (far(bars(40)[0], dtype), bars(40)[1])
    layers = kruskal.DeepCKFA((6, 9), ((4, 4), (3, 3)), ((2, 2),), sweeps=4, seed=1, threads=1).fit(X)
    assert layers.layers_[0].scaling_.offset > 0.9
    upper = deepcopy(layers)
    upper.layers_[1].scaling_ = Scaling(0.25, 0.5)
    for start in (layers, upper):
        model = kruskal.KruskalDGDN(start=start, epochs=0, **OPTIONS).fit(X, y)
        found, wanted = model.transform(X), start.transform(X)
        assert 0.1 < (wanted > 0).mean() < 0.9
        assert found / found.max() == pytest.approx(wanted / wanted.max(), abs=1e-4)


def test_a_start_with_an_offset_refuses_other_units():
    X, y = bars(40)
    layers = kruskal.DeepCKFA((4,), (4,), sweeps=2, threads=1).fit(far(X))
    with pytest.raises(
        InputError, match=r"X has values of 0\.\d+ to 0\.\d+, but start was learned from values a"
    ):
        kruskal.KruskalDGDN(start=layers, epochs=0, **OPTIONS).fit(far(X) / 255.0, y)


@pytest.mark.parametrize(
    "options",
    [
        {"atoms": "gaussian"},
        {"atoms": "kruskal", "cells": "drawn"},
        {"pretrain": True, "pretrain_images": 60, "pretrain_sweeps": 5},
        {"generative": 0.1},
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_images_far_from_zero_are_learned_as_others_are(options, dtype):
    """Also in a long training: with their mean in every image, accuracy was that of chance, a third."""
    X, y = bars(300)
    X_test, y_test = bars(200, seed=1)
    model = kruskal.DGDN(**SIZES, **options, threads=1).fit(far(X, dtype), y)
    assert model.score(far(X_test, dtype), y_test) >= 0.95


def test_the_literal_method_sees_centred_images():
    X, y = bars(20)
    options = {**SIZES, "method": "mcem", "epochs": 1, "least_steps": 0, "threads": 1}
    centred = far(X) - np.float32(np.median(far(X)))
    assert np.median(centred) == 0.0
    away, near = kruskal.DGDN(**options).fit(far(X), y), kruskal.DGDN(**options).fit(centred, y)
    np.testing.assert_array_equal(away.transform(far(X)), near.transform(centred))


def test_pictures_far_from_zero_come_back_where_they_were():
    X, y = bars(200)
    options = {**SIZES, "generative": 1.0, "threads": 1}
    near, away = kruskal.DGDN(**options).fit(X, y), kruskal.DGDN(**options).fit(far(X), y)
    error = np.sqrt(np.mean((near.reconstruct(X) - X) ** 2))
    assert np.sqrt(np.mean((away.reconstruct(far(X)) - far(X)) ** 2)) <= 5 * 1.5 * error
    observed = np.ones(X.shape, bool)
    observed[:, 4:7, 4:7] = False
    filled = away.inpaint(np.where(observed, far(X), np.nan))
    assert (filled[observed] == far(X)[observed]).all()
    assert filled.min() > 198 and filled.max() < 207
    samples = away.sample(20)
    assert samples.min() > 195 and samples.max() < 210


def test_training_goes_on_from_the_given_atoms(layers, tmp_path):
    X, y = bars(200)
    X_test, y_test = bars(100, seed=1)
    layers.save(tmp_path / "layers.npz")
    options = {**OPTIONS, "rank": 1, "learning_rate": 1e-4, "epochs": 1}
    near = kruskal.KruskalDGDN(start=tmp_path / "layers.npz", **options).fit(X, y)
    same = kruskal.KruskalDGDN(start=layers, **options).fit(X, y)
    assert [len(atoms) for atoms in near.atoms_] == layers.n_atoms_
    assert all((mine == theirs).all() for mine, theirs in zip(near.atoms_, same.atoms_))
    begun = layers.atoms(1)[..., 0]
    cosines = [
        (one[..., 0] * other).sum() / np.sqrt((one**2).sum() * (other**2).sum())
        for one, other in zip(near.atoms_[0], begun)
    ]
    assert 0.99 < min(cosines) < 1.0
    assert near.score(X_test, y_test) >= 0.9


def test_decisions_see_several_layers_and_copies(layers):
    X, y = bars(60)
    options = {**OPTIONS, "start": layers, "epochs": 0, "rank": 1, "places": 2}
    both = kruskal.KruskalDGDN(**options, decide_on=[1, 2]).fit(X, y)
    upper = kruskal.KruskalDGDN(**options, decide_on=(2,)).fit(X, y)
    found, n_upper = both.transform(X), 2 * 4 * layers.n_atoms_[1]
    assert found.shape == (60, 2 * 4 * sum(layers.n_atoms_))
    assert (found[:, -n_upper:] == upper.transform(X)).all()
    assert both.decision_function(X).shape[0] == 60
    shifted = kruskal.KruskalDGDN(**options, decide_on=(2,), shift=2).fit(X, y)
    copies = shifted_copies(X.astype(np.float32), 1, 2)
    mean = np.mean([upper.transform(copy) for copy in copies], axis=0)
    assert shifted.transform(X) == pytest.approx(mean, abs=1e-5)
    assert shifted.transform(X) != pytest.approx(upper.transform(X), abs=1e-3)


def test_the_machine_may_be_trained_on_the_copies_apart(layers):
    X, y = bars(60)
    options = {**OPTIONS, "start": layers, "epochs": 0, "rank": 1, "places": 2, "decide_on": (2,)}
    options["svm_options"] = {"calibration_folds": 2, "standardize": True, "C": 0.01}
    plain = kruskal.KruskalDGDN(**options).fit(X, y)
    mean = kruskal.KruskalDGDN(**options, shift=2).fit(X, y)
    apart = kruskal.KruskalDGDN(**options, shift=2, copies="apart").fit(X, y)
    copies = [plain.transform(copy) for copy in shifted_copies(X.astype(np.float32), 1, 2)]
    by_hand = kruskal.BayesianSVM(**options["svm_options"], method="em", seed=apart.seed).fit(
        np.stack(copies, axis=1).reshape(300, -1), np.repeat(y, 5), groups=np.repeat(np.arange(60), 5)
    )
    np.testing.assert_allclose(apart.svm_.coef_, by_hand.coef_, rtol=1e-4, atol=1e-6)
    assert apart.svm_.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-3)
    assert np.abs(apart.svm_.coef_ - mean.svm_.coef_).max() > 1e-3
    np.testing.assert_array_equal(apart.transform(X), mean.transform(X))
    decisions = np.mean([by_hand.decision_function(copy) for copy in copies], axis=0)
    np.testing.assert_allclose(apart.decision_function(X), decisions, rtol=1e-3, atol=1e-4)


def test_decisions_see_what_they_were_fitted_on(layers):
    """Whatever the parameters are set to for the next fit."""
    X, y = bars(40)
    model = kruskal.KruskalDGDN(**OPTIONS, start=layers, epochs=0, rank=1, places=2, decide_on=[1]).fit(X, y)
    decisions = model.decision_function(X)
    for later in ({"decide_on": [5]}, {"decide_on": None}, {"places": 3}, {"shift": 1}):
        np.testing.assert_array_equal(model.set_params(**later).decision_function(X), decisions)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"start": 3}, "start must be"),
        ({"start": kruskal.DeepCKFA()}, "fit"),
        ({"rank": 2}, "rank"),
        ({"decide_on": [3]}, "decide_on"),
        ({"decide_on": []}, "decide_on"),
        ({"decide_on": [1], "svm": "trained"}, "decide_on"),
        ({"shift": 2}, "shift"),
        ({"decide_on": [1], "shift": 99}, "shift"),
        ({"decide_on": [1], "shift": 1, "copies": "both"}, "copies must be one of mean, apart, not 'both'"),
        ({"decide_on": [1], "copies": "apart"}, "copies 'apart' needs a shift above 0"),
        ({"pretrain": True}, "pretrain"),
        ({"epochs": 0, "svm": "trained", "svm_options": None}, "epochs"),
        ({"svm": "trained"}, "svm_options is .* but svm is 'trained'"),
        ({"epochs": 0, "start": None, **SIZES}, "epochs"),
    ],
)
def test_what_cannot_be_is_refused(layers, options, said):
    X, y = bars(20)
    given = {**OPTIONS, "start": layers, "rank": 1, **options}
    with pytest.raises((InputError, ValueError), match=said):
        kruskal.KruskalDGDN(**given).fit(X, y)


def test_a_checkpoint_belongs_to_its_start(layers, tmp_path):
    X, y = bars(40)
    options = {**OPTIONS, "rank": 1, "epochs": 1, "checkpoint": tmp_path / "kept"}
    first = kruskal.KruskalDGDN(start=layers, **options).fit(X, y)
    again = kruskal.KruskalDGDN(start=layers, **options).fit(X, y)
    assert all((mine == theirs).all() for mine, theirs in zip(first.atoms_, again.atoms_))
    other = kruskal.DeepCKFA((6, 9), ((4, 4), (3, 3)), ((2, 2),), sweeps=2, seed=2, threads=1).fit(X)
    with pytest.raises(InputError, match="other data or settings"):
        kruskal.KruskalDGDN(start=other, **options).fit(X, y)


def test_no_epochs_are_no_steps(layers):
    X, y = bars(60)
    options = {name: value for name, value in OPTIONS.items() if name != "least_steps"}
    model = kruskal.KruskalDGDN(start=layers, epochs=0, **options).fit(X, y)
    assert not any(len(values) for values in model.trace_.values())
    with pytest.raises(InputError, match="generative"):
        kruskal.KruskalDGDN(start=layers, epochs=0, generative=1.0, **options).fit(X, y)


def test_a_clone_keeps_the_layers_that_it_starts_from(layers):
    base = pytest.importorskip("sklearn.base")
    model = kruskal.KruskalDGDN(start=layers, epochs=1, **OPTIONS)
    copy = base.clone(model)
    assert copy is not model and copy.start is layers and type(copy) is type(model)
    assert copy.svm_options == model.svm_options and copy.svm_options is not model.svm_options


@pytest.mark.parametrize(
    "options, words",
    [
        ({"places": 40, "decide_on": [1]}, "places must be a whole number of 1 to"),
        ({"rank": np.ones(3)}, "rank must be a whole number"),
        ({"rank": "x"}, "rank must be a whole number"),
        ({"epochs": np.ones(3)}, "epochs must be a whole number"),
        ({"start": None, "n_atoms": 5, "decide_on": [1]}, "n_atoms"),
    ],
)
def test_options_are_checked_before_they_are_used(layers, options, words):
    X, y = bars(60)
    with pytest.raises(InputError, match=words):
        kruskal.KruskalDGDN(**({"start": layers} | OPTIONS | options)).fit(X, y)


def test_images_with_other_channels_than_the_start_was_learned_from(layers):
    X, y = bars(60)
    with pytest.raises(InputError, match="X has images with 3 channels, expected 1"):
        kruskal.KruskalDGDN(start=layers, **OPTIONS).fit(np.stack([X, X, X], axis=3), y)


def test_pictures_that_are_made_from_given_layers_are_less_their_median(layers):
    """What is left of the layers' own offset becomes biases: the pass upwards stays theirs."""
    X, y = bars(60)
    options = OPTIONS | {"generative": 1.0, "epochs": 1, "learning_rate": 1e-9}
    model = kruskal.KruskalDGDN(start=layers, **options).fit(X + 0.3, y)
    assert model._given.offset == pytest.approx(np.median(X) + 0.3, rel=1e-5)
    found, wanted = model.transform(X + 0.3), layers.transform(X + 0.3)
    assert found / found.max() == pytest.approx(wanted / wanted.max(), abs=1e-3)
    white = kruskal.KruskalDGDN(start=layers, **options | {"learning_rate": 1e-2, "least_steps": 300})
    made = white.fit(1.0 - X, y).reconstruct(1.0 - X)
    assert np.abs(made - (1.0 - X)).mean() < 0.15  # 0.8 without, and 0.06 for their median alone
