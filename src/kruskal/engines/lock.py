"""A folder that one process works in, and signals that come while it saves what it has."""

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kruskal.errors import InputError

try:
    import fcntl
except ImportError:  # not on this operating system
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
_ATTEMPTS, _WAIT = 6, 0.01


class InUse(InputError):
    """Another process, or another thread of this one, works in the folder."""


class _Mine(threading.local):
    """The folders that this thread holds, each with the process: a forked one holds none of them."""

    def __init__(self) -> None:
        self.places: set[tuple[int, str]] = set()


_MINE = _Mine()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the folder: a second process or thread gets an InputError. What killed runs left is removed.

    Inside of it the same thread may hold the folder again.
    """
    place = _place(directory)
    if place in _MINE.places:
        yield
        return
    with _lock_file(directory):
        _MINE.places.add(place)
        try:
            for left_over in directory.glob(".kruskal-*"):
                left_over.unlink(missing_ok=True)
            yield
        finally:
            _MINE.places.discard(place)


def in_use(directory: Path) -> bool:
    """Whether another process or thread holds the folder."""
    if _place(directory) in _MINE.places or not (directory / LOCK_FILE).exists():
        return False
    try:
        with _lock_file(directory):
            return False
    except InUse:
        return True


def _place(directory: Path) -> tuple[int, str]:
    return os.getpid(), os.path.realpath(directory)


@contextmanager
def _lock_file(directory: Path) -> Iterator[None]:
    path, process = directory / LOCK_FILE, os.getpid()
    with _opened_and_locked(path):
        try:
            yield
        finally:
            if os.getpid() == process:
                path.unlink(missing_ok=True)


def _opened_and_locked(path: Path) -> IO[str]:
    """The file, locked if the operating system and the disk can do that; else runs are kept apart by hand.

    Another process may just look whether it is locked, so a refusal counts after some tries only; and what is
    locked must still be there under this name, as a holder removes it in the end.
    """
    for attempt in range(_ATTEMPTS):
        try:
            file = path.open("w")
        except OSError as error:
            raise InputError(
                f"checkpoint folder {path.parent} cannot be written to: {error.strerror}"
            ) from error
        try:
            if fcntl is None:
                return file
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        except (BlockingIOError, FileNotFoundError):
            pass  # held by another, or removed by its holder just now: the next attempt will tell
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return file
            file.close()
            raise InputError(f"checkpoint folder {path.parent} cannot be locked: {error.strerror}") from error
        file.close()
        if attempt < _ATTEMPTS - 1:
            time.sleep(_WAIT)
    raise InUse(f"checkpoint folder {path.parent} is in use by another process")


@contextmanager
def undisturbed(afterwards: bool = False) -> Iterator[None]:
    """Let no Ctrl-C or SIGTERM come between while a state is saved; ``afterwards`` the first of them comes.

    Not needed where one has come already, and ends the run.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def remember(number: int, frame: Any) -> None:
        came.append(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGALRM") and callable(signal.getsignal(signal.SIGALRM)):
        numbers.append(signal.SIGALRM)  # with which the command line makes a forgotten interrupt come again
    before = {number: signal.signal(number, remember) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set by Python
    if afterwards and came:
        signal.raise_signal(came[0])
