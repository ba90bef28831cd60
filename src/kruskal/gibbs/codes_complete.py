"""Codes of complete data, collapsed: Gram form.

The correlations of a chunk of items with all atoms come from one matrix product. The atoms of an item are
then taken in blocks of 64 (`kruskal.gibbs.lanes`): one vector comparison with the bars
(`kruskal.gibbs.pairs`) tells which unused atoms are to be looked at. A change of a code takes that change
times a row of the Gram matrix off the correlations of its block at once, and off those of later blocks when
their turn comes, together with all other changes.
"""

import math

import numpy as np

from kruskal.gibbs.lanes import above, add_row, add_rows, aligned_zeros, lowest
from kruskal.gibbs.pairs import (
    CODES,
    DIGITS,
    NEVER,
    SLABS,
    SLABS_AHEAD,
    SLACK,
    WORDS_AHEAD,
    fill_logits,
    is_on,
    lower_logit,
    slab_normal,
    surely_on,
)
from kruskal.gibbs.systems import padded_rows
from kruskal.gibbs.vectors import LANES, apart, rarely
from kruskal.kernel import kernel
from kruskal.random.normal import fill_normals
from kruskal.random.philox import fill_words

_CHUNK = 256  # items per matrix product: residuals and correlations stay in the second-level cache
_ONE = np.uint64(1)
_HIGH = np.uint64(1 << 63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def sweep_complete(
    flat, origin, offset, region, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, counts, residual, with_squares,
):  # fmt: skip
    """Draw the codes of a shard and count them by region and atom; returns -1 when the buffer is too small.

    Otherwise the sum of squared residuals, or 0 without ``with_squares``.
    """
    n_items, (n_atoms, n_entries), n_padded = origin.shape[0], dictionary.shape, columns.shape[1]
    key_0, key_1, sweep, first_item = address
    number = flat.dtype.type
    nothing, yes, no = number(0), number(1), number(-1)
    energy = np.zeros(n_padded, flat.dtype)
    gain = np.zeros(n_padded, flat.dtype)  # mean = gain * correlation
    deviation = np.zeros(n_padded, flat.dtype)  # precision^-1/2, precision = gamma_s + gamma_eps energy
    quadratic = np.zeros(n_padded)  # log odds = base of the region + quadratic * correlation^2
    base = np.zeros((log_odds.shape[0], n_padded))
    slope = np.zeros(n_padded, np.float32)  # bar = slope * (lower bound of log u) + level of the region
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
    slab_words = np.empty((WORDS_AHEAD, 2 * SLABS_AHEAD), np.uint32)
    slab_uniforms = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    slab_normals = np.empty((WORDS_AHEAD, SLABS_AHEAD), flat.dtype)
    bar = aligned_zeros(1, n_padded, slope)[0]
    rests = aligned_zeros(_CHUNK, rows.shape[1], flat)
    plain = aligned_zeros(_CHUNK, n_entries, flat) if rows.shape[1] != n_entries else rests
    correlations = aligned_zeros(_CHUNK, n_padded, flat)
    used_bits = np.ones(n_padded, np.uint16)
    logits = np.empty(n_padded, np.float32)
    doubt = np.empty(n_padded, np.float32)
    in_use = np.zeros(n_padded // LANES, np.uint64)
    minus = np.empty(n_atoms, flat.dtype)  # what is to be added to correlations: less the changes so far,
    changed = np.empty(n_atoms, np.uint16)  # times the Gram rows of these atoms
    squares = 0.0
    filled = 0
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
                return -1.0
            n = chunk + m
            item = first_item + n
            row = n % WORDS_AHEAD
            here = np.uint64(region[n])
            if row == 0:
                fill_words(words, item, sweep, CODES, key_0, key_1)
                fill_words(slab_words, item, sweep, SLABS, key_0, key_1)
                fill_normals(slab_words, slab_uniforms, slab_normals)
            for i in range(n_padded):
                bar[i] = slope[i] * lower_logit(bits[row, i]) + level[here, i]
            begin = code_start[n]
            n_used = code_start[n + 1] - begin
            mask, last_block = np.uint64(0), np.uint64(0)
            for c in range(n_used):
                k = np.uint64(code_atom[begin + c])
                bar[k] = NEVER
                block = k // np.uint64(LANES)
                mask = (mask if block == last_block else np.uint64(0)) | (_ONE << (k % np.uint64(LANES)))
                last_block = block
                in_use[block] = mask
                used_bits[c] = bits[row, k]
            fill_logits(used_bits, n_used, logits, doubt)
            first_filled = filled
            n_changed = 0
            c = 0
            for first in range(0, n_padded, LANES):
                block = np.uint64(first // LANES)
                used = in_use[block]
                in_use[block] = 0
                add_rows(correlations, m, first, minus, gram, changed, 0, n_changed)
                candidates = above(correlations, m, first, bar)
                # A wrong guess of a branch costs the time until it is known to be wrong. So unused atoms are
                # sought among the candidates before the last change (`early`), known well before those
                # after it, and these only tell what that change added. All are decided exactly.
                early = candidates
                upcoming = np.uint64(first + lowest(used | _HIGH))
                ahead = correlations[m, upcoming]
                while True:
                    # unused atoms before the next one in use, or all that are left
                    before = (used & (~used + _ONE)) - _ONE
                    while True:
                        pending = early & before
                        if candidates & before & ~early != 0:
                            pending = apart((early | candidates) & before)
                        if pending == 0:
                            break
                        bit = lowest(pending)
                        later = (_ALL << np.uint64(bit)) << _ONE
                        early &= later
                        candidates &= later
                        k = np.uint64(first + bit)
                        correlation = correlations[m, k]
                        on = surely_on(
                            correlation * correlation, bits[row, k], bar[k], slope[k], level[here, k]
                        )
                        if not on:
                            pair_log_odds = base[here, k] + quadratic[k] * (
                                float(correlation) * float(correlation)
                            )
                            on = is_on(bits[row, k], pair_log_odds, k, item, address)
                        if on:
                            place = np.uint64(filled - first_filled)
                            if rarely(place >= np.uint64(SLABS_AHEAD)):
                                deviate = number(slab_normal(place, item, address))
                            else:
                                deviate = slab_normals[row, place]
                            new = gain[k] * correlation + deviation[k] * deviate
                            new_atom[np.uint64(filled)] = k
                            new_value[np.uint64(filled)] = new
                            filled += 1
                            minus[np.uint64(n_changed)] = -new
                            changed[np.uint64(n_changed)] = k
                            n_changed += 1
                            counts[here, k] += 1
                            early = candidates
                            candidates = add_row(correlations, m, first, -new, gram, k, bar) & later
                            ahead = correlations[m, upcoming]
                    if used == 0:
                        break
                    # An atom in use is drawn without a branch: the processor guesses branches ahead, and
                    # whether z stays 1 cannot be guessed.
                    bit = lowest(used)
                    used &= used - _ONE
                    k = np.uint64(first + bit)
                    at = np.uint64(c)
                    old = code_value[np.uint64(begin) + at]
                    whole = ahead + energy[k] * old
                    gap = whole * whole - number(slope[k] * logits[at] + level[here, k])
                    if rarely(not abs(gap) > doubt[at] * slope[k] + DIGITS * abs(level[here, k])):
                        pair_log_odds = base[here, k] + quadratic[k] * (float(whole) * float(whole))
                        gap = yes if is_on(bits[row, k], pair_log_odds, k, item, address) else no
                    place = np.uint64(filled - first_filled)
                    if rarely(place >= np.uint64(SLABS_AHEAD)):
                        deviate = number(slab_normal(place, item, address))
                    else:
                        deviate = slab_normals[row, place]
                    new = gain[k] * whole + deviation[k] * deviate
                    new = new if gap > 0 else nothing
                    new_atom[np.uint64(filled)] = k
                    new_value[np.uint64(filled)] = new
                    filled += gap > 0
                    counts[here, k] += gap > 0
                    c += 1
                    change = new - old
                    upcoming = np.uint64(first + lowest(used | _HIGH))
                    ahead = correlations[m, upcoming] - change * gram[k, upcoming]
                    minus[np.uint64(n_changed)] = -change
                    changed[np.uint64(n_changed)] = k
                    n_changed += 1
                    later = (_ALL << np.uint64(bit)) << _ONE
                    early = candidates & later
                    candidates = add_row(correlations, m, first, -change, gram, k, bar) & later
            new_start[n + 1] = filled
            if with_squares:
                _residual(flat, origin[n], offset, rows, new_atom, new_value, first_filled, filled, rests, m)
                squares += _row_squares(rests, m)
    return squares


# The loops below take whole arrays and indices, never slices: a slice costs two atomic reference counts.


@kernel
def _residual(flat, origin, offset, rows, atom, value, begin, end, rests, m):
    """rests[m] = the item at ``origin`` less its codes begin <= c < end; ``rows`` are negative atoms."""
    line, base = np.uint64(m), np.uint64(origin)
    for i in range(offset.shape[0]):
        rests[line, i] = flat[base + np.uint64(offset[i])]
    for first in range(0, rows.shape[1], LANES):
        add_rows(rests, m, first, value, rows, atom, begin, end)


@kernel
def _row_squares(rests, m):
    line = np.uint64(m)
    total = 0.0
    for i in range(rests.shape[1]):
        total += float(rests[line, i]) * float(rests[line, i])
    return total
