r"""Usage of the maps: theta_k, the probabilities that a pooling block of map k is off or on at each cell.

    theta_k = (theta_k0, theta_k1, ..) ~ Dirichlet(b', a'/G, .., a'/G),  G cells, (a', b') shapes of (1.14)

so that a block is on with the beta prior of (0.5); without pooling G = 1 and this is (1.14). Blocks at the
border of a map may lack cells, and have the same theta, conditioned on the cells that are there. That is as
if they had been drawn until the draw fell on such a cell, so with the draws that were refused,

    number of refused ~ NegativeBinomial(blocks, 1 - q),  q = sum of theta_g over the cells that lack,

which fall on those cells in proportion to theta_g, all counts are multinomial and theta_k is conjugate again.
theta is kept as log odds log(theta_g / theta_0), which do not underflow.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.conv_local import Layout
from kruskal.gibbs.usage import UsagePrior, log_gamma_draw

_LEAST = 1e-12


class BlockKind(NamedTuple):
    """Blocks of a map that have the same cells: how many there are in one image, and (cells,) which exist."""

    number: int
    exists: np.ndarray


def block_kinds(layout: Layout) -> list[BlockKind]:
    """The up to four kinds of blocks of a map: whole, or partial at the right, the bottom, in the corner."""
    kinds = []
    sides = [_sides(size, step) for size, step in zip(layout.map_shape, layout.pooling)]
    for number_x, size_x in sides[0]:
        for number_y, size_y in sides[1]:
            exists = np.zeros(layout.pooling, bool)
            exists[:size_x, :size_y] = True
            kinds.append(BlockKind(number_x * number_y, exists.ravel()))
    return kinds


def _sides(size: int, step: int) -> list[tuple[int, int]]:
    """(number, length) of the whole and the partial pieces of a side."""
    pieces = ((size // step, step), (1, size % step))
    return [(number, length) for number, length in pieces if number * length > 0]


def refused_counts(
    log_odds: np.ndarray, kinds: list[BlockKind], n_images: float, random: np.random.Generator
) -> np.ndarray:
    """(K, cells) how many draws of partial blocks fell on cells that they lack, given theta."""
    refused = np.zeros(log_odds.shape)
    largest = np.maximum(log_odds.max(axis=1, keepdims=True), 0.0)
    share = np.exp(log_odds - largest)
    share /= share.sum(axis=1, keepdims=True) + np.exp(-largest)
    for kind in kinds:
        lacking = share[:, ~kind.exists]
        if lacking.size:
            total = lacking.sum(axis=1)
            number = random.negative_binomial(kind.number * n_images, np.maximum(1.0 - total, _LEAST))
            parts = lacking / np.maximum(total, 1e-300)[:, None]
            refused[:, ~kind.exists] += random.multinomial(number, parts / parts.sum(axis=1, keepdims=True))
    return refused


def usage_shapes(
    counts: np.ndarray, refused: np.ndarray, n_blocks: float, prior: UsagePrior
) -> tuple[np.ndarray, np.ndarray]:
    """Shapes of the Dirichlet conditional: of the cells (K, cells) and of off (K, 1).

    ``counts`` (K, cells) are the blocks that are on at each cell, of ``n_blocks`` in all images.
    """
    used, unused = prior.shapes(len(counts))
    off = n_blocks - counts.sum(axis=1, keepdims=True)
    return used / counts.shape[1] + counts + refused, unused + off


def draw_map_usage(
    log_odds: np.ndarray, counts: np.ndarray, kinds: list[BlockKind], n_images: float, prior: UsagePrior,
    random: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """New log odds (K, cells) given the blocks that are on at each cell."""
    n_blocks = n_images * sum(kind.number for kind in kinds)
    refused = refused_counts(log_odds, kinds, n_images, random)
    on, off = usage_shapes(counts, refused, n_blocks, prior)
    return log_gamma_draw(on, random) - log_gamma_draw(off, random)
