"""Deep models and what users really have: other types of numbers, few labels, blank images, bad luck."""

import numpy as np
import pytest

import kruskal
from kruskal.deep.pictures import draw_top_weights, fit_top_prior
from kruskal.engines import training
from kruskal.errors import InputError
from kruskal.estimators import deep_decisions, deep_generative

from .bars import SIZES, bars

FIT = {**SIZES, "least_steps": 200, "batch_size": 50, "seed": 1, "threads": 1}
SHORT = {**SIZES, "epochs": 1, "least_steps": 0, "threads": 1}


@pytest.fixture(scope="module")
def of_bytes():
    """Images as bytes, and a model that learned from them."""
    X, y = bars(300)
    X = np.rint(255 * X / X.max()).astype(np.uint8)
    return X, y, kruskal.DGDN(**FIT, generative=0.3).fit(X, y)


@pytest.mark.parametrize(
    "other", [lambda X: X.astype(int), lambda X: X.tolist(), lambda X: X.astype(np.uint16)]
)
@pytest.mark.parametrize("use", ["predict", "predict_proba", "transform", "reconstruct", "inpaint"])
def test_whole_numbers_of_another_type_are_refused(of_bytes, other, use):
    """They would be divided by another number than those that were learned from."""
    X, _, model = of_bytes
    with pytest.raises(InputError, match=r"X is of type .*, so it is divided by .* was divided by 255"):
        getattr(model, use)(other(X))


def test_floats_after_bytes_and_bytes_after_floats(of_bytes):
    X, y, model = of_bytes
    wanted = model.decision_function(X)
    assert (model.decision_function((X / np.float32(255)).astype(np.float32)) == wanted).all()
    assert np.isfinite(model.predict_proba(np.zeros_like(X[:1]))).all()  # a black picture is a picture
    floats = kruskal.DGDN(**SHORT).fit(X / 255, y)
    assert floats.score(X, y) == floats.score(X / 255, y)
    with pytest.raises(InputError, match="X has whole numbers up to 255 of type int64"):
        floats.predict(X.astype(np.int64))
    with pytest.raises(InputError, match=r"X is of type uint8, .* floats up to 255: expected floats"):
        kruskal.DGDN(**SHORT).fit(X.astype(float), y).predict(X)


def test_no_images_at_all(of_bytes):
    X, y, model = of_bytes
    for use in (model.predict, model.transform, lambda none: kruskal.DGDN(**SHORT).fit(none, y[:0])):
        with pytest.raises(InputError, match=r"X holds no images \(shape \(0, .*\)\), expected at least one"):
            use(X[:0])


def test_validation_images_are_checked_alike(of_bytes):
    X, y, _ = of_bytes
    with pytest.raises(InputError, match="validation is of type int64, so it is divided by"):
        kruskal.DGDN(**SHORT).fit(X, y, validation=(X.astype(int), y))
    for labels in (None, [None] * len(y)):
        with pytest.raises(InputError, match="validation has labels that are not among those of y"):
            kruskal.DGDN(**SHORT).fit(X, y, validation=(X, labels))


def test_probabilities_are_set_on_labelled_images(monkeypatch):
    """Also where those that are looked at, evenly spread over all, would have no label."""
    X, y = bars(120)
    partial = np.where(np.arange(120) % 12 == 5, y, -1)
    monkeypatch.setattr(deep_decisions, "_SCALE_IMAGES", 11)
    few = kruskal.DGDN(**FIT).fit(X, partial)
    assert 1e-3 < few.temperature_ < 1e3
    monkeypatch.setattr(deep_decisions, "_SCALE_IMAGES", 10)
    same = kruskal.DGDN(**FIT).fit(X, partial)
    assert same.temperature_ == few.temperature_  # all ten labelled ones in both


@pytest.mark.parametrize("options", [{}, {"generative": 0.3}, {"pretrain": True}])
def test_blank_images_at_the_beginning_do_no_harm(options):
    X, y = bars(200)
    blank = np.concatenate([np.zeros((120, 12, 12), X.dtype), X])
    model = kruskal.DGDN(**FIT, **options).fit(blank, np.concatenate([np.full(120, -1), y]))
    assert model.score(X, y) > 0.9
    twin = kruskal.DGDN(**SHORT).fit(X, y)
    again = kruskal.DGDN(**SHORT).fit(X[:100], y[:100])
    assert twin._fitted.scales == again._fitted.scales  # of the first hundred


@pytest.mark.parametrize("scale", [1e-7, 1e-4, 1e-2, 1e3])
def test_the_scale_of_images_does_not_matter(scale):
    """If the weight of the squared residual goes with it."""
    X, _ = bars(200)
    model = kruskal.DGDN(**FIT, generative=1.0 / scale**2).fit(scale * X.astype(np.float64))
    reference = kruskal.DGDN(**FIT, generative=1.0).fit(X)
    error = ((model.reconstruct(scale * X.astype(np.float64)) / scale - X) ** 2).sum()
    assert error == pytest.approx(((reference.reconstruct(X) - X) ** 2).sum(), rel=0.1)


