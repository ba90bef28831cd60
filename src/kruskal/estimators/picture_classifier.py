"""Pictures to classes: local contrast, the features of a deep model, and a Bayesian SVM on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from kruskal.data import normalize_contrast
from kruskal.data.labelled import FLOATS
from kruskal.errors import InputError
from kruskal.estimators.deep import DeepCFA
from kruskal.estimators.deep_file import deep_arrays, model_from_arrays, read_file, write_arrays
from kruskal.estimators.deep_layers import root_mean_square
from kruskal.estimators.scikit import unchanged_on_failure
from kruskal.estimators.svm import BayesianSVM
from kruskal.gibbs.svm import decisions

FORMAT = "kruskal picture classifier"
VERSION = 1
_ANOTHER_SCALE = 32.0
"""Times the root mean square: other pictures hardly differ so much, bytes that were not divided by 255 do."""
_DOUBTFUL_SCALE = 8.0
"""The same, but it may be that these pictures are so bright or dark."""


class PictureClassifier:
    """A deep model without labels, and a linear classifier on its features.

    Parameters
    ----------
    deep : the deep model; `fit` fits it
    svm : the classifier
    layers : whose features are used (None: the last)
    contrast : whether pictures are normalised by their local contrast first

    Attributes
    ----------
    classes_ : (Y,) names of the classes
    coef_ : (Y or 1, d);  intercept_ : (Y or 1,)
    types_ : of the numbers of the pictures before they became float32, such as uint8; empty if not known
    lowest_ : the smallest number of the pictures; -inf if not known
    """

    def __init__(
        self, deep: DeepCFA, svm: BayesianSVM, *, layers: list[int] | None = None, contrast: bool = False
    ) -> None:
        self.deep = deep
        self.svm = svm
        self.layers = layers
        self.contrast = contrast

    def fit(self, X: np.ndarray, labels: Any, types: Sequence[str] = ()) -> Self:
        """Learn from pictures (N, rows, columns, channels) and the names of their classes (N,).

        ``types`` are those of `kruskal.data.labelled.Given`, for `doubts` about other pictures.
        """
        pictures = self._prepared(X)
        self.svm.check_parameters()  # what is wrong with them is told before the layers are learned
        with unchanged_on_failure(self, self.deep, self.svm):
            features = self.deep.fit(pictures).transform(pictures, self.layers)
            fitted = self.svm.fit(features, np.asarray(labels))
            self.classes_ = fitted.classes_.astype(str)
            self.coef_, self.intercept_ = fitted.coef_, fitted.intercept_
            self.types_, self.lowest_ = tuple(types), float(np.min(X))
        return self

    def doubts(self, X: np.ndarray, types: Sequence[str]) -> list[str]:
        """What makes it doubtful that pictures are on the scale of those that were learned from.

        Where it is beyond doubt that they are not, an InputError. Whole numbers of a type that was learned
        from are on the same scale, and local contrast does not depend on it.
        """
        known = set(self.types_) - {FLOATS}
        if self.contrast or set(types) <= known or not np.any(X):
            return []
        size, learned = root_mean_square(X, "X is zero everywhere"), self.deep.scales_[0]
        times = max(size / learned, learned / size)
        both = f"a root mean square of {size:.3g}, but what was learned from had {learned:.3g}"
        if times > _ANOTHER_SCALE:
            whole = FLOATS not in types
            read = " and ".join(types) + (" numbers, divided by the largest of their type," if whole else "")
            signed = any(name.startswith("int") for name in known)
            floats = f"floats from {-1 if signed else 0} to 1" if known else "floats on that scale"
            raise InputError(f"X has {read} with {both}: expected {' or '.join([*sorted(known), floats])}")
        found = [f"the pictures have {both}"] if times > _DOUBTFUL_SCALE else []
        smallest = float(np.min(X))
        if smallest < 0.0 <= self.lowest_:
            found.append(
                f"the pictures have numbers below 0 ({smallest:.3g}), what was learned from had none"
            )
        return found

    def decide(self, X: np.ndarray) -> np.ndarray:
        """The decision of every class (N, Y), the larger the surer."""
        features = self.deep.transform(self._prepared(X), self.layers)
        found = decisions(features, np.vstack([self.coef_.T, self.intercept_]))
        return np.hstack([-found, found]) if found.shape[1] == 1 else found

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The name of the class of every picture."""
        return self.classes_[self.decide(X).argmax(axis=1)]

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(rows, columns, channels) of the pictures."""
        return self.deep.layers_[0].model_.image_shape

    def save(self, path: str | Path) -> None:
        """Write it to an npz file, without any pickle, whole or not at all."""
        arrays = {"format": FORMAT, "version": VERSION} | deep_arrays(self.deep)
        arrays |= {"classes": self.classes_, "coef": self.coef_, "intercept": self.intercept_}
        arrays |= {"types": np.array(self.types_, dtype=str), "lowest": self.lowest_}
        arrays |= {"contrast": self.contrast, "feature_layers": self.layers or [len(self.deep.layers_)]}
        write_arrays(path, arrays)

    @classmethod
    def load(cls, path: str | Path, threads: int | None = None) -> "PictureClassifier":
        """Read a file of `save`."""

        def build(arrays: dict[str, np.ndarray]) -> "PictureClassifier":
            deep = model_from_arrays(arrays, threads)
            layers = [int(number) for number in arrays["feature_layers"]]
            found = cls(deep, BayesianSVM(), layers=layers, contrast=bool(arrays["contrast"]))
            found.classes_ = arrays["classes"].astype(str)
            found.coef_, found.intercept_ = arrays["coef"], arrays["intercept"]
            # files from before do not say how their pictures were given
            found.types_ = tuple(str(name) for name in arrays.get("types", ()))
            found.lowest_ = float(arrays.get("lowest", -np.inf))
            rows = 1 if len(found.classes_) == 2 else len(found.classes_)
            width = sum(deep.n_features_[number - 1] for number in layers)
            if found.coef_.shape != (rows, width) or found.intercept_.shape != (rows,):
                raise ValueError(f"coef has shape {found.coef_.shape} instead of {(rows, width)}")
            return found

        classifier: PictureClassifier = read_file(path, FORMAT, VERSION, build)
        return classifier

    def _prepared(self, X: np.ndarray) -> np.ndarray:
        if np.ndim(X) != 4:
            raise InputError(f"X has shape {np.shape(X)}, expected (N, rows, columns, channels)")
        return normalize_contrast(X) if self.contrast else X
