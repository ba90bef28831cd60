"""Putting items back together: weighted overlap averages, and their running moments over the kept draws.

The reconstructed items are never held: each is formed, added to a slab that covers the shard's part of the
array, and forgotten. Slabs are added in order, so the sums do not depend on the number of threads.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kruskal.kernel import kernel
from kruskal.patches.grid import Items

OPINION_SHARE = 0.3
"""How much of the spread of overlapping items counts as uncertainty of their average."""


class Slab(NamedTuple):
    """Weighted sums over the items of one shard, for the flat entries from ``first`` on.

    ``total`` sums v_n (Dw_n)_i and ``square`` sums v_n (Dw_n)_i^2 over the items n that cover an entry.
    """

    first: int
    total: np.ndarray
    square: np.ndarray


def item_weights(observed_counts: np.ndarray) -> np.ndarray:
    """(n,) weight v_n of an item in the overlap average: the number of its observed entries.

    An item without any observed entry says next to nothing about the array, so it gets next to no say; it
    counts only for entries that no better informed item covers.
    """
    return np.maximum(observed_counts, 1e-6).astype(np.float64)


def scatter(items: Items, codes, dictionary: np.ndarray, weights: np.ndarray) -> Slab:
    """Add up the reconstructions of a shard's items.

    Parameters
    ----------
    items : the shard's items;  codes : (start, atom, value) of their sparse codes
    dictionary : (K, P) in the data's precision;  weights : (n,) from `item_weights`
    """
    first = int(items.origin.min())
    size = int(items.origin.max()) + int(items.offset[-1]) + 1 - first
    total, square = np.zeros(size), np.zeros(size)
    _scatter(items.origin - first, items.offset, *codes, dictionary, weights, total, square)
    return Slab(first, total, square)


@kernel
def _scatter(origin, offset, start, atom, value, dictionary, weights, total, square):
    n_entries = offset.shape[0]
    item = np.empty(n_entries, dictionary.dtype)
    for n in range(origin.shape[0]):
        for i in range(n_entries):
            item[i] = 0
        for c in range(start[n], start[n + 1]):
            row = dictionary[atom[c]]
            w = value[c]
            for i in range(n_entries):
                item[i] += w * row[i]
        weight = weights[n]
        for i in range(n_entries):
            at = origin[n] + offset[i]
            total[at] += weight * item[i]
            square[at] += weight * float(item[i]) * float(item[i])


def cover(items: Items, weights: np.ndarray, size: int) -> np.ndarray:
    """(size,) sum of the weights of the items that cover each entry of the array; zero where none does."""
    total = np.zeros(size)
    _cover(items.origin, items.offset, weights, total)
    return total


@kernel
def _cover(origin, offset, weights, total):
    for n in range(origin.shape[0]):
        for i in range(offset.shape[0]):
            total[origin[n] + offset[i]] += weights[n]


@dataclass(frozen=True)
class RunningMoments:
    """Mean and spread of the reassembled array over the kept draws.

    Attributes
    ----------
    draws : number of draws added
    mean : (size,) mean of the overlap averages
    deviation : (size,) sum of squared deviations of the overlap averages from their mean (Welford)
    square : (size,) mean over draws of the overlap average of the squared reconstructions
    """

    draws: int
    mean: np.ndarray
    deviation: np.ndarray
    square: np.ndarray

    @classmethod
    def zero(cls, size: int) -> "RunningMoments":
        """Nothing added yet, for an array of ``size`` entries."""
        return cls(0, np.zeros(size), np.zeros(size), np.zeros(size))

    def with_draw(self, slabs: list[Slab], cover: np.ndarray) -> "RunningMoments":
        """The moments with one more draw, given the slabs of all shards in order and each entry's weight."""
        total, square = np.zeros_like(self.mean), np.zeros_like(self.mean)
        for slab in slabs:
            total[slab.first : slab.first + len(slab.total)] += slab.total
            square[slab.first : slab.first + len(slab.square)] += slab.square
        covered = np.where(cover > 0, cover, 1.0)
        draw, draws = total / covered, self.draws + 1
        change = draw - self.mean
        mean = self.mean + change / draws
        deviation = self.deviation + change * (draw - mean)
        return RunningMoments(draws, mean, deviation, self.square + (square / covered - self.square) / draws)

    def draw_variance(self) -> np.ndarray:
        """Variance of the overlap average from draw to draw (the Monte Carlo view of the mean)."""
        return self.deviation / max(1, self.draws - 1)

    def variance(self) -> np.ndarray:
        """Variance of an entry: that of the overlap average plus `OPINION_SHARE` of the spread of the items.

        Each covering item is one posterior opinion on the entry. Were the opinions independent, only the
        variance of their average would count (intervals far too short: 43 to 74 % where 95 % are wanted);
        were they one and the same, their whole spread would (too long: 99 %). The share in between was set
        once, on pictures from scikit-image (docs/results.md).
        """
        average = self.draw_variance()
        spread = np.maximum(self.square - self.mean**2 - average, 0.0)
        return average + OPINION_SHARE * spread
