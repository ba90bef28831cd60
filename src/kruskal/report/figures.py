"""All figures of a restoration, written to a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kruskal.data import atomic_path
from kruskal.errors import InputError
from kruskal.report.canvas import drawing_style, png_bytes
from kruskal.report.charts import draw_ranks, draw_traces
from kruskal.report.curves import draw_curve_uncertainty, draw_restored_curve
from kruskal.report.dictionary import draw_dictionary
from kruskal.report.pictures import draw_restoration, draw_uncertainty
from kruskal.report.planes import long_axes
from kruskal.report.result import Learned, Result


def write_figures(
    directory: str | Path,
    result: Result,
    *,
    observed_values: ArrayLike,
    observed: ArrayLike,
    reference: ArrayLike | None = None,
) -> list[Path]:
    """Draw everything there is to see and write it as PNG files.

    The same input gives the same bytes.

    Parameters
    ----------
    directory : str or Path
        Folder for the files; it is made if it does not exist, its parent must exist.
    result : Result
        A restoration.
    observed_values : array_like, the shape of result.mean
        The data; what stands at missing entries has no influence.
    observed : array_like of bool, the same shape
        True where the data were given.
    reference : array_like, the same shape, optional
        The truth.

    Returns
    -------
    list of Path
        restoration.png, uncertainty.png, dictionary.png, ranks.png and, when there are traces, traces.png.
    """
    shape = np.asarray(result.mean).shape
    values = _checked("observed_values", observed_values, shape)
    mask = _checked("observed", observed, shape).astype(bool)
    truth = None if reference is None else _checked("reference", reference, shape)
    directory = Path(directory)
    _check_folder(directory)

    flat = len(long_axes(shape)) < 2
    draw_before_after = draw_restored_curve if flat else draw_restoration
    draw_spread = draw_curve_uncertainty if flat else draw_uncertainty
    drawings = {
        "restoration": lambda: draw_before_after(result, values, mask, truth),
        "uncertainty": lambda: draw_spread(result, values, mask, truth),
        "dictionary": lambda: draw_dictionary(result),
        "ranks": lambda: draw_ranks(result),
        "traces": lambda: draw_traces(result),
    }
    return _draw_and_write(directory, drawings)


def write_dictionary_figures(directory: str | Path, learned: Learned, colour: bool) -> list[Path]:
    """Draw a dictionary as `write_figures` does: dictionary.png, ranks.png and traces.png.

    Parameters
    ----------
    directory : str or Path
        Folder for the files; it is made if it does not exist, its parent must exist.
    learned : Learned
        A dictionary.
    colour : bool
        Whether the last axis of the data holds three colours.

    Returns
    -------
    list of Path
    """
    directory = Path(directory)
    _check_folder(directory)
    drawings = {
        "dictionary": lambda: draw_dictionary(learned, colour),
        "ranks": lambda: draw_ranks(learned),
        "traces": lambda: draw_traces(learned),
    }
    return _draw_and_write(directory, drawings)


def _draw_and_write(directory: Path, drawings: dict[str, Callable[[], Any]]) -> list[Path]:
    contents = {}
    for name, draw in drawings.items():
        with drawing_style():
            figure = draw()
            if figure is not None:
                contents[f"{name}.png"] = png_bytes(figure)
    _write(directory, contents)
    return [directory / name for name in contents]


def _write(directory: Path, contents: dict[str, bytes]) -> None:
    """Write the files; a folder that did not exist before is there with all of them or not at all."""
    if directory.is_dir():
        for name, content in contents.items():
            with atomic_path(directory / name) as temporary:
                temporary.write_bytes(content)
        return
    with atomic_path(directory) as folder:
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)


def _checked(name: str, array: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.asarray(array)
    if array.shape != shape:
        raise InputError(f"{name} has the shape {array.shape}, but the restored array has {shape}.")
    return array


def _check_folder(directory: Path) -> None:
    """Complain about a folder that cannot be made, before the drawing begins."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"the figures cannot go to {directory}, because that is a file and not a folder.")
    if not directory.absolute().parent.is_dir():
        raise InputError(f"the figures cannot go to {directory}, because its parent folder does not exist.")
