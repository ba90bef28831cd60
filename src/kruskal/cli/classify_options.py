"""What the options of classify mean, and how its commands answer."""

from __future__ import annotations

import json as json_format
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kruskal.cli import options
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.data import LabelledPictures


class Model(StrEnum):
    """Which atoms: Kruskal tensors or free ones."""

    ckfa = "ckfa"
    cfa = "cfa"


class Features(StrEnum):
    """Where features come from: one pass through the layers, or averages over Gibbs sweeps."""

    bottom_up = "bottom-up"
    gibbs = "gibbs"


class Usage(StrEnum):
    """Whether all pictures use the atoms alike, or every one has a usage of its own."""

    shared = "shared"
    by_image = "by_image"


class Colour(StrEnum):
    """Whether pictures are made grey or colour."""

    grey = "grey"
    colour = "colour"


class Part(StrEnum):
    """Which of MNIST's files."""

    train = "train"
    test = "test"


def tell(told: dict[str, Any], json: bool, quiet: bool) -> None:
    """Print a summary, as the user wants it."""
    if json:
        typer.echo(json_format.dumps(told, allow_nan=False))
    elif not quiet:
        for name, value in told.items():
            text = f"{100 * value:.2f} %" if name == "accuracy" else value
            text = ", ".join(map(str, value)) if isinstance(value, list) else text
            typer.echo(f"{name}: {text}")


def check_outputs(output: Path, suffix: str, figures: Path | None, source: Path) -> None:
    """Complain about outputs that cannot be written, or that would overwrite the input."""
    from kruskal.cli.checks import check_folder, check_new_folder

    if output.suffix.lower() != suffix:
        raise InputError(f"--output must name a {suffix[1:]} file, not {str(output)!r}.")
    if output.exists() and source.exists() and output.samefile(source):
        raise InputError(f"--output {output} would overwrite {source}; give another name.")
    if output.is_dir():
        raise InputError(f"--output {output} is a folder.")
    check_folder(output.absolute().parent, f"--output {output}")
    if figures is not None:
        check_new_folder(figures, f"--figures {figures}")


def numbers(text: str, option: str) -> list[int]:
    """Whole numbers such as ``50,200``."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise InputError(f"{option} takes whole numbers such as 50,200, not {text!r}.")
    return [int(word) for word in words]


def shapes(text: str, option: str) -> list[tuple[int, ...]]:
    """Sizes such as ``8x8,6x6``."""
    shapes = [options.parse_shape(word, option) for word in text.split(",")]
    if any(len(shape) != 2 for shape in shapes):
        raise InputError(f"{option} takes pairs of numbers such as 8x8,6x6, not {text!r}.")
    return shapes


def chosen_layers(text: str | None, depth: int) -> list[int]:
    """Numbers of layers such as ``1,2``, of so many; all of them if nothing is said."""
    chosen = list(range(1, depth + 1)) if text is None else numbers(text, "--feature-layers")
    if max(chosen) > depth:
        raise InputError(f"--feature-layers must be from 1 to {depth}, not {text!r}.")
    return chosen


def split(labelled: LabelledPictures, per_class: int | None, seed: int) -> tuple[list[int], list[int]]:
    """Which pictures are learned from, so many of each class or all of them, and which are a test."""
    from kruskal.cli.errors import named_by_options
    from kruskal.data import split_by_class

    if per_class is None:
        return list(range(len(labelled.y))), []
    with named_by_options("the pictures"):
        used, rest = split_by_class(labelled.y, per_class, seed=seed, classes=labelled.classes)
    return used.tolist(), rest.tolist()


def picture_size(text: str | None) -> tuple[int, int] | None:
    """Rows and columns from ``28`` or ``28x28``."""
    if text is None:
        return None
    size = options.parse_shape(text, "--size")
    if len(size) > 2:
        raise InputError(f"--size takes one or two numbers such as 28 or 28x28, not {text!r}.")
    return size[0], size[-1]
