"""BayesianSVM(whiten=...): the prior N(0, (S + s m I)^-1 / omega) of the weights."""

import pickle

import numpy as np
import pytest

from kruskal import BayesianSVM, InputError
from kruskal.estimators.whitening import prepare

METHODS = {
    "em": {"method": "em", "tol": 1e-9},
    "stochastic": {"method": "stochastic", "tol": 1e-6, "max_passes": 200},
    "gibbs": {"method": "gibbs", "n_sweeps": 30, "burn_in": 5, "keep_draws": True},
}
SIZES = {"many items": (90, 6), "as many": (20, 20), "few items": (30, 50)}


def items(n_items, n_features, seed=0):
    """Features whose directions have very different variances, in two or three classes."""
    random = np.random.default_rng(seed)
    mixed = random.normal(size=(n_features, n_features)) * np.geomspace(3.0, 0.05, n_features)[:, None]
    X = random.normal(size=(n_items, n_features)) @ mixed + random.normal(size=n_features)
    y = np.arange(n_items) % min(3, n_items)
    X[:, 0] += 0.5 * y
    return X, y


def root_of_inverse(X, strength):
    """A = (S + s m I)^(-1/2) by the definition."""
    centred = X - X.mean(axis=0)
    covariance = centred.T @ centred / len(X)
    ridge = strength * np.trace(covariance) / X.shape[1]
    spread, vectors = np.linalg.eigh(covariance + ridge * np.eye(X.shape[1]))
    return (vectors / np.sqrt(spread)) @ vectors.T


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("method", METHODS)
def test_it_is_whitening_by_hand(method, size):
    """Weights of whitened features, taken back to the features given; the same draws with gibbs."""
    X, y = items(*SIZES[size])
    matrix = root_of_inverse(X, 0.4)
    options = {"C": 0.05, "calibration_folds": 2, **METHODS[method]}
    machine = BayesianSVM(whiten=0.4, **options).fit(X, y)
    by_hand = BayesianSVM(**options).fit((X - X.mean(axis=0)) @ matrix, y)
    close = {"rtol": 2e-3, "atol": 2e-3 * np.abs(machine.coef_).max()}
    if method == "gibbs":
        close = {"rtol": 1e-7, "atol": 1e-7}
        weights = by_hand.draws_[..., :-1] @ matrix
        np.testing.assert_allclose(machine.draws_[..., :-1], weights, **close)
        np.testing.assert_allclose(machine.coef_std_, machine.draws_[..., :-1].std(axis=1, ddof=1), rtol=1e-6)
    coef = by_hand.coef_ @ matrix
    np.testing.assert_allclose(machine.coef_, coef, **close)
    np.testing.assert_allclose(machine.intercept_, by_hand.intercept_ - coef @ X.mean(axis=0), **close)
    assert np.abs(by_hand.coef_ - machine.coef_).max() > 0.1 * np.abs(machine.coef_).max()
    assert machine.temperature_ > 0.0


def test_the_prior_of_the_weights():
    """With next to no weight of the labels gibbs draws from the prior, also where no item says anything."""
    X, y = items(8, 12)
    machine = BayesianSVM(
        whiten=0.5, C=1e-6, precision=2.0, method="gibbs", n_sweeps=6000, burn_in=10, keep_draws=True,
        calibration_folds=0,
    ).fit(X, y % 2)  # fmt: skip
    wanted = root_of_inverse(X, 0.5) @ root_of_inverse(X, 0.5) / 2.0
    found = np.cov(machine.draws_[0, :, :-1].T)
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    np.testing.assert_allclose(found / scale, wanted / scale, atol=0.07)


def test_it_maximises_the_posterior_of_its_prior():
    """No step from the weights found makes 1/2 w^T (S + s m I) w + 2C hinge smaller."""
    X, y = items(40, 5)
    y = y % 2
    machine = BayesianSVM(whiten=0.3, C=0.1, method="em", tol=1e-8, calibration_folds=0).fit(X, y)
    precision = np.linalg.inv(root_of_inverse(X, 0.3) @ root_of_inverse(X, 0.3))

    def objective(weights, bias):
        f = (X - X.mean(axis=0)) @ weights + bias
        loss = np.maximum(0.0, 1.0 - (2 * y - 1) * f).sum()
        return 0.5 * weights @ precision @ weights + 0.5 * 0.01 * bias**2 + 0.2 * loss

    weights = machine.coef_[0]
    bias = machine.intercept_[0] + weights @ X.mean(axis=0)
    best, random = objective(weights, bias), np.random.default_rng(1)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(50):
            step = size * random.normal(size=6)
            assert objective(weights + step[:5], bias + step[5]) >= best * (1.0 - 1e-7)


