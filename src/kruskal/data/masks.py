"""Which entries of an array were observed."""

from __future__ import annotations

from typing import Any

import numpy as np

from kruskal.data.arrays import real_array
from kruskal.errors import InputError, shown

MEANINGS = ("observed", "missing")


def observed_entries(
    values: Any,
    mask: Any = None,
    *,
    mask_is: str = "observed",
    declared: np.ndarray | None = None,
    may_be_none: bool = False,
    stacked: bool = False,
    name: str = "values",
    mask_name: str = "mask",
) -> np.ndarray:
    """Combine everything that says which entries are missing; an entry is observed if nothing objects.

    Parameters
    ----------
    values : array_like
        The data. NaN entries and the masked entries of a `numpy.ma` array are missing.
    mask : array_like of bool or numbers, optional
        Zero is False, one other number True. Its shape is that of `values`, or that without the last
        axis or with one entry along it, and then holds for all channels of a pixel.
    mask_is : {"observed", "missing"}
        What True means in `mask`.
    declared : array of bool, optional
        What the file of the data said (`Loaded.observed`), True is observed.
    may_be_none : bool
        Whether it is fine that no entry at all is observed.
    stacked : bool
        Whether the first axis counts items, which only have channels if they have three axes or more: a mask
        for one item, which may have the shape of a stack without its last axis, is not taken for one of all.
    name, mask_name : str
        How messages call `values` and `mask`.

    Returns
    -------
    numpy.ndarray of bool
        A new array of the shape of `values`, True where an entry is observed.

    Raises
    ------
    InputError
        For a mask of another shape or kind, an infinity at an observed entry, or when nothing is observed.
    """
    if not isinstance(mask_is, str) or mask_is not in MEANINGS:
        raise InputError(f"mask_is is {shown(mask_is)}, expected 'observed' or 'missing'")
    if mask is None and mask_is != "observed":
        raise InputError(f"mask_is is {mask_is!r} without a mask: give {mask_name}, or leave mask_is out")
    array = real_array(values, name)
    observed = ~np.isnan(array) if array.dtype.kind == "f" else np.ones(array.shape, dtype=bool)
    if isinstance(values, np.ma.MaskedArray):
        observed &= ~np.ma.getmaskarray(values)
    if declared is not None:
        observed &= _fitting(declared, array.shape, False, "declared", name)
    if mask is not None:
        given = _fitting(mask, array.shape, stacked, mask_name, name)
        observed &= given if mask_is == "observed" else ~given
    if array.dtype.kind == "f":
        _refuse_infinities(array, observed, name)
    if not may_be_none and not observed.any():
        blamed = "" if mask is None else f" by {mask_name}, or in the array itself"
        raise InputError(f"nothing of {name} is observed: all {array.size} entries are missing{blamed}")
    return observed


def check_mask_shape(
    found: tuple[int, ...], shape: tuple[int, ...], stacked: bool, name: str, array_name: str
) -> None:
    """Complain about a mask of a shape that does not fit values of ``shape``; see `observed_entries`."""
    channels = len(shape) >= (4 if stacked else 2)
    if found == shape or (channels and found in ((*shape[:-1], 1), shape[:-1])):
        return
    alternative = f" or {shape[:-1]}" if channels else ""
    raise InputError(f"{name} has shape {found}, expected {shape}{alternative} like {array_name}")


def refuse_masked(x: Any, name: str = "X") -> None:
    """Refuse masked entries where everything must be known: their values would be used."""
    n_masked = int(np.ma.count_masked(x)) if isinstance(x, np.ma.MaskedArray) else 0
    if n_masked:
        raise InputError(f"{name} has {n_masked} masked entries, expected none")


def _fitting(mask: Any, shape: tuple[int, ...], stacked: bool, name: str, array_name: str) -> np.ndarray:
    """Turn a mask into booleans that broadcast to `shape`."""
    refuse_masked(mask, name)
    numbers = real_array(mask, name)
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        raise InputError(f"{name} holds NaN, expected booleans or numbers (zero is False)")
    flags = numbers != 0
    _refuse_shades(numbers, flags, name)
    check_mask_shape(flags.shape, shape, stacked, name, array_name)
    return flags if flags.ndim == len(shape) else flags[..., np.newaxis]


def _refuse_shades(numbers: np.ndarray, flags: np.ndarray, name: str) -> None:
    """A mask that was blurred, or saved as a jpg, is no mask any more."""
    if numbers.dtype == bool or not flags.any():
        return
    first = numbers.reshape(-1)[int(np.argmax(flags))]
    other = flags & (numbers != first)
    if other.any():
        another = numbers.reshape(-1)[int(np.argmax(other))]
        raise InputError(
            f"{name} holds {first:g}, {another:g} and perhaps more numbers, expected two: 0, which is False, "
            "and one for True (a jpg cannot hold a mask)"
        )


def _refuse_infinities(array: np.ndarray, observed: np.ndarray, name: str) -> None:
    infinite = np.isinf(array)
    infinite &= observed
    count = int(np.count_nonzero(infinite))
    if count:
        first = tuple(int(i) for i in np.unravel_index(int(np.argmax(infinite)), array.shape))
        raise InputError(
            f"{name} is infinite at {count} observed {'entry' if count == 1 else 'entries'}, "
            f"the first at index {first}, expected finite values or NaN for missing ones"
        )
