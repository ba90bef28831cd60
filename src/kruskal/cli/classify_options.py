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
    from kruskal.data.labelled import Given
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
        raise InputError(f"{option} takes whole numbers of at least 1 such as 1,2, not {shortened(text)}.")
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
    if len(set(chosen)) < len(chosen):
        raise InputError(f"--feature-layers must name every layer once, not {text!r}.")
    return chosen


def kruskal_rank(rank: int | None, model: Model) -> dict[str, int]:
    """The option rank of the layers, 1 unless the user says so; free atoms have none."""
    if model is Model.ckfa:
        return {"rank": 1 if rank is None else rank}
    if rank is not None:
        raise InputError(
            f"--rank is {rank}, but the atoms of --model cfa have no Kruskal terms: leave --rank out, or "
            "give --model ckfa."
        )
    return {}


def chosen_part(part: Part | None, pictures: Path) -> str:
    """Which of MNIST's files, the test pictures unless the user says so; there is no choice elsewhere."""
    from kruskal.data.idx import IMAGES

    if part is not None and pictures.exists() and not any(pictures.glob(f"*-{IMAGES}*")):
        raise InputError(
            f"--part is {part.value}, but {pictures} is no folder with MNIST's files: leave --part out."
        )
    return Part.test.value if part is None else part.value


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
        told |= {"tested": len(rest), **accuracy(found, wanted, classifier.classes_.tolist())[0]}
    return told


def made_alike(given: Given, image_shape: tuple[int, int, int]) -> list[str]:
    """What was done to pictures to make them like those that a model was learned from."""
    rows, columns, channels = image_shape
    found, others = [], sorted(given.sizes - {(rows, columns)})
    if others:
        more = f" (and {options.counted(len(others) - 1, 'other size')})" if len(others) > 1 else ""
        found.append(
            f"pictures of {options.shape_text(others[0])}{more} were resized to {rows}x{columns}, "
            "the size of those that were learned from"
        )
    if channels == 1 and 3 in given.channels:
        found.append("colour pictures were made grey, as those that were learned from")
    return found


def accuracy(predicted: list[str], wanted: list[str], known: list[str]) -> tuple[dict[str, float], list[str]]:
    """The share of right answers, unless the model knows none of the classes that are wanted; and notes."""
    unknown = sorted(set(wanted) - set(known))
    given, learned = (shortened(", ".join(names)) for names in (unknown, sorted(set(known))))
    if set(unknown) == set(wanted):
        return {}, [
            f"no accuracy, as none of the classes of the pictures ({given}) occurs in the model ({learned})"
        ]
    share = {"accuracy": sum(a == b for a, b in zip(predicted, wanted)) / len(wanted)}
    if not unknown:
        return share, []
    return share, [f"pictures of classes that the model does not know ({given}) count as errors"]
