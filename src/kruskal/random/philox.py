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
_SCALE_53 = 1.0 / 9007199254740992.0


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
def uniform_53(high, low):
    """A uniform in (0, 1) with 53 random bits from two words: never 0, never 1."""
    bits = (high << np.uint64(21)) ^ (low >> np.uint64(11))
    return (float(bits) + 0.5) * _SCALE_53


@kernel
def fill_words(words, first, item, sweep, stream, key_0, key_1):
    """Fill ``words`` (uint32, length 4 n) for one item, many counters side by side.

    ``words[q n + c]`` is word q of the counter (first + c, item, sweep, stream): independent blocks in a loop
    without branches, which the compiler turns into vector instructions.
    """
    n = words.shape[0] // 4
    words_0, words_1, words_2, words_3 = words[:n], words[n : 2 * n], words[2 * n : 3 * n], words[3 * n :]
    for c in range(n):
        word_0, word_1, word_2, word_3 = philox(first + c, item, sweep, stream, key_0, key_1)
        words_0[c] = word_0
        words_1[c] = word_1
        words_2[c] = word_2
        words_3[c] = word_3
