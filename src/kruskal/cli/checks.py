"""What can be found wrong with the outputs before a long run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kruskal.cli.job import Job
from kruskal.data import check_writable
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
        if job.save.suffix.lower() != ".npz":
            raise InputError(f"--save must name an npz file, not {str(job.save)!r}.")
        check_writable(job.save)
    if job.report is not None:
        if job.report.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"--report must name an html file, not {str(job.report)!r}.")
        if job.report.is_dir():
            raise InputError(f"--report {job.report} is a folder.")
        check_folder(job.report.absolute().parent, f"--report {job.report}")
    if job.figures is not None:
        check_new_folder(job.figures, f"--figures {job.figures}")


def check_result_fits(job: Job, inputs: Inputs) -> None:
    """Complain about a format that cannot hold an array of this shape and type."""
    metadata = inputs.loaded.metadata
    check_writable(job.output, metadata.shape, metadata.dtype)
    if job.std is not None:
        check_writable(job.std, metadata.shape, np.float32)


def check_new_folder(folder: Path, name: str) -> None:
    """Complain unless `folder` can be written to, or can be made."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{name} is a file; a folder is needed.")
    check_folder(folder if folder.exists() else folder.absolute().parent, name)


def check_folder(folder: Path, name: str) -> None:
    """Complain unless `folder` exists and can be written to."""
    if not folder.is_dir():
        raise InputError(f"{name}: the folder {folder} does not exist.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{name}: the folder {folder} cannot be written to.")


def _check_distinct(job: Job) -> None:
    taken = {os.path.realpath(path): f"{option} {path}" for option, path in job.input_files().items()}
    for option, path in job.output_files().items():
        place = os.path.realpath(path)
        if place in taken:
            raise InputError(f"{option} {path} would overwrite {taken[place]}; give another name.")
        taken[place] = f"{option} {path}"
