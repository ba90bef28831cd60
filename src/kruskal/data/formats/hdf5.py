"""HDF5 files, through h5py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.arrays import common_float
from kruskal.data.formats.base import Content
from kruskal.data.keys import Entry, choose_key, kept_key
from kruskal.errors import InputError

FAMILY = "hdf5"
SUFFIXES: tuple[str, ...] = (".h5", ".hdf5")
MOST_AXES = 32


def read(path: Path, key: str | None) -> Content:
    """Read the dataset at path `key`, or the only dataset of numbers."""
    import h5py

    with h5py.File(path, "r") as file:
        entries = list_datasets(file)
        name = choose_key(path, entries, key)
        dataset = file[name]
        extras: dict[str, Any] = {"key": name, "attributes": _attributes(dataset)}
        if dataset.chunks is not None:
            extras["chunks"] = tuple(dataset.chunks)
        return Content(dataset[()], extras)


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """Any integer or float of up to 64 bits."""
    if len(shape) > MOST_AXES:
        raise InputError(f"cannot write {len(shape)} axes to '{path}': HDF5 holds at most {MOST_AXES}")
    return common_float(dtype)


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write one dataset with the chunks and attributes it came with, and without times.

    The file is made in memory first: when a disk is full, the HDF5 library cannot close its file and later
    crashes the process.
    """
    import h5py

    chunks = extras.get("chunks")
    if chunks is not None and (
        len(chunks) != values.ndim or any(c > n for c, n in zip(chunks, values.shape))
    ):
        chunks = None
    with h5py.File(path, "w", driver="core", backing_store=False, track_order=False) as file:
        dataset = file.create_dataset(kept_key(extras), data=values, chunks=chunks, track_times=False)
        for name, value in extras.get("attributes", {}).items():
            dataset.attrs[name] = value
        file.flush()
        image = file.id.get_file_image()
    with open(path, "wb") as target:
        target.write(image)


def list_datasets(file: Any) -> dict[str, Entry]:
    """All datasets of an open file by path; MATLAB's hidden ones are left out."""
    import h5py

    found: dict[str, Entry] = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and not name.startswith("#"):
            found[name] = Entry(node.shape or (), node.dtype.kind in "buif")

    file.visititems(visit)
    return found


def _attributes(dataset: Any) -> dict[str, Any]:
    """The attributes that make sense in another file: text and numbers, no references."""
    kept = {}
    for name, value in dataset.attrs.items():
        if isinstance(value, str) or np.asarray(value).dtype.kind in "buifSU":
            kept[name] = value
    return kept
