"""Where the chain of a Kruskal decomposition begins.

``pca``: the leading eigenvectors of the second moment of every mode, from the observed entries; terms beyond
the size of a mode are random. ``random``: all factors normal. The first mode is drawn first, given the
others, and needs no start.
"""

import numpy as np

from kruskal.gibbs.stack import as_stack
from kruskal.gibbs.start import leading_eigenvectors
from kruskal.patches import Items

_MOST_ROWS = 4_096
_CHUNK = 2**20


def start_factors(
    name: str, items: Items, sizes: tuple[int, ...], rank: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """First weights (R,) and factors (sum m_t, R) with entries of about one."""
    factors = random.standard_normal((sum(sizes), rank))
    weights = np.full(rank, rank**-0.5)
    if name == "pca":
        first = sizes[0]
        for t, size in enumerate(sizes[1:]):
            if size <= _MOST_ROWS:
                n_wanted = min(rank, size)
                vectors = leading_eigenvectors(_moment(as_stack(items), sizes[1:], t), n_wanted)[1]
                factors[first : first + size, :n_wanted] = vectors * np.sqrt(size)
            first += size
    return weights, factors


def _moment(stack: Items, sizes: tuple[int, ...], mode: int) -> np.ndarray:
    """(m_t, m_t) second moment of one mode over all others, missing entries left out.

    Sums over pairs of observed entries, divided by their number: entries that are missing at random do not
    shrink it, and the noise of an entry is not multiplied with itself.
    """
    size = sizes[mode]
    moment, count = np.zeros((size, size)), np.zeros((size, size))
    step = max(1, _CHUNK // len(stack.offset))
    for first in range(0, stack.n_items, step):
        place = stack.origin[first : first + step, None] + stack.offset[None, :]
        values = _unfold(stack.flat[place], sizes, mode).astype(np.float64)
        moment += values @ values.T
        if not stack.complete:
            seen = _unfold(stack.observed[place], sizes, mode).astype(np.float32)
            count += seen @ seen.T
    return moment if stack.complete else moment / np.maximum(count, 1.0)


def _unfold(values: np.ndarray, sizes: tuple[int, ...], mode: int) -> np.ndarray:
    return np.moveaxis(values.reshape(len(values), *sizes), mode + 1, 0).reshape(sizes[mode], -1)
