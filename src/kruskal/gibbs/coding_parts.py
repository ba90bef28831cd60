"""The steps of `kruskal.gibbs.coding`, for one item: gathering, bars, slots of atoms in use, the joint draw.

The loops take whole arrays and indices, never slices: a slice costs two atomic reference counts. So does an
array of a function that calls another, or that returns early: there is little of that.
"""

import math

import numpy as np

from kruskal.gibbs.lanes import set_rows
from kruskal.gibbs.pairs import BITS_TO_LOG, LOG_OFFSET
from kruskal.gibbs.scan import float_uniforms
from kruskal.gibbs.vectors import LANES
from kruskal.kernel import kernel

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ODD_1, _ODD_2, _ODD_3 = (  # the constants of SplitMix64
    np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB),
)  # fmt: skip


@kernel
def gather(flat, start, offset, entry_start, entry, n, complete, place, data):
    """Observed entries of item n: which (``place``) and what (``data``); returns how many."""
    base = np.uint64(start)
    seen = offset.shape[0]
    if complete:  # place counts up, from the beginning
        for j in range(seen):
            data[j] = flat[base + np.uint64(offset[j])]
        return seen
    first, seen = np.uint64(entry_start[n]), entry_start[n + 1] - entry_start[n]
    for j in range(seen):
        place[j] = entry[first + np.uint64(j)]
        data[j] = flat[base + np.uint64(offset[place[j]])]
    return seen


@kernel
def fingerprint(place, data, seen, single, bits):
    """Two 32-bit words from the observed entries of an item, rounded to single precision."""
    for i in range(seen):
        single[i] = data[i] + 0.0  # no negative zeros
    state = _ODD_1
    for i in range(seen):
        state ^= (np.uint64(place[i]) << _HALF) ^ np.uint64(bits[i])
        state = (state ^ (state >> np.uint64(30))) * _ODD_2
        state = (state ^ (state >> np.uint64(27))) * _ODD_3
    state ^= state >> np.uint64(31)
    return state & _LOW, state >> _HALF


@kernel
def tempered(gamma_eps, first_gamma, sweep, burn_in):
    """gamma_eps of a sweep: from ``first_gamma`` on the same factor more in each sweep of the burn-in."""
    if sweep >= burn_in or first_gamma >= gamma_eps:
        return gamma_eps
    return first_gamma * (gamma_eps / first_gamma) ** (sweep / burn_in)


@kernel
def set_bars(energy, level, gamma_s, gamma_eps, ratio, ratio_bits, base, slope):
    """Squared correlation below which the z of an unused atom surely stays 0, as base + slope log u.

    These are the bars of `kruskal.gibbs.codes_masked`; from sweep to sweep only u changes.
    """
    per_energy = np.float32(gamma_eps / gamma_s)
    scale = np.float32(gamma_s / (gamma_eps * gamma_eps))
    for k in range(energy.shape[0]):
        ratio[k] = np.float32(1.0) + per_energy * np.float32(energy[k])
    for k in range(energy.shape[0]):
        log_ratio = np.float32(ratio_bits[k]) * BITS_TO_LOG - LOG_OFFSET
        base[k] = (level[k] + log_ratio) * ratio[k] * scale
        slope[k] = np.float32(2.0) * ratio[k] * scale


@kernel
def raise_bars(words, row, uniforms, bits, base, slope, bar):
    """The bars of a sweep, from a lower bound of log u."""
    float_uniforms(words, row, uniforms)
    for k in range(base.shape[0]):
        bar[k] = base[k] + slope[k] * (np.float32(bits[k]) * BITS_TO_LOG - LOG_OFFSET)


