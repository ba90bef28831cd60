r"""Missing entries of images, from the top weights that fit the others.

Top weights are given the normal prior N(mu, R R^T) of those of the training images. With w = mu + R a and
given cells, a is the solution of a linear system, found by conjugate gradients:

    (I + gamma_eps R^T A^T diag(omega) A R) a = gamma_eps R^T A^T (omega (x - A mu))                    (6.18)

A the synthesis, omega which entries are observed. The cells are those of a pass upwards from the image as it
is filled in; what the synthesis makes of w fills it in anew.
"""

from typing import NamedTuple

import numpy as np

from kruskal.deep.dense import Dense
from kruskal.deep.inference import LARGEST, infer
from kruskal.deep.network import Network
from kruskal.deep.pictures import TopPrior
from kruskal.deep.synthesis import synthesis_slope, synthesise

_TINY = 1e-20


class Beliefs(NamedTuple):
    """prior : of the top weights;  mean_image : (M_x, M_y C), a first guess;  noise_precision : gamma_eps."""

    prior: TopPrior
    mean_image: np.ndarray
    noise_precision: float


def complete_images(
    network: Network,
    dense: Dense,
    images: np.ndarray,
    observed: np.ndarray,
    beliefs: Beliefs,
    rounds: int,
    steps: int,
) -> np.ndarray:
    """Images (n, M_x, M_y C) with their missing entries filled in.

    ``rounds`` times the cells are chosen, and ``steps`` steps made towards their top weights.
    """
    items = np.arange(len(images))
    filled = np.where(observed, images, beliefs.mean_image)
    coordinates = np.zeros((len(images), beliefs.prior.root.shape[1]), images.dtype)
    for _ in range(rounds):
        places = infer(network, dense, filled, items, LARGEST).places
        coordinates = solve(network, dense, images, observed, places, beliefs, coordinates, steps)
        features = _features(beliefs.prior, coordinates)
        filled = np.where(observed, images, synthesise(network, dense, features, places).image)
    return filled


def solve(
    network: Network,
    dense: Dense,
    images: np.ndarray,
    observed: np.ndarray,
    places: list[np.ndarray],
    beliefs: Beliefs,
    coordinates: np.ndarray,
    steps: int,
) -> np.ndarray:
    """``steps`` steps of conjugate gradients on (6.18) from ``coordinates`` (n, c), images side by side."""
    root = beliefs.prior.root.astype(images.dtype)
    precision = images.dtype.type(beliefs.noise_precision)

    def slope(rest: np.ndarray) -> np.ndarray:
        return precision * (synthesis_slope(network, dense, places, rest * observed) @ root)

    def apply(direction: np.ndarray) -> np.ndarray:
        return direction + slope(synthesise(network, dense, direction @ root.T, places).image)

    made = synthesise(network, dense, _features(beliefs.prior, coordinates), places).image
    rest = slope(np.where(observed, images - made, 0)) - coordinates
    direction, squares = rest, np.einsum("nd,nd->n", rest, rest)
    for _ in range(steps):
        image = apply(direction)
        length = squares / np.maximum(np.einsum("nd,nd->n", direction, image), _TINY)
        coordinates = coordinates + length[:, None] * direction
        rest = rest - length[:, None] * image
        before, squares = squares, np.einsum("nd,nd->n", rest, rest)
        direction = rest + (squares / np.maximum(before, _TINY))[:, None] * direction
    return coordinates


def _features(prior: TopPrior, coordinates: np.ndarray) -> np.ndarray:
    return (prior.mean + coordinates @ prior.root.T).astype(coordinates.dtype)
