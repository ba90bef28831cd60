"""Labelled pictures: a folder with one subfolder per class, an npz file with X and y, or idx files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kruskal.data.datasets import BACKGROUND_CLASS
from kruskal.data.files import PathLike, read, unreadable
from kruskal.data.formats import pictures as picture_format
from kruskal.data.formats import tiff
from kruskal.data.idx import find_idx, read_idx
from kruskal.data.resize import check_size, resize
from kruskal.errors import DAMAGE, InputError, one_of

SUFFIXES = (*picture_format.SUFFIXES, *tiff.SUFFIXES)
COLOURS = ("grey", "colour")
PARTS = ("train", "test")
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
"""Brightness of red, green and blue (ITU-R BT.601)."""


class LabelledPictures(NamedTuple):
    """Pictures and their classes.

    Attributes
    ----------
    X : (N, rows, columns, channels) float32; unsigned integers are scaled to 0 .. 1
    y : (N,) int64, index into ``classes``
    classes : names, sorted
    paths : (N,) where each picture came from, for a folder; else empty
    """

    X: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    paths: tuple[Path, ...] = ()


def labelled_pictures(
    path: PathLike,
    *,
    size: int | tuple[int, int] | None = None,
    colour: str | None = None,
    part: str = "train",
    skip: tuple[str, ...] = (BACKGROUND_CLASS,),
) -> LabelledPictures:
    """Read pictures with their classes.

    Parameters
    ----------
    path : path-like
        A folder with one subfolder of pictures per class (the layout of Caltech 101); an ``.npz`` file with
        ``X`` (N, rows, columns) or (N, rows, columns, channels) and ``y`` (N,), numbers or strings; a folder
        with MNIST's idx files, or the file with the images itself, next to which the labels lie.
    size : int or (rows, columns), optional
        Resize all pictures to this; needed if they differ.
    colour : {"grey", "colour"}, optional
        Make all pictures grey (one channel) or colour (three); by default colour if any of them is.
    part : {"train", "test"}
        Which idx files of a folder.
    skip : names of subfolders that are not classes; hidden ones never are.

    Raises
    ------
    InputError
        One sentence: no such path, no pictures, one class only, a broken picture, different sizes without
        ``size``.
    """
    if colour is not None:
        one_of("colour", colour, COLOURS)
    one_of("part", part, PARTS)
    wanted = None if size is None else check_size(size)
    source = Path(path)
    if not source.exists():
        raise InputError(f"cannot read '{path}': no such file or folder")
    if source.is_file() and source.suffix.lower() == ".npz":
        return _with_size(_from_npz(source), wanted, colour)
    idx = find_idx(source, part)
    if idx is not None:
        images, labels = read_idx(idx[0]), read_idx(idx[1])
        if images.ndim != 3:
            raise InputError(f"cannot read '{idx[0]}': shape {images.shape} are no pictures")
        return _with_size(_arrays(source, images, labels), wanted, colour)
    if source.is_file():
        raise InputError(
            f"cannot read '{path}': expected a folder with one subfolder per class, an .npz file or idx files"
        )
    return _from_folder(source, wanted, colour, skip)


def _from_folder(
    folder: Path, size: tuple[int, int] | None, colour: str | None, skip: tuple[str, ...]
) -> LabelledPictures:
    """One picture at a time into one array; without a size or colour a first look at all of them."""
    found = _listing(folder, skip)
    paths = [path for _, path in found]
    if size is None or colour is None:
        shapes = [_shape(path) for path in paths]
        if size is None:
            size = _common_size(paths, shapes)
        if colour is None:
            colour = "colour" if any(len(shape) == 3 for shape in shapes) else "grey"
    X = np.empty((len(paths), *size, 3 if colour == "colour" else 1), dtype=np.float32)
    for n, path in enumerate(paths):
        X[n] = resize(with_channels(unit_range(read_picture(path)), colour), size)
    classes = tuple(dict.fromkeys(name for name, _ in found))
    number = {name: c for c, name in enumerate(classes)}
    y = np.array([number[name] for name, _ in found], dtype=np.int64)
    return LabelledPictures(X, y, classes, tuple(paths))


def _listing(folder: Path, skip: tuple[str, ...]) -> list[tuple[str, Path]]:
    """(class, picture), sorted."""
    subfolders = sorted(
        child
        for child in folder.iterdir()
        if child.is_dir() and not child.name.startswith(".") and child.name not in skip
    )
    if not subfolders:
        raise InputError(f"folder '{folder}' has no subfolders, expected one per class with pictures in it")
    found = []
    for subfolder in subfolders:
        pictures = sorted(child for child in subfolder.iterdir() if child.suffix.lower() in SUFFIXES)
        if not pictures:
            raise InputError(f"folder '{subfolder}' holds no pictures, expected files {', '.join(SUFFIXES)}")
        found += [(subfolder.name, picture) for picture in pictures]
    if len(subfolders) < 2:
        raise InputError(
            f"folder '{folder}' has one class only ('{subfolders[0].name}'), expected at least two subfolders"
        )
    return found


def read_picture(path: Path) -> np.ndarray:
    """A grey picture (rows, columns) or a colour one (rows, columns, 3)."""
    values = read(path).values
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] not in (1, 3)):
        raise InputError(f"'{path}' has shape {values.shape}, expected a grey or a colour picture")
    return values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values


def _shape(path: Path) -> tuple[int, ...]:
    """Shape of a picture from its header, where that tells all."""
    from PIL import Image

    if path.suffix.lower() in picture_format.SUFFIXES:
        try:
            with Image.open(path) as picture:
                if picture.mode in ("L", "RGB"):
                    grey = picture.mode == "L"
                    return (picture.height, picture.width) if grey else (picture.height, picture.width, 3)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise unreadable(path, error) from error
    return read_picture(path).shape


def _common_size(paths: list[Path], shapes: list[tuple[int, ...]]) -> tuple[int, int]:
    first = shapes[0][:2]
    for path, shape in zip(paths, shapes, strict=True):
        if shape[:2] != first:
            raise InputError(
                f"'{path}' has {shape[0]} x {shape[1]} pixels and '{paths[0]}' {first[0]} x {first[1]}: "
                "give size, to which all pictures are resized"
            )
    return first[0], first[1]


def unit_range(values: np.ndarray) -> np.ndarray:
    """Unsigned integers scaled by the largest of their type to 0 .. 1; others as they are."""
    if values.dtype.kind == "u":
        return values.astype(np.float32) / np.float32(np.iinfo(values.dtype).max)
    return values.astype(np.float32)


def with_channels(values: np.ndarray, colour: str) -> np.ndarray:
    """A picture (rows, columns) or (rows, columns, 3) with one channel or three."""
    if colour == "colour":
        return np.repeat(values[..., None], 3, axis=2) if values.ndim == 2 else values
    return (values if values.ndim == 2 else values @ LUMA)[..., None]


def _from_npz(path: Path) -> LabelledPictures:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in ("X", "y") if name not in file]
            if missing:
                raise InputError(
                    f"cannot read '{path}': it has no entry '{missing[0]}', expected pictures X and classes y"
                )
            X, y = file["X"], file["y"]
    except DAMAGE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot read '{path}': it is not an npz file of plain arrays") from error
    return _arrays(path, X, y)


def _arrays(path: Path, X: np.ndarray, y: np.ndarray) -> LabelledPictures:
    if X.dtype.kind not in "uif" or X.ndim not in (3, 4) or X.size == 0:
        raise InputError(
            f"'{path}': X is {X.dtype} of shape {X.shape}, expected numbers (N, rows, columns) or "
            "(N, rows, columns, channels)"
        )
    if y.shape != (len(X),):
        raise InputError(f"'{path}': y has shape {y.shape}, expected ({len(X)},), a class for every picture")
    if y.dtype.kind not in "uiUb":
        raise InputError(f"'{path}': y is {y.dtype}, expected classes as whole numbers or strings")
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise InputError(f"'{path}': X has entries that are NaN or infinite, expected finite values")
    names, index = np.unique(y, return_inverse=True)
    if len(names) < 2:
        raise InputError(f"'{path}' has one class only ('{names[0]}'), expected at least two")
    values = unit_range(X)
    values = values[..., None] if values.ndim == 3 else values
    return LabelledPictures(values, index.astype(np.int64), tuple(str(name) for name in names))


def _with_size(
    labelled: LabelledPictures, size: tuple[int, int] | None, colour: str | None
) -> LabelledPictures:
    """Arrays that were read whole, in the size and colour asked for."""
    return labelled._replace(X=fitted(labelled.X, size, colour))


def fitted(X: np.ndarray, size: tuple[int, int] | None, colour: str | None) -> np.ndarray:
    """Pictures (N, rows, columns, channels) in the size and colour asked for."""
    if colour is not None:
        if X.shape[3] not in (1, 3):
            raise InputError(f"pictures with {X.shape[3]} channels cannot be made {colour}")
        if colour == "grey" and X.shape[3] == 3:
            X = (X @ LUMA)[..., None]
        elif colour == "colour" and X.shape[3] == 1:
            X = np.repeat(X, 3, axis=3)
    if size is not None and X.shape[1:3] != size:
        X = np.stack([resize(picture, size) for picture in X])
    return X
