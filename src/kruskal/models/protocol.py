"""What models and engines know of each other: the global state, and two small protocols."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from kruskal.gibbs.local import Codes, Shard
from kruskal.gibbs.pair_sums import PairStatistics
from kruskal.gibbs.statistics import CompleteStatistics
from kruskal.gibbs.surrogate import Sums
from kruskal.patches import Items

T = TypeVar("T")


class Global(NamedTuple):
    """The state that exists once. Models with Gaussian atoms have R = 0.

    Attributes
    ----------
    dictionary : (K, P) atoms d_k
    weights : (K, R) lambda;  factors : (K, sum m_t, R) u;  log_delta : (K, R);  alpha : float
    log_odds : (G, K) logit pi of each region;  usage_mean : (K,) eta;  concentration : h
    code_precision : gamma_s;  noise_precision : gamma_eps
    """

    dictionary: np.ndarray
    weights: np.ndarray
    factors: np.ndarray
    log_delta: np.ndarray
    alpha: float
    log_odds: np.ndarray
    usage_mean: np.ndarray
    concentration: float
    code_precision: float
    noise_precision: float


class SweepReport(NamedTuple):
    """What a sweep tells of itself."""

    counts: np.ndarray  # (K,) items that use each atom
    residual_squares: float
    active_per_item: float
    sums: Sums  # of the engine's items, for the atoms with which their codes were drawn
    pairs: CompleteStatistics | PairStatistics | None  # of all items, if the rest had them


class Engine(Protocol):
    """Who runs it: holds the shards and applies a function to each of them, results in order."""

    n_items: int
    n_observed: int
    region_sizes: np.ndarray  # (G,) int64, items of each region
    complete: bool
    dtype: np.dtype
    n_shards: int

    def map(self, function: Callable[[Shard], T]) -> list[T]:
        """``function`` of every shard, in the order of the shards."""
        ...

    def fold(self, function: Callable[[Shard, int], None], n_parts: int) -> None:
        """``function`` of every shard in order and a part, for each of ``n_parts`` parts."""
        ...

    def put_codes(self, codes: Sequence[Codes]) -> None:
        """Replace the codes of every shard."""
        ...

    def drain(self) -> None:
        """Wait until nothing works on a shard any more, after `map` was interrupted."""
        ...


class Model(Protocol):
    """What an engine needs of a model."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one item."""
        ...

    @property
    def n_atoms(self) -> int:
        """Number of atoms K."""
        ...

    def start(self, name: str, items: Items, seed: int) -> Global:
        """The global state in which a chain begins."""
        ...

    def sweep(self, state: Global, engine: Engine, seed: int, number: int) -> tuple[Global, SweepReport]:
        """One sweep over local and global state; ``number`` counts from 1 and addresses the randomness."""
        ...

    def ranks(self, state: Global, tolerance: float = 0.01) -> np.ndarray:
        """(K,) rank of every atom at a relative tolerance."""
        ...
