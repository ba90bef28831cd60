"""What the commands inpaint, denoise and resume do: check, read, restore, write, tell."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kruskal.cli import job as job_file
from kruskal.cli import out_of_core
from kruskal.cli.checks import check_outputs, check_result_fits
from kruskal.cli.errors import (
    Stopped,
    interrupted,
    machine_sentence,
    named_by_options,
    terminable,
    told_after,
)
from kruskal.cli.inputs import Inputs, read_inputs
from kruskal.cli.job import Job
from kruskal.cli.outputs import write_outputs
from kruskal.cli.summary import as_text, summarise
from kruskal.data.atomic import reason
from kruskal.engines.checkpoint_files import HEADER, JOB, STATES, clear
from kruskal.engines.lock import locked
from kruskal.engines.progress import Progress, choose
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.restore import Restoration


def run(job: Job) -> None:
    """Restore as a new command asks; SIGTERM is a Ctrl-C."""
    with _stoppable():
        if out_of_core.is_wanted(job):
            with _explained(job):
                summary = out_of_core.restore(job)
            _tell(job, summary, out_of_core.as_text)
        else:
            _run(job)


def resume(directory: Path, threads: int | None, json: bool, quiet: bool) -> None:
    """Go on with the run whose checkpoints are in `directory`; SIGTERM is a Ctrl-C."""
    with _stoppable():
        _resume(directory, threads, json, quiet)


def _run(job: Job) -> None:
    """Restore as a new command asks; nothing is written before everything that can be checked was checked."""
    check_outputs(job)
    if job.checkpoint is not None:
        job_file.check_claim(job.checkpoint)
    inputs = read_inputs(job)
    check_result_fits(job, inputs)
    with job_file.claimed(job.checkpoint), _explained(job):
        try:
            if job.checkpoint is not None:
                job_file.store(job, inputs.digest)
            restoration = _sample(job, inputs, _restore)
        except (InputError, MemoryError, OSError) as error:
            _forget_useless(job)
            raise _with_hint(job, error) from None
        summary = _finish(job, inputs, restoration)
    _tell(job, summary)


def _resume(directory: Path, threads: int | None, json: bool, quiet: bool) -> None:
    """Go on with the run whose checkpoints are in `directory` and finish it as if it had never stopped."""
    job_file.load(directory)  # is it one?
    with locked(directory):
        job, digest, _ = job_file.load(directory)  # as the process that held it before has left it
        _resume_held(job, digest, threads, json, quiet)


def _resume_held(job: Job, digest: str, threads: int | None, json: bool, quiet: bool) -> None:
    job = replace(job, json=job.json or json, quiet=job.quiet or quiet)
    if threads is not None:
        job = replace(job, settings={**job.settings, "threads": threads})
    check_outputs(job)
    inputs = read_inputs(job)
    check_result_fits(job, inputs)
    if inputs.digest != digest:
        raise InputError(f"{job.input} or its mask changed since the run in {job.checkpoint} was started.")
    with _explained(job):
        restoration = _sample(job, inputs, _go_on)
        summary = _finish(job, inputs, restoration)
    _tell(job, summary)


def _restore(job: Job, inputs: Inputs, progress: Progress) -> Restoration:
    """Call the library for a new run."""
    from kruskal import restore

    function = restore.denoise if job.command == "denoise" else restore.inpaint
    return function(
        inputs.loaded.values,
        observed=inputs.observed,
        dictionary=job.dictionary,
        checkpoint=job.checkpoint,
        progress=progress,
        **job.settings,
    )


def _go_on(job: Job, inputs: Inputs, progress: Progress) -> Restoration:
    """Call the library for a run that was stopped, possibly before it wrote its first checkpoint."""
    from kruskal import restore

    assert job.checkpoint is not None
    if not (job.checkpoint / HEADER).is_file():
        return _restore(job, inputs, progress)
    return restore.resume(job.checkpoint, threads=job.settings["threads"], progress=progress)


def _sample(job: Job, inputs: Inputs, call: Callable[[Job, Inputs, Progress], Restoration]) -> Restoration:
    """Call the library with a progress display, which is taken down in any case."""
    progress = choose(job.quiet)
    try:
        for note in inputs.notes:
            progress.note(note)
        with named_by_options(job.input):
            restoration = call(job, inputs, progress)
        return replace(restoration, notes=(*inputs.notes, *restoration.notes))
    finally:
        progress.stop()


def _finish(job: Job, inputs: Inputs, restoration: Restoration) -> dict[str, Any]:
    """Write all outputs, mark the job as finished and return the numbers to tell."""
    if job.keep_observed:
        restoration = restoration.with_observed(inputs.loaded.values, inputs.observed)
    summary = summarise(restoration, inputs.observed, inputs.reference)
    try:
        write_outputs(job, inputs, restoration, summary)
    except (InputError, Stopped) as error:
        raise _with_hint(job, error) from None
    if job.checkpoint is not None:
        try:
            job_file.store(job, inputs.digest, finished=True)
        except (InputError, OSError) as error:
            raise Stopped(
                f"{', '.join(map(str, _written(job)))} written, but the checkpoint could not be marked as "
                f"finished: {reason(error)}",
                1,
            ) from None
    return summary


def _tell(job: Job, summary: dict[str, Any], words: Callable[[dict[str, Any]], str] = as_text) -> None:
    """Print the summary as the user wants it."""
    written = _written(job)
    with told_after(written):
        if job.json:
            typer.echo(json_format.dumps(summary, allow_nan=False))
        elif not job.quiet:
            typer.echo(words(summary))
            typer.echo(f"written: {', '.join(map(str, written))}")


def _written(job: Job) -> list[Path]:
    """Return what was written, the result first."""
    return [*job.output_files().values(), *([job.figures] if job.figures is not None else [])]


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the block in one sentence, each with its own status."""
    try:
        with terminable():
            yield
    except KeyboardInterrupt as error:
        raise interrupted(error) from None


@contextmanager
def _explained(job: Job) -> Iterator[None]:
    """Say how to go on when a run stops early.

    Parameters
    ----------
    job : Job
        What runs inside.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise interrupted(error, _how_to_go_on(job)) from None
    except (MemoryError, OSError) as error:
        raise Stopped(f"{machine_sentence(error).rstrip('.')}{_how_to_go_on(job)}.", 1) from None


def _with_hint(job: Job, error: Exception) -> Exception:
    """Return the error with how to go on added to its sentence, if it is a sentence already."""
    sentence = f"{str(error).rstrip('.')}{_how_to_go_on(job)}."
    if isinstance(error, InputError):
        return InputError(sentence)
    return Stopped(sentence, error.status) if isinstance(error, Stopped) else error


def _how_to_go_on(job: Job) -> str:
    if job.checkpoint is None or not (job.checkpoint / JOB).is_file():
        return ""
    return f"; go on with 'kruskal resume {job.checkpoint}'"


def _forget_useless(job: Job) -> None:
    """Remove what a run that failed before its first checkpoint left in the folder, which is still held."""
    if job.checkpoint is not None and not any(job.checkpoint.glob(STATES)):
        clear(job.checkpoint)
