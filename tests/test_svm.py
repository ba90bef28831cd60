"""BayesianSVM: the classifier, its uncertainty, its probabilities and what it says about bad input."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kruskal import BayesianSVM, InputError
from kruskal.engines.one_vs_all import Plan
from kruskal.models.temperature import fit_scale, probabilities
from tests.gibbs.svm_reference import log_loss


def blobs(n_items=150, n_classes=3, spread=1.0, seed=0):
    random = np.random.default_rng(seed)
    centres = 2.0 * np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5], [1.5, 1.5]])[:n_classes]
    labels = random.integers(n_classes, size=n_items)
    return centres[labels] + spread * random.normal(size=(n_items, 2)), labels


@pytest.mark.parametrize("method", ["auto", "em", "stochastic", "gibbs"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_classifies(method, n_classes):
    X, y = blobs(n_classes=n_classes, spread=0.5)
    names = np.array(["ant", "bee", "cat"])[y]
    machine = BayesianSVM(C=0.1, method=method, n_sweeps=60, burn_in=20).fit(X, names)
    assert machine.score(X, names) > 0.95
    rows = 1 if n_classes == 2 else 3
    assert machine.classes_.tolist() == ["ant", "bee", "cat"][:n_classes]
    assert machine.coef_.shape == (rows, 2) and machine.intercept_.shape == (rows,)
    f = machine.decision_function(X)
    assert f.shape == ((len(X),) if n_classes == 2 else (len(X), 3))
    np.testing.assert_allclose(f.reshape(len(X), -1), X @ machine.coef_.T + machine.intercept_)
    p = machine.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (machine.classes_[p.argmax(axis=1)] == machine.predict(X)).all()


@pytest.mark.parametrize("method", ["em", "stochastic", "gibbs"])
@pytest.mark.parametrize("n_features", [2, 60])
def test_results_do_not_depend_on_the_number_of_threads(method, n_features):
    X, y = blobs(40)
    X = np.hstack([X, np.random.default_rng(1).normal(size=(40, n_features))])
    options = {"C": 0.01, "method": method, "n_sweeps": 12, "burn_in": 4, "calibration_folds": 2, "seed": 5}
    one, two = (BayesianSVM(threads=threads, **options).fit(X, y) for threads in (1, 3))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.temperature_ == two.temperature_
    if method == "gibbs":
        other = BayesianSVM(**(options | {"seed": 6})).fit(X, y)
        assert np.abs(other.coef_ - one.coef_).max() > 0.0
        assert np.abs(one.coef_[0] - one.coef_[1]).max() > 0.0


@pytest.mark.parametrize("method", ["em", "gibbs"])
@pytest.mark.parametrize("whiten", [None, 0.1])
def test_nor_on_that_of_blas(method, whiten):
    random = np.random.default_rng(0)
    X, new = random.standard_normal((300, 900)), random.standard_normal((100, 900))
    y = np.digitize(X[:, 0], (-1.0, -0.5, 0.0, 0.5, 1.0))
    options = {"method": method, "whiten": whiten, "n_sweeps": 6, "burn_in": 2, "calibration_folds": 2}
    options |= {"keep_draws": method == "gibbs", "C": 0.1, "threads": 1}
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            machine = BayesianSVM(**options).fit(X, y)
            found.append([machine.coef_, machine.intercept_, machine.temperature_])
            found[-1] += [machine.decision_function(new), machine.decision_function(new[:50])]
            if method == "gibbs":
                found[-1].append(machine.decision_std(new))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_posterior_on_a_tiny_problem():
    """Mean and standard deviation of weight and bias against a grid, with omega fixed."""
    x, y, cost = np.array([-1.0, -0.3, 0.4, 1.2, 0.1]), np.array([0, 0, 1, 1, 0]), 0.8
    grid = np.linspace(-8.0, 8.0, 321)
    w, b = np.meshgrid(grid, grid, indexing="ij")
    log_density = -0.5 * 0.5 * w**2 - 0.5 * 0.2 * b**2
    for value, label in zip(x, y):
        log_density += log_loss((2 * label - 1) * (w * value + b), cost)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = np.array([(density * w).sum(), (density * b).sum()])
    std = np.sqrt([(density * w**2).sum(), (density * b**2).sum()] - mean**2)
    machine = BayesianSVM(
        C=cost, method="gibbs", precision=0.5, bias_precision=0.2, n_sweeps=12_000, burn_in=100,
        calibration_folds=0, keep_draws=True,
    ).fit(x[:, None], y)  # fmt: skip
    np.testing.assert_allclose([machine.coef_[0, 0], machine.intercept_[0]], mean, atol=0.08)
    np.testing.assert_allclose([machine.coef_std_[0, 0], machine.intercept_std_[0]], std, rtol=0.06)
    assert machine.draws_.shape == (1, 11_900, 2)
    np.testing.assert_allclose(machine.draws_[0].mean(axis=0), [machine.coef_[0, 0], machine.intercept_[0]])
    at = np.array([[0.7]])
    expected = (machine.draws_[0] @ [0.7, 1.0]).std(ddof=1)
    assert machine.decision_std(at)[0] == pytest.approx(expected)


def test_more_labels_more_certain():
    X, y = blobs(600, 2)
    options = {"method": "gibbs", "n_sweeps": 150, "burn_in": 50, "calibration_folds": 0}
    few, many = BayesianSVM(**options).fit(X[:40], y[:40]), BayesianSVM(**options).fit(X, y)
    assert (many.coef_std_ < 0.6 * few.coef_std_).all()


def test_a_learned_precision_follows_the_size_of_the_weights():
    X, y = blobs(300, 2, spread=0.3)
    options = {
        "method": "gibbs", "precision": "learn", "n_sweeps": 200, "burn_in": 50, "calibration_folds": 0,
        "precision_prior": (1e-3, 1e-3),
    }  # fmt: skip
    small = BayesianSVM(**options).fit(X, y)
    large = BayesianSVM(**options).fit(0.01 * X, y)
    assert large.precision_[0] < 0.01 * small.precision_[0]
    assert large.score(0.01 * X, y) > 0.95


@pytest.mark.parametrize("method", ["em", "gibbs"])
def test_standardising(method):
    """Weights are given in the units of the user, whatever those are."""
    X, y = blobs()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    options = {"method": method, "n_sweeps": 20, "burn_in": 5, "calibration_folds": 0}
    plain = BayesianSVM(**options).fit(Z, y)
    moved = BayesianSVM(standardize=True, **options).fit(X * [1000.0, 0.01] + 7.0, y)
    np.testing.assert_allclose(
        moved.decision_function(X * [1000.0, 0.01] + 7.0), plain.decision_function(Z), atol=1e-5
    )
    constant = np.hstack([X, np.full((len(X), 1), 3.0)])
    assert np.isfinite(BayesianSVM(standardize=True, **options).fit(constant, y).coef_).all()


# ---------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["em", "gibbs"])
def test_probabilities_are_calibrated(method, n_classes):
    """Overlapping classes: predicted and true frequencies of new items agree in every bin."""
    X, y = blobs(600, n_classes, spread=1.6, seed=1)
    new, truth = blobs(6000, n_classes, spread=1.6, seed=2)
    options = {"method": method, "n_sweeps": 60, "burn_in": 20, "C": 0.2}
    p = BayesianSVM(**options).fit(X, y).predict_proba(new)
    error = 0.0
    for c in range(n_classes):
        bins = np.digitize(p[:, c], np.linspace(0.1, 0.9, 9))
        for one in np.unique(bins):
            inside = bins == one
            error += abs(p[inside, c].mean() - (truth[inside] == c).mean()) * inside.mean() / n_classes
    assert error < 0.05
    assert np.mean(p.max(axis=1)) == pytest.approx(np.mean(p.argmax(axis=1) == truth), abs=0.05)


def test_probabilities_do_not_come_from_training_decisions():
    """Few items of noise in many dimensions: trained on, all are right; the probabilities must not say so."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 200)), random.integers(2, size=60)
    machine = BayesianSVM().fit(X, y)
    assert machine.score(X, y) == 1.0
    wrong = np.where(np.arange(len(y)) == 0, 1 - y[0], y)
    assert machine.score(X, wrong, sample_weight=np.eye(len(y))[0]) == 0.0
    assert machine.score(X, wrong, np.arange(len(y))) == 1.0
    with pytest.raises(InputError, match="sample_weight must be"):
        machine.score(X, y, np.zeros(len(y)))
    p = machine.predict_proba(random.normal(size=(500, 200)))
    assert p.max() < 0.75


