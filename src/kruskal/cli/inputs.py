"""Read what a restoration needs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kruskal.cli.errors import named_by_options
from kruskal.cli.job import Job
from kruskal.cli.options import shape_text
from kruskal.data import observed_entries, read
from kruskal.data.lazy import missing_chunks_note
from kruskal.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from kruskal.data import Loaded


class Inputs(NamedTuple):
    """Everything a restoration reads.

    Attributes
    ----------
    loaded : Loaded
        The array to restore, with its metadata.
    observed : ndarray of bool
        True where its entries can be used.
    reference : ndarray or None
        The true array.
    digest : str
        A fingerprint of the observed values and of the mask.
    notes : tuple of str
        What the user should know of them.
    """

    loaded: Loaded
    observed: NDArray[np.bool_]
    reference: NDArray[Any] | None
    digest: str
    notes: tuple[str, ...] = ()


def read_inputs(job: Job) -> Inputs:
    """Read the array, its mask and the reference, and make sure that they fit together."""
    with named_by_options(job.input):
        loaded = read(job.input, key=job.key)
    notes = _notes(job.input, loaded)
    mask = None
    if job.mask is not None:
        with named_by_options(job.mask, "--mask-key"):
            loaded_mask = read(job.mask, key=job.mask_key)
        mask = loaded_mask.values
        notes += _notes(job.mask, loaded_mask)
    with named_by_options(job.input):
        observed = observed_entries(
            loaded.values, mask, mask_is=job.mask_is, declared=loaded.observed, name=str(job.input),
            mask_name="--mask",
        )  # fmt: skip
    if job.keep_observed and observed.all():
        raise InputError(f"nothing of {job.input} is missing: --keep-observed would leave all as it is.")
    reference = None
    if job.reference is not None:
        with named_by_options(job.reference, "--reference-key"):
            loaded_reference = read(job.reference, key=job.reference_key)
        reference = loaded_reference.values
        notes += _notes(job.reference, loaded_reference)
        if reference.shape != loaded.values.shape:
            raise InputError(
                f"--reference {job.reference} has the shape {shape_text(reference.shape)}, "
                f"but {job.input} has {shape_text(loaded.values.shape)}."
            )
        if not np.isfinite(reference).any():
            raise InputError(f"--reference {job.reference} holds no finite value.")
    return Inputs(loaded, observed, reference, _digest(loaded.values, observed), notes)


def _notes(file: Path, loaded: Loaded) -> tuple[str, ...]:
    """What is odd about a file that can be read."""
    missing = loaded.metadata.extras.get("missing_chunks")
    return (missing_chunks_note(missing, f"'{file}'"),) if missing else ()


def _digest(values: NDArray[Any], observed: NDArray[np.bool_]) -> str:
    """Fingerprint what the sampler sees; entries that are missing do not count."""
    seen = np.where(observed, values, np.zeros((), dtype=values.dtype))
    fingerprint = hashlib.blake2b(f"{values.dtype} {values.shape}".encode(), digest_size=16)
    fingerprint.update(np.ascontiguousarray(seen).data)
    fingerprint.update(np.packbits(observed).data)
    return fingerprint.hexdigest()
