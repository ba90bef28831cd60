"""Checkpoints of training: the whole state in a folder, so that a fit can go on where it was.

    training.json         header: format, digest of the settings and the data, name of the state file
    training-<step>.npz   parameters, what the optimiser keeps, codes, trace
    lock                  there while a process works on it

Files are written aside and renamed, the header last. The data are not kept: they are given again, and a
digest says whether they are the same. Nothing is pickled.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.atomic import atomic_path
from kruskal.engines.checkpoint_files import readable
from kruskal.errors import InputError

FORMAT = 1
_HEADER = "training.json"
_STATE = re.compile(r"training-\d{8}\.npz")
_OURS = re.compile(rf"{re.escape(_HEADER)}|{_STATE.pattern}|lock|\.kruskal-.*")


def digest_of(settings: Mapping[str, Any], *arrays: np.ndarray) -> str:
    """A digest of what decides the result of a fit."""
    digest = hashlib.sha256(json.dumps(dict(settings), sort_keys=True, default=_plain).encode())
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as those of Python, which mean the same."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def open_folder(directory: Path) -> None:
    """Make the folder, if it is not there; it must hold nothing else."""
    try:
        directory.mkdir(exist_ok=True)
        others = [path.name for path in directory.iterdir() if not _OURS.fullmatch(path.name)]
    except OSError as error:
        raise InputError(f"checkpoint folder {directory} cannot be made: {error.strerror}") from error
    if others:
        raise InputError(
            f"checkpoint folder {directory} holds other files, such as {others[0]}: give an empty one"
        )


def save(directory: Path, digest: str, done: int, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the state after ``done`` steps."""
    name = f"training-{done:08d}.npz"
    with atomic_path(directory / name) as temporary:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]
    header = {"format": FORMAT, "digest": digest, "done": done, "state": name}
    with atomic_path(directory / _HEADER) as temporary:
        Path(temporary).write_text(json.dumps(header, indent=1))
    with suppress(OSError):  # an old state that stays does no harm
        _remove_states(directory, but=name)


def discard(directory: Path) -> None:
    """Forget what was saved."""
    with suppress(OSError):
        (directory / _HEADER).unlink(missing_ok=True)
        _remove_states(directory)


def _remove_states(directory: Path, but: str = "") -> None:
    for old in directory.iterdir():
        if _STATE.fullmatch(old.name) and old.name != but:
            old.unlink(missing_ok=True)


def load(directory: Path, digest: str, like: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """The saved arrays, with ``done`` among them, or None when nothing was saved yet.

    They must be ``like`` those of a fit that begins, but for the length of the trace.
    """
    header = read_header(directory, digest)
    if header is None:
        return None
    with readable(directory):
        state = directory / header["state"]
        # opened here, as NumPy leaves a file open that was cut short
        with state.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for name, array in like.items():
            if arrays[name].shape[name == "trace" :] != array.shape[name == "trace" :]:
                raise ValueError(f"{name} has shape {arrays[name].shape} instead of {array.shape}")
        return arrays | {"done": np.int64(header["done"])}


def read_header(directory: Path, digest: str) -> dict[str, Any] | None:
    """What is said of the saved state, or None when nothing was saved yet; it must have this digest."""
    if not (directory / _HEADER).is_file():
        return None
    with readable(directory):
        header: dict[str, Any] = json.loads((directory / _HEADER).read_text())
        if header["format"] != FORMAT:
            raise InputError(
                f"checkpoint folder {directory} has format {header['format']}; this version reads {FORMAT}"
            )
        if header["digest"] != digest:
            raise InputError(
                f"checkpoint folder {directory} holds a fit of other data or settings: give another folder"
            )
    return header
