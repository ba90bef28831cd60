"""From atoms of any order to one flat picture: arrays in, arrays out, nothing is drawn here."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SLICE_GAP = 2
TILE_GAP = 8
MOST_SLICES = 8
MOST_TILES = 256

_LARGEST_WIDTH = 1440
_LARGEST_HEIGHT = 1200
_SMALLEST_SCALE = 4
_LARGEST_TILE = 112


class Plan(NamedTuple):
    """How a mosaic is laid out."""

    scale: int
    """Pixels per entry."""
    columns: int
    shown: int
    """Number of tiles that find room."""


def normalise(atom: NDArray[Any]) -> NDArray[np.float64]:
    """Scale an atom to [-1, 1] around 0, with the entry of largest size positive.

    The likelihood does not change when an atom and its codes change sign together, so the sign is ours.

    Parameters
    ----------
    atom : ndarray, any shape
        One atom d_k.

    Returns
    -------
    ndarray, the same shape
        All zero for a zero atom.
    """
    atom = np.asarray(atom, dtype=np.float64)
    extreme = atom.flat[np.argmax(np.abs(atom))]
    return atom / extreme if extreme != 0 else np.zeros_like(atom)


def thin(atom: NDArray[Any], colour: bool) -> NDArray[Any]:
    """Keep at most `MOST_SLICES` evenly spaced slices along every axis beyond the first two.

    Parameters
    ----------
    atom : ndarray, any order
        One atom.
    colour : bool
        Whether the last axis is colour, which is always kept.

    Returns
    -------
    ndarray, the same order
    """
    for axis in range(2, atom.ndim - int(colour)):
        length = atom.shape[axis]
        if length > MOST_SLICES:
            kept = np.linspace(0, length - 1, MOST_SLICES).round().astype(int)
            atom = np.take(atom, kept, axis=axis)
    return atom


def unfold(atom: NDArray[Any], colour: bool = False, scale: int = 1, gap: int = 0) -> NDArray[np.float64]:
    """Lay the slices of an atom of order 2 or more side by side.

    The first two axes make the picture. The third axis puts its slices next to each other, the fourth below
    each other and so on, each time in the direction in which the picture is shorter.

    Parameters
    ----------
    atom : ndarray, order 2 or more
        One atom; with colour the order is at least 3 and the last axis has length 3.
    colour : bool
        Whether the last axis is colour.
    scale : int
        Pixels per entry.
    gap : int
        Pixels between two slices, filled with NaN; every further axis gets as many more.

    Returns
    -------
    ndarray, shape (height, width) or (height, width, 3)
    """
    picture = np.asarray(atom, dtype=np.float64).repeat(scale, axis=0).repeat(scale, axis=1)
    sides = list(atom.shape[:2])
    level = 0
    while picture.ndim > 2 + int(colour):
        level += 1
        n_slices = picture.shape[2]
        direction = 0 if sides[0] < sides[1] else 1
        sides[direction] *= n_slices
        picture = _join([picture[:, :, index] for index in range(n_slices)], direction, level * gap)
    return picture


def plan_mosaic(n_tiles: int, height: int, width: int) -> Plan:
    """Choose columns and scale so that as many tiles as possible are shown, and these as large as possible.

    Parameters
    ----------
    n_tiles : int
        Number of tiles that would like to be shown, at least 1.
    height, width : int
        Size of one tile in entries.

    Returns
    -------
    Plan
    """
    n_tiles = min(n_tiles, MOST_TILES)
    largest_scale = max(_SMALLEST_SCALE, _LARGEST_TILE // max(min(height, width), 1))
    best = Plan(scale=1, columns=1, shown=1)
    for columns in range(1, n_tiles + 1):
        room = (_LARGEST_WIDTH + TILE_GAP) // columns - TILE_GAP
        scale = min(room // width, largest_scale, _LARGEST_HEIGHT // height)
        if scale < 1 or (scale < _SMALLEST_SCALE and columns > 1):
            continue
        rows = (_LARGEST_HEIGHT + TILE_GAP) // (scale * height + TILE_GAP)
        rows = min(rows, -(-n_tiles // columns))
        candidate = Plan(scale, columns, min(n_tiles, rows * columns))
        if (candidate.shown, candidate.scale, columns) > (best.shown, best.scale, best.columns):
            best = candidate
    return best


def mosaic(tiles: list[NDArray[np.float64]], columns: int, gap: int = TILE_GAP) -> NDArray[np.float64]:
    """Put tiles of one size into rows, read like text, with a margin around everything.

    Parameters
    ----------
    tiles : list of ndarray, each (height, width) or (height, width, 3)
        At least one tile.
    columns : int
        Tiles per row.
    gap : int
        Pixels between two tiles.

    Returns
    -------
    ndarray, two or three axes
        NaN between and around the tiles.
    """
    blank = np.full_like(tiles[0], np.nan)
    rows = []
    for start in range(0, len(tiles), columns):
        row = tiles[start : start + columns]
        row = row + [blank] * (columns - len(row))
        rows.append(_join(row, 1, gap))
    picture = _join(rows, 0, gap)
    margin = ((gap, gap), (gap, gap), (0, 0))
    return np.pad(picture, margin[: picture.ndim], constant_values=np.nan)


def _join(parts: list[NDArray[np.float64]], direction: int, gap: int) -> NDArray[np.float64]:
    """Join arrays along an axis with NaN between them."""
    shape = list(parts[0].shape)
    shape[direction] = gap
    between = np.full(shape, np.nan)
    pieces = [parts[0]]
    for part in parts[1:]:
        pieces += [between, part]
    return np.concatenate(pieces, axis=direction)
