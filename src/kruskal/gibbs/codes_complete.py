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
_WHOLE = 32  # atoms: a whole number of vectors


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
    words = np.empty((WORDS_AHEAD, n_padded), np.uint32)
    slab_words = np.empty((WORDS_AHEAD, 2 * SLABS_AHEAD), np.uint32)
    slab_uniforms = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    slab_normals = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    uniforms = np.empty(n_padded, np.float32)
    uniform_bits = uniforms.view(np.int32)
    bar = np.empty(n_padded, np.float32)
    weight = np.zeros(n_atoms, flat.dtype)
    rests = np.empty((_CHUNK, n_entries), flat.dtype)
    correlations = np.empty((_CHUNK, n_padded), flat.dtype)
    correlation = np.empty(n_padded, flat.dtype)
    drawn = np.empty(1, flat.dtype)  # rounds a draw to the precision it is stored in
    squares = 0.0
    filled = 0
    for chunk in range(0, n_items, _CHUNK):
        chunk_size = min(_CHUNK, n_items - chunk)
        for m in range(chunk_size):
            n = chunk + m
            base = np.uint64(origin[n])
            for i in range(n_entries):
                rests[m, i] = flat[base + np.uint64(offset[i])]
            for c in range(code_start[n], code_start[n + 1]):
                _subtract_atom(rests, m, dictionary, code_atom[c], code_value[c])
        np.dot(rests[:chunk_size], columns, correlations[:chunk_size])
        for m in range(chunk_size):
            if filled + n_atoms > new_atom.shape[0]:
                return -1.0
            n = chunk + m
            item = first_item + n
            row = n % WORDS_AHEAD
            if row == 0:
                fill_words(words, item, sweep, CODES, key_0, key_1)
                fill_words(slab_words, item, sweep, SLABS, key_0, key_1)
                fill_normals(slab_words, slab_uniforms, slab_normals)
            float_uniforms(words, row, uniforms)
            for k in range(n_padded):
                bar[k] = slope[k] * (np.float32(uniform_bits[k]) * BITS_TO_LOG - LOG_OFFSET) + level[k]
            for c in range(code_start[n], code_start[n + 1]):
                weight[code_atom[c]] = code_value[c]
                bar[code_atom[c]] = ALWAYS
            for k in range(n_padded):
                correlation[k] = correlations[m, k]
            first_filled = filled
            k = next_above(correlation, bar, 0, n_padded)
            while k < n_padded:
                old = weight[k]
                linear = gamma_eps * (correlation[k] + energy[k] * old)
                mean = linear * deviation[k] * deviation[k]
                drawn[0] = 0
                if is_on(words[row, k], prior_log_odds[k] + 0.5 * linear * mean, k, item, address):
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
                    _subtract_atom(rests, m, dictionary, k, new - old)
                    _subtract_gram(correlation, gram, k, new - old)
                k = next_above(correlation, bar, k + 1, n_padded)
            for c in range(code_start[n], code_start[n + 1]):
                weight[code_atom[c]] = 0
            new_start[n + 1] = filled
            for i in range(n_entries):
                squares += float(rests[m, i]) * float(rests[m, i])
    return squares


# The loops below take whole arrays and indices, never slices: a slice costs two atomic reference counts.


@kernel
def _subtract_atom(rests, m, dictionary, k, amount):
    line, atom = np.uint64(m), np.uint64(k)
    for i in range(dictionary.shape[1]):
        rests[line, i] -= amount * dictionary[atom, i]


@kernel
def _subtract_gram(correlation, gram, k, amount):
    """Bring correlations up to date from atom k on, or a little before so that vectors stay whole."""
    atom, first = np.uint64(k), np.uint64(k // _WHOLE * _WHOLE)
    for i in range(gram.shape[1] - k // _WHOLE * _WHOLE):
        at = first + np.uint64(i)
        correlation[at] -= amount * gram[atom, at]
