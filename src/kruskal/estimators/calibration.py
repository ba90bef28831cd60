"""What the probabilities of a classifier need: items that are left out, and a word if there are none."""

import numpy as np

from kruskal.errors import InputError
from kruskal.random import Stream, generator


class NotCalibratedError(InputError, AttributeError):
    """Probabilities are asked of a classifier without calibration; it then has no such method."""


def even_folds(labels: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The fold (N,) of every item, at random; every class is spread evenly over the folds."""
    order = generator(seed, Stream.SVM_FOLDS, 0).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    fold_of = np.empty(len(labels), dtype=int)
    fold_of[order] = np.arange(len(labels)) % n_folds
    return fold_of
