"""Figures that several experiments draw: curves beside the paper's, and maps of differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kruskal.experiments.tables import DOUBTFUL, Score
from kruskal.report.canvas import (
    ACCENT,
    HEADING,
    INK,
    QUIET,
    SECOND,
    THIRD,
    drawing_style,
    new_figure,
    place_axes,
    png_bytes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODEL_COLOURS = {"kfa": ACCENT, "bpfa": SECOND, "mgp-cp": QUIET, "cdf-kfa": THIRD}
SETTING_STYLES = {"default": "o-", "paper": "s--"}
PAPER_STYLE = "x:"
_PANEL_WIDTH, _PANEL_HEIGHT, _GAP, _LEFT, _BOTTOM, _LEGEND = 600, 420, 100, 96, 96, 280
_STRONGEST = 2.0


class Curve(NamedTuple):
    """Points of one colour: ``x``, ``y`` (None is left out), ``spread`` of y or nothing, and their look."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    spread: Sequence[float | None] = ()
    colour: str = INK
    style: str = "o-"


class Panel(NamedTuple):
    """Axes with curves; ``x_ticks`` and their names replace the automatic ones."""

    title: str
    x_label: str
    curves: Sequence[Curve]
    logarithmic: bool = False
    x_ticks: Sequence[float] = ()
    x_names: Sequence[str] = ()


def draw_curves(title: str, subtitle: str, panels: Sequence[Panel], y_label: str = "PSNR in dB") -> bytes:
    """Panels side by side with one legend for all, as a PNG file."""
    width = _LEFT + len(panels) * (_PANEL_WIDTH + _GAP) + _LEGEND
    height = HEADING + 60 + _PANEL_HEIGHT + _BOTTOM
    named: dict[str, Any] = {}
    with drawing_style():
        figure = new_figure(width, height, title, subtitle)
        for place, panel in enumerate(panels):
            left = _LEFT + place * (_PANEL_WIDTH + _GAP)
            axes = place_axes(figure, left, HEADING + 60, _PANEL_WIDTH, _PANEL_HEIGHT)
            _draw_panel(axes, panel)
            if place == 0:
                axes.set_ylabel(y_label)
            named |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
        if named:
            corner = (1 - (_LEGEND + 40) / width, 1 - (HEADING + 60) / height)
            figure.legend(list(named.values()), list(named), loc="upper left", bbox_to_anchor=corner)
        return png_bytes(figure)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.grid(True, color=QUIET, alpha=0.15, linewidth=0.5)
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.minorticks_off()
    for curve in panel.curves:
        spread = curve.spread or [None] * len(curve.x)
        points = [(x, y, s or 0.0) for x, y, s in zip(curve.x, curve.y, spread) if y is not None]
        if points:
            x, y, bars = zip(*points)
            axes.errorbar(
                x, y, bars if any(bars) else None, fmt=curve.style, color=curve.colour, label=curve.label,
                markersize=3.5, elinewidth=0.7, capsize=2,
            )  # fmt: skip
    if panel.x_ticks:
        axes.set_xticks(panel.x_ticks, panel.x_names or [f"{tick:g}" for tick in panel.x_ticks])


class ScoreMap(NamedTuple):
    """Scores in rows and columns, with the names of both."""

    title: str
    row_names: Sequence[str]
    column_names: Sequence[str]
    scores: Sequence[Sequence[Score]]


def draw_differences(
    title: str, subtitle: str, maps: Sequence[ScoreMap], row_label: str, column_label: str
) -> bytes:
    """Maps of ours less the paper's, two beside each other, as a PNG file.

    All have one colour scale, which ends at 2 so that a single large difference does not pale the others.
    """
    known = [
        abs(score.difference)
        for one in maps
        for row in one.scores
        for score in row
        if score.difference is not None and not score.doubtful
    ]
    largest = min(max(max(known, default=1.0), 0.1), _STRONGEST)
    columns = min(len(maps), 2)
    rows = (len(maps) + 1) // 2
    step = _PANEL_HEIGHT + 150
    with drawing_style():
        figure = new_figure(_LEFT + columns * (_PANEL_WIDTH + _GAP), HEADING + rows * step, title, subtitle)
        for place, one in enumerate(maps):
            left = _LEFT + place % 2 * (_PANEL_WIDTH + _GAP)
            top = HEADING + 50 + place // 2 * step
            axes = place_axes(figure, left, top, _PANEL_WIDTH, _PANEL_HEIGHT)
            _draw_map(axes, one, largest)
            axes.set_xlabel(column_label)
            axes.set_ylabel(row_label)
        return png_bytes(figure)


def _draw_map(axes: Axes, one: ScoreMap, largest: float) -> None:
    import numpy as np

    differences = np.array(
        [[np.nan if s.difference is None else s.difference for s in row] for row in one.scores], dtype=float
    )
    axes.imshow(differences, cmap="RdBu", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    axes.set_title(one.title)
    axes.set_xticks(range(len(one.column_names)), one.column_names)
    axes.set_yticks(range(len(one.row_names)), one.row_names)
    for i, row in enumerate(one.scores):
        for j, score in enumerate(row):
            if score.difference is not None:
                strong = abs(score.difference) > 0.6 * largest
                text = f"{score.difference:+.2f}{DOUBTFUL * score.doubtful}"
                axes.text(j, i, text, ha="center", va="center", size=7, color="white" if strong else INK)
            else:
                axes.text(j, i, "-", ha="center", va="center", size=7, color=QUIET)
