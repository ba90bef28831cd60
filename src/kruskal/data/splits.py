"""Training and test items, so many of each class, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kruskal.errors import InputError, whole_number

MOST_FOR_TEST = 50
SPLIT_STREAM = 41
"""Keeps splits apart from the other random numbers of a seed."""


def split_by_class(
    y: Any,
    n_train: int,
    n_test: int | None = MOST_FOR_TEST,
    seed: int = 0,
    classes: Sequence[str] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of training and test items; the protocol of the paper for Caltech 101.

    Parameters
    ----------
    y : (N,) classes, numbers or strings
    n_train : training items of every class, 15 or 30 in the paper
    n_test : test items of every class at most, drawn from what is left; None takes all that is left
    seed : of the draw
    classes : names that messages call the classes 0, 1, .. by

    Returns
    -------
    train, test : int arrays, sorted

    Raises
    ------
    InputError
        When a class has too few items to leave one for the test.
    """
    n_train = whole_number("n_train", n_train, 1)
    most = None if n_test is None else whole_number("n_test", n_test, 1)
    seed = whole_number("seed", seed, 0)
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) == 0:
        raise InputError(f"y has shape {labels.shape}, expected one class for each of at least one item")
    random = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, SPLIT_STREAM])))
    train, test = [], []
    for name in np.unique(labels):
        items = random.permutation(np.flatnonzero(labels == name))
        if len(items) <= n_train:
            called = name if classes is None else classes[name]
            raise InputError(
                f"class {called} has {len(items)} items, expected more than n_train = {n_train}, "
                "so that some are left for the test"
            )
        train.append(items[:n_train])
        test.append(items[n_train:] if most is None else items[n_train : n_train + most])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))