def test_temperature():
    random = np.random.default_rng(0)
    f = random.normal(size=(20_000, 1))
    labels = (random.random(20_000) < 1.0 / (1.0 + np.exp(-2.5 * f[:, 0]))).astype(int)
    assert fit_scale(f, labels) == pytest.approx(2.5, rel=0.05)
    f = 2.0 * random.normal(size=(20_000, 4))
    chosen = np.argmax(0.7 * f + random.gumbel(size=f.shape), axis=1)
    assert fit_scale(f, chosen) == pytest.approx(0.7, rel=0.05)
    assert np.isfinite(probabilities(1e6 * f, 100.0)).all()
    assert fit_scale(1e-7 * f, chosen) == pytest.approx(1e7 * fit_scale(f, chosen), rel=1e-3)
    assert fit_scale(np.zeros((5, 3)), np.zeros(5, int)) == 1.0


@pytest.mark.parametrize("n_items, n_classes", [(100, 2), (200, 10), (300, 100)])
def test_temperature_of_few_items_with_many_classes(n_items, n_classes):
    """Labels are drawn with t = 1, and few of them are not those of the largest decision."""
    found = []
    for seed in range(15):
        random = np.random.default_rng(seed)
        f = random.normal(size=(n_items, n_classes))
        f[np.arange(n_items), random.integers(n_classes, size=n_items)] += 4.0 + np.log(n_classes)
        labels = np.argmax(f + random.gumbel(size=f.shape), axis=1)
        found.append(fit_scale(f[:, 1:] - f[:, :1] if n_classes == 2 else f, labels))
    assert np.exp(np.mean(np.log(found))) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize("n_classes", [2, 3, 100])
