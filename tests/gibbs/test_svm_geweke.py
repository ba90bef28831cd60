"""Geweke's joint distribution test of the Bayesian SVM; the joint is that of `tests.gibbs.svm_reference`.

Batches begin with an independent exact draw of (omega, beta, y); then a sweep of the sampler (lambda, beta,
omega given y) alternates with a draw of y given beta. If the sweep leaves the pseudo-posterior invariant, all
averages along the batches agree with those over independent draws. Averages are over ranks, as in
`tests.gibbs.geweke`.
"""

import numpy as np
import pytest

from kruskal.gibbs import precision as precision_module
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.svm import features_of
from kruskal.models import svm as svm_module
from kruskal.models.svm import SVM, SVMState
from tests.gibbs.svm_reference import Machine, draw_joint, draw_signs

LIMIT, BATCH = 4.0, 20
VALUES = np.random.default_rng(3).normal(size=(4, 2))
SETTINGS = {
    "primal": Machine(VALUES, 0.6, 1.0, 0.5, (4.0, 3.0)),
    "primal-fixed": Machine(VALUES, 1.2, 0.7, 0.5, None),
    "dual": Machine(VALUES.T, 0.6, 1.0, 0.5, (4.0, 3.0)),
    "dual-fixed": Machine(VALUES.T, 1.2, 0.7, 0.5, None),
}


def statistics(omega, beta, signs, machine):
    """(draws, statistics): moments of everything, and what ties the parts together."""
    f = beta @ np.hstack([machine.values, np.ones((len(machine.values), 1))]).T
    squares = (beta[:, :-1] ** 2).sum(axis=1)
    return np.column_stack(
        [
            omega,
            beta,
            squares,
            beta[:, -1] ** 2,
            omega * squares,
            signs[:, :2],
            signs * f,
            (signs * f).sum(axis=1),
        ]
    )


def z_scores(machine: Machine, n_batches: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    exact = statistics(*draw_joint(machine, 60_000, random), machine)
    keep = exact.std(axis=0) > 0.0  # a fixed omega has nothing to compare
    exact = np.sort(exact[:, keep], axis=0)
    prior = None if machine.gamma is None else GammaPrior(*machine.gamma)
    model = SVM(
        cost=machine.cost,
        precision=machine.precision,
        bias_precision=machine.bias_precision,
        precision_prior=prior,
    )
    features = features_of(machine.values)
    phi = np.hstack([machine.values, np.ones((len(machine.values), 1))])
    starts = draw_joint(machine, n_batches, random)
    number, means = 0, []
    for omega, beta, signs in zip(*starts):
        state, rows = SVMState(beta, float(omega)), []
        for _ in range(BATCH):
            number += 1
            state = model.sweep(state, features, signs, seed, 0, number)
            signs = draw_signs(phi @ state.weights, machine.cost, random)
            rows.append((state.precision, state.weights, signs))
        values = statistics(*(np.array(part) for part in zip(*rows)), machine)[:, keep]
        ranks = np.array([np.searchsorted(exact[:, i], values[:, i]) for i in range(values.shape[1])]).T
        ranks = ranks / len(exact) - 0.5
        means.append(np.concatenate([ranks.mean(axis=0), (np.abs(ranks) - 0.25).mean(axis=0)]))
    batches = np.array(means)
    # Signs take two values: their ranks pile up at the lower end, in both ways of drawing alike.
    reference = np.array([np.searchsorted(column, column) for column in exact.T]) / len(exact) - 0.5
    expected = np.concatenate([reference.mean(axis=1), (np.abs(reference) - 0.25).mean(axis=1)])
    spread = batches.std(axis=0, ddof=1) / np.sqrt(n_batches)
    moving = spread > 1e-6
    return ((batches.mean(axis=0) - expected) / np.maximum(spread, 1e-12))[moving]


@pytest.mark.parametrize("name", SETTINGS)
def test_sweeps_leave_the_joint_distribution_invariant(name):
    scores = z_scores(SETTINGS[name], 400, seed=list(SETTINGS).index(name) + 1)
    assert np.abs(scores).max() < LIMIT, np.round(scores, 1)


def wrong_scales(monkeypatch):
    """C is missing in the mean of the inverse scales."""
    right = svm_module.draw_inverse_scales
    monkeypatch.setattr(svm_module, "draw_inverse_scales", lambda gaps, cost, *rest: right(gaps, 1.0, *rest))


def wrong_noise(monkeypatch):
    """The weights are drawn with half the variance."""
    right = svm_module.draw_weights

    def wrong(features, signs, scales, cost, prior, noise):
        return right(features, signs, scales, cost, prior, noise * np.sqrt(0.5))

    monkeypatch.setattr(svm_module, "draw_weights", wrong)


def wrong_half(monkeypatch):
    """The half in the rate of omega is missing."""
    monkeypatch.setattr(
        precision_module,
        "precision_conditional",
        lambda count, squares, prior: (prior.shape + 0.5 * count, prior.rate + squares),
    )


def wrong_count(monkeypatch):
    """omega counts the bias as one of its weights."""
    right = svm_module.draw_precision
    monkeypatch.setattr(
        svm_module, "draw_precision", lambda count, squares, *rest: right(count + 1, squares, *rest)
    )


@pytest.mark.parametrize(
    "mutation, name",
    [
        (wrong_scales, "primal"),
        (wrong_noise, "primal"),
        (wrong_noise, "dual"),
        (wrong_half, "dual"),
        (wrong_count, "primal"),
    ],
)
def test_a_wrong_factor_is_caught(mutation, name, monkeypatch):
    mutation(monkeypatch)
    scores = z_scores(SETTINGS[name], 150, seed=7)
    assert np.abs(scores).max() > LIMIT, np.round(scores, 1)
