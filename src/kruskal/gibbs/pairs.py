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
from kruskal.random.normal import normal
from kruskal.random.philox import philox, uniform_32

LANES = 64
"""Arrays over atoms are padded to a multiple of this, so that vector loops have no remainder."""
NEVER = np.float32(np.inf)
"""The bar of atoms in use, which are looked at in any case, and of padding, which never is."""
STEP = 16
"""Atoms that are compared with their bars at once."""
_BITS_TO_LOG = np.float32(math.log(2.0) / 8388608.0)
_LOG_OFFSET = np.float32(127.0 * math.log(2.0))
SLACK = np.float32(2e-3)
"""Room for rounding in twice the log odds."""
WORDS_AHEAD = 16
"""Items whose random words are made at a time."""
SLABS_AHEAD = 32
"""Slab values of an item that are made ahead."""
CODES = int(Stream.CODES)
SLABS = int(Stream.SLABS)
REFINED = int(Stream.REFINED)
DOUBT = np.float32(3e-3)
"""Room in the log odds for `SLACK` and for the error of `fill_logits`; within, a pair is decided exactly."""
DIGITS = np.float32(1e-5)
"""Room for rounding, as a part of what is rounded."""
_UNKNOWN = np.float32(np.nan)
_HALF = np.float32(0.5)
_LOG_2 = np.float32(math.log(2.0))
_MANTISSA = np.int32(0x7FFFFF)
_EXPONENT_0 = np.int32(0x3F800000)
_FROM_BITS = np.float32(2.0**-23)
_FIT = tuple(np.float32(c) for c in (0.44262247, -0.27629874, 0.18363552, -0.09720845, 0.02595380))
_SCALE_31 = np.float32(2.0**-31)


def padded(n_atoms: int) -> int:
    """``n_atoms`` rounded up to a multiple of `LANES`."""
    return -(-n_atoms // LANES) * LANES


@kernel
def lower_uniform(word):
    """A lower bound in float32 of the uniform of a word; 0 for the lowest ones."""
    return np.float32(np.int32(word >> np.uint32(1))) * _SCALE_31


@kernel
def lower_log(x):
    """A lower bound of log(x) for a float32 x >= 0 (-88 for 0) that is at most 0.06 too low."""
    return np.float32(np.float32(x).view(np.int32)) * _BITS_TO_LOG - _LOG_OFFSET


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
def fill_logits(words, size, logits):
    """``logits[j]`` = logit u of ``words[j]``, certain to within `DOUBT`, for j < size and the rest of a vector.

    A word of 0 gives NaN: its u is refined by another word, see `is_on`.
    """
    for j in range((size + STEP - 1) // STEP * STEP):
        inside, outside = np.float32(words[j]) + _HALF, np.float32(np.uint32(~words[j])) + _HALF
        logits[j] = _LOG_2 * (_log2(inside) - _log2(outside)) if words[j] != 0 else _UNKNOWN


@kernel
def _log2(x):
    """127 + log2(x) to 5e-6: exponent + f + (log2(1 + f) - f), the last by a polynomial that is exact at 0 and 1."""
    bits = np.float32(x).view(np.int32)
    f = np.int32((bits & _MANTISSA) | _EXPONENT_0).view(np.float32) - np.float32(1.0)
    more = _FIT[4] * f + _FIT[3]
    for power in (2, 1, 0):
        more = more * f + _FIT[power]
    return np.float32(bits) * _FROM_BITS + f * (np.float32(1.0) - f) * more


@kernel
def slab_normal(normals, row, used, item, address):
    """The standard normal of the ``used``-th slab value of the item in ``row``; 32 are made ahead."""
    if used < SLABS_AHEAD:
        return normals[row, used]
    key_0, key_1, sweep, _ = address
    word_0, word_1, _, _ = philox(used, item, sweep, SLABS, key_0, key_1)
    return normal(word_0, word_1)
