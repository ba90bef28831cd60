"""Classes from a fitted deep model: its top weights, decisions on them, and their scale."""

from abc import abstractmethod
from typing import Any

import numpy as np

from kruskal.engines.deep_features import layer_weights, top_weights
from kruskal.engines.tasks import blas_on_one_thread
from kruskal.errors import InputError, check_seed, whole_number
from kruskal.estimators.classifier import Classifier
from kruskal.estimators.deep_fit import Fitted
from kruskal.estimators.deep_seen import Seen, seen_by
from kruskal.estimators.deep_settings import Images, labels_and_gaps, support_vector_machine
from kruskal.estimators.scikit import numbers
from kruskal.estimators.svm import BayesianSVM
from kruskal.models.temperature import fit_scale, probabilities

_SCALE_IMAGES = 10_000


class Decisions(Classifier):
    """The side of `kruskal.DGDN` that tells classes."""

    svm: str
    svm_options: dict[str, Any] | None
    chains: int
    decide_on: Any
    places: int
    shift: int
    copies: str
    start: Any
    seed: int
    threads: int | None
    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    temperature_: float
    svm_: BayesianSVM
    _fitted: Fitted
    _seen: Seen | None = None  # what the parameters were when it was fitted; nor is this

    @abstractmethod
    def _check(self, X: Any) -> Images:
        """Images of the shape that was learned from."""

    def transform(self, X: Any) -> np.ndarray:
        """Top weights (N, d), places by atoms; the mean over the chains where cells are drawn.

        With ``decide_on`` the weights that decisions see: for every layer the largest at each place, then
        the mean ones.
        """
        return self._features(self._check(X).values)

    def decision_function(self, X: Any) -> np.ndarray:
        """Decisions (N, Y), or (N,) for two classes."""
        f = self._decide(self._features(self._check(X).values))
        return f[:, 0] if f.shape[1] == 1 else f

    def predict(self, X: Any) -> np.ndarray:
        """The class (N,) with the largest decision."""
        f = self._decide(self._features(self._check(X).values))
        index = (f[:, 0] > 0).astype(int) if f.shape[1] == 1 else f.argmax(axis=1)
        return self.classes_[index]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of images whose class is predicted rightly, or of their weights.

        Images without a label, as in `fit`, do not count.
        """
        labels, known = labels_and_gaps(y, len(self._check(X).values))
        if not known.any():
            raise InputError("y has no labels (-1 and None are none), expected some")
        if known.all():
            return super().score(X, y, sample_weight)
        weight = np.ones(len(known)) if sample_weight is None else numbers(sample_weight)
        if weight.shape != known.shape:
            raise InputError(f"sample_weight has shape {weight.shape}, expected {known.shape} like y")
        return super().score(np.asarray(X)[known], labels[known].tolist(), weight[known])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (N, Y), by one scale for all decisions.

        The scale was set on the validation images, or, without them, on the training images, whose decisions
        are surer than others'; a refitted support vector machine brings its own.
        """
        features = self._features(self._check(X).values)
        if hasattr(self, "svm_"):
            return self.svm_.predict_proba(features)
        return probabilities(self._decide(features), self.temperature_)

    def _decide_by(
        self, images: Images, labels: np.ndarray, other: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """Fit the support vector machine, or the scale of the training's own decisions."""
        known = np.flatnonzero(labels >= 0)
        if self.svm != "trained":
            machine = support_vector_machine(self.get_params(deep=False))
            features = self._copies(images.values[known])
            pictures = np.repeat(np.arange(len(known)), features.shape[1])
            self.svm_ = machine.fit(
                features.reshape(len(pictures), -1), self.classes_[labels[known]][pictures], groups=pictures
            )
            return
        if other is None:
            some = known[np.linspace(0, len(known) - 1, min(_SCALE_IMAGES, len(known))).astype(int)]
            other = images.values[some], labels[some]
        self.temperature_ = fit_scale(self._decide(self._features(other[0])), other[1])

    def _features(self, values: np.ndarray) -> np.ndarray:
        seen = self._seen or seen_by(self.decide_on, self.places, self.shift)
        return self._layer_weights(values, seen, False) if seen.layers else self._top_weights(values)

    def _copies(self, values: np.ndarray) -> np.ndarray:
        """What the support vector machine is trained on, (N, copies, d)."""
        if self.copies == "apart":
            return self._layer_weights(values, seen_by(self.decide_on, self.places, self.shift), True)
        return self._features(values)[:, None]

    def _layer_weights(self, values: np.ndarray, seen: Seen, apart: bool) -> np.ndarray:
        fitted = self._fitted
        return layer_weights(
            fitted.model, fitted.dense, values, seen.layers, seen.places, seen.shift, apart,
            whole_number("chains", self.chains, 1), check_seed(self.seed), self.threads,
        )  # fmt: skip

    def _top_weights(self, values: np.ndarray) -> np.ndarray:
        fitted = self._fitted
        return top_weights(
            fitted.model, fitted.expectation, fitted.dense, values, whole_number("chains", self.chains, 1),
            check_seed(self.seed), self.threads,
        )  # fmt: skip

    def _decide(self, features: np.ndarray) -> np.ndarray:
        """(N, Y), or (N, 1) for two classes."""
        if not len(self.classes_):
            raise InputError("y had no labels: there are no classes to decide between")
        if hasattr(self, "svm_"):
            f = self.svm_.decision_function(features)
            return f[:, None] if f.ndim == 1 else f
        with blas_on_one_thread():  # or they would depend on the number of its threads
            f = features @ self.coef_.T + self.intercept_
        return 0.5 * (f[:, 1:] - f[:, :1]) if f.shape[1] == 2 else f
