r"""What the atoms need to know of the data: sufficient statistics, summed over the items of a shard.

As a function of atom k the log likelihood is -1/2 sum_i q_ik d_ik^2 + sum_i p_ik d_ik with

    q_ik = gamma_eps sum_n omega_in w_kn^2,     p_ik = gamma_eps sum_n omega_in w_kn x~_in     (1.1), (1.2)

All statistics here are free of gamma_eps and of the atoms' prior.

Complete data: C = W W^T and B = X W^T serve a whole sweep over the atoms                     (3.1).
Masked data are visited anew for every few atoms: `kruskal.gibbs.blocks`.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.lanes import add_rows, add_sum_of_rows, aligned_zeros
from kruskal.gibbs.local import Shard
from kruskal.gibbs.pairs import padded
from kruskal.gibbs.vectors import LANES
from kruskal.kernel import kernel

_CHUNK = 256  # items that are written out at a time: they stay in the second-level cache


class CompleteStatistics(NamedTuple):
    """C = W W^T (K, K) and B^T = W X^T (K, P)."""

    code_products: np.ndarray
    data_products: np.ndarray

    @classmethod
    def zero(cls, n_atoms: int, n_entries: int) -> "CompleteStatistics":
        """Of no items."""
        return cls(np.zeros((n_atoms, n_atoms)), np.zeros((n_atoms, n_entries)))


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


class CompleteSums(NamedTuple):
    """What `CompleteStatistics` are made of: for every atom the sum of w (w_n, x_n) over the items n.

    ``rows`` (K, K' + P'), with K and P rounded up to vectors: row k has the products with atoms from k on,
    and with the entries.
    """

    rows: np.ndarray

    @classmethod
    def zero(cls, n_atoms: int, n_entries: int) -> "CompleteSums":
        """Of no items."""
        return cls(np.zeros((n_atoms, padded(n_atoms) + padded(n_entries))))

    def statistics(self, n_entries: int) -> CompleteStatistics:
        """C and B."""
        n_atoms = len(self.rows)
        later = np.triu(self.rows[:, :n_atoms], 1)
        products = later + later.T
        np.fill_diagonal(products, np.diagonal(self.rows))
        return CompleteStatistics(products, self.rows[:, padded(n_atoms) :][:, :n_entries].copy())


def complete_statistics(shard: Shard, *, n_atoms: int) -> CompleteStatistics:
    """C and B of one shard of complete data, in double precision."""
    return complete_sums(shard, n_atoms=n_atoms, double=True).statistics(len(shard.items.offset))


def complete_sums(
    shard: Shard, found: CompleteSums | None = None, *, n_atoms: int, double: bool = False
) -> CompleteSums:
    """The sums of one shard of complete data, added to what was ``found`` in others.

    ``double``: in double precision throughout, for differences of such sums; if not, the sums over a few
    items have the precision of the data, which is faster and enough for a draw of the atoms.
    """
    items = shard.items
    result = CompleteSums.zero(n_atoms, len(items.offset)) if found is None else found
    _complete(items.flat, items.origin, items.offset, *shard.codes, *result, double)
    return result


@kernel
def _complete(flat, origin, offset, start, atom, value, sums, double):
    """Atom by atom: what an atom sums up over its users in a chunk stays in registers.

    The codes of an item are written out, with zeros, beside its entries. Products with zeros, ten of eleven
    here, cost less than a sum in memory for every pair of codes, whose places no processor foresees. A sum
    over a chunk has the precision of the data unless it is to be ``double``, sums of chunks are double.
    """
    n_atoms, width = sums.shape
    first_entry = -(-n_atoms // LANES) * LANES
    rows = aligned_zeros(_CHUNK, width, flat)  # codes and entries
    end = np.zeros(n_atoms + 1, np.int64)  # where the users of an atom end in the lists below
    user = np.empty(0, np.uint16)
    weight = np.empty(0, value.dtype)
    for chunk in range(0, origin.shape[0], _CHUNK):
        stop = min(chunk + _CHUNK, origin.shape[0])
        first_code, last_code = start[chunk], start[stop]
        if user.shape[0] < last_code - first_code:
            user = np.empty(2 * (last_code - first_code), np.uint16)
            weight = np.empty(2 * (last_code - first_code), value.dtype)
        end[:] = 0
        for c in range(first_code, last_code):
            end[np.uint64(atom[c]) + np.uint64(1)] += 1
        for row in range(n_atoms):
            end[row + 1] += end[row]
        for n in range(chunk, stop):
            base, line = np.uint64(origin[n]), np.uint64(n - chunk)
            for i in range(offset.shape[0]):
                rows[line, np.uint64(first_entry + i)] = flat[base + np.uint64(offset[i])]
            for c in range(start[n], start[n + 1]):
                k = np.uint64(atom[c])
                place = np.uint64(end[k])
                end[k] += 1
                user[place], weight[place] = line, value[c]
                rows[line, k] = value[c]
        begin = 0
        for row in range(n_atoms):
            if end[row] > begin:
                for first in range(row // LANES * LANES, width, LANES):
                    if double:
                        add_rows(sums, row, first, weight, rows, user, begin, end[row])
                    else:
                        add_sum_of_rows(sums, row, first, weight, rows, user, begin, end[row])
            begin = end[row]
        for n in range(chunk, stop):
            for c in range(start[n], start[n + 1]):
                rows[np.uint64(n - chunk), np.uint64(atom[c])] = 0.0


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
