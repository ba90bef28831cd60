"""Checkpoints: the whole state of a chain in a folder, so that a run can go on where it was.

    input.npz           the array and which entries are observed, as they were given (of counts the roots)
    dictionary.npz      the dictionary that the run starts from, if it does
    state.json          header: format version, settings, sweeps made, name of the state file
    state-<sweep>.npz   global state, sparse codes, regions, moments, trace
    lock                there while a process works on the run (`kruskal.engines.lock`)

Files are written aside and renamed; the header is renamed last, so it always points to a whole state. Nothing
is pickled.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.data.atomic import atomic_path
from kruskal.engines.chain import TRACED, Progressed
from kruskal.engines.checkpoint_files import DICTIONARY, HEADER, INPUT, JOB, STATES, foreign_files, readable
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.lock import locked
from kruskal.engines.online import AnyChain
from kruskal.errors import InputError
from kruskal.gibbs.local import Codes
from kruskal.patches import PartialDraw, RunningMoments

FORMAT = 5
_MOMENTS = ("weight", "total", "square", "deviation")
_PARTIAL = ("weight", "total", "square")


class Saved(NamedTuple):
    """What a checkpoint folder holds besides the chain's state."""

    values: np.ndarray
    observed: np.ndarray
    settings: dict[str, Any]
    header: dict[str, Any]
    dictionary: Dictionary | None


@contextmanager
def begun(
    directory: Path,
    values: np.ndarray,
    observed: np.ndarray,
    settings: dict[str, Any],
    dictionary: Dictionary | None = None,
) -> Iterator[None]:
    """Make a checkpoint folder for a run, and hold it; its parent must exist."""
    _refuse_used(directory)
    if not directory.parent.is_dir():
        raise InputError(f"checkpoint folder {directory} cannot be made: {directory.parent} does not exist")
    try:
        directory.mkdir(exist_ok=True)
        others = foreign_files(directory)
    except OSError as error:
        raise InputError(f"checkpoint folder {directory} cannot be made: {error.strerror}") from error
    if others:
        raise InputError(
            f"checkpoint folder {directory} holds other files, such as {others[0]}: give an empty one"
        )
    with locked(directory):
        _refuse_used(directory)  # by a run that began meanwhile
        with atomic_path(directory / INPUT) as temporary:
            np.savez(temporary, values=values, observed=observed)
        if dictionary is not None:
            dictionary.save(directory / DICTIONARY)
        _write_header(directory, {"settings": settings, "done": 0, "state": None, "ended": False})
        yield


def _refuse_used(directory: Path) -> None:
    if (directory / HEADER).exists():
        asked_for = (directory / JOB).exists()
        how = f"'kruskal resume {directory}'" if asked_for else f"kruskal.resume({str(directory)!r})"
        raise InputError(
            f"checkpoint folder {directory} already holds a run: go on with {how}, or give another folder"
        )


