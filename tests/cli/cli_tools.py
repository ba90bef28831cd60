"""What the tests of the command line share."""

from pathlib import Path
from typing import NamedTuple

SMALL = ("--patch", "4x4", "--stride", "2", "--atoms", "8", "--sweeps", "5", "--threads", "1")


class Answer(NamedTuple):
    """What a command said."""

    status: int
    out: str
    err: str


def listing(folder: Path):
    """Return everything below a folder, hidden files included."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
