"""The files of a checkpoint folder by name, and what is said when they are damaged.

What is in them is told in `kruskal.engines.checkpoint`.
"""

import errno
import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kruskal.data.atomic import reason
from kruskal.errors import DAMAGE, InputError

HEADER, INPUT, DICTIONARY = "state.json", "input.npz", "dictionary.npz"
STATES = f"state-{6 * '[0-9]'}.npz"
JOB = "job.json"
"""What a command line asked for; a run that was started from Python has none."""
_RUN_FILES = (HEADER, STATES, INPUT, DICTIONARY, ".kruskal-*", JOB)
"""In the order in which they are removed: whoever is killed meanwhile leaves a folder that is free."""
_OF_DAMAGE = (None, errno.ENOENT, errno.EISDIR, errno.EINVAL)
"""Of an error of the system: a file is gone, or what is left of it points nowhere. Others are of the disk."""
_OURS = re.compile(r"state\.json|state-\d{6}\.npz|input\.npz|dictionary\.npz|\.kruskal-.*|job\.json|lock")


def foreign_files(directory: Path) -> list[str]:
    """What a checkpoint folder holds that no run has written, by name."""
    return sorted(name for name in os.listdir(directory) if not _OURS.fullmatch(name))


def clear(directory: Path) -> None:
    """Remove the files of a run from a checkpoint folder that this process holds."""
    for pattern in _RUN_FILES:
        for path in directory.glob(pattern):
            path.unlink(missing_ok=True)


@contextmanager
def readable(directory: Path) -> Iterator[None]:
    """Damaged files become one sentence."""
    try:
        yield
    except InputError:
        raise
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno not in _OF_DAMAGE:
            raise InputError(f"checkpoint folder {directory} cannot be read: {reason(error)}") from error
        raise InputError(
            f"checkpoint folder {directory} cannot be read: it is damaged{_found(error)}, remove the folder "
            "to begin anew"
        ) from error


def _found(error: BaseException) -> str:
    """What a check of ours has found; libraries speak of their formats, and advise to trust the file."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if not frame.f_globals.get("__name__", "").startswith("kruskal."):
        return ""
    if isinstance(error, KeyError):
        return f" ({error} is missing)"
    return f" ({reason(error)})" if type(error) is ValueError else ""
