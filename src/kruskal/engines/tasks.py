"""Independent tasks on the threads of one machine, and how BLAS is held to one thread meanwhile."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from threadpoolctl import threadpool_limits

S = TypeVar("S")
T = TypeVar("T")


_lock = Lock()
_holders = 0
_limits: threadpool_limits | None = None


@contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Hold BLAS to one thread; it gets its own back when the last of those who hold it is done."""
    global _holders, _limits
    with _lock:
        if _holders == 0:
            _limits = threadpool_limits(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _limits is not None:
                _limits.restore_original_limits()


def map_tasks(function: Callable[[S], T], tasks: Sequence[S], threads: int) -> list[T]:
    """``function`` of every task, in order, on ``threads`` threads with BLAS on one each."""
    with blas_on_one_thread():
        if threads == 1 or len(tasks) == 1:
            return [function(task) for task in tasks]
        with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
            return list(pool.map(function, tasks))
