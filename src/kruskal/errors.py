"""The one exception that a user's mistake raises, and the checks that are needed everywhere."""

import math
import operator
import os
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DAMAGE = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError),
    *(zipfile.BadZipFile, zlib.error, RuntimeError),  # the last of zip files that seem to be encrypted
)
"""What comes of reading a file of ours that was cut short or changed."""


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what and why.

    The sentence names the argument, what was given and what is expected. The command line prints it as it
    is and exits with status 2.
    """


_LONGEST = 80


def shown(value: Any) -> str:
    """What was given, in a few words that fit into a sentence: an array is told by its shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    words = " ".join(repr(value).split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}.."


def refuse_not_finite(numbers: Iterable[float], where: str) -> None:
    """End a run whose state is no longer made of finite numbers."""
    if not all(map(math.isfinite, numbers)):
        raise InputError(
            f"the sampler met numbers that are not finite in {where}: an entry far outside of all others, or "
            "an extreme prior, can do that"
        )


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an int from ``least`` to ``most``, or an InputError that names the argument."""
    try:
        sound = not isinstance(value, bool) and int(value) == value and value >= least
        sound = sound and (most is None or value <= most)
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        end = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"{name} must be a whole number of {end}, not {shown(value)}")
    return int(value)


def check_seed(seed: Any) -> int:
    """The seed as an int in [0, 2**64), or an InputError."""
    try:
        number = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**64:
        raise InputError(f"seed must be a whole number from 0 to 2**64 - 1, not {shown(seed)}")
    return number


def flag(name: str, value: Any) -> bool:
    """``value`` as a bool, or an InputError: a word counts as true for Python, even the word no."""
    try:
        sound = value in (0, 1)
    except ValueError:  # an array
        sound = False
    if not sound:
        raise InputError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """A word that is among the choices, or an InputError that names the argument."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {shown(value)}")
    return value


def number_or_nan(value: Any) -> float:
    """``value`` as a float; NaN for what is none, and for True and False."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def positive_number(name: str, value: Any) -> float:
    """``value`` as a finite float above 0, or an InputError that names the argument."""
    number = number_or_nan(value)
    if not 0.0 < number < math.inf:
        raise InputError(f"{name} must be a finite number above 0, not {shown(value)}")
    return number


def not_negative(name: str, value: Any) -> float:
    """``value`` as a finite float of at least 0, or an InputError that names the argument."""
    number = number_or_nan(value)
    if not 0.0 <= number < math.inf:
        raise InputError(f"{name} must be a finite number of at least 0, not {shown(value)}")
    return number


def path_of(name: str, value: Any, kind: str = "file") -> Path:
    """``value`` as a path of a file or folder, or an InputError that names the argument."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be the path of a {kind}, not {shown(value)}")
    return Path(value)


def positive_pair(name: str, pair: Any) -> tuple[float, float]:
    """Two positive numbers, or an InputError."""
    try:
        a, b = (float(value) for value in pair)
    except (TypeError, ValueError):
        a = b = math.nan
    if not (0.0 < a < math.inf and 0.0 < b < math.inf):
        raise InputError(f"{name} must be two positive numbers (a, b), not {shown(pair)}")
    return a, b
