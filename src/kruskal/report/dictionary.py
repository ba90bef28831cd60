"""The dictionary as a mosaic of its atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kruskal.report.canvas import ACCENT, FAINT, HEADING, MARGIN, new_figure, place_axes
from kruskal.report.result import Learned, order_by_usage
from kruskal.report.tiles import (
    MOST_SLICES,
    SLICE_GAP,
    TILE_GAP,
    mosaic,
    normalise,
    plan_mosaic,
    thin,
    unfold,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMALLEST_WIDTH = 900
# Neither white nor grey: a constant atom is a white tile and must not vanish.
_BACKGROUND = (0.76, 0.83, 0.91)
_CELL_WIDTH, _CELL_HEIGHT, _CELL_COLUMNS, _MOST_CELLS = 164, 96, 8, 96


def draw_dictionary(result: Learned, colour: bool | None = None) -> Figure:
    """Draw the used atoms, the most used first.

    Atoms of order 1 are small curves, of order 2 grey tiles; with three colours in the last axis of the data
    and of the atoms they are colour tiles; the slices of all others lie side by side. Each atom is scaled on
    its own, grey is zero, and the entry of largest size is positive. Axes of length 1 are dropped.

    Parameters
    ----------
    result : Learned
        A restoration or a dictionary.
    colour : bool, optional
        Whether the last axis of the data holds three colours; by default that of the restored array decides.

    Returns
    -------
    matplotlib.figure.Figure
    """
    dictionary = np.asarray(result.dictionary)
    order = order_by_usage(result)
    if order.size == 0:
        subtitle = f"None of the {len(dictionary)} atoms is in use: the data were explained as noise."
        return new_figure(_SMALLEST_WIDTH, HEADING, "Dictionary", subtitle)
    long_axes = tuple(length for length in dictionary.shape[1:] if length > 1)
    atoms = [normalise(dictionary[index]).reshape(long_axes) for index in order]
    if colour is None:
        colour = np.asarray(getattr(result, "mean", dictionary)).shape[-1] == 3
    colour = colour and len(long_axes) >= 3 and dictionary.shape[-1] == 3
    if len(long_axes) == 1:
        return _draw_curves(atoms, len(dictionary))
    if len(long_axes) == 0:
        atoms = [atom.reshape(1, 1) for atom in atoms]
    return _draw_tiles(atoms, len(dictionary), colour)


def _draw_tiles(atoms: list[NDArray[np.float64]], n_atoms: int, colour: bool) -> Figure:
    """Draw atoms of order 2 or more, each in [-1, 1]."""
    whole_shape = atoms[0].shape
    atoms = [thin(atom, colour) for atom in atoms]
    note = f"; {MOST_SLICES} slices of each" if atoms[0].shape != whole_shape else ""
    height, width = unfold(atoms[0], colour).shape[:2]
    plan = plan_mosaic(len(atoms), height, width)
    tiles = [unfold(atom, colour, plan.scale, SLICE_GAP) for atom in atoms[: plan.shown]]
    picture = mosaic(tiles, plan.columns, TILE_GAP + 4 * max(0, len(whole_shape) - int(colour) - 3))
    background = np.isnan(picture)
    if not colour:
        picture, background = (
            np.repeat(array[..., np.newaxis], 3, axis=2) for array in (picture, background)
        )
    picture = np.where(background, _BACKGROUND, 0.5 + 0.5 * np.where(background, 0.0, picture))
    height, width = picture.shape[:2]

    title, subtitle = _heading(len(atoms), n_atoms, plan.shown)
    figure_width = max(width + 2 * MARGIN, _SMALLEST_WIDTH)
    figure = new_figure(figure_width, height + HEADING + MARGIN, title, subtitle + note)
    axes = place_axes(figure, MARGIN, HEADING, width, height)
    axes.imshow(picture, interpolation="nearest", aspect="auto")
    axes.set_axis_off()
    return figure


def _draw_curves(atoms: list[NDArray[np.float64]], n_atoms: int) -> Figure:
    """Draw atoms of order 1 as curves, all on one pair of axes measured in pixels (many axes are slow)."""
    from matplotlib.collections import LineCollection

    shown = min(len(atoms), _MOST_CELLS)
    rows = -(-shown // _CELL_COLUMNS)
    width, height = _CELL_COLUMNS * _CELL_WIDTH, rows * _CELL_HEIGHT
    curves, zeros = [], []
    for place, atom in enumerate(atoms[:shown]):
        row, column = divmod(place, _CELL_COLUMNS)
        across = column * _CELL_WIDTH + np.linspace(0, _CELL_WIDTH - 24, len(atom))
        middle = (row + 0.5) * _CELL_HEIGHT
        curves.append(np.column_stack([across, middle - 0.4 * _CELL_HEIGHT * atom]))
        zeros.append(np.array([[across[0], middle], [across[-1], middle]]))

    title, subtitle = _heading(len(atoms), n_atoms, shown)
    figure = new_figure(width + 2 * MARGIN, height + HEADING + MARGIN, title, subtitle)
    axes = place_axes(figure, MARGIN, HEADING, width, height)
    axes.add_collection(LineCollection(zeros, colors=FAINT, linewidths=0.7))
    axes.add_collection(LineCollection(curves, colors=ACCENT, linewidths=1.0))
    axes.set_xlim(-2, width - 2)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    return figure


def _heading(n_used: int, n_atoms: int, shown: int) -> tuple[str, str]:
    """Return the title and a line that says what was left out."""
    unused = n_atoms - n_used
    title = f"Dictionary: {n_used} of {n_atoms} atoms in use"
    subtitle = "Most used first" if shown == n_used else f"The {shown} most used, most used first"
    if unused:
        subtitle += f"; {unused} unused left out"
    return title, subtitle
