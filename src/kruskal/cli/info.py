"""The command info: what is in a file, a saved result, a dictionary, a model or a checkpoint folder."""

from __future__ import annotations

import json as json_format
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zipfile import BadZipFile

import typer

from kruskal.cli import options
from kruskal.cli.errors import named_by_options
from kruskal.cli.info_models import TRAINING_FILE, describe_model, describe_training
from kruskal.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kruskal.engines.dictionary import Dictionary

_LONGEST = 200


def info(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="An array, a result of --save, a dictionary, a model or a checkpoint folder.",
        ),
    ],
    key: options.KeyName = None,
    json: options.Json = False,
) -> None:
    """Tell what a file holds and which patches would be used for it."""
    from kruskal.cli.summary import json_ready

    found = json_ready(describe(file, key))
    if json:
        typer.echo(json_format.dumps(found, allow_nan=False))
        return
    width = max(len(name) for name in found)
    for name, value in found.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {_words(value)}")


def describe(file: Path, key: str | None = None) -> dict[str, Any]:
    """Find out what a path holds.

    Parameters
    ----------
    file : Path
        An array in any format, an npz of ``--save``, ``kruskal learn`` or ``kruskal classify train``, a deep
        model, or a checkpoint folder.
    key : str, optional
        Name of the array inside the file.

    Returns
    -------
    dict
        What is worth telling, in the order in which it should be told.
    """
    from kruskal.engines.checkpoint_files import HEADER, JOB

    if file.is_dir() and any((file / name).is_file() for name in (HEADER, JOB)):
        return _describe_checkpoint(file)
    if (file / TRAINING_FILE).is_file():
        return describe_training(file)
    if key is None and file.is_file() and file.suffix.lower() == ".npz":
        from kruskal.engines.dictionary import Dictionary, is_dictionary

        if is_dictionary(file):
            return describe_dictionary(file, Dictionary.load(file))
        found = describe_model(file) or _describe_result(file)
        if found is not None:
            return found
    return _describe_array(file, key)


def _describe_array(file: Path, key: str | None) -> dict[str, Any]:
    import numpy as np

    from kruskal.data import Scaling, read
    from kruskal.defaults import FIRST_LOOK, Look
    from kruskal.settings import resolve

    with named_by_options(file):
        loaded = read(file, key=key)
    values, metadata = loaded.values, loaded.metadata.describe()
    finite = np.isfinite(values)
    observed = ~np.isnan(values) if loaded.observed is None else loaded.observed & ~np.isnan(values)
    usable = values[finite & observed]
    look = FIRST_LOOK
    # numbers that only extended precision can hold are described, but not looked at
    if usable.size and -math.inf < float(usable.min()) < float(usable.max()) < math.inf:
        look = Look.at(values, observed & finite, Scaling.fit(values, observed & finite).scale)
    suggested = resolve(values.shape, look=look)
    found = {
        "file": str(file),
        "format": metadata.pop("format"),
        "shape": list(values.shape),
        "dtype": values.dtype.name,
        "result_dtype": metadata.pop("dtype"),
        "minimum": usable.min() if usable.size else None,
        "maximum": usable.max() if usable.size else None,
        "mean": _mean(usable) if usable.size else None,
        "share_observed": observed.mean(),
        "infinite": int((~finite & ~np.isnan(values)).sum()),
        "suggested_patch": list(suggested.patch_shape),
        "suggested_stride": list(suggested.stride),
        "suggested_atoms": suggested.n_atoms,
        "n_items": suggested.grid.n_items,
    }
    known = ("shape", "suffix")
    return found | {name: value for name, value in metadata.items() if name not in known}


def _describe_result(file: Path) -> dict[str, Any] | None:
    """Describe an npz of ``--save``; None for any other npz."""
    import numpy as np

    from kruskal.cli.summary import told_settings

    try:
        with np.load(file, allow_pickle=False) as archive:
            if not {"mean", "std", "dictionary", "usage", "settings"} <= set(archive.files):
                return None
            settings = json_format.loads(str(archive["settings"]))
            usage = archive["usage"]
            mean, std = archive["mean"], archive["std"]
            return {
                "file": str(file),
                "format": "result of kruskal",
                "shape": list(mean.shape),
                "minimum": mean.min(),
                "maximum": mean.max(),
                "mean_std": _mean(std),
                "noise_std": float(archive["noise_std"]),
                "n_items": int(archive["n_items"]),
                "n_atoms_used": int((usage > 0).sum()),
                **told_settings(settings),
            }
    except (BadZipFile, zlib.error, EOFError, ValueError, KeyError, TypeError, AttributeError, OSError):
        return None  # the reader of arrays says what is wrong with it


def describe_dictionary(file: Path, learned: Dictionary) -> dict[str, Any]:
    """Describe a dictionary that was read from, or written to, `file`."""
    from kruskal.cli.summary import rank_histogram, told_settings

    used, settings = learned.usage > 0, told_settings(learned.settings)
    return {
        "file": str(file),
        "format": "dictionary of kruskal",
        "model": learned.model,
        "patch_shape": list(learned.shape),
        "n_atoms": learned.n_atoms,
        "n_atoms_used": int(used.sum()),
        "rank": learned.rank or None,
        "rank_histogram": rank_histogram(learned.ranks, used),
        "noise_std": learned.noise_std,
        "n_items": learned.n_items,
        "offset": learned.scaling.offset,
        "scale": learned.scaling.scale,
        "version": learned.package,
        **{name: value for name, value in settings.items() if name not in ("rank", "estimator")},
    }


def _describe_checkpoint(directory: Path) -> dict[str, Any]:
    from kruskal.cli import job as job_file
    from kruskal.cli.summary import told_settings
    from kruskal.engines.checkpoint_files import HEADER, JOB

    found: dict[str, Any] = {"file": str(directory), "format": "checkpoint of kruskal"}
    if (directory / JOB).is_file():
        job, _, finished = job_file.load(directory)
        found |= {
            "command": job.command,
            "input": str(job.input),
            "output": str(job.output),
            "finished": finished,
        }
        if not finished:
            found["go_on_with"] = f"kruskal resume {directory}"
    state = directory / HEADER
    if state.is_file():
        try:
            header = json_format.loads(state.read_text(encoding="utf-8"))
            done = "batches_done" if header["settings"].get("online") else "sweeps_done"
            found |= {done: int(header["done"]), **told_settings(header["settings"])}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{state} is damaged.") from None
    return found


def _mean(values: NDArray[Any]) -> float:
    """The mean, also of numbers whose sum is too large for a float."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(values.mean(dtype=np.float64))
        if not math.isfinite(mean):
            largest = np.abs(values).max()
            mean = float((values / largest).mean() * largest)
    return mean


def _words(value: Any) -> str:
    """Write a value for people: shapes as 8x8, long things cut."""
    if isinstance(value, list) and value and all(type(part) is int for part in value):
        return options.shape_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
