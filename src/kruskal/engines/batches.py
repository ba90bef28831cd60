"""Which items are in which batch, and in which order batches are visited: functions of the seed."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from kruskal.patches import Items
from kruskal.random import Stream, generator


class Source(Protocol):
    """Where the items of a batch come from: `Items` in memory, or something that reads them when asked."""

    @property
    def n_items(self) -> int:
        """Number of all items."""

    @property
    def n_regions(self) -> int:
        """Number of regions of the array."""

    @property
    def size(self) -> int:
        """Number of entries of the array that the items make up."""

    @property
    def complete(self) -> bool:
        """True when no entry is missing."""

    def take(self, chosen: np.ndarray) -> Items:
        """The items with these numbers, in their order."""


@dataclass(frozen=True)
class Batches:
    """Items in batches of about equal size, at random.

    Parameters
    ----------
    n_items, n_batches : how many
    seed : of the run
    reshuffled : whether every epoch has batches of its own; else they stay, and come in a new order
    """

    n_items: int
    n_batches: int
    seed: int
    reshuffled: bool

    @property
    def bounds(self) -> np.ndarray:
        """(n_batches + 1,) where each batch begins in the arrangement."""
        return np.linspace(0, self.n_items, self.n_batches + 1).astype(np.int64)

    @property
    def sizes(self) -> list[int]:
        """Number of items of each batch."""
        return [int(size) for size in np.diff(self.bounds)]

    def arrangement(self, epoch: int) -> np.ndarray:
        """(N,) item numbers, batch after batch; sorted within a batch, so that neighbours stay together."""
        return _arrangement(self, epoch if self.reshuffled else 0)

    def order(self, epoch: int) -> np.ndarray:
        """(n_batches,) which batch is visited when."""
        if self.reshuffled:
            return np.arange(self.n_batches)
        return generator(self.seed, Stream.BATCH_ORDER, epoch).permutation(self.n_batches)


@lru_cache(maxsize=2)
def _arrangement(batches: Batches, number: int) -> np.ndarray:
    shuffled = generator(batches.seed, Stream.BATCHES, number).permutation(batches.n_items)
    arranged = np.concatenate([np.sort(part) for part in np.split(shuffled, batches.bounds[1:-1])])
    arranged.setflags(write=False)
    return arranged
