"""Caltech 101 as the experiments see it: pictures of one size with normalised contrast, and random splits."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

COUNTS = (15, 30)
"""Training pictures of each class."""


class Split(NamedTuple):
    """Indices of training and test pictures, those from which atoms may be learned, and all labels."""

    train: np.ndarray
    test: np.ndarray
    learned: np.ndarray
    labels: np.ndarray


def split_pictures(pictures: list[tuple[Path, str]], count: int, seed: int) -> Split:
    """``count`` training pictures of each class, and up to 50 others to be tested.

    Those of 15 per class are among those of 30, and none of them is ever tested: atoms that both share are
    learned from them.
    """
    from kruskal.data import split_by_class

    labels = np.array([label for _, label in pictures])
    learned, _ = split_by_class(labels, min(COUNTS), seed=seed)
    return Split(*split_by_class(labels, count, seed=seed), learned, labels)


def read_pictures(pictures: list[tuple[Path, str]], which: np.ndarray, side: int) -> np.ndarray:
    """Grey pictures (n, side, side, 1) with normalised local contrast."""
    from kruskal.data import normalize_contrast, resize
    from kruskal.data.labelled import read_picture, unit_range, with_channels

    made = [with_channels(unit_range(read_picture(pictures[i][0])), "grey") for i in which]
    return normalize_contrast(np.stack([resize(picture, side) for picture in made]))


def layer_atoms(model: Any, layers: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Atoms of the layers in pixels, by ``layer1`` and so on, for a gallery."""
    return {f"layer{layer}": model.pixel_atoms(layer)[..., 0].astype(np.float32) for layer in layers}
