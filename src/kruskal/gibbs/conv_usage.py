r"""Usage of the maps: theta_k, the probabilities that a pooling block of map k is off or on at each cell.

    theta_k = (theta_k0, theta_k1, ..) ~ Dirichlet(b', a'/G, .., a'/G),  G cells, (a', b') shapes of (1.14)

so that a block is on with the beta prior of (0.5); without pooling G = 1 and this is (1.14). Blocks at the
border of a map may lack cells, and have the same theta, conditioned on the cells that are there. That is as
if they had been drawn until the draw fell on such a cell, so with the draws that were refused,

    number of refused ~ NegativeBinomial(blocks, 1 - q),  q = sum of theta_g over the cells that lack,

which fall on those cells in proportion to theta_g, all counts are multinomial and theta_k is conjugate again.
theta is kept as log odds log(theta_g / theta_0), which do not underflow.

By image n (a hierarchical beta prior, as for the regions in `kruskal.gibbs.usage`), with phi_k the shares of
the cells of a block that is on, theta_kn = (1 - pi_kn, pi_kn phi_k1, ..) and

    eta_k ~ Beta(a', b'),  pi_kn ~ Beta(h eta_k, h (1 - eta_k)),  h ~ Gamma(e_h, f_h)
    phi_k ~ Dirichlet(a'/G, .., a'/G)

which for h -> infinity is the prior above. Given the refused draws of every image, which are all of blocks
that are on, pi_kn is a beta again, with as many more blocks.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from kruskal.gibbs.conv_local import Layout
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.usage import (
    Usage,
    UsagePrior,
    draw_beta_log_odds,
    draw_usage,
    log_gamma_draw,
    region_conditional,
)

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
            refused[:, ~kind.exists] += _spread(number, lacking, random)
    return refused


def _spread(number: np.ndarray, lacking: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(K, cells) how many of ``number`` (K,) draws fell on each cell, in proportion to ``lacking``."""
    parts = lacking / np.maximum(lacking.max(axis=1), 1e-300)[:, None]
    parts[parts.sum(axis=1) == 0.0] = 1.0  # all of them too small for a number: none of them was drawn
    return random.multinomial(number, parts / parts.sum(axis=1, keepdims=True))


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


class MapUsage(NamedTuple):
    """Usage by image: ``images`` with log_odds (N, K) logit pi, mean eta and concentration h, and
    ``log_cells`` (K, cells) log phi."""

    images: Usage
    log_cells: np.ndarray


class RefusedDraws(NamedTuple):
    """Draws that fell on cells that a block lacks: ``images`` (N, K) in every image, ``cells`` (K, cells)."""

    images: np.ndarray
    cells: np.ndarray


def refused_by_image(usage: MapUsage, kinds: list[BlockKind], random: np.random.Generator) -> RefusedDraws:
    """As `refused_counts`, when every image has its own theta."""
    share = expit(usage.images.log_odds)
    refused = RefusedDraws(np.zeros(share.shape), np.zeros(usage.log_cells.shape))
    for kind in kinds:
        lacking = np.exp(usage.log_cells[:, ~kind.exists])
        if lacking.size:
            kept = np.maximum(1.0 - share * lacking.sum(axis=1), _LEAST)
            number = random.negative_binomial(kind.number, kept)
            refused.images[:] += number
            refused.cells[:, ~kind.exists] += _spread(number.sum(axis=0), lacking, random)
    return refused


def draw_usage_by_image(
    usage: MapUsage, image_counts: np.ndarray, counts: np.ndarray, kinds: list[BlockKind], prior: UsagePrior,
    concentration_prior: GammaPrior, shared: bool, random: np.random.Generator,
) -> MapUsage:  # fmt: skip
    """eta, h, pi and phi given the blocks that are on: ``image_counts`` (N, K) and ``counts`` (K, cells).

    ``shared`` gives all images one and the same pi.
    """
    refused = refused_by_image(usage, kinds, random)
    sizes = refused.images + sum(kind.number for kind in kinds)
    if usage.log_cells.shape[1] == 1:  # no block lacks a cell, all have the same size
        sizes = sizes[:, 0]
    images = draw_usage(
        usage.images, image_counts + refused.images, sizes, prior, concentration_prior, shared, random
    )
    return MapUsage(images, draw_cell_shares(counts + refused.cells, prior, random))


def draw_cell_shares(counts: np.ndarray, prior: UsagePrior, random: np.random.Generator) -> np.ndarray:
    """log phi (K, cells) given the draws that fell on each cell."""
    log_shares = log_gamma_draw(cell_shapes(counts, prior), random)
    return log_shares - np.logaddexp.reduce(log_shares, axis=1, keepdims=True)


def cell_shapes(counts: np.ndarray, prior: UsagePrior) -> np.ndarray:
    """(K, cells) shapes of the Dirichlet conditional of phi."""
    return prior.shapes(len(counts))[0] / counts.shape[1] + counts


def draw_usage_of_images(
    usage: MapUsage, image_counts: np.ndarray, kinds: list[BlockKind], random: np.random.Generator
) -> np.ndarray:
    """logit pi (N, K) alone, given eta, h and phi: for images from which nothing else is learned."""
    refused = refused_by_image(usage, kinds, random).images
    unused = sum(kind.number for kind in kinds) - image_counts
    images = usage.images
    return draw_beta_log_odds(
        *region_conditional(images.mean, images.concentration, image_counts + refused, unused), random
    )
