"""How the inner loops are compiled: one decorator for every numba kernel of the project.

Kernels release the interpreter lock, so that threads run them side by side, and are cached on disk. Of the
fast-math liberties only those are taken that let sums be reassociated and fused; infinities and NaN keep
their meaning. No signature is given: it would compile at import.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

_RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with numba on its first call, without the interpreter lock, cached on disk."""
    return njit(cache=True, nogil=True, fastmath=_RELAXED, error_model="numpy")(function)
