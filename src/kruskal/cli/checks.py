"""What can be found wrong with the outputs before a long run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kruskal.cli.job import Job
from kruskal.data import check_writable
from kruskal.data.atomic import check_place
from kruskal.data.lazy import contains
from kruskal.engines import checkpoint_files
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.cli.inputs import Inputs

DICTIONARY_FIGURES = ("dictionary.png", "ranks.png", "traces.png")
RESTORATION_FIGURES = ("restoration.png", "uncertainty.png", *DICTIONARY_FIGURES)
"""What is written into a folder for figures, which may hold other files as well."""
_CHECKPOINT = (
    checkpoint_files.HEADER,
    checkpoint_files.INPUT,
    checkpoint_files.DICTIONARY,
    checkpoint_files.JOB,
)


def check_outputs(job: Job) -> None:
    """Complain about outputs that cannot be written, or that would overwrite each other or an input."""
    _check_distinct(job)
    check_writable(job.output)
    if job.std is not None:
        check_writable(job.std, dtype=np.float32)
    if job.save is not None:
        _check_file(job.save, "--save", ".npz")
    if job.report is not None:
        _check_file(job.report, "--report", ".html", ".htm")
    if job.figures is not None:
        check_new_folder(job.figures, f"--figures {job.figures}")


def check_output(output: Path, suffix: str, inputs: Sequence[Path], figures: Path | None = None) -> None:
    """Complain about ``--output`` and ``--figures`` that cannot be written or would overwrite an input."""
    for file in inputs:
        if output.exists() and file.exists() and output.samefile(file):
            raise InputError(f"--output {output} would overwrite {file}; give another name.")
    _check_file(output, "--output", suffix)
    if figures is not None:
        check_apart(f"--figures {figures}", figures, {f"--output {output}": output}, ())
        check_new_folder(figures, f"--figures {figures}")


def check_apart(name: str, path: Path, taken: Mapping[str, Path], files: Sequence[str] | None = None) -> None:
    """Complain about an output that would overwrite other files of the run, or lie inside one of its stores.

    Parameters
    ----------
    name : str
        The output in messages.
    path : Path
        A file, or a store, which is replaced with all that is in it, or a folder.
    taken : mapping of str to Path
        The other files, by what messages call them.
    files : sequence of str, optional
        What is written into a folder that may hold other files as well.
    """
    written = [path] if files is None else [path / file for file in files]
    for other, place in taken.items():
        same = contains(path, place) and contains(place, path)
        if same or any(contains(part, place) for part in written):
            raise InputError(f"{name} would overwrite {other}; give another name.")
        if contains(place, path):
            raise InputError(f"{name} lies inside of {other}; give another name.")


def check_result_fits(job: Job, inputs: Inputs) -> None:
    """Complain about a format that cannot hold an array of this shape and type."""
    metadata = inputs.loaded.metadata
    check_writable(job.output, metadata.shape, job.result_dtype(metadata.dtype))
    if job.std is not None:
        check_writable(job.std, metadata.shape, np.float32)


def check_new_folder(folder: Path, name: str) -> None:
    """Complain unless `folder` can be written to, or can be made."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{name} is a file; a folder is needed.")
    _check_folder(folder if folder.exists() else folder.absolute().parent, name)


def _check_folder(folder: Path, name: str) -> None:
    """Complain unless `folder` exists and can be written to."""
    if not folder.is_dir():
        raise InputError(f"{name}: the folder {folder} does not exist.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{name}: the folder {folder} cannot be written to.")


def _check_file(path: Path, option: str, *suffixes: str) -> None:
    """Complain unless a file with one of these suffixes can be written."""
    if path.suffix.lower() not in suffixes:
        folder = "the folder " if path.is_dir() else ""
        raise InputError(f"{option} must name a {suffixes[0]} file, not {folder}{str(path)!r}.")
    try:
        check_place(path)
    except InputError as error:
        raise InputError(f"{option}: {error}.") from error


def _check_distinct(job: Job) -> None:
    taken = {f"{option} {path}": path for option, path in job.input_files().items()}
    for option, path in job.output_files().items():
        check_apart(f"{option} {path}", path, taken)
        taken[f"{option} {path}"] = path
    if job.figures is not None:  # no figure is called like a file of a checkpoint, so they may share a folder
        check_apart(f"--figures {job.figures}", job.figures, taken, RESTORATION_FIGURES)
    if job.checkpoint is not None:
        check_apart(f"--checkpoint {job.checkpoint}", job.checkpoint, taken, _CHECKPOINT)
