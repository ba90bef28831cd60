"""The output folder of an experiment: one JSON file per finished cell, and a lock.

Below OUT/NAME:

    cells/KEY.json   options, results, version, seed, threads, seconds, machine
    pictures/        whatever pictures an experiment makes
    NAME.json, .png  everything together, written at the end
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kruskal.data import atomic_path
from kruskal.errors import InputError
from kruskal.experiments.cells import Cell

_LOCK = ".lock"


class Store:
    """Reads and writes the files of one experiment below ``out``."""

    def __init__(self, out: Path, name: str) -> None:
        self.name = name
        self.folder = out / name
        self.cells = self.folder / "cells"
        self.pictures = self.folder / "pictures"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folders and hold them: a second process gets an InputError."""
        try:
            for folder in (self.cells, self.pictures):
                folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / _LOCK).open("w")
        except OSError as error:
            raise InputError(f"cannot use the folder '{self.folder}': {error.strerror}") from error
        with lock:  # the file stays: removing it could take the lock away from a process that just opened it
            self._take(lock.fileno())
            for left_over in [*self.cells.glob(".kruskal-*"), *self.folder.glob(".kruskal-*")]:
                left_over.unlink(missing_ok=True)
            yield

    def _take(self, descriptor: int) -> None:
        try:
            import fcntl
        except ImportError:  # not on this operating system: two processes must be kept apart by hand
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"the folder '{self.folder}' is in use by another process: wait, or give another folder"
            ) from error
        except OSError:  # a file system without locks
            return

    def read(self, cell: Cell, version: str) -> tuple[dict[str, Any] | None, str]:
        """The record of a cell, or None and the reason why a saved one cannot be used ("": there is none)."""
        path = self.cells / f"{cell.key}.json"
        try:
            record = json.loads(path.read_text())
            options, made_by, results = record["options"], record["version"], record["results"]
        except FileNotFoundError:
            return None, ""
        except (OSError, ValueError, KeyError, TypeError):
            return None, "its file cannot be read"
        if options != plain(cell.options):
            return None, "its options were others"
        if made_by != version:
            return None, f"it was made by version {made_by}"
        return (record, "") if isinstance(results, dict) else (None, "its file cannot be read")

    def write(self, cell: Cell, record: dict[str, Any]) -> None:
        """Save a finished cell."""
        with atomic_path(self.cells / f"{cell.key}.json") as temporary:
            temporary.write_text(as_json(record) + "\n")

    def write_summary(self, summary: dict[str, Any], figure: bytes | None) -> list[Path]:
        """Write NAME.json and, if there is one, NAME.png; returns what was written."""
        written = [self.folder / f"{self.name}.json"]
        with atomic_path(written[0]) as temporary:
            temporary.write_text(as_json(summary) + "\n")
        if figure is not None:
            written.append(self.folder / f"{self.name}.png")
            with atomic_path(written[1]) as temporary:
                temporary.write_bytes(figure)
        return written


def as_json(value: Any) -> str:
    """One JSON object; NaN and infinity are refused, as others could not read them."""
    return json.dumps(value, indent=1, allow_nan=False)


def plain(value: Any) -> Any:
    """A value as it comes back from a file: tuples are lists; a ValueError or TypeError if it cannot."""
    return json.loads(json.dumps(value, allow_nan=False))