@pytest.mark.parametrize("n_items, n_right", [(1, 1), (2, 2), (5, 4), (20, 20), (300, 300)])
def test_temperature_of_decisions_that_are_equally_clear(n_items, n_right, n_classes):
    """Jeffreys' prior is worth one item, half of it right, whatever the number of classes."""
    f = np.zeros((n_items, n_classes))
    f[:, 1] = 3.0
    labels = (np.arange(n_items) < n_right).astype(int)
    f = f[:, 1:] if n_classes == 2 else f
    sure = probabilities(f, fit_scale(f, labels))[:, 1]
    np.testing.assert_allclose(sure, (n_right + 0.5) / (n_items + 1.0), rtol=1e-4)


def test_temperature_of_decisions_of_very_different_sizes():
    """The density of t has two modes; the lower one, where only large decisions are sure, is near 0.05."""
    f = np.repeat([100.0, 0.05], 50)[:, None]
    assert fit_scale(f, np.ones(100, int)) == pytest.approx(92.3, rel=0.01)


def test_without_calibration_there_are_no_probabilities():
    X, y = blobs()
    machine = BayesianSVM(calibration_folds=0).fit(X, y)
    assert not hasattr(machine, "predict_proba")
    with pytest.raises(InputError, match="needs calibration_folds of at least 1"):
        machine.predict_proba(X)


def test_calibration_that_was_asked_for_after_the_fit():
    X, y = blobs()
    machine = BayesianSVM(calibration_folds=0).fit(X, y).set_params(calibration_folds=3)
    assert not hasattr(machine, "predict_proba")
    with pytest.raises(InputError, match="needs a fit with calibration_folds: call fit again"):
        machine.predict_proba(X)
    assert machine.fit(X, y).predict_proba(X).shape == (len(X), len(machine.classes_))


def test_one_draw_has_no_spread():
    X, y = blobs()
    options = {"method": "gibbs", "burn_in": 2, "keep_draws": True, "calibration_folds": 0}
    with pytest.raises(InputError, match="needs at least two kept draws, not 1"):
        BayesianSVM(n_sweeps=3, **options).fit(X, y).decision_std(X)
    assert np.isfinite(BayesianSVM(n_sweeps=4, **options).fit(X, y).decision_std(X)).all()


