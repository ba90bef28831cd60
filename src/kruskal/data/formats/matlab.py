"""MATLAB files: version 5 to 7 through scipy.io, version 7.3 (HDF5) through h5py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.arrays import common_float
from kruskal.data.formats.base import Content
from kruskal.data.formats.hdf5 import list_datasets
from kruskal.data.keys import Entry, choose_key, kept_key
from kruskal.errors import InputError

FAMILY = "matlab"
SUFFIXES: tuple[str, ...] = (".mat",)
NUMBER_CLASSES = (
    "double",
    "single",
    "logical",
    *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)),
)
MOST_BYTES = 2**31
HEADER = b"MATLAB 5.0 MAT-file, written by kruskal".ljust(116)


def read(path: Path, key: str | None) -> Content:
    """Read variable `key`, or the only array of numbers with more than one element.

    The dtype is the class the variable has in MATLAB, not the smaller one in which MATLAB packs whole
    numbers: a double stays float64.
    """
    import h5py

    if h5py.is_hdf5(path):
        return _read_version_73(path, key)
    import scipy.io

    kinds = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
    entries = {name: Entry(shape, kind in NUMBER_CLASSES) for name, (shape, kind) in kinds.items()}
    name = choose_key(path, entries, key)
    values = scipy.io.loadmat(path, variable_names=[name])[name]
    # The option mat_dtype of loadmat would do this, but it also drops imaginary parts.
    dtype = {"double": np.float64, "single": np.float32}.get(kinds[name][1])
    if dtype is not None and values.dtype.kind in "buif":
        values = values.astype(dtype)
    return Content(values, {"key": name})


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """MATLAB's integers, single and double; half precision is stored as single."""
    dtype = common_float(dtype, half=False)
    if int(np.prod(shape, dtype=object)) * dtype.itemsize >= MOST_BYTES:
        raise InputError(
            f"cannot write shape {shape} to '{path}': a .mat file holds less than 2 GiB, use .h5"
        )
    return dtype


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write version 5 under the name the variable came with; one axis becomes a row."""
    import scipy.io

    name = kept_key(extras).rpartition("/")[2]
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,30}", name):
        name = "values"
    with open(path, "wb") as file:
        scipy.io.savemat(file, {name: values}, format="5", oned_as="row")
        file.seek(0)  # the header holds the date: equal arrays should give equal files
        file.write(HEADER)


def _read_version_73(path: Path, key: str | None) -> Content:
    import h5py

    with h5py.File(path, "r") as file:
        entries = {}
        for name, entry in list_datasets(file).items():
            kind = file[name].attrs.get("MATLAB_class", b"")
            text = kind.decode() if isinstance(kind, bytes) else str(kind)
            numeric = (
                entry.numeric and text in ("", *NUMBER_CLASSES) and "MATLAB_empty" not in file[name].attrs
            )
            entries[name] = Entry(entry.shape[::-1], numeric)
        name = choose_key(path, entries, key)
        if "MATLAB_empty" in file[name].attrs:
            raise InputError(f"cannot read '{path}': variable '{name}' is empty")
        return Content(np.transpose(file[name][()]), {"key": name})
