"""The scales of the Bayesian support vector machine for the images of a minibatch (6.3)."""

import numpy as np

from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.inverse_gaussian import inverse_gaussian
from kruskal.random.normal import normal
from kruskal.random.philox import philox, uniform_52

LARGEST_INVERSE_SCALE = 1e6
"""1 / lambda is kept below: beyond, single precision does not know 1 - y f well enough to use it."""


def draw_scales(gaps: np.ndarray, cost: float, items: np.ndarray, seed: int, number: int) -> np.ndarray:
    """1 / lambda ~ InverseGaussian(1 / (C |1 - y f|), 1) for gaps 1 - y f (n, Y) of the images ``items``."""
    drawn = np.empty_like(gaps)
    _fill(gaps, cost, items, number, int(Stream.DEEP_SCALES), *key_of(seed), drawn)
    return np.minimum(drawn, LARGEST_INVERSE_SCALE)


@kernel
def _fill(gaps, cost, items, number, stream, key_0, key_1, drawn):
    for n in range(gaps.shape[0]):
        for c in range(gaps.shape[1]):
            word_0, word_1, word_2, word_3 = philox(c, items[n], number, stream, key_0, key_1)
            drawn[n, c] = inverse_gaussian(
                abs(cost * gaps[n, c]), normal(word_0, word_1), uniform_52(word_2, word_3)
            )
