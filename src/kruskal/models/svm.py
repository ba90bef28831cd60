"""The Bayesian support vector machine of one class against the others: a sweep, and the maximum."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.precision import GammaPrior, draw_precision
from kruskal.gibbs.svm import Features, Prior, decisions, draw_inverse_scales, draw_weights
from kruskal.models.hinge import Optimum, Search
from kruskal.random import Stream, generator

EM_STEPS = 2
"""Steps of EM before Newton's method takes over."""


class SVMState(NamedTuple):
    """weights : (d + 1,) beta, the bias last;  precision : omega."""

    weights: np.ndarray
    precision: float


@dataclass(frozen=True, kw_only=True)
class SVM:
    """One class against the others; see `kruskal.gibbs.svm` for the model.

    Parameters
    ----------
    cost : C
    precision : omega, or its first value if it is learned;  bias_precision : omega_0
    precision_prior : (shape, rate) of omega ~ Gamma; None keeps omega fixed
    """

    cost: float
    precision: float = 1.0
    bias_precision: float = 0.01
    precision_prior: GammaPrior | None = None

    def sweep(
        self,
        state: SVMState,
        features: Features,
        signs: np.ndarray,
        seed: int,
        class_number: int,
        number: int,
    ) -> SVMState:
        """One exact Gibbs sweep: lambda, beta, omega; ``number`` counts from 1."""
        address = (class_number << 32) + number
        gaps = 1.0 - signs * decisions(features.values, state.weights)
        inverse_scales = draw_inverse_scales(gaps, self.cost, seed, class_number, number)
        prior = Prior(state.precision, self.bias_precision)
        noise = generator(seed, Stream.SVM_WEIGHTS, address).standard_normal(features.n_noise)
        weights = draw_weights(features, signs, inverse_scales, self.cost, prior, noise)
        precision = state.precision
        if self.precision_prior is not None:
            squares = float(weights[:-1] @ weights[:-1])
            random = generator(seed, Stream.SVM_PRECISION, address)
            precision = draw_precision(len(weights) - 1, squares, self.precision_prior, random)
        return SVMState(weights, precision)

    def maximise(
        self,
        features: Features,
        signs: np.ndarray,
        tolerance: float,
        stop: Callable[[], bool] = lambda: False,
    ) -> Optimum:
        """The weights of greatest posterior density at a fixed omega, by EM and Newton's method.

        Ends when the relative duality gap is at most ``tolerance``, or when ``stop()`` is true after a step.
        """
        small = features
        if features.factor is not None:  # fewer items than features: N coordinates say everything
            small = Features(features.factor, features.products)
        search = Search(small, signs, self.cost, self._prior, tolerance, stop)
        search.em(EM_STEPS)
        search.newton()
        return (search if small is features else search.expand(features)).result

    def maximise_stochastic(
        self,
        features: Features,
        signs: np.ndarray,
        tolerance: float,
        passes: int,
        seed: int,
        class_number: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> Optimum:
        """The same by coordinate ascent, one item at a time, with ``passes`` over all items at most."""
        search = Search(features, signs, self.cost, self._prior, tolerance, stop)
        search.ascend(passes, seed, class_number)
        return search.result

    @property
    def _prior(self) -> Prior:
        return Prior(self.precision, self.bias_precision)
