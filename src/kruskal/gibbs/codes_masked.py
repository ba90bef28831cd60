"""Codes of masked data, collapsed: only the observed entries of an item are touched.

The atoms of an item are taken in blocks of 64 (`kruskal.gibbs.lanes`): their energies sum_i omega_in d_ik^2
and their correlations with the residual are summed together over the rows of the entry-major dictionary, and
one vector comparison with the bars (`kruskal.gibbs.pairs`), which depend on the item through the energies,
tells whose z may change. After a change the correlations of the block are summed anew.
"""

import math

import numpy as np

from kruskal.gibbs.lanes import above, aligned_zeros, lowest, set_rows, sum_rows
from kruskal.gibbs.pairs import (
    CODES,
    DIGITS,
    LOG_ERROR,
    NEVER,
    SLABS,
    SLABS_AHEAD,
    SLACK,
    WORDS_AHEAD,
    ahead,
    changes,
    lower_log,
    lower_log_uniform,
    slab_normal,
)
from kruskal.gibbs.vectors import LANES
from kruskal.kernel import kernel
from kruskal.random.normal import fill_normals
from kruskal.random.philox import fill_few_words, fill_words

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def sweep_masked(
    flat, origin, offset, region, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, counts, residual,
):  # fmt: skip
    """Draw the codes of a shard; returns as `kruskal.gibbs.codes_complete.sweep_complete`."""
    n_atoms, n_padded = dictionary.shape[0], columns.shape[1]
    key_0, key_1, sweep, first_item = address
    number = flat.dtype.type
    level = np.full((log_odds.shape[0], n_padded), NEVER)  # -2 logit pi_kg
    for g in range(log_odds.shape[0]):
        for atom in range(n_atoms):
            level[g, atom] = -2.0 * log_odds[g, atom] - SLACK
    words = np.empty((WORDS_AHEAD, n_padded // 2), np.uint32)
    bits = words.view(np.uint16)  # 16 of every pair
    slab_words = np.empty((1, 2 * WORDS_AHEAD * SLABS_AHEAD), np.uint32)
    slab_uniforms = np.empty((1, WORDS_AHEAD * SLABS_AHEAD))
    slab_normals = np.empty((1, WORDS_AHEAD * SLABS_AHEAD))
    bar = aligned_zeros(1, n_padded, level)[0]
    energy = aligned_zeros(1, n_padded, flat)[0]
    correlation = aligned_zeros(1, n_padded, flat)[0]
    in_use = np.zeros(n_padded // LANES, np.uint64)
    held = np.zeros(n_padded, flat.dtype)  # values of the codes in use
    filled = np.uint64(0)
    for n in range(origin.shape[0]):
        if filled + n_atoms > new_atom.shape[0]:
            return False
        item = first_item + n
        row = n % WORDS_AHEAD
        here = np.uint64(region[n])
        if row == 0:
            fill_words(words, item, sweep, CODES, key_0, key_1)
            fill_few_words(slab_words[0], SLABS_AHEAD // 2, item, sweep, SLABS, key_0, key_1)
            fill_normals(slab_words, slab_uniforms, slab_normals)
        begin, end = entry_start[n], entry_start[n + 1]
        base = np.uint64(origin[n])
        for j in range(begin, end):
            residual[j] = flat[base + np.uint64(offset[entry[j]])]
        for c in range(code_start[n], code_start[n + 1]):
            k = np.uint64(code_atom[c])
            in_use[k // np.uint64(LANES)] |= _ONE << (k % np.uint64(LANES))
            held[k] = code_value[c]
            subtract_at(residual, entry, begin, end, dictionary, k, code_value[c])
        n_new = np.uint64(0)
        for first in range(0, n_padded, LANES):
            block = np.uint64(first // LANES)
            used = in_use[block]
            in_use[block] = 0
            sum_rows(correlation, energy, first, residual, columns, entry, begin, end)
            _set_bars(energy, level, here, bits, row, first, gamma_s, gamma_eps, bar)
            _set_used(energy, level, here, bits, row, first, used, gamma_s, gamma_eps, bar)
            later = _ALL
            while True:
                _add_back(correlation, energy, held, first, used & later)
                looked_at = (above(correlation, 0, first, bar) ^ used) & later
                changed = False
                while looked_at != 0:
                    bit = np.uint64(lowest(looked_at))
                    looked_at &= looked_at - _ONE
                    k = np.uint64(first) + bit
                    was_used = (used >> bit) & _ONE
                    precision = gamma_s + gamma_eps * energy[k]
                    linear = gamma_eps * correlation[k]
                    mean = linear / precision
                    odds = log_odds[here, k] + 0.5 * (math.log(gamma_s / precision) + linear * mean)
                    if changes(was_used, odds, bits[row, k], k, item, address):
                        changed = True
                        break
                if not changed:
                    break
                later = (_ALL << bit) << _ONE
                used ^= _ONE << bit
                if was_used:
                    change = -held[k]
                else:
                    if n_new < np.uint64(SLABS_AHEAD):
                        deviate = slab_normals[0, ahead(row, n_new, WORDS_AHEAD)]
                    else:
                        deviate = slab_normal(n_new, item, address)
                    change = number(mean + deviate / math.sqrt(precision))
                    held[k] = change
                    n_new += _ONE
                subtract_at(residual, entry, begin, end, dictionary, k, change)
                set_rows(correlation, first, residual, columns, entry, begin, end)
            while used != 0:
                k = np.uint64(first + lowest(used))
                used &= used - _ONE
                new_atom[filled] = k
                new_value[filled] = held[k]
                counts[here, k] += 1
                filled += _ONE
        new_start[n + 1] = filled
    return True


# The loops below take whole arrays and bounds, never slices: a slice costs two atomic reference counts.


@kernel
def subtract_at(residual, entry, begin, end, dictionary, k, amount):
    """residual_j -= amount * dictionary[k, entry_j] for begin <= j < end."""
    atom = np.uint64(k)
    for j in range(begin, end):
        residual[j] -= amount * dictionary[atom, entry[j]]


@kernel
def _set_bars(energy, level, here, bits, row, first, gamma_s, gamma_eps, bar):
    """Squared correlation below which an unused atom of a block surely stays unused.

    2 (log odds - log u) = (gamma_eps correlation)^2 / precision - log(precision / gamma_s) + 2 logit pi
    - 2 log u, and the logarithms are replaced by their lower bounds.
    """
    start, at = np.uint64(first), np.uint64(row)
    per_energy = np.float32(gamma_eps / gamma_s)
    scale = np.float32(gamma_s / (gamma_eps * gamma_eps))
    for i in range(LANES):
        k = start + np.uint64(i)
        ratio = np.float32(1.0) + per_energy * np.float32(energy[k])
        twice = level[here, k] + lower_log(ratio) + np.float32(2.0) * lower_log_uniform(bits[at, k])
        bar[k] = twice * ratio * scale


@kernel
def _set_used(energy, level, here, bits, row, first, used, gamma_s, gamma_eps, bar):
    """Squared correlation above which an atom of a block that is in use surely stays in use.

    As above with -log u for log u, and with upper bounds.
    """
    start, at = np.uint64(first), np.uint64(row)
    per_energy = np.float32(gamma_eps / gamma_s)
    scale = np.float32(gamma_s / (gamma_eps * gamma_eps))
    while used != 0:
        k = start + np.uint64(lowest(used))
        used &= used - _ONE
        ratio = np.float32(1.0) + per_energy * np.float32(energy[k])
        room = np.float32(2.0) * SLACK + LOG_ERROR + DIGITS * abs(level[here, k])
        twice = level[here, k] + lower_log(ratio) - np.float32(2.0) * lower_log_uniform(bits[at, k])
        bar[k] = (twice + room) * ratio * scale


@kernel
def _add_back(correlation, energy, held, first, used):
    """The correlations of the atoms in use with the residual without them."""
    start = np.uint64(first)
    while used != 0:
        k = start + np.uint64(lowest(used))
        used &= used - _ONE
        correlation[k] += energy[k] * held[k]
