"""A deep model that begins with the atoms of layers that were learned without labels."""

import math
from pathlib import Path
from typing import Any, NamedTuple

from kruskal.engines.pretraining import LayerStart, layer_start
from kruskal.errors import InputError, not_negative, shown
from kruskal.estimators.deep import DeepCFA
from kruskal.estimators.deep_file import load_deep
from kruskal.estimators.deep_settings import Images


class Given(NamedTuple):
    """sizes : ``n_atoms``, ``atom_sizes`` and ``pooling`` of the layers;  layers : their atoms, with offsets
    in units of the images that they were learned from;  channels : of these images."""

    sizes: dict[str, Any]
    layers: list[LayerStart]
    channels: int

    @property
    def offset(self) -> float:
        """That of the images."""
        return self.layers[0].offset

    def for_images(self, images: Images) -> "Given":
        """With offsets in units of these images; an InputError for other channels, or values far away."""
        if images.shape[2] != self.channels:
            raise InputError(
                f"X has images with {images.shape[2]} channels, expected {self.channels} as those that start "
                "was learned from"
            )
        unit = images.divisor or 1
        offset, low, high = self.offset, images.values.min() * unit, images.values.max() * unit
        if offset and not low <= offset <= high:
            raise InputError(
                f"X has values of {low:g} to {high:g}, but start was learned from values around {offset:g}: "
                "give images in the same unit"
            )
        return self._replace(layers=[one._replace(offset=one.offset / unit) for one in self.layers])

    def after(self, offset: float) -> "Given":
        """For images that are less an offset: what is left of that of the first layer."""
        first = self.layers[0]._replace(offset=self.offset - offset)
        return self._replace(layers=[first, *self.layers[1:]])


def given_start(options: dict[str, Any]) -> Given | None:
    """What a fitted `kruskal.DeepCFA`, or the path of its file, gives to a model with these options."""
    start, atoms, rank = options["start"], options["atoms"], options["rank"]
    if start is None:
        return None
    if options["pretrain"]:
        raise InputError("start is given and pretrain is True, expected one of them")
    if options["epochs"] == 0 and options["svm"] == "trained":
        raise InputError("epochs is 0 and svm is 'trained': nothing would be learned from the labels")
    if options["epochs"] == 0 and not_negative("generative", options["generative"]) > 0.0:
        raise InputError("epochs is 0 and generative above 0: the noise is learned in training")
    model = load_deep(start) if isinstance(start, (str, Path)) else start
    if not isinstance(model, DeepCFA):
        raise InputError(f"start must be a fitted DeepCFA or DeepCKFA, its file, or None, not {shown(start)}")
    model.refuse_unfitted()
    for number, layer in enumerate(model.layers_, 1):
        if atoms == "kruskal" and layer.model_.rank != rank:
            raise InputError(
                f"start has atoms of rank {layer.model_.rank} in layer {number}, expected {rank}, the rank "
                "of this model (0: not Kruskal tensors)"
            )
    sizes = {
        "n_atoms": model.n_atoms_,
        "atom_sizes": [layer.model_.layout.atom_size for layer in model.layers_],
        "pooling": [layer.model_.layout.pooling for layer in model.layers_[:-1]],
    }
    starts, unit = [], model.scales_[0]
    for layer, scale in zip(model.layers_, model.scales_[1:]):
        layout, scaling = layer.model_.layout, layer.scaling_
        starts.append(layer_start(layer.state_, layout, unit * scaling.offset))
        unit *= scaling.scale * scale * math.sqrt(math.prod(layout.atom_shape))  # the norm of the atoms
    return Given(sizes, starts, model.layers_[0].model_.layout.atom_shape[2])
