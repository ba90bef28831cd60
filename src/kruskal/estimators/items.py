"""Items as users give them, checked and scaled; and the numbers that say how they are treated."""

import warnings
from typing import Any

import numpy as np

from kruskal.data import Scaling, check_mask_shape, far_entries, observed_entries, real_array
from kruskal.errors import InputError, number_or_nan, shown
from kruskal.estimators.scikit import numbers
from kruskal.patches import Items

LARGEST_SCALED = 1e30


def read_items(stack: Any, observed: Any, part: slice, may_be_none: bool) -> tuple[np.ndarray, np.ndarray]:
    """Some items of a stack and which of their entries are observed."""
    if observed is not None:
        observed = _mask_of(observed, tuple(stack.shape))
    given = stack[part]
    values = numbers(given)
    masked = np.ma.array(values, mask=np.ma.getmaskarray(given)) if np.ma.isMaskedArray(given) else values
    mask = None if observed is None else observed[part]
    where = "" if len(values) == len(stack) else f"[{part.start}:{part.stop}]"
    return values, observed_entries(
        masked, mask, may_be_none=may_be_none, stacked=True, name=f"X{where}", mask_name=f"observed{where}"
    )


def _mask_of(observed: Any, shape: tuple[int, ...]) -> Any:
    """A mask that can be sliced as items of this shape are; it need not be in memory."""
    if not hasattr(observed, "shape"):
        observed = real_array(observed, "observed")
    check_mask_shape(tuple(observed.shape), shape, True, "observed", "X")
    return observed


def scaled_items(values: np.ndarray, observed: np.ndarray, scaling: Scaling) -> Items:
    """Scaled items; what stands at missing entries has no influence."""
    return Items.from_matrix(scaling.forward(np.where(observed, values, 0)), observed)


def finite_items(values: np.ndarray, observed: np.ndarray, scaling: Scaling) -> Items:
    """The same with the scaling of other items, which these may be too large for."""
    items = scaled_items(values, observed, scaling)
    refuse_far_out(items.flat)
    return items


def refuse_far_out(scaled: np.ndarray) -> None:
    """Complain when scaled data are beyond what float32 arithmetic survives."""
    largest = float(np.abs(scaled).max())
    if largest > LARGEST_SCALED:
        raise InputError(
            f"X holds values too large beside those that the model was fitted to: {largest:.2g} times "
            f"their range, expected at most {LARGEST_SCALED:.2g}"
        )


def warn_of_far(values: np.ndarray, observed: np.ndarray) -> None:
    """Warn of a value far outside of all others, or refuse it; see `kruskal.data.far_entries`."""
    far = far_entries(values, observed, "X")
    if far is not None:
        warnings.warn(far, UserWarning, stacklevel=3)


def check_below_one(name: str, value: Any) -> float:
    """A number from 0 to below 1, or an InputError."""
    number = number_or_nan(value)
    if not 0.0 <= number < 1.0:
        raise InputError(f"{name} must be a number from 0 to below 1, not {shown(value)}")
    return number


def check_share(name: str, value: Any) -> float:
    """A number from 0 to 1, or an InputError."""
    number = number_or_nan(value)
    if not 0.0 <= number <= 1.0:
        raise InputError(f"{name} must be a number from 0 to 1, not {shown(value)}")
    return number
