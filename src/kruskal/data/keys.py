"""Which array of a file with several is meant."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kruskal.errors import InputError

MOST_NAMES = 20


class Entry(NamedTuple):
    """One array of a file: its shape, and whether it holds real numbers."""

    shape: tuple[int, ...]
    numeric: bool


def choose_key(path: str | os.PathLike[str], entries: Mapping[str, Entry], key: str | None) -> str:
    """The name of the array to read: `key`, or the only array of numbers with more than one element.

    Parameters
    ----------
    path : path-like
        The file, for the message.
    entries : mapping of str to Entry
        All arrays of the file.
    key : str or None
        What the user asked for.
    """
    if key is not None:
        wanted = str(key).strip("/")
        if wanted in entries:
            return wanted
        raise InputError(f"cannot read '{path}': it has no key '{key}', expected one of {_listing(entries)}")
    candidates = [name for name, entry in entries.items() if entry.numeric and np.prod(entry.shape) > 1]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates and len(entries) == 1:
        return next(iter(entries))  # let the check of the array itself say what is wrong with it
    if not candidates:
        raise InputError(f"cannot read '{path}': it holds no array of numbers")
    choice = _listing({name: entries[name] for name in candidates})
    raise InputError(
        f"cannot read '{path}': it holds {len(candidates)} arrays, choose one by key= from {choice}"
    )


def refuse_key(path: str | os.PathLike[str], key: str | None) -> None:
    """Complain about a key for a format that holds one array only."""
    if key is not None:
        raise InputError(
            f"cannot read '{path}' with key '{key}': files of this format hold one array, without a key"
        )


def kept_key(extras: Mapping[str, Any], *, avoid: tuple[str, ...] = ()) -> str:
    """The key under which to write: the one the array was read from, else ``values``."""
    key = str(extras.get("key", "values"))
    return "values" if not key or key in avoid else key


def _listing(entries: Mapping[str, Entry]) -> str:
    names = [f"{name} ({'x'.join(map(str, entry.shape)) or 'scalar'})" for name, entry in entries.items()]
    if len(names) > MOST_NAMES:
        names = [*names[:MOST_NAMES], f"and {len(names) - MOST_NAMES} more"]
    return ", ".join(names) or "no arrays"
