"""Putting items back together: weighted overlap averages, and their running moments over the kept draws.

The reconstructed items are never held: each is formed, added to a slab that covers the shard's part of the
array, and forgotten. Slabs are added in order, so the sums do not depend on the number of threads. Who forms
the items decides on their weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kruskal.kernel import address_of, array_at, kernel

Share = Callable[[Callable[[int], None], int], object]
"""Who calls a function of 0 .. n - 1, n times: a loop, or threads."""
_PART = 16_384  # entries of the array that one thread adds to at a time

OPINION_SHARE = 0.45
"""How much of the spread of overlapping items counts as uncertainty of their average."""


def one_by_one(function: Callable[[int], None], n_tasks: int) -> None:
    """``function`` of 0 .. n_tasks - 1, in order."""
    for i in range(n_tasks):
        function(i)


class Slab(NamedTuple):
    """Weighted sums over the items of one shard, for the flat entries from ``first`` on, in double precision.

    With the mean m and variance v of item n at an entry, and its weight w there, ``weight`` sums w, ``total``
    sums w m and ``square`` sums w (m^2 + v) over the items that cover the entry.
    """

    first: int
    weight: np.ndarray
    total: np.ndarray
    square: np.ndarray


@dataclass(frozen=True)
class PartialDraw:
    """One draw of the array that comes together batch by batch: sums as in `Slab` over the items so far."""

    weight: np.ndarray
    total: np.ndarray
    square: np.ndarray

    @classmethod
    def zero(cls, size: int) -> "PartialDraw":
        """No item yet, for an array of ``size`` entries."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))

    def with_slabs(self, slabs: list[Slab]) -> "PartialDraw":
        """With the items of further shards, in order."""
        sums = PartialDraw(self.weight.copy(), self.total.copy(), self.square.copy())
        for slab in slabs:
            here = slice(slab.first, slab.first + len(slab.weight))
            sums.weight[here] += slab.weight
            sums.total[here] += slab.total
            sums.square[here] += slab.square
        return sums


@dataclass(frozen=True)
class RunningMoments:
    """Mean and spread of the reassembled array over the kept draws.

    Attributes
    ----------
    draws : number of draws added
    weight, total, square : (size,) sums over draws and items, see `Slab`
    deviation : (size,) weighted sum over draws of squared deviations of the overlap average (West 1979)
    """

    draws: int
    weight: np.ndarray
    total: np.ndarray
    square: np.ndarray
    deviation: np.ndarray

    @classmethod
    def zero(cls, size: int) -> "RunningMoments":
        """Nothing added yet, for an array of ``size`` entries."""
        return cls(0, np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size))

    def with_draw(self, slabs: list[Slab], share: Share = one_by_one) -> "RunningMoments":
        """The moments with one more draw, given the slabs of all shards in order.

        ``share`` lets threads have a part of the array each.
        """
        size = len(self.weight)
        before = self.weight, self.total, self.square, self.deviation
        after = np.empty((4, size))
        where = np.array([_address(slab) for slab in slabs], np.int64).reshape(-1, 5)

        def add_part(number: int) -> None:
            _add_draw(where, number * _PART, min((number + 1) * _PART, size), *before, after)

        share(add_part, -(-size // _PART))
        return RunningMoments(self.draws + 1, *after)

    def with_whole(self, draw: PartialDraw) -> "RunningMoments":
        """The moments with one more draw, given the sums over all items."""
        return self.with_draw([Slab(0, draw.weight, draw.total, draw.square)])

    def mean(self, places: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The estimate at some places, or all: weighted average over draws and items; 0 where no item is."""
        return _ratio(self.total[places], self.weight[places])

    def draw_variance(self) -> np.ndarray:
        """Variance of the overlap average from draw to draw (the Monte Carlo view of the mean)."""
        return _ratio(self.deviation, self.weight) * (self.draws / max(1, self.draws - 1))

    def variance(self, share: float | np.ndarray = OPINION_SHARE) -> np.ndarray:
        """Variance of an entry: that of the overlap average plus a ``share`` of the spread of the items.

        Each covering item is one posterior opinion on the entry, with a variance of its own. Were they
        independent, only the variance of their average would count (intervals far too short); were they one
        and the same, their whole spread would (too long). `OPINION_SHARE` was set once, on pictures from
        scikit-image (docs/choices.md); in holes it is more (`kruskal.patches.reach`).
        """
        average = self.draw_variance()
        spread = np.maximum(_ratio(self.square, self.weight) - self.mean() ** 2 - average, 0.0)
        return average + share * spread


def _address(slab: Slab) -> tuple[int, ...]:
    """What a kernel needs to know of a slab, which has to be kept alive: its first entry, size and arrays."""
    return slab.first, len(slab.weight), *(address_of(array) for array in slab[1:])


@kernel
def _add_draw(slabs, begin, end, weight, total, square, deviation, after):
    """Add the sums of one draw, at the entries from ``begin`` to ``end``; (4, size) moments are in ``after``.

    ``slabs`` (n, 5) from `_address`: threads would get in each other's way where lists are looked at.
    """
    new = np.zeros((3, end - begin))
    for number in range(slabs.shape[0]):
        first, size = slabs[number, 0], slabs[number, 1]
        for kind in range(3):
            sums = array_at(slabs[number, 2 + kind], size, weight)
            for i in range(max(first, begin), min(first + size, end)):
                new[kind, i - begin] += sums[i - first]
    for i in range(begin, end):
        new_weight, new_total, new_square = new[0, i - begin], new[1, i - begin], new[2, i - begin]
        together = weight[i] + new_weight
        after[0, i] = together
        after[1, i] = total[i] + new_total
        after[2, i] = square[i] + new_square
        after[3, i] = deviation[i]
        if new_weight > 0.0 and weight[i] > 0.0:
            off = new_total / new_weight - total[i] / weight[i]
            after[3, i] += new_weight * (weight[i] / together) * off * off


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
