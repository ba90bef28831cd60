r"""Slabs: the values s of all atoms that an item uses, jointly, given which atoms these are.

With A the atoms in use (z = 1), D_A their entries and omega the mask,

    s_A ~ N(m_A, Lambda^-1),  Lambda = gamma_s I + gamma_eps D_A^T diag(omega) D_A,
    m_A = gamma_eps Lambda^-1 D_A^T (omega o x)

Two uses. `draw_slabs` draws s_A anew after the pass over (z, s): one at a time, the values of similar atoms creep.
`expect_items` gives, for the kept draws, the mean of the item over s_A and its variance at every entry p,

    mean_p = d_p^T m_A,   v_p = d_p^T Lambda^-1 d_p,

and adds them up over the overlapping items with the weight 1 / (v_p + 1 / gamma_eps), one over the predictive
variance. With Lambda = U^T U both are sums over the rows of U^-T D_A.
"""

import math

import numpy as np

from kruskal.gibbs.codes import CodeDraw
from kruskal.gibbs.local import Codes, Shard, count_codes
from kruskal.kernel import kernel
from kruskal.patches import Slab
from kruskal.random import Stream, key_of
from kruskal.random.normal import normal
from kruskal.random.philox import philox

_JOINT_SLABS = int(Stream.JOINT_SLABS)
_LANES = 8  # float64 in a vector: rows are padded to it, so that loops have no remainder


def draw_slabs(shard: Shard, model, drawn: CodeDraw, seed: int, sweep: int) -> CodeDraw:
    """Draw all s of every item of a shard jointly; replaces its codes and, if masked, its residual.

    Parameters
    ----------
    model : `CodeModel` of this sweep;  drawn : what the pass over (z, s) reported, of which the counts hold
    """
    items, codes = shard.items, shard.codes
    value = np.empty_like(codes.value)
    squares = _draw(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, codes.start, codes.atom,
        model.dictionary, model.code_precision, model.noise_precision, (*key_of(seed), sweep, shard.first),
        _most_active(codes), value, shard.residual,
    )  # fmt: skip
    shard.codes = Codes(codes.start, codes.atom, value)
    _, code_squares = count_codes(shard.codes, items.region, *model.log_odds.shape)
    return CodeDraw(drawn.counts, code_squares, squares)


def expect_items(shard: Shard, dictionary: np.ndarray, code_precision: float, noise_precision: float) -> Slab:
    """Weighted sums over a shard's items of their means given z; see `kruskal.patches.Slab`."""
    items, codes = shard.items, shard.codes
    first = int(items.origin.min())
    size = int(items.origin.max()) + int(items.offset[-1]) + 1 - first
    weight, total, square = np.zeros(size), np.zeros(size), np.zeros(size)
    _expect(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, codes.start, codes.atom,
        dictionary, code_precision, noise_precision, _most_active(codes), first, weight, total, square,
    )  # fmt: skip
    return Slab(first, weight, total, square)


def _most_active(codes: Codes) -> int:
    return int(np.diff(codes.start).max(initial=0))


@kernel
def _draw(
    flat, origin, offset, entry_start, entry, code_start, code_atom, dictionary, gamma_s, gamma_eps, address,
    most, value, residual,
):  # fmt: skip
    key_0, key_1, sweep, first_item = address
    complete = entry_start.shape[0] == 1
    atoms = np.zeros((most, _padded(offset.shape[0])))
    data = np.zeros(atoms.shape[1])
    factor = np.zeros((most, _padded(most)))
    slab = np.zeros(factor.shape[1])
    squares = 0.0
    for n in range(origin.shape[0]):
        begin, active = code_start[n], code_start[n + 1] - code_start[n]
        seen = _gather_seen(
            flat, origin[n], offset, entry_start, entry, n, complete, dictionary, code_atom, begin, active,
            data, atoms,
        )  # fmt: skip
        _factorise(atoms, data, active, seen, gamma_s, gamma_eps, factor, slab)
        for a in range(active):
            words = philox(a, first_item + n, sweep, _JOINT_SLABS, key_0, key_1)
            slab[a] += normal(words[0], words[1])
        _solve_back(factor, active, slab)
        for a in range(active):
            value[begin + a] = slab[a]
            drawn = float(value[begin + a])  # as it is stored
            _subtract_from(data, atoms, a, drawn, seen)
        for j in range(seen):
            squares += data[j] * data[j]
        if not complete:
            for j in range(seen):
                residual[entry_start[n] + j] = data[j]
    return squares


