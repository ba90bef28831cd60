"""The deep generative model: what its parameters are, where they begin, and one step of training."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from kruskal.deep.atoms import compose_kruskal, kruskal_gradient
from kruskal.deep.cells import largest_cells
from kruskal.deep.columns import correlate
from kruskal.deep.dense import Dense
from kruskal.deep.inference import LARGEST, Draw, infer
from kruskal.deep.network import Network
from kruskal.deep.objective import Part, Sums, Terms, objective_gradient
from kruskal.deep.packing import Packing
from kruskal.deep.synthesis import synthesise
from kruskal.random import Stream, generator

T = TypeVar("T")

HINGE_ONLY = Terms(1.0, 0.0)
FIRST_BIAS = -0.2
_LEAST_COSINE = 1e-3  # of the synthesis and the images, where training begins
_TINY = 1e-12


class PartEngine(Protocol):
    """Who runs it: applies a function to every number below ``n_shards``, results in order."""

    n_shards: int

    def map(self, function: Callable[[int], T]) -> list[T]:
        """``function`` of every number, in order."""
        ...


class Start(NamedTuple):
    """Where training begins.

    Attributes
    ----------
    parameters : theta, one vector
    scales : constants c of the layers, set once
    """

    parameters: np.ndarray
    scales: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class DeepModel:
    """A deep generative model with free atoms (rank 0) or Kruskal atoms.

    The atoms of layer l are c_l times free arrays, or c_l sum_r lambda_r u_r^x o u_r^y o u_r^c.

    Parameters
    ----------
    network : sizes;  rank : R, 0 for free atoms
    terms : weights of the objective (6.17)
    weight_decay : of beta;  dropout : share of the top weights that a decision does not see in training
    sharpness : tau of the cells (6.15); infinite takes the largest
    """

    network: Network
    rank: int = 0
    terms: Terms = HINGE_ONLY
    weight_decay: float = 1e-4
    dropout: float = 0.2
    sharpness: float = np.inf

    @property
    def packing(self) -> Packing:
        """The pieces of theta."""
        network = self.network
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, layout in enumerate(network.layers):
            n_atoms = network.n_atoms[layer]
            if self.rank:
                shapes[f"weights{layer}"] = (n_atoms, self.rank)
                shapes[f"factors{layer}"] = (n_atoms, sum(layout.atom_shape), self.rank)
            else:
                shapes[f"atoms{layer}"] = network.dictionary_shape(layer)
            shapes[f"biases{layer}"] = (n_atoms,)
        shapes["svm"] = (network.n_classes, network.n_features)
        shapes["svm_bias"] = (network.n_classes,)
        shapes["log_gain"] = ()
        return Packing(shapes)

    @property
    def n_dictionary_parameters(self) -> int:
        """Numbers that the dictionaries of all layers are made of."""
        pieces = self.packing.shapes.items()
        return sum(
            int(np.prod(shape)) for name, shape in pieces if name.startswith(("atoms", "weights", "factors"))
        )

    def dense(self, parameters: np.ndarray, scales: tuple[float, ...]) -> Dense:
        """The parameters as the passes take them."""
        pieces, real = self.packing.views(parameters), parameters.dtype.type
        layers = range(self.network.n_layers)
        return Dense(
            tuple(real(scales[layer]) * self._atoms(pieces, layer) for layer in layers),
            tuple(pieces[f"biases{layer}"] for layer in layers),
            pieces["svm"], pieces["svm_bias"], pieces["log_gain"],
        )  # fmt: skip

    def _atoms(self, pieces: dict[str, np.ndarray], layer: int) -> np.ndarray:
        if not self.rank:
            return pieces[f"atoms{layer}"]
        shape = self.network.layers[layer].atom_shape
        return compose_kruskal(pieces[f"weights{layer}"], pieces[f"factors{layer}"], shape)

    def chain(self, parameters: np.ndarray, scales: tuple[float, ...], slope: Dense) -> np.ndarray:
        """The gradient in theta from that in the dense parameters."""
        gradient = np.empty_like(parameters)
        pieces, mine = self.packing.views(parameters), self.packing.views(gradient)
        for layer, layout in enumerate(self.network.layers):
            of_atoms = parameters.dtype.type(scales[layer]) * slope.dictionaries[layer]
            if self.rank:
                weights, factors = pieces[f"weights{layer}"], pieces[f"factors{layer}"]
                mine[f"weights{layer}"][...], mine[f"factors{layer}"][...] = kruskal_gradient(
                    weights, factors, layout.atom_shape, of_atoms
                )
            else:
                mine[f"atoms{layer}"][...] = of_atoms
            mine[f"biases{layer}"][...] = slope.biases[layer]
        mine["svm"][...], mine["svm_bias"][...] = slope.weights, slope.bias
        mine["log_gain"][...] = slope.log_gain
        return gradient

    def prior_slope(self, parameters: np.ndarray, n_images: int) -> np.ndarray:
        """The gradient of minus the log prior, shared out over the images.

        Factors and free atoms are N(0, 1) here, as the constants c hold the scale; beta ~ N(0, 1), r is free.
        """
        slope = np.zeros_like(parameters)
        pieces, mine = self.packing.views(parameters), self.packing.views(slope)
        for name, piece in pieces.items():
            if name.startswith(("atoms", "weights", "factors", "svm")):
                mine[name][...] = piece / parameters.dtype.type(n_images)
        return slope

    def start(self, images: np.ndarray, seed: int) -> Start:
        """Random atoms whose correlations with these images (n, M_x, M_y C) have unit standard deviation.

        The gain is that with which the synthesis of the images fits them best.
        """
        random = generator(seed, Stream.DEEP_START, 0)
        parameters = np.zeros(self.packing.size, images.dtype)
        pieces = self.packing.views(parameters)
        for name, piece in pieces.items():
            if name.startswith(("atoms", "factors")):
                piece[...] = random.standard_normal(piece.shape)
            elif name.startswith("weights"):
                piece[...] = 1.0
            elif name.startswith("biases"):
                piece[...] = FIRST_BIAS
        return self.scaled(parameters, images, [0.0] * self.network.n_layers)

    def start_from(
        self,
        images: np.ndarray,
        seed: int,
        layers: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray, float]],
        bias: float = FIRST_BIAS,
    ) -> Start:
        """As `start`, with given atoms, (dictionary, weights, factors, offset) of every layer, and biases.

        An offset becomes a part of the biases: D corr (x - offset) = D corr x - offset times the sum of D.
        """
        parameters = self.start(images, seed).parameters
        pieces = self.packing.views(parameters)
        for layer, (dictionary, weights, factors, _) in enumerate(layers):
            if self.rank:
                pieces[f"weights{layer}"][...], pieces[f"factors{layer}"][...] = weights, factors
            else:
                pieces[f"atoms{layer}"][...] = dictionary
            pieces[f"biases{layer}"][...] = bias
        return self.scaled(parameters, images, [offset for *_, offset in layers])

    def scaled(self, parameters: np.ndarray, images: np.ndarray, offsets: Sequence[float]) -> Start:
        """The constants of the scale, layer by layer, and the gain, for these parameters and images.

        ``offsets`` of the layers' images go into the biases, each in its unit while all constants are 1.
        """
        scales, inputs, unit = [1.0] * self.network.n_layers, images, 1.0
        for layer, layout in enumerate(self.network.layers):
            dense = self.dense(parameters, tuple(scales))
            offset = unit * offsets[layer]
            if offset:
                inputs = inputs - images.dtype.type(offset)
            maps = correlate(inputs, dense.dictionaries[layer], layout)
            scales[layer] = 1.0 / max(float(maps.std()), _TINY)
            values = largest_cells(maps, layout)[1] * images.dtype.type(scales[layer]) + dense.biases[layer]
            inputs = np.maximum(values, 0).reshape(len(images), layout.grid[0], -1)
            unit *= scales[layer]
            if offset:
                sums = dense.dictionaries[layer].sum(axis=1, dtype=np.float64)
                dense.biases[layer][...] -= scales[layer] * offset * sums
        dense = self.dense(parameters, tuple(scales))
        upward = infer(self.network, dense, images, np.arange(len(images)), LARGEST)
        image = synthesise(self.network, dense, upward.features, upward.places).image
        own, gain = float(np.vdot(image, image)), 1.0
        if own > 0.0:
            least = _LEAST_COSINE * float(np.linalg.norm(images)) / math.sqrt(own)
            gain = max(float(np.vdot(image, images)) / own, least)
        self.packing.views(parameters)["log_gain"][...] = math.log(gain)
        return Start(parameters, tuple(scales))

    def draw(self, seed: int, stream: Stream, number: int) -> Draw:
        """How cells are chosen in step or chain ``number``."""
        return Draw(self.sharpness, seed, stream, number)

    def gradient(
        self, parameters: np.ndarray, scales: tuple[float, ...], batch: Part, engine: PartEngine, draw: Draw
    ) -> tuple[Sums, np.ndarray]:
        """Sums of a minibatch, and the gradient of its mean objective with the decay of beta."""
        dense = self.dense(parameters, scales)
        visit = partial(
            _visit, batch=batch, n_parts=engine.n_shards, network=self.network, dense=dense,
            terms=self.terms, draw=draw,
        )  # fmt: skip
        (sums, slope), *others = engine.map(visit)
        for other_sums, other_slope in others:
            sums = sums.plus(other_sums)
            slope.add(other_slope)
        gradient = self.chain(parameters, scales, slope)
        gradient /= parameters.dtype.type(len(batch.images))
        pieces = self.packing.views(gradient)
        pieces["svm"][...] += parameters.dtype.type(self.weight_decay) * dense.weights
        return sums, gradient


def _visit(
    number: int, batch: Part, n_parts: int, network: Network, dense: Dense, terms: Terms, draw: Draw
) -> tuple[Sums, Dense]:
    """Part ``number`` of a minibatch."""
    bounds = np.linspace(0, len(batch.images), n_parts + 1).astype(int)
    part = slice(bounds[number], bounds[number + 1])
    if part.start == part.stop:  # fewer images than parts
        return Sums(), Dense.zeros(network, batch.images.dtype)
    keep = None if batch.keep is None else batch.keep[part]
    cut = Part(batch.images[part], batch.items[part], batch.signs[part], keep)
    return objective_gradient(cut, network, dense, terms, draw)
