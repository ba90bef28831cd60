"""How the inner loops are compiled: one decorator for every numba kernel of the project.

Kernels release the interpreter lock, so that threads run them side by side, and are cached on disk. numba
takes a cached kernel for current when its own file is unchanged, even if it calls kernels of other files that
were edited or upgraded; so the cache is stamped with the state of all files that hold kernels. Of the
fast-math liberties only those are taken that let sums be reassociated and fused; infinities and NaN keep
their meaning. No signature is given: it would compile at import.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event
from numba.extending import intrinsic

_RELAXED = {"reassoc", "contract", "nsz", "arcp"}
_ROOMS = ("deep", "gibbs", "patches", "random", "tensor")


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with numba on its first call, without the interpreter lock, cached on disk."""
    dispatcher: Any = njit(nogil=True, fastmath=_RELAXED, error_model="numpy")(function)
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # no folder that can be written: compile in every process
        return dispatcher
    dispatcher._cache._cache_file._source_stamp = _stamp()
    return dispatcher


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function for kernels whose code is made by hand: ``function`` returns its signature and its maker.

    Its first argument is numba's; callers leave it out.
    """
    return intrinsic(function)


@cache
def _stamp() -> tuple[float, int]:
    """Newest modification time and total size of the source files that hold kernels."""
    here = Path(__file__)
    files = [here, *(file for room in _ROOMS for file in (here.parent / room).glob("*.py"))]
    states = [file.stat() for file in files]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


class _Once(event.Listener):
    """Calls back at the first compilation."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def on_start(self, event: Any) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()

    def on_end(self, event: Any) -> None:
        """Nothing to do."""


@contextmanager
def watch_compilation(callback: Callable[[], None]) -> Iterator[None]:
    """Call ``callback`` once if a kernel has to be compiled inside the block; not when it is in the cache."""
    with event.install_listener("numba:compile", _Once(callback)):
        yield
