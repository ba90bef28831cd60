"""Write aside and rename: a file is either complete or not there."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kruskal.errors import InputError


def full_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix of a path, two-part when the file is compressed: ``.png``, ``.nii.gz``."""
    path = Path(path)
    if path.suffix.lower() == ".gz":
        return "".join(path.suffixes[-2:])
    return path.suffix


def temporary_name(path: Path) -> Path:
    """A new hidden name in the folder of `path`, with the same suffix, which tells a writer its format."""
    return path.with_name(f".kruskal-{os.getpid()}-{secrets.token_hex(4)}{full_suffix(path)}")


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success, remove it on any failure.

    The body may create a file or a folder (a zarr store) under the temporary name; an existing file or
    folder of the final name is replaced. A symbolic link is followed, its target is replaced.

    Parameters
    ----------
    path : path-like
        The final name.

    Yields
    ------
    pathlib.Path
        A name in the same folder with the same full suffix that does not exist yet.

    Raises
    ------
    InputError
        When the operating system refuses (full disk, missing folder, no permission), or the name is taken by
        a device, a pipe or a socket. Every other exception, KeyboardInterrupt included, passes through after
        the temporary file is removed.
    """
    final = Path(os.path.realpath(path))
    temporary = temporary_name(final)
    try:
        _refuse_special(path, final)
        yield temporary
        _flush(temporary)
        _rename(temporary, final)
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError):
            raise InputError(f"cannot write '{path}': {reason(error)}") from error
        raise


def check_place(path: Path, *, folder: bool = False) -> None:
    """Complain unless a file, or a folder such as a zarr store, can be created or replaced there.

    Parameters
    ----------
    path : pathlib.Path
        The final name.
    folder : bool
        Whether a folder is to be written.

    Raises
    ------
    InputError
        One sentence that says what stands in the way.
    """
    final = Path(os.path.realpath(path))
    if not final.parent.is_dir():
        raise InputError(f"cannot write '{path}': the folder '{path.parent}' does not exist")
    _refuse_special(path, final)
    if final.is_dir() and not folder:
        raise InputError(f"cannot write '{path}': a folder of that name exists")
    if final.is_file() and folder:
        raise InputError(
            f"cannot write '{path}': a file of that name exists, expected a zarr store or nothing"
        )
    probe = temporary_name(final)
    try:  # the only answer that also holds for network disks and for root
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise InputError(
            f"cannot write '{path}': the folder '{path.parent}' does not accept files ({reason(error)})"
        ) from error


def reason(error: BaseException) -> str:
    """The first line of an exception's message, without a full stop."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    line = lines[0].rstrip(".") if lines else type(error).__name__
    if re.fullmatch(r"\d+ requested and \d+ written", line):  # how NumPy reports a full disk
        return "only a part could be written, the disk may be full"
    quoted = re.search("error message = '([^']+)'", line)  # how HDF5 reports it
    return quoted.group(1) if quoted else line


def _refuse_special(path: str | os.PathLike[str], final: Path) -> None:
    """Refuse a device, a pipe or a socket: renaming would put a file in its place, which nobody wants."""
    if final.exists() and not (final.is_file() or final.is_dir()):
        raise InputError(
            f"cannot write '{path}': it is a device, a pipe or a socket, expected a file or folder"
        )


def _flush(path: Path) -> None:
    """Force a file to the disk, so that a rename never makes an empty file visible after a power cut."""
    if path.is_file():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())


def _rename(temporary: Path, final: Path) -> None:
    if not (temporary.is_dir() and final.is_dir()):
        os.replace(temporary, final)
        return
    # A folder cannot be renamed over a folder that holds something: step the old one aside first.
    old = temporary_name(final)
    try:
        os.replace(final, old)
        os.replace(temporary, final)
    finally:
        if not final.exists():
            os.replace(old, final)
        _remove(old)


def _remove(path: Path) -> None:
    if not path.is_dir():
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return
    try:
        for _ in range(10):
            shutil.rmtree(path, ignore_errors=True)
            time.sleep(0.02)  # zarr writes in threads of its own, which may still be busy with a last chunk
            if not path.exists():
                return
    except KeyboardInterrupt:
        shutil.rmtree(path, ignore_errors=True)
        raise
