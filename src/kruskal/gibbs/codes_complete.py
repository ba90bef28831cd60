"""Codes of complete data, collapsed: Gram form.

The correlations of a chunk of items with all atoms come from one matrix product. The pass over the atoms of
an item then compares squared correlations with bars (`kruskal.gibbs.pairs`), and after a change of a code it
takes that change times a row of the Gram matrix off the correlations of the atoms still to come.
"""

import math

import numpy as np

from kruskal.gibbs.pairs import (
    ALWAYS,
    BITS_TO_LOG,
    CODES,
    LANES,
    LOG_OFFSET,
    NEVER,
    SLABS,
    SLABS_AHEAD,
    SLACK,
    WORDS_AHEAD,
    draw_slab,
    float_uniforms,
    is_on,
    next_above,
)
from kruskal.kernel import kernel
from kruskal.random.normal import fill_normals
from kruskal.random.philox import fill_words

_CHUNK = 128  # items per matrix product: residuals and correlations stay in the second-level cache


@kernel
def sweep_complete(
    flat, origin, offset, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, residual,
):  # fmt: skip
    """Draw the codes of a shard; returns the sum of squared residuals, or -1 when the buffer is too small."""
    n_items, (n_atoms, n_entries), n_padded = origin.shape[0], dictionary.shape, columns.shape[1]
    key_0, key_1, sweep, first_item = address
    energy = np.empty(n_atoms)
    deviation = np.empty(n_atoms)  # precision^-1/2, precision = gamma_s + gamma_eps energy
    prior_log_odds = np.empty(n_atoms)  # logit pi_k + 1/2 log(gamma_s / precision)
    slope = np.zeros(n_padded, np.float32)  # bar = slope * (lower bound of log u) + level
    level = np.full(n_padded, NEVER)
    for k in range(n_atoms):
        energy[k] = gram[k, k]
        precision = gamma_s + gamma_eps * energy[k]
        deviation[k] = 1.0 / math.sqrt(precision)
        prior_log_odds[k] = log_odds[k] + 0.5 * math.log(gamma_s / precision)
        scale = precision / (gamma_eps * gamma_eps)
        slope[k] = 2.0 * scale
        level[k] = -(2.0 * prior_log_odds[k] + SLACK) * scale
    ahead = np.empty((WORDS_AHEAD, n_padded), np.uint32)
    slab_words = np.empty((WORDS_AHEAD, 2 * SLABS_AHEAD), np.uint32)
    slab_uniforms = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    slab_normals = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    uniforms = np.empty(n_padded, np.float32)
    uniform_bits = uniforms.view(np.int32)
    bar = np.empty(n_padded, np.float32)
    weight = np.zeros(n_atoms, flat.dtype)
    rests = np.empty((_CHUNK, n_entries), flat.dtype)
    correlations = np.empty((_CHUNK, n_padded), flat.dtype)
    changed_atom = np.empty(n_atoms, np.int64)
    change = np.empty(n_atoms, flat.dtype)
    drawn = np.empty(1, flat.dtype)  # rounds a draw to the precision it is stored in
    squares = 0.0
    filled = 0
    for chunk in range(0, n_items, _CHUNK):
        chunk_size = min(_CHUNK, n_items - chunk)
        for m in range(chunk_size):
            n = chunk + m
            rest = rests[m]
            base = np.uint64(origin[n])
            for i in range(n_entries):
                rest[i] = flat[base + np.uint64(offset[i])]
            for c in range(code_start[n], code_start[n + 1]):
                _subtract(rest, dictionary[code_atom[c]], code_value[c])
        np.dot(rests[:chunk_size], columns, correlations[:chunk_size])
        for m in range(chunk_size):
            if filled + n_atoms > new_atom.shape[0]:
                return -1.0
            n = chunk + m
            item = first_item + n
            rest = rests[m]
            correlation = correlations[m]
            row = n % WORDS_AHEAD
            if row == 0:
                fill_words(ahead, item, sweep, CODES, key_0, key_1)
                fill_words(slab_words, item, sweep, SLABS, key_0, key_1)
                fill_normals(slab_words, slab_uniforms, slab_normals)
            words = ahead[row]
            float_uniforms(words, uniforms)
            for k in range(n_padded):
                bar[k] = slope[k] * (np.float32(uniform_bits[k]) * BITS_TO_LOG - LOG_OFFSET) + level[k]
            for c in range(code_start[n], code_start[n + 1]):
                weight[code_atom[c]] = code_value[c]
                bar[code_atom[c]] = ALWAYS
            first_filled = filled
            n_changed = 0
            for first in range(0, n_padded, LANES):
                last = first + LANES
                _take_off(correlation, gram, changed_atom, change, 0, n_changed, first, last)
                k = next_above(correlation, bar, first, last)
                while k < last:
                    old = weight[k]
                    linear = gamma_eps * (correlation[k] + energy[k] * old)
                    mean = linear * deviation[k] * deviation[k]
                    drawn[0] = 0
                    if is_on(words[k], prior_log_odds[k] + 0.5 * linear * mean, k, item, address):
                        drawn[0] = draw_slab(
                            slab_uniforms[row], slab_normals[row], filled - first_filled, item, address, mean,
                            deviation[k],
                        )  # fmt: skip
                    new = drawn[0]
                    if new != 0:
                        new_atom[filled] = k
                        new_value[filled] = new
                        filled += 1
                    if new != old:
                        _subtract(rest, dictionary[k], new - old)
                        changed_atom[n_changed] = k
                        change[n_changed] = new - old
                        _take_off(
                            correlation, gram, changed_atom, change, n_changed, n_changed + 1, first, last
                        )
                        n_changed += 1
                    k = next_above(correlation, bar, k + 1, last)
            for c in range(code_start[n], code_start[n + 1]):
                weight[code_atom[c]] = 0
            new_start[n + 1] = filled
            for i in range(n_entries):
                squares += float(rest[i]) * float(rest[i])
    return squares


@kernel
def _subtract(row, other, amount):
    for i in range(row.shape[0]):
        row[i] -= amount * other[i]


@kernel
def _take_off(correlation, gram, changed_atom, change, begin, end, first, last):
    """Bring the correlations of first <= k < last up to date with changes begin <= c < end, four at a time.

    Atoms of the block that are done already are changed too: that does no harm, and vectors stay whole.
    """
    out = correlation[first:last]
    c = begin
    while c + 4 <= end:
        row_0, row_1 = gram[changed_atom[c], first:last], gram[changed_atom[c + 1], first:last]
        row_2, row_3 = gram[changed_atom[c + 2], first:last], gram[changed_atom[c + 3], first:last]
        a_0, a_1, a_2, a_3 = change[c], change[c + 1], change[c + 2], change[c + 3]
        for i in range(LANES):
            out[i] -= a_0 * row_0[i] + a_1 * row_1[i] + a_2 * row_2[i] + a_3 * row_3[i]
        c += 4
    while c < end:
        row = gram[changed_atom[c], first:last]
        a = change[c]
        for i in range(LANES):
            out[i] -= a * row[i]
        c += 1
