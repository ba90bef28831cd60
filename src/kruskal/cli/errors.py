"""How a command ends early without it being the user's mistake."""

from __future__ import annotations

import errno
import os


class Stopped(Exception):
    """A run ended before it was done.

    Parameters
    ----------
    sentence : str
        The one line to print; it says how to go on, if that is possible.
    status : int
        The exit status: 130 for Ctrl-C, 1 when the machine refused.
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
