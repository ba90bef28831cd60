"""Pretraining of a deep model: layer by layer, by Gibbs sampling of the convolutional models.

Every layer is a CFA or CKFA with pooling and non-negative slabs; the image of the next layer is the value of
each block of the last draw. The noise precision is fixed: when it is learned it runs away, as more and more
blocks are switched on to explain what the layers above are for.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from kruskal.deep.network import Network
from kruskal.engines.threads import ImageThreads
from kruskal.gibbs.conv_local import ImageShard, Layout, dense_maps
from kruskal.gibbs.usage import UsagePrior
from kruskal.models.cfa import CFA, CKFA
from kruskal.models.conv import ConvGlobal, ConvModel
from kruskal.models.kruskal_prior import PAPER_ALPHA, PROPER_ALPHA
from kruskal.random import Stream, generator

_BASE_PRECISION = 50.0
"""gamma_eps of images in [0, 1]; images of higher layers are scaled to the same mean square."""


class LayerStart(NamedTuple):
    """atoms : (K, P);  weights, factors : of Kruskal atoms, else empty.

    offset : what is subtracted from the layer's image, in its units as long as no layer below is scaled.
    """

    atoms: np.ndarray
    weights: np.ndarray
    factors: np.ndarray
    offset: float = 0.0


def pretrain(
    network: Network, rank: int, images: np.ndarray, sweeps: int, seed: int, threads: int | None
) -> list[LayerStart]:
    """Atoms of every layer from images (n, M_x, M_y C)."""
    starts: list[LayerStart] = []
    square = float(np.mean(images**2))
    for layer, layout in enumerate(network.layers):
        model = _model(layout, network.n_atoms[layer], rank, len(images))
        with ImageThreads(images.reshape(len(images), *layout.image_shape), None, threads) as engine:
            own_seed = int(generator(seed, Stream.DEEP_PRETRAINING, layer).integers(2**63))
            state = model.start("random", engine.shards, own_seed)
            for number in range(1, sweeps + 1):
                state, _ = model.sweep(state, engine, own_seed, number)
            pooled = np.concatenate([_block_values(shard, model) for shard in engine.shards])
        starts.append(layer_start(state, layout))
        scale = math.sqrt(square / max(float(np.mean(pooled**2)), 1e-12))
        images = (scale * pooled).astype(images.dtype)
    return starts


def _model(layout: Layout, n_atoms: int, rank: int, n_images: int) -> CFA | CKFA:
    common: dict[str, Any] = {
        "image_shape": layout.image_shape,
        "atom_size": layout.atom_size,
        "n_atoms": n_atoms,
        "usage_prior": UsagePrior(float(n_atoms), float(n_images)),
        "pooling": layout.pooling,
        "nonnegative": True,
        "noise_precision": _BASE_PRECISION,
    }
    if rank == 0:
        return CFA(**common)
    # with one term there is nothing to shrink; with more the paper's prior may leave but one
    return CKFA(**common, rank=rank, alpha_prior=PAPER_ALPHA if rank == 1 else PROPER_ALPHA)


def _block_values(shard: ImageShard, model: ConvModel) -> np.ndarray:
    """The value of every block, (n, grid rows, grid columns * K); at most one cell is not zero."""
    layout = model.layout
    maps = dense_maps(shard.maps, model.n_atoms, layout.map_shape)
    x, y = (np.arange(0, size, step) for size, step in zip(layout.map_shape, layout.pooling))
    pooled = np.add.reduceat(np.add.reduceat(maps, x, axis=2), y, axis=3)
    return pooled.transpose(0, 2, 3, 1).reshape(len(maps), layout.grid[0], -1)


def layer_start(state: ConvGlobal, layout: Layout, offset: float = 0.0) -> LayerStart:
    """Atoms of mean square 1; columns of the factors likewise, with what is left in the weights."""
    size = np.sqrt(np.mean(state.dictionary**2, axis=1, keepdims=True)) + 1e-12
    weights, factors = state.weights / size, state.factors.copy()
    if factors.size:
        ends = np.cumsum(layout.atom_shape)[:-1]
        for mode in np.split(factors, ends, axis=1):  # views: they are changed in place
            length = np.sqrt(np.mean(mode**2, axis=1)) + 1e-12
            mode /= length[:, None, :]
            weights = weights * length
    return LayerStart(state.dictionary / size, weights, factors, offset)
