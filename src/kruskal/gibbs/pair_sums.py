r"""Sums over pairs of atoms at every entry: all that masked items say of the atoms, for any atoms.

With the mask omega and the codes w, for every entry i and every pair of atoms k <= k',

    C^(i)_kk' = sum_n omega_in w_kn w_k'n,     B_ik = sum_n omega_in w_kn x_in
    q_ik = gamma_eps C^(i)_kk,   p_ik = gamma_eps (B_ik - sum_{k' != k} d_ik' C^(i)_kk')                 (3.3)

They serve a whole sweep over the atoms without a visit to the items, and items can be taken out of the sums
and put back when their codes have changed. Adding an item costs |Omega_n| |A_n|^2 / 2; the sums take
P K (K + 1) / 2 numbers. Complete data need C and B alone (`kruskal.gibbs.statistics`). Both forms give the
sum of squared residuals of all items for any atoms:

    sum_n |omega_n o (x_n - D w_n)|^2 = sum omega x^2 - 2 <D, B> + sum_i d_i^T C^(i) d_i                 (3.2)
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.local import Shard
from kruskal.gibbs.statistics import CompleteStatistics
from kruskal.kernel import kernel

PARTS = 8
"""Shares of the sums, by atom, that are added to independently of each other."""
_ROUNDING = 1e-12  # share of the data's squares below which (3.2) may be but rounding


class PairStatistics(NamedTuple):
    """``products`` (K (K + 1) / 2, P): C of all pairs, see `pair_row`; ``data_products`` (K, P): B."""

    products: np.ndarray
    data_products: np.ndarray

    @classmethod
    def zero(cls, n_atoms: int, n_entries: int) -> "PairStatistics":
        """Of no items."""
        return cls(np.zeros((n_atoms * (n_atoms + 1) // 2, n_entries)), np.zeros((n_atoms, n_entries)))


def pair_bytes(n_atoms: int, n_entries: int) -> int:
    """Memory that `PairStatistics` take."""
    return 8 * n_entries * (n_atoms * (n_atoms + 1) // 2 + n_atoms)


@kernel
def pair_row(one, other, n_atoms):
    """Where the pair of two atoms, or of an atom with itself, stands among all pairs."""
    low, high = min(one, other), max(one, other)
    return low * (2 * n_atoms - low - 1) // 2 + high


def add_pairs(shard: Shard, part: int, statistics: PairStatistics, sign: float) -> None:
    """Add the items of a masked shard to ``statistics`` (or take them out, ``sign`` -1), in place.

    Only atoms k with k mod `PARTS` = ``part`` as the first of a pair: parts touch different numbers, so that
    threads need not wait for each other, and every number is summed in the order of the items.
    """
    items = shard.items
    _add_pairs(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, *shard.codes, part, sign,
        *statistics,
    )  # fmt: skip


@kernel
def _add_pairs(
    flat, origin, offset, entry_start, entry, start, atom, value, part, sign, products, data_products
):
    n_atoms = data_products.shape[0]
    for n in range(origin.shape[0]):
        first = np.uint64(entry_start[n])
        seen = entry_start[n + 1] - entry_start[n]
        base = np.uint64(origin[n])
        for c in range(start[n], start[n + 1]):
            k = np.int64(atom[c])
            if k % PARTS != part:
                continue
            w = sign * float(value[c])
            row = np.uint64(k)
            for j in range(seen):
                i = np.uint64(entry[first + np.uint64(j)])
                data_products[row, i] += w * flat[base + np.uint64(offset[i])]
            for other in range(c, start[n + 1]):  # atoms of an item are in order
                pair = np.uint64(pair_row(k, np.int64(atom[other]), n_atoms))
                both = w * value[other]
                for j in range(seen):
                    products[pair, np.uint64(entry[first + np.uint64(j)])] += both


def data_squares(shard: Shard) -> float:
    """Sum of the squared observed entries of a shard, as often as items cover them."""
    items = shard.items
    return float(_data_squares(items.flat, items.origin, items.offset))  # missing entries are zero


@kernel
def _data_squares(flat, origin, offset):
    total = 0.0
    for n in range(origin.shape[0]):
        for i in range(offset.shape[0]):
            x = np.float64(flat[origin[n] + offset[i]])  # to numba, float() of a single number is single
            total += x * x
    return total


def residual_squares(
    dictionary: np.ndarray, statistics: CompleteStatistics | PairStatistics, squares: float
) -> float:
    """Sum of squared residuals (3.2) of the items in ``statistics``, given the sum of their ``squares``.

    A difference of large numbers: all sums are double, which leaves errors of about 1e-14 of the squares, and
    what is below 1e-12 of them counts as that much.
    """
    total = squares - 2.0 * float((dictionary * statistics.data_products).sum())
    if isinstance(statistics, CompleteStatistics):
        total += float(((dictionary @ dictionary.T) * statistics.code_products).sum())
    else:
        total += _quadratic(dictionary, statistics.products)
    return max(total, _ROUNDING * squares)


@kernel
def _quadratic(dictionary, products):
    n_atoms, n_entries = dictionary.shape
    total = 0.0
    for one in range(n_atoms):
        k = np.uint64(one)
        for other in range(one, n_atoms):
            pair, row = np.uint64(pair_row(one, other, n_atoms)), np.uint64(other)
            here = 0.0
            for i in range(n_entries):
                here += dictionary[k, i] * dictionary[row, i] * products[pair, i]
            total += here if other == one else 2.0 * here
    return total
