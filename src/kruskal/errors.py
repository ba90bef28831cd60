"""The one exception that a user's mistake raises, and the checks that are needed everywhere."""

import math
import os
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what and why.

    The sentence names the argument, what was given and what is expected. The command line prints it as it
    is and exits with status 2.
    """


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """``value`` as an int from ``least`` to ``most``, or an InputError that names the argument."""
    try:
        sound = not isinstance(value, bool) and int(value) == value and value >= least
        sound = sound and (most is None or value <= most)
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        end = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"{name} must be a whole number of {end}, not {value!r}")
    return int(value)


def path_of(name: str, value: Any, kind: str = "file") -> Path:
    """``value`` as a path of a file or folder, or an InputError that names the argument."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be the path of a {kind}, not {value!r}")
    return Path(value)


def positive_pair(name: str, pair: Any) -> tuple[float, float]:
    """Two positive numbers, or an InputError."""
    try:
        a, b = (float(value) for value in pair)
    except (TypeError, ValueError):
        a = b = math.nan
    if not (0.0 < a < math.inf and 0.0 < b < math.inf):
        raise InputError(f"{name} must be two positive numbers (a, b), not {pair!r}")
    return a, b
