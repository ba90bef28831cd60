"""One pair (item, atom): its z and s, and how to know without a look that z stays 0.

Every pair has a uniform u of its own, a pure function of (seed, sweep, item, atom), and z = 1 iff u < P(z=1),
that is iff the log odds exceed logit u. For an unused atom the log odds are a constant plus a multiple of a
squared correlation, so "z stays 0" is a comparison of the squared correlation with a *bar*. A bar that is a
little too low does no harm: the pair is then looked at, and decided exactly. So the bar takes, instead of
logit u, the lower bound of log u that needs no logarithm: the bits of a float32 y > 0, read as an integer,
are 2^23 (127 + exponent + mantissa - 1), and exponent + mantissa - 1 <= log2(y) < that + 0.0861. All this is
done for many atoms at once with vector instructions; hardly a pair is looked at whose z neither is nor
becomes 1.
"""

import math

import numpy as np

from kruskal.kernel import kernel
from kruskal.random import Stream
from kruskal.random.normal import MIDDLE, normal, tail_quantile
from kruskal.random.philox import philox, uniform_32

LANES = 64
"""Arrays over atoms are padded to a multiple of this, so that vector loops have no remainder."""
NEVER = np.float32(np.inf)
"""The bar of atoms in use, which are looked at in any case, and of padding, which never is."""
STEP = 16
"""Atoms that are compared with their bars at once."""
BITS_TO_LOG = np.float32(math.log(2.0) / 8388608.0)
LOG_OFFSET = np.float32(127.0 * math.log(2.0))
SLACK = np.float32(2e-3)
"""Room for rounding in twice the log odds."""
WORDS_AHEAD = 64
"""Items whose random words are made at a time."""
SLABS_AHEAD = 32
"""Slab values of an item that are made ahead."""
CODES = int(Stream.CODES)
SLABS = int(Stream.SLABS)
REFINED = int(Stream.REFINED)
_SCALE_31 = np.float32(2.0**-31)


def padded(n_atoms: int) -> int:
    """``n_atoms`` rounded up to a multiple of `LANES`."""
    return -(-n_atoms // LANES) * LANES


@kernel
def float_uniforms(words, row, uniforms):
    """Lower bounds in float32 of the uniforms of one item's pairs, for the bars."""
    at = np.uint64(row)
    for k in range(words.shape[1]):
        uniforms[k] = np.float32(np.int32(words[at, k] >> np.uint32(1))) * _SCALE_31


@kernel
def next_above(correlation, bar, first, last):
    """First atom in first <= k < last whose squared correlation exceeds its bar; ``last`` if none.

    Looks at `STEP` atoms at once, so the arrays reach `STEP` places beyond the largest ``last``.
    """
    k = first
    while k < last:
        hits = 0
        for i in range(STEP):  # a sum of comparisons has no early exit, so it is done on whole vectors
            at = np.uint64(k) + np.uint64(i)
            hits += correlation[at] * correlation[at] > bar[at]
        if hits > 0:
            for found in range(k, min(k + STEP, last)):
                if correlation[found] * correlation[found] > bar[found]:
                    return found
        k += STEP
    return last


@kernel
def next_positive(merit, first, last):
    """First atom in first <= k < last whose ``merit`` is above 0; ``last`` if none. See `next_above`."""
    k = first
    while k < last:
        hits = 0
        for i in range(STEP):
            hits += merit[np.uint64(k) + np.uint64(i)] > 0
        if hits > 0:
            for found in range(k, min(k + STEP, last)):
                if merit[found] > 0:
                    return found
        k += STEP
    return last


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


@kernel
def draw_slab(uniforms, normals, row, used, item, address, mean, deviation):
    """s ~ N(mean, deviation^2): the ``used``-th slab value of the item in ``row``; 32 are made ahead."""
    if used < SLABS_AHEAD:
        if abs(uniforms[row, used] - 0.5) <= MIDDLE:
            return mean + deviation * normals[row, used]
        return mean + deviation * tail_quantile(uniforms[row, used])
    key_0, key_1, sweep, _ = address
    word_0, word_1, _, _ = philox(used, item, sweep, SLABS, key_0, key_1)
    return mean + deviation * normal(word_0, word_1)
