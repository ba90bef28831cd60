"""What two arrays must fulfil before they are compared, and the conventions of the comparison."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kruskal.errors import InputError


def default_peak(reference: ArrayLike) -> float:
    """Return the peak value that PSNR and SSIM use when none is given.

    255 for uint8 and the largest value of the type for other integers; for all other types the largest
    finite entry of the reference (the convention of the paper's amino table), or, when that is not
    positive, the distance from the smallest to the largest entry.

    Parameters
    ----------
    reference : array_like
        The true array.

    Returns
    -------
    float
        0 only for a reference that is constant and not positive.
    """
    reference = np.asarray(reference)
    if np.issubdtype(reference.dtype, np.integer):
        return float(np.iinfo(reference.dtype).max)
    finite = reference[is_finite(reference)].astype(np.float64)
    if finite.size == 0:
        return 0.0
    largest = float(finite.max())
    return largest if largest > 0 else largest - float(finite.min())


def is_colour(shape: tuple[int, ...]) -> bool:
    """Tell whether the last axis is taken for colour: the order is at least 3 and its length 3 or 4."""
    return len(shape) >= 3 and shape[-1] in (3, 4)


def checked(
    estimate: ArrayLike, reference: ArrayLike, where: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Return both arrays and the entries to compare, which are at least one and finite in both."""
    estimate, reference = np.asarray(estimate), np.asarray(reference)
    for name, array in (("estimate", estimate), ("reference", reference)):
        if array.dtype.kind not in "buif":
            raise InputError(f"the {name} must hold real numbers, but its type is {array.dtype}.")
    if estimate.shape != reference.shape:
        raise InputError(f"the estimate has the shape {estimate.shape}, but the reference {reference.shape}.")
    chosen = is_finite(reference)
    if where is not None:
        where = np.asarray(where, dtype=bool)
        if where.shape != reference.shape:
            raise InputError(f"where has the shape {where.shape}, but the reference {reference.shape}.")
        chosen = chosen & where
    if not chosen.any():
        raise InputError("there is no entry with a finite reference to compare.")
    if not np.isfinite(estimate[chosen]).all():
        raise InputError("the estimate is not finite in every entry that is compared.")
    return estimate, reference, chosen


def checked_peak(peak: float | None, reference: NDArray[Any]) -> float:
    """Return the given peak, which must be positive, or the default one."""
    if peak is None:
        return default_peak(reference)
    if not (math.isfinite(peak) and peak > 0):
        raise InputError(f"peak must be a positive number, but {peak} was given.")
    return float(peak)


def difference(
    estimate: NDArray[Any], reference: NDArray[Any], chosen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return estimate - reference in the chosen entries; in float64, because uint8 would wrap around."""
    return estimate[chosen].astype(np.float64) - reference[chosen].astype(np.float64)


def is_finite(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array of any real type is finite, in the shape of the array."""
    if array.dtype.kind == "f":
        return np.isfinite(array)
    return np.ones(array.shape, dtype=bool)
