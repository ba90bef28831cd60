r"""What the atoms need to know of the data: sufficient statistics, summed over the items of a shard.

As a function of atom k the log likelihood is -1/2 sum_i q_ik d_ik^2 + sum_i p_ik d_ik with

    q_ik = gamma_eps sum_n omega_in w_kn^2,     p_ik = gamma_eps sum_n omega_in w_kn x~_in     (1.1), (1.2)

All statistics here are free of gamma_eps and of the atoms' prior.

Complete data: C = W W^T and B = X W^T serve a whole sweep over the atoms                     (3.1).
Masked data: the atoms are taken in blocks of b. For a block the shards report, with the residual h = x - Dw,
sum w^2 and sum w h per entry and atom, and sum w_k w_k' per entry and pair of atoms; that is all that is
needed to draw the block's atoms one after the other. The change of the atoms is then applied to the
residuals at the beginning of the next block's visit, so a block costs one visit to the items.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.local import Shard
from kruskal.kernel import kernel


class CompleteStatistics(NamedTuple):
    """C = W W^T (K, K) and B^T = W X^T (K, P)."""

    code_products: np.ndarray
    data_products: np.ndarray

    @classmethod
    def zero(cls, n_atoms: int, n_entries: int) -> "CompleteStatistics":
        """Of no items."""
        return cls(np.zeros((n_atoms, n_atoms)), np.zeros((n_atoms, n_entries)))


class BlockStatistics(NamedTuple):
    """Sums over items for atoms first <= k < first + b of a masked sweep.

    Attributes
    ----------
    squares : (b, P) sum_n omega w_k^2
    correlations : (b, P) sum_n omega w_k h_n
    products : (b (b - 1) / 2, P) sum_n omega w_k w_k' for k < k', in the order of `pair_index`
    """

    squares: np.ndarray
    correlations: np.ndarray
    products: np.ndarray


class AtomTerms(NamedTuple):
    """What items say of every atom once and for all: sum omega w x~ and sum omega w^2, both (K, P).

    Times gamma_eps these are p and q of (1.2) and (1.1). ``linear`` holds for the other atoms as they were
    when it was summed.
    """

    linear: np.ndarray
    quadratic: np.ndarray

    @classmethod
    def zero(cls, n_atoms: int, n_entries: int) -> "AtomTerms":
        """Of no items."""
        return cls(np.zeros((n_atoms, n_entries)), np.zeros((n_atoms, n_entries)))


def complete_statistics(
    shard: Shard, found: CompleteStatistics | None = None, *, n_atoms: int
) -> CompleteStatistics:
    """C and B of one shard of complete data, added to what was ``found`` in others."""
    items = shard.items
    result = CompleteStatistics.zero(n_atoms, len(items.offset)) if found is None else found
    _complete(items.flat, items.origin, items.offset, *shard.codes, *result)
    return result


@kernel
def _complete(flat, origin, offset, start, atom, value, products, data):
    n_entries = offset.shape[0]
    item = np.empty(n_entries)
    for n in range(origin.shape[0]):
        base = np.uint64(origin[n])
        for i in range(n_entries):
            item[i] = flat[base + np.uint64(offset[i])]
        for c in range(start[n], start[n + 1]):
            k, w = np.uint64(atom[c]), float(value[c])
            for i in range(n_entries):
                data[k, i] += w * item[i]
            for other in range(c, start[n + 1]):  # upper triangle: atoms of an item are in order
                products[k, np.uint64(atom[other])] += w * float(value[other])
    for row in range(products.shape[0]):
        for column in range(row):
            products[row, column] = products[column, row]


def block_size(n_atoms: int, n_shards: int, n_codes: int, observed_share: float) -> int:
    """Atoms per block: 16, or fewer where the pair sums would cost far more than the visits to the codes.

    Every block is a round of calls for the shards, which two threads cannot make at the same time.
    """
    size = 16
    while size > 1 and n_atoms * size * n_shards > 12.0 * n_codes * observed_share:
        size //= 2
    return size


def block_statistics(
    shard: Shard, found: BlockStatistics | None = None, *, first: int, size: int, previous: int,
    change: np.ndarray,
) -> BlockStatistics:  # fmt: skip
    """Statistics of one block of atoms of one masked shard, added to what was ``found`` in others.

    Parameters
    ----------
    shard : its ``residual`` is brought up to date with the change of the previous block, its ``cursor`` moved
    first, size : the block is first <= k < first + size; blocks are visited in order, beginning with 0
    previous, change : first atom of the previous block and the change (b, P) of its atoms, not yet applied
    """
    if first == 0:
        shard.cursor = shard.codes.start[:-1].copy()
    n_entries = len(shard.items.offset)
    # not zeros: these would be written by one thread at a time
    result = found or BlockStatistics(
        np.empty((size, n_entries)),
        np.empty((size, n_entries)),
        np.empty((size * (size - 1) // 2, n_entries)),
    )
    _block(
        shard.entry_start, shard.entry, shard.residual, *shard.codes, first, previous, change, shard.cursor,
        found is None, *result,
    )  # fmt: skip
    return result


def add_blocks(one: BlockStatistics, other: BlockStatistics) -> BlockStatistics:
    """The sum of both; the arrays of ``one`` are used up."""
    _add_blocks(*one, *other)
    return one


@kernel
def pair_index(k, other, size):
    """Place of the pair k < other among all pairs of ``size`` atoms."""
    return k * (2 * size - k - 1) // 2 + other - k - 1


@kernel
def _block(
    entry_start, entry, residual, start, atom, value, first, previous, change, cursor, fresh,
    squares, correlations, products,
):  # fmt: skip
    size = squares.shape[0]
    stop = first + size
    if fresh:
        squares[:] = 0.0
        correlations[:] = 0.0
        products[:] = 0.0
    for n in range(start.shape[0] - 1):
        end = start[n + 1]
        c = cursor[n]
        if c == end or atom[c] >= stop:
            continue
        begin, n_seen = np.uint64(entry_start[n]), entry_start[n + 1] - entry_start[n]
        while c < end and atom[c] < first:
            k, w = np.uint64(atom[c] - previous), value[c]
            for j in range(n_seen):
                at = begin + np.uint64(j)
                residual[at] -= w * change[k, entry[at]]
            c += 1
        cursor[n] = c
        while c < end and atom[c] < stop:
            k, w = np.uint64(atom[c] - first), float(value[c])
            for j in range(n_seen):
                at = begin + np.uint64(j)
                squares[k, entry[at]] += w * w
                correlations[k, entry[at]] += w * residual[at]
            other = c + 1
            while other < end and atom[other] < stop:
                both = w * float(value[other])
                pair = np.uint64(pair_index(np.int64(k), np.int64(atom[other]) - first, size))
                for j in range(n_seen):
                    products[pair, entry[begin + np.uint64(j)]] += both
                other += 1
            c += 1


@kernel
def _add_blocks(squares, correlations, products, more_squares, more_correlations, more_products):
    """In one call, so that the threads ask for the interpreter lock once instead of three times."""
    squares += more_squares
    correlations += more_correlations
    products += more_products


def sum_of_two(one, other):
    """Add two NamedTuples of arrays or numbers; the arrays of the first are used up."""
    return sum_in_order([one, other])


def sum_in_order(parts: list):
    """Add NamedTuples of arrays or numbers, first to last; the arrays of the first are used up."""
    totals = []
    for total, *others in zip(*parts):
        for part in others:
            total += part
        totals.append(total)
    return type(parts[0])(*totals)
