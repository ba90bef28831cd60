"""How the inner loops are compiled: one decorator for every numba kernel of the project.

Kernels release the interpreter lock, so that threads run them side by side, and are cached on disk. Of the
fast-math liberties only those are taken that let sums be reassociated and fused; infinities and NaN keep
their meaning. No signature is given: it would compile at import.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core import event

_RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with numba on its first call, without the interpreter lock, cached on disk."""
    return njit(cache=True, nogil=True, fastmath=_RELAXED, error_model="numpy")(function)


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