def test_copies_of_an_item_are_left_out_together():
    """Noise with four copies of each item: who trains on a copy of what was left out would be sure of it."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 200)), random.integers(2, size=60)
    copies, labels = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    new = random.normal(size=(500, 200))
    fooled = BayesianSVM().fit(copies, labels).predict_proba(new)
    names = np.repeat([f"item {n}" for n in range(60)], 4)
    machine = BayesianSVM().fit(copies, labels, groups=names)
    assert fooled.max() > 0.8 and machine.predict_proba(new).max() < 0.75
    np.testing.assert_array_equal(machine.coef_, BayesianSVM(calibration_folds=0).fit(copies, labels).coef_)


def test_the_mean_of_the_decisions_of_a_group_counts():
    """With copies on both sides of an item, far apart, probabilities are those of the item alone."""
    X, y = blobs(200, 2, spread=1.6)
    away = np.array([[2.5, 0.0]])
    pairs, labels = np.stack([X - away, X + away], axis=1).reshape(400, 2), np.repeat(y, 2)
    machine = BayesianSVM(C=0.05).fit(pairs, labels, groups=np.repeat(np.arange(200), 2))
    new, truth = blobs(4000, 2, spread=1.6, seed=2)
    p = machine.predict_proba(new)
    assert np.mean(p.max(axis=1)) == pytest.approx(np.mean(p.argmax(axis=1) == truth), abs=0.05)
    one_by_one = BayesianSVM(C=0.05).fit(pairs, labels)
    assert one_by_one.temperature_ < 0.8 * machine.temperature_


def test_every_item_in_a_group_of_its_own_is_no_groups():
    X, y = blobs()
    plain, alone = BayesianSVM().fit(X, y), BayesianSVM().fit(X, y, groups=np.arange(len(X)))
    assert plain.temperature_ == alone.temperature_


def test_a_class_with_a_single_item():
    X, y = blobs(30, 2)
    y[0] = 2
    assert BayesianSVM(calibration_folds=3).fit(X, y).predict_proba(X).shape == (30, 3)


# --------------------------------------------------------------------------------------------- interface


def test_auto_takes_the_stochastic_form_for_very_many_items():
    assert Plan().chosen(60_000, 608, 10) == "em"
    assert Plan().chosen(2_000_000, 608, 10) == "stochastic"
    assert Plan(method="gibbs").chosen(2_000_000, 608, 10) == "gibbs"


def test_passes_where_they_are_cheap():
    """As many as it takes for few items; as ever for many, and what the user says."""
    assert Plan().passes(120, 6, 3) == 10_000
    assert Plan().passes(2000, 100, 10) == 1250
    assert Plan().passes(60_000, 608, 10) == 50
    assert Plan(max_passes=7).passes(120, 6, 3) == 7


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cost", [0.1, 1.0, 10.0])
def test_stochastic_ascent_of_few_items_finds_the_optimum(cost):
    random = np.random.default_rng(0)
    y = random.integers(3, size=120)
    X = random.normal(size=(3, 6))[y] + random.normal(size=(120, 6))
    options = {"C": cost, "calibration_folds": 0}
    found, exact = (BayesianSVM(method=name, **options).fit(X, y) for name in ("stochastic", "em"))
    assert found.gap_.max() <= 1e-4
    np.testing.assert_allclose(found.decision_function(X), exact.decision_function(X), atol=0.1)


def test_a_search_that_misses_tol_says_so():
    X, y = blobs(300, 3)
    options = {"method": "stochastic", "calibration_folds": 0}
    words = r"ended up to .* % above the optimum, more than tol \(0\.01 %\): scale the features"
    with pytest.warns(UserWarning, match=words):
        machine = BayesianSVM(max_passes=2, **options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BayesianSVM(max_passes=2, tol=0.6 * machine.gap_.max(), **options).fit(X, y).gap_.max() > 0.0
    with pytest.warns(UserWarning, match="above the optimum"):
        BayesianSVM(max_passes=2, tol=0.4 * machine.gap_.max(), **options).fit(X, y)


def test_a_time_budget_ends_the_search():
    X, y = blobs(400, 4)
    with pytest.warns(UserWarning, match="above the optimum"):
        machine = BayesianSVM(time_budget=1e-9, calibration_folds=0).fit(X, y)
    assert machine.gap_.shape == (4,) and machine.gap_.max() > 0.05


def test_fitting_again_forgets_the_first_fit():
    X, y = blobs()
    machine = BayesianSVM(method="gibbs", n_sweeps=5, burn_in=2, keep_draws=True).fit(X, y)
    assert hasattr(machine, "draws_") and not hasattr(machine, "gap_")
    machine.set_params(method="em", keep_draws=False, calibration_folds=0).fit(X, y)
    assert hasattr(machine, "gap_")
    assert not any(hasattr(machine, name) for name in ("draws_", "coef_std_", "temperature_"))
    with pytest.raises(InputError, match="decision_std needs method 'gibbs' and keep_draws=True"):
        machine.decision_std(X)


def test_a_fit_that_fails_leaves_the_former_one(monkeypatch):
    X, y = blobs()
    machine = BayesianSVM().fit(X, y)
    wanted = machine.predict_proba(X)
    with pytest.raises(InputError, match="y has 3 labels"):
        machine.fit(X[:, :1], y[:3])
    np.testing.assert_array_equal(machine.predict_proba(X), wanted)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kruskal.estimators.svm.fit_scale", interrupted)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X[:, :1], y)
    np.testing.assert_array_equal(machine.predict_proba(X), wanted)


@pytest.mark.parametrize(
    "options", [{"calibration_folds": 2}, {"method": "gibbs", "n_sweeps": 20, "burn_in": 5}]
)
def test_scikit_learn_accepts_it(options):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    checks.check_estimator(BayesianSVM(threads=1, **options), on_skip=None)


def test_it_works_without_scikit_learn():
    code = """
