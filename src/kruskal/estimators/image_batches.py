"""Image batches as the convolutional estimators take them: checks, and moments over draws."""

from typing import Any, NamedTuple

import numpy as np

from kruskal.data import Scaling, observed_entries
from kruskal.data.arrays import real_array
from kruskal.errors import InputError, shown, whole_number


class Reconstruction(NamedTuple):
    """Images without noise: posterior ``mean`` and ``std`` of every entry, in the shape and units given."""

    mean: np.ndarray
    std: np.ndarray


class Moments:
    """Running sums of images over draws."""

    def __init__(self) -> None:
        self.draws = 0
        self.first: Any = 0.0
        self.second: Any = 0.0

    def add(self, images: np.ndarray) -> None:
        """Add one draw."""
        self.draws += 1
        images = images.astype(np.float64)
        self.first = self.first + images
        self.second = self.second + images**2

    def reconstruction(self, scaling: Scaling, shape: tuple[int, ...]) -> Reconstruction:
        """Mean and standard deviation over the draws, in units of the data."""
        mean = self.first / self.draws
        std = np.sqrt(np.maximum(self.second / self.draws - mean**2, 0.0))
        return Reconstruction(scaling.inverse(mean).reshape(shape), scaling.inverse_std(std).reshape(shape))


def image_batch(
    X: Any, observed: Any, may_be_none: bool = False
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Images and mask (N, M_x, M_y, C), and the shape given; ``may_be_none``: also if nothing is observed."""
    images = real_array(X, "X")
    if images.ndim not in (3, 4):
        raise InputError(f"X has shape {images.shape}, expected (N, M_x, M_y) or (N, M_x, M_y, C)")
    seen = observed_entries(
        X, observed, stacked=True, may_be_none=may_be_none, name="X", mask_name="observed"
    )
    shape = (*images.shape, 1) if images.ndim == 3 else images.shape
    return images.reshape(shape), seen.reshape(shape), images.shape


def pair_of_sizes(name: str, value: Any) -> tuple[int, int]:
    """Two whole numbers of at least 1, or one for both, or an InputError that names the argument."""
    try:
        first, second = (value, value) if np.ndim(value) == 0 else value
        return whole_number(name, first, 1), whole_number(name, second, 1)
    except (TypeError, ValueError):  # InputError is one
        raise InputError(
            f"{name} must be a whole number of at least 1 or a pair of such, not {shown(value)}"
        ) from None
