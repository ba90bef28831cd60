"""Scans over the atoms of an item in plain loops, for samplers that look at any number of atoms at once.

The code sweeps have their own, in blocks of 64 atoms held in registers (`kruskal.gibbs.lanes`), with uniforms
of 16 bits and more where these do not settle a pair; here a uniform is a word of 32 bits. Loops take whole
arrays and bounds, never slices: a slice costs two atomic reference counts.
"""

import math

import numpy as np

from kruskal.gibbs.pairs import BITS_TO_LOG, LOG_OFFSET, REFINED
from kruskal.kernel import kernel
from kruskal.random.philox import philox, uniform_32

SCALE_31 = np.float32(2.0**-31)
STEP = 16
"""Atoms that are looked at at once."""


@kernel
def float_uniforms(words, row, uniforms):
    """Lower bounds in float32 of the uniforms of one item's pairs, for the bars."""
    at = np.uint64(row)
    for k in range(words.shape[1]):
        uniforms[k] = np.float32(np.int32(words[at, k] >> np.uint32(1))) * SCALE_31


@kernel
def next_positive(merit, first, last):
    """First atom in first <= k < last whose ``merit`` is above 0; ``last`` if none.

    Looks at `STEP` atoms at once, so the array reaches `STEP` places beyond the largest ``last``.
    """
    k = first
    while k < last:
        hits = 0
        for i in range(STEP):  # a sum of comparisons has no early exit
            hits += merit[np.uint64(k) + np.uint64(i)] > 0
        if hits > 0:
            for found in range(k, min(k + STEP, last)):
                if merit[found] > 0:
                    return found
        k += STEP
    return last


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


@kernel
def is_on(word, log_odds, k, item, address):
    """Whether u < 1 / (1 + exp(-log_odds)), mostly without the exponential.

    exp(-x) <= 1 / (1 + x + x^2 / 2) for x >= 0 settles most pairs. A word of 0 is refined by another word.
    """
    u = uniform_32(word)
    if word == 0:
        key_0, key_1, sweep, _ = address
        u = uniform_32(philox(k, item, sweep, REFINED, key_0, key_1)[0]) * 2.0**-32
    if log_odds >= 0.0:
        if (1.0 - u) * (1.0 + log_odds * (1.0 + 0.5 * log_odds)) >= 1.0:
            return True
        return u < 1.0 / (1.0 + math.exp(-log_odds))
    if u * (1.0 - log_odds * (1.0 - 0.5 * log_odds)) >= 1.0:
        return False
    odds = math.exp(log_odds)
    return u < odds / (1.0 + odds)