import sys
sys.modules["sklearn"] = None
import numpy as np
from kruskal import BayesianSVM, InputError
X = np.array([[0.0], [1.0], [2.0], [3.0]])
machine = BayesianSVM(C=2.0).fit(X, ["a", "a", "b", "b"])
assert machine.score(X, ["a", "a", "b", "b"]) == 1.0
assert machine.get_params()["C"] == 2.0 and machine.set_params(C=3.0).C == 3.0
for wrong in (lambda: machine.set_params(D=1), lambda: BayesianSVM().predict(X)):
    try:
        wrong()
    except InputError as error:
        print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "D is no parameter of BayesianSVM, which has C, " in run.stdout
    assert "is not fitted yet" in run.stdout


BAD_OPTIONS = {
    "C must be a finite number above 0, not 0": {"C": 0},
    "C must be a finite number above 0, not 'x'": {"C": "x"},
    "method must be one of auto, em, stochastic, gibbs, not 'newton'": {"method": "newton"},
    "precision must be a finite number above 0, not -1": {"precision": -1},
    "precision must be a number above 0 or 'learn', not 'auto'": {"precision": "auto"},
    "precision 'learn' needs method 'gibbs', not 'auto'": {"precision": "learn"},
    "precision_prior must be .shape, rate., not 3": {"precision_prior": 3},
    "bias_precision must be a finite number above 0, not nan": {"bias_precision": float("nan")},
    "n_sweeps must be a whole number of at least 1, not 0": {"n_sweeps": 0},
    "burn_in must be a whole number of 0 to 9, not 10": {"n_sweeps": 10, "burn_in": 10},
    "standardize must be True or False, not 'x'": {"standardize": "x"},
    "keep_draws must be True or False, not None": {"keep_draws": None},
    "keep_draws=True needs method 'gibbs', not 'em'": {"keep_draws": True, "method": "em"},
    "keep_draws=True needs method 'gibbs', not 'auto'": {"keep_draws": True},
    "max_passes must be a whole number of at least 1, not 0": {"max_passes": 0},
    "tol must be a finite number above 0, not 0": {"tol": 0},
    "time_budget is not for method 'gibbs'": {"method": "gibbs", "time_budget": 3},
    "calibration_folds must be a whole number of at least 0, not -1": {"calibration_folds": -1},
    "seed must be a whole number": {"seed": -1},
    "threads must be a whole number of at least 1, not 0": {"threads": 0},
}


@pytest.mark.parametrize("message", BAD_OPTIONS)
def test_bad_options(message):
    X, y = blobs()
    with pytest.raises(InputError, match=message):
        BayesianSVM(**BAD_OPTIONS[message]).fit(X, y)


