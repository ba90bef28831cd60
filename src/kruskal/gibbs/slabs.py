r"""Slabs: the values s of all atoms that an item uses, jointly, given which atoms these are.

With A the atoms in use (z = 1), D_A their entries and omega the mask,

    s_A ~ N(m_A, Lambda^-1),  Lambda = gamma_s I + gamma_eps D_A^T diag(omega) D_A,
    m_A = gamma_eps Lambda^-1 D_A^T (omega o x)

Two uses. `draw_slabs` draws s_A anew after the pass over (z, s): one at a time, the values of similar atoms
creep. `expect_items` gives, for the kept draws, the mean of the item over s_A and its variance at entry p,

    mean_p = d_p^T m_A,   v_p = d_p^T Lambda^-1 d_p,

and adds them up over the overlapping items with the weight t / (v_p + 1 / gamma_eps), one over the predictive
variance times a trust t. An item with hardly an observed entry would seem to be sure, as v_p is given z and z
is then drawn next to its prior; so t is the number of observed entries over 8 (or over all, if fewer), at
most 1. With Lambda = U^T U the variances are sums over the rows of U^-T D_A.
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.codes import CodeModel
from kruskal.gibbs.local import Codes, Shard, sum_squares
from kruskal.kernel import kernel
from kruskal.patches import Slab
from kruskal.random import Stream, key_of
from kruskal.random.normal import normal
from kruskal.random.philox import philox

_JOINT_SLABS = int(Stream.JOINT_SLABS)
_LANES = 8  # float64 in a vector: rows are padded to it, so that loops have no remainder
_ENOUGH = 8  # observed entries from which on an item is trusted
_HARDLY = 1e-6  # trust in an item without any: it has a say only where no better informed one is
_ROWS = 4  # rows that are worked on at once


class SlabDraw(NamedTuple):
    """What one shard reports after the joint draw; as in `CodeDraw`, without the counts."""

    squares: np.ndarray
    residual_squares: float


def draw_slabs(shard: Shard, model: CodeModel, seed: int, sweep: int) -> SlabDraw:
    """Draw all s of every item of a shard jointly; replaces its codes and, if masked, its residual."""
    items, codes = shard.items, shard.codes
    value = np.empty_like(codes.value)
    squares = _draw(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, codes.start, codes.atom,
        model.dictionary, model.products, model.code_precision, model.noise_precision,
        (*key_of(seed), sweep, shard.first), _most_active(codes), value, shard.residual,
    )  # fmt: skip
    shard.codes = Codes(codes.start, codes.atom, value)
    return SlabDraw(sum_squares(shard.codes, len(model.dictionary)), squares)


def expect_items(
    shard: Shard, dictionary: np.ndarray, products: np.ndarray, code_precision: float, noise_precision: float
) -> Slab:
    """Weighted sums over a shard's items of their means given z; see `kruskal.patches.Slab`.

    Parameters
    ----------
    dictionary : (K, P) in the data's precision;  products : from `kruskal.gibbs.codes.atom_products`
    """
    items, codes = shard.items, shard.codes
    first = int(items.origin.min())
    size = int(items.origin.max()) + int(items.offset[-1]) + 1 - first
    weight, total, square = np.zeros(size), np.zeros(size), np.zeros(size)
    _expect(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, codes.start, codes.atom,
        dictionary, products, code_precision, noise_precision, _most_active(codes), first,
        weight, total, square,
    )  # fmt: skip
    return Slab(first, weight, total, square)


def _most_active(codes: Codes) -> int:
    return int(np.diff(codes.start).max(initial=0))


@kernel
def _draw(
    flat, origin, offset, entry_start, entry, code_start, code_atom, dictionary, products, gamma_s, gamma_eps,
    address, most, value, residual,
):  # fmt: skip
    key_0, key_1, sweep, first_item = address
    complete = entry_start.shape[0] == 1
    atoms = np.zeros((most + _ROWS, _padded(offset.shape[0])))
    data = np.zeros(atoms.shape[1])
    factor = np.zeros((most + _ROWS, _padded(most + 1)))
    slab = np.zeros(most)
    squares = 0.0
    for n in range(origin.shape[0]):
        begin, active = code_start[n], code_start[n + 1] - code_start[n]
        seen = _gather_seen(
            flat, origin[n], offset, entry_start, entry, n, complete, dictionary, code_atom, begin, active,
            data, atoms,
        )  # fmt: skip
        _set_products(atoms, products, code_atom, begin, active, seen, gamma_s, gamma_eps, factor)
        _factorise(atoms, data, active, seen, gamma_s, gamma_eps, factor)
        for a in range(active):
            words = philox(a, first_item + n, sweep, _JOINT_SLABS, key_0, key_1)
            slab[a] = factor[a, active] + normal(words[0], words[1])
        _solve_back(factor, active, slab)
        for a in range(active):
            value[begin + a] = slab[a]
            _subtract_from(data, atoms, a, float(value[begin + a]), seen)  # the value as it is stored
        for j in range(seen):
            squares += data[j] * data[j]
        if not complete:
            for j in range(seen):
                residual[entry_start[n] + j] = data[j]
    return squares


@kernel
def _expect(
    flat, origin, offset, entry_start, entry, code_start, code_atom, dictionary, products, gamma_s, gamma_eps,
    most, first, weight, total, square,
):  # fmt: skip
    complete = entry_start.shape[0] == 1
    n_entries = offset.shape[0]
    atoms = np.zeros((most + _ROWS, _padded(n_entries)))
    data = np.zeros(atoms.shape[1])
    factor = np.zeros((most + _ROWS, _padded(most + 1)))
    slab = np.zeros(most)
    # variances need no more than single precision
    rows = np.zeros((most + _ROWS, (n_entries + 2 * _LANES - 1) // (2 * _LANES) * 2 * _LANES), np.float32)
    mean = np.zeros(rows.shape[1])
    variance = np.zeros(rows.shape[1], np.float32)
    noise = 1.0 / gamma_eps
    for n in range(origin.shape[0]):
        begin, active = code_start[n], code_start[n + 1] - code_start[n]
        seen = _gather_seen(
            flat, origin[n], offset, entry_start, entry, n, complete, dictionary, code_atom, begin, active,
            data, atoms,
        )  # fmt: skip
        _set_products(atoms, products, code_atom, begin, active, seen, gamma_s, gamma_eps, factor)
        _factorise(atoms, data, active, seen, gamma_s, gamma_eps, factor)
        for a in range(active):
            slab[a] = factor[a, active]
        _solve_back(factor, active, slab)
        for i in range(mean.shape[0]):
            mean[i] = 0.0
            variance[i] = 0.0
        for a in range(active):
            _add_atom(dictionary, code_atom[begin + a], slab[a], rows, a, mean)
            _subtract_rows(rows, factor, a, 0, rows.shape[1])
            _scale_row(rows, a, 0, rows.shape[1], 1.0 / factor[a, a])
            _add_squares(rows, a, variance)
        trust = max(min(1.0, seen / min(_ENOUGH, n_entries)), _HARDLY)
        base = origin[n] - first
        for i in range(n_entries):
            at = base + offset[i]
            precision = trust / (variance[i] + noise)
            weight[at] += precision
            total[at] += precision * mean[i]
            square[at] += precision * (mean[i] * mean[i] + variance[i])


@kernel
def _padded(size):
    return (size + _LANES - 1) // _LANES * _LANES


@kernel
def _gather_seen(
    flat, start, offset, entry_start, entry, n, complete, dictionary, code_atom, begin, active, data, atoms
):
    """Observed entries of item n and of its atoms, side by side and padded with zeros; returns how many."""
    base = np.uint64(start)
    if complete:
        seen = offset.shape[0]
        for i in range(seen):
            data[i] = flat[base + np.uint64(offset[i])]
        for a in range(active):
            k = np.uint64(code_atom[begin + a])
            for i in range(seen):
                atoms[a, i] = dictionary[k, i]
        return seen
    first, seen = entry_start[n], entry_start[n + 1] - entry_start[n]
    for j in range(seen):
        data[j] = flat[base + np.uint64(offset[entry[first + j]])]
    for a in range(active):
        k = np.uint64(code_atom[begin + a])
        for j in range(seen):
            atoms[a, j] = dictionary[k, entry[first + j]]
    for j in range(seen, _padded(seen)):
        data[j] = 0.0
        for a in range(active):
            atoms[a, j] = 0.0
    return seen


@kernel
def _set_products(atoms, products, code_atom, begin, active, seen, gamma_s, gamma_eps, factor):
    """Upper triangle of Lambda; complete data look the products of the atoms up."""
    for a in range(active):
        if products.shape[0] > 0:
            k = np.uint64(code_atom[begin + a])
            for other in range(a, active):
                factor[a, other] = gamma_eps * products[k, np.uint64(code_atom[begin + other])]
        else:
            for other in range(a, active, _ROWS):
                _multiply(atoms, a, other, seen, gamma_eps, factor)
        factor[a, a] += gamma_s


@kernel
def _factorise(atoms, data, active, seen, gamma_s, gamma_eps, factor):
    """Lambda in ``factor`` becomes U with U^T U = Lambda, followed by the column U^-T gamma_eps D_A^T x.

    The right-hand side is one more column, so that it is solved for on the way.
    """
    for a in range(active):
        factor[a, active] = gamma_eps * _product(atoms, a, data, seen)
    width = _padded(active + 1)
    for a in range(active):
        # from the vector that holds the diagonal on; what lies before the diagonal is never read
        start = a // _LANES * _LANES
        _subtract_rows(factor, factor, a, start, width)
        # no pivot of gamma_s I + a Gram matrix is below gamma_s, but for rounding
        factor[a, a] = max(factor[a, a], gamma_s)
        _scale_row(factor, a, start, width, 1.0 / math.sqrt(factor[a, a]))


@kernel
def _solve_back(factor, active, slab):
    """slab = U^-1 slab."""
    for a in range(active - 1, -1, -1):
        total = slab[a]
        for later in range(a + 1, active):
            total -= factor[a, later] * slab[later]
        slab[a] = total / factor[a, a]


# The loops below take whole arrays and indices, never slices (two atomic reference counts each), and run over
# whole vectors: what they touch beyond the end is never read.


@kernel
def _multiply(atoms, a, other, size, scale, factor):
    """factor[a, other + 0 .. 3] = scale * products of atom a with four others."""
    row, next_0 = np.uint64(a), np.uint64(other)
    next_1, next_2, next_3 = next_0 + np.uint64(1), next_0 + np.uint64(2), next_0 + np.uint64(3)
    total_0 = total_1 = total_2 = total_3 = 0.0
    for i in range(_padded(size)):
        j = np.uint64(i)
        here = atoms[row, j]
        total_0 += here * atoms[next_0, j]
        total_1 += here * atoms[next_1, j]
        total_2 += here * atoms[next_2, j]
        total_3 += here * atoms[next_3, j]
    factor[row, next_0] = scale * total_0
    last = np.uint64(factor.shape[1] - 1)
    factor[row, min(next_1, last)] = scale * total_1
    factor[row, min(next_2, last)] = scale * total_2
    factor[row, min(next_3, last)] = scale * total_3


@kernel
def _product(rows, a, vector, size):
    row = np.uint64(a)
    total = 0.0
    for i in range(_padded(size)):
        j = np.uint64(i)
        total += rows[row, j] * vector[j]
    return total


@kernel
def _subtract_rows(rows, factor, a, first, stop):
    """rows[a] -= sum_{b < a} factor[b, a] rows[b] for the columns first <= j < stop, four rows at a time."""
    row, start = np.uint64(a), np.uint64(first)
    b = 0
    while b + _ROWS <= a:
        row_0 = np.uint64(b)
        row_1, row_2, row_3 = row_0 + np.uint64(1), row_0 + np.uint64(2), row_0 + np.uint64(3)
        f_0, f_1 = rows.dtype.type(factor[row_0, row]), rows.dtype.type(factor[row_1, row])
        f_2, f_3 = rows.dtype.type(factor[row_2, row]), rows.dtype.type(factor[row_3, row])
        for i in range(stop - first):
            j = start + np.uint64(i)
            rows[row, j] -= (
                f_0 * rows[row_0, j] + f_1 * rows[row_1, j] + f_2 * rows[row_2, j] + f_3 * rows[row_3, j]
            )
        b += _ROWS
    while b < a:
        row_0 = np.uint64(b)
        f_0 = rows.dtype.type(factor[row_0, row])
        for i in range(stop - first):
            j = start + np.uint64(i)
            rows[row, j] -= f_0 * rows[row_0, j]
        b += 1


@kernel
def _scale_row(rows, a, first, stop, scale):
    row, start, by = np.uint64(a), np.uint64(first), rows.dtype.type(scale)
    for i in range(stop - first):
        rows[row, start + np.uint64(i)] *= by


@kernel
def _subtract_from(data, rows, a, amount, size):
    row = np.uint64(a)
    for i in range(_padded(size)):
        j = np.uint64(i)
        data[j] -= amount * rows[row, j]


@kernel
def _add_atom(dictionary, k, amount, rows, a, mean):
    """mean += amount * atom k; rows[a] = atom k."""
    atom, row = np.uint64(k), np.uint64(a)
    for i in range(dictionary.shape[1]):
        mean[i] += amount * dictionary[atom, i]
        rows[row, i] = dictionary[atom, i]


@kernel
def _add_squares(rows, a, variance):
    row = np.uint64(a)
    for i in range(variance.shape[0]):
        variance[i] += rows[row, i] * rows[row, i]
