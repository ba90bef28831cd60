"""Independent tasks on the threads of one machine."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

S = TypeVar("S")
T = TypeVar("T")


def map_tasks(function: Callable[[S], T], tasks: Sequence[S], threads: int) -> list[T]:
    """``function`` of every task, in order, on ``threads`` threads with BLAS on one each."""
    with threadpool_limits(limits=1, user_api="blas"):
        if threads == 1 or len(tasks) == 1:
            return [function(task) for task in tasks]
        with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
            return list(pool.map(function, tasks))