@kernel
def _expect(
    flat, origin, offset, entry_start, entry, code_start, code_atom, dictionary, gamma_s, gamma_eps, most,
    first, weight, total, square,
):  # fmt: skip
    complete = entry_start.shape[0] == 1
    n_entries = offset.shape[0]
    n_padded = _padded(n_entries)
    atoms = np.zeros((most, n_padded))
    data = np.zeros(n_padded)
    factor = np.zeros((most, _padded(most)))
    slab = np.zeros(factor.shape[1])
    mean = np.empty(n_padded)
    variance = np.empty(n_padded)
    noise = 1.0 / gamma_eps
    for n in range(origin.shape[0]):
        begin, active = code_start[n], code_start[n + 1] - code_start[n]
        seen = _gather_seen(
            flat, origin[n], offset, entry_start, entry, n, complete, dictionary, code_atom, begin, active,
            data, atoms,
        )  # fmt: skip
        _factorise(atoms, data, active, seen, gamma_s, gamma_eps, factor, slab)
        if not complete:
            for a in range(active):
                k = np.uint64(code_atom[begin + a])
                for i in range(n_entries):
                    atoms[a, i] = dictionary[k, i]
        for i in range(n_padded):
            mean[i] = 0.0
            variance[i] = 0.0
        for a in range(active):  # U^-T D_A, row by row
            scale = 1.0 / factor[a, a]
            _scale_row(atoms, a, 0, n_entries, scale)
            _add_moments(atoms, a, slab[a], mean, variance)
            for later in range(a + 1, active):
                _subtract_row(atoms, later, a, factor[a, later], 0, n_entries)
        base = origin[n] - first
        for i in range(n_entries):
            at = base + offset[i]
            precision = 1.0 / (variance[i] + noise)
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
def _factorise(atoms, data, active, seen, gamma_s, gamma_eps, factor, slab):
    """factor = U with U^T U = Lambda (upper triangle, rows contiguous), slab = U^-T gamma_eps D_A^T x."""
    for a in range(active):
        for other in range(a, active):
            factor[a, other] = gamma_eps * _row_product(atoms, a, atoms, other, seen)
        factor[a, a] += gamma_s
        slab[a] = gamma_eps * _product(atoms, a, data, seen)
    for a in range(active):
        scale = 1.0 / math.sqrt(factor[a, a])
        _scale_row(factor, a, a, active, scale)
        slab[a] *= scale
        for later in range(a + 1, active):
            slab[later] -= factor[a, later] * slab[a]
            _subtract_row(factor, later, a, factor[a, later], later, active)


# The loops below take whole arrays and indices, never slices, and run over whole vectors: what they touch before the
# diagonal or beyond the end is never read.


@kernel
def _row_product(one, a, other, b, size):
    row, column = np.uint64(a), np.uint64(b)
    total = 0.0
    for j in range(_padded(size)):
        total += one[row, np.uint64(j)] * other[column, np.uint64(j)]
    return total


@kernel
def _product(rows, a, vector, size):
    row = np.uint64(a)
    total = 0.0
    for j in range(_padded(size)):
        total += rows[row, np.uint64(j)] * vector[np.uint64(j)]
    return total


@kernel
def _scale_row(factor, a, first, size, scale):
    row, start = np.uint64(a), np.uint64(first // _LANES * _LANES)
    for i in range(_padded(size) - first // _LANES * _LANES):
        factor[row, start + np.uint64(i)] *= scale


@kernel
def _subtract_row(factor, a, b, amount, first, size):
    """factor[a] -= amount * factor[b] from the vector that holds ``first`` on."""
    row, other, start = np.uint64(a), np.uint64(b), np.uint64(first // _LANES * _LANES)
    for i in range(_padded(size) - first // _LANES * _LANES):
        factor[row, start + np.uint64(i)] -= amount * factor[other, start + np.uint64(i)]


@kernel
def _subtract_from(data, rows, a, amount, size):
    row = np.uint64(a)
    for j in range(_padded(size)):
        data[np.uint64(j)] -= amount * rows[row, np.uint64(j)]


@kernel
def _add_moments(rows, a, amount, mean, variance):
    row = np.uint64(a)
    for i in range(mean.shape[0]):
        mean[i] += amount * rows[row, i]
        variance[i] += rows[row, i] * rows[row, i]


@kernel
def _solve_back(factor, active, slab):
    """slab = U^-1 slab."""
    for a in range(active - 1, -1, -1):
        total = slab[a]
        for later in range(a + 1, active):
            total -= factor[a, later] * slab[later]
        slab[a] = total / factor[a, a]
