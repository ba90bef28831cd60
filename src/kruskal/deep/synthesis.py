r"""Synthesis: the pass downwards of the generative model, given the top weights and the cells (6.1).

X^(L) = e^r D^(L) * W^(L),   W^(l-1) = X^(l) at the cells of the blocks, zero elsewhere,
X^(l) = D^(l) * W^(l),   the image is X^(1) with noise of precision gamma_eps
"""

from typing import NamedTuple

import numpy as np

from kruskal.deep.cells import accumulate, correlate_at, place
from kruskal.deep.columns import columns_of, images_of
from kruskal.deep.dense import Dense
from kruskal.deep.network import Network


class Downward(NamedTuple):
    """values : (n, blocks, K) unpooled in each layer but the last;  image : (n, M_x, M_y C)."""

    values: list[np.ndarray]
    image: np.ndarray


def synthesise(network: Network, dense: Dense, features: np.ndarray, places: list[np.ndarray]) -> Downward:
    """The image of top weights (n, d) with the cells ``places``."""
    top = network.n_layers - 1
    scaled = (np.exp(dense.log_gain) * features).reshape(-1, network.n_atoms[top])
    image = images_of(scaled @ dense.dictionaries[top], network.layers[top])
    values: list[np.ndarray] = []
    for layer in range(top - 1, -1, -1):
        values.insert(0, image.reshape(places[layer].shape))
        image = place(values[0], places[layer], dense.dictionaries[layer], network.layers[layer])
    return Downward(values, image)


def synthesis_slope(
    network: Network, dense: Dense, places: list[np.ndarray], slope: np.ndarray
) -> np.ndarray:
    """The slope in the top weights (n, d) of an objective whose slope in the image is ``slope``."""
    n_images = len(slope)
    for layer in range(network.n_layers - 1):
        slope = correlate_at(slope, places[layer], dense.dictionaries[layer], network.layers[layer])
        slope = slope.reshape(n_images, network.layers[layer].grid[0], -1)
    columns = columns_of(slope, network.layers[-1])
    return np.exp(dense.log_gain) * (columns @ dense.dictionaries[-1].T).reshape(n_images, -1)


def synthesis_gradient(
    network: Network,
    dense: Dense,
    features: np.ndarray,
    places: list[np.ndarray],
    downward: Downward,
    slope: np.ndarray,
    gradient: Dense,
) -> np.ndarray:
    """As `synthesis_slope`; also adds to ``gradient`` what follows for the atoms and the gain."""
    n_images, top = len(slope), network.n_layers - 1
    for layer in range(top):
        layout, at = network.layers[layer], places[layer]
        gradient.dictionaries[layer][...] += accumulate(downward.values[layer], at, slope, layout)
        slope = correlate_at(slope, at, dense.dictionaries[layer], layout)
        slope = slope.reshape(n_images, layout.grid[0], -1)
    columns = columns_of(slope, network.layers[top])
    scaled = (np.exp(dense.log_gain) * features).reshape(-1, network.n_atoms[top])
    gradient.dictionaries[top][...] += scaled.T @ columns
    slope = columns @ dense.dictionaries[top].T
    gradient.log_gain[...] += np.vdot(slope, scaled)
    return np.exp(dense.log_gain) * slope.reshape(n_images, -1)
