"""Sums over shards: the same additions in the same order, whatever the threads do."""

import time
from contextlib import nullcontext
from threading import Event, active_count

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from kruskal.engines import threads
from kruskal.engines.threads import Threads
from kruskal.gibbs.together import (
    NONE,
    OVER,
    await_finished,
    current_round,
    dismiss,
    finish,
    new_cells,
    open_round,
    take,
)
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


@pytest.mark.parametrize("asked", [1, 2, 100_000])
def test_no_more_threads_are_started_than_are_of_use(asked, monkeypatch):
    monkeypatch.setattr(threads, "_cores", lambda: 2)
    assert threads.check_threads(asked) == min(asked, 8)  # what results tell
    with Threads([1, 2, 3], asked) as engine:
        assert engine.threads == min(asked, 8)
        assert engine.map(lambda shard: shard + 1) == [2, 3, 4]


class Waiting:
    """A team whose followers wait for the leader, who fails or does not."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.over, self.followed = fails, Event(), set[int]()

    def lead(self, n_seats: int) -> None:
        if self.fails:
            raise RuntimeError("lost the way")
        self.dismiss()

    def follow(self, seat: int, n_seats: int) -> None:
        assert self.over.wait(20)
        assert 0 < seat < n_seats
        self.followed.add(seat)

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
    assert teams[0].followed == set(range(1, threads))


def test_followers_that_nobody_leads_are_dismissed():
    cells = new_cells(3)
    assert current_round(cells) == 0
    assert take(cells, current_round(cells), 3, 1, 2) == NONE
    dismiss(cells)
    assert current_round(cells) == OVER


def test_tasks_are_taken_once_in_every_round():
    """From both ends; a round that is over has none, whoever still thinks of it."""
    cells = new_cells(5)
    open_round(cells, 1)
    assert [take(cells, 1, 5, seat, 2) for seat in (0, 1, 1, 0, 0, 1)] == [0, 4, 3, 1, 2, NONE]
    for _ in range(5):
        finish(cells)
    await_finished(cells, 5)
    open_round(cells, 2)
    assert [take(cells, 2, 2, seat, 2) for seat in (1, 1, 1)] == [1, 0, NONE]
    assert take(cells, 1, 5, 1, 2) == NONE
    open_round(cells, 3)
    assert [take(cells, 3, 5, 0, 1) for _ in range(6)] == [0, 1, 2, 3, 4, NONE]


@pytest.mark.parametrize("n_seats", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("n_tasks", [1, 2, 4, 8])
def test_a_seat_alone_finds_all_tasks(n_tasks, n_seats):
    """And begins where its neighbour ends."""
    firsts = []
    for seat in range(n_seats):
        cells = new_cells(n_tasks)
        found = [take(cells, 1, n_tasks, seat, n_seats) for _ in range(n_tasks + 1)]
        assert sorted(found[:-1]) == list(range(n_tasks)) and found[-1] == NONE
        firsts.append(found[0])
    if n_seats == 2:
        assert firsts == [0, n_tasks - 1]
    if n_seats == 4 and n_tasks == 8:
        assert firsts == [0, 3, 4, 7]


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
