"""The parameters as the passes see them: every atom written out. Gradients have the same form."""

from typing import NamedTuple

import numpy as np

from kruskal.deep.network import Network


class Dense(NamedTuple):
    """All parameters, or the gradient of all of them.

    Attributes
    ----------
    dictionaries : D^(l) (K, P), one per layer
    biases : b^(l) (K,), one per layer
    weights : beta (Y, d);  bias : beta_0 (Y,)
    log_gain : () r; synthesis is multiplied by e^r, as the atoms' scale is that of inference
    """

    dictionaries: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    weights: np.ndarray
    bias: np.ndarray
    log_gain: np.ndarray

    @classmethod
    def zeros(cls, network: Network, dtype: np.dtype) -> "Dense":
        """Zero everywhere."""
        layers = range(network.n_layers)
        return cls(
            tuple(np.zeros(network.dictionary_shape(layer), dtype) for layer in layers),
            tuple(np.zeros(network.n_atoms[layer], dtype) for layer in layers),
            np.zeros((network.n_classes, network.n_features), dtype),
            np.zeros(network.n_classes, dtype),
            np.zeros((), dtype),
        )

    def arrays(self) -> list[np.ndarray]:
        """All arrays, in a fixed order."""
        return [*self.dictionaries, *self.biases, self.weights, self.bias, self.log_gain]

    def add(self, other: "Dense") -> None:
        """Add another gradient in place."""
        for mine, theirs in zip(self.arrays(), other.arrays()):
            mine += theirs
