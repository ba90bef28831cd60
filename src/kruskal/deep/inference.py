r"""Inference: one pass upwards from the image, without a label, the same in training and at test time.

    l = D^(1) corr x;   g = one cell per block of l, the largest or drawn by (6.15);   v = max(0, l_g + b^(1))
    and so on with v as the image of the next layer;   w = max(0, D^(L) corr v + b^(L))                 (6.16)

It is the first step of inference in the generative model with non-negative weights. Gradients flow through
the values; the cells are held constant.
"""

from typing import NamedTuple

import numpy as np

from kruskal.deep.cells import accumulate, drawn_cells, largest_cells, place
from kruskal.deep.columns import columns_of, correlate, images_of
from kruskal.deep.dense import Dense
from kruskal.deep.network import Network
from kruskal.random import Stream


class Draw(NamedTuple):
    """How the cells of a block are chosen.

    Attributes
    ----------
    sharpness : tau of (6.15); infinite takes the largest
    seed, stream, number : with the index of the image, the address of the randomness
    """

    sharpness: float = np.inf
    seed: int = 0
    stream: Stream = Stream.DEEP_TEST_CELLS
    number: int = 0


LARGEST = Draw()


class Upward(NamedTuple):
    """What a pass upwards finds, for n images.

    Attributes
    ----------
    images : input of each layer (n, rows, columns * channels)
    places : (n, blocks, K) of each layer but the last, see `kruskal.deep.cells`
    columns : patches of the last layer's input
    features : (n, d) top weights w, places by atoms
    """

    images: list[np.ndarray]
    places: list[np.ndarray]
    columns: np.ndarray
    features: np.ndarray


def infer(network: Network, dense: Dense, images: np.ndarray, items: np.ndarray, draw: Draw) -> Upward:
    """The pass upwards for images (n, M_x, M_y C) whose indices are ``items`` (n,)."""
    inputs, chosen = [images], []
    for layer, layout in enumerate(network.layers[:-1]):
        maps = correlate(inputs[-1], dense.dictionaries[layer], layout)
        if draw.sharpness == np.inf:
            places, values = largest_cells(maps, layout)
        else:
            places, values = drawn_cells(
                maps, layout, draw.sharpness, items, draw.seed, draw.stream, layer, draw.number
            )
        chosen.append(places)
        values += dense.biases[layer]
        np.maximum(values, 0, out=values)
        inputs.append(values.reshape(len(images), layout.grid[0], -1))
    columns = columns_of(inputs[-1], network.layers[-1])
    features = columns @ dense.dictionaries[-1].T
    features += dense.biases[-1]
    np.maximum(features, 0, out=features)
    return Upward(inputs, chosen, columns, features.reshape(len(images), -1))


def infer_gradient(
    network: Network, dense: Dense, upward: Upward, slope: np.ndarray, gradient: Dense
) -> None:
    """Add to ``gradient`` what follows from the ``slope`` (n, d) of the objective in the top weights."""
    top = network.n_layers - 1
    slope = np.where(upward.features > 0, slope, 0).reshape(-1, network.n_atoms[-1])
    gradient.biases[top][...] += slope.sum(axis=0)
    gradient.dictionaries[top][...] += slope.T @ upward.columns
    if top == 0:
        return
    below = images_of(slope @ dense.dictionaries[top], network.layers[top])
    for layer in range(top - 1, -1, -1):
        layout, places = network.layers[layer], upward.places[layer]
        values = np.where(upward.images[layer + 1] > 0, below, 0).reshape(places.shape)
        gradient.biases[layer][...] += values.sum(axis=(0, 1))
        gradient.dictionaries[layer][...] += accumulate(values, places, upward.images[layer], layout)
        if layer > 0:
            below = place(values, places, dense.dictionaries[layer], layout)
