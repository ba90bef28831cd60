"""Labelled pictures: a folder with one subfolder per class, an npz file with X and y, or idx files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from kruskal.data.arrays import refuse_huge
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
FLOATS = "floats"
NO_LABEL = -1
"""Among the classes that `kruskal.DGDN` learns from; here every picture has one."""
SMALLEST_SHARE = 1e-3
"""Of the range of their type that whole numbers have to use."""
_LARGEST_BESIDE_WHOLE = 2.0
"""Of floats in a folder in which other pictures are whole numbers and become 0 .. 1."""


class Given(NamedTuple):
    """How pictures were given, which is not seen any more once they have one scale, size and colour.

    Attributes
    ----------
    largest : by type, such as uint8 (or `FLOATS`, whatever their precision): the largest magnitude
    sizes : (rows, columns) that occur
    channels : numbers of channels that occur
    """

    largest: dict[str, float]
    sizes: set[tuple[int, int]]
    channels: set[int]

    @classmethod
    def nothing(cls) -> Given:
        """Of no pictures yet."""
        return cls({}, set(), set())

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the numbers, sorted."""
        return tuple(sorted(self.largest))

    def scaled(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The `unit_range` of one or more pictures of this shape, of which note is taken."""
        name = FLOATS if values.dtype.kind == "f" else values.dtype.name
        # not np.abs, which leaves the smallest number of a type negative
        largest = max(float(values.max()), -float(values.min()))
        self.largest[name] = max(largest, self.largest.get(name, 0.0))
        self.sizes.add((shape[0], shape[1]))
        self.channels.add(shape[2] if len(shape) == 3 else 1)
        return unit_range(values)

    def refuse_small(self, path: PathLike) -> None:
        """Complain about whole numbers that are next to zero once they are divided."""
        for name, largest in self.largest.items():
            if name != FLOATS and 0.0 < largest < SMALLEST_SHARE * np.iinfo(name).max:
                raise InputError(
                    f"'{path}' has pictures of whole numbers up to {largest:.0f} of type {name}, by whose "
                    "largest number they are divided, expected a smaller type such as uint8, or floats"
                )

    def refuse_mixed(self, path: PathLike) -> None:
        """Complain about floats beside whole numbers, which become 0 .. 1, on another scale than these."""
        whole = [name for name in self.types if name != FLOATS]
        largest = self.largest.get(FLOATS, 0.0)
        if whole and largest > _LARGEST_BESIDE_WHOLE:
            raise InputError(
                f"'{path}' has pictures of floats up to {largest:g} beside others of {' and '.join(whole)}, "
                "which are divided by the largest number of their type, expected floats from 0 to 1 there"
            )


class LabelledPictures(NamedTuple):
    """Pictures and their classes.

    Attributes
    ----------
    X : (N, rows, columns, channels) float32; whole numbers are divided by the largest of their type
    y : (N,) int64, index into ``classes``
    classes : names, sorted
    paths : (N,) where each picture came from, for a folder; else empty
    given : types, sizes and channels before that
    """

    X: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    paths: tuple[Path, ...]
    given: Given


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
        ``size``, whole numbers that use next to nothing of the range of their type.
    """
    if colour is not None:
        one_of("colour", colour, COLOURS)
    one_of("part", part, PARTS)
    found = _read(path, size, colour, part, skip)
    found.given.refuse_small(path)
    return found


def _read(
    path: PathLike, size: int | tuple[int, int] | None, colour: str | None, part: str, skip: tuple[str, ...]
) -> LabelledPictures:
    """From whatever lies there."""
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
    given = Given.nothing()
    for n, path in enumerate(paths):
        values = read_picture(path)
        X[n] = resize(with_channels(given.scaled(values, values.shape), colour), size)
    given.refuse_mixed(folder)
    classes = tuple(dict.fromkeys(name for name, _ in found))
    number = {name: c for c, name in enumerate(classes)}
    y = np.array([number[name] for name, _ in found], dtype=np.int64)
    return LabelledPictures(X, y, classes, tuple(paths), given)


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
    _refuse_no_numbers(values, f"'{path}'")
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
    """Whole numbers divided by the largest of their type, a picture's to 0 .. 1; floats as they are."""
    if values.dtype.kind in "ui":
        return values.astype(np.float32) / np.float32(np.iinfo(values.dtype).max)
    return values.astype(np.float32)


def with_channels(values: np.ndarray, colour: str) -> np.ndarray:
    """A picture (rows, columns) or (rows, columns, 3) with one channel or three."""
    if colour == "colour":
        return np.repeat(values[..., None], 3, axis=2) if values.ndim == 2 else values
    return (values if values.ndim == 2 else values @ LUMA)[..., None]


def _refuse_no_numbers(values: np.ndarray, name: str) -> None:
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise InputError(f"{name} has entries that are NaN or infinite, expected finite values")
        refuse_huge(values, name)


def read_npz(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Those of the named arrays that an npz file has."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names if name in file}
    except DAMAGE as error:
        raise InputError(f"cannot read '{path}': it is not an npz file of plain arrays") from error


def _from_npz(path: Path) -> LabelledPictures:
    arrays = read_npz(path, ("X", "y"))
    for name in ("X", "y"):
        if name not in arrays:
            raise InputError(
                f"cannot read '{path}': it has no entry '{name}', expected pictures X and classes y"
            )
    return _arrays(path, **arrays)


def _arrays(path: Path, X: np.ndarray, y: np.ndarray) -> LabelledPictures:
    values, given = stacked_pictures(path, X)
    if y.shape != (len(X),):
        raise InputError(f"'{path}': y has shape {y.shape}, expected ({len(X)},), a class for every picture")
    if y.dtype.kind not in "uiUb":
        raise InputError(f"'{path}': y is {y.dtype}, expected classes as whole numbers or strings")
    unknown = int(np.count_nonzero(y == NO_LABEL)) if y.dtype.kind == "i" else 0
    if unknown:
        raise InputError(
            f"'{path}': y is {NO_LABEL} for {unknown} of {len(y)} pictures, which means no label elsewhere, "
            "expected classes with other numbers: leave out pictures without a class, or all of y to predict"
        )
    names, index = np.unique(y, return_inverse=True)
    if len(names) < 2:
        raise InputError(f"'{path}' has one class only ('{names[0]}'), expected at least two")
    return LabelledPictures(values, index.astype(np.int64), tuple(str(name) for name in names), (), given)


def stacked_pictures(path: Path, X: np.ndarray) -> tuple[np.ndarray, Given]:
    """Pictures (N, rows, columns, channels) from the array in a file, and how they were given."""
    if X.dtype.kind not in "uif" or X.ndim not in (3, 4) or X.size == 0:
        raise InputError(
            f"'{path}': X is {X.dtype} of shape {X.shape}, expected numbers (N, rows, columns) or "
            "(N, rows, columns, channels)"
        )
    _refuse_no_numbers(X, f"'{path}': X")
    given = Given.nothing()
    values = given.scaled(X, X.shape[1:])
    return values[..., None] if values.ndim == 3 else values, given


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
