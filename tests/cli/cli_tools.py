"""What the tests of the command line share."""

import signal
from pathlib import Path
from typing import NamedTuple

from kruskal.engines.progress import Silent

SMALL = ("--patch", "4x4", "--stride", "2", "--atoms", "8", "--sweeps", "5", "--threads", "1")


class Answer(NamedTuple):
    """What a command said."""

    status: int
    out: str
    err: str


def listing(folder: Path):
    """Return everything below a folder, hidden files included."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class CtrlC(Silent):
    """Presses Ctrl-C, or sends another signal, after a number of sweeps."""

    def __init__(self, sweep, number=None):
        self.sweep, self.number = sweep, number

    def update(self, done, values):
        if done != self.sweep:
            return
        if self.number is None:
            raise KeyboardInterrupt
        assert signal.getsignal(self.number) is not signal.SIG_DFL, "this process would die"
        signal.raise_signal(self.number)
