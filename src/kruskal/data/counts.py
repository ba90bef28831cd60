"""Counts, such as photons: their noise grows with them, that of their roots does not.

A count x with mean c has the variance c, and 2 sqrt(x + 3/8) (Anscombe's root) about the variance 1, whatever
c is from about 4 on. So counts are restored as roots. What is found there is the mean of a root, not the root
of a mean; the way back is that of the exact means of roots of Poisson counts (Mäkitalo and Foi's closed
form).
"""

import math

import numpy as np

from kruskal.errors import InputError

NOISE_OF_ROOTS = 1.0
"""Standard deviation of the root of a count that is not small; where few are counted it is less, so that
much of that would make the model take the noise of others for too small."""
LEAST = 2.0 * math.sqrt(0.375)
"""The root of 0."""
_BACK = (-0.125, 0.25 * math.sqrt(1.5), -1.375, 0.625 * math.sqrt(1.5))  # of root^0, ^-1, ^-2, ^-3
_SHARE = 0.25  # of the differences that are smallest, which have the least of edges and texture
_BINS = 8
_FEWEST = 100  # differences in a bin
_GROWTH = 2.0


def roots_of_counts(counts: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """2 sqrt(x + 3/8) of counts, 1 for each; NaN stays NaN.

    The observed ones must not be negative. They need not be whole, as means are not and what is known of the
    gain of a camera is not; but fractions of 1 alone are no counts.
    """
    seen = counts[observed]
    lowest, highest = float(np.min(seen, initial=0)), float(np.max(seen, initial=0))
    if lowest < 0.0:
        raise InputError(
            f"x holds {lowest:g}, but counts are never negative: leave counts out, or set such entries to 0"
        )
    if highest <= 1.0 and (seen != np.rint(seen)).any():
        raise InputError(
            f"x has nothing above {highest:g}, but each count is 1: multiply x, or leave counts out"
        )
    with np.errstate(invalid="ignore"):  # missing ones may be anything
        return 2.0 * np.sqrt(np.maximum(counts.astype(np.float64), 0.0) + 0.375)


def counts_of_roots(mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the mean count where the mean root has these.

    A quarter of the square of a normal with mean m and variance v has mean (m^2 + v) / 4 and variance
    m^2 v / 4 + v^2 / 8: where little is known the second terms are the larger ones.
    """
    root = np.maximum(mean, LEAST)
    inverse = 1.0 / root
    count = 0.25 * root**2 + _BACK[0] + inverse * (_BACK[1] + inverse * (_BACK[2] + inverse * _BACK[3]))
    slope = 0.5 * root - inverse**2 * (_BACK[1] + inverse * (2.0 * _BACK[2] + inverse * 3.0 * _BACK[3]))
    return np.maximum(count, 0.0) + 0.25 * std**2, np.sqrt((slope * std) ** 2 + 0.125 * std**4)


def noise_grows(values: np.ndarray, observed: np.ndarray) -> bool:
    """Whether the noise of an array of numbers from 0 on is twice as large where they are large.

    Told by second differences, the smaller ones of those around small and around large values, along the axis
    where they are smallest.
    """
    if np.min(values, where=observed, initial=0) < 0:
        return False
    found = [pair for axis in range(values.ndim) if (pair := _noise_of_ends(values, observed, axis))]
    if not found:
        return False
    small, large = min(found, key=sum)
    return large > _GROWTH * small


def _noise_of_ends(values: np.ndarray, observed: np.ndarray, axis: int) -> tuple[float, float] | None:
    """What grows like the noise, in the eighths of triples along an axis with the least and largest sums."""
    if values.shape[axis] < 3:
        return None
    x, seen = np.moveaxis(values, axis, -1), np.moveaxis(observed, axis, -1)
    whole = seen[..., :-2] & seen[..., 1:-1] & seen[..., 2:]
    triples = np.stack([x[..., :-2][whole], x[..., 1:-1][whole], x[..., 2:][whole]]).astype(np.float64)
    triples = triples[:, np.ptp(triples, axis=0) > 0.0]  # others are padding or saturated, and have no noise
    size = triples.shape[1] // _BINS
    if size < _FEWEST:
        return None
    triples /= triples.max()  # so that sums do not overflow
    order = np.argsort(triples.sum(axis=0), kind="stable")
    differences = np.abs(triples[0] - 2.0 * triples[1] + triples[2])
    small, large = (float(np.quantile(differences[end], _SHARE)) for end in (order[:size], order[-size:]))
    return small, large
