"""The data sets of the paper, read from a folder of the user; none is part of the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from kruskal.data.catalogue import DATASETS, Dataset
from kruskal.data.files import read
from kruskal.data.idx import read_idx
from kruskal.data.metadata import Loaded
from kruskal.errors import InputError

VARIABLE = "KRUSKAL_DATA"
HOW_TO_NAME = f"set {VARIABLE} to that folder"
ArrayName = Literal["barbara256", "barbara512", "castle", "castle_damaged", "amino", "brainweb"]


class Mnist(NamedTuple):
    """Handwritten digits: images (n, 28, 28) and labels (n,), uint8."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


BACKGROUND_CLASS = "BACKGROUND_Google"


def locate(name: str) -> Path:
    """The path of a data set: its file, or its folder if it has several (mnist, caltech101).

    The data folder is the environment variable KRUSKAL_DATA, else ``../shared/data`` seen from the current
    folder or one of its parents.

    Raises
    ------
    InputError
        For an unknown name, or when something is missing; the sentence says where the data set can be had.
    """
    dataset = _dataset(name)
    folder = _data_folder()
    if folder is None:
        wanted = next(iter(dataset.files), None) or dataset.folders[0]
        raise InputError(
            f"data set '{name}' needs {wanted} in a data folder: {HOW_TO_NAME}; "
            f"the data can be had from {dataset.home}"
        )
    if dataset.folders:
        for candidate in dataset.folders:
            if (folder / candidate).is_dir():
                return folder / candidate
        raise _missing(name, dataset, folder / dataset.folders[0])
    for file in dataset.files:
        if not (folder / file).is_file():
            raise _missing(name, dataset, folder / file)
    paths = [folder / file for file in dataset.files]
    return paths[0].parent if name == "mnist" else paths[0]


@overload
def load(name: ArrayName) -> Loaded: ...
@overload
def load(name: Literal["mnist"]) -> Mnist: ...
@overload
def load(name: Literal["caltech101"]) -> list[tuple[Path, str]]: ...
@overload
def load(name: str) -> Any: ...
def load(name: str) -> Any:
    """Load a data set.

    Returns
    -------
    Loaded
        For barbara256, barbara512, castle, castle_damaged (with ``observed``), amino and brainweb.
    Mnist
        For mnist: four arrays.
    list of (Path, str)
        For caltech101: every picture with its class, sorted, without the background class. The pictures may
        have any size; `kruskal.data.read` reads them.
    """
    path = locate(name)
    if name == "mnist":
        files = [path / Path(file).name for file in DATASETS[name].files]
        return Mnist(*(read_idx(file) for file in files))
    if name == "caltech101":
        return _pictures(path)
    loaded = read(path, key=DATASETS[name].key)
    if name == "castle_damaged":
        # The file marks nothing: an entry was kept where it agrees with the original.
        original = read(locate("castle")).values
        return Loaded(loaded.values, loaded.values == original, loaded.metadata)
    return loaded


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise InputError(f"data set '{name}' is unknown, expected one of {', '.join(DATASETS)}")
    return DATASETS[name]


def _data_folder() -> Path | None:
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise InputError(f"{VARIABLE} is '{named}', expected an existing folder")
        return Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents):
        candidate = folder.parent / "shared" / "data"
        if candidate.is_dir():
            return candidate
    return None


def _missing(name: str, dataset: Dataset, path: Path) -> InputError:
    return InputError(
        f"data set '{name}' is incomplete: '{path}' is missing (the data folder is named by {VARIABLE}); "
        f"it can be had from {dataset.home}"
    )


def _pictures(folder: Path) -> list[tuple[Path, str]]:
    classes = sorted(child for child in folder.iterdir() if child.is_dir() and child.name != BACKGROUND_CLASS)
    return [
        (picture, one.name)
        for one in classes
        for picture in sorted(one.iterdir())
        if picture.suffix.lower() in (".jpg", ".jpeg")
    ]
