"""A restoration as it was asked for, and the file that lets another process finish it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data.atomic import atomic_path
from kruskal.data.formats.pictures import SUFFIXES as PICTURES
from kruskal.engines.checkpoint_files import HEADER, JOB, clear, foreign_files
from kruskal.engines.lock import in_use, locked
from kruskal.errors import InputError

_PATHS = (
    *("input", "output", "mask", "std", "reference", "dictionary", "figures", "report", "save"),
    "checkpoint",
)


@dataclass(frozen=True)
class Job:
    """Everything a restore command was told.

    Attributes
    ----------
    command : str
        ``inpaint`` or ``denoise``.
    input, output : Path
        What is read and where the result goes.
    mask, reference, dictionary : Path, optional
        Further files to read.
    std, figures, report, save, checkpoint : Path, optional
        Further files and folders to write.
    mask_is, key, mask_key, reference_key : str, optional
        What the mask means, and which array of the input, the mask and the reference is read.
    keep_observed : bool
        Whether observed entries are written as they were read.
    out_of_core : bool
        Whether the array stays on the disk and is restored block by block.
    block : tuple of int, optional
        The shape of a block.
    json, quiet : bool
        What is printed.
    command_line : str
        The words of the user, for the report.
    settings : dict
        Keyword arguments of `kruskal.inpaint`.
    """

    command: str
    input: Path
    output: Path
    mask: Path | None = None
    mask_is: str = "observed"
    key: str | None = None
    mask_key: str | None = None
    reference_key: str | None = None
    std: Path | None = None
    reference: Path | None = None
    dictionary: Path | None = None
    figures: Path | None = None
    report: Path | None = None
    save: Path | None = None
    checkpoint: Path | None = None
    keep_observed: bool = False
    out_of_core: bool = False
    block: tuple[int, ...] | None = None
    json: bool = False
    quiet: bool = False
    command_line: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def result_dtype(self, given: np.dtype) -> np.dtype:
        """That of the input; but the mean of counts is not whole, so float32 where the file can hold it."""
        picture = self.output.suffix.lower() in PICTURES
        whole = np.dtype(given).kind in "biu"
        return np.dtype(np.float32) if self.settings.get("counts") and whole and not picture else given

    def output_files(self) -> dict[str, Path]:
        """Return the files that will be written, by the option that asked for them."""
        named = {"--output": self.output, "--std": self.std, "--report": self.report, "--save": self.save}
        return {option: path for option, path in named.items() if path is not None}

    def input_files(self) -> dict[str, Path]:
        """Return the files that will be read, by the option that named them."""
        named = {
            "IN": self.input,
            "--mask": self.mask,
            "--reference": self.reference,
            "--dictionary": self.dictionary,
        }
        return {option: path for option, path in named.items() if path is not None}

    def absolute(self) -> Job:
        """Return the same job with absolute paths, so that it can be finished from any folder."""
        paths = {name: getattr(self, name) for name in _PATHS}
        return replace(self, **{name: path.absolute() for name, path in paths.items() if path is not None})


def store(job: Job, digest: str, finished: bool = False) -> None:
    """Write the job into its checkpoint folder, aside and renamed.

    Parameters
    ----------
    job : Job
        With a checkpoint folder, which exists.
    digest : str
        Of the values and the mask that were read; a resumed run makes sure that they are the same.
    finished : bool
        True once all outputs are written.
    """
    assert job.checkpoint is not None
    job = job.absolute()
    told = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(job).items()}
    document = {"format": "kruskal job 1", "finished": finished, "digest": digest, "job": told}
    with atomic_path(job.checkpoint / JOB) as temporary:  # type: ignore[operator]
        temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")


def load(directory: Path) -> tuple[Job, str, bool]:
    """Read the job of a checkpoint folder.

    Parameters
    ----------
    directory : Path
        The folder that was given to ``--checkpoint``.

    Returns
    -------
    job : Job
        Its checkpoint is `directory`, even when the folder was moved.
    digest : str
        Of the values and the mask.
    finished : bool
        Whether all outputs were written.
    """
    path = directory / JOB
    if not directory.is_dir():
        raise InputError(f"there is no checkpoint folder {directory}.")
    if not path.is_file():
        if (directory / HEADER).is_file():
            raise InputError(
                f"the run in {directory} was started from Python; "
                f"go on there with kruskal.resume({str(directory)!r})."
            )
        raise InputError(f"{directory} is not a checkpoint: it holds no {JOB}.")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return _job_of(document["job"], directory), str(document["digest"]), bool(document["finished"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is damaged, so the run cannot be resumed.") from None


def _job_of(told: dict[str, Any], directory: Path) -> Job:
    """Turn the words of the file back into a job."""
    known = {f.name for f in fields(Job)}
    if set(told) != known or told["command"] not in ("inpaint", "denoise"):
        raise ValueError("not a job")
    for name in _PATHS:
        told[name] = None if told[name] is None else Path(told[name])
    settings = dict(told["settings"])
    for name in ("patch_shape", "stride", "usage_prior"):  # JSON has no tuples
        if isinstance(settings.get(name), list):
            settings[name] = tuple(settings[name])
    return Job(**{**told, "settings": settings, "checkpoint": directory})


@contextmanager
def claimed(directory: Path | None) -> Iterator[None]:
    """Hold a checkpoint folder for a new run; nothing to do if there is none.

    Parameters
    ----------
    directory : Path, optional
        A folder that does not exist (its parent does), is empty, or holds a finished run, which is removed.
        If it was made here and nothing is left in it at the end, it is removed again.
    """
    if directory is None:
        yield
        return
    check_claim(directory)
    created = not directory.is_dir()
    directory.mkdir(exist_ok=True)
    try:
        with locked(directory):
            check_claim(directory)  # another process may have been faster
            clear(directory)
            yield
    finally:
        if created:
            with suppress(OSError):  # it holds something, or another process has come
                directory.rmdir()


def check_claim(directory: Path) -> None:
    """Refuse a folder that a new run may not have."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"--checkpoint {directory} is a file; a folder is needed.")
    if not directory.exists():
        if not directory.absolute().parent.is_dir():
            raise InputError(
                f"--checkpoint {directory}: the folder {directory.absolute().parent} does not exist."
            )
        if not os.access(directory.absolute().parent, os.W_OK):
            raise InputError(f"--checkpoint {directory}: {directory.absolute().parent} cannot be written to.")
        return
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"--checkpoint {directory} cannot be written to.")
    if in_use(directory):
        raise InputError(f"--checkpoint {directory} is in use by another process.")
    others = foreign_files(directory)
    if others:
        raise InputError(
            f"--checkpoint {directory} holds other files, such as {others[0]}; give a new or an empty folder."
        )
    begun = [name for name in (JOB, HEADER) if (directory / name).exists()]
    if begun and (begun[0] != JOB or not load(directory)[2]):
        raise InputError(
            f"--checkpoint {directory} holds an unfinished run: go on with 'kruskal resume {directory}' or "
            "give another folder."
        )
