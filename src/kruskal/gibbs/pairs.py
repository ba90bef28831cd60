"""One pair (item, atom): whether its z changes, and how to know without a look that it does not.

With the odds r of z = 1 to z = 0 (s integrated out), an unused atom comes into use with probability min(1,
r), one in use goes with probability min(1, 1 / r): a Metropolis step that always proposes the other value. It
leaves the same distribution as it is as a draw from r / (1 + r) does, and changes z more often. Every pair
has a uniform u of its own, a pure function of (seed, sweep, item, atom), and z changes iff log u is less than
the log odds of the change. Of u the first 16 bits are made ahead for all pairs; they settle all but a few
pairs in 100,000, for which 32 more bits are made (`changes`).

The log odds are a constant plus a multiple of a squared correlation, so "z stays as it is" is a comparison of
the squared correlation with a *bar*: an unused atom stays unused below its own, one in use stays above. A bar
that is a little too low, or too high for an atom in use, does no harm: the pair is then looked at, and
decided exactly. So the bar takes, instead of log u, a lower bound that needs no logarithm: the bits of a
float32 y > 0, read as an integer, are 2^23 (127 + exponent + mantissa - 1), and exponent + mantissa - 1 <=
log2(y) < that + 0.0861. All this is done for many atoms at once with vector instructions; hardly a pair is
looked at whose z does not change.
"""

import math

import numpy as np

from kruskal.gibbs.vectors import LANES
from kruskal.kernel import kernel
from kruskal.random import Stream
from kruskal.random.normal import normal
from kruskal.random.philox import philox, uniform_32

NEVER = np.float32(np.inf)
"""The bar of padding, which is never looked at."""
SLACK = np.float32(2e-3)
"""Room for rounding in twice the log odds."""
DIGITS = np.float32(1e-5)
"""Room for rounding, as a part of what is rounded."""
WORDS_AHEAD = 16
"""Items whose random words are made at a time: so many stay in the first-level cache."""
SLABS_AHEAD = 16
"""Normals of an item that are made ahead: few items take more atoms into use in a sweep."""
_SIDE_BY_SIDE = SLABS_AHEAD // 2
CODES = int(Stream.CODES)
SLABS = int(Stream.SLABS)
REFINED = int(Stream.REFINED)
LOG_ERROR = np.float32(0.0598)
"""Most by which a logarithm exceeds `lower_log`."""
_WIDE = np.float32(0.08)  # most by which log u exceeds its lower bound, and room for rounding,
_FEW = np.uint16(2**6)  # if its first bits are at least these
_CELL = 2.0**-16  # width of the interval that the first bits of a uniform tell
BITS_TO_LOG = np.float32(math.log(2.0) * 2.0**-23)
LOG_OFFSET = np.float32(127.0 * math.log(2.0))


def padded(n_atoms: int) -> int:
    """``n_atoms`` rounded up to a multiple of `LANES`."""
    return -(-n_atoms // LANES) * LANES


@kernel
def lower_log_uniform(bits):
    """A lower bound of log u, given the first 16 bits of u."""
    return lower_log(np.float32(bits) * np.float32(_CELL))


@kernel
def lower_log(x):
    """A lower bound of log(x) for a float32 x >= 0 (-88 for 0) that is at most 0.06 too low."""
    return np.float32(np.float32(x).view(np.int32)) * BITS_TO_LOG - LOG_OFFSET


@kernel
def staying_bar(bits, slope, level):
    """Squared correlation above which an atom in use surely stays; ``level`` is what unused atoms have."""
    return slope * (SLACK - lower_log_uniform(bits)) + level + DIGITS * abs(level)


@kernel
def surely_changes(in_use, square, bits, bar, slope, level):
    """Whether a squared correlation is so far beyond its bar that z changes for sure: most are.

    For u >= 2^-10 log u is at most 0.076 above `lower_log_uniform`: 0.060 for the logarithm, 0.016 for the
    bits that are not known yet.
    """
    beyond = bar - square if in_use else square - bar
    return (beyond > _WIDE * slope + np.float32(2.0) * DIGITS * abs(level)) & (bits >= _FEW)


@kernel
def changes(in_use, log_odds, bits, k, item, address):
    """Whether u < min(1, r), or 1 / r for an atom in use, mostly without the exponential.

    ``log_odds`` is log r, ``bits`` are the first 16 of u. exp(-x) <= 1 / (1 + x + x^2 / 2) for x >= 0 settles
    most pairs that are not beyond their bar.
    """
    against = log_odds if in_use else -log_odds
    if against <= 0.0:
        return True
    if against != against:  # an item with a value that is not a number gets rid of it
        return in_use != 0
    low = float(bits) * _CELL
    if low * (1.0 + against * (1.0 + 0.5 * against)) >= 1.0:
        return False
    probability = math.exp(-against)
    if low + _CELL <= probability:
        return True
    if low >= probability:
        return False
    key_0, key_1, sweep, _ = address
    return low + _CELL * uniform_32(philox(k, item, sweep, REFINED, key_0, key_1)[0]) < probability


@kernel
def ahead(row, new, n_rows):
    """Where the ``new``-th normal, of `SLABS_AHEAD`, of one of ``n_rows`` items stands among all of them.

    They are made of words in the order of `fill_few_words`, n = SLABS_AHEAD / 2 of an item side by side.
    """
    n = np.uint64(_SIDE_BY_SIDE)
    new = np.uint64(new)
    return (new // n * np.uint64(n_rows) + np.uint64(row)) * n + new % n


@kernel
def slab_normal(new, item, address):
    """The standard normal of the ``new``-th atom that comes into use, beyond those made ahead."""
    key_0, key_1, sweep, _ = address
    word_0, word_1, _, _ = philox(new, item, sweep, SLABS, key_0, key_1)
    return normal(word_0, word_1)
