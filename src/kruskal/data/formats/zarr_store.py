"""Zarr directory stores, through versions 2 and 3 of the zarr package."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.arrays import common_float
from kruskal.data.formats.base import Content
from kruskal.data.keys import Entry, choose_key, refuse_key
from kruskal.data.metadata import plain
from kruskal.errors import InputError

FAMILY = "zarr"
SUFFIXES: tuple[str, ...] = (".zarr",)
MARKERS = ("zarr.json", ".zarray", ".zgroup")
_WRITTEN_BY_ZARR = re.compile(
    r"zarr\.json|\.z(array|attrs|group|metadata)|c|(c\.)?\d+(\.\d+)*|.+\.partial"  # metadata, chunks
)


def read(path: Path, key: str | None) -> Content:
    """Read the array, or of a group the array at path `key` or the only one."""
    array, extras = open_array(path, key)
    return Content(read_box(array, ...), extras)


def open_array(path: Path, key: str | None) -> tuple[Any, dict[str, Any]]:
    """The array, not read yet, and the extras."""
    import zarr

    node = zarr.open(str(path), mode="r")
    extras: dict[str, Any] = {}
    if hasattr(node, "shape"):
        refuse_key(path, key)
        array: Any = node
    else:
        arrays = dict(_walk(node, ""))
        entries = {name: Entry(one.shape, np.dtype(one.dtype).kind in "buif") for name, one in arrays.items()}
        extras["key"] = choose_key(path, entries, key)
        array = arrays[extras["key"]]
    # Version 3 can pack the chunks of a shard into one file: write such files again, not a million chunks.
    extras["chunks"] = tuple(getattr(array, "shards", None) or array.chunks)
    extras["attributes"] = dict(array.attrs)
    description = getattr(array, "metadata", None)  # only version 3 of the package has it
    extras["zarr_format"] = getattr(description, "zarr_format", 2)
    if getattr(description, "dimension_names", None):
        extras["dimension_names"] = tuple(description.dimension_names)  # type: ignore[union-attr]
    missing = int(array.nchunks) - int(array.nchunks_initialized)
    if missing:
        extras["missing_chunks"] = missing
    return array, extras


def read_box(array: Any, box: Any) -> Any:
    """The entries of a box; of a damaged array no reading is left under way.

    Version 3 reads chunks side by side in an event loop of its own, and leaves all others there when one
    cannot be read; the interpreter then complains at its end. A loop of ours ends them.
    """
    import asyncio

    asynchronous = getattr(array, "async_array", None)
    if asynchronous is None:
        return array[box]
    with ThreadPoolExecutor(1) as aside:  # there may be a running loop here, as in a notebook
        return aside.submit(asyncio.run, asynchronous.getitem(box)).result()


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """Any integer or float of up to 64 bits; of folders only a store of one array is ever replaced."""
    if path.is_dir() and any(path.iterdir()) and not any((path / name).exists() for name in MARKERS):
        raise InputError(f"cannot write '{path}': the folder exists and is not a zarr store")
    _refuse_more_than_one_array(path)
    return common_float(dtype)


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write an array, or a group that holds it if it came from a group, with its chunks and attributes."""
    array = create(path, values.shape, values.dtype, extras)
    step = int(array.chunks[0])
    for start in range(0, values.shape[0], step):  # slab by slab: an interrupt leaves little work under way
        array[start : start + step] = values[start : start + step]


def create(path: Path, shape: tuple[int, ...], dtype: np.dtype, extras: Mapping[str, Any]) -> Any:
    """Make the array, without its values."""
    import zarr

    options: dict[str, Any] = {}
    if int(zarr.__version__.split(".")[0]) >= 3:
        options["zarr_format"] = extras.get("zarr_format", 3)
    *groups, name = str(extras.get("key", "")).split("/")
    if name:
        for depth in range(len(groups) + 1):
            zarr.open_group(str(path), mode="a", path="/".join(groups[:depth]), **options)
    chunks = extras.get("chunks")
    if chunks is not None and len(chunks) == len(shape):
        options["chunks"] = tuple(chunks)
    names = extras.get("dimension_names", ())
    if options.get("zarr_format") == 3 and len(names) == len(shape):
        options["dimension_names"] = names
    array = zarr.open_array(
        store=str(path),
        mode="w",
        path="/".join([*groups, name]),
        shape=shape,
        dtype=dtype,
        **options,
    )
    attributes = plain(
        {key: value for key, value in extras.get("attributes", {}).items() if not isinstance(value, bytes)}
    )
    if attributes:
        array.attrs.update(attributes)
    return array


def _refuse_more_than_one_array(path: Path) -> None:
    """Complain about a store that holds more than a result would replace, which would be lost with it."""
    n_arrays = 0
    for folder, _, names in os.walk(path):
        for name in names:
            if not _WRITTEN_BY_ZARR.fullmatch(name):
                raise InputError(
                    f"cannot write '{path}': the store holds '{os.path.join(folder, name)}', which is not of "
                    "zarr and would be lost, expected a store of one array or a new name"
                )
        n_arrays += ".zarray" in names or ("zarr.json" in names and not _is_group(Path(folder, "zarr.json")))
    if n_arrays > 1:
        raise InputError(
            f"cannot write '{path}': the store holds {n_arrays} arrays, all of which would be replaced, "
            "expected a store of one array or a new name"
        )


def _is_group(description: Path) -> bool:
    try:
        return bool(json.loads(description.read_bytes())["node_type"] == "group")
    except (OSError, ValueError, KeyError, TypeError):  # damaged, so it may have been an array
        return False


def _walk(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, array in sorted(group.arrays()):
        yield prefix + name, array
    for name, child in sorted(group.groups()):
        yield from _walk(child, f"{prefix}{name}/")
