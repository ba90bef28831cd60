r"""What is remembered of images that are gone: sufficient statistics for learning from a stream of batches.

With r_kk' and B_k = sum_n W_kn corr x_n summed over all batches, the residual correlations of atom k that its
draw needs are those of the batch at hand plus

    B_k - sum_k' sum_lag r_kk'[lag] D_k'[. - lag]

with the atoms as they are now: only the maps of former batches are of former atoms. Before a batch is added,
what is remembered is multiplied by a factor (1: nothing is forgotten). This is a surrogate of the posterior,
not exact, as former maps are never drawn again.
"""

from typing import Any, NamedTuple

import numpy as np

from kruskal.gibbs.conv_maps import MapDraw
from kruskal.gibbs.conv_statistics import LagStatistics, add_convolved
from kruskal.kernel import kernel


class ConvMemory(NamedTuple):
    """Sums over complete images.

    Attributes
    ----------
    pairs : (K, K, lags, lags) r_kk' for k >= k';  products : (K, P) B
    counts, squares, residual_squares : as in `MapDraw`
    n_images, n_observed : how many images and entries they stand for
    """

    pairs: np.ndarray
    products: np.ndarray
    counts: np.ndarray
    squares: float
    residual_squares: float
    n_images: float
    n_observed: float

    def faded(self, factor: float) -> "ConvMemory":
        """All sums times ``factor``."""
        parts: list[Any] = [part * factor for part in self]
        return ConvMemory(*parts)

    def plus(self, other: "ConvMemory") -> "ConvMemory":
        """Sums over both."""
        parts: list[Any] = [sum(pair) for pair in zip(self, other)]
        return ConvMemory(*parts)

    def lags(self, dictionary: np.ndarray, shape: tuple[int, int, int]) -> LagStatistics:
        """What the draw of the atoms takes, for the atoms (K, P) as they are now."""
        return LagStatistics(self.pairs, self.products - explained(self.pairs, dictionary, shape))


def memory_of(
    lags: LagStatistics, drawn: MapDraw, dictionary: np.ndarray, shape: tuple[int, int, int], n_images: int,
    n_observed: int,
) -> ConvMemory:  # fmt: skip
    """The sums over one batch; ``lags`` were made with these atoms (K, P)."""
    products = lags.correlations + explained(lags.pairs, dictionary, shape)
    return ConvMemory(lags.pairs, products, *drawn, n_images, n_observed)


def explained(pairs: np.ndarray, dictionary: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """(K, P) sum over k' of r_kk' convolved with D_k'; ``pairs`` holds k >= k', r_k'k[lag] = r_kk'[-lag]."""
    out = np.zeros(dictionary.shape)
    _explain(pairs, dictionary, shape, out)
    return out


@kernel
def _explain(pairs, dictionary, shape, out):
    for k in range(pairs.shape[0]):
        for other in range(k + 1):
            add_convolved(pairs[k, other], 1, dictionary[other], shape, out[k])
            if other < k:
                add_convolved(pairs[k, other], -1, dictionary[k], shape, out[other])
