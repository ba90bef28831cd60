"""The command reproduce."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kruskal.cli import options
from kruskal.cli.errors import Stopped, interrupted, terminable
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.experiments.reproduce import Outcome


class Setting(StrEnum):
    """Which of the two named settings."""

    paper = "paper"
    default = "default"
    both = "both"


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="Which experiment; see --list.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", show_default="KRUSKAL_DATA", help="Folder of the paper's data sets."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where results go; cells that are there are not run again.")
    ] = Path("kruskal-results"),
    cells: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN,...",
            show_default="all",
            help="Only cells whose key fits, such as 'kfa-*-keep20-*'.",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", show_default="the experiment's", help="Number of seeds.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer cells, the same ones otherwise: minutes, not hours.")
    ] = False,
    threads: options.Threads = None,
    setting: Annotated[
        Setting, typer.Option(help="The paper's model and options, what a user gets by default, or both.")
    ] = Setting.both,
    print_json: options.Json = False,
) -> None:
    """Run an experiment of the paper; prints its tables beside the paper's and writes JSON and PNG.

    Finished cells are saved one by one: an interrupted table goes on where it was when the command is given
    again.
    """
    from kruskal.experiments import registry

    if list_names:
        _list()
        return
    if name is None:
        raise InputError(f"name an experiment: {', '.join(registry.NAMES)} ('kruskal reproduce --list').")
    experiment = registry.get(name)
    options.at_least(seeds, 1, "--seeds")
    options.at_least(threads, 1, "--threads")
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data} is no folder.")
    patterns = [part.strip() for part in cells.split(",")] if cells is not None else []

    from kruskal.engines.progress import choose
    from kruskal.engines.threads import check_threads
    from kruskal.experiments import reproduce as runner
    from kruskal.experiments.cells import Context

    selection = runner.select(experiment, quick=quick, seeds=seeds, setting=setting.value, patterns=patterns)
    _check_out(out, experiment.name)
    used_threads = check_threads(threads)
    try:
        with _data_folder(data), terminable():
            outcome = runner.run(
                experiment,
                selection,
                out,
                lambda folder: Context(folder, used_threads, choose()),
                _say,
            )
            _finish(outcome, out, print_json)
    except KeyboardInterrupt as error:  # while tables and figure were made
        raise interrupted(error) from None


def _list() -> None:
    """Print the name of every experiment and what it is."""
    from kruskal.experiments import registry

    width = max(map(len, registry.NAMES))
    for name in registry.NAMES:
        typer.echo(f"{name:{width}}  {registry.get(name).what}")


def _finish(outcome: Outcome, out: Path, print_json: bool) -> None:
    """Print and write what is there, then end as the run ended."""
    from kruskal.experiments.speed.console import new_console
    from kruskal.experiments.store import as_json
    from kruskal.experiments.tables import show

    if print_json:
        typer.echo(as_json(outcome.to_json()))
    else:
        console = new_console()
        for table in outcome.tables():
            show(console, table)
    if isinstance(outcome.ended_by, InputError):  # nothing can be written any more
        raise outcome.ended_by
    written = outcome.save(out)
    if not print_json:
        typer.echo(f"written: {', '.join(map(str, written))}")
    if outcome.ended_by is not None:
        left = "1 cell left; the same command goes on with it"
        if outcome.left != 1:
            left = f"{outcome.left} cells left; the same command goes on with them"
        raise interrupted(outcome.ended_by, f" with {left}")
    if outcome.failed:
        first, reason = next(iter(outcome.failed.items()))
        plural = "s" if len(outcome.failed) > 1 else ""
        raise Stopped(f"{len(outcome.failed)} cell{plural} failed, the first was {first}: {reason}", 1)


def _check_out(out: Path, name: str) -> None:
    from kruskal.cli.checks import check_new_folder

    check_new_folder(out, f"--out {out}")
    if out.is_dir():
        check_new_folder(out / name, f"--out {out}: {out / name}")


@contextmanager
def _data_folder(folder: Path | None) -> Iterator[None]:
    """Let --data stand for the environment variable inside the block, also where it should be set."""
    from kruskal.data.datasets import HOW_TO_NAME, VARIABLE

    before = os.environ.get(VARIABLE)
    if folder is not None:
        os.environ[VARIABLE] = str(folder)
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(HOW_TO_NAME, f"name it by --data, or {HOW_TO_NAME}")) from error
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        elif folder is not None:
            del os.environ[VARIABLE]


def _say(text: str) -> None:
    """Tell on standard error what is being done."""
    print(f"kruskal: reproduce: {text}", file=sys.stderr, flush=True)
