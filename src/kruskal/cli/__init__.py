"""The command line: parse, call, print. `main` is the console entry point."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_HELP = "--help'"


def main(args: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake ends in one sentence on standard error, never in a traceback.

    Parameters
    ----------
    args : sequence of str, optional
        The words after the program's name; those of the process by default.

    Returns
    -------
    int
        The exit status: 0 done, 1 the machine refused (memory, disk), 2 the user's mistake, 130 interrupted
        by Ctrl-C, 143 by SIGTERM.
    """
    from kruskal.errors import InputError

    try:
        import typer

        from kruskal.cli.app import app
        from kruskal.cli.errors import Stopped, machine_sentence, noting_signals, usage_sentence
    except KeyboardInterrupt:
        return _say("interrupted.", 130)

    _write_any_name()
    words = sys.argv[1:] if args is None else list(args)
    noted: list[int] = []
    try:
        with noting_signals() as noted:
            status = app(args=words, prog_name="kruskal", standalone_mode=False, obj=words)
    except InputError as error:
        return _say(str(error), 2)
    except Stopped as error:
        return _say(str(error), error.status)
    except (KeyboardInterrupt, typer.Abort):
        return _say("interrupted.", noted[-1] if noted else 130)
    except (MemoryError, OSError) as error:
        return _say(machine_sentence(error), 1)
    except Exception as error:
        sentence = usage_sentence(error)
        if sentence is None and noted:  # a compilation that was interrupted
            return _say("interrupted.", noted[-1])
        if sentence is None:
            raise
        command = getattr(getattr(error, "ctx", None), "command_path", None) or "kruskal"
        return _say(f"{sentence} (see '{command} {_HELP})", getattr(error, "exit_code", 2))
    if status == 130:  # what typer makes of Ctrl-C
        return _say("interrupted.", noted[-1] if noted else 130)
    return status if isinstance(status, int) else 0


def _write_any_name() -> None:
    """Let names of files be printed that the console's encoding does not have: 日 as \\u65e5."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # what stands in for a stream may have none
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _say(sentence: str, status: int) -> int:
    """Print one line on standard error, with a full stop but after where help is, and pass the status on."""
    line = " ".join(sentence.split())
    print(f"kruskal: {line}{'' if line.endswith((f'{_HELP})', '.')) else '.'}", file=sys.stderr)
    return status
