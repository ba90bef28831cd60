"""The idx format of MNIST: a magic number, the shape, and the bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from kruskal.errors import InputError

UNSIGNED_BYTES = 0x08


def read_idx(path: Path) -> np.ndarray:
    """Read a gzipped idx file of unsigned bytes as a uint8 array of any order."""
    try:
        with gzip.open(path, "rb") as file:
            content = file.read()
        zero, kind, order = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{order}I", content, 4)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise InputError(f"cannot read '{path}': it is not a complete gzipped idx file") from error
    start = 4 + 4 * order
    if zero != 0 or kind != UNSIGNED_BYTES or order == 0:
        raise InputError(f"cannot read '{path}': it is not an idx file of unsigned bytes")
    if len(content) - start != math.prod(shape):
        raise InputError(
            f"cannot read '{path}': it holds {len(content) - start} bytes, "
            f"expected {math.prod(shape)} for shape {shape}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape).copy()
