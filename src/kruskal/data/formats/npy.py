"""One array in NumPy's own format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.formats.base import Content
from kruskal.data.keys import refuse_key

FAMILY = "npy"
SUFFIXES: tuple[str, ...] = (".npy",)


def read(path: Path, key: str | None) -> Content:
    """Read the array; object arrays (pickles) are refused."""
    refuse_key(path, key)
    with open(path, "rb") as file:
        return Content(np.lib.format.read_array(file, allow_pickle=False), {})


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