def save(directory: Path, chain: AnyChain, settings: dict[str, Any], ended: bool) -> None:
    """Write the state of the chain after its last whole sweep; ``ended`` says that no more are to come."""
    now = chain.now
    name = f"state-{now.done:06d}.npz"
    arrays: dict[str, Any] = {f"global_{key}": value for key, value in now.state._asdict().items()}
    arrays |= {f"codes_{key}": np.concatenate(parts) for key, parts in zip(Codes._fields, zip(*now.codes))}
    arrays |= {f"moments_{key}": getattr(now.moments, key) for key in _MOMENTS}
    arrays |= {"moments_draws": now.moments.draws, "usage": now.usage, "trace": now.trace}
    arrays |= {"checked_draws": now.checked_draws, "checked": now.checked, "shift": now.shift}
    arrays |= {"keeping": now.keeping} | {f"partial_{key}": getattr(now.partial, key) for key in _PARTIAL}
    arrays |= dict(_leaves("memory", now.memory))
    arrays |= {"region": now.region, "regrouped": now.regrouped}
    with atomic_path(directory / name) as temporary:
        np.savez(temporary, **arrays)
    _write_header(directory, {"settings": settings, "done": now.done, "state": name, "ended": ended})
    with suppress(OSError):  # an old state that stays does no harm
        for old in directory.glob(STATES):
            if old.name != name:
                old.unlink(missing_ok=True)


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold the checkpoint folder of a run, if it is one."""
    if not (directory / HEADER).is_file():
        raise InputError(f"{directory} is no checkpoint folder: there is no {HEADER} in it")
    with locked(directory):
        yield


def load(directory: Path) -> Saved:
    """Read the header and the input of a checkpoint folder, which is held."""
    with readable(directory):
        header = json.loads((directory / HEADER).read_text())
        if header["format"] != FORMAT:
            raise InputError(
                f"checkpoint folder {directory} has format {header['format']}; this version reads {FORMAT}"
            )
        settings = dict(header["settings"])
        known = settings.get("known_atoms") is not None
        dictionary = Dictionary.load(directory / DICTIONARY) if known else None
        with (directory / INPUT).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return Saved(archive["values"], archive["observed"], settings, header, dictionary)


def restore(directory: Path, header: dict[str, Any], chain: AnyChain) -> None:
    """Put the saved state into a chain that is at its start; nothing to do when no sweep was saved."""
    with readable(directory):
        if header["state"] is None:
            return
        with (directory / header["state"]).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        kind = type(chain.now.state)
        fields: dict[str, Any] = {key: arrays[f"global_{key}"] for key in kind._fields}
        saved = Progressed(
            int(header["done"]),
            kind(**{key: v[()] if v.ndim == 0 else v for key, v in fields.items()}),
            _split_codes(arrays, [len(codes.start) - 1 for codes in chain.now.codes]),
            RunningMoments(int(arrays["moments_draws"]), *(arrays[f"moments_{key}"] for key in _MOMENTS)),
            arrays["usage"],
            arrays["trace"],
            int(arrays["checked_draws"]),
            arrays["checked"],
            float(arrays["shift"]),
            _like(chain.now.memory, "memory", arrays),
            bool(arrays["keeping"]),
            PartialDraw(*(arrays[f"partial_{key}"] for key in _PARTIAL)),
            arrays["region"],
            int(arrays["regrouped"]),
        )
        _check(saved, chain)
    chain.go_on_from(saved)


def _check(saved: Progressed, chain: AnyChain) -> None:
    """A state that does not fit the run that the header describes is refused."""
    first = chain.now
    for name, one, other in zip(first.state._fields, saved.state, first.state):
        shapes = np.asarray(one).shape, np.asarray(other).shape
        if shapes[0] != shapes[1]:
            raise ValueError(f"{name} has shape {shapes[0]} instead of {shapes[1]}")
    if saved.trace.shape != (saved.done, len(TRACED)) or not 0 <= saved.moments.draws <= saved.done:
        raise ValueError("the number of sweeps and what was kept of them do not agree")
    alike = saved.region.dtype == first.region.dtype and saved.region.shape == first.region.shape
    if not alike or (saved.region >= _n_regions(first)).any():
        raise ValueError("the regions belong to other items")
    size = len(first.moments.weight)
    if len(saved.moments.weight) != size or len(saved.partial.weight) not in (0, size):
        raise ValueError("the state belongs to another array")


def _n_regions(first: Progressed) -> int:
    """Regions that items may have; those of a stack have none."""
    return len(first.state.log_odds) if len(first.region) else 0


def _split_codes(arrays: dict[str, np.ndarray], sizes: list[int]) -> tuple[Codes, ...]:
    """Undo the concatenation over shards: every shard's ``start`` begins with 0 and ends with its total."""
    if not sizes:
        return ()
    result, item, code = [], 0, 0
    for size in sizes:
        start = arrays["codes_start"][item : item + size + 1]
        stop = code + int(start[-1])
        result.append(Codes(start, arrays["codes_atom"][code:stop], arrays["codes_value"][code:stop]))
        item, code = item + size + 1, stop
    if (item, code) != (len(arrays["codes_start"]), len(arrays["codes_atom"])):
        raise ValueError("the codes belong to another array")
    return tuple(result)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Arrays and numbers of nested tuples, by names that tell where they are."""
    if not isinstance(value, tuple):
        yield name, value
        return
    for key, part in zip(getattr(value, "_fields", range(len(value))), value):
        yield from _leaves(f"{name}_{key}", part)


def _like(pattern: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Undo `_leaves`: nested tuples such as ``pattern``, with other values of the same shapes."""
    if isinstance(pattern, tuple):
        keys = getattr(pattern, "_fields", range(len(pattern)))
        parts = [_like(part, f"{name}_{key}", arrays) for key, part in zip(keys, pattern)]
        return type(pattern)(*parts) if hasattr(pattern, "_fields") else tuple(parts)
    value = arrays[name]
    if value.shape != np.shape(pattern):
        raise ValueError(f"{name} has shape {value.shape} instead of {np.shape(pattern)}")
    return value[()] if value.ndim == 0 else value


def _write_header(directory: Path, header: dict[str, Any]) -> None:
    with atomic_path(directory / HEADER) as temporary:
        Path(temporary).write_text(json.dumps({"format": FORMAT, **header}, indent=1))
