"""Codes of masked data, collapsed: only the observed entries of an item are touched.

Energies sum_i omega_in d_ik^2 of all atoms are summed once per item. Correlations with the residual are
computed for a block of contiguous atoms, row by row of the entry-major dictionary, and for what remains of
the block again after a change. The bars (`kruskal.gibbs.pairs`) depend on the item through the energies.
"""

import math

import numpy as np

from kruskal.gibbs.pairs import (
    BITS_TO_LOG,
    CODES,
    LANES,
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

_HALF_BLOCK = LANES // 2


@kernel
def sweep_masked(
    flat, origin, offset, region, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, residual,
):  # fmt: skip
    """Draw the codes of a shard; returns the sum of squared residuals, or -1 when the buffer is too small."""
    n_atoms, n_padded = dictionary.shape[0], columns.shape[1]
    key_0, key_1, sweep, first_item = address
    level = np.full((log_odds.shape[0], n_padded), NEVER)  # -2 logit pi_kg
    for g in range(log_odds.shape[0]):
        for k in range(n_atoms):
            level[g, k] = -2.0 * log_odds[g, k] - SLACK
    words = np.empty((WORDS_AHEAD, n_padded), np.uint32)
    slab_words = np.empty((WORDS_AHEAD, 2 * SLABS_AHEAD), np.uint32)
    slab_uniforms = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    slab_normals = np.empty((WORDS_AHEAD, SLABS_AHEAD))
    uniforms = np.empty(n_padded, np.float32)
    uniform_bits = uniforms.view(np.int32)
    ratio = np.empty(n_padded, np.float32)
    ratio_bits = ratio.view(np.int32)
    bar = np.full(n_padded + STEP, NEVER)
    nothing = np.zeros(1, flat.dtype)
    energy = np.empty(n_padded, flat.dtype)
    correlation = np.zeros(n_padded + STEP, flat.dtype)
    drawn = np.empty(1, flat.dtype)  # rounds a draw to the precision it is stored in
    squares = 0.0
    filled = 0
    for n in range(origin.shape[0]):
        if filled + n_atoms > new_atom.shape[0]:
            return -1.0
        item = first_item + n
        row = n % WORDS_AHEAD
        here = np.uint64(region[n])
        if row == 0:
            fill_words(words, item, sweep, CODES, key_0, key_1)
            fill_words(slab_words, item, sweep, SLABS, key_0, key_1)
            fill_normals(slab_words, slab_uniforms, slab_normals)
        begin, end = entry_start[n], entry_start[n + 1]
        base = np.uint64(origin[n])
        for j in range(begin, end):
            residual[j] = flat[base + np.uint64(offset[entry[j]])]
        sum_energies(columns, entry, begin, end, energy)
        set_bars(
            energy,
            level,
            here,
            words,
            row,
            gamma_s,
            gamma_eps,
            ratio,
            ratio_bits,
            uniforms,
            uniform_bits,
            bar,
        )
        for c in range(code_start[n], code_start[n + 1]):
            bar[code_atom[c]] = NEVER
            subtract_at(residual, entry, begin, end, dictionary, code_atom[c], code_value[c])
        first_filled = filled
        c, codes_end = code_start[n], code_start[n + 1]
        for first in range(0, n_padded, LANES):
            last = first + LANES
            correlate(columns, entry, begin, end, residual, first, last, correlation)
            k = first - 1
            while True:
                in_use = min(np.int64(code_atom[c]), last) if c < codes_end else last
                k = next_above(correlation, bar, k + 1, in_use)
                if k == last:
                    break
                old = nothing[0]
                if k == in_use:
                    old = code_value[c]
                    c += 1
                precision = gamma_s + gamma_eps * energy[k]
                linear = gamma_eps * (correlation[k] + float(energy[k]) * old)
                deviation = 1.0 / math.sqrt(precision)
                mean = linear * deviation * deviation
                pair_log_odds = log_odds[here, k] + 0.5 * (math.log(gamma_s / precision) + linear * mean)
                drawn[0] = 0
                if is_on(words[row, k], pair_log_odds, k, item, address):
                    used = filled - first_filled
                    drawn[0] = draw_slab(
                        slab_uniforms, slab_normals, row, used, item, address, mean, deviation
                    )
                new = drawn[0]
                if new != 0:
                    new_atom[filled] = k
                    new_value[filled] = new
                    filled += 1
                if new != old:
                    subtract_at(residual, entry, begin, end, dictionary, k, new - old)
                    # atoms before k are done, so the recomputation may begin at a round number
                    later = first if k + 1 < first + _HALF_BLOCK else first + _HALF_BLOCK
                    correlate(columns, entry, begin, end, residual, later, last, correlation)
        new_start[n + 1] = filled
        for j in range(begin, end):
            squares += float(residual[j]) * float(residual[j])
    return squares


# The loops below take whole arrays and bounds, never slices: a slice costs two atomic reference counts.


@kernel
def subtract_at(residual, entry, begin, end, dictionary, k, amount):
    """residual_j -= amount * dictionary[k, entry_j] for begin <= j < end."""
    atom = np.uint64(k)
    for j in range(begin, end):
        residual[j] -= amount * dictionary[atom, entry[j]]


@kernel
def correlate(columns, entry, begin, end, residual, first, last, correlation):
    """correlation[k] = sum_j columns[entry_j, k] residual_j for first <= k < last, four entries at a time."""
    start, width = np.uint64(first), last - first
    for i in range(width):
        correlation[start + np.uint64(i)] = 0
    j = begin
    while j + 4 <= end:
        e_0, e_1, e_2, e_3 = entry[j], entry[j + 1], entry[j + 2], entry[j + 3]
        r_0, r_1, r_2, r_3 = residual[j], residual[j + 1], residual[j + 2], residual[j + 3]
        for i in range(width):
            k = start + np.uint64(i)
            correlation[k] += (
                columns[e_0, k] * r_0 + columns[e_1, k] * r_1 + columns[e_2, k] * r_2 + columns[e_3, k] * r_3
            )
        j += 4
    while j < end:
        e, r = entry[j], residual[j]
        for i in range(width):
            k = start + np.uint64(i)
            correlation[k] += columns[e, k] * r
        j += 1


@kernel
def sum_energies(columns, entry, begin, end, energy):
    """energy[k] = sum_j columns[entry_j, k]^2, four entries at a time."""
    n_atoms = energy.shape[0]
    for k in range(n_atoms):
        energy[k] = 0
    j = begin
    while j + 4 <= end:
        e_0, e_1, e_2, e_3 = entry[j], entry[j + 1], entry[j + 2], entry[j + 3]
        for k in range(n_atoms):
            energy[k] += (
                columns[e_0, k] * columns[e_0, k]
                + columns[e_1, k] * columns[e_1, k]
                + columns[e_2, k] * columns[e_2, k]
                + columns[e_3, k] * columns[e_3, k]
            )
        j += 4
    while j < end:
        e = entry[j]
        for k in range(n_atoms):
            energy[k] += columns[e, k] * columns[e, k]
        j += 1


@kernel
def set_bars(
    energy, level, here, words, row, gamma_s, gamma_eps, ratio, ratio_bits, uniforms, uniform_bits, bar
):
    """Squared correlation below which the z of an unused atom surely stays 0.

    2 (log odds - logit u) = (gamma_eps correlation)^2 / precision - log(precision / gamma_s) + 2 logit pi
    - 2 logit u, and both logarithms are replaced by their lower bounds.
    """
    float_uniforms(words, row, uniforms)
    per_energy = np.float32(gamma_eps / gamma_s)
    scale = np.float32(gamma_s / (gamma_eps * gamma_eps))
    for k in range(energy.shape[0]):
        ratio[k] = np.float32(1.0) + per_energy * np.float32(energy[k])
    for k in range(energy.shape[0]):
        log_ratio = np.float32(ratio_bits[k]) * BITS_TO_LOG - LOG_OFFSET
        log_uniform = np.float32(uniform_bits[k]) * BITS_TO_LOG - LOG_OFFSET
        bar[k] = (level[here, k] + log_ratio + np.float32(2.0) * log_uniform) * ratio[k] * scale
