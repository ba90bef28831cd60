"""Codes of complete data, collapsed: Gram form.

The correlations of a chunk of items with all atoms come from one matrix product. The atoms of an item are
then taken in blocks of 64 (`kruskal.gibbs.lanes`): one vector comparison with the bars
(`kruskal.gibbs.pairs`) tells whose z may change, and only these are looked at. A change takes the value of
that code times a row of the Gram matrix off the correlations of its block at once, and off those of later
blocks when their turn comes, together with all other changes.
"""

import math

import numpy as np

from kruskal.gibbs.lanes import above, add_row, add_rows, aligned_zeros, lowest
from kruskal.gibbs.pairs import (
    CODES,
    NEVER,
    SLABS,
    SLABS_AHEAD,
    SLACK,
    WORDS_AHEAD,
    ahead,
    changes,
    lower_log_uniform,
    slab_normal,
    staying_bar,
    surely_changes,
)
from kruskal.gibbs.systems import padded_rows
from kruskal.gibbs.vectors import LANES, apart, rarely
from kruskal.kernel import kernel
from kruskal.random.normal import fill_normals
from kruskal.random.philox import fill_few_words, fill_words

_CHUNK = 256  # items per matrix product: residuals and correlations stay in the second-level cache
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def sweep_complete(
    flat, origin, offset, region, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, counts, residual,
):  # fmt: skip
    """Draw the codes of a shard and count them by region and atom; False when the buffer is too small."""
    n_items, (n_atoms, n_entries), n_padded = origin.shape[0], dictionary.shape, columns.shape[1]
    key_0, key_1, sweep, first_item = address
    number = flat.dtype.type
    energy = np.zeros(n_padded, flat.dtype)
    gain = np.zeros(n_padded, flat.dtype)  # mean = gain * correlation
    deviation = np.zeros(n_padded, flat.dtype)  # precision^-1/2, precision = gamma_s + gamma_eps energy
    quadratic = np.zeros(n_padded)  # log odds = base of the region + quadratic * correlation^2
    base = np.zeros((log_odds.shape[0], n_padded))
    slope = np.zeros(n_padded, np.float32)  # bar = slope * (bound of +-log u) + level of the region
    level = np.full((log_odds.shape[0], n_padded), NEVER)
    for atom in range(n_atoms):
        energy[atom] = gram[atom, atom]
        precision = gamma_s + gamma_eps * float(energy[atom])
        gain[atom] = gamma_eps / precision
        deviation[atom] = 1.0 / math.sqrt(precision)
        quadratic[atom] = 0.5 * gamma_eps * gamma_eps / precision
        scale = precision / (gamma_eps * gamma_eps)
        slope[atom] = 2.0 * scale
        for g in range(log_odds.shape[0]):
            base[g, atom] = log_odds[g, atom] + 0.5 * math.log(gamma_s / precision)
            level[g, atom] = -(2.0 * base[g, atom] + SLACK) * scale
    rows = padded_rows(dictionary, -1.0)  # less the atoms
    words = np.empty((WORDS_AHEAD, n_padded // 2), np.uint32)
    bits = words.view(np.uint16)  # 16 of every pair
    slab_words = np.empty((1, 2 * WORDS_AHEAD * SLABS_AHEAD), np.uint32)
    slab_uniforms = np.empty((1, WORDS_AHEAD * SLABS_AHEAD))
    slab_normals = np.empty((1, WORDS_AHEAD * SLABS_AHEAD), flat.dtype)
    bar = aligned_zeros(1, n_padded, slope)[0]
    rests = aligned_zeros(_CHUNK, rows.shape[1], flat)
    plain = aligned_zeros(_CHUNK, n_entries, flat) if rows.shape[1] != n_entries else rests
    correlations = aligned_zeros(_CHUNK, n_padded, flat)
    in_use = np.zeros(n_padded // LANES, np.uint64)
    held = np.zeros(n_padded, flat.dtype)  # values of the codes in use
    minus = np.empty(n_atoms, flat.dtype)  # what is to be added to correlations: less the changes so far,
    changed = np.empty(n_atoms, np.uint16)  # times the Gram rows of these atoms
    filled = np.uint64(0)
    for chunk in range(0, n_items, _CHUNK):
        chunk_size = min(_CHUNK, n_items - chunk)
        for m in range(chunk_size):
            n = chunk + m
            begin, end = code_start[n], code_start[n + 1]
            _residual(flat, origin[n], offset, rows, code_atom, code_value, begin, end, rests, m)
            if rows.shape[1] != n_entries:
                for i in range(n_entries):
                    plain[m, i] = rests[m, i]
        np.dot(plain[:chunk_size], columns, correlations[:chunk_size])
        for m in range(chunk_size):
            if filled + n_atoms > new_atom.shape[0]:
                return False
            n = chunk + m
            item = first_item + n
            row = n % WORDS_AHEAD
            here = np.uint64(region[n])
            if row == 0:
                fill_words(words, item, sweep, CODES, key_0, key_1)
                fill_few_words(slab_words[0], SLABS_AHEAD // 2, item, sweep, SLABS, key_0, key_1)
                fill_normals(slab_words, slab_uniforms, slab_normals)
            for i in range(n_padded):
                bar[i] = slope[i] * lower_log_uniform(bits[row, i]) + level[here, i]
            mask, last_block = np.uint64(0), np.uint64(0)
            for c in range(np.uint64(code_start[n]), np.uint64(code_start[n + 1])):
                k = np.uint64(code_atom[c])
                bar[k] = staying_bar(bits[row, k], slope[k], level[here, k])
                held[k] = code_value[c]
                correlations[m, k] += energy[k] * held[k]  # with the residual without this atom
                block = k // np.uint64(LANES)
                mask = (mask if block == last_block else np.uint64(0)) | (_ONE << (k % np.uint64(LANES)))
                last_block = block
                in_use[block] = mask
            n_changed, n_new = np.uint64(0), np.uint64(0)
            for first in range(0, n_padded, LANES):
                block = np.uint64(first // LANES)
                used = in_use[block]
                in_use[block] = 0
                add_rows(correlations, m, first, minus, gram, changed, 0, n_changed)
                candidates = above(correlations, m, first, bar) ^ used
                # A wrong guess of a branch costs the time until it is known to be wrong. So atoms are sought
                # among the candidates before the last change (`early`), known well before those after it,
                # and these only tell what that change added. All are decided exactly.
                early = candidates
                while True:
                    pending = early
                    if candidates & ~early != 0:
                        pending = apart(early | candidates)
                    if pending == 0:
                        break
                    bit = np.uint64(lowest(pending))
                    later = (_ALL << bit) << _ONE
                    early &= later
                    candidates &= later
                    k = np.uint64(first) + bit
                    was_used = (used >> bit) & _ONE
                    correlation = correlations[m, k]
                    square = correlation * correlation
                    if not surely_changes(was_used, square, bits[row, k], bar[k], slope[k], level[here, k]):
                        odds = base[here, k] + quadratic[k] * (float(correlation) * float(correlation))
                        if not changes(was_used, odds, bits[row, k], k, item, address):
                            continue
                    if rarely(n_new >= np.uint64(SLABS_AHEAD)):
                        deviate = number(slab_normal(n_new, item, address))
                    else:
                        deviate = slab_normals[0, ahead(row, n_new, WORDS_AHEAD)]
                    new = gain[k] * correlation + deviation[k] * deviate
                    # no branch: whether an atom comes or goes cannot be guessed
                    less = held[k] if was_used else -new
                    held[k] = new
                    used ^= _ONE << bit
                    n_new += _ONE - was_used
                    minus[n_changed] = less
                    changed[n_changed] = k
                    n_changed += _ONE
                    early = candidates
                    candidates = (add_row(correlations, m, first, less, gram, k, bar) ^ used) & later
                while used != 0:
                    k = np.uint64(first + lowest(used))
                    used &= used - _ONE
                    new_atom[filled] = k
                    new_value[filled] = held[k]
                    counts[here, k] += 1
                    filled += _ONE
            new_start[n + 1] = filled
    return True


# The loops below take whole arrays and indices, never slices: a slice costs two atomic reference counts.


@kernel
def _residual(flat, origin, offset, rows, atom, value, begin, end, rests, m):
    """rests[m] = the item at ``origin`` less its codes begin <= c < end; ``rows`` are negative atoms."""
    line, base = np.uint64(m), np.uint64(origin)
    for i in range(offset.shape[0]):
        rests[line, i] = flat[base + np.uint64(offset[i])]
    for first in range(0, rows.shape[1], LANES):
        add_rows(rests, m, first, value, rows, atom, begin, end)
