"""Training to its end: checkpoints on the way, Ctrl-C safe, telling how far it is."""

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from kruskal.data.atomic import reason
from kruskal.deep.rmsprop import Moving
from kruskal.engines import training_files
from kruskal.engines.lock import locked, undisturbed
from kruskal.engines.progress import Progress
from kruskal.engines.training import TRACED
from kruskal.errors import InputError

DIVERGED = (
    "the training diverged: its parameters or features are not finite any more, expected a smaller "
    "learning_rate, generative or hinge, or images of smaller numbers"
)
_TELL_EVERY = 20


class Diverged(InputError):
    """Parameters that are not finite any more."""


class State(Protocol):
    """What steps change."""

    moving: Moving

    @property
    def done(self) -> int:
        """Number of steps made."""

    @property
    def trace(self) -> np.ndarray:
        """(epochs, len(TRACED))."""

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but ``done``, by name."""


class Steps(Protocol):
    """Whatever is trained step by step."""

    now: Any

    def advance(self) -> None:
        """Make one step, or none when interrupted."""

    def go_on_from(self, arrays: dict[str, np.ndarray]) -> None:
        """Put a saved state in the place of the present one."""


class Keeping(NamedTuple):
    """Where the state is kept (None: nowhere), how often, and the digest of what is trained."""

    directory: Path | None = None
    seconds: float = math.inf
    digest: str = ""


@contextmanager
def held(keeping: Keeping) -> Iterator[None]:
    """Hold the folder, if there is one, for a fit that may have it."""
    if keeping.directory is None:
        yield
        return
    training_files.open_folder(keeping.directory)
    with locked(keeping.directory):
        training_files.read_header(keeping.directory, keeping.digest)
        yield


def train(steps: Steps, total: int, keeping: Keeping, progress: Progress) -> None:
    """Make the steps that are not made yet; the folder is held."""
    directory = keeping.directory
    with ExitStack() as stack:
        if directory is not None:
            saved = training_files.load(directory, keeping.digest, steps.now.arrays())
            if saved is not None:
                steps.go_on_from(saved)
        progress.start(total, steps.now.done, "step")
        stack.callback(progress.stop)
        saved_at = time.monotonic()
        try:
            _refuse_diverged(steps.now)
            while steps.now.done < total:
                steps.advance()
                if steps.now.done % _TELL_EVERY == 0 or steps.now.done == total:
                    _refuse_diverged(steps.now)
                    progress.update(steps.now.done, _shown(steps.now))
                if time.monotonic() - saved_at >= keeping.seconds:
                    _refuse_diverged(steps.now)
                    _save(steps.now, keeping, progress)
                    saved_at = time.monotonic()
        except Diverged:
            if directory is not None:  # from there it would diverge again
                training_files.discard(directory)
            raise
        except BaseException:
            if steps.now.done and _is_finite(steps.now):
                with undisturbed():
                    _save(steps.now, keeping, progress)
            raise
        with undisturbed(afterwards=True):
            _save(steps.now, keeping, progress)


def _is_finite(now: State) -> bool:
    return bool(np.isfinite(now.moving.parameters).all())


def _refuse_diverged(now: State) -> None:
    if not _is_finite(now):
        raise Diverged(DIVERGED)


def _shown(now: State) -> dict[str, float]:
    """What is known of the last epoch."""
    if not len(now.trace):
        return {}
    return {name: float(value) for name, value in zip(TRACED, now.trace[-1]) if not np.isnan(value)}


def _save(now: State, keeping: Keeping, progress: Progress) -> None:
    """Write a checkpoint, if asked for. A failure is told and does not cost the run."""
    if keeping.directory is None:
        return
    try:
        training_files.save(keeping.directory, keeping.digest, now.done, now.arrays())
    except (InputError, OSError, MemoryError) as error:
        progress.note(f"no checkpoint could be written after step {now.done}: {reason(error)}")