@kernel
def list_used(used, n_used, slot_atom, slab, complete, line, weight, in_use):
    """What is to be added to D^T x, ``weight`` times Gram ``line``; and a bit per atom in use, by blocks."""
    for a in range(n_used):
        k = np.uint64(slot_atom[used[a]])
        line[a] = slot_atom[used[a]] if complete else used[a]
        weight[a] = -slab[a]
        in_use[k // np.uint64(LANES)] |= np.uint64(1) << (k % np.uint64(LANES))


@kernel
def new_slot(
    k, slot, dictionary, columns, place, data, seen, complete, slot_of, slot_atom, rows, pieces, piece, row,
    table, linear_of, second,
):  # fmt: skip
    """Make room for atom k: its observed entries, its row g_k; its products come when they are needed."""
    slot_of[k], slot_atom[slot] = slot, k
    linear = 0.0
    for j in range(seen):
        piece[j] = dictionary[k, place[j]]
        pieces[slot, j] = piece[j]
        linear += float(piece[j]) * float(data[j])
    linear_of[slot] = linear
    for other in range(slot + 1):
        second[slot, other] = 0.0
    wanted = 0 if complete else row.shape[0]  # of complete data, rows and table are those of all atoms
    for first in range(0, wanted, LANES):
        set_rows(row, first, piece, columns, place, 0, seen)
    for i in range(wanted):
        rows[slot, i] = row[i]
    for other in range(0 if complete else slot + 1):
        table[slot, other] = table[other, slot] = math.nan


@kernel
def draw_jointly(
    used, n_used, slot_atom, table, pieces, seen, linear_of, complete, gamma_s, gamma_eps, noise, factor,
    slab, mean,
):  # fmt: skip
    """All s of the atoms in use, (2.1), and their mean, with Lambda = L L^T in ``factor``.

    ``table`` holds the products of the observed entries of two atoms; nan stands for not known yet.
    """
    for a in range(n_used):
        line = slot_atom[used[a]] if complete else used[a]
        for b in range(a + 1):
            other = slot_atom[used[b]] if complete else used[b]
            known = table[line, other]
            product = 0.0
            for j in range(seen if math.isnan(known) else 0):
                product += float(pieces[line, j]) * float(pieces[other, j])
            product = product if math.isnan(known) else known
            table[line, other] = table[other, line] = product
            value = gamma_eps * product
            for c in range(b):
                value -= factor[a, c] * factor[b, c]
            if b < a:
                factor[a, b] = value / factor[b, b]
            else:  # no pivot of gamma_s I + a Gram matrix is below gamma_s, but for rounding
                factor[a, a] = math.sqrt(max(value + gamma_s, gamma_s))
        value = gamma_eps * linear_of[used[a]]
        for c in range(a):
            value -= factor[a, c] * mean[c]
        mean[a] = value / factor[a, a]
    for a in range(n_used):
        slab[a] = mean[a] + noise[a]
    for a in range(n_used - 1, -1, -1):  # L^-T
        value, center = slab[a], mean[a]
        for b in range(a + 1, n_used):
            value -= factor[b, a] * slab[b]
            center -= factor[b, a] * mean[b]
        slab[a], mean[a] = value / factor[a, a], center / factor[a, a]


@kernel
def add_moments(used, n_used, factor, mean, with_second, total, second):
    """Add E[w] and, if wanted, E[w w^T], given z, to the sums over the kept sweeps; overwrites L by L^-1."""
    for a in range(n_used):
        total[used[a]] += mean[a]
    if not with_second:
        return
    for a in range(n_used):
        factor[a, a] = 1.0 / factor[a, a]
        for b in range(a):
            value = 0.0
            for c in range(b, a):
                value -= factor[a, c] * factor[c, b]
            factor[a, b] = value * factor[a, a]
    for a in range(n_used):
        for b in range(a + 1):
            value = mean[a] * mean[b]
            for c in range(a, n_used):
                value += factor[c, a] * factor[c, b]
            low, high = min(used[a], used[b]), max(used[a], used[b])
            second[high, low] += value


@kernel
def item_variance(dictionary, slot_atom, n_slots, total, second, scale, variance, n):
    """Var[x_p] = E[d_p^T w w^T d_p] - (E[d_p^T w])^2."""
    for i in range(dictionary.shape[1]):
        variance[n, i] = 0.0
    for a in range(n_slots):
        for b in range(a + 1):
            covariance = scale * second[a, b] - scale * total[a] * scale * total[b]
            weight = covariance if a == b else 2.0 * covariance
            if weight != 0.0:
                _add_product(dictionary, slot_atom[a], slot_atom[b], weight, variance, n)
    for i in range(dictionary.shape[1]):
        variance[n, i] = max(variance[n, i], 0.0)


@kernel
def _add_product(dictionary, k, other, weight, variance, n):
    one, two, line = np.uint64(k), np.uint64(other), np.uint64(n)
    for i in range(dictionary.shape[1]):
        variance[line, i] += weight * dictionary[one, i] * dictionary[two, i]


@kernel
def sort_slots(slot_atom, n_slots, order):
    """``order``: the slots by increasing atom (insertion sort: they are few)."""
    for a in range(n_slots):
        at = a
        while at > 0 and slot_atom[order[at - 1]] > slot_atom[a]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = a
