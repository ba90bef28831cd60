"""A stack of items as one tensor, cut into parts: what a Kruskal decomposition of the whole sees of the data.

The first mode numbers the items, the other modes are those of an item; a whole array is a stack of its
slices along the first axis. Axes of an item of length one carry nothing and are left out.

The rows of a mode are drawn independently of each other, each from its own observed entries. So the observed
entries are listed once per mode, in the order of that mode's rows, and every list is cut evenly into parts:
the unit of work of an engine. The cut depends on the data alone, never on the number of threads. A row whose
entries lie in two parts or more is open: each part reports its share of the row's sums.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.local import split
from kruskal.patches import Items

_ENTRIES_PER_PART = 16_384
_MOST_PARTS = 16


class ModeRows(NamedTuple):
    """The observed entries of one part in the order of the rows of one mode.

    Attributes
    ----------
    first : first row, counted within the mode
    start : (n + 1,) int64, where the entries of each of the n rows begin
    others : (entries, T - 1) uint32, rows of the other modes in the stacked factors
    values : (entries,) data
    open_before, open_after : whether the first row has entries in the part before, the last in the one after
    """

    first: int
    start: np.ndarray
    others: np.ndarray
    values: np.ndarray
    open_before: bool
    open_after: bool

    @property
    def n_rows(self) -> int:
        """Number of rows, open ones included."""
        return len(self.start) - 1


@dataclass(frozen=True)
class Part:
    """One part of the work.

    Attributes
    ----------
    first : index of its first item
    items : its items, for what goes over all entries, observed or not
    modes : its entries by mode; empty when the data are complete
    """

    first: int
    items: Items
    modes: tuple[ModeRows, ...]


def as_stack(items: Items) -> Items:
    """The items themselves, or the slices of a single one along its first axis."""
    if items.n_items > 1:
        return items
    size, *rest = items.shape
    n_entries = math.prod(rest)
    origin = items.origin[0] + items.offset[::n_entries]
    region = np.zeros(size, items.region.dtype)
    return items._replace(origin=origin, offset=items.offset[:n_entries], shape=tuple(rest), region=region)


def stack_shape(n_items: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes (m_1, .., m_T) of the modes of the stack that `as_stack` makes of so many items."""
    if n_items == 1:
        return (shape[0], *_longer(shape[1:]))
    return (n_items, *_longer(shape))


def mean_square(items: Items) -> float:
    """Mean square of the observed values of the array that the items lie in; at least a tiny number."""
    seen = items.flat if items.complete else items.flat[items.observed]
    return max(float(np.mean(np.square(seen, dtype=np.float64))), 1e-12)


def cut_stack(stack: Items) -> list[Part]:
    """The parts of a stack; a function of its shape and mask alone."""
    size = stack.n_items * len(stack.offset)
    n_parts = max(1, min(_MOST_PARTS, size // _ENTRIES_PER_PART))
    bounds = np.linspace(0, stack.n_items, n_parts + 1).astype(np.int64)
    modes: list[tuple[ModeRows, ...]] = [()] * n_parts
    if not stack.complete:
        modes = list(zip(*_list_modes(stack, n_parts)))
    return [
        Part(int(first), stack.part(int(first), int(stop)), modes[p])
        for p, (first, stop) in enumerate(pairwise(bounds))
    ]


def _list_modes(stack: Items, n_parts: int) -> list[list[ModeRows]]:
    """For every mode its entries, sorted by row and cut into parts."""
    shards = split(stack)
    entry = np.concatenate([shard.entry for shard in shards])
    item = np.repeat(np.arange(stack.n_items), np.concatenate([np.diff(s.entry_start) for s in shards]))
    values = stack.flat[stack.origin[item] + stack.offset[entry]]
    sizes = (stack.n_items, *_longer(stack.shape))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    within = np.unravel_index(entry, sizes[1:]) if len(sizes) > 1 else ()
    rows = np.stack([item, *within], axis=1) + offsets[:-1]
    result = []
    for t, size in enumerate(sizes):
        order = np.argsort(rows[:, t], kind="stable")
        start = np.searchsorted(rows[order, t], offsets[t] + np.arange(size + 1))
        others = np.delete(rows, t, axis=1)[order].astype(np.uint32)
        result.append(_cut_mode(start, others, values[order], n_parts))
    return result


def _longer(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size > 1)


def _cut_mode(start: np.ndarray, others: np.ndarray, values: np.ndarray, n_parts: int) -> list[ModeRows]:
    bounds = np.linspace(0, len(values), n_parts + 1).astype(np.int64)
    # the row that holds the first entry of each part; rows without entries belong to the part before it
    rows = np.searchsorted(start, bounds[1:-1], side="right") - 1
    inside = start[rows] < bounds[1:-1]
    first = np.concatenate([[0], rows])
    stop = np.concatenate([np.where(inside, rows + 1, rows), [len(start) - 1]])
    result = []
    for p, (begin, end) in enumerate(pairwise(bounds)):
        own = start[first[p] : stop[p] + 1]
        open_before, open_after = bool(own[0] < begin), bool(own[-1] > end)
        entries = [np.ascontiguousarray(array[begin:end]) for array in (others, values)]
        own = np.clip(own, begin, end) - begin
        result.append(ModeRows(int(first[p]), own, entries[0], entries[1], open_before, open_after))
    return result
