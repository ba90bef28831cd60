"""Philox4x32-10, the counter-based generator used inside the kernels.

A counter of four 32-bit words and a key of two give four random words (Salmon, Moraes, Dror and Shaw 2011).
There is no state: the words for (item, atom) can be had at any time, in any order, on any thread.
"""

import numpy as np

from kruskal.kernel import kernel

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SCALE_32 = 1.0 / 4294967296.0
_ONE_TO_TWO = np.uint64(0x3FF0000000000000)  # the exponent of floats in [1, 2)
_HALF_STEP = 2.0**-53


@kernel
def philox(c0, c1, c2, c3, k0, k1):
    """Four random 32-bit words (as uint64) for the counter (c0..c3) under the key (k0, k1)."""
    c0 = np.uint64(c0) & _LOW
    c1 = np.uint64(c1) & _LOW
    c2 = np.uint64(c2) & _LOW
    c3 = np.uint64(c3) & _LOW
    k0 = np.uint64(k0) & _LOW
    k1 = np.uint64(k1) & _LOW
    for _ in range(10):
        product_0 = _MULTIPLIER_0 * c0
        product_1 = _MULTIPLIER_1 * c2
        c0 = (product_1 >> _HALF) ^ c1 ^ k0
        c1 = product_1 & _LOW
        c2 = (product_0 >> _HALF) ^ c3 ^ k1
        c3 = product_0 & _LOW
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@kernel
def uniform_32(word):
    """A uniform in (0, 1) from one word: never 0, never 1."""
    return (float(word) + 0.5) * _SCALE_32


@kernel
def uniform_52(high, low):
    """A uniform in (0, 1) with 52 random bits from two words: never 0, never 1.

    It is (bits + 1/2) / 2^52, exactly. The bits become the mantissa of a number in [1, 2): many processors
    have no vector instruction that turns whole numbers of 64 bits into floats.
    """
    bits = (high << np.uint64(20)) ^ (low >> np.uint64(12))
    return (np.uint64(bits | _ONE_TO_TWO).view(np.float64) - 1.0) + _HALF_STEP


@kernel
def fill_words(words, item, sweep, stream, key_0, key_1):
    """Fill ``words`` (items, 4 n) uint32 with words for consecutive items from ``item`` on.

    ``words[m, q n + c]`` is word q of the counter (c, item + m, sweep, stream): blocks in a
    loop without branches, which the compiler turns into vector instructions. (It does not when this loop
    stands inside a large kernel, so many items are filled at a time.)
    """
    for m in range(words.shape[0]):
        _fill_row(words[m], item + m, sweep, stream, key_0, key_1)


@kernel
def _fill_row(row, item, sweep, stream, key_0, key_1):
    n = row.shape[0] // 4
    for c in range(n):
        word_0, word_1, word_2, word_3 = philox(c, item, sweep, stream, key_0, key_1)
        row[c] = word_0
        row[n + c] = word_1
        row[2 * n + c] = word_2
        row[3 * n + c] = word_3


@kernel
def fill_few_words(words, n, item, sweep, stream, key_0, key_1, page=0):
    """`fill_words` for rows too short for vector instructions: those of all items in one loop.

    ``words`` (4 n items,) holds word q of the counter (page n + c, item + m, sweep, stream) at
    ``(q items + m) n + c``, with m from 0 to items - 1. ``n`` is a power of two.
    """
    size = words.shape[0] // 4
    shift = 0
    while n >> (shift + 1) > 0:
        shift += 1
    for i in range(size):
        c, m = page * n + (i & (n - 1)), i >> shift
        word_0, word_1, word_2, word_3 = philox(c, item + m, sweep, stream, key_0, key_1)
        words[i] = word_0
        words[size + i] = word_1
        words[2 * size + i] = word_2
        words[3 * size + i] = word_3
