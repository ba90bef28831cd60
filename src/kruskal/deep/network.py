"""Sizes of a deep model: a layout per layer, and what follows from it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kruskal.errors import InputError
from kruskal.gibbs.conv_local import Layout


class Network(NamedTuple):
    """Layers from the image upwards; the last one has no pooling.

    Attributes
    ----------
    layers : layout of each layer; the image of layer l + 1 is the pooled maps of layer l, channels last
    n_atoms : K of each layer
    n_classes : number of decisions Y; 0 without labels
    """

    layers: tuple[Layout, ...]
    n_atoms: tuple[int, ...]
    n_classes: int = 0

    @property
    def n_layers(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(M_x, M_y, C) of the data."""
        return self.layers[0].image_shape

    @property
    def n_features(self) -> int:
        """Number of top weights of an image, places by atoms."""
        return math.prod(self.layers[-1].map_shape) * self.n_atoms[-1]

    def dictionary_shape(self, layer: int) -> tuple[int, int]:
        """(K, P) of the atoms of a layer."""
        return self.n_atoms[layer], math.prod(self.layers[layer].atom_shape)


def build_network(
    image_shape: tuple[int, int, int],
    n_atoms: Sequence[int],
    atom_sizes: Sequence[tuple[int, int]],
    poolings: Sequence[tuple[int, int]],
    n_classes: int = 0,
) -> Network:
    """The network of these sizes; ``poolings`` is one shorter. Blocks at the border may be partial."""
    if len(n_atoms) == 0 or len(atom_sizes) != len(n_atoms) or len(poolings) != len(n_atoms) - 1:
        raise InputError(
            f"n_atoms, atom_sizes and pooling have lengths {len(n_atoms)}, {len(atom_sizes)} and "
            f"{len(poolings)}, expected L, L and L - 1 for L layers"
        )
    layers, shape = [], image_shape
    for number, (atoms, size, pooling) in enumerate(zip(n_atoms, atom_sizes, [*poolings, (1, 1)]), 1):
        layout = Layout(shape, size, pooling)
        if min(layout.map_shape) < 1:
            raise InputError(
                f"atom_sizes has atoms of {size[0]}x{size[1]} in layer {number}, "
                f"expected at most its image, {shape[0]}x{shape[1]}"
            )
        layers.append(layout)
        shape = (*layout.grid, atoms)
    return Network(tuple(layers), tuple(n_atoms), n_classes)
