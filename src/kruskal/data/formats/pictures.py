"""Pictures: png, jpg and bmp, through Pillow."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kruskal.data.formats.base import Content
from kruskal.data.keys import refuse_key
from kruskal.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

FAMILY = "picture"
SUFFIXES: tuple[str, ...] = (".png", ".jpg", ".jpeg", ".bmp")
PILLOW_NAMES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".bmp": "BMP"}
LONGEST_JPEG_SIDE = 65535
JPEG_OPTIONS = {"quality": 95, "subsampling": 0}


def read(path: Path, key: str | None) -> Content:
    """Read a grey (rows, columns) or colour (rows, columns, 3) picture as uint8 or uint16.

    Palette pictures become colour, or grey if all their colours are; one-bit pictures become 0 and 255; an
    alpha channel is dropped if it is opaque everywhere.
    """
    from PIL import Image

    refuse_key(path, key)
    _refuse_deep_colour(path)
    with Image.open(path, formats=("PNG", "JPEG", "BMP", "DIB")) as picture:
        frames = getattr(picture, "n_frames", 1)
        if frames > 1 and picture.format != "MPO":  # the second frame of an MPO file is a preview
            raise InputError(
                f"cannot read '{path}': it is an animation of {frames} frames, expected one picture"
            )
        extras = {name: picture.info[name] for name in ("icc_profile", "exif") if picture.info.get(name)}
        if "dpi" in picture.info:
            extras["dpi"] = tuple(float(value) for value in picture.info["dpi"])
        return Content(_pixels(path, picture), extras)


def stored_dtype(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.dtype:
    """uint8, or uint16 for a grey png; everything else is refused."""
    colour = len(shape) == 3 and shape[-1] == 3
    if not (colour or len(shape) == 2 or (len(shape) == 3 and shape[-1] == 1)):
        raise InputError(
            f"cannot write shape {shape} to '{path}': a picture has shape (rows, columns) "
            "or (rows, columns, 3), use .tif or .npy"
        )
    if path.suffix.lower() in (".jpg", ".jpeg") and max(shape[:2]) > LONGEST_JPEG_SIDE:
        raise InputError(
            f"cannot write shape {shape} to '{path}': a jpg side has at most 65535 pixels, use .png"
        )
    if dtype == np.uint8:
        return dtype
    if dtype == np.uint16 and path.suffix.lower() == ".png" and not colour:
        return dtype
    expected = "uint8 (grey or colour) or uint16 (grey)" if path.suffix.lower() == ".png" else "uint8"
    raise InputError(
        f"cannot write {dtype} values to '{path}': this format holds {expected}, use .tif or .npy"
    )


def dtype_by_range(path: Path, values: np.ndarray) -> np.dtype:
    """uint8 for values that already are on the scale 0 to 255; everything else is refused.

    Parameters
    ----------
    path : Path
        For the message.
    values : array
        Values whose dtype does not say how bright they are. Floats within 0 to 1 are refused too: as uint8
        the picture would be black.
    """
    low, high = float(np.min(values)), float(np.max(values))  # NaN if there is one
    if not (low >= 0 and high <= 255) or (values.dtype.kind == "f" and 0 < high <= 1):
        raise InputError(
            f"cannot write {values.dtype} values from {low:.4g} to {high:.4g} to '{path}': "
            "a picture needs values from 0 to 255, use .tif or .npy"
        )
    return np.dtype(np.uint8)


def write(path: Path, values: np.ndarray, extras: Mapping[str, Any]) -> None:
    """Write with resolution, colour profile and exif; jpg with quality 95 and full colour resolution."""
    from PIL import Image

    name = PILLOW_NAMES[path.suffix.lower()]
    options: dict[str, Any] = dict(JPEG_OPTIONS) if name == "JPEG" else {}
    dpi = _dpi(extras)
    if dpi is not None:
        options["dpi"] = dpi
    if name != "BMP":
        options.update({key: extras[key] for key in ("icc_profile", "exif") if key in extras})
        # Bytes 16 to 20 name the colour space of a profile: a grey picture cannot use one for colour.
        expected = b"RGB " if values.ndim == 3 and values.shape[-1] == 3 else b"GRAY"
        if options.get("icc_profile", b"")[16:20] != expected:
            options.pop("icc_profile", None)
    if values.ndim == 3 and values.shape[-1] == 1:
        values = values[..., 0]
    packed = io.BytesIO()  # written to a file itself, Pillow overlooks a disk that becomes full
    Image.fromarray(values).save(packed, format=name, **options)
    with open(path, "wb") as file:
        file.write(packed.getbuffer())


def _pixels(path: Path, picture: Image.Image) -> np.ndarray:
    mode, see_through = picture.mode, picture.info.get("transparency")
    if mode.startswith("I"):  # 16-bit grey; older versions of Pillow call it "I"
        values = np.asarray(picture).astype(np.uint16)
        if see_through is not None and np.any(values == see_through):
            raise _transparent(path)
        return values
    if mode in ("L", "RGB") and see_through is None:
        return np.asarray(picture)
    if mode == "1" and see_through is None:
        return np.asarray(picture.convert("L"))
    if mode in ("1", "L", "RGB", "P", "PA", "LA", "La", "RGBA", "RGBa"):
        values = np.asarray(picture.convert("RGBA"))
        if np.any(values[..., 3] != 255):
            raise _transparent(path)
        colours = values[..., :3]
        grey_palette = mode in ("P", "PA") and np.all(colours == colours[..., :1])
        return colours[..., 0] if grey_palette or mode in ("1", "L", "LA", "La") else colours
    raise InputError(f"cannot read '{path}': its colours are {mode}, expected grey or RGB")


def _transparent(path: Path) -> InputError:
    return InputError(
        f"cannot read '{path}': its alpha channel is not opaque everywhere, "
        "expected a picture without transparency (give missing pixels as a mask)"
    )


def _refuse_deep_colour(path: Path) -> None:
    """Pillow silently drops the low byte of 16-bit colour; rather say so."""
    with open(path, "rb") as file:
        header = file.read(26)
    if header[:8] == b"\x89PNG\r\n\x1a\n" and len(header) == 26 and header[24] == 16 and header[25] != 0:
        raise InputError(f"cannot read '{path}': 16-bit colour png is not supported, convert it to .tif")


def _dpi(extras: Mapping[str, Any]) -> tuple[float, float] | None:
    """Dots per inch, also from a TIFF's resolution."""
    if "dpi" in extras:
        return extras["dpi"]
    centimetres_per_unit = {"INCH": 1.0, "CENTIMETER": 2.54}.get(extras.get("resolution_unit", ""))
    if "resolution" in extras and centimetres_per_unit:
        horizontal, vertical = extras["resolution"]
        return horizontal * centimetres_per_unit, vertical * centimetres_per_unit
    return None
