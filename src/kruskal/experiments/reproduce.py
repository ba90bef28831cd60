"""Running the cells of an experiment: what is saved is skipped, what fails is told, nothing is lost."""

import re
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kruskal.data import datasets
from kruskal.engines.progress_words import duration
from kruskal.errors import InputError, one_of, whole_number
from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.experiment import Experiment
from kruskal.experiments.made_by import made_by
from kruskal.experiments.presets import SETTINGS
from kruskal.experiments.speed.machine import machine
from kruskal.experiments.store import Store, plain
from kruskal.experiments.tables import Table

_KEY = re.compile(r"[A-Za-z0-9+._-]+")
_SHOWN_KEYS = 5
_HEADLINES = (
    ("psnr", "{:.2f} dB"),
    ("rrse", "RRSE {:.4f}"),
    ("rmse", "RMSE {:.5f}"),
    ("error", "error {:.2f} %"),
    ("error_both", "error {:.2f} %"),
    ("accuracy", "accuracy {:.2f} %"),
    ("accuracy_3", "accuracy {:.2f} %"),
    ("residual", "residual {:.4f}"),
)


@dataclass(frozen=True)
class Selection:
    """Which cells are wanted, and all cells whose saved results the tables may show."""

    wanted: list[Cell]
    known: list[Cell]


@dataclass
class Outcome:
    """What is there after a run, whole or not.

    Attributes
    ----------
    records : what is saved of each cell, by its key, in the order of the experiment
    failed : reasons of the cells that did not come to their end, by key
    left : number of wanted cells that are not done
    ended_by : what stopped the run before its end (KeyboardInterrupt, or an InputError when a cell could not
        be saved), or None
    """

    experiment: Experiment
    machine: dict[str, Any]
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0
    ended_by: KeyboardInterrupt | InputError | None = None

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """What `Experiment.run` returned, by key."""
        return {key: record["results"] for key, record in self.records.items()}

    def tables(self) -> list[Table]:
        """The tables of what is there."""
        return self.experiment.tables(self.results)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "version": made_by(),
            "machine": self.machine,
            "finished": not self.left,
            "failed": self.failed,
            "tables": [table.to_json() for table in self.tables()],
            "cells": self.records,
        }

    def save(self, out: Path) -> list[Path]:
        """Write NAME.json and NAME.png; returns what was written."""
        store = Store(out, self.experiment.name)
        figure = self.experiment.figure(self.results, store.pictures) if self.records else None
        return store.write_summary(self.to_json(), figure)


