"""How the inner loops are compiled: one decorator for every numba kernel of the project.

Kernels release the interpreter lock, so that threads run them side by side, and are cached on disk. numba
takes a cached kernel for current when its own file is unchanged, even if it calls kernels of other files that
were edited or upgraded; so the cache is stamped with the state of all files that hold kernels. Of the
fast-math liberties only those are taken that let sums be reassociated and fused; infinities and NaN keep
their meaning. No signature is given: it would compile at import.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
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


@by_hand
def array_at(typing, address, size, like):
    """The ``size`` elements of a contiguous array at an address in memory, of the type of ``like``.

    Whoever passes the address, from `address_of`, keeps the array alive.
    """
    kind = types.Array(like.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        place = context.cast(builder, arguments[0], signature.args[0], types.intp)
        count = context.cast(builder, arguments[1], signature.args[1], types.intp)
        array = context.make_array(kind)(context, builder)
        data = builder.inttoptr(place, array.data.type)
        width = context.get_abi_sizeof(context.get_data_type(like.dtype))
        step = ir.Constant(ir.IntType(64), width)
        context.populate_array(array, data=data, shape=[count], strides=[step], itemsize=step, meminfo=None)
        return array._getvalue()

    return kind(address, size, like), generate


def address_of(array: np.ndarray) -> int:
    """Where the elements of an array stand in memory."""
    return int(array.__array_interface__["data"][0])


@cache
def _stamp() -> tuple[float, int]:
    """Newest modification time and total size of the source files that hold kernels."""
    here = Path(__file__)
    files = [here, *(file for room in _ROOMS for file in (here.parent / room).glob("*.py"))]
    states = [file.stat() for file in files]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


class Compilation(event.Listener):
    """Calls back when compilation begins for the first time; ``seconds`` is what all of it has taken."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback, self._told, self._lock = callback, False, Lock()
        self._running, self._since, self.seconds = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        """A kernel, or one that it calls, is compiled; threads may do so at once."""
        with self._lock:
            first, self._told = not self._told, True
            if self._running == 0:
                self._since = time.perf_counter()
            self._running += 1
        if first:
            self._callback()

    def on_end(self, event: Any) -> None:
        """It is."""
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self.seconds += time.perf_counter() - self._since


@contextmanager
def watch_compilation(callback: Callable[[], None]) -> Iterator[Compilation]:
    """Call ``callback`` once if a kernel has to be compiled inside the block; not when it is in the cache."""
    found = Compilation(callback)
    with event.install_listener("numba:compile", found):
        yield found
