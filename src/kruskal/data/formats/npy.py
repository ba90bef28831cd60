"""One array in NumPy's own format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.formats.base import Content
from kruskal.data.keys import refuse_key
from kruskal.errors import InputError

FAMILY = "npy"
SUFFIXES: tuple[str, ...] = (".npy",)


def read(path: Path, key: str | None) -> Content:
    """Read the array; object arrays (pickles) are refused."""
    refuse_key(path, key)
    with open(path, "rb") as file:
        refuse_objects(path, file)
        file.seek(0)
        return Content(np.lib.format.read_array(file, allow_pickle=False), {})


def header(file: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of the array of an open file, which stands behind its header then."""
    if np.lib.format.read_magic(file) == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return shape, dtype


def refuse_objects(path: Path, file: Any) -> None:
    """Refuse Python objects: to unpickle them would run whatever code is in the file."""
    if header(file)[1].hasobject:
        raise InputError(f"cannot read '{path}': it holds Python objects, expected an array of numbers")


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """Everything fits."""
    return dtype


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write the array."""
    with open(path, "wb") as file:
        np.lib.format.write_array(file, values, allow_pickle=False)


def allocate(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Make a file for an array that is written later, with all the space that it needs on the disk."""
    np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    with open(path, "rb+") as file:
        if hasattr(os, "posix_fallocate"):  # a full disk must not show only when pages are written back
            os.posix_fallocate(file.fileno(), 0, os.path.getsize(path))
