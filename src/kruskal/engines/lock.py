"""A folder that one process works in, and signals that come while it saves what it has."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kruskal.errors import InputError

LOCK_FILE = "lock"


class InUse(InputError):
    """Another process, or another thread of this one, works in the folder."""


class _Mine(threading.local):
    """The folders that this thread holds."""

    def __init__(self) -> None:
        self.places: set[str] = set()


_MINE = _Mine()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the folder: a second process or thread gets an InputError. What killed runs left is removed.

    Inside of it the same thread may hold the folder again.
    """
    place = os.path.realpath(directory)
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
    if os.path.realpath(directory) in _MINE.places:
        return False
    try:
        with _lock_file(directory):
            return False
    except InUse:
        return True


@contextmanager
def _lock_file(directory: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # not on this operating system: two processes must be kept apart by hand
        yield
        return
    path = directory / LOCK_FILE
    try:
        opened = path.open("w")
    except OSError as error:
        raise InputError(f"checkpoint folder {directory} cannot be written to: {error.strerror}") from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_ino != path.stat().st_ino:
                raise FileNotFoundError  # its holder removed it, and another process made a new one
        except OSError as error:
            raise InUse(f"checkpoint folder {directory} is in use by another process") from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no further Ctrl-C or SIGTERM come between, once one has come and the state is being saved."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set by Python
