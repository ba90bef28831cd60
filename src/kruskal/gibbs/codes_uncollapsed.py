"""Codes in the paper's uncollapsed form, complete or masked: for comparison, not for speed."""

import math

import numpy as np

from kruskal.gibbs.codes_masked import subtract_at
from kruskal.kernel import kernel
from kruskal.random import Stream
from kruskal.random.normal import normal
from kruskal.random.philox import philox, uniform_52

_CODES = int(Stream.CODES)
_PRIOR_SLABS = int(Stream.PRIOR_SLABS)


@kernel
def sweep_uncollapsed(
    flat, origin, offset, region, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, counts, residual,
):  # fmt: skip
    """One pair at a time: z given s (1.11), then s given z (1.12)."""
    key_0, key_1, sweep, first_item = address
    n_atoms, n_entries = dictionary.shape
    complete = entry_start.shape[0] == 1
    everything = np.arange(n_entries).astype(np.uint32)
    scratch = np.empty(n_entries, flat.dtype)
    weight = np.zeros(n_atoms, flat.dtype)
    drawn = np.empty(1, flat.dtype)
    filled = 0
    for n in range(origin.shape[0]):
        if filled + n_atoms > new_atom.shape[0]:
            return False
        item = first_item + n
        here = everything if complete else entry[entry_start[n] : entry_start[n + 1]]
        rest = scratch if complete else residual[entry_start[n] : entry_start[n + 1]]
        for j in range(here.shape[0]):
            rest[j] = flat[origin[n] + offset[here[j]]]
        for c in range(code_start[n], code_start[n + 1]):
            weight[code_atom[c]] = code_value[c]
            subtract_at(rest, here, 0, len(here), dictionary, code_atom[c], code_value[c])
        for k in range(n_atoms):
            correlation = 0.0
            energy = 0.0
            for j in range(here.shape[0]):
                correlation += float(dictionary[k, here[j]]) * float(rest[j])
                energy += float(dictionary[k, here[j]]) ** 2
            old = weight[k]
            word_0, word_1, word_2, word_3 = philox(k, item, sweep, _CODES, key_0, key_1)
            _, _, word_4, word_5 = philox(k, item, sweep, _PRIOR_SLABS, key_0, key_1)
            slab = float(old) if old != 0 else normal(word_4, word_5) / math.sqrt(gamma_s)
            linear = gamma_eps * (correlation + energy * float(old))
            logit = log_odds[region[n], k] - 0.5 * (slab * slab * gamma_eps * energy - 2.0 * slab * linear)
            probability = 1.0 / (1.0 + math.exp(-logit)) if logit > -700.0 else 0.0
            drawn[0] = 0
            if uniform_52(word_0, word_1) < probability:
                precision = gamma_s + gamma_eps * energy
                drawn[0] = linear / precision + normal(word_2, word_3) / math.sqrt(precision)
            new = drawn[0]
            if new != 0:
                new_atom[filled] = k
                new_value[filled] = new
                counts[region[n], k] += 1
                filled += 1
            if new != old:
                subtract_at(rest, here, 0, len(here), dictionary, k, new - old)
            weight[k] = 0
        new_start[n + 1] = filled
    return True
