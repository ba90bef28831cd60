"""What the probabilities of a classifier need: items that are left out, and a word if there are none."""

from typing import Any, NamedTuple

import numpy as np

from kruskal.errors import InputError
from kruskal.estimators.classifier import label_array
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


class Groups(NamedTuple):
    """Items that are copies of one thing.

    Attributes
    ----------
    of_item : (N,) the group of every item, from 0;  labels : (G,) the class of every group
    """

    of_item: np.ndarray
    labels: np.ndarray

    def means(self, decisions: np.ndarray) -> np.ndarray:
        """Decisions (G, Y) of the groups from those of the items (N, Y)."""
        total = np.zeros((len(self.labels), decisions.shape[1]))
        np.add.at(total, self.of_item, decisions)
        return total / np.bincount(self.of_item)[:, None]


def check_groups(groups: Any, labels: np.ndarray) -> Groups:
    """Groups (N,) of items with these classes; None is every item by itself."""
    if groups is None:
        return Groups(np.arange(len(labels)), labels)
    given = label_array(groups, "groups")
    if given.shape != labels.shape:
        raise InputError(f"groups has shape {given.shape}, expected one group for each item, {labels.shape}")
    try:
        _, first, of_item = np.unique(given, return_index=True, return_inverse=True)
    except TypeError:
        raise InputError(
            "groups mixes values that cannot be ordered, expected all numbers or all strings"
        ) from None
    if (labels[first][of_item] != labels).any():
        raise InputError("groups has items of different classes in one group, expected one class in each")
    return Groups(of_item, labels[first])
