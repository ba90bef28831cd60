"""The conventions of scikit-learn, followed without it: parameters, tags, which X can be used."""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from kruskal.errors import InputError


class NoNumbersError(InputError, TypeError):
    """What was given holds things that are no numbers; scikit-learn expects a TypeError."""


class ScikitEstimator:
    """An estimator whose parameters are the arguments of its ``__init__``, which only assigns them.

    scikit-learn can clone it, put it into pipelines and search over its parameters.
    """

    @classmethod
    def _parameter_names(cls) -> list[str]:
        names = inspect.signature(cls).parameters
        return sorted(names)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; they are checked by `fit`."""
        for name, value in params.items():
            if name not in self._parameter_names():
                known = ", ".join(self._parameter_names())
                raise InputError(f"{name} is no parameter of {type(self).__name__}, which has {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The parameters that differ from their defaults."""
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _is_default(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "learned_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks, when it is there to ask: NaN is missing, more than two axes are fine."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(three_d_array=True, allow_nan=True),
        )

    def refuse_unfitted(self) -> None:
        """An error that scikit-learn knows too, unless `fit` was called."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted(f"this {type(self).__name__} is not fitted yet: call fit first")


class Transformer(ScikitEstimator, ABC):
    """An estimator that makes something else of items; not all know of missing entries."""

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> Self:
        """Learn from items."""

    @abstractmethod
    def transform(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """What items become."""

    def fit_transform(self, X: Any, y: Any = None, *mask: Any, **named: Any) -> Any:
        """`fit`, then `transform` of the same items; of models that know masks both with ``observed``."""
        return self.fit(X, y, *mask, **named).transform(X, *mask, **named)


@contextmanager
def unchanged_on_failure(*estimators: Any) -> Iterator[None]:
    """Leave estimators as they were if the block is refused or interrupted.

    Inside, attributes must be replaced and not changed in place.
    """
    before = [dict(vars(one)) for one in estimators]
    try:
        yield
    except BaseException:
        for one, attributes in zip(estimators, before):
            one.__dict__ = attributes
        raise


def _not_fitted(sentence: str) -> InputError:
    """An InputError that scikit-learn, where it is loaded, knows as its own."""
    scikit = sys.modules.get("sklearn.exceptions")
    if scikit is None:
        return InputError(sentence)
    # pickle finds no class that is made here, but this function
    how_to_copy = {"__reduce__": lambda error: (_not_fitted, error.args)}
    error: InputError = type("NotFittedError", (InputError, scikit.NotFittedError), how_to_copy)(sentence)
    return error


def item_stack(x: Any, name: str = "X") -> Any:
    """``x`` as something that can be sliced along its first axis: items, each of shape (m_1, .., m_T).

    Arrays and what slices like one (a memory map, a zarr array) stay as they are; lists become arrays.
    """
    if type(x).__module__.startswith("scipy.sparse"):
        raise InputError(f"{name} is a sparse matrix, expected a dense array: a zero there is a value")
    if not (hasattr(x, "shape") and hasattr(x, "dtype") and hasattr(x, "__getitem__")):
        x = _array(x, name)
    if len(x.shape) < 2:
        raise InputError(
            f"{name} has shape {tuple(x.shape)}, expected (items, entries) or (items, m_1, .., m_T). "
            "Reshape your data: one item is x.reshape(1, -1), a single feature x.reshape(-1, 1)"
        )
    if x.shape[0] == 0:
        raise InputError(
            f"{name} holds 0 sample(s) (shape={tuple(x.shape)}) while a minimum of 1 is required."
        )
    if 0 in x.shape:
        raise InputError(
            f"{name} holds 0 feature(s) (shape={tuple(x.shape)}) while a minimum of 1 is required."
        )
    return x


def refuse_mask(
    y: Any, shape: Sequence[int], advice: str = "give the mask by its name, observed=..."
) -> None:
    """Refuse a mask of the shape of X in the place of ``y``, which is ignored: it would go unnoticed."""
    if hasattr(y, "shape") and tuple(y.shape) == tuple(shape):
        raise InputError(f"y has the shape of X and would be ignored: {advice}")


def numbers(x: Any, name: str = "X") -> np.ndarray:
    """A part of a stack as an array of real numbers, without its mask."""
    array = np.ma.getdata(x) if isinstance(x, np.ma.MaskedArray) else _array(x, name)
    if array.dtype.kind == "c":
        raise InputError(f"{name} is complex. Complex data not supported: expected real numbers")
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise NoNumbersError(f"{name} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "buif":
        raise InputError(f"{name} has dtype {array.dtype}, expected real numbers")
    return array


def _is_default(value: Any, default: Any) -> bool:
    """Whether both are the same, or plain values that are equal."""
    value = _plain(value)
    return value is default or (isinstance(value, str | int | float | tuple) and value == _plain(default))


def _plain(value: Any) -> Any:
    """Lists and arrays as tuples, which can be compared: clones and files have copies of defaults."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _array(x: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(x)
    except ValueError as error:
        raise InputError(f"{name} is not an array: its rows differ in length") from error
