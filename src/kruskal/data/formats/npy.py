"""One array in NumPy's own format."""

from __future__ import annotations

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
