"""What the options of classify mean, and how its commands answer."""

from __future__ import annotations

import json as json_format
from enum import StrEnum
from pathlib import Path
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import typer

from kruskal.cli import options
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.data import LabelledPictures
    from kruskal.estimators.picture_classifier import PictureClassifier


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


def numbers(text: str, option: str) -> list[int]:
    """Whole numbers such as ``50,200``."""
    words = [word.strip() for word in text.split(",")]
    if not all(options.is_whole(word) and int(word) > 0 for word in words):
        raise InputError(f"{option} takes whole numbers such as 50,200, not {shortened(text)}.")
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


def described(
    classifier: PictureClassifier,
    labelled: LabelledPictures,
    used: list[int],
    rest: list[int],
    written: list[Path],
) -> dict[str, Any]:
    """What was learned, and how well it does where it was not."""
    deep = classifier.deep
    told: dict[str, Any] = {
        "pictures": len(used), "classes": len(classifier.classes_), "atoms": deep.n_atoms_,
        "parameters": deep.n_parameters_, "features": classifier.coef_.shape[1],
        "written": [str(path) for path in written],
    }  # fmt: skip
    if rest:
        wanted = [labelled.classes[c] for c in labelled.y[rest]]
        found = classifier.predict(labelled.X[rest]).tolist()
        told |= {"tested": len(rest), **accuracy(found, wanted, classifier.classes_.tolist())}
    return told


def accuracy(predicted: list[str], wanted: list[str], known: list[str]) -> dict[str, Any]:
    """The share of right answers; a note instead if the model knows none of the classes that are wanted."""
    if set(wanted).isdisjoint(known):
        given, learned = (", ".join(sorted(set(names))) for names in (wanted, known))
        return {
            "note": f"no accuracy, as none of the classes of the pictures ({shortened(given)}) occurs in "
            f"the model ({shortened(learned)})"
        }
    return {"accuracy": sum(a == b for a, b in zip(predicted, wanted)) / len(wanted)}
