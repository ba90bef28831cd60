"""Shards, or parts of a stack, on the threads of one machine."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from threading import Lock
from typing import Generic, Self, TypeVar

import numpy as np

from kruskal.engines.tasks import blas_on_one_thread
from kruskal.errors import whole_number
from kruskal.gibbs.conv_local import ImageShard, split_images
from kruskal.gibbs.local import Codes, Shard, make_shard, shard_bounds, shards_per_sum, split_codes
from kruskal.gibbs.stack import Part, as_stack, cut_stack, mean_square
from kruskal.models.protocol import Team
from kruskal.patches import Items

S = TypeVar("S")
T = TypeVar("T")
_MOST_PER_CORE = 4
"""Threads that are started, however many are asked for: more only stand in each other's way."""


def check_threads(threads: int | None) -> int:
    """The number of threads to use: all cores that this process may use, or as given, but a few per core."""
    if threads is None:
        return _cores()
    return min(whole_number("threads", threads, 1), _MOST_PER_CORE * _cores())


def _cores() -> int:
    """All that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Threads(Generic[S]):
    """Applies a function to every shard, whatever that is, on a pool of threads; a context manager.

    The kernels release the interpreter lock. BLAS is held to one thread inside, so that results are the same
    for any number of threads and cores are not used twice.
    """

    def __init__(self, shards: list[S], threads: int | None = None) -> None:
        self.threads = check_threads(threads)
        self.shards = shards
        self.n_shards = len(shards)
        self._waiting: deque[int] = deque()
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        self._limits = ExitStack()
        self._limits.enter_context(blas_on_one_thread())

    def map(self, function: Callable[[S], T]) -> list[T]:
        """``function`` of every shard, in the order of the shards."""
        return self.share(lambda i: function(self.shards[i]), self.n_shards)

    def total(self, visit: Callable[[S, T | None], T], add: Callable[[T, T], T]) -> T:
        """The sum over all shards of what ``visit(shard, None)`` finds, added in pairs by the threads.

        ``visit(shard, found)`` adds to what was found before: so are a few shards in a row visited, as fewer
        sums have then to be added. These are added in pairs, up to one, by the thread that is done with the
        second of a pair: the order of the additions depends on the number of shards alone.
        """
        length = shards_per_sum(self.n_shards)
        rows = [self.shards[i : i + length] for i in range(0, self.n_shards, length)]
        waiting: dict[tuple[int, int], T] = {}
        lock = Lock()

        def visit_row(i: int) -> list[T]:
            result = visit(rows[i][0], None)
            for shard in rows[i][1:]:
                result = visit(shard, result)
            place, level, n_places = i, 0, len(rows)
            while n_places > 1:
                partner = place ^ 1
                if partner < n_places:
                    with lock:
                        if (level, partner) not in waiting:
                            waiting[level, place] = result
                            return []
                        other = waiting.pop((level, partner))
                    result = add(other, result) if partner < place else add(result, other)
                place, level, n_places = place // 2, level + 1, (n_places + 1) // 2
            return [result]

        (result,) = (part for found in self.share(visit_row, len(rows)) for part in found)
        return result

    def fold(self, function: Callable[[S, int], None], n_parts: int) -> None:
        """``function`` of every shard in order and a part, for each of ``n_parts`` parts."""

        def one_part(part: int) -> None:
            for shard in self.shards:
                function(shard, part)

        self.share(one_part, n_parts)

    def together(self, gather: Callable[[Sequence[S]], Team]) -> None:
        """Let all threads be a team that works on all shards."""
        team = gather(self.shards)
        followers: list[Future[None]] = []
        try:
            if self._pool is not None:
                seats = range(1, self.threads)
                followers = [self._pool.submit(team.follow, seat, self.threads) for seat in seats]
            team.lead(self.threads)
        finally:
            team.dismiss()
        _await(followers)

    def beside(self, function: Callable[[], T]) -> Callable[[], T]:
        """Let one thread work on ``function`` while the others begin the next `map`; with one, at once."""
        if self._pool is None:
            result = function()
            return lambda: result
        return self._pool.submit(function).result

    def share(self, function: Callable[[int], T], n_tasks: int) -> list[T]:
        """``function`` of 0 .. n_tasks - 1, shared out among the threads."""
        if self._pool is None or n_tasks == 1:
            return [function(i) for i in range(n_tasks)]
        results: dict[int, T] = {}
        self._waiting.extend(range(n_tasks))

        def work() -> None:
            """Take tasks as long as there are any: few futures, and no thread waits for a slower one."""
            while self._waiting:
                try:
                    i = self._waiting.popleft()
                except IndexError:  # another thread was faster
                    return
                results[i] = function(i)

        helpers = [self._pool.submit(work) for _ in range(min(self.threads, n_tasks) - 1)]
        work()
        _await(helpers)
        return [results[i] for i in range(n_tasks)]

    def drain(self) -> None:
        """Wait until no thread works on a shard any more, after `map` was interrupted."""
        self._waiting.clear()
        if self._pool is not None:
            # in this order: whatever comes in between, there is a pool to go on with
            old, self._pool = self._pool, ThreadPoolExecutor(self.threads - 1)
            old.shutdown()

    def close(self) -> None:
        """Stop the threads and give BLAS its own back."""
        self._waiting.clear()
        if self._pool is not None:
            self._pool.shutdown()
        self._limits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _await(helpers: list[Future[None]]) -> None:
    """Wait for those who help, now that there is nothing left to begin with."""
    for helper in helpers:
        if not helper.cancel():  # unless it has not even begun
            helper.result()


class ThreadEngine(Threads[Shard]):
    """Items with sparse codes, in shards."""

    def __init__(self, items: Items, threads: int | None = None, n_regions: int | None = None) -> None:
        super().__init__([], threads)
        try:
            self.hold(items, items.n_regions if n_regions is None else n_regions)
        except BaseException:
            self.close()
            raise

    def hold(self, items: Items, n_regions: int, address: int = 0, codes: Codes | None = None) -> None:
        """Put other items, of an array with ``n_regions`` regions, in the place of those that are held.

        ``address`` is what random numbers know the first of them by. Without ``codes`` no atom is used.
        """
        bounds = shard_bounds(items.n_items)
        self.shards = self.share(lambda i: make_shard(items, *bounds[i], address), len(bounds))
        self.n_shards = len(self.shards)
        self.n_items = items.n_items
        self.n_observed = sum(shard.n_observed for shard in self.shards)
        self.region_sizes = np.bincount(items.region, minlength=n_regions)
        self.complete = items.complete
        self.dtype = items.flat.dtype
        if codes is not None:
            self.put_codes(split_codes(codes, [shard.n_items for shard in self.shards]))

    def codes(self) -> tuple[Codes, ...]:
        """The codes of every shard."""
        return tuple(shard.codes for shard in self.shards)

    def put_codes(self, codes: Sequence[Codes]) -> None:
        """Replace the codes of every shard."""
        for shard, part in zip(self.shards, codes, strict=True):
            shard.codes = part

    def regions(self) -> np.ndarray:
        """(N,) the region of every item."""
        return np.concatenate([shard.items.region for shard in self.shards])

    def put_regions(self, region: np.ndarray) -> None:
        """Replace the region of every item (N,); there are not more of them than before."""
        stops = np.cumsum([shard.n_items for shard in self.shards])[:-1]
        for shard, part in zip(self.shards, np.split(region, stops), strict=True):
            shard.items = shard.items._replace(region=part)
        self.region_sizes = np.bincount(region, minlength=len(self.region_sizes))


class StackEngine(Threads[Part]):
    """A stack of items as one tensor, in parts; it has no state of its own."""

    def __init__(self, items: Items, threads: int | None = None) -> None:
        stack = as_stack(items)
        super().__init__(cut_stack(stack), threads)
        self.n_items = items.n_items
        self.complete = items.complete
        self.mean_square = mean_square(items)
        self.n_observed = stack.n_items * len(stack.offset)
        if not self.complete:
            self.n_observed = sum(len(part.modes[0].values) for part in self.shards)

    def codes(self) -> tuple[Codes, ...]:
        """None."""
        return ()

    def put_codes(self, codes: Sequence[Codes]) -> None:
        """Nothing to replace."""

    def regions(self) -> np.ndarray:
        """None."""
        return np.zeros(0, np.uint16)

    def put_regions(self, region: np.ndarray) -> None:
        """Nothing to replace."""


class ImageThreads(Threads[ImageShard]):
    """Images on threads, for the convolutional models: `kruskal.models.ImageEngine`.

    ``values`` (N, M_x, M_y, C) in working precision, ``observed`` the same shape or None.
    """

    def __init__(
        self, values: np.ndarray, observed: np.ndarray | None = None, threads: int | None = None
    ) -> None:
        super().__init__(split_images(values, observed), threads)
        self.n_images = len(values)
        self.n_observed = sum(shard.n_observed for shard in self.shards)
        self.complete = self.shards[0].complete
        self.dtype = values.dtype
