"""What a file says about its array, kept so that it can be written back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Metadata:
    """Where an array came from and what its file said about it.

    Attributes
    ----------
    family : str
        ``picture``, ``tiff``, ``npy``, ``npz``, ``matlab``, ``nifti``, ``hdf5`` or ``zarr``.
    suffix : str
        The suffix of the file in lower case, for example ``.nii.gz``.
    dtype : numpy.dtype
        The dtype in which a result should be written back. It is the dtype of the values, except for files
        of `write_corrupted`, which remember the dtype of the clean array.
    shape : tuple of int
        The shape of the values.
    extras : mapping
        What only some formats know: ``dpi``, ``icc_profile``, ``exif`` (pictures); ``axes``, ``resolution``,
        ``resolution_unit``, ``spacing``, ``unit``, ``imagej``, ``ome``, ``photometric`` (tiff); ``affine``,
        ``zooms``, ``units``, ``header`` (nifti); ``key`` (npz, mat, hdf5, zarr); ``attributes``, ``chunks``
        (hdf5, zarr); ``zarr_format``, ``dimension_names`` (zarr).
    """

    family: str
    suffix: str
    dtype: np.dtype
    shape: tuple[int, ...]
    extras: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and dicts, fit for printing or JSON."""
        return {
            "format": self.family,
            "suffix": self.suffix,
            "dtype": self.dtype.name,
            "shape": list(self.shape),
            **{name: plain(value) for name, value in self.extras.items()},
        }


@dataclass(frozen=True, eq=False)
class Loaded:
    """An array as a file stores it.

    Attributes
    ----------
    values : numpy.ndarray
        The array, C-contiguous, in its own dtype and native byte order.
    observed : numpy.ndarray of bool or None
        True where an entry was observed, same shape as ``values``; None when the file does not say.
    metadata : Metadata
        What is needed to write a result back in the same way.
    """

    values: np.ndarray
    observed: np.ndarray | None
    metadata: Metadata


def plain(value: Any) -> Any:
    """Turn arrays, NumPy scalars and bytes into something that JSON can hold."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
