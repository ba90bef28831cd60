"""What every format module offers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np


class Content(NamedTuple):
    """What a format module found in a file.

    Attributes
    ----------
    values : array
        As stored.
    extras : dict
        See `kruskal.data.Metadata`.
    observed : array of bool or None
        Which entries were observed, when the file says so.
    dtype : numpy.dtype or None
        The dtype to write back in, when it is not that of the values.
    """

    values: Any
    extras: dict[str, Any]
    observed: np.ndarray | None = None
    dtype: np.dtype | None = None


class Format(Protocol):
    """A format family; the modules of this package are its instances."""

    FAMILY: str
    SUFFIXES: tuple[str, ...]

    def read(self, path: Path, key: str | None) -> Content:
        """Read the array called `key` (None: the only one); any exception means an unreadable file."""
        ...

    def stored_dtype(self, path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
        """The dtype in which an array is stored; InputError when the format cannot hold it."""
        ...

    def write(self, path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
        """Write values, already of the stored dtype, with the extras that the format can hold."""
        ...
