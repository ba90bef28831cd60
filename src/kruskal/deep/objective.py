r"""The objective of training and its gradient for a few images.

    sum_n  nu sum_c max(0, 1 - y_nc f_nc) + kappa ||x_n - synthesis of w_n||^2,   f = beta w + beta_0   (6.17)

with w from the pass upwards. The first term is 2C times the hinge, nu = 2C: with the scales lambda of the
Bayesian support vector machine replaced by E[1/lambda] = 1 / (C |1 - y f|), the slope (6.8) is that of the
hinge, 2C y beta where y f < 1. An image without label has y = 0 and no first term.
"""

from typing import NamedTuple

import numpy as np

from kruskal.deep.dense import Dense
from kruskal.deep.inference import Draw, infer, infer_gradient
from kruskal.deep.network import Network
from kruskal.deep.synthesis import synthesis_gradient, synthesise


class Terms(NamedTuple):
    """Weights of the objective.

    Attributes
    ----------
    hinge : nu;  generative : kappa
    """

    hinge: float
    generative: float


class Part(NamedTuple):
    """A few images of a minibatch.

    Attributes
    ----------
    images : (n, M_x, M_y C);  items : (n,) their indices
    signs : (n, Y) y, +-1, or 0 without a label
    keep : (n, d) what the top weights are multiplied with before the decisions (dropout), or None
    """

    images: np.ndarray
    items: np.ndarray
    signs: np.ndarray
    keep: np.ndarray | None = None


class Sums(NamedTuple):
    """Sums over images: of the hinge, the squared residual (0 if kappa is 0), and the wrong decisions."""

    hinge: float = 0.0
    residual: float = 0.0
    wrong: float = 0.0

    def plus(self, other: "Sums") -> "Sums":
        """The sums of both."""
        return Sums(*(mine + theirs for mine, theirs in zip(self, other)))


def objective_gradient(
    part: Part, network: Network, dense: Dense, terms: Terms, draw: Draw
) -> tuple[Sums, Dense]:
    """The sums of the part, and the gradient of its objective."""
    gradient = Dense.zeros(network, part.images.dtype)
    upward = infer(network, dense, part.images, part.items, draw)
    slope = np.zeros_like(upward.features)
    hinge = wrong = residual = 0.0
    if network.n_classes and terms.hinge > 0.0:
        shown = upward.features if part.keep is None else upward.features * part.keep
        hinge, wrong, amounts = _hinge(shown @ dense.weights.T + dense.bias, part.signs)
        amounts *= part.images.dtype.type(terms.hinge)
        gradient.weights[...] += amounts.T @ shown
        gradient.bias[...] += amounts.sum(axis=0)
        slope += amounts @ dense.weights
        if part.keep is not None:
            slope *= part.keep
    if terms.generative > 0.0:
        downward = synthesise(network, dense, upward.features, upward.places)
        rest = downward.image - part.images
        residual = float(np.vdot(rest, rest))
        rest *= part.images.dtype.type(2.0 * terms.generative)
        slope += synthesis_gradient(network, dense, upward.features, upward.places, downward, rest, gradient)
    infer_gradient(network, dense, upward, slope, gradient)
    return Sums(hinge, residual, wrong), gradient


def _hinge(decisions: np.ndarray, signs: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The hinge, the number of labelled items whose largest decision is wrong, and the slope in f."""
    gaps = np.where(signs != 0, 1 - signs * decisions, 0)
    np.maximum(gaps, 0, out=gaps)
    labelled = signs.any(axis=1)
    wrong = (decisions.argmax(axis=1) != signs.argmax(axis=1)) & labelled
    return float(gaps.sum()), float(wrong.sum()), np.where(gaps > 0, -signs, 0)
