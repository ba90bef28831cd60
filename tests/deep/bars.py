"""Small pictures of bars: classes are told apart by which bars there are, wherever they lie."""

import numpy as np

SIZES = {"n_atoms": (8, 12), "atom_sizes": (4, 3), "pooling": (2,)}


def bars(n_images, seed=0, size=12):
    """(images in [0, 1], labels): horizontal, vertical and diagonal bars at random places, with noise."""
    random = np.random.default_rng(seed)
    images = 0.1 * random.random((n_images, size, size))
    labels = random.integers(0, 3, n_images)
    for image, label in zip(images, labels):
        x, y = random.integers(0, size - 5, 2)
        along = np.arange(6)
        across = np.zeros(6, int)
        rows, columns = ((across, along), (along, across), (along, along))[label]
        image[x + rows, y + columns] = 1.0
    return images.astype(np.float32), labels
