"""The command bench."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kruskal.cli import options
from kruskal.errors import InputError


def bench(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for bench.json and bench.png.")] = Path(
        "kruskal-bench"
    ),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Smaller sizes, and other programs only if --sections names peers; about two minutes.",
        ),
    ] = False,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="1,2", help="Numbers of threads to compare.", show_default="1,2, or 1 on a single core"
        ),
    ] = None,
    sections: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Only these of startup, phases, quality, growth, images, online and peers.",
            show_default="all",
        ),
    ] = None,
    print_json: options.Json = False,
) -> None:
    """Measure the speed of the sampler on this machine; writes bench.json and bench.png (half an hour).

    Time per sweep by phase beside the matrix product of the same shape, growth with N, K and P, memory, time
    to a given quality, start-up, sweeps and steps over whole images beside dense convolutions, learning
    online beside full sweeps, and other programs on the same data where they are installed.
    """
    from kruskal.engines.threads import check_threads

    cores = check_threads(None)
    counts = parse_threads(threads, cores) if threads is not None else [1, 2][:cores]

    from kruskal.cli.checks import check_new_folder

    check_new_folder(out, f"--out {out}")

    from kruskal.experiments.speed import plan, run, tables
    from kruskal.experiments.speed.console import new_console

    only = run.SECTIONS if sections is None else parse_sections(sections, run.SECTIONS)
    check_others_are_kept(out, run.JSON_NAME, only, run.SECTIONS)
    console = new_console()
    results: dict[str, Any] = {}
    sizes = plan.QUICK if quick else plan.FULL
    if sections is not None and "peers" in only:
        sizes = replace(sizes, peers=True)
    for section, results in run.run(sizes, counts, _say, only):
        run.save(out, results)
        if not print_json:
            tables.show(console, section, results)
    if print_json:
        typer.echo(run.as_json(results))
    else:
        names = (run.JSON_NAME, run.PLOT_NAME) if "growth" in only else (run.JSON_NAME,)
        typer.echo(f"written: {', '.join(str(out / name) for name in names)}")


def parse_threads(text: str, cores: int) -> list[int]:
    """Read numbers of threads such as ``1,2``: different, at least 1, at most the number of cores."""
    try:
        counts = sorted(int(part) for part in text.split(","))
    except ValueError:
        counts = []
    if not counts or counts[0] < 1 or len(set(counts)) < len(counts):
        raise InputError(
            f"--threads takes different whole numbers of at least 1, such as 1 or 1,2, not {text!r}."
        )
    if counts[-1] > cores:
        raise InputError(f"--threads {counts[-1]} is more than the {cores} cores that this process may use.")
    return counts


def parse_sections(text: str, known: Sequence[str]) -> list[str]:
    """Read names of sections such as ``phases,growth``."""
    names = [name.strip() for name in text.split(",") if name.strip()] or [text]
    wrong = [name for name in names if name not in known]
    if wrong:
        raise InputError(f"--sections takes names among {', '.join(known)}, not {wrong[0]!r}.")
    return names


def check_others_are_kept(out: Path, name: str, only: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a folder whose results have sections that a partial run would not write again."""
    if not (out / name).exists():
        return
    try:
        found = json.loads((out / name).read_text())
    except (ValueError, OSError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"--out {out} holds a {name} that is not of this command: give another folder.")
    lost = [section for section in known if section in found and section not in only]
    if lost:
        raise InputError(
            f"--out {out} holds results of {', '.join(lost)}, which --sections {','.join(only)} would "
            "not keep: give another folder."
        )


def _say(text: str) -> None:
    """Tell on standard error what is being measured."""
    print(f"kruskal: bench: {text}", file=sys.stderr, flush=True)
