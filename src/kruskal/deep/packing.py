"""Arrays of many shapes as views into one vector: what optimisers and checkpoints work on."""

import math
from typing import NamedTuple

import numpy as np


class Packing(NamedTuple):
    """Names and shapes of the pieces of a vector, in order."""

    shapes: dict[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """Length of the vector."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The pieces by name; changing them changes the vector."""
        pieces, first = {}, 0
        for name, shape in self.shapes.items():
            stop = first + math.prod(shape)
            pieces[name] = vector[first:stop].reshape(shape)
            first = stop
        return pieces
