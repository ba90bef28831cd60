"""The idx format of MNIST: a magic number, the shape, and the bytes; plain or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from kruskal.errors import InputError

UNSIGNED_BYTES = 0x08
GZIPPED = b"\x1f\x8b"
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
PREFIXES = {"train": "train", "test": "t10k"}


def find_idx(path: Path, part: str) -> tuple[Path, Path] | None:
    """The files with images and labels, of ``part`` in a folder or next to each other; None without any.

    Parameters
    ----------
    path : a folder that may hold MNIST's four files, or a file that may hold images
    part : ``train`` or ``test``
    """
    if path.is_file():
        if IMAGES not in path.name:
            return None
        images = path
    else:
        prefix = PREFIXES[part]
        names = sorted(path.glob(f"*-{IMAGES}*"))
        if not names:
            return None
        chosen = [name for name in names if name.name in (f"{prefix}-{IMAGES}", f"{prefix}-{IMAGES}.gz")]
        if not chosen:
            raise InputError(f"folder '{path}' has idx files but no '{prefix}-{IMAGES}' (or with .gz)")
        images = chosen[0]
    stem = images.name.removesuffix(".gz").replace(IMAGES, LABELS)
    for name in (stem, f"{stem}.gz"):
        if (images.parent / name).is_file():
            return images, images.parent / name
    raise InputError(f"'{images}' has no labels: '{images.parent / stem}' (or with .gz) is missing")


def read_idx(path: Path) -> np.ndarray:
    """Read an idx file of unsigned bytes, gzipped or not, as a uint8 array of any order."""
    try:
        content = path.read_bytes()
        if content[:2] == GZIPPED:
            content = gzip.decompress(content)
        zero, kind, order = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{order}I", content, 4)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise InputError(f"cannot read '{path}': it is not a complete idx file, plain or gzipped") from error
    start = 4 + 4 * order
    if zero != 0 or kind != UNSIGNED_BYTES or order == 0:
        raise InputError(f"cannot read '{path}': it is not an idx file of unsigned bytes")
    if len(content) - start != math.prod(shape):
        raise InputError(
            f"cannot read '{path}': it holds {len(content) - start} bytes, "
            f"expected {math.prod(shape)} for shape {shape}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape).copy()
