"""Local state: the items of one shard, their sparse codes and, for masked data, their residuals.

Items are split into a fixed number of shards that depends on the number of items only, never on the number
of threads: a shard is the unit of work of every engine, and sums over items are sums over shards in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kruskal.kernel import kernel
from kruskal.patches import Items

MOST_ATOMS = 2**16 - 1
"""Codes and maps store the atom in 16 bits."""
_ITEMS_PER_SHARD = 1024
_MOST_SHARDS = 32
_MOST_SUMS = 8


class Codes(NamedTuple):
    """The non-zero w_kn = s_kn z_kn of consecutive items, item by item, atoms in increasing order.

    Attributes
    ----------
    start : (n + 1,) int64, where the codes of each item begin
    atom : (nnz,) uint16
    value : (nnz,) float of the data's precision
    """

    start: np.ndarray
    atom: np.ndarray
    value: np.ndarray

    @classmethod
    def empty(cls, n_items: int, dtype: np.dtype) -> "Codes":
        """No atom is used by any item."""
        return cls(np.zeros(n_items + 1, np.int64), np.zeros(0, np.uint16), np.zeros(0, dtype))


@dataclass
class Shard:
    """Consecutive items with their local state.

    Attributes
    ----------
    first : index of the first item among all items; random numbers are addressed by it
    items : the data of these items
    entry_start, entry : observed entries of each item, packed ((n + 1,) int64, (observed,) uint32);
        of length one and zero when the data are complete
    codes : current codes
    residual : (observed,) x - Dw at the observed entries (masked data only; rebuilt by every code draw)
    """

    first: int
    items: Items
    entry_start: np.ndarray
    entry: np.ndarray
    codes: Codes
    residual: np.ndarray

    @property
    def n_items(self) -> int:
        """Number of items of this shard."""
        return self.items.n_items

    @property
    def n_observed(self) -> int:
        """Number of observed entries over the items of this shard (an entry in two items counts twice)."""
        return len(self.entry) if not self.items.complete else self.n_items * len(self.items.offset)


def shards_per_sum(n_shards: int) -> int:
    """How many consecutive shards are summed into the same arrays, where sums are large: two or more.

    There are more shards than sums, so that no thread waits long for the last one, and adding is cheap.
    """
    return max(2, -(-n_shards // _MOST_SUMS))


def split(items: Items) -> list[Shard]:
    """Cut items into shards, with empty codes."""
    return [make_shard(items, first, stop) for first, stop in shard_bounds(items.n_items)]


def shard_bounds(n_items: int) -> list[tuple[int, int]]:
    """First item of every shard, and the one after its last: a function of the number of items alone.

    The first shard is three times as large as the last: those that are begun last are soon done, and no
    thread waits long for another.
    """
    n_shards = max(1, min(_MOST_SHARDS, -(-n_items // _ITEMS_PER_SHARD)))
    ends = np.cumsum([0.0, *np.linspace(3.0, 1.0, n_shards)])
    return list(pairwise(np.rint(n_items * (ends / ends[-1])).astype(np.int64).tolist()))


def make_shard(items: Items, begin: int, stop: int, address: int = 0) -> Shard:
    """A shard of the items begin .. stop - 1, with empty codes.

    ``address`` is what the first of all items is addressed by, for items that are some of many.
    """
    part, first, stop = items.part(begin, stop), address + begin, address + stop
    codes = Codes.empty(stop - first, items.flat.dtype)
    if items.complete:
        nothing = np.zeros(0, items.flat.dtype)
        return Shard(first, part, np.zeros(1, np.int64), np.zeros(0, np.uint32), codes, nothing)
    start = np.zeros(stop - first + 1, np.int64)
    _count_observed(items.observed, part.origin, part.offset, start)
    entry = np.empty(start[-1], np.uint32)
    _list_observed(items.observed, part.origin, part.offset, entry)
    return Shard(first, part, start, entry, codes, np.zeros(len(entry), items.flat.dtype))


@kernel
def _count_observed(observed, origin, offset, start):
    for n in range(origin.shape[0]):
        count = 0
        for i in range(offset.shape[0]):
            count += observed[origin[n] + offset[i]]
        start[n + 1] = start[n] + count


@kernel
def _list_observed(observed, origin, offset, entry):
    filled = 0
    for n in range(origin.shape[0]):
        for i in range(offset.shape[0]):
            if observed[origin[n] + offset[i]]:
                entry[filled] = i
                filled += 1


def join_codes(parts: Sequence[Codes]) -> Codes:
    """The codes of consecutive groups of items as one."""
    before = np.cumsum([0, *(len(part.atom) for part in parts)])
    start = [part.start[:-1] + shift for part, shift in zip(parts, before)]
    return Codes(
        np.concatenate([*start, before[-1:]]),
        np.concatenate([part.atom for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def split_codes(codes: Codes, sizes: Sequence[int]) -> list[Codes]:
    """The codes of consecutive groups of so many items each: `join_codes` undone."""
    bounds = np.cumsum([0, *sizes])
    result = []
    for first, stop in pairwise(bounds):
        start = codes.start[first : stop + 1]
        here = slice(start[0], start[-1])
        result.append(Codes(start - start[0], codes.atom[here], codes.value[here]))
    return result


def pick_codes(codes: Codes, chosen: np.ndarray) -> Codes:
    """The codes of the items ``chosen`` (n,) int64, in their order."""
    lengths = np.diff(codes.start)[chosen]
    start = np.concatenate([[0], np.cumsum(lengths)])
    # place of every code: that of its item's first, counted on
    place = np.repeat(codes.start[chosen] - start[:-1], lengths) + np.arange(start[-1])
    return Codes(start, codes.atom[place], codes.value[place])


def count_codes(codes: Codes, region: np.ndarray, n_regions: int, n_atoms: int) -> np.ndarray:
    """How many items of each region use each atom, (G, K) int64."""
    counts = np.zeros((n_regions, n_atoms), np.int64)
    _count(codes.start, codes.atom, region, counts)
    return counts


def sum_squares(codes: Codes, n_atoms: int) -> np.ndarray:
    """(K,) sum of the squared codes of each atom."""
    squares = np.zeros(n_atoms)
    _sum_squares(codes.atom, codes.value, squares)
    return squares


@kernel
def _count(start, atom, region, counts):
    for n in range(region.shape[0]):
        here = np.uint64(region[n])
        for c in range(start[n], start[n + 1]):
            counts[here, atom[c]] += 1


@kernel
def _sum_squares(atom, value, squares):
    for c in range(atom.shape[0]):
        squares[atom[c]] += float(value[c]) * float(value[c])
