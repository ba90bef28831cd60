"""What can be found wrong with the outputs before a long run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kruskal.cli.job import Job
from kruskal.data import check_writable
from kruskal.data.atomic import check_place
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.cli.inputs import Inputs


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
        check_new_folder(figures, f"--figures {figures}")


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
    taken = {os.path.realpath(path): f"{option} {path}" for option, path in job.input_files().items()}
    for option, path in job.output_files().items():
        place = os.path.realpath(path)
        if place in taken:
            raise InputError(f"{option} {path} would overwrite {taken[place]}; give another name.")
        taken[place] = f"{option} {path}"
