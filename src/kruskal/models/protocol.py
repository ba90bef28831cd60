"""What models and engines know of each other: the global state, and two small protocols."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from kruskal.gibbs.local import Codes, Shard
from kruskal.gibbs.pair_sums import PairStatistics
from kruskal.gibbs.statistics import CompleteStatistics
from kruskal.patches import Items, Slab
from kruskal.tensor import RANK_TOLERANCE

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
    sums: Any = None  # `Sums` of the engine's items, for the atoms with which their codes were drawn
    pairs: CompleteStatistics | PairStatistics | None = None  # of all items, if the rest had them


class Team(Protocol):
    """Work that threads do together: one leads, others may follow, until the leader is done."""

    def lead(self, n_seats: int) -> None:
        """Do the work, alone if nobody follows; there are so many seats, the leader's is 0."""
        ...

    def follow(self, seat: int, n_seats: int) -> None:
        """Help the leader."""
        ...

    def dismiss(self) -> None:
        """Let those who follow come to an end."""
        ...


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

    def total(self, visit: Callable[[Shard, T | None], T], add: Callable[[T, T], T]) -> T:
        """The sum over all shards of what ``visit`` finds, in an order that depends on their number alone.

        ``visit`` is given a shard and None, or what was found so far, which it adds to.
        """
        ...

    def fold(self, function: Callable[[Shard, int], None], n_parts: int) -> None:
        """``function`` of every shard in order and a part, for each of ``n_parts`` parts."""
        ...

    def together(self, gather: Callable[[Sequence[Shard]], Team]) -> None:
        """Let all threads be a team that works on all shards."""
        ...

    def beside(self, function: Callable[[], T]) -> Callable[[], T]:
        """Begin to work on ``function``; what is returned waits for its result."""
        ...

    def share(self, function: Callable[[int], T], n_tasks: int) -> list[T]:
        """``function`` of 0 .. n_tasks - 1, on all threads."""
        ...

    def codes(self) -> tuple[Codes, ...]:
        """The codes of every shard."""
        ...

    def put_codes(self, codes: Sequence[Codes]) -> None:
        """Replace the codes of every shard."""
        ...

    def drain(self) -> None:
        """Wait until nothing works on a shard any more, after `map` was interrupted."""
        ...


class Model(Protocol):
    """What a chain needs of a model; states and engines are the model's own kinds."""

    @property
    def n_atoms(self) -> int:
        """Number of atoms K."""
        ...

    def start(self, name: str, items: Items, seed: int) -> Any:
        """The global state in which a chain begins."""
        ...

    def sweep(self, state: Any, engine: Any, seed: int, number: int) -> tuple[Any, SweepReport]:
        """One sweep over local and global state; ``number`` counts from 1 and addresses the randomness."""
        ...

    def expect(self, state: Any, engine: Any) -> list[Slab]:
        """Weighted sums over the items of what this draw says of them, for a kept draw."""
        ...

    def watched(self, state: Any, report: SweepReport) -> dict[str, float]:
        """What the trace holds of a sweep."""
        ...

    def atoms(self, state: Any) -> np.ndarray:
        """(K, m_1, .., m_T) the atoms."""
        ...

    def ranks(self, state: Any, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
        """(K,) rank of every atom at a relative tolerance."""
        ...
