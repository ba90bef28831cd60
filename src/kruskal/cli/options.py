"""The options that several commands share, and how their text is understood."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from reprlib import repr as shortened
from typing import Annotated

import typer

from kruskal.errors import InputError

MODEL, RUN, INPUT, OUTPUT = "Model", "Run", "Input", "Output"


class Model(StrEnum):
    """Which dictionary: Kruskal atoms or free Gaussian atoms; or one Kruskal tensor for everything."""

    kfa = "kfa"
    bpfa = "bpfa"
    mgp_cp = "mgp-cp"


class AtomModel(StrEnum):
    """Which dictionary, where there must be one."""

    kfa = "kfa"
    bpfa = "bpfa"


class Start(StrEnum):
    """Where the sampler begins."""

    pca = "pca"
    random = "random"


class Setting(StrEnum):
    """Which defaults a run starts from."""

    default = "default"
    paper = "paper"


class Codes(StrEnum):
    """How the codes are drawn: z with s integrated out, or the paper's form."""

    collapsed = "collapsed"
    uncollapsed = "uncollapsed"


class Grouping(StrEnum):
    """Which patches make a region."""

    place = "place"
    likeness = "likeness"


class Surrogate(StrEnum):
    """What is remembered of the batches that are not at hand."""

    exact = "exact"
    cdf = "cdf"
    incremental = "incremental"


class Channels(StrEnum):
    """What a patch holds of a short last axis: all of it, a part as of any other, or one entry."""

    keep = "keep"
    cut = "cut"
    apart = "apart"


class MaskIs(StrEnum):
    """What a true entry of a mask file means."""

    observed = "observed"
    missing = "missing"


InputFile = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        show_default=False,
        help="png, jpg, tiff, npy, npz, mat, nii(.gz), h5 or zarr; NaN means missing. "
        "An npz written by 'kruskal corrupt' brings its own mask.",
    ),
]
KeyName = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="NAME",
        help="Name of the array inside an npz, mat, h5 or zarr.",
        rich_help_panel=INPUT,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        help="Number of threads; the result does not depend on it.",
        show_default="all cores",
        rich_help_panel=RUN,
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress, no notes and no summary.", rich_help_panel=OUTPUT)
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object instead of the summary.", rich_help_panel=OUTPUT),
]


def is_whole(word: str) -> bool:
    """Whether a word is a whole number that an array could count: 1 to 18 digits, no sign."""
    return re.fullmatch("[0-9]{1,18}", word) is not None


def parse_shape(text: str, option: str) -> tuple[int, ...]:
    """Read a shape such as ``8x8x3``.

    Parameters
    ----------
    text : str
        What the user wrote.
    option : str
        Name of the option, for the sentence.

    Returns
    -------
    tuple of int
        All of them at least 1.
    """
    parts = text.strip().lower().split("x")
    if not all(is_whole(part) for part in parts):
        raise InputError(
            f"{option} takes whole numbers joined by x, such as 8x8 or 8x8x3, not {shortened(text)}."
        )
    shape = tuple(int(part) for part in parts)
    if min(shape) < 1:
        raise InputError(f"{option} must be at least 1 along every axis, not {text!r}.")
    return shape


def shape_text(shape: Sequence[int]) -> str:
    """Write a shape the way `parse_shape` reads it.

    >>> shape_text((8, 8, 3))
    '8x8x3'
    """
    return "x".join(str(side) for side in shape)


def counted(number: int, word: str, several: str | None = None) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "sweep"), counted(2, "sweep"), counted(3, "batch", "batches")
    ('1 sweep', '2 sweeps', '3 batches')
    """
    return f"{number} {word if number == 1 else several or word + 's'}"


def parse_stride(text: str, option: str = "--stride") -> int | tuple[int, ...]:
    """Read a stride: one number for all axes (``2``) or one per axis (``1x1x3``)."""
    shape = parse_shape(text, option)
    return shape[0] if len(shape) == 1 else shape


def parse_alpha(text: str, option: str = "--alpha") -> str | float:
    """Read ``sample``, ``map`` or a positive number."""
    word = text.strip().lower()
    if word in ("sample", "map"):
        return word
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{option} takes 'sample', 'map' or a positive number, not {text!r}.")
    return value


def parse_pair(text: str, option: str) -> tuple[float, float]:
    """Read two positive numbers such as ``256,1``."""
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        first = second = math.nan
    if not (0 < first < math.inf and 0 < second < math.inf):
        raise InputError(f"{option} takes two positive numbers such as 256,1, not {text!r}.")
    return first, second


def parse_online(online: bool, surrogate: Surrogate | None) -> str | bool | None:
    """What ``--online`` and ``--surrogate`` say together; True if nothing is said of a surrogate."""
    if online:
        return True if surrogate is None else surrogate.value
    if surrogate is not None:
        raise InputError("--surrogate is for learning online: give --online as well, or leave it out.")
    return None


def parse_rank(text: str, option: str = "--rank") -> str | int:
    """Read ``auto`` or a whole number of at least 1."""
    word = text.strip().lower()
    if word == "auto":
        return word
    if not is_whole(word) or int(word) < 1:
        raise InputError(f"{option} takes 'auto' or a whole number of at least 1, not {shortened(text)}.")
    return int(word)


def check_key(key: str | None, file: object, option: str, file_option: str) -> None:
    """Refuse the name of an array inside a file that is not given."""
    if key is not None and not file:
        raise InputError(f"{option} is {key!r} without a file: give {file_option}, or leave {option} out.")


def at_least(value: int | None, low: int, option: str) -> int | None:
    """Pass a number on if it is not below `low` (or not given at all)."""
    if value is not None and value < low:
        raise InputError(f"{option} must be at least {low}, not {value}.")
    return value


def not_negative(value: float, option: str) -> float:
    """Pass a finite number on if it is not below zero."""
    if not (value >= 0 and math.isfinite(value)):
        raise InputError(f"{option} must be a number of at least 0, not {value}.")
    return value
