"""Pictures that the generative model makes: of single atoms and of drawn top weights."""

from typing import NamedTuple

import numpy as np

from kruskal.deep.dense import Dense
from kruskal.deep.network import Network
from kruskal.deep.synthesis import synthesise


class TopPrior(NamedTuple):
    """What top weights are like, fitted to those of training images.

    Attributes
    ----------
    mean : (d,);  root : (d, c) with root root^T their covariance, c the smaller of d and the number of images
    usage : (d,) share of non-zeros;  slab_mean, slab_std : (d,) of the non-zeros
    """

    mean: np.ndarray
    root: np.ndarray
    usage: np.ndarray
    slab_mean: np.ndarray
    slab_std: np.ndarray


def fit_top_prior(features: np.ndarray) -> TopPrior:
    """Moments of top weights (n, d)."""
    values = features.astype(np.float64)
    mean = values.mean(axis=0)
    if len(values) < len(mean):
        root = (values - mean).T / np.sqrt(len(values))
    else:
        strength, directions = np.linalg.eigh(np.cov(values, rowvar=False, ddof=0).reshape(len(mean), -1))
        root = directions * np.sqrt(np.maximum(strength, 0.0))
    used = values != 0
    count = np.maximum(used.sum(axis=0), 1)
    slab_mean = values.sum(axis=0) / count
    slab_std = np.sqrt(np.maximum((values**2).sum(axis=0) / count - slab_mean**2, 0.0))
    return TopPrior(mean, root, used.mean(axis=0), slab_mean, slab_std)


def draw_top_weights(
    prior: TopPrior, kind: str, n_draws: int, nonnegative: bool, random: np.random.Generator
) -> np.ndarray:
    """Top weights (n, d): ``joint`` normal with the covariance, or ``independent`` spikes and slabs."""
    if kind == "joint":
        drawn = prior.mean + random.standard_normal((n_draws, prior.root.shape[1])) @ prior.root.T
    else:
        size = len(prior.mean)
        noise = random.standard_normal((n_draws, size))
        drawn = (prior.slab_mean + prior.slab_std * noise) * (random.random((n_draws, size)) < prior.usage)
    return np.maximum(drawn, 0.0) if nonnegative else drawn


def uniform_cells(network: Network, n_images: int, random: np.random.Generator) -> list[np.ndarray]:
    """Places of cells of which all of a block are alike (6.1)."""
    chosen = []
    for layer, layout in enumerate(network.layers[:-1]):
        shape = (n_images, *layout.grid, network.n_atoms[layer])
        place = 0
        for axis, (size, step) in enumerate(zip(layout.map_shape, layout.pooling)):
            corners = np.arange(0, size, step).reshape(-1, *[1] * (2 - axis))
            lengths = np.minimum(size - corners, step)
            inside = np.minimum((random.random(shape) * lengths).astype(np.int64), lengths - 1)
            place = place * size + corners + inside
        chosen.append(np.asarray(place, np.int32).reshape(n_images, layout.n_blocks, -1))
    return chosen


def pixel_atoms(network: Network, dense: Dense, layer: int) -> np.ndarray:
    """Atoms of a layer as pictures (K, height, width, C), with the middle cell of every block below."""
    sizes = Network(network.layers[: layer + 1], network.n_atoms[: layer + 1])
    n_atoms = network.n_atoms[layer]
    features = np.zeros((n_atoms, *network.layers[layer].map_shape, n_atoms), dense.dictionaries[0].dtype)
    features[np.arange(n_atoms), 0, 0, np.arange(n_atoms)] = 1
    places, height, width = [], *network.layers[layer].atom_size
    for number in range(layer - 1, -1, -1):
        layout = network.layers[number]
        height = height * layout.pooling[0] + layout.atom_size[0] - 1
        width = width * layout.pooling[1] + layout.atom_size[1] - 1
    for number, layout in enumerate(network.layers[:layer]):
        x, y = (
            np.minimum(np.arange(0, size, step) + step // 2, size - 1)
            for size, step in zip(layout.map_shape, layout.pooling)
        )
        cells = (x[:, None] * layout.map_shape[1] + y).reshape(1, -1, 1).astype(np.int32)
        places.append(np.broadcast_to(cells, (n_atoms, layout.n_blocks, network.n_atoms[number])).copy())
    part = dense._replace(
        dictionaries=dense.dictionaries[: layer + 1], log_gain=np.zeros_like(dense.log_gain)
    )
    image = synthesise(sizes, part, features.reshape(n_atoms, -1), places).image
    return image.reshape(n_atoms, *network.image_shape)[:, :height, :width]
