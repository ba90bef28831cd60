"""NIfTI-1 and NIfTI-2 volumes, plain or gzipped, through nibabel."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.arrays import common_float
from kruskal.data.formats.base import Content
from kruskal.data.keys import refuse_key
from kruskal.errors import InputError

FAMILY = "nifti"
SUFFIXES: tuple[str, ...] = (".nii", ".nii.gz")
MOST_AXES = 7
LONGEST_SIDE_OF_NIFTI_1 = 32767
COMPRESSION_LEVEL = 4


def read(path: Path, key: str | None) -> Content:
    """Read a volume; a file with an intensity slope gives the scaled values, as floats."""
    import nibabel

    refuse_key(path, key)
    image = nibabel.load(path)
    if not isinstance(image, nibabel.Nifti1Image):
        raise InputError(f"cannot read '{path}': it is not a NIfTI file")
    header = image.header
    extras = {
        "affine": np.array(image.affine),
        "zooms": tuple(float(zoom) for zoom in header.get_zooms()),
        "units": tuple(header.get_xyzt_units()),
        "header": header.as_byteswapped("<").binaryblock,
    }
    return Content(np.asanyarray(image.dataobj), extras)


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """Any integer, float32 or float64; half precision is stored as float32."""
    if len(shape) > MOST_AXES:
        raise InputError(
            f"cannot write {len(shape)} axes to '{path}': NIfTI holds at most {MOST_AXES}, use .npy"
        )
    return common_float(dtype, half=False)


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write with the whole header of the source (affine, zooms, units, codes, description)."""
    import nibabel

    block: bytes = extras.get("header", b"")
    second = len(block) > nibabel.Nifti1Header.sizeof_hdr or max(values.shape) > LONGEST_SIDE_OF_NIFTI_1
    kind = nibabel.Nifti2Image if second else nibabel.Nifti1Image
    header = None
    if block:
        source = (
            nibabel.Nifti2Header if len(block) > nibabel.Nifti1Header.sizeof_hdr else nibabel.Nifti1Header
        )
        header = kind.header_class.from_header(source(block, endianness="<"))
        header.set_slope_inter(1, 0)
    image = kind(values, extras.get("affine"), header, dtype=values.dtype)
    with open(path, "wb") as file:
        if path.suffix.lower() == ".gz":
            # Neither a name nor a time in the header: equal arrays should give equal files.
            with gzip.GzipFile("", "wb", COMPRESSION_LEVEL, fileobj=file, mtime=0) as packed:
                image.to_stream(packed)
        else:
            image.to_stream(file)
