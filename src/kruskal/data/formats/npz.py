"""Named arrays in NumPy's zip format, written without a clock."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.arrays import number_dtype
from kruskal.data.formats import npy
from kruskal.data.formats.base import Content
from kruskal.data.keys import Entry, choose_key, kept_key

FAMILY = "npz"
SUFFIXES: tuple[str, ...] = (".npz",)
VALUES, OBSERVED, DTYPE = "values", "observed", "dtype"
EPOCH = (1980, 1, 1, 0, 0, 0)


def read(path: Path, key: str | None) -> Content:
    """Read `key`, or ``values`` with its ``observed`` mask and original ``dtype``, or the only array."""
    with path.open("rb") as opened:  # which tells why it cannot be read; is_zipfile does not
        if not zipfile.is_zipfile(opened):
            raise zipfile.BadZipFile("it is no npz file")
    with np.load(path, allow_pickle=False) as file:
        if key is None and VALUES in file.files:
            key = VALUES
        name = choose_key(path, {name: _entry(file, name) for name in file.files}, key)
        observed, dtype = None, None
        if name == VALUES and OBSERVED in file.files:
            observed = _array(path, file, OBSERVED)
        if name == VALUES and DTYPE in file.files:
            dtype = number_dtype(str(file[DTYPE]), f"'{path}': the entry 'dtype'")
        return Content(_array(path, file, name), {"key": name}, observed, dtype)


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """Everything fits."""
    return dtype


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write one array under the key it came from, else ``values``."""
    key = kept_key(extras, avoid=(OBSERVED, DTYPE)).rpartition("/")[2]
    write_arrays(path, {key: values})


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Like `numpy.savez`, but equal arrays always give equal bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=EPOCH)
            entry.external_attr = 0o600 << 16
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def _entry(file: Any, name: str) -> Entry:
    """Shape and kind of an array from its header alone."""
    with _opened(file, name) as member:
        try:
            shape, dtype = npy.header(member)
        except ValueError:  # something else that lies in the zip file
            return Entry((), False)
    return Entry(shape, dtype.kind in "buif")


def _array(path: Path, file: Any, name: str) -> Any:
    with _opened(file, name) as member:
        npy.refuse_objects(path, member)
    return file[name]


def _opened(file: Any, name: str) -> Any:
    return file.zip.open(f"{name}.npy" if f"{name}.npy" in file.zip.namelist() else name)
