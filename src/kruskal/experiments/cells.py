"""A cell: one number of a table, the unit that is run, saved and skipped; and what it is run with."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kruskal.data import datasets
from kruskal.engines.progress import Progress, Silent


class Cell(NamedTuple):
    """One run of an experiment.

    Attributes
    ----------
    key : unique within the experiment and readable, such as ``kfa-default-keep20-noise0-seed1``; also the
        name of its file, so letters, digits and ``-_.+`` only
    options : all that the run needs, as plain JSON values. What is named here decides whether a saved cell is
        still good, so anything that changes the result belongs here. Names with a meaning to others:
        ``setting`` ("paper" or "default"; cells without it belong to every setting) and ``seed``
    """

    key: str
    options: dict[str, Any]


def load_dataset(name: str) -> Any:
    """`kruskal.data.datasets.load`, looked up when it is called."""
    return datasets.load(name)


@dataclass(frozen=True)
class Context:
    """What every cell is run with and no result depends on.

    Attributes
    ----------
    folder : where pictures may be put; it exists
    threads : number of threads (None: all cores)
    progress : told how far a run is
    load : returns a data set by its name, see `kruskal.data.datasets.load`
    """

    folder: Path
    threads: int | None = None
    progress: Progress = field(default_factory=Silent)
    load: Callable[[str], Any] = load_dataset


def percent(share: float) -> str:
    """A share as whole percent for a key: 0.2 is ``20``."""
    return f"{100 * share:g}"


def json_number(value: float) -> float | None:
    """A plain float, or None where JSON has no word for it (the PSNR of identical arrays is infinite)."""
    return float(value) if math.isfinite(value) else None
