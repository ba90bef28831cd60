"""Arrays kept beside the results, and figures that show them in rows."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kruskal.data import atomic_path
from kruskal.report.canvas import (
    HEADING,
    MARGIN,
    drawing_style,
    new_figure,
    place_axes,
    place_text,
    png_bytes,
)
from kruskal.report.tiles import mosaic, normalise, unfold

_CAPTION, _GAP, _NARROWEST = 30, 24, 900
# Neither white nor grey: a constant atom or an unknown pixel must not look like a picture's own value.
_BACKGROUND = (0.76, 0.83, 0.91)


def keep_arrays(folder: Path, key: str, **arrays: np.ndarray) -> None:
    """Write arrays of a cell to ``KEY.npz`` for `read_arrays`."""
    with atomic_path(folder / f"{key}.npz") as temporary:
        np.savez_compressed(temporary, **arrays)  # type: ignore[arg-type]


def read_arrays(folder: Path, key: str) -> dict[str, np.ndarray] | None:
    """The arrays of a cell, or None when its file is not there or is no longer readable."""
    try:
        with np.load(folder / f"{key}.npz") as file:
            return dict(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


class Tile(NamedTuple):
    """A picture, (height, width) or (height, width, 3) in [0, 1], NaN where there is nothing; its caption."""

    caption: str
    picture: np.ndarray


def grey(values: np.ndarray, low: float, high: float, scale: int = 1) -> np.ndarray:
    """A slice (height, width) with ``low`` black and ``high`` white, ``scale`` pixels per entry."""
    picture = np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


def atom_mosaic(atoms: np.ndarray, scale: int, gap: int = 2, colour: bool = False) -> np.ndarray:
    """All atoms as tiles of a square in their order, grey is zero; see `kruskal.report.tiles`.

    Parameters
    ----------
    atoms : (K, m_1, .., m_T) with T >= 2; the slices of atoms of higher order lie side by side
    scale : pixels per entry
    gap : pixels between two atoms
    colour : whether the last axis is colour
    """
    tiles = [0.5 + 0.5 * unfold(normalise(atom), colour, scale) for atom in atoms]
    height, width = tiles[0].shape[:2]
    columns = round((len(tiles) * (height + gap) / (width + gap)) ** 0.5)
    return mosaic(tiles, max(1, columns), gap)


def draw_gallery(title: str, subtitle: str, rows: Sequence[Sequence[Tile | None]]) -> bytes:
    """Rows of pictures, one pixel per pixel, as a PNG file; None leaves a place empty.

    Places of one column are as wide as its widest picture, those of a row as high as its highest.
    """
    n_columns = max(len(row) for row in rows)
    tiles = [[*row, *[None] * (n_columns - len(row))] for row in rows]
    widths = [max([0, *(row[j].picture.shape[1] for row in tiles if row[j])]) for j in range(n_columns)]  # type: ignore[union-attr]
    heights = [max([0, *(tile.picture.shape[0] for tile in row if tile)]) for row in tiles]
    width = 2 * MARGIN + sum(widths) + _GAP * (n_columns - 1)
    height = HEADING + MARGIN + sum(heights) + len(tiles) * (_CAPTION + _GAP)
    with drawing_style():
        figure = new_figure(max(width, _NARROWEST), height, title, subtitle)
        top = HEADING
        for row, row_height in zip(tiles, heights):
            left = MARGIN
            for tile, column_width in zip(row, widths):
                if tile is not None:
                    place_text(figure, left, top, tile.caption, size=7.5, va="top")
                    size = tile.picture.shape
                    axes = place_axes(figure, left, top + _CAPTION, size[1], size[0])
                    axes.imshow(_coloured(tile.picture), interpolation="nearest", aspect="auto")
                    axes.set_axis_off()
                left += column_width + _GAP
            top += row_height + _CAPTION + _GAP
        return png_bytes(figure)


def _coloured(picture: np.ndarray) -> np.ndarray:
    """(height, width, 3) with the background where there is nothing."""
    if picture.ndim == 2:
        picture = np.repeat(picture[..., np.newaxis], 3, axis=2)
    return np.where(np.isnan(picture), _BACKGROUND, picture)
