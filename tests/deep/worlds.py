"""Small deep models in double precision, with images, labels and everything that a pass needs."""

import numpy as np

from kruskal.deep.network import build_network
from kruskal.deep.objective import Part, Terms
from kruskal.models.dgdn import DeepModel

TWO_LAYERS = {
    "image_shape": (9, 8, 1),
    "n_atoms": (3, 4),
    "atom_sizes": ((3, 2), (2, 3)),
    "poolings": ((2, 3),),
}
THREE_LAYERS = {  # partial blocks in both pooled layers, two channels
    "image_shape": (13, 12, 2),
    "n_atoms": (3, 4, 5),
    "atom_sizes": ((3, 3), (2, 2), (2, 1)),
    "poolings": ((3, 2), (2, 2)),
}
BOTH = Terms(1.0, 0.3)
WORLDS = {"two": TWO_LAYERS, "three": THREE_LAYERS}


class Threadless:
    """An engine of some parts, one after the other."""

    def __init__(self, n_shards=2):
        self.n_shards = n_shards

    def map(self, function):
        return [function(number) for number in range(self.n_shards)]


def make(world, rank, n_images=5, seed=0, n_classes=3, terms=BOTH, **options):
    """A model, its start with everything off zero, and a batch with one unlabelled image."""
    network = build_network(**WORLDS[world], n_classes=n_classes)
    model = DeepModel(network=network, rank=rank, terms=terms, weight_decay=0.01, **options)
    random = np.random.default_rng(seed)
    rows, columns, channels = network.image_shape
    images = random.random((n_images, rows, columns * channels))
    start = model.start(images, seed)
    pieces = model.packing.views(start.parameters)
    pieces["svm"][...] = random.normal(size=pieces["svm"].shape)
    pieces["svm_bias"][...] = 0.3 * random.normal(size=n_classes)
    for name, piece in pieces.items():
        if name.startswith(("biases", "weights")):
            piece += 0.1 * random.normal(size=piece.shape)
    labels = random.integers(0, n_classes, n_images)
    signs = np.where(np.arange(n_classes) == labels[:, None], 1.0, -1.0)
    signs[-1] = 0.0
    keep = (random.random((n_images, network.n_features)) > 0.3) / 0.7
    return model, start, Part(images, np.arange(n_images), signs, keep)
