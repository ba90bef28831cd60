"""Pictures of one size: area averages where they shrink, linear interpolation where they grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from kruskal.errors import InputError, shown, whole_number

LONGEST = 2**14
"""Rows or columns, at most: one such picture takes a gigabyte as it is."""


def check_size(size: Any) -> tuple[int, int]:
    """(rows, columns) from a whole number or a pair of them."""
    pair = (size, size) if np.ndim(size) == 0 else tuple(size)
    if len(pair) != 2:
        raise InputError(f"size must be a whole number or (rows, columns), not {shown(size)}")
    return whole_number("size", pair[0], 1, LONGEST), whole_number("size", pair[1], 1, LONGEST)


def resize(picture: np.ndarray, size: int | tuple[int, int]) -> np.ndarray:
    """A picture (rows, columns) or (rows, columns, channels) with ``size`` rows and columns, float32.

    An axis that shrinks is averaged over the area of its new pixels, which leaves no aliasing; one that
    grows is interpolated linearly. The proportions of the picture are not kept.
    """
    rows, columns = check_size(size)
    values = np.asarray(picture, dtype=np.float32)
    if values.ndim not in (2, 3):
        raise InputError(f"picture has shape {values.shape}, expected (rows, columns) or with channels last")
    if values.shape[:2] == (rows, columns):
        return values
    if values.ndim == 2:
        return _resize_plane(values, rows, columns)
    planes = [_resize_plane(values[..., c], rows, columns) for c in range(values.shape[2])]
    return np.stack(planes, axis=-1)


def _resize_plane(plane: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """One axis after the other, each with the filter that fits it."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(plane))
    for wide, high in ((columns, image.height), (columns, rows)):
        shrinks = wide < image.width or high < image.height
        image = image.resize((wide, high), Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR)
    return np.asarray(image)
