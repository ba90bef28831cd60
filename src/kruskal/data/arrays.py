"""What counts as an array of numbers, and how numbers become another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from kruskal.errors import InputError, shown


def real_array(values: Any, name: str) -> np.ndarray:
    """Return `values` as a C-contiguous array of integers or floats in native byte order, or complain.

    Parameters
    ----------
    values : array_like
        Anything that NumPy can turn into an array; booleans become uint8. The mask of a masked array is
        dropped, its data are returned.
    name : str
        How the message calls the array.

    Raises
    ------
    InputError
        For complex, string, object or other dtypes, for a single number and for an empty array.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is not an array: its rows differ in length") from error
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    if array.dtype.kind not in "uif":
        given = f"has dtype {array.dtype}" if array.ndim else f"is {shown(values)}"
        raise InputError(f"{name} {given}, expected real numbers (integers or floats)")
    if array.ndim == 0:
        raise InputError(f"{name} is a single number, expected an array with at least one axis")
    if array.size == 0:
        raise InputError(f"{name} is empty (shape {array.shape}), expected at least one entry")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def refuse_constant(values: np.ndarray, observed: np.ndarray | None, name: str, verb: str = "is") -> None:
    """Complain when all observed entries (None: all entries) are the same: there is nothing to learn."""
    seen = values.reshape(-1) if observed is None else values[observed]
    if (seen == seen[0]).all():
        entries = f"all {seen.size} observed entries are" if seen.size > 1 else "the only observed entry is"
        raise InputError(f"{name} {verb} constant: {entries} {seen[0]}, there is nothing to learn")


def refuse_infinite(values: np.ndarray, name: str) -> None:
    """Complain about NaN and infinities."""
    bad = int(values.size - np.isfinite(values).sum())
    if bad:
        raise InputError(f"{name} has {bad} entries that are NaN or infinity, expected finite numbers only")


def refuse_huge(values: np.ndarray, name: str, limit: float = 3e38) -> None:
    """Complain about numbers beyond a limit: that of float32, or a smaller one where they are squared."""
    largest = float(np.abs(values).max())
    if largest > limit:
        raise InputError(f"{name} holds values as large as {largest:.3g}, expected numbers below {limit:g}")


SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
"""Floats below it lose their digits."""


def refuse_tiny(values: np.ndarray, name: str, limit: float, observed: np.ndarray | None = None) -> None:
    """Complain when all observed numbers are so small that arithmetic would take them for zero."""
    if values.dtype.kind != "f":
        return
    where = True if observed is None else observed
    largest = max(float(values.max(where=where, initial=0)), -float(values.min(where=where, initial=0)))
    if largest < limit:
        raise InputError(f"{name} holds no value larger than {largest:.3g}, expected some above {limit:g}")


def number_dtype(dtype: Any, name: str) -> np.dtype:
    """Return `dtype` as a native integer or float dtype, or complain."""
    try:
        result = np.dtype(dtype)
    except TypeError as error:
        raise InputError(
            f"{name} {shown(dtype)} is not a dtype, expected for example 'uint8' or 'float32'"
        ) from error
    if result.kind not in "uif":
        raise InputError(f"{name} {result} cannot be used, expected an integer or float dtype")
    return result.newbyteorder("=")


def common_float(dtype: np.dtype, *, half: bool = True) -> np.dtype:
    """Replace floats that few programs know: float128 by float64, and float16 by float32 unless `half`."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.dtype(np.float64)
    if dtype.kind == "f" and dtype.itemsize < 4 and not half:
        return np.dtype(np.float32)
    return dtype


def default_dtype(values: np.ndarray) -> np.dtype:
    """The dtype of integers; of floats float32, or float64 if float32 cannot hold their size."""
    if values.dtype.kind != "f":
        return values.dtype
    largest = float(np.max(np.abs(values), where=np.isfinite(values), initial=0))
    limits = np.finfo(np.float32)
    fits = largest == 0 or float(limits.tiny) <= largest <= float(limits.max)
    return np.dtype(np.float32 if fits else np.float64)


def cast(values: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    """Convert to `dtype`: clipped to its range, and rounded to the nearest integer if it is an integer dtype.

    Raises
    ------
    InputError
        When NaN or an infinity should become an integer.
    """
    if values.dtype == dtype:
        return values
    if dtype.kind == "f":
        if values.dtype.kind != "f":
            values = values.astype(np.float64)
        if values.dtype.itemsize > dtype.itemsize:
            limit = np.finfo(dtype).max.astype(values.dtype)
            values = np.where(np.isinf(values), values, np.clip(values, -limit, limit))
        return values.astype(dtype)
    info = np.iinfo(dtype)
    if values.dtype.kind in "ui":
        own = np.iinfo(values.dtype)
        return np.clip(values, max(info.min, own.min), min(info.max, own.max)).astype(dtype)
    bad = values.size - int(np.count_nonzero(np.isfinite(values)))
    if bad:
        raise InputError(
            f"cannot write {name} as {dtype}: {bad} of {values.size} values are NaN or infinite, "
            "expected finite values or a float dtype"
        )
    rounded = np.rint(values, dtype=np.float64)
    # The largest 64-bit integers are no floats: take the float below, then put the exact maximum in place.
    highest = float(info.max)
    top = highest if int(highest) <= info.max else float(np.nextafter(highest, 0.0))
    result = np.clip(rounded, float(info.min), top).astype(dtype)
    result[rounded >= highest] = info.max
    return result