X4 = np.arange(8.0).reshape(4, 2)
BAD_DATA = {
    r"y has one class only \(1\), expected at least two classes": (X4, [1, 1, 1, 1]),
    r"y has one class only \(2.0\), expected at least two classes": (X4, [2.0, 2.0, 2.0, 2.0]),
    r"y has one class only \('a'\), expected at least two classes": (X4, ["a", "a", "a", "a"]),
    "X has 1 entries that are NaN or infinity": (np.where(X4 == 3.0, np.nan, X4), [0, 1, 0, 1]),
    r"X has shape \(4,\), expected items by features": (X4[:, 0], [0, 1, 0, 1]),
    "y has 3 labels and X has 4 items": (X4, [0, 1, 0]),
    r"y has shape \(4, 2\), expected one label for each item": (X4, X4),
    "y has fractional numbers": (X4, [0.5, 1.0, 0.5, 1.0]),
    "X is not an array: its rows differ in length": ([[1.0], [2.0, 3.0]], [0, 1]),
    "X has dtype <U32, expected real numbers": (X4.astype(str), [0, 1, 0, 1]),
    "X has 1 masked entries, expected none": (np.ma.masked_equal(X4, 3.0), [0, 1, 0, 1]),
    "y has dtype complex128, expected classes": (X4, [0j, 1.0, 0.0, 1.0]),
    "y has lists of different lengths in the place of labels": (X4, [[0], [1, 2], [0], [1]]),
    "y has labels that are NaN": (X4, [np.nan, 1.0, 0.0, 1.0]),
    r"X has 0 feature\(s\)": (X4[:, :0], [0, 1, 0, 1]),
    r"X holds values as large as 7e\+200, expected numbers below 3e\+38": (1e200 * X4, [0, 1, 0, 1]),
}


@pytest.mark.parametrize("message", BAD_DATA)
def test_bad_data(message):
    with pytest.raises(InputError, match=message):
        BayesianSVM().fit(*BAD_DATA[message])


@pytest.mark.parametrize(
    "groups, message",
    [
        ([0, 1, 2], r"groups has shape \(3,\), expected one group for each item, \(4,\)"),
        ([0, 0, 1, 1], "groups has items of different classes in one group"),
        ([0, "a", 1, None], "groups mixes values that cannot be ordered"),
        ([[0], [1, 2], [0], [1]], "groups has lists of different lengths"),
    ],
)
def test_bad_groups(groups, message):
    groups = np.array(groups, dtype=object) if groups == [0, "a", 1, None] else groups
    with pytest.raises(InputError, match=message):
        BayesianSVM().fit(X4, [0, 1, 0, 1], groups=groups)


def test_hopeless_scales():
    X = 1e6 * np.random.default_rng(0).normal(size=(10, 30))
    X[1] = X[0]
    with pytest.raises(InputError, match=r"X with entries up to .* is beyond the precision of the computer"):
        BayesianSVM(C=1e4, method="gibbs", n_sweeps=50, burn_in=5).fit(X, np.arange(10) % 2)


def test_other_features_than_trained_on():
    machine = BayesianSVM().fit(X4, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="X has 3 features, but BayesianSVM is expecting 2 features"):
        machine.predict(np.zeros((1, 3)))
    with pytest.raises(
        InputError, match=r"X holds values as large as 1e\+200, expected numbers below 3e\+38"
    ):
        machine.predict_proba(np.full((1, 2), -1e200))


@pytest.mark.filterwarnings("error:.*:RuntimeWarning")
@pytest.mark.parametrize(
    "options", [{"standardize": True}, {"method": "gibbs", "n_sweeps": 20, "burn_in": 5}]
)
def test_large_features_that_are_allowed(options):
    X = 1e37 * X4
    machine = BayesianSVM(**options).fit(X, [0, 0, 1, 1])
    assert np.isfinite(machine.coef_).all() and np.isfinite(machine.predict_proba(X)).all()


def test_masked_labels_and_wrong_numbers_of_features():
    X = np.random.default_rng(0).standard_normal((20, 3))
    y = np.ma.array(np.arange(20) % 2, mask=np.arange(20) < 5)
    with pytest.raises(InputError, match="y has 5 masked entries, expected none"):
        BayesianSVM().fit(X, y)
    machine = BayesianSVM().fit(X, y.data)
    with pytest.raises(InputError, match="y has 5 masked entries"):
        machine.score(X, y)
    with pytest.raises(InputError, match="X has 2 features, but BayesianSVM is expecting 3"):
        machine.predict(X[:, :2])
