"""Seeded damage for experiments: drop entries, add noise."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.data.arrays import real_array
from kruskal.data.atomic import atomic_path
from kruskal.data.files import check_writable
from kruskal.data.formats import npz
from kruskal.data.masks import observed_entries
from kruskal.data.metadata import Metadata
from kruskal.errors import InputError, check_seed, shown

MASK_STREAM, NOISE_STREAM = 0, 1


class Corrupted(NamedTuple):
    """A damaged array.

    Attributes
    ----------
    values : numpy.ndarray of float64
        Noisy values, NaN where an entry is missing.
    observed : numpy.ndarray of bool
        True where an entry was kept.
    """

    values: np.ndarray
    observed: np.ndarray


def corrupt(values: Any, *, keep: float = 1.0, noise: float = 0.0, seed: int = 0) -> Corrupted:
    """Keep each entry with probability `keep` and add Gaussian noise.

    Parameters
    ----------
    values : array_like
        Clean data; entries that are NaN or masked stay missing.
    keep : float
        Probability, in (0, 1], that an entry is kept, independently for every entry.
    noise : float
        Standard deviation of the noise in the units of the data. Nothing is clipped or rounded.
    seed : int
        From 0 to 2**64 - 1. Mask and noise have streams of their own: the mask does not depend on `noise`,
        the noise does not depend on `keep`, and what is kept with a smaller `keep` is kept with a larger one.

    Returns
    -------
    Corrupted
        ``values`` and ``observed``.
    """
    if not 0 < _number(keep, "keep") <= 1:
        raise InputError(f"keep is {keep}, expected a probability above 0 and at most 1")
    if not 0 <= _number(noise, "noise") < math.inf:
        raise InputError(f"noise is {noise}, expected a standard deviation of at least 0")
    check_seed(seed)
    observed = observed_entries(values)
    damaged = real_array(values, "values").astype(np.float64)
    observed &= _stream(seed, MASK_STREAM).random(damaged.shape) < keep
    if not observed.any():
        raise InputError(f"keep is {keep}, which leaves none of the {damaged.size} entries of values")
    if noise > 0:
        with np.errstate(over="ignore"):
            damaged += noise * _stream(seed, NOISE_STREAM).standard_normal(damaged.shape)
        if not np.isfinite(damaged[observed]).all():
            raise InputError(
                f"noise is {noise}, with which values would leave the range of double precision, "
                "expected a smaller standard deviation"
            )
    damaged[~observed] = np.nan
    return Corrupted(damaged, observed)


def write_corrupted(
    path: str | os.PathLike[str], values: Any, observed: Any, like: Metadata | None = None
) -> None:
    """Write a damaged array as npz with the entries ``values``, ``observed`` and ``dtype``.

    Parameters
    ----------
    path : path-like
        A name that ends in ``.npz``.
    values, observed : array_like
        As `corrupt` returns them.
    like : Metadata, optional
        Of the clean array: its dtype is remembered, so that a restored picture is again written as uint8.
    """
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"cannot write '{path}': a corrupted array needs the suffix '.npz'")
    check_writable(path)
    array, flags = real_array(values, "values"), np.asarray(observed)
    if flags.shape != array.shape or flags.dtype != bool:
        raise InputError(
            f"observed is {flags.dtype} of shape {flags.shape}, "
            f"expected bool of shape {array.shape} like values"
        )
    arrays = {npz.VALUES: array, npz.OBSERVED: flags}
    if like is not None:
        arrays[npz.DTYPE] = np.array(like.dtype.name)
    with atomic_path(path) as temporary:
        npz.write_arrays(temporary, arrays)


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is {shown(value)}, expected a number") from error


def _stream(seed: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([int(seed), stream])))
