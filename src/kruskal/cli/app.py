"""The commands and their names; everything heavy is imported by the command that needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from kruskal import __version__
from kruskal.cli import bench, classify, corrupt, demo, info, learn, reproduce, restore

app = typer.Typer(
    name="kruskal",
    help="Restore noisy or incomplete arrays of any order, blind and with an uncertainty for every entry.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kruskal {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("inpaint", help=restore.INPAINT_HELP)(restore.restore)
app.command("denoise", help=restore.DENOISE_HELP)(restore.restore)
app.command("resume")(restore.resume)
app.command("learn")(learn.learn)
app.add_typer(classify.app, name="classify")
app.command("corrupt")(corrupt.corrupt)
app.command("info")(info.info)
app.command("demo")(demo.demo)
app.command("bench")(bench.bench)
app.command("reproduce")(reproduce.reproduce)
