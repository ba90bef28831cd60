"""Checkpoints: the whole state of a chain in a folder, so that a run can go on where it was.

    input.npz           the array and which entries are observed, as they were given
    state.json          header: format version, settings, sweeps made, name of the state file
    state-<sweep>.npz   global state, sparse codes, moments, trace

Files are written aside and renamed; the header is renamed last, so it always points to a whole state. Nothing
is pickled.
"""

import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.data import atomic_path
from kruskal.engines.chain import Chain
from kruskal.errors import InputError
from kruskal.gibbs.local import Codes
from kruskal.models import Global
from kruskal.patches import RunningMoments

FORMAT = 1
_HEADER = "state.json"
_INPUT = "input.npz"


class Saved(NamedTuple):
    """What a checkpoint folder holds besides the chain's state."""

    values: np.ndarray
    observed: np.ndarray | None
    settings: dict[str, Any]
    header: dict[str, Any]


def begin(directory: Path, values: np.ndarray, observed: np.ndarray | None, settings: dict[str, Any]) -> None:
    """Make a checkpoint folder for a run that is about to start; its parent must exist."""
    if (directory / _HEADER).exists():
        raise InputError(
            f"checkpoint folder {directory} already holds a run: "
            f"go on with 'kruskal resume {directory}', or give another folder"
        )
    if not directory.parent.is_dir():
        raise InputError(f"checkpoint folder {directory} cannot be made: {directory.parent} does not exist")
    try:
        directory.mkdir(exist_ok=True)
        arrays = {"values": values} if observed is None else {"values": values, "observed": observed}
        with atomic_path(directory / _INPUT) as temporary:
            np.savez(temporary, **arrays)  # type: ignore[arg-type]
        _write_header(directory, {"settings": settings, "done": 0, "state": None})
    except OSError as error:
        raise InputError(f"checkpoint folder {directory} cannot be written: {error}") from error


def save(directory: Path, chain: Chain, settings: dict[str, Any]) -> None:
    """Write the state of the chain after its last whole sweep."""
    name = f"state-{chain.done:06d}.npz"
    arrays: dict[str, np.ndarray] = {
        f"global_{key}": np.asarray(v) for key, v in chain.state._asdict().items()
    }
    for key, parts in zip(Codes._fields, zip(*chain.codes)):
        arrays[f"codes_{key}"] = np.concatenate(parts)
    for key in ("mean", "deviation", "square"):
        arrays[f"moments_{key}"] = getattr(chain.moments, key)
    arrays["moments_draws"] = np.asarray(chain.moments.draws)
    arrays["usage"] = chain.usage
    arrays |= {f"trace_{key}": np.asarray(values) for key, values in chain.trace.items()}
    with atomic_path(directory / name) as temporary:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]
    _write_header(directory, {"settings": settings, "done": chain.done, "state": name})
    for old in directory.glob("state-*.npz"):
        if old.name != name:
            old.unlink(missing_ok=True)


def load(directory: Path) -> Saved:
    """Read the header and the input of a checkpoint folder."""
    if not directory.is_dir() or not (directory / _HEADER).is_file():
        raise InputError(f"{directory} is no checkpoint folder: there is no {_HEADER} in it")
    try:
        header = json.loads((directory / _HEADER).read_text())
        with np.load(directory / _INPUT, allow_pickle=False) as archive:
            values = archive["values"]
            observed = archive.get("observed")
        settings = header["settings"]
        version = header["format"]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"checkpoint folder {directory} cannot be read: {error}") from error
    if version != FORMAT:
        raise InputError(f"checkpoint folder {directory} has format {version}; this version reads {FORMAT}")
    return Saved(values, observed, settings, header)


def restore(directory: Path, header: dict[str, Any], chain: Chain) -> None:
    """Put the saved state into a chain that is at its start; nothing to do when no sweep was saved."""
    if header["state"] is None:
        return
    try:
        with np.load(directory / header["state"], allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        fields: dict[str, Any] = {key: arrays[f"global_{key}"] for key in Global._fields}
        chain.state = Global(**{key: v[()] if v.ndim == 0 else v for key, v in fields.items()})
        chain.codes = _split_codes(arrays, [shard.n_items for shard in chain.engine.shards])
        chain.moments = RunningMoments(
            int(arrays["moments_draws"]),
            *(arrays[f"moments_{key}"] for key in ("mean", "deviation", "square")),
        )
        chain.usage = arrays["usage"]
        chain.trace = {key: arrays[f"trace_{key}"].tolist() for key in chain.trace}
        chain.done = int(header["done"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"checkpoint folder {directory} cannot be read: {error}") from error


def _split_codes(arrays: dict[str, np.ndarray], sizes: list[int]) -> list[Codes]:
    """Undo the concatenation over shards: every shard's ``start`` begins with 0 and ends with its total."""
    result, item, code = [], 0, 0
    for size in sizes:
        start = arrays["codes_start"][item : item + size + 1]
        stop = code + int(start[-1])
        result.append(Codes(start, arrays["codes_atom"][code:stop], arrays["codes_value"][code:stop]))
        item, code = item + size + 1, stop
    return result


def _write_header(directory: Path, header: dict[str, Any]) -> None:
    with atomic_path(directory / _HEADER) as temporary:
        Path(temporary).write_text(json.dumps({"format": FORMAT, **header}, indent=1))
