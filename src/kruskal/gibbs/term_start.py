"""Where the chain of a Kruskal decomposition begins.

``pca``: the leading eigenvectors of the second moment of every mode, from the observed entries; terms beyond
the size of a mode are random. ``random``: all factors normal. The first mode is drawn first, given the
others, and needs no start.
"""

import math

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
    if name == "pca" and max(sizes[1:]) <= _MOST_ROWS:
        stack, first = as_stack(items), sizes[0]
        found = [
            leading_eigenvectors(_moment(stack, sizes[1:], t), min(rank, size))
            for t, size in enumerate(sizes[1:])
        ]
        chosen = _choose([values for values, _ in found], rank)
        for (_, vectors), places, size in zip(found, chosen, sizes[1:]):
            factors[first : first + size, : len(places)] = vectors[:, places] * np.sqrt(size)
            first += size
    return np.full(rank, rank**-0.5), factors


def _choose(values: list[np.ndarray], rank: int) -> list[np.ndarray]:
    """Which eigenvector of every mode each term takes.

    They take them in order, the remaining terms stay random. But terms enough for a basis of the items (half
    of it at least) take the products of all vectors with all that have the largest product of eigenvalues.
    """
    if 2 * rank >= math.prod(len(one) for one in values):
        energy = np.maximum(values[0], 0.0)
        for one in values[1:]:
            energy = np.multiply.outer(energy, np.maximum(one, 0.0))
        best = np.argsort(-energy, axis=None, kind="stable")[:rank]
        return list(np.unravel_index(best, energy.shape))
    least = min(len(one) for one in values)
    return [np.arange(least) for _ in values]


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
