"""The paper's literal training, Monte Carlo EM: cells and scales are drawn, everything else climbs.

Top weights are unknowns of every image and see its label, as the paper has it. For two layers: the cells of
higher layers would need their atoms pushed through all layers below.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kruskal.deep.codes import Given, code_step, label_pull
from kruskal.deep.dense import Dense
from kruskal.deep.inference import LARGEST, infer
from kruskal.deep.network import Network
from kruskal.deep.objective import Part, Sums
from kruskal.deep.scales import draw_scales
from kruskal.deep.synthesis import synthesis_gradient, synthesise
from kruskal.deep.unpooling import draw_unpooling
from kruskal.random import Stream


class Codes(NamedTuple):
    """Local state of a few images: top weights (n, d) and the places of their cells (n, blocks, K)."""

    features: np.ndarray
    places: np.ndarray


@dataclass(frozen=True, kw_only=True)
class MonteCarloEM:
    """What is drawn and what climbs in one visit to a minibatch.

    Parameters
    ----------
    network : two layers
    noise_precision : gamma_eps;  code_precision : gamma_s;  cost : C
    rounds : draws of cells and scales in a visit;  code_steps : steps of the top weights after each
    """

    network: Network
    noise_precision: float = 50.0
    code_precision: float = 1.0
    cost: float = 1.0
    rounds: int = 2
    code_steps: int = 3

    def begin(self, dense: Dense, images: np.ndarray, items: np.ndarray) -> Codes:
        """Codes of images before the first visit: a pass upwards."""
        upward = infer(self.network, dense, images, items, LARGEST)
        return Codes(upward.features, upward.places[0])

    def visit(
        self, dense: Dense, codes: Codes, part: Part, seed: int, number: int, stream: Stream, labels: bool
    ) -> tuple[Codes, np.ndarray | None]:
        """Codes after the rounds of a visit, and the last drawn 1 / lambda (n, Y), None without labels."""
        inverse_scales = None
        for turn in range(self.rounds):
            address = number * self.rounds + turn
            codes = self._draw_cells(dense, codes, part, seed, address, stream)
            if labels:
                inverse_scales = self._draw_scales(dense, codes, part, seed, address)
            given = self._given(codes, part, inverse_scales)
            for _ in range(self.code_steps):
                codes = codes._replace(features=code_step(self.network, dense, codes.features, given))
        return codes, inverse_scales

    def gradient(
        self, dense: Dense, codes: Codes, part: Part, inverse_scales: np.ndarray | None
    ) -> tuple[Sums, Dense]:
        """Sums of a part, and the gradient of minus its log posterior in the dictionaries and beta (6.10)."""
        network, gradient = self.network, Dense.zeros(self.network, part.images.dtype)
        downward = synthesise(network, dense, codes.features, [codes.places])
        rest = downward.image - part.images
        residual = float(np.vdot(rest, rest))
        rest *= part.images.dtype.type(self.noise_precision)
        synthesis_gradient(network, dense, codes.features, [codes.places], downward, rest, gradient)
        if inverse_scales is None:
            return Sums(0.0, residual, 0.0), gradient
        decisions = codes.features @ dense.weights.T + dense.bias
        pull = label_pull(self._given(codes, part, inverse_scales), decisions)
        gradient.weights[...] -= pull.T @ codes.features
        gradient.bias[...] -= pull.sum(axis=0)
        gaps = np.where(part.signs != 0, np.maximum(1.0 - part.signs * decisions, 0.0), 0.0)
        wrong = (decisions.argmax(axis=1) != part.signs.argmax(axis=1)) & part.signs.any(axis=1)
        return Sums(float(gaps.sum()), residual, float(wrong.sum())), gradient

    def _given(self, codes: Codes, part: Part, inverse_scales: np.ndarray | None) -> Given:
        signs = None if inverse_scales is None else part.signs
        return Given(
            part.images, [codes.places], self.noise_precision, self.code_precision,
            signs=signs, inverse_scales=inverse_scales, cost=self.cost,
        )  # fmt: skip

    def _draw_cells(
        self, dense: Dense, codes: Codes, part: Part, seed: int, number: int, stream: Stream
    ) -> Codes:
        downward = synthesise(self.network, dense, codes.features, [codes.places])
        places = codes.places.copy()
        draw_unpooling(
            part.images - downward.image, downward.values[0], places, dense.dictionaries[0],
            self.network.layers[0], self.noise_precision, part.items, seed, number, stream,
        )  # fmt: skip
        return codes._replace(places=places)

    def _draw_scales(self, dense: Dense, codes: Codes, part: Part, seed: int, number: int) -> np.ndarray:
        """1 / lambda of every image and class (6.3); images are addressed by their index."""
        decisions = codes.features @ dense.weights.T + dense.bias
        return draw_scales(1.0 - part.signs * decisions, self.cost, part.items, seed, number)
