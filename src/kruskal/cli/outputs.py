"""Write what a restoration found."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kruskal.cli.errors import Stopped, machine_sentence
from kruskal.cli.inputs import Inputs
from kruskal.cli.job import Job
from kruskal.cli.summary import scores_of
from kruskal.data import write
from kruskal.data.arrays import default_dtype
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.restore import Restoration


def write_outputs(job: Job, inputs: Inputs, restoration: Restoration, summary: dict[str, Any]) -> None:
    """Write everything that was asked for, each file aside and renamed.

    Parameters
    ----------
    job : Job
        Says what and where.
    inputs : Inputs
        For the metadata of the result and for the figures.
    restoration : Restoration
        What is written.
    summary : dict
        Its numbers, for the report.

    Raises
    ------
    InputError, Stopped
        When the disk refuses; the sentence names what was written before.
    """
    written: list[Path] = []
    try:
        for path in _written_one_by_one(job, inputs, restoration, summary):
            written.append(path)
    except (InputError, MemoryError, OSError) as error:
        if not written:
            raise
        names = f"{' and '.join(map(str, written))} {'was' if len(written) == 1 else 'were'} written"
        if isinstance(error, InputError):
            raise InputError(f"{names}, but: {error}") from error
        raise Stopped(f"{names}, but {machine_sentence(error)}", 1) from error


def _written_one_by_one(
    job: Job, inputs: Inputs, restoration: Restoration, summary: dict[str, Any]
) -> Iterator[Path]:
    """Write the outputs, the result first, and yield each when it is there."""
    metadata = inputs.loaded.metadata
    write(job.output, restoration.mean, like=metadata, dtype=job.result_dtype(metadata.dtype))
    yield job.output
    if job.std is not None:
        write(job.std, restoration.std, like=metadata, dtype=default_dtype(restoration.std))
        yield job.std
    if job.save is not None:
        restoration.save(job.save)
        yield job.save
    if job.figures is not None:
        figures = _figures(job.figures, inputs, restoration)
        yield job.figures
        if job.report is not None:
            _report(job, restoration, summary, figures)
    elif job.report is not None:
        with tempfile.TemporaryDirectory(prefix="kruskal-") as folder:
            _report(job, restoration, summary, _figures(Path(folder), inputs, restoration))


def _figures(folder: Path, inputs: Inputs, restoration: Restoration) -> list[Path]:
    from kruskal.report import write_figures

    return write_figures(
        folder,
        restoration,
        observed_values=inputs.loaded.values,
        observed=inputs.observed,
        reference=inputs.reference,
    )


def _report(job: Job, restoration: Restoration, summary: dict[str, Any], figures: list[Path]) -> None:
    from kruskal.report import write_report

    assert job.report is not None
    write_report(
        job.report,
        restoration,
        scores_of(summary),
        figures,
        title=f"{job.input.name}, restored",
        command=job.command_line or None,
        seconds=restoration.seconds,
    )
