"""Read and write an array in the format that a path's suffix names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.arrays import cast, default_dtype, number_dtype, real_array
from kruskal.data.atomic import atomic_path, check_place, full_suffix, reason
from kruskal.data.formats import hdf5, matlab, nifti, npy, npz, pictures, tiff, zarr_store
from kruskal.data.formats.base import Format
from kruskal.data.metadata import Loaded, Metadata
from kruskal.errors import InputError, shown

FORMATS: tuple[Format, ...] = (pictures, tiff, npy, npz, matlab, nifti, hdf5, zarr_store)
BY_SUFFIX: dict[str, Format] = {suffix: one for one in FORMATS for suffix in one.SUFFIXES}

PathLike = str | os.PathLike[str]


def read(path: PathLike, *, key: str | None = None) -> Loaded:
    """Read an array, what is known about its missing entries, and its metadata.

    Parameters
    ----------
    path : path-like
        A file ``.png .jpg .jpeg .bmp .tif .tiff .npy .npz .mat .nii .nii.gz .h5 .hdf5``, or a folder
        ``.zarr``.
    key : str, optional
        Which array, for formats that hold several: the name in an npz or mat file, the path in an HDF5 file
        or a zarr group, the number of a TIFF series. Not needed if the file holds one array of numbers, nor
        for an npz file with an entry ``values``.

    Returns
    -------
    Loaded
        ``values`` in the dtype of the file (booleans as uint8), ``observed`` or None, and ``metadata``.

    Raises
    ------
    InputError
        When the path does not exist, has an unknown suffix, cannot be decoded, or does not hold a non-empty
        array of real numbers.
    """
    source = _as_path(path)
    if not source.exists():
        raise InputError(f"cannot read '{path}': no such file")
    if source.is_dir() and full_suffix(source).lower() not in BY_SUFFIX:
        raise InputError(f"cannot read '{path}': it is a folder, expected a file or a .zarr store")
    suffix, chosen = _format_of(source, "read")
    if source.is_dir() and chosen is not zarr_store:
        raise InputError(f"cannot read '{path}': it is a folder, expected a {suffix} file")
    if not source.is_dir() and chosen is zarr_store:
        raise InputError(f"cannot read '{path}': it is a file, expected a folder (zarr directory store)")
    try:
        content = chosen.read(source, key)
    except InputError:
        raise
    except Exception as error:
        raise unreadable(source, error) from error
    values = real_array(content.values, f"the array in '{path}'")
    observed = content.observed
    if observed is not None:
        if observed.shape != values.shape or observed.dtype != bool:
            raise InputError(
                f"cannot read '{path}': 'observed' is {observed.dtype} of shape {observed.shape}, "
                f"expected bool of shape {values.shape}"
            )
        observed = np.ascontiguousarray(observed)
    metadata = Metadata(chosen.FAMILY, suffix, content.dtype or values.dtype, values.shape, content.extras)
    return Loaded(values, observed, metadata)


def unreadable(path: Path, error: Exception) -> InputError:
    """What it means that a library failed to read a file: each has its own way to say that it is damaged."""
    if path.is_file() and path.stat().st_size == 0:
        return InputError(f"cannot read '{path}': it is empty, expected a {full_suffix(path)} file")
    if isinstance(error, ImportError | MemoryError) or (isinstance(error, OSError) and error.strerror):
        return InputError(f"cannot read '{path}': {reason(error)}")
    expected = f"a complete {full_suffix(path)} {'store' if path.is_dir() else 'file'}"
    return InputError(
        f"cannot read '{path}': it may be damaged, or of a kind that is not read ({reason(error)}), "
        f"expected {expected}"
    )


def write(path: PathLike, values: Any, *, like: Metadata | None = None, dtype: Any = None) -> None:
    """Write an array in the format of the path's suffix, whole or not at all.

    Equal arrays and metadata give equal bytes: no file holds a time.

    Parameters
    ----------
    path : path-like
        Where to; an existing file (or zarr store) is replaced.
    values : array_like
        Real numbers; masked entries of a masked array are written as NaN.
    like : Metadata, optional
        Metadata of the source. What the target format can hold of it is kept.
    dtype : dtype, optional
        The dtype in the file; by default that of `like`, and without either float32 for floats (float64 if
        they are too large or too small for it) and their own dtype for integers. Values are clipped to the
        range of the dtype, and rounded to the nearest integer for an integer dtype. Formats that do not
        know half or extended precision take float32 or float64 instead.

    Raises
    ------
    InputError
        When the format cannot hold the array, or the file cannot be written.

    Notes
    -----
    Pictures (png, jpg, bmp) are uint8, or uint16 for a grey png. With any other dtype the values are taken
    to be on the scale 0 to 255 and stored as uint8 if they lie within it; otherwise an InputError names the
    formats that can hold them. Floats within 0 to 1 are refused as well, they would give a black picture.
    """
    target = _as_path(path)
    _, chosen = _format_of(target, "write")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.result_type(values.dtype, np.float32)), np.nan)
    array = real_array(values, "values")
    wanted = _wanted_dtype(array, like, dtype)
    check_place(target, folder=chosen is zarr_store)
    if chosen is pictures and wanted not in (np.uint8, np.uint16):
        pictures.stored_dtype(target, array.shape, np.dtype(np.uint8))
        wanted = pictures.dtype_by_range(target, array)
    stored = chosen.stored_dtype(target, array.shape, wanted)
    result = cast(array, stored, f"'{path}'")
    try:
        with atomic_path(target) as temporary:
            chosen.write(temporary, result, {} if like is None else like.extras)
    except RuntimeError as error:  # h5py and zarr report some failures of the disk this way
        raise InputError(f"cannot write '{path}': {reason(error)}") from error


def check_writable(path: PathLike, shape: tuple[int, ...] | None = None, dtype: Any = None) -> None:
    """Complain now about what would make `write` fail at the end of a long run.

    Parameters
    ----------
    path : path-like
        Where a result should go: the suffix must be known, the folder must exist and accept files.
    shape : tuple of int, optional
        The shape of the result, if it is known.
    dtype : dtype, optional
        The dtype of the result, usually ``like.dtype``. A picture format refuses every dtype but uint8 (and
        uint16 for a grey png) here, because only the finished values could tell whether they fit.

    Raises
    ------
    InputError
        One sentence that says what stands in the way.
    """
    target = _as_path(path)
    _, chosen = _format_of(target, "write")
    check_place(target, folder=chosen is zarr_store)
    wanted = np.dtype(np.uint8) if dtype is None else number_dtype(dtype, "dtype")
    if shape is not None:
        chosen.stored_dtype(target, tuple(shape), wanted)
    else:
        chosen.stored_dtype(target, (1, 1), wanted)


def _wanted_dtype(values: np.ndarray, like: Metadata | None, dtype: Any) -> np.dtype:
    if dtype is not None:
        return number_dtype(dtype, "dtype")
    return default_dtype(values) if like is None else like.dtype


def _as_path(path: PathLike) -> Path:
    try:
        return Path(path)
    except TypeError as error:
        raise InputError(f"path {shown(path)} is not a path, expected a string or pathlib.Path") from error


def _format_of(path: Path, verb: str) -> tuple[str, Format]:
    suffix = full_suffix(path).lower()
    chosen = BY_SUFFIX.get(suffix) or BY_SUFFIX.get(path.suffix.lower())
    if chosen is None:
        given = f"the suffix '{suffix}' is unknown" if suffix else "the name has no suffix"
        if path.is_dir():
            given = "it is a folder, not the name of a file"
        raise InputError(f"cannot {verb} '{path}': {given}, expected one of {', '.join(sorted(BY_SUFFIX))}")
    return suffix, chosen
