"""TIFF: single pictures and stacks of any order, plain, ImageJ or OME, through tifffile."""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from kruskal.data.arrays import common_float
from kruskal.data.atomic import reason
from kruskal.data.formats.base import Content
from kruskal.errors import InputError

if TYPE_CHECKING:
    import tifffile

FAMILY = "tiff"
SUFFIXES: tuple[str, ...] = (".tif", ".tiff")
IMAGEJ_DTYPES = ("uint8", "uint16", "float32")
OME_DTYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float32", "float64")
MIN_IS_WHITE, PALETTE = 0, 3  # values of the tag PhotometricInterpretation
CALIBRATION = ("spacing", "unit", "finterval", "fps")


def read(path: Path, key: str | None) -> Content:
    """Read a series of pages as one array; `key` is the number of the series if there are several.

    Palette pages become colour, one-bit pages 0 and 255, an alpha channel is dropped if it is opaque.
    """
    import tifffile

    with _complaints() as complaints, tifffile.TiffFile(path) as file:
        series = _choose_series(path, file, key)
        values = _decode(path, series)
        if complaints:
            raise InputError(f"cannot read '{path}': {complaints[0]}")
        extras = _extras(file, series)
        page = series.keyframe
        if page.bitspersample == 1:
            values = np.asarray(values, dtype=np.uint8) * np.uint8(255)
        if page.photometric == PALETTE and page.colormap is not None:
            values = (np.moveaxis(page.colormap, 0, -1)[values] >> 8).astype(np.uint8)
            extras["axes"] += "S"
            if np.all(values == values[..., :1]):
                values, extras["axes"] = values[..., 0], extras["axes"][:-1]
        elif extras["axes"].endswith("S") and any(int(sample) in (1, 2) for sample in page.extrasamples):
            values, extras["axes"] = _without_alpha(path, values, extras["axes"])
        return Content(values, extras)


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """Any integer or float of up to 64 bits."""
    if len(shape) < 2:
        raise InputError(f"cannot write shape {shape} to '{path}': a TIFF has at least two axes, use .npy")
    return common_float(dtype)


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write uncompressed, in the flavour (plain, ImageJ, OME) of the source if that can hold the array."""
    import tifffile

    axes = extras.get("axes", "")
    if len(axes) != values.ndim:
        axes = ""
    metadata: dict[str, Any] = {"axes": axes} if axes else {}
    options: dict[str, Any] = _samples(values, axes, extras)
    if _fits(axes, values, IMAGEJ_DTYPES if "S" not in axes else ("uint8",), "imagej" in extras):
        options["imagej"] = True
        metadata.update({name: extras[name] for name in CALIBRATION if name in extras})
    elif _fits(axes, values, OME_DTYPES, "ome" in extras):
        options["ome"] = True
        # A name made of the content instead of the clock: equal arrays give equal files.
        name = hashlib.sha256(values.data).hexdigest()
        metadata.update(extras["ome"], UUID=str(uuid.uuid5(uuid.NAMESPACE_OID, name)))
    else:
        options["ome"] = False
        metadata.update({name: extras[name] for name in CALIBRATION if name in extras})
    if "resolution" in extras:
        options.update(resolution=extras["resolution"], resolutionunit=extras.get("resolution_unit", "NONE"))
    elif "dpi" in extras:
        options.update(resolution=extras["dpi"], resolutionunit="INCH")
    tifffile.imwrite(path, values, metadata=metadata, **options)


def _fits(axes: str, values: np.ndarray, dtypes: tuple[str, ...], flavour: bool) -> bool:
    """Whether ImageJ or OME conventions hold the array without a change of shape, axes or dtype."""
    plain_axes = re.fullmatch("T?Z?C?YXS?", axes) is not None
    return flavour and plain_axes and values.dtype.name in dtypes and 1 not in values.shape


def _samples(values: np.ndarray, axes: str, extras: Mapping[str, Any]) -> dict[str, Any]:
    """How colour lies in the pages: a last axis of 3, or one called S, holds the colours of a pixel."""
    place = axes.find("S") - values.ndim if "S" in axes else -1
    unnamed_colour = not axes and values.ndim >= 3 and values.shape[-1] == 3
    if (unnamed_colour or "S" in axes) and place in (-1, -3) and values.shape[place] >= 3:
        extra = values.shape[place] - 3
        return {
            "photometric": "rgb",
            "planarconfig": "contig" if place == -1 else "separate",
            "extrasamples": ("unspecified",) * extra if extra else None,
        }
    return {"photometric": extras.get("photometric", "minisblack")}


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collect what tifffile only logs: a file that was cut off is an error, not a line on the screen."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if "invalid page offset" in message or "corrupted" in message:
                found.append("the file is cut off or damaged")

    logger = logging.getLogger("tifffile")
    collector, propagate = Collector(), logger.propagate
    logger.addHandler(collector)
    logger.propagate = False
    try:
        yield found
    finally:
        logger.removeHandler(collector)
        logger.propagate = propagate


def _choose_series(path: Path, file: tifffile.TiffFile, key: str | None) -> tifffile.TiffPageSeries:
    shapes = ", ".join(
        f"{number} ({'x'.join(map(str, one.shape))})" for number, one in enumerate(file.series)
    )
    if key is not None:
        if str(key).isdecimal() and int(key) < len(file.series):
            return file.series[int(key)]
        raise InputError(f"cannot read '{path}': it has no series '{key}', expected one of {shapes}")
    if len(file.series) != 1:
        raise InputError(
            f"cannot read '{path}': it holds {len(file.series)} series, choose one by key= from {shapes}"
        )
    return file.series[0]


def _decode(path: Path, series: tifffile.TiffPageSeries) -> np.ndarray:
    try:
        return series.asarray()
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
        try:
            return _decode_with_pillow(path, series)
        except Exception:
            raise InputError(f"cannot read '{path}': {reason(error)}") from error


def _decode_with_pillow(path: Path, series: tifffile.TiffPageSeries) -> np.ndarray:
    """LZW and the like, which tifffile alone cannot decompress but Pillow can."""
    from PIL import Image

    frames = []
    with Image.open(path, formats=("TIFF",)) as picture:
        for page in series.pages:
            if page is None:
                raise ValueError("a page is missing")
            picture.seek(int(page.index))
            frame = np.asarray(picture)
            if series.keyframe.photometric == MIN_IS_WHITE and picture.mode in ("1", "L"):
                frame = ~frame  # Pillow turns these to minimum-is-black, tifffile does not
            frames.append(frame)
    stack = np.stack(frames)
    if stack.dtype.newbyteorder("=") != np.dtype(series.dtype).newbyteorder("=") and stack.dtype != bool:
        raise ValueError("Pillow changes the dtype")
    return stack.reshape(series.shape)


def _extras(file: tifffile.TiffFile, series: tifffile.TiffPageSeries) -> dict[str, Any]:
    extras: dict[str, Any] = {"axes": series.axes}
    tags = series.keyframe.tags
    if "XResolution" in tags and "YResolution" in tags:
        ratios = (tags["XResolution"].value, tags["YResolution"].value)
        unit = tags["ResolutionUnit"].value if "ResolutionUnit" in tags else 2
        name = {1: "NONE", 2: "INCH", 3: "CENTIMETER"}.get(int(unit), "NONE")
        if all(bottom for _, bottom in ratios) and not (name == "NONE" and ratios == ((1, 1), (1, 1))):
            extras["resolution"] = tuple(top / bottom for top, bottom in ratios)
            extras["resolution_unit"] = name
    if series.keyframe.photometric == MIN_IS_WHITE:
        extras["photometric"] = "miniswhite"
    if file.is_imagej:
        extras["imagej"] = True
    shaped = file.shaped_metadata[0] if file.shaped_metadata else {}
    described = (file.imagej_metadata if file.is_imagej else shaped) or {}
    extras.update({name: described[name] for name in CALIBRATION if name in described})
    if file.is_ome and file.ome_metadata:
        extras["ome"] = _physical_sizes(file.ome_metadata)
    return extras


def _physical_sizes(xml: str) -> dict[str, Any]:
    """The size of a voxel and the time step of the first image of an OME description."""
    for element in ElementTree.fromstring(xml).iter():
        if element.tag.endswith("}Pixels"):
            found = {
                name: text
                for name, text in element.attrib.items()
                if re.match("PhysicalSize|TimeIncrement", name)
            }
            return {name: text if name.endswith("Unit") else float(text) for name, text in found.items()}
    return {}


def _without_alpha(path: Path, values: np.ndarray, axes: str) -> tuple[np.ndarray, str]:
    opaque = np.iinfo(values.dtype).max if values.dtype.kind in "ui" else 1
    if np.any(values[..., -1] != opaque):
        raise InputError(
            f"cannot read '{path}': its alpha channel is not opaque everywhere, "
            "expected a picture without transparency (give missing pixels as a mask)"
        )
    values = values[..., :-1]
    return (values[..., 0], axes[:-1]) if values.shape[-1] == 1 else (values, axes)
