"""Codes of complete data, collapsed: Gram form.

The correlations of a chunk of items with all atoms come from one matrix product. The pass over the atoms of
an item then compares squared correlations with bars (`kruskal.gibbs.pairs`), and after a change of a code it
takes that change times a row of the Gram matrix off the correlations of the atoms still to come.
"""

import math

import numpy as np

from kruskal.gibbs.pairs import (
    BITS_TO_LOG,
    CODES,
    LOG_OFFSET,
    NEVER,
    SLABS,
    SLABS_AHEAD,
    SLACK,
    STEP,
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
_WHOLE = 32  # atoms: a whole number of vectors
_CANCELLED = 0.1  # a sum of squares that fell below this share is computed anew: rounding would show


@kernel
def sweep_complete(
    flat, origin, offset, region, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, residual,
):  # fmt: skip
    """Draw the codes of a shard; returns the sum of squared residuals, or -1 when the buffer is too small."""
    n_items, (n_atoms, n_entries), n_padded = origin.shape[0], dictionary.shape, columns.shape[1]
    key_0, key_1, sweep, first_item = address
    energy = np.empty(n_atoms)
    deviation = np.empty(n_atoms)  # precision^-1/2, precision = gamma_s + gamma_eps energy
    log_shrink = np.empty(n_atoms)  # 1/2 log(gamma_s / precision)
    slope = np.zeros(n_padded, np.float32)  # bar = slope * (lower bound of log u) + level of the region
    level = np.full((log_odds.shape[0], n_padded), NEVER)
    for k in range(n_atoms):
        energy[k] = gram[k, k]
        precision = gamma_s + gamma_eps * energy[k]
        deviation[k] = 1.0 / math.sqrt(precision)
        log_shrink[k] = 0.5 * math.log(gamma_s / precision)
        scale = precision / (gamma_eps * gamma_eps)
        slope[k] = 2.0 * scale
        for g in range(log_odds.shape[0]):
            level[g, k] = -(2.0 * (log_odds[g, k] + log_shrink[k]) + SLACK) * scale
    words = np.empty((WORDS_AHEAD, n_padded), np.uint32)
    slab_words = np.empty((WORDS_AHEAD, 2 * SLABS_AHEAD), np.uint32)
    slab_uniforms = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    slab_normals = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    uniforms = np.empty(n_padded, np.float32)
    uniform_bits = uniforms.view(np.int32)
    bar = np.full(n_padded + STEP, NEVER)
    nothing = np.zeros(1, flat.dtype)
    rests = np.empty((_CHUNK, n_entries), flat.dtype)
    correlations = np.empty((_CHUNK, n_padded), flat.dtype)
    correlation = np.zeros(n_padded + STEP, flat.dtype)
    drawn = np.empty(1, flat.dtype)  # rounds a draw to the precision it is stored in
    squares = 0.0
    filled = 0
    for chunk in range(0, n_items, _CHUNK):
        chunk_size = min(_CHUNK, n_items - chunk)
        for m in range(chunk_size):
            n = chunk + m
            begin, end = code_start[n], code_start[n + 1]
            _residual(flat, origin[n], offset, dictionary, code_atom, code_value, begin, end, rests, m)
        np.dot(rests[:chunk_size], columns, correlations[:chunk_size])
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
            float_uniforms(words, row, uniforms)
            for k in range(n_padded):
                bar[k] = slope[k] * (np.float32(uniform_bits[k]) * BITS_TO_LOG - LOG_OFFSET) + level[here, k]
            for c in range(code_start[n], code_start[n + 1]):
                bar[code_atom[c]] = NEVER
            for k in range(n_padded):
                correlation[k] = correlations[m, k]
            first_filled = filled
            squares_before = _row_squares(rests, m)
            item_squares = squares_before
            c, end = code_start[n], code_start[n + 1]
            k = -1
            while True:
                in_use = np.int64(code_atom[c]) if c < end else n_padded
                k = next_above(correlation, bar, k + 1, in_use)
                if k == n_padded:
                    break
                old = nothing[0]
                if k == in_use:
                    old = code_value[c]
                    c += 1
                linear = gamma_eps * (correlation[k] + energy[k] * old)
                mean = linear * deviation[k] * deviation[k]
                drawn[0] = 0
                pair_log_odds = log_odds[here, k] + log_shrink[k] + 0.5 * linear * mean
                if is_on(words[row, k], pair_log_odds, k, item, address):
                    used = filled - first_filled
                    drawn[0] = draw_slab(
                        slab_uniforms, slab_normals, row, used, item, address, mean, deviation[k]
                    )
                new = drawn[0]
                if new != 0:
                    new_atom[filled] = k
                    new_value[filled] = new
                    filled += 1
                if new != old:
                    change = float(new) - float(
                        old
                    )  # |h - change d|^2 = |h|^2 - 2 change d.h + change^2 |d|^2
                    item_squares += change * (change * energy[k] - 2.0 * correlation[k])
                    _subtract_gram(correlation, gram, k, new - old)
            new_start[n + 1] = filled
            if item_squares < _CANCELLED * squares_before:
                _residual(
                    flat, origin[n], offset, dictionary, new_atom, new_value, first_filled, filled, rests, m
                )
                item_squares = _row_squares(rests, m)
            squares += item_squares
    return squares


# The loops below take whole arrays and indices, never slices: a slice costs two atomic reference counts.


@kernel
def _residual(flat, origin, offset, dictionary, atom, value, begin, end, rests, m):
    """rests[m] = the item at ``origin`` less its codes begin <= c < end."""
    line, base = np.uint64(m), np.uint64(origin)
    for i in range(offset.shape[0]):
        rests[line, i] = flat[base + np.uint64(offset[i])]
    for c in range(begin, end):
        k, w = atom[c], value[c]
        for i in range(offset.shape[0]):
            rests[line, i] -= w * dictionary[k, i]


@kernel
def _row_squares(rests, m):
    line = np.uint64(m)
    total = 0.0
    for i in range(rests.shape[1]):
        total += float(rests[line, i]) * float(rests[line, i])
    return total


@kernel
def _subtract_gram(correlation, gram, k, amount):
    """Bring correlations up to date from atom k on, or a little before so that vectors stay whole."""
    atom, first = np.uint64(k), np.uint64(k // _WHOLE * _WHOLE)
    for i in range(gram.shape[1] - k // _WHOLE * _WHOLE):
        at = first + np.uint64(i)
        correlation[at] -= amount * gram[atom, at]
