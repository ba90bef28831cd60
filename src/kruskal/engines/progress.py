"""What a run tells while it runs: nothing, a line every few seconds, or a bar on a terminal.

All of it goes to standard error, so that standard output stays free for results.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from kruskal.engines.progress_words import describe, duration
from kruskal.errors import InputError, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

COMPILING = "compiling kernels: the first run of its kind does this once, for half a minute or more"
"""What a run says when it has to wait for that."""
_RECENT = 10


class Progress(Protocol):
    """Whatever listens to a run; it is called in the thread that runs it.

    Only `note` may come from another one, when that one has to compile a kernel.
    """

    def start(self, total: int, done: int = 0, unit: str = "sweep") -> None:
        """Begin a run of `total` sweeps, or another `unit`, of which `done` were made before (resumed)."""

    def note(self, text: str) -> None:
        """Say something once, such as that the kernels are being compiled; allowed before `start`."""

    def update(self, done: int, values: Mapping[str, float]) -> None:
        """Tell that `done` sweeps are made; `values`: noise_std, active_per_item, atoms_used, rank, epoch."""

    def stop(self) -> None:
        """End, normally or not; calling it again does nothing."""


class Silent:
    """Tells nothing."""

    def start(self, total: int, done: int = 0, unit: str = "sweep") -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""

    def update(self, done: int, values: Mapping[str, float]) -> None:
        """Ignore."""

    def stop(self) -> None:
        """Ignore."""


class Pace:
    """Estimates the time left from the last ten sweeps, because sweeps may become slower or faster.

    The first sweep that is seen is left out because it may hold the compilation of the kernels.

    Parameters
    ----------
    total : int
        Number of sweeps of the whole run.
    clock : callable
        Returns seconds; only differences count.
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self._clock = clock
        self._recent: deque[tuple[int, float]] = deque(maxlen=_RECENT + 1)

    def seconds_left(self, done: int) -> float | None:
        """Seconds until sweep `total`, or None at the first call, when nothing is known yet."""
        now = self._clock()
        self._recent.append((done, now))
        first_done, first_time = self._recent[0]
        if done <= first_done:
            return None
        return (now - first_time) / (done - first_done) * (self.total - done)


class LogLines:
    """A plain line every few seconds, and one for the first and for the last sweep.

    For batch systems and log files, where a bar would be a mess of control characters.

    Parameters
    ----------
    stream : text file, optional
        Where the lines go; standard error by default.
    interval : float
        Seconds between two lines.
    clock : callable
        Returns seconds; only differences count.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        interval: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._interval = interval
        self._clock = clock
        self._pace: Pace | None = None
        self._unit = "sweep"
        self._last_line: float | None = None

    def start(self, total: int, done: int = 0, unit: str = "sweep") -> None:
        """Begin a run; a resumed one says where it goes on."""
        self._pace = Pace(total, self._clock)
        self._unit = unit
        self._last_line = None
        if done:
            self._line(f"going on after {unit} {done}/{total}")

    def note(self, text: str) -> None:
        """Write the text as a line of its own."""
        self._line(text)

    def update(self, done: int, values: Mapping[str, float]) -> None:
        """Write a line if it is the first or the last sweep or if the interval has passed."""
        if self._pace is None:
            return
        left = self._pace.seconds_left(done)
        now = self._clock()
        due = self._last_line is None or now - self._last_line >= self._interval
        if due or done >= self._pace.total:
            self._last_line = now
            parts = [f"{self._unit} {done}/{self._pace.total}", *describe(values)]
            if left is not None and done < self._pace.total:
                parts.append(f"{duration(left)} left")
            self._line(", ".join(parts))

    def stop(self) -> None:
        """Forget the run."""
        self._pace = None

    def _line(self, text: str) -> None:
        # looked up late: standard error may have been replaced since the object was made
        stream = self._stream or sys.stderr
        if stream is not None:
            # a full disk or a reader that went away must not cost the run
            with suppress(OSError, ValueError):
                print(f"kruskal: {text}", file=stream, flush=True)


class Bar:
    """A progress bar with sweep, noise estimate, active atoms per item and time left.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where it is drawn; standard error by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True)
        self._progress: RichProgress | None = None
        self._task: TaskID | None = None
        self._pace: Pace | None = None

    def start(self, total: int, done: int = 0, unit: str = "sweep") -> None:
        """Draw the bar."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self.stop()
        self._pace = Pace(total)
        self._progress = RichProgress(
            TextColumn(unit),
            MofNCompleteColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[values]}"),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            expand=True,
        )
        self._task = self._progress.add_task("", total=total, completed=done, values="", left="")
        self._progress.start()

    def note(self, text: str) -> None:
        """Write the text above the bar."""
        self._console.print(text, markup=False, highlight=False)

    def update(self, done: int, values: Mapping[str, float]) -> None:
        """Move the bar."""
        if self._progress is None or self._task is None or self._pace is None:
            return
        left = self._pace.seconds_left(done)
        # what is left out here is what would not fit beside a bar on 80 columns
        shown = {name: value for name, value in values.items() if name != "atoms_used"}
        self._progress.update(
            self._task,
            completed=done,
            values=", ".join(describe(shown)),
            left="" if left is None else f"{duration(left)} left",
        )

    def stop(self) -> None:
        """Leave the bar as it stands and give the cursor back."""
        if self._progress is not None:
            self._progress.stop()
        self._progress = None
        self._task = None
        self._pace = None


def check_progress(progress: Any) -> Progress:
    """What listens to a run, silence for None; an InputError for what has not the methods of `Progress`."""
    if progress is None:
        return Silent()
    if not all(callable(getattr(progress, name, None)) for name in ("start", "note", "update", "stop")):
        raise InputError(
            "progress must be None or have the methods start, note, update and stop, "
            f"not be {shown(progress)}"
        )
    listener: Progress = progress
    return listener


def choose(quiet: bool = False) -> Progress:
    """Pick silence, a bar (standard error is a terminal) or log lines (it is not).

    Parameters
    ----------
    quiet : bool
        True to hear nothing.

    Returns
    -------
    Progress
    """
    if quiet or sys.stderr is None:
        return Silent()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return Bar()
    return LogLines()
