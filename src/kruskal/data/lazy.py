"""Arrays that are read and written in boxes: zarr stores, npy files, and whatever can be sliced."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.arrays import cast, number_dtype, real_array
from kruskal.data.atomic import atomic_path, full_suffix, reason
from kruskal.data.files import check_writable, unreadable
from kruskal.data.formats import npy, zarr_store
from kruskal.errors import InputError

LAZY_SUFFIXES = (*zarr_store.SUFFIXES, *npy.SUFFIXES)
"""Formats that can be read and written box by box."""
Box = tuple[slice, ...]


def contains(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> bool:
    """Whether replacing `folder` would replace `path`: they are the same place, or it lies inside."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def missing_chunks_note(number: int, name: str) -> str:
    """What to say of a store that has fewer chunks than its shape asks for."""
    return (
        f"{number} chunks of {name} are not there and read as its fill value (zarr leaves out chunks that "
        "hold nothing else): if that is not meant, it is only half written"
    )


@dataclass(frozen=True)
class LazyArray:
    """An array of real numbers that is not in memory.

    Attributes
    ----------
    name : how messages call it;  shape, dtype : of the array
    get : gives the entries of a box
    chunks : shape of the pieces that it is stored in, if it says so
    extras : what a file in the same format should hold besides, see `kruskal.data.Metadata`
    missing_chunks : how many chunks are not there and are read as a fill value
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    get: Callable[[Box], Any]
    chunks: tuple[int, ...] | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    missing_chunks: int = 0

    def read(self, box: Box) -> np.ndarray:
        """The entries of a box."""
        try:
            return real_array(self.get(box), self.name)
        except InputError:
            raise
        except Exception as error:  # each library has its own way to say that a part of a file is damaged
            where = ", ".join(f"{here.start}:{here.stop}" for here in box)
            raise InputError(f"cannot read [{where}] of {self.name}: {reason(error)}") from error


def open_lazy(source: Any, name: str, key: str | None = None) -> LazyArray:
    """Anything with a shape, a dtype and slices, or the path of a zarr store or npy file.

    Raises
    ------
    InputError
        When it is nothing of that, or cannot be opened, or holds no real numbers.
    """
    if isinstance(source, str | os.PathLike):
        array = _open_path(Path(source), name, key)
    elif all(hasattr(source, attribute) for attribute in ("shape", "dtype", "__getitem__")):
        array = LazyArray(
            name, tuple(source.shape), np.dtype(source.dtype), source.__getitem__,
            getattr(source, "chunks", None),
        )  # fmt: skip
    else:
        raise InputError(
            f"{name} must be a path or have a shape, a dtype and slices, not {type(source).__name__}"
        )
    if array.dtype.kind not in "buif":
        raise InputError(f"{array.name} has dtype {array.dtype}, expected real numbers (integers or floats)")
    if not array.shape or 0 in array.shape:
        raise InputError(f"{array.name} has shape {array.shape}, expected at least one axis and one entry")
    return array


def _open_path(path: Path, argument: str, key: str | None) -> LazyArray:
    name = f"'{path}'"
    suffix = full_suffix(path).lower()
    if suffix not in LAZY_SUFFIXES:
        expected = ", ".join(LAZY_SUFFIXES)
        raise InputError(f"{argument} {name} cannot be read part by part, expected one of {expected}")
    if not path.exists():
        raise InputError(f"cannot read {name}: no such file")
    try:
        if suffix in npy.SUFFIXES:
            npy.refuse_key(path, key)
            with open(path, "rb") as file:
                npy.refuse_objects(path, file)
            header = np.load(path, mmap_mode="r", allow_pickle=False)
            # mapped anew for every box: what was read once would else count as memory in use
            return LazyArray(
                name, header.shape, header.dtype,
                lambda box: np.array(np.load(path, mmap_mode="r", allow_pickle=False)[box]),
            )  # fmt: skip
        array, extras = zarr_store.open_array(path, key)
    except InputError:
        raise
    except Exception as error:
        raise unreadable(path, error) from error
    missing = extras.pop("missing_chunks", 0)  # of the source: it is not so of what is written
    if missing == array.nchunks:
        raise InputError(f"cannot read {name}: none of its {array.nchunks} chunks is there")
    return LazyArray(
        name, tuple(array.shape), np.dtype(array.dtype), partial(zarr_store.read_box, array),
        extras["chunks"], extras, missing,
    )  # fmt: skip


@contextmanager
def written_in_boxes(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: Any, extras: Mapping[str, Any]
) -> Iterator[Callable[[Box, np.ndarray], None]]:
    """Yield ``put(box, values)``; the array appears under its name when all is written, or not at all.

    Parameters
    ----------
    path : a name that ends in .zarr or .npy;  shape, dtype : of the array
    extras : of the source; a zarr store takes its chunks and attributes
    """
    target = Path(path)
    stored = check_lazy_target(target, shape, dtype)
    with atomic_path(target) as temporary:
        if full_suffix(target).lower() in npy.SUFFIXES:
            npy.allocate(temporary, shape, stored)

            def write(box: Box, values: np.ndarray) -> None:
                np.lib.format.open_memmap(temporary, mode="r+")[box] = values
        else:
            array = zarr_store.create(temporary, shape, stored, extras)

            def write(box: Box, values: np.ndarray) -> None:
                array[box] = values

        def put(box: Box, values: np.ndarray) -> None:
            try:
                write(box, cast(values, stored, f"'{path}'"))
            except RuntimeError as error:  # zarr reports some failures of the disk this way
                raise InputError(f"cannot write '{path}': {reason(error)}") from error

        yield put


def check_lazy_target(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: Any, name: str = "path"
) -> np.dtype:
    """The dtype that is stored, or an InputError that says why nothing can be; ``name`` is the argument's."""
    target = Path(path)
    suffix = full_suffix(target).lower()
    if suffix not in LAZY_SUFFIXES:
        expected = ", ".join(LAZY_SUFFIXES)
        raise InputError(f"{name} '{path}' cannot be written part by part, expected one of {expected}")
    wanted = np.dtype(np.uint8) if np.dtype(dtype).kind == "b" else number_dtype(dtype, "dtype")
    check_writable(target, shape, wanted)
    return (npy if suffix in npy.SUFFIXES else zarr_store).stored_dtype(target, shape, wanted)
