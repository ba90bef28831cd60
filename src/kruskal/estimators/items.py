"""Items as users give them, checked and scaled; and the numbers that say how they are treated."""

from typing import Any

import numpy as np

from kruskal.data import Scaling, observed_entries
from kruskal.errors import InputError
from kruskal.estimators.scikit import numbers
from kruskal.patches import Items


def read_items(stack: Any, observed: Any, part: slice, may_be_none: bool) -> tuple[np.ndarray, np.ndarray]:
    """Some items of a stack and which of their entries are observed."""
    if observed is not None and len(observed) != len(stack):
        raise InputError(f"observed has {len(observed)} items, expected {len(stack)} like X")
    given = stack[part]
    values = numbers(given)
    masked = np.ma.array(values, mask=np.ma.getmaskarray(given)) if np.ma.isMaskedArray(given) else values
    mask = None if observed is None else observed[part]
    try:
        return values, observed_entries(masked, mask, may_be_none=may_be_none)
    except InputError as error:
        raise InputError(f"X cannot be used: {error}") from error


def scaled_items(values: np.ndarray, observed: np.ndarray, scaling: Scaling) -> Items:
    """Scaled items; what stands at missing entries has no influence."""
    return Items.from_matrix(scaling.forward(np.where(observed, values, 0)), observed)


def finite_items(values: np.ndarray, observed: np.ndarray, scaling: Scaling) -> Items:
    """The same with the scaling of other items, which these may be too large for."""
    items = scaled_items(values, observed, scaling)
    if not np.isfinite(items.flat).all():
        raise InputError("X holds values that are too large beside those that the model was fitted to")
    return items


def check_tolerance(value: Any) -> float:
    """A number from 0 to below 1, or an InputError."""
    number = _number(value)
    if not 0.0 <= number < 1.0:
        raise InputError(f"tolerance must be a number from 0 to below 1, not {value!r}")
    return number


def check_share(name: str, value: Any) -> float:
    """A number from 0 to 1, or an InputError."""
    number = _number(value)
    if not 0.0 <= number <= 1.0:
        raise InputError(f"{name} must be a number from 0 to 1, not {value!r}")
    return number


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return -1.0
