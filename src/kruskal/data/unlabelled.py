"""Pictures whose classes may or may not be known, for prediction."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kruskal.data.files import PathLike
from kruskal.data.idx import find_idx
from kruskal.data.labelled import (
    SUFFIXES,
    Given,
    fitted,
    labelled_pictures,
    read_npz,
    read_picture,
    stacked_pictures,
    with_channels,
)
from kruskal.data.resize import resize
from kruskal.errors import InputError


class NamedPictures(NamedTuple):
    """Pictures and what they are called.

    Attributes
    ----------
    X : (N, rows, columns, channels) float32
    names : (N,) paths within the folder, or numbers from 0
    labels : (N,) names of their classes, or None
    given : types, sizes and channels as they were
    """

    X: np.ndarray
    names: list[str]
    labels: list[str] | None
    given: Given


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
            found, given = [], Given.nothing()
            for file in files:
                values = read_picture(file)
                found.append(resize(with_channels(given.scaled(values, values.shape), shown), size))
            given.refuse_mixed(path)
            return NamedPictures(np.stack(found), [file.name for file in files], None, given)
        subfolders = [child for child in source.iterdir() if child.is_dir() and child.name[0] != "."]
        if not subfolders and find_idx(source, part) is None:
            raise InputError(f"folder '{path}' holds no pictures, expected files {', '.join(SUFFIXES)}")
    if source.is_file() and source.suffix.lower() == ".npz":
        alone = read_npz(source, ("X",)) if not read_npz(source, ("y",)) else {}
        if alone:
            X, given = stacked_pictures(source, **alone)
            return NamedPictures(fitted(X, size, colour), [str(n) for n in range(len(X))], None, given)
    known = labelled_pictures(source, size=size, colour=colour, part=part)
    names = [str(file.relative_to(source)) for file in known.paths] or [str(n) for n in range(len(known.X))]
    return NamedPictures(known.X, names, [known.classes[c] for c in known.y], known.given)
