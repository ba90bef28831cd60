"""Pictures whose classes may or may not be known, for prediction."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kruskal.data.files import PathLike
from kruskal.data.idx import find_idx
from kruskal.data.labelled import (
    SUFFIXES,
    fitted,
    labelled_pictures,
    read_picture,
    unit_range,
    with_channels,
)
from kruskal.data.resize import resize
from kruskal.errors import DAMAGE, InputError


class NamedPictures(NamedTuple):
    """Pictures and what they are called.

    Attributes
    ----------
    X : (N, rows, columns, channels) float32
    names : (N,) paths within the folder, or numbers from 0
    labels : (N,) names of their classes, or None
    """

    X: np.ndarray
    names: list[str]
    labels: list[str] | None


def named_pictures(
    path: PathLike, *, size: tuple[int, int], colour: str | None, part: str = "test"
) -> NamedPictures:
    """Read pictures in one size and colour.

    ``path`` is whatever `kruskal.data.labelled_pictures` reads, and then the classes are known; or a folder
    of pictures without subfolders, or an ``.npz`` file with ``X`` alone.
    """
    source = Path(path)
    if source.is_dir():
        files = sorted(child for child in source.iterdir() if child.suffix.lower() in SUFFIXES)
        if files:
            shown = "grey" if colour is None else colour
            read = [resize(with_channels(unit_range(read_picture(file)), shown), size) for file in files]
            return NamedPictures(np.stack(read), [file.name for file in files], None)
        subfolders = [child for child in source.iterdir() if child.is_dir() and child.name[0] != "."]
        if not subfolders and find_idx(source, part) is None:
            raise InputError(f"folder '{path}' holds no pictures, expected files {', '.join(SUFFIXES)}")
    if source.is_file() and source.suffix.lower() == ".npz":
        X = _array(source)
        if X is not None:
            return NamedPictures(fitted(X, size, colour), [str(n) for n in range(len(X))], None)
    found = labelled_pictures(source, size=size, colour=colour, part=part)
    names = [str(file.relative_to(source)) for file in found.paths] or [str(n) for n in range(len(found.X))]
    return NamedPictures(found.X, names, [found.classes[c] for c in found.y])


def _array(path: Path) -> np.ndarray | None:
    """``X`` of an npz file without ``y``, (N, rows, columns, channels); None if there is a ``y``."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if "y" in file or "X" not in file:
                return None
            X = file["X"]
    except DAMAGE as error:
        raise InputError(f"cannot read '{path}': it is not an npz file of plain arrays") from error
    if X.dtype.kind not in "uif" or X.ndim not in (3, 4) or X.size == 0:
        raise InputError(
            f"'{path}': X is {X.dtype} of shape {X.shape}, expected numbers (N, rows, columns) or "
            "(N, rows, columns, channels)"
        )
    values = unit_range(X)
    return values[..., None] if values.ndim == 3 else values
