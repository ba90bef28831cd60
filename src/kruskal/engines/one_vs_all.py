"""One support vector machine for each class against the others, the classes side by side on threads."""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from kruskal.engines.tasks import blas_on_one_thread, map_tasks
from kruskal.errors import InputError
from kruskal.gibbs.svm import Features, features_of
from kruskal.models.svm import SVM, SVMState

METHODS = ("auto", "em", "stochastic", "gibbs")
LARGE = 2e9
"""With more numbers than this in the passes of all classes over the data, ``auto`` is ``stochastic``."""
PASSES, CHEAP, MOST_PASSES = 50, 5e7, 10_000
"""Passes of ``stochastic``; more where they have fewer than ``CHEAP`` numbers to read, as many as take the
time that so many numbers would, but at most ``MOST_PASSES``: a pass over next to nothing takes time, too."""

START_TOLERANCE = 0.01
"""How close to the maximum a chain begins; from weights 0 it would take tens of sweeps with many items."""


class Plan(NamedTuple):
    """How the weights are found.

    Attributes
    ----------
    method : one of METHODS
    n_sweeps, burn_in, keep_draws : of a chain
    tolerance, max_passes, time_budget : of a search; without max_passes the size of the data decides
    """

    method: str = "auto"
    n_sweeps: int = 300
    burn_in: int = 100
    keep_draws: bool = False
    tolerance: float = 1e-4
    max_passes: int | None = None
    time_budget: float | None = None

    def chosen(self, n_items: int, n_features: int, n_problems: int) -> str:
        """The method that ``auto`` stands for."""
        if self.method != "auto":
            return self.method
        return "stochastic" if float(n_items) * n_features * n_problems > LARGE else "em"

    def passes(self, n_items: int, n_features: int, n_problems: int) -> int:
        """Passes of ``stochastic`` at most."""
        if self.max_passes is not None:
            return self.max_passes
        cheap = PASSES * CHEAP / (float(n_items) * n_features * n_problems)
        return int(min(max(PASSES, cheap), MOST_PASSES))


class ClassFit(NamedTuple):
    """What is known of the weights (d + 1,) of one class.

    Attributes
    ----------
    weights : the mean of the kept draws, or the optimum
    std : (d + 1,) of the kept draws;  draws : (draws, d + 1) if they were kept;  precision : mean of omega
    gap : of a search, its relative distance from the optimum at most
    """

    weights: np.ndarray
    precision: float
    std: np.ndarray | None = None
    draws: np.ndarray | None = None
    gap: float = 0.0


def n_problems(n_classes: int) -> int:
    """Two classes are one problem: the second against the first."""
    return 1 if n_classes == 2 else n_classes


def fit_one_vs_all(
    values: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    model: SVM,
    plan: Plan,
    seed: int,
    threads: int,
    fold: int = 0,
    restore: Callable[[np.ndarray], np.ndarray] = lambda weights: weights,
) -> list[ClassFit]:
    """Fit every class.

    Parameters
    ----------
    values : (N, d);  labels : (N,) class of each item, from 0
    fold : fits of the same classes with different numbers use different random numbers
    restore : maps weights to the units of the user, draw by draw
    """
    problems = n_problems(n_classes)
    method = plan.chosen(values.shape[0], values.shape[1], problems)
    with blas_on_one_thread():  # or X X^T would depend on the number of its threads
        features = Features(values) if method == "stochastic" else features_of(values)
    fit = partial(
        _fit_class, features=features, labels=labels, problems=problems, model=model, plan=plan,
        method=method, seed=seed, share=min(threads, problems) / problems, fold=fold, restore=restore,
    )  # fmt: skip
    try:
        return map_tasks(fit, range(problems), threads)
    except np.linalg.LinAlgError as error:
        raise InputError(
            f"X with entries up to {np.abs(values).max():.3g} and C = {model.cost:g} is beyond the precision "
            "of the computer: scale the features (standardize=True), or lower C"
        ) from error


def _fit_class(
    number: int,
    features: Features,
    labels: np.ndarray,
    problems: int,
    model: SVM,
    plan: Plan,
    method: str,
    seed: int,
    share: float,
    fold: int,
    restore: Callable[[np.ndarray], np.ndarray],
) -> ClassFit:
    positive = number if problems > 1 else 1
    signs = np.where(labels == positive, 1.0, -1.0)
    address = fold * problems + number
    if method == "gibbs":
        return _chain(features, signs, model, plan, seed, address, restore)
    end = np.inf if plan.time_budget is None else time.monotonic() + plan.time_budget * share

    def stop() -> bool:
        return time.monotonic() > end

    if method == "em":
        optimum = model.maximise(features, signs, plan.tolerance, stop)
    else:
        passes = plan.passes(features.values.shape[0], features.values.shape[1], problems)
        optimum = model.maximise_stochastic(features, signs, plan.tolerance, passes, seed, address, stop)
    return ClassFit(restore(optimum.weights), model.precision, gap=optimum.gap)


def _chain(
    features: Features,
    signs: np.ndarray,
    model: SVM,
    plan: Plan,
    seed: int,
    address: int,
    restore: Callable[[np.ndarray], np.ndarray],
) -> ClassFit:
    """A Gibbs chain with running moments of the weights, begun near the maximum."""
    state = SVMState(model.maximise(features, signs, START_TOLERANCE).weights, model.precision)
    mean, scatter = np.zeros_like(state.weights), np.zeros_like(state.weights)
    precision, draws = 0.0, []
    kept = plan.n_sweeps - plan.burn_in
    for number in range(1, plan.n_sweeps + 1):
        state = model.sweep(state, features, signs, seed, address, number)
        if number <= plan.burn_in:
            continue
        weights = restore(state.weights)
        step = weights - mean
        mean += step / (number - plan.burn_in)
        scatter += step * (weights - mean)
        precision += state.precision / kept
        if plan.keep_draws:
            draws.append(weights)
    std = np.sqrt(scatter / max(kept - 1, 1))
    return ClassFit(mean, precision, std, np.array(draws) if plan.keep_draws else None)
