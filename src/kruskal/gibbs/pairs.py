"""One pair (item, atom): its z and s, and how to know without a look that z stays 0.

Every pair has a uniform u of its own, a pure function of (seed, sweep, item, atom), and z = 1 iff u < P(z=1),
that is iff the log odds exceed logit u. Of u the first 16 bits are made ahead for all pairs; they settle all
but a few pairs in 100,000, for which 32 more bits are made (`is_on`).

For an unused atom the log odds are a constant plus a multiple of a squared correlation, so "z stays 0" is a
comparison of the squared correlation with a *bar*. A bar that is a little too low does no harm: the pair is
then looked at, and decided exactly. So the bar takes, instead of logit u, a lower bound that needs no
logarithm. That of log u: the bits of a float32 y > 0, read as an integer, are 2^23 (127 + exponent + mantissa
- 1), and exponent + mantissa - 1 <= log2(y) < that + 0.0861. That of -log(1 - u): u + u^2 / 2. All this is
done for many atoms at once with vector instructions; hardly a pair is looked at whose z neither is nor
becomes 1.

Atoms in use are looked at in any case. For them logit u is computed more closely (`fill_logits`), so that
their z is a comparison too, and pairs within the error of that are decided exactly.
"""

import math

import numpy as np

from kruskal.gibbs.vectors import LANES
from kruskal.kernel import kernel
from kruskal.random import Stream
from kruskal.random.normal import normal
from kruskal.random.philox import philox, uniform_32

NEVER = np.float32(np.inf)
"""The bar of atoms in use, which are looked at in any case, and of padding, which never is."""
SLACK = np.float32(2e-3)
"""Room for rounding in twice the log odds."""
DOUBT = np.float32(3e-3)
"""Room in the log odds for `SLACK` and for the error of `fill_logits`; within, a pair is decided exactly."""
DIGITS = np.float32(1e-5)
"""Room for rounding, as a part of what is rounded."""
STEP = 16
"""Loops over the atoms in use of an item are rounded up to a multiple of this."""
WORDS_AHEAD = 16
"""Items whose random words are made at a time: so many stay in the first-level cache."""
SLABS_AHEAD = 32
"""Slab values of an item that are made ahead."""
CODES = int(Stream.CODES)
SLABS = int(Stream.SLABS)
REFINED = int(Stream.REFINED)
_WIDE = np.float32(0.085)  # most by which logit u exceeds its lower bound,
_FEW, _MANY = np.uint16(2**6), np.uint16(2**14)  # if its first bits are from here to there
_CELL = 2.0**-16  # width of the interval that the first bits of a uniform tell
_LAST = np.uint16(0xFFFF)
_LOG_2 = np.float32(math.log(2.0))
_FROM_BITS = np.float32(2.0**-23)
_BITS_TO_LOG = np.float32(math.log(2.0) * 2.0**-23)
_LOG_OFFSET = np.float32(127.0 * math.log(2.0))
_MANTISSA = np.int32(0x7FFFFF)
_EXPONENT_0 = np.int32(0x3F800000)
_FIT = tuple(np.float32(c) for c in (0.44262247, -0.27629874, 0.18363552, -0.09720845, 0.02595380))
_HALF, _ONE, _UNKNOWN = np.float32(0.5), np.float32(1.0), np.float32(np.nan)


def padded(n_atoms: int) -> int:
    """``n_atoms`` rounded up to a multiple of `LANES`."""
    return -(-n_atoms // LANES) * LANES


@kernel
def lower_logit(bits):
    """A lower bound of logit u = log u - log(1 - u), given the first 16 bits of u."""
    u = np.float32(bits) * np.float32(_CELL)
    return lower_log(u) + u * (_ONE + _HALF * u)


@kernel
def lower_log(x):
    """A lower bound of log(x) for a float32 x >= 0 (-88 for 0) that is at most 0.06 too low."""
    return np.float32(np.float32(x).view(np.int32)) * _BITS_TO_LOG - _LOG_OFFSET


@kernel
def surely_on(square, bits, bar, slope, level):
    """Whether a squared correlation above its bar is so far above that z = 1 for sure: most are.

    For 2^-10 <= u < 1/4 logit u is at most 0.082 above `lower_logit`: 0.060 for the logarithm, 0.016 for the
    bits that are not known yet, 0.006 for u + u^2 / 2.
    """
    return (square > bar + _WIDE * slope + DIGITS * abs(level)) & ((bits >= _FEW) & (bits < _MANY))


@kernel
def is_on(bits, log_odds, k, item, address):
    """Whether u < 1 / (1 + exp(-log_odds)), mostly without the exponential; ``bits`` are the first 16 of u.

    exp(-x) <= 1 / (1 + x + x^2 / 2) for x >= 0 settles most pairs.
    """
    low = float(bits) * _CELL
    high = low + _CELL
    if log_odds >= 0.0:
        if (1.0 - high) * (1.0 + log_odds * (1.0 + 0.5 * log_odds)) >= 1.0:
            return True
        probability = 1.0 / (1.0 + math.exp(-log_odds))
    else:
        if low * (1.0 - log_odds * (1.0 - 0.5 * log_odds)) >= 1.0:
            return False
        odds = math.exp(log_odds)
        probability = odds / (1.0 + odds)
    if high <= probability:
        return True
    if low >= probability:
        return False
    key_0, key_1, sweep, _ = address
    return low + _CELL * uniform_32(philox(k, item, sweep, REFINED, key_0, key_1)[0]) < probability


@kernel
def fill_logits(bits, size, logits, doubts):
    """``logits[j]`` = logit u, certain to within ``doubts[j]``, for j < size and the rest of a vector.

    ``bits[j]`` are the first 16 of u. If these are all 0 or all 1, the logit is not known at all: NaN.
    """
    for j in range((size + STEP - 1) // STEP * STEP):
        inside, outside = np.float32(bits[j]) + _HALF, np.float32(_LAST - bits[j]) + _HALF
        known = (bits[j] != 0) & (bits[j] != _LAST)
        logits[j] = _LOG_2 * (_log2(inside) - _log2(outside)) if known else _UNKNOWN
        doubts[j] = DOUBT + _ONE / inside + _ONE / outside


@kernel
def _log2(x):
    """127 + log2(x) to 5e-6.

    With the mantissa 1 + f it is exponent + f + (log2(1 + f) - f), the last by a polynomial.
    """
    bits = np.float32(x).view(np.int32)
    f = np.int32((bits & _MANTISSA) | _EXPONENT_0).view(np.float32) - _ONE
    more = _FIT[4] * f + _FIT[3]
    for power in (2, 1, 0):
        more = more * f + _FIT[power]
    return np.float32(bits) * _FROM_BITS + f * (_ONE - f) * more


@kernel
def slab_normal(used, item, address):
    """The standard normal of the ``used``-th slab value of an item that uses more than are made ahead."""
    key_0, key_1, sweep, _ = address
    word_0, word_1, _, _ = philox(used, item, sweep, SLABS, key_0, key_1)
    return normal(word_0, word_1)
