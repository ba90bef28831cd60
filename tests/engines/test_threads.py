"""Sums over shards: the same additions in the same order, whatever the threads do."""

import time
from contextlib import nullcontext
from threading import Event, active_count

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from kruskal.engines import threads
from kruskal.engines.threads import Threads
from kruskal.gibbs.together import NONE, OVER, allow, await_finished, dismiss, finish, new_cells, take
from kruskal.patches import Items


def balanced(parts: list):
    """The additions that are promised, as nested pairs."""
    while len(parts) > 1:
        parts = [tuple(parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]


def in_rows(n_shards: int, length: int) -> list:
    """What visits of rows of shards find."""
    rows = []
    for first in range(0, n_shards, length):
        row = first
        for shard in range(first + 1, min(first + length, n_shards)):
            row = (row, shard)
        rows.append(row)
    return rows


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n_shards", [1, 2, 3, 6, 7, 16, 17, 32])
def test_total_adds_in_the_order_of_the_shards(n_shards, threads):
    def visit(shard: int, found: int | None) -> int | tuple:
        time.sleep(0.001 * (shard * 7 % 3))  # done in another order than begun
        return shard if found is None else (found, shard)

    with Threads(list(range(n_shards)), threads) as engine:
        for _ in range(3):
            total = engine.total(visit, lambda one, other: (one, other))
            assert total == balanced(in_rows(n_shards, 2 if n_shards <= 16 else -(-n_shards // 8)))


class Waiting:
    """A team whose followers wait for the leader, who fails or does not."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.over, self.followed = fails, Event(), 0

    def lead(self) -> None:
        if self.fails:
            raise RuntimeError("lost the way")
        self.dismiss()

    def follow(self) -> None:
        assert self.over.wait(20)
        self.followed += 1

    def dismiss(self) -> None:
        self.over.set()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("fails", [False, True])
def test_those_who_follow_come_to_an_end(fails, threads):
    """Also if the leader fails; then the failure is told."""
    teams = []

    def gather(shards: list[int]) -> Waiting:
        teams.append(Waiting(fails))
        return teams[0]

    with Threads([0, 1], threads) as engine:
        with pytest.raises(RuntimeError, match="lost the way") if fails else nullcontext():
            engine.together(gather)
        engine.drain()
    assert teams[0].followed == threads - 1


def test_followers_that_nobody_leads_are_dismissed():
    cells = new_cells()
    assert take(cells) == NONE
    dismiss(cells)
    assert take(cells) == OVER


def test_tasks_are_taken_once_and_in_order():
    cells = new_cells()
    allow(cells, 2)
    assert [take(cells) for _ in range(3)] == [0, 1, NONE]
    finish(cells)
    finish(cells)
    await_finished(cells, 2)
    allow(cells, 3)
    assert [take(cells), take(cells)] == [2, NONE]


def blas_threads() -> list[int]:
    """Of every BLAS that is loaded."""
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_blas_is_held_as_long_as_anyone_needs_it():
    """Runs in several threads of one process overlap: the first that ends must not let BLAS go."""
    before = blas_threads()
    one, other = Threads([], 1), Threads([], 1)
    one.close()
    assert set(blas_threads()) <= {1}
    other.close()
    other.close()  # twice does no harm
    assert blas_threads() == before


def test_items_that_cannot_be_held_leave_nothing_behind(monkeypatch):
    """Neither threads nor the limit of BLAS."""

    def no_room(*_):
        raise MemoryError

    monkeypatch.setattr(threads, "make_shard", no_room)
    blas, running = blas_threads(), active_count()
    with pytest.raises(MemoryError):
        threads.ThreadEngine(Items.from_matrix(np.zeros((5_000, 2, 2), np.float32)), 2)
    assert (blas_threads(), active_count()) == (blas, running)
