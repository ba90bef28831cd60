"""How much is observed around an entry, and what that means for its uncertainty: holes in an array.

Inside a hole the covering patches all hear of the same few entries at its edge, so that their opinions agree
more than they are right; and further than half a patch from any observed entry hardly one knows anything.
"""

from typing import NamedTuple

import numpy as np

from kruskal.patches.assemble import OPINION_SHARE, RunningMoments


class Ordinary(NamedTuple):
    """What entries are like of which nothing else is known: mean and variance of the observed ones."""

    mean: float
    variance: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Ordinary":
        """Of these entries."""
        return cls(float(values.mean(dtype=np.float64)), float(values.var(dtype=np.float64)))

    def square_around(self, guess: np.ndarray) -> np.ndarray:
        """Mean square of what such an entry is off a guess."""
        return self.variance + (self.mean - guess) ** 2


Slices = dict[int, np.ndarray]
"""By axis that patches take whole: of which of its slices anything is observed."""


def seen_slices(
    observed: np.ndarray, patch_shape: tuple[int, ...], array_shape: tuple[int, ...] | None = None
) -> Slices:
    """What ``observed``, a part of an array of ``array_shape`` or the whole, says of its slices."""
    axes = enumerate(zip(array_shape or observed.shape, patch_shape))
    return {
        axis: np.asarray(np.moveaxis(observed, axis, 0).reshape(observed.shape[axis], -1).any(axis=1))
        for axis, (size, side) in axes
        if size == side > 1
    }


def nearby_share(
    observed: np.ndarray,
    patch_shape: tuple[int, ...],
    array_shape: tuple[int, ...] | None = None,
    slices: Slices | None = None,
) -> np.ndarray:
    """Share of observed entries in the box around every entry, float32, of the shape of ``observed``.

    The box reaches half a patch to either side, all along an axis that patches take whole, and ends where
    ``observed`` ends, which may be a part of an array of ``array_shape``. In a slice across such an axis, a
    channel say, of which nothing is observed anywhere, which the ``slices`` of the array tell (default: those
    of ``observed``), the share is 0.
    """
    count = observed.astype(np.int32)
    volume = np.ones((1,) * observed.ndim, np.int32)
    sizes = zip(observed.shape, patch_shape, array_shape or observed.shape)
    for axis, (size, side, whole) in enumerate(sizes):
        reach = size if side == whole else side // 2
        places = np.arange(size)
        first, stop = np.maximum(places - reach, 0), np.minimum(places + reach + 1, size)
        before = np.insert(np.cumsum(count, axis=axis, dtype=np.int32), 0, 0, axis=axis)
        count = before.take(stop, axis=axis) - before.take(first, axis=axis)
        lengths = (stop - first).astype(np.int32)
        volume = volume * lengths.reshape([-1 if other == axis else 1 for other in range(observed.ndim)])
    share = (count / volume).astype(np.float32)
    slices = seen_slices(observed, patch_shape, array_shape) if slices is None else slices
    for axis, seen in slices.items():
        np.moveaxis(share, axis, 0)[~seen] = 0.0
    return share


def hole_variance(
    moments: RunningMoments, observed: np.ndarray, nearby: np.ndarray, ordinary: Ordinary
) -> np.ndarray:
    """Variance (size,) of the entries of a mean, with regard to holes.

    Where less than half as much is observed nearby as usual, the share of the spread that counts grows from
    `OPINION_SHARE` up to all of it; where nothing is, the variance is at least the mean square of what an
    ordinary entry is off the guess.

    Parameters
    ----------
    observed : True is observed;  nearby : from `nearby_share`;  ordinary : what observed entries are like
    """
    usual = float(nearby[observed].mean()) if observed.any() else 1.0
    share: np.ndarray = nearby.reshape(-1) * np.float32(-2.0 / usual)
    share += 1.0
    np.maximum(share, 0.0, out=share)
    if not share.any():
        return moments.variance()
    share *= 1.0 - OPINION_SHARE
    share += OPINION_SHARE
    variance = moments.variance(share)
    far = np.flatnonzero(nearby == 0)
    variance[far] = np.maximum(variance[far], ordinary.square_around(moments.mean(far)))
    return variance


def hole_sentence(count: int, what: str = "entries") -> str:
    """What to say of so many entries that nothing observed is near to; ``what`` has a standard deviation."""
    return (
        f"{count} missing entries lie more than half a patch from any observed one, or in a slice of the "
        "array that has none: what is written there is a guess, and the standard deviation at least that of "
        f"the observed {what}"
    )
