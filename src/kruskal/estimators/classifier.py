"""What classifiers share: scores, tags, and which features and labels can be used."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kruskal.data import refuse_huge, refuse_infinite
from kruskal.data.masks import refuse_masked
from kruskal.errors import InputError, shown
from kruskal.estimators.scikit import ScikitEstimator, numbers


class Classifier(ScikitEstimator, ABC):
    """An estimator that predicts classes; fitted when it knows its features."""

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks, when it is there to ask."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

    classes_: np.ndarray

    @abstractmethod
    def predict(self, X: Any) -> np.ndarray:
        """The class of every item."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of items whose class is predicted rightly, or of their weights."""
        predicted, labels = self.predict(X), label_array(y)
        if labels.shape != predicted.shape:
            raise InputError(
                f"y has shape {labels.shape}, expected one label for each item, {predicted.shape}"
            )
        words, wanted = labels.dtype.kind in "US", self.classes_.dtype.kind in "US"
        if labels.dtype.kind != "O" != self.classes_.dtype.kind and words != wanted:
            kinds = ("strings", "numbers") if words else ("numbers", "strings")
            raise InputError(f"y holds {kinds[0]}, but the classes are {kinds[1]}: expected labels as in fit")
        if sample_weight is None:
            return float(np.mean(predicted == labels))
        weight = numbers(sample_weight)
        if weight.shape != labels.shape or not (weight >= 0.0).all() or not 0.0 < weight.sum() < np.inf:
            raise InputError(
                f"sample_weight must be {len(labels)} numbers of at least 0, not all 0, "
                f"not {shown(sample_weight)}"
            )
        return float(np.average(predicted == labels, weights=weight))


def check_features(estimator: Any, X: Any, *, fitting: bool) -> np.ndarray:
    """Features (N, d) as contiguous float32 (if given so) or float64, all finite.

    When fitting, ``n_features_in_`` (and the names of a data frame's columns) are noted; else they must
    agree.
    """
    if not fitting:
        estimator.refuse_unfitted()
    array = _real_matrix(X)
    refuse_infinite(array, "X")
    n_items, n_features = array.shape
    if n_items == 0 or n_features == 0:
        what = "sample" if n_items == 0 else "feature"
        raise InputError(f"X has 0 {what}(s) (shape={array.shape}) while a minimum of 1 is required.")
    refuse_huge(array, "X")
    if fitting:
        estimator.n_features_in_ = n_features
    elif n_features != estimator.n_features_in_:
        raise InputError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    _check_names(estimator, X, fitting)
    return np.ascontiguousarray(array)


def check_labels(y: Any, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes (Y,), sorted, and the index of the class of every item (N,)."""
    if y is None:
        raise InputError("fit requires y to be passed, but the target y is None")
    labels = label_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = _column(y)
    if labels.ndim != 1:
        raise InputError(f"y has shape {labels.shape}, expected one label for each item, shape ({n_items},)")
    if len(labels) != n_items:
        raise InputError(f"y has {len(labels)} labels and X has {n_items} items, expected as many")
    if labels.dtype.kind not in "buifOUST":
        raise InputError(f"y has dtype {labels.dtype}, expected classes (whole numbers or strings)")
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise InputError("y has labels that are NaN or infinity, expected classes")
        if (labels != np.round(labels)).any():
            raise InputError(
                "Unknown label type: y has fractional numbers (continuous), expected classes "
                "(whole numbers or strings)"
            )
    try:
        classes, index = np.unique(labels, return_inverse=True)
    except TypeError:
        raise InputError(
            "y mixes labels that cannot be ordered, expected all numbers or all strings"
        ) from None
    if len(classes) < 2:
        only = classes.tolist()[0]
        raise InputError(f"y has one class only ({only!r}), expected at least two classes")
    return classes, index


def label_array(y: Any, name: str = "y") -> np.ndarray:
    """Labels as an array, of whatever dtype and shape; numbers among strings stay numbers."""
    refuse_masked(y, name)
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise InputError(f"{name} has lists of different lengths in the place of labels") from error
    if labels.dtype.kind in "US" and isinstance(y, list | tuple):
        return labels if all(isinstance(one, str | bytes) for one in y) else np.array(y, dtype=object)
    return labels


def _real_matrix(X: Any) -> np.ndarray:
    if hasattr(X, "tocsr"):
        raise InputError("X is sparse, expected a dense array: use X.toarray()")
    refuse_masked(X)
    array = numbers(X)
    if array.dtype != np.float32:
        array = array.astype(np.float64)
    if array.ndim != 2:
        raise InputError(
            f"X has shape {array.shape}, expected items by features (N, d). Reshape your data, "
            "one item with X.reshape(1, -1)"
        )
    return array


def _check_names(estimator: Any, X: Any, fitting: bool) -> None:
    """Remember or compare column names, as scikit-learn does, where it is installed."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:
        return
    try:
        validate_data(estimator, X, reset=fitting, skip_check_array=True)
    except ValueError as error:  # names that are not those of fit
        raise InputError(" ".join(str(error).split())) from error


def _column(y: Any) -> np.ndarray:
    """A column of labels as a vector, with scikit-learn's warning where it is installed."""
    try:
        from sklearn.utils.validation import column_or_1d
    except ImportError:
        return np.asarray(y)[:, 0]
    return column_or_1d(y, warn=True)
