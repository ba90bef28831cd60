"""The sheet all figures are drawn on: one typography, pixel-exact places, PNG files without a date.

Figures are laid out in pixels from the upper left corner, so that an entry of an array covers a whole number
of pixels wherever that is possible. matplotlib is imported when the first figure is drawn, never before.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 160
MARGIN = 36
HEADING = 104
INK = "#24292f"
QUIET = "#6e7781"
FAINT = "#d8dde3"
ACCENT = "#2f6690"
SECOND = "#d1603d"
THIRD = "#5b8e7d"

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 8.5,
    "axes.titlepad": 5,
    "axes.formatter.useoffset": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "savefig.facecolor": "white",
}


@contextlib.contextmanager
def drawing_style() -> Iterator[None]:
    """Use the style of this package inside the block, whatever the user's own matplotlib settings are."""
    import matplotlib.style

    with matplotlib.style.context(_STYLE, after_reset=True):
        yield


def new_figure(width: int, height: int, title: str, subtitle: str) -> Figure:
    """Return an empty white figure with a heading.

    Parameters
    ----------
    width, height : int
        Size in pixels; the upper `HEADING` pixels belong to the heading.
    title, subtitle : str
        The heading: what is shown, and one quiet line about it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    left = MARGIN / width
    figure.text(left, 1 - 24 / height, title, size=11, weight="bold", va="top")
    figure.text(left, 1 - 60 / height, subtitle, size=8, color=QUIET, va="top")
    return figure


def place_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add axes at a place given in pixels from the upper left corner of the figure."""
    full_width, full_height = figure.get_size_inches() * DOTS_PER_INCH
    box = (left / full_width, 1 - (top + height) / full_height, width / full_width, height / full_height)
    return figure.add_axes(box)


def place_text(figure: Figure, left: float, top: float, text: str, **options: Any) -> None:
    """Write text at a place given in pixels from the upper left corner of the figure."""
    full_width, full_height = figure.get_size_inches() * DOTS_PER_INCH
    figure.text(left / full_width, 1 - top / full_height, text, **options)


def png_bytes(figure: Figure) -> bytes:
    """Return the figure as a PNG file; the same figure always gives the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()
