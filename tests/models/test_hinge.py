"""The optimum of the support vector machine: that of liblinear, the same in all forms, and certified."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kruskal.gibbs import hinge
from kruskal.gibbs.hinge_newton import line_minimum, newton_direction
from kruskal.gibbs.svm import Features, Prior, decisions, features_of
from kruskal.models.hinge import Search
from kruskal.models.svm import SVM

PRIOR = Prior(1.0, 0.01)


def problem(n_items=60, n_features=5, seed=0):
    random = np.random.default_rng(seed)
    values = random.normal(size=(n_items, n_features))
    signs = np.where(values[:, 0] + 0.8 * random.normal(size=n_items) > 0.2, 1.0, -1.0)
    return values, signs


def objective(values, signs, weights, cost, prior=PRIOR):
    total = 0.5 * prior.weights * (weights[:-1] ** 2).sum() + 0.5 * prior.bias * weights[-1] ** 2
    return total + 2.0 * cost * np.maximum(0.0, 1.0 - signs * (values @ weights[:-1] + weights[-1])).sum()


@pytest.mark.parametrize("cost", [0.05, 1.0])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_the_optimum_is_that_of_liblinear(name, cost):
    """The bias is a feature of value 10 there: its weight b / 10 has precision 1, so b has precision 0.01."""
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.svm import LinearSVC

    values, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    values = (values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9)
    signs = np.where(labels == 1, 1.0, -1.0)
    peer = LinearSVC(loss="hinge", dual=True, C=2.0 * cost, intercept_scaling=10.0, tol=1e-9, max_iter=10**6)
    peer.fit(values, signs)
    best = objective(values, signs, np.append(peer.coef_[0], peer.intercept_), cost)
    found = SVM(cost=cost).maximise(features_of(values), signs, 1e-5)
    assert found.objective == pytest.approx(objective(values, signs, found.weights, cost), rel=1e-10)
    assert found.gap <= 1e-5
    assert abs(found.objective - best) <= 1e-4 * best


@pytest.mark.parametrize("cost", [0.01, 30.0])
def test_badly_scaled_features_and_hard_costs(cost):
    """liblinear gives up here; the duality gap alone says that the optimum is found."""
    datasets = pytest.importorskip("sklearn.datasets")
    values, labels = datasets.load_wine(return_X_y=True)
    found = SVM(cost=cost).maximise(features_of(values), np.where(labels == 1, 1.0, -1.0), 1e-5)
    assert found.gap <= 1e-5


@pytest.mark.parametrize("cost", [0.05, 2.0])
def test_both_forms_have_one_optimum(cost):
    values, signs = problem(30, 80)
    signs[::7] *= -1.0
    first = SVM(cost=cost).maximise(features_of(values, dual=True), signs, 1e-8)
    second = SVM(cost=cost).maximise(features_of(values, dual=False), signs, 1e-8)
    assert first.objective == pytest.approx(second.objective, rel=1e-7)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-3 * np.abs(second.weights).max())


@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
def test_separable_classes_with_more_features_than_items(cost):
    """All items lie on the margin and the dual variables are far below their bound."""
    random = np.random.default_rng(0)
    values, signs = random.normal(size=(60, 200)), 2.0 * random.integers(2, size=60) - 1.0
    found = SVM(cost=cost).maximise(features_of(values), signs, 1e-5)
    assert found.gap <= 1e-5


def test_equal_items_with_more_features_than_items():
    values, signs = problem(10, 40)
    found = SVM(cost=3.0).maximise(features_of(np.vstack([values] * 2)), np.append(signs, signs), 1e-6)
    once = SVM(cost=6.0).maximise(features_of(values), signs, 1e-6)
    assert found.objective == pytest.approx(once.objective, rel=1e-5)


def test_stochastic_ascent_finds_the_same():
    values, signs = problem()
    exact = SVM(cost=0.1).maximise(features_of(values), signs, 1e-8)
    found = SVM(cost=0.1).maximise_stochastic(Features(values), signs, 1e-5, 500, 3, 0)
    assert found.gap <= 1e-5
    assert found.objective == pytest.approx(exact.objective, rel=2e-5)
    bounded = SVM(cost=0.1).maximise_stochastic(Features(values), signs, 1e-12, 2, 3, 0)
    assert bounded.gap > 1e-12


def test_ascent_kernel_agrees_with_its_twin():
    values, signs = problem(12, 3)
    cost, prior = 0.7, Prior(1.5, 0.2)
    amounts = np.random.default_rng(1).uniform(0.0, 2.0 * cost, 12)
    ours, order = amounts.copy(), np.array([3, 0, 7, 3, 11])
    weights = hinge.dual_weights(values, signs, amounts, prior)
    hinge.ascend(values, signs, ours, weights, hinge.lengths(values, prior), order, cost, *prior)
    for n in order:
        phi = np.append(values[n], 1.0)
        variances = 1.0 / np.array([1.5, 1.5, 1.5, 0.2])
        beta = sum(a * y * variances * np.append(x, 1.0) for a, y, x in zip(amounts, signs, values))
        step = (1.0 - signs[n] * (phi @ beta)) / (phi**2 @ variances)
        amounts[n] = min(max(amounts[n] + step, 0.0), 2.0 * cost)
    np.testing.assert_allclose(ours, amounts, atol=1e-12)
    np.testing.assert_allclose(weights, hinge.dual_weights(values, signs, amounts, prior), atol=1e-12)


def test_em_never_raises_its_floored_objective():
    """EM with a floor minimises (6.19); its fixed point has the dual variables (6.13)."""
    values, signs = problem()
    cost, floor, features = 1.0, 0.5, features_of(values)

    def smooth(weights):
        gaps = 1.0 - signs * decisions(values, weights)
        bend = np.where(np.abs(gaps) > floor, np.abs(gaps), (gaps**2 / floor + floor) / 2.0)
        prior = 0.5 * (weights[:-1] ** 2).sum() + 0.005 * weights[-1] ** 2
        return prior + cost * (gaps + bend).sum()

    from kruskal.gibbs.svm import draw_weights

    weights, heights = np.zeros(6), []
    for _ in range(300):
        scales = hinge.expected_inverse_scales(1.0 - signs * decisions(values, weights), cost, floor)
        weights = draw_weights(features, signs, scales, cost, PRIOR, None)
        heights.append(smooth(weights))
    assert np.all(np.diff(heights) <= 1e-9)
    best = minimize(smooth, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    assert heights[-1] == pytest.approx(best.fun, rel=1e-7)
    amounts = hinge.dual_of_gaps(1.0 - signs * decisions(values, weights), cost, floor)
    np.testing.assert_allclose(hinge.dual_weights(values, signs, amounts, PRIOR), weights, atol=1e-4)


@pytest.mark.parametrize("n_near", [0, 3, 20])
@pytest.mark.parametrize("dual", [False, True])
def test_newton_direction(n_near, dual):
    values, _ = problem(25, 6)
    near, prior = np.arange(n_near), Prior(0.8, 0.1)
    gradient = np.random.default_rng(2).normal(size=7)
    phi = np.hstack([values, np.ones((25, 1))])[near]
    hessian = np.diag(prior.diagonal(6)) + 12.0 * phi.T @ phi
    found = newton_direction(features_of(values, dual), gradient, near, 12.0, prior)
    np.testing.assert_allclose(found, -np.linalg.solve(hessian, gradient), rtol=1e-8)


def test_line_minimum():
    values, signs = problem()
    weights = np.zeros(6)
    gaps = 1.0 - signs * decisions(values, weights)
    gradient = -hinge.dual_weights(values, signs, hinge.dual_of_gaps(gaps, 1.0, 0.3), Prior(1.0, 1.0))
    direction = -gradient
    change = -signs * decisions(values, direction)
    step = line_minimum(weights, direction, gaps, change, 1.0, 0.3, PRIOR)

    def height(t):
        g = gaps + t * change
        bend = np.where(np.abs(g) > 0.3, np.abs(g), (g**2 / 0.3 + 0.3) / 2.0)
        moved = weights + t * direction
        return 0.5 * (moved[:-1] ** 2).sum() + 0.005 * moved[-1] ** 2 + (g + bend).sum()

    assert 0.0 < step < 1.0
    assert height(step) <= min(height(0.9 * step), height(1.1 * step))


def test_bounds_enclose_the_optimum():
    values, signs = problem()
    best = SVM(cost=1.0).maximise(features_of(values), signs, 1e-9).objective
    search = Search(features_of(values), signs, 1.0, PRIOR, 1e-9)
    search.em(4)
    assert search.lower <= best * (1.0 + 1e-9) and best <= search.upper * (1.0 + 1e-9)
    search.ascend(5, 0, 0)
    assert search.lower <= best * (1.0 + 1e-9) and best <= search.upper * (1.0 + 1e-9)


def test_a_search_can_be_stopped():
    values, signs = problem()
    found = SVM(cost=1.0).maximise(features_of(values), signs, 1e-12, stop=lambda: True)
    assert found.gap == 1.0 and not found.weights.any()
