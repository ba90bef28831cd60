r"""Top weights of the generative model as unknowns: steps uphill given the cells.

Given cells (and scales lambda of the Bayesian support vector machine) the log posterior of the top weights w
of an image is quadratic. A step goes along its gradient to the exact maximum on that line:

    gradient   gamma_eps A^T (x - A w) - gamma_s w
               + C sum_c beta_c [y_c (lambda_c + C) - C f_c] / lambda_c                                 (6.8)
    curvature along g   gamma_eps ||A g||^2 + gamma_s ||g||^2 + C^2 sum_c (beta_c^T g)^2 / lambda_c

A the synthesis.
"""

from typing import NamedTuple

import numpy as np

from kruskal.deep.dense import Dense
from kruskal.deep.network import Network
from kruskal.deep.synthesis import synthesis_slope, synthesise


class Given(NamedTuple):
    """What the top weights of n images are inferred from.

    Attributes
    ----------
    images : (n, M_x, M_y C);  places : cells of the pooled layers
    noise_precision : gamma_eps;  code_precision : gamma_s
    signs, inverse_scales : (n, Y) labels y and 1/lambda, or None without labels;  cost : C
    """

    images: np.ndarray
    places: list[np.ndarray]
    noise_precision: float
    code_precision: float
    signs: np.ndarray | None = None
    inverse_scales: np.ndarray | None = None
    cost: float = 1.0


def label_pull(given: Given, decisions: np.ndarray) -> np.ndarray:
    """C [y (lambda + C) - C f] / lambda (n, Y): what a label does to its decision; 0 where there is none."""
    assert given.signs is not None and given.inverse_scales is not None
    cost = given.cost
    pull = cost * (
        given.signs * (1.0 + cost * given.inverse_scales) - cost * decisions * given.inverse_scales
    )
    return np.where(given.signs != 0, pull, 0).astype(decisions.dtype)


def code_step(network: Network, dense: Dense, features: np.ndarray, given: Given) -> np.ndarray:
    """Top weights (n, d) after one step."""
    slope = code_gradient(network, dense, features, given)
    image = synthesise(network, dense, slope, given.places).image
    squares = np.einsum("nd,nd->n", slope, slope)
    curvature = given.noise_precision * np.einsum("nij,nij->n", image, image) + given.code_precision * squares
    if given.inverse_scales is not None and given.signs is not None:
        moved = np.where(given.signs != 0, given.inverse_scales, 0) * (slope @ dense.weights.T) ** 2
        curvature = curvature + given.cost**2 * moved.sum(axis=1)
    length = np.divide(squares, curvature, out=np.zeros_like(squares), where=curvature > 0)
    return features + length[:, None].astype(features.dtype) * slope


def code_gradient(network: Network, dense: Dense, features: np.ndarray, given: Given) -> np.ndarray:
    """The slope (6.8) of the log posterior in the top weights (n, d)."""
    rest = given.images - synthesise(network, dense, features, given.places).image
    slope = synthesis_slope(network, dense, given.places, rest)
    slope *= features.dtype.type(given.noise_precision)
    slope -= features.dtype.type(given.code_precision) * features
    if given.signs is not None:
        slope += label_pull(given, features @ dense.weights.T + dense.bias) @ dense.weights
    return slope
