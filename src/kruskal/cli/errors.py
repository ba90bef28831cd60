"""How a command ends early: stopped by the machine or the user, or by a mistake, told in its options."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from kruskal.errors import InputError, shown

OPTION_OF = {
    "adapt": "--adapt",
    "alpha": "--alpha",
    "annealing": "--annealing",
    "auto": "--auto",
    "atom_sizes": "--atom-size",
    "batch_size": "--batch-size",
    "C": "--cost",
    "block_shape": "--block",
    "burn_in": "--burn-in",
    "channels": "--channels",
    "checkpoint_seconds": "--checkpoint-seconds",
    "codes": "--codes",
    "counts": "--counts",
    "dictionary": "--dictionary",
    "epochs": "--epochs",
    "grouping": "--grouping",
    "keep": "--keep",
    "mask": "--mask",
    "mask_is": "--mask-is",
    "model": "--model",
    "n_atoms": "--atoms",
    "noise": "--noise",
    "observed": "--mask",
    "online": "--online",
    "passes": "--passes",
    "n_train": "--per-class",
    "n_training": "--learn-from",
    "patch_shape": "--patch",
    "pooling": "--pooling",
    "rank": "--rank",
    "regions": "--regions",
    "seed": "--seed",
    "setting": "--setting",
    "size": "--size",
    "source": "IN",
    "sparsity": "--sparsity",
    "start": "--start",
    "std": "--std",
    "stride": "--stride",
    "sweeps": "--sweeps",
    "target": "--output",
    "threads": "--threads",
    "time_budget": "--time-budget",
    "usage_prior": "--usage-prior",
}
"""The option behind an argument of the library."""
_noted: list[int] = []
_AGAIN_SECONDS = 0.1
"""After which an interrupt that was forgotten is raised again."""
_ARRAY = ("x", "X", "values", "arrays", "arrays[0]")
_QUOTED = r"(?<!\w)'[^']*'|(?<!\w)\"[^\"]*\""
_UNDERSCORED = "|".join(name for name in OPTION_OF if "_" in name)
_ARGUMENT = re.compile(
    rf"{_QUOTED}|(?<![\w./-])(?<!file )(?<!folder )(?P<plain>{_UNDERSCORED})(?![\w/-]|\.\w)"
    rf"|(?P<before>\b(?:give|leave|smaller than|less than|at most) )(?P<after>\w+)\b"
)
"""An argument inside a sentence: a name that is no English word, or one after words that announce it."""

_EXPECTED = {"int": "a whole number such as 3", "float": "a number such as 0.5"}
"""Of an option that takes numbers, by how pydantic calls them."""


def usage_sentence(error: Exception) -> str | None:
    """What is wrong with the words of a command line; None unless typer says so.

    The class of typer's usage errors has moved between versions, their shape has not. What is no choice and
    what is no number it tells in words of the library that checks them, pydantic.
    """
    tell = getattr(error, "format_message", None)
    if tell is None:
        return None
    list_errors = getattr(error.__cause__, "errors", None)
    if list_errors is not None and hasattr(error, "message"):
        found = list_errors()[0]
        kind = str(found["type"]).partition("_")[0]
        if kind in _EXPECTED:
            error.message = f"expected {_EXPECTED[kind]}, not {shown(found['input'])}"
        else:
            error.message = str(error.message).removeprefix("Value error, ")
    return str(tell())


class Stopped(Exception):
    """A run ended before it was done.

    Parameters
    ----------
    sentence : str
        The one line to print; it says how to go on, if that is possible.
    status : int
        The exit status: 130 for Ctrl-C, 143 for SIGTERM, 1 when the machine refused.
    """

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def machine_sentence(error: MemoryError | OSError) -> str:
    """Say what the machine refused, in one sentence."""
    if isinstance(error, MemoryError):
        return "the memory does not suffice; a larger --stride or a part of the array needs less."
    where = f" ({os.fspath(error.filename)})" if isinstance(error.filename, str | os.PathLike) else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{where}."
    reason = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    return f"{reason[:1].lower()}{reason[1:]}{where}."


def name_options(sentence: str, file: str | os.PathLike[str], key: str = "--key") -> str:
    """Say a sentence of the library in the words of the command line.

    Parameters
    ----------
    sentence : str
        What is wrong; an argument of the library is translated where it is the first word, where it has an
        underscore, and where it is compared with, to be given or left out; what is quoted stays as it is.
    file : path-like
        What was read, for sentences about the array.
    key : str
        The option that chooses an array of `file`.

    Returns
    -------
    str

    Examples
    --------
    >>> name_options("burn_in must be smaller than sweeps", "a.npy")
    '--burn-in must be smaller than --sweeps'
    >>> name_options("x is constant", "a.npy")
    'a.npy is constant'
    """
    first, space, rest = _ARGUMENT.sub(_option, sentence).partition(" ")
    first = os.fspath(file) if first in _ARRAY else OPTION_OF.get(first, first)
    rest = re.sub(
        r"\b(like|of) (?:source|values)(?=$| is observed)", lambda word: f"{word[1]} {os.fspath(file)}", rest
    )
    return re.sub(r"\bchoose one by key= from\b", lambda _: f"choose one by {key} from", first + space + rest)


@contextmanager
def named_by_options(file: str | os.PathLike[str], key: str = "--key") -> Iterator[None]:
    """Let mistakes that the library finds inside the block speak of options; see `name_options`."""
    try:
        yield
    except InputError as error:
        raise InputError(name_options(str(error), file, key)) from error


def _option(found: re.Match[str]) -> str:
    """What stands in the place of an argument, or of something quoted."""
    name = found["plain"] or found["after"]
    return found[0] if name is None else f"{found['before'] or ''}{OPTION_OF.get(name, name)}"


class Terminated(KeyboardInterrupt):
    """SIGTERM, which batch systems send when the time is up."""


@contextmanager
def told_after(written: Iterable[str | os.PathLike[str]]) -> Iterator[None]:
    """Let a summary that cannot be printed name what was written; a closed pipe is no error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        names = ", ".join(map(str, written))
        raise Stopped(f"{names} written, but not its summary: {machine_sentence(error)}", 1) from None


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM interrupt the block as Ctrl-C does; nothing changes where SIGTERM has a handler already."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def noting_signals() -> Iterator[list[int]]:
    """Note Ctrl-C and SIGTERM: the list holds an exit status once one has come.

    While a kernel is compiled the interrupt is raised inside a callback of the compiler, which forgets it.
    The compilation then fails with an error of its own, or goes on as if nothing had happened: so an
    interrupt that was forgotten is raised again a little later, until it comes through.
    """
    _noted.clear()
    if threading.current_thread() is not threading.main_thread():
        yield _noted
        return
    usual = {number: usual for number, (usual, _) in _HANDLERS.items() if signal.getsignal(number) is usual}
    alarm = getattr(signal, "SIGALRM", None) in usual
    print_ignored = sys.unraisablehook

    def forgotten(ignored: sys.UnraisableHookArgs) -> None:
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            print_ignored(ignored)
        elif alarm:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    for number in usual:
        signal.signal(number, _HANDLERS[number][1])
    sys.unraisablehook = forgotten
    try:
        yield _noted
    finally:
        try:
            if alarm:
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:  # also when it was raised again just now
            for number, handler in usual.items():
                signal.signal(number, handler)
            sys.unraisablehook = print_ignored


def interrupted(error: KeyboardInterrupt, how_to_go_on: str = "") -> Stopped:
    """Return what Ctrl-C (status 130) and SIGTERM (143) end in."""
    return Stopped(f"interrupted{how_to_go_on}.", 143 if isinstance(error, Terminated) else 130)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    _noted.append(143)
    raise Terminated


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _noted.append(130)
    raise KeyboardInterrupt


def _raise_again(number: int, frame: FrameType | None) -> NoReturn:
    """What was forgotten is the last that was noted."""
    raise Terminated if _noted and _noted[-1] == 143 else KeyboardInterrupt


_HANDLERS: dict[int, tuple[Any, Any]] = {signal.SIGINT: (signal.default_int_handler, _interrupt)}
"""For the time of a command, by signal: the handler that is replaced, and by which."""
if hasattr(signal, "setitimer"):  # not on Windows
    _HANDLERS[signal.SIGALRM] = (signal.SIG_DFL, _raise_again)