def test_the_formula_for_few_items_is_the_other_one():
    """A d x d matrix for N >= d, N x N ones below: the same weights, whether rows are repeated or not."""
    X, _ = items(9, 12)
    few, many = prepare(X, False, 0.2), prepare(np.vstack([X, X]), False, 0.2)
    np.testing.assert_allclose(many.values, np.vstack([few.values, few.values]), atol=1e-12)
    weights = np.random.default_rng(0).normal(size=13)
    np.testing.assert_allclose(few.restore(weights), many.restore(weights), atol=1e-11)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30])
@pytest.mark.parametrize("size", SIZES)
def test_the_unit_of_the_features_does_not_matter(size, scale, standardize):
    X, y = items(*SIZES[size])
    if standardize and scale == 1e-200:
        pytest.skip("standard deviations of such numbers are 0")
    options = {"whiten": 1.0, "standardize": standardize, "C": 0.1, "method": "em", "calibration_folds": 0}
    plain, scaled = BayesianSVM(**options).fit(X, y), BayesianSVM(**options).fit(scale * X, y)
    np.testing.assert_allclose(scaled.decision_function(scale * X), plain.decision_function(X), atol=1e-6)


def test_standardising_comes_first():
    X, y = items(40, 6)
    X = X * np.geomspace(1e-3, 1e3, 6) + 5.0
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    options = {"whiten": 0.7, "method": "em", "calibration_folds": 0}
    both = BayesianSVM(standardize=True, **options).fit(X, y)
    np.testing.assert_allclose(
        both.decision_function(X), BayesianSVM(**options).fit(Z, y).decision_function(Z), atol=1e-6
    )


@pytest.mark.parametrize("n_items", [30, 5])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_constant_features_change_nothing(method, standardize, n_items):
    X, y = items(n_items, 4)
    wide = np.hstack([X, np.full((n_items, 2), 0.1), np.zeros((n_items, 1))])
    strength = 0.7 * 7 / 4  # the mean variance of seven features is 4/7 of that of four
    options = {"calibration_folds": 0, "standardize": standardize, **METHODS[method]}
    machine = BayesianSVM(whiten=strength, **options).fit(wide, y)
    assert np.isfinite(machine.coef_).all()
    if method == "gibbs":
        return
    without = BayesianSVM(whiten=0.7, **options).fit(X, y)
    np.testing.assert_allclose(machine.coef_[:, :4], without.coef_, rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(machine.coef_[:, 4:], 0.0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_two_items_and_features_that_are_all_constant(method):
    options = {"whiten": 1.0, "calibration_folds": 0, **METHODS[method]}
    for X in ([[0.0], [1.0]], [[0.0, 2.0, 5.0], [1.0, 2.0, -5.0]]):
        machine = BayesianSVM(**(options | {"n_sweeps": 300})).fit(X, ["a", "b"])
        assert machine.predict(X).tolist() == ["a", "b"]
    assert np.isfinite(BayesianSVM(**options).fit(np.full((6, 3), 0.1), np.arange(6) % 2).coef_).all()


def test_many_equal_directions_no_longer_outvote_one():
    """A class shows in one feature; fifty copies of another one vary as much, but say nothing."""
    random = np.random.default_rng(0)
    y = np.arange(40) % 2
    copies = random.normal(size=(400, 1)) + 0.05 * random.normal(size=(400, 50))
    X = np.hstack([np.tile(y, 10)[:, None] + 0.2 * random.normal(size=(400, 1)), copies])
    options = {"C": 0.002, "calibration_folds": 0}
    plain, white = (BayesianSVM(whiten=s, **options).fit(X[:40], y) for s in (None, 0.1))
    wanted = np.tile(y, 9)
    assert white.score(X[40:], wanted) > plain.score(X[40:], wanted) + 0.05


def test_it_is_kept_and_copied():
    X, y = items(20, 30)
    machine = BayesianSVM(whiten=2.0, calibration_folds=2).fit(X, y)
    again = pickle.loads(pickle.dumps(machine))
    assert again.whiten == 2.0 and "whiten=2.0" in repr(again)
    np.testing.assert_array_equal(again.predict_proba(X), machine.predict_proba(X))
    sklearn = pytest.importorskip("sklearn.base")
    assert sklearn.clone(machine).whiten == 2.0


def test_results_do_not_depend_on_the_number_of_threads():
    X, y = items(30, 50)
    one, three = (BayesianSVM(whiten=1.0, threads=threads).fit(X, y) for threads in (1, 3))
    np.testing.assert_array_equal(one.coef_, three.coef_)
    assert one.temperature_ == three.temperature_


@pytest.mark.parametrize("wrong", [0, -1.0, 1e-4, 1e7, float("nan"), float("inf"), "yes", True, [1.0]])
def test_strengths_that_are_refused(wrong):
    X, y = items(20, 3)
    with pytest.raises(InputError) as caught:
        BayesianSVM(whiten=wrong).fit(X, y)
    assert str(caught.value) == f"whiten must be None or a number of 0.001 to 1e+06, not {wrong!r}"


def test_scikit_learn_accepts_it():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    checks.check_estimator(BayesianSVM(whiten=1.0, calibration_folds=2, threads=1), on_skip=None)