@pytest.mark.parametrize("seconds", [60.0, 1e-9])
def test_a_training_that_diverges_is_told(seconds, tmp_path):
    """It leaves nothing that others would go on from, nor what was saved before."""
    X, y = bars(100)
    options = {**FIT, "learning_rate": 1e30, "generative": 0.1, "checkpoint": tmp_path / "run"}
    with pytest.warns(RuntimeWarning), pytest.raises(InputError, match="the training diverged"):
        kruskal.DGDN(**options, checkpoint_seconds=seconds).fit(X, y)
    assert not list((tmp_path / "run").iterdir())
    kruskal.DGDN(**options | {"learning_rate": 0.01, "least_steps": 0, "epochs": 1}).fit(X, y)


def test_what_diverged_is_not_saved_when_interrupted(tmp_path, monkeypatch):
    X, y = bars(100)
    advance = training.Training.advance

    def interrupted(self):
        advance(self)
        if self.now.done == 7:
            self.now = self.now._replace(
                moving=self.now.moving._replace(parameters=self.now.moving.parameters * np.nan)
            )
            raise KeyboardInterrupt

    monkeypatch.setattr(training.Training, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kruskal.DGDN(**FIT, checkpoint=tmp_path / "run").fit(X, y)
    assert not list((tmp_path / "run").glob("training*"))


def test_top_weights_of_fewer_images_than_features():
    """The covariance is theirs, without a matrix of its size."""
    random = np.random.default_rng(0)
    features = random.normal(size=(7, 30)) @ random.normal(size=(30, 30))
    prior = fit_top_prior(features)
    assert prior.root.shape == (30, 7)
    np.testing.assert_allclose(prior.root @ prior.root.T, np.cov(features, rowvar=False, ddof=0), atol=1e-10)
    drawn = draw_top_weights(prior, "joint", 20_000, False, random)
    np.testing.assert_allclose(drawn.mean(axis=0), prior.mean, atol=0.3)
    np.testing.assert_allclose(np.cov(drawn, rowvar=False), prior.root @ prior.root.T, atol=3.0)


def test_many_top_weights_need_no_matrix_of_their_size(monkeypatch):
    X, y = bars(60)
    monkeypatch.setattr(deep_generative, "_MANY_FEATURES", 20)
    monkeypatch.setattr(deep_generative, "_PRIOR_NUMBERS", 2_000)
    model = kruskal.DGDN(**FIT, generative=0.3).fit(X, y)
    root = model._beliefs.prior.root
    assert (
        root.shape == (model.coef_.shape[1], 2_000 // model.coef_.shape[1]) and root.shape[1] < root.shape[0]
    )
    assert np.isfinite(model.sample(5)).all()
    observed = np.random.default_rng(1).random(X.shape) < 0.7
    assert (model.inpaint(X, observed)[observed] == X[observed]).all()


def test_labels_of_mixed_lists():
    X, _ = bars(6)
    names = ["a", -1, "b", None, "a", "b"]
    for y in (names, np.array(names, dtype=object)):
        assert list(kruskal.DGDN(**SHORT).fit(X, y).classes_) == ["a", "b"]
    with pytest.raises(InputError, match="y mixes strings with other labels"):
        kruskal.DGDN(**SHORT).fit(X, ["a", 2, "b", "a", 2, "b"])
    with pytest.raises(InputError, match=r"one class only \(1\) where it has labels \(-1 and"):
        kruskal.DGDN(**SHORT).fit(X, [1, -1, 1, -1, 1, -1])


def test_masks_of_any_kind(of_bytes):
    """Numbers, and NaN, as elsewhere."""
    X, _, model = of_bytes
    values = X[:20] / np.float32(255)
    observed = np.random.default_rng(2).random(values.shape) < 0.6
    wanted = model.inpaint(values, observed)
    assert model.inpaint(X[:20], observed.astype(int)) == pytest.approx(wanted, abs=1e-6)
    assert (model.inpaint(np.where(observed, values, np.nan)) == wanted).all()
    assert (model.inpaint(np.ma.masked_array(values, ~observed)) == wanted).all()


def test_pictures_of_two_values():
    """As booleans they are 0 and 1, not whole numbers up to 255."""
    X, y = bars(60)
    X = X > 0.5
    model = kruskal.DGDN(**SHORT, generative=0.3).fit(X, y)
    everything = np.ones(X.shape, bool)
    assert (model.inpaint(X, everything) == X).all()
    assert (model.predict(X) == model.predict(X.astype(float))).all()
    with pytest.raises(InputError, match=r"X is of type uint8, so .* by 255, but .* divided by 1"):
        model.predict(X.astype(np.uint8))


def test_options_that_cannot_be_meant():
    X, y = bars(10)
    for options, message in (
        ({"svm_options": {"C": 1.0}}, "svm is 'trained': no machine is fitted"),
        ({"svm": "em", "svm_options": {1: 1}}, "svm_options must be a dictionary of options by name"),
        ({"checkpoint": ""}, "checkpoint must be the path of a folder or None, not ''"),
    ):
        with pytest.raises(InputError, match=message):
            kruskal.DGDN(**SHORT, **options).fit(X, y)
    with pytest.raises(InputError, match="atoms is no parameter of KruskalDGDN"):
        kruskal.KruskalDGDN(atoms="gaussian")
    model = kruskal.DGDN(**SHORT, cells="drawn").fit(X, y)
    for options, message in (({"seed": "q"}, "seed must be"), ({"chains": "x"}, "chains must be")):
        with pytest.raises(InputError, match=message):
            kruskal.DGDN(**SHORT, cells="drawn").fit(X, y).set_params(**options).transform(X)
    assert model._given.values.base is None  # the training images are let go


def test_numbers_of_numpy_are_the_same_settings(tmp_path):
    X, y = bars(30)
    one = kruskal.DGDN(**SHORT, seed=3, checkpoint=tmp_path / "run").fit(X, y)
    numpys = SHORT | {"n_atoms": np.array(SHORT["n_atoms"])}
    same = kruskal.DGDN(**numpys, seed=np.int64(3), checkpoint=tmp_path / "run").fit(X, y)  # not refused
    assert (one.coef_ == same.coef_).all()


@pytest.mark.parametrize("turned", [lambda X: 1.0 - X, lambda X: (255 - np.rint(255 * X)).astype(np.uint8)])
def test_black_on_white_is_made_as_well_as_white_on_black(turned):
    """The paper's white is no part of any atom."""
    X, y = bars(200)
    options = {**FIT, "generative": 1.0, "least_steps": 400}
    X = X / X.max()
    plain = kruskal.KruskalDGDN(**options, rank=2).fit(X, y)
    error = np.sqrt(np.mean((plain.reconstruct(X) - X) ** 2))
    other = turned(X)
    model = kruskal.KruskalDGDN(**options, rank=2).fit(other, y)
    made = model.reconstruct(other)
    assert np.sqrt(np.mean((made - (1.0 - X)) ** 2)) <= 1.3 * error
    assert model.score(other, y) >= plain.score(X, y) - 0.05
    assert model.sample(50).mean() == pytest.approx((1.0 - X).mean(), abs=0.1)


def test_a_model_whose_top_weights_are_all_zero_is_refused(monkeypatch):
    X, y = bars(40)
    before = kruskal.DGDN(**SHORT).fit(X, y)
    wanted = before.predict(X)
    monkeypatch.setattr(
        kruskal.DGDN, "_top_weights", lambda self, values: np.zeros((len(values), 4), np.float32)
    )
    with pytest.raises(InputError, match=r"the training ended with all top weights 0, .* another seed"):
        before.fit(X, y)
    monkeypatch.undo()
    assert (before.predict(X) == wanted).all()


def test_completed_images_keep_what_was_observed(of_bytes):
    X, _, model = of_bytes
    seen = np.random.default_rng(0).random(X.shape) < 0.7
    filled = model.inpaint(X, seen)
    assert (filled[seen] == X[seen] / 255).all() and not (filled == X / 255).all()
    doubles = X / 255 + 1e-12
    assert (model.inpaint(doubles, seen)[seen] == doubles[seen]).all()


def test_a_mask_of_one_image_is_none_of_all(of_bytes):
    X, _, model = of_bytes
    one = np.random.default_rng(0).random((12, 12)) < 0.7
    for n_images in (12, 13):
        with pytest.raises(
            InputError, match=rf"observed has shape \(12, 12\), expected \({n_images}, 12, 12\) "
        ):
            model.inpaint(X[:n_images], one)
    colours = np.repeat(X[:12, :, :, None], 2, axis=3)
    short = kruskal.DGDN(**SHORT, generative=0.1).fit(colours)
    seen = np.random.default_rng(0).random(X[:12].shape) < 0.7
    np.testing.assert_array_equal(short.inpaint(colours, seen), short.inpaint(colours, seen[..., None]))


def test_scores_are_of_images_with_labels(of_bytes):
    X, y, model = of_bytes
    some = np.where(np.arange(len(y)) % 2, y, -1)
    assert model.score(X, some) == model.score(X[1::2], y[1::2])
    with_none = [None if label < 0 else int(label) for label in some]
    weight = np.arange(len(y))
    assert model.score(X, with_none, weight) == model.score(X[1::2], y[1::2], weight[1::2])
    with pytest.raises(InputError, match=r"sample_weight has shape \(5,\), expected"):
        model.score(X, some, np.ones(5))
    with pytest.raises(InputError, match="X has entries of type object"):
        model.score(None, some)
    with pytest.raises(InputError, match="y has no labels"):
        model.score(X, np.full(len(y), -1))
    with pytest.raises(InputError, match="y holds strings, but the classes are numbers"):
        model.score(X, y.astype(str))


def test_the_method_of_the_machine_is_named_once():
    with pytest.raises(InputError, match="svm is 'em', but svm_options has the method 'gibbs'"):
        kruskal.DGDN(**SHORT, svm="em", svm_options={"method": "gibbs"}).fit(*bars(20))


@pytest.mark.parametrize("generative", ["x", -1.0, None])
def test_a_weight_that_is_none_is_named(generative):
    with pytest.raises(InputError, match="generative must be"):
        kruskal.DGDN(**SHORT, generative=generative).fit(*bars(20))