def select(
    experiment: Experiment,
    *,
    quick: bool = False,
    seeds: int | None = None,
    setting: str = "both",
    patterns: Sequence[str] = (),
) -> Selection:
    """Choose cells of an experiment.

    Parameters
    ----------
    experiment : the experiment
    quick, seeds : see `Experiment.cells`
    setting : "paper", "default" or "both"
    patterns : glob patterns of keys, such as ``kfa-*-keep20-*``; none takes all, each must match something
    """
    if seeds is not None:
        whole_number("seeds", seeds, 1)
    one_of("setting", setting, (*SETTINGS, "both"))
    offered = experiment.cells(quick, seeds)
    known = {cell.key: cell for cell in [*experiment.cells(False, seeds), *offered]}
    wrong = [key for key in known if not _KEY.fullmatch(key)]
    if wrong or len({cell.key for cell in offered}) < len(offered):
        raise ValueError(f"the keys of {experiment.name} are not unique names of files: {wrong}")
    wanted = [cell for cell in offered if setting in ("both", cell.options.get("setting", setting))]
    if not wanted:
        where = f"{experiment.name}{' --quick' if quick else ''}"
        raise InputError(f"{where} has no cells of the setting {setting}")
    for pattern in patterns:
        if not any(fnmatchcase(cell.key, pattern) for cell in wanted):
            some = ", ".join(cell.key for cell in wanted[:: max(1, len(wanted) // _SHOWN_KEYS)][:_SHOWN_KEYS])
            raise InputError(f"no cell matches {pattern!r}; there are {len(wanted)}, such as {some}")
    if patterns:
        wanted = [cell for cell in wanted if any(fnmatchcase(cell.key, pattern) for pattern in patterns)]
    return Selection(wanted, list(known.values()))


def run(
    experiment: Experiment,
    selection: Selection,
    out: Path,
    make_context: Callable[[Path], Context],
    say: Callable[[str], None],
) -> Outcome:
    """Run the wanted cells that are not saved yet, and collect everything that is.

    Parameters
    ----------
    experiment : the experiment
    selection : from `select`
    out : output folder; the experiment has a folder of its own in it
    make_context : given the folder for pictures, what the cells are run with
    say : told a line whenever something is done

    Returns
    -------
    Outcome
        Also after Ctrl-C and after a cell that could not be saved, with ``ended_by`` set.
    """
    store = Store(out, experiment.name)
    if any(store.read(cell, made_by())[0] is None for cell in selection.wanted):
        for name in experiment.datasets:
            datasets.locate(name)  # before anything is made: a missing data set is told at once
    with store.opened():
        outcome = Outcome(experiment, machine())
        todo = _collect(store, selection, outcome, say)
        outcome.left = len(todo)
        try:
            _run_all(store, todo, make_context(store.pictures), outcome, say)
        except (KeyboardInterrupt, InputError) as error:
            outcome.ended_by = error
        order = [cell.key for cell in selection.known]
        outcome.records = {key: outcome.records[key] for key in order if key in outcome.records}
    return outcome


def _collect(store: Store, selection: Selection, outcome: Outcome, say: Callable[[str], None]) -> list[Cell]:
    """Read what is saved; returns the wanted cells that must be run."""
    wanted = {cell.key for cell in selection.wanted}
    left_out = 0
    for cell in selection.known:
        record, reason = store.read(cell, made_by())
        if record is not None:
            outcome.records[cell.key] = record
        elif reason and cell.key in wanted:
            say(f"{cell.key} is run again: {reason}")
        elif reason:
            left_out += 1
    if left_out:
        say(f"{left_out} saved cells of other options or another version are left out of the tables")
    todo = [cell for cell in selection.wanted if cell.key not in outcome.records]
    say(f"{len(todo)} of {len(selection.wanted)} cells to run")
    return todo


def _run_all(
    store: Store, todo: list[Cell], context: Context, outcome: Outcome, say: Callable[[str], None]
) -> None:
    began = time.monotonic()
    for place, cell in enumerate(todo, 1):
        say(f"{place}/{len(todo)} {cell.key}")
        started = time.monotonic()
        try:
            results = plain(outcome.experiment.run(cell, context))
        except Exception as error:  # whatever is wrong with one cell, the others are worth having
            outcome.failed[cell.key] = reason = failure(error)
            say(f"{place}/{len(todo)} {cell.key} failed: {reason}")
            continue
        now = time.monotonic()
        record = {
            "key": cell.key,
            "options": plain(cell.options),
            "results": results,
            "version": made_by(),
            "seed": cell.options.get("seed"),
            "threads": context.threads,
            "seconds": now - started,
            "machine": outcome.machine,
        }
        outcome.records[cell.key] = record
        store.write(cell, record)
        outcome.left -= 1
        elapsed = now - began
        ahead = len(todo) - place
        times = f"{duration(now - started)}; {duration(elapsed)} elapsed"
        if ahead:
            times += f", about {duration(elapsed / place * ahead)} left"
        say(f"{place}/{len(todo)} {cell.key}: {', '.join([*_headline(results), times])}")


def failure(error: Exception) -> str:
    """Why a cell failed, on one line; a mistake of ours also says where it is."""
    sentence = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, InputError):
        return sentence
    if isinstance(error, MemoryError):
        return "the memory does not suffice"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {sentence or 'no reason given'}{where}"


def _headline(results: dict[str, Any]) -> list[str]:
    """The first measure that a result has, in words."""
    for name, words in _HEADLINES:
        if isinstance(results.get(name), int | float):
            return [words.format(results[name])]
    return []
