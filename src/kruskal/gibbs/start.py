"""Starts by name: where the chain begins. The chain that follows is the same exact one for all of them.

``pca``: the leading eigenvectors of the second moment of the mean-filled items, each times three standard
deviations, turned into Kruskal terms; the other atoms random and weak. From there a few sweeps learn what
random atoms need a hundred for. ``random``: every atom from its prior.
"""

import math

import numpy as np

from kruskal.errors import one_of
from kruskal.patches import Items
from kruskal.tensor import decompose

STARTS = ("pca", "random")
_MOST_ITEMS = 20_000
_DENSE_LIMIT = 1_500


def check_start(name: str) -> str:
    """The name of a start, or an InputError that lists them."""
    return one_of("start", name, STARTS)


def evenly_spread(n_items: int) -> np.ndarray:
    """Numbers of at most 20,000 of the items: those that a start looks at."""
    numbers = np.linspace(0, n_items - 1, min(n_items, _MOST_ITEMS)).astype(np.int64)
    return numbers[np.diff(numbers, prepend=-1) > 0]


def principal_atoms(items: Items, n_atoms: int) -> np.ndarray:
    """Principal directions of the items: (n, P) with n = min(n_atoms, P), scaled by 3 standard deviations.

    At most 20,000 items, evenly spread, are used; missing entries take the mean of the observed ones.
    """
    n_entries = len(items.offset)
    chosen = evenly_spread(items.n_items)
    flat = items.flat
    if not items.complete:
        flat = np.where(items.observed, flat, flat[items.observed].mean(dtype=np.float64).astype(flat.dtype))
    moment = np.zeros((n_entries, n_entries))
    for part in np.array_split(chosen, max(1, len(chosen) // 2_000)):
        matrix = flat[items.origin[part][:, None] + items.offset[None, :]].astype(np.float64)
        moment += matrix.T @ matrix
    moment /= len(chosen)
    n_wanted = min(n_atoms, n_entries)
    values, vectors = leading_eigenvectors(moment, n_wanted)
    return (vectors * (3.0 * np.sqrt(np.maximum(values, 0.0)))).T


def leading_eigenvectors(moment: np.ndarray, n_wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues, descending, and vectors (P, n) with a sign that does not depend on the solver."""
    n_entries = len(moment)
    if not moment.any():  # any directions will do, and eigsh finds none
        return np.zeros(n_wanted), np.eye(n_entries, n_wanted)
    if n_entries > _DENSE_LIMIT and n_wanted < n_entries // 2:
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(moment, k=n_wanted, v0=np.ones(n_entries))
    else:
        values, vectors = np.linalg.eigh(moment)
    order = np.argsort(values)[::-1][:n_wanted]
    values, vectors = values[order], vectors[:, order]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return values, vectors * np.where(largest < 0, -1.0, 1.0)


def gaussian_start(name: str, items: Items, n_atoms: int, random: np.random.Generator) -> np.ndarray:
    """First dictionary (K, P) of a model with Gaussian atoms."""
    n_entries = len(items.offset)
    dictionary = random.standard_normal((n_atoms, n_entries)) / math.sqrt(n_entries)
    if name == "pca":
        principal = principal_atoms(items, n_atoms)
        dictionary *= 0.1
        dictionary[: len(principal)] = principal
    return dictionary


def kruskal_start(
    name: str, items: Items, n_atoms: int, rank: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """First weights (K, R) and factors (K, sum m_t, R) of a model with Kruskal atoms."""
    shape = items.shape
    weights = random.standard_normal((n_atoms, rank))
    factors = random.standard_normal((n_atoms, sum(shape), rank))
    factors /= np.sqrt(np.repeat(shape, shape))[None, :, None]
    if name == "pca":
        weights *= 0.1 / np.arange(1, rank + 1)
        for k, atom in enumerate(principal_atoms(items, n_atoms)):
            weights[k], factors[k] = decompose(atom.reshape(shape), rank)
    return weights, factors
