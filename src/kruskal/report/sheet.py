"""A table of pictures: one row per plane of the array, one column per kind of picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from kruskal.report.canvas import FAINT, HEADING, MARGIN, QUIET, new_figure, place_axes, place_text
from kruskal.report.planes import Plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_GAP = 28
_TITLE_ROOM = 30
_LABEL_ROOM = 44
_BAR_ROOM = 120
_SMALLEST_WIDTH = 210
_SMALLEST_FIGURE = 900


class Scale(NamedTuple):
    """A colour scale; columns that hold the same object share it and its colour bar."""

    colours: str
    """Name of the colour map; entries without a value are pale grey."""
    low: float
    high: float


class Column(NamedTuple):
    """One column of pictures: a title and one picture per plane."""

    title: str
    pictures: list[NDArray[Any]]
    """Shape (height, width) with a colour scale, (height, width, 3) in [0, 1] without."""
    scale: Scale | None = None


class Sheet(NamedTuple):
    """A drawn figure and the free place to the right of the pictures."""

    figure: Figure
    right: int
    top: int


def draw_sheet(title: str, subtitle: str, planes: list[Plane], columns: list[Column], room: int = 0) -> Sheet:
    """Put the pictures into a table: one row per plane, one column per kind of picture.

    A colour bar stands at the right of the last column that uses its scale.

    Parameters
    ----------
    title, subtitle : str
        The heading.
    planes : list of Plane
        The rows.
    columns : list of Column
        The columns, each with one picture per plane.
    room : int
        Pixels that are left free at the right of the pictures.

    Returns
    -------
    Sheet
    """
    label_room = _LABEL_ROOM if len(planes) > 1 else 0
    column_width = max(_SMALLEST_WIDTH, *(plane.width for plane in planes))
    lefts, left = [], MARGIN + label_room
    for place in range(len(columns)):
        lefts.append(left)
        left += column_width + (_BAR_ROOM if _ends_scale(columns, place) else _GAP)
    right = left - _GAP
    top = HEADING + _TITLE_ROOM
    full_height = top + sum(plane.height + _GAP for plane in planes) - _GAP + MARGIN
    if room:
        full_height = max(full_height, top + 460)
    figure = new_figure(max(right + room + MARGIN, _SMALLEST_FIGURE), full_height, title, subtitle)
    for plane_place, plane in enumerate(planes):
        if label_room:
            place_text(
                figure,
                MARGIN + 12,
                top + plane.height / 2,
                plane.label,
                rotation=90,
                ha="center",
                va="center",
                size=7,
                color=QUIET,
                family="DejaVu Sans Mono",
            )
        for place, (column, left) in enumerate(zip(columns, lefts, strict=True)):
            axes = place_axes(figure, left, top, plane.width, plane.height)
            image = _show(axes, column.pictures[plane_place], plane, column.scale)
            if plane_place == 0:
                axes.set_title(column.title)
                if _ends_scale(columns, place):
                    bar = place_axes(figure, left + plane.width + 14, top, 14, plane.height)
                    figure.colorbar(image, cax=bar).outline.set_visible(False)
        top += plane.height + _GAP
    return Sheet(figure, right, HEADING + _TITLE_ROOM)


def _show(axes: Axes, picture: NDArray[Any], plane: Plane, scale: Scale | None) -> AxesImage:
    """Fill the axes with a picture: crisp entries when there is room for them, averages when there is not."""
    import matplotlib

    rows, columns = picture.shape[:2]
    fits = rows <= plane.height and columns <= plane.width
    image = axes.imshow(
        picture,
        cmap=None if scale is None else matplotlib.colormaps[scale.colours].with_extremes(bad=FAINT),
        vmin=None if scale is None else scale.low,
        vmax=None if scale is None else scale.high,
        aspect="auto",
        interpolation="nearest" if fits else "auto",
        interpolation_stage="rgba",
    )
    axes.set_axis_off()
    return image


def _ends_scale(columns: list[Column], place: int) -> bool:
    """Tell whether the colour bar of a column stands right of it (and not of the next one)."""
    scale = columns[place].scale
    return scale is not None and (place + 1 == len(columns) or columns[place + 1].scale is not scale)
