"""Global state of the convolutional models, what a sweep reports, and who runs it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from kruskal.gibbs.conv_local import ImageShard

T = TypeVar("T")


class ConvGlobal(NamedTuple):
    """The state that exists once. CFA has R = 0.

    Attributes
    ----------
    dictionary : (K, P) atoms, P = m_x m_y C
    weights : (K, R) lambda;  factors : (K, m_x + m_y + C, R) u;  log_delta : (K, R);  alpha : float
    log_odds : (K, cells) log theta_g / theta_0 of the cells of a pooling block; with usage by image, of the
        mean usage, theta_g = eta phi_g and theta_0 = 1 - eta
    code_precision : gamma_s;  noise_precision : gamma_eps
    image_log_odds : (N, K) logit pi_kn, the usage of every image; (0, K) if all share one
    concentration : h, how alike the usage of the images is
    """

    dictionary: np.ndarray
    weights: np.ndarray
    factors: np.ndarray
    log_delta: np.ndarray
    alpha: float
    log_odds: np.ndarray
    code_precision: float
    noise_precision: float
    image_log_odds: np.ndarray
    concentration: float


class ConvReport(NamedTuple):
    """What a sweep tells of itself."""

    counts: np.ndarray  # (K, cells) non-zeros of each atom by their cell
    residual_squares: float
    active_per_image: float


class ImageEngine(Protocol):
    """Who runs it: holds the shards and applies a function to each of them, results in order."""

    n_images: int
    n_observed: int
    complete: bool
    dtype: np.dtype
    n_shards: int

    def map(self, function: Callable[[ImageShard], T]) -> list[T]:
        """``function`` of every shard, in the order of the shards."""
        ...

    def total(self, visit: Callable[[ImageShard, T | None], T], add: Callable[[T, T], T]) -> T:
        """The sum over all shards of what ``visit`` finds, added to what it found before."""
        ...
