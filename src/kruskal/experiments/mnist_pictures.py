"""Pictures of a deep model of digits: what is kept of it, and the rows of a gallery."""

from pathlib import Path
from typing import Any

import numpy as np

from kruskal.experiments.gallery import Tile, atom_mosaic, grey, read_arrays
from kruskal.random import Stream, generator

_SHOWN = 10
_SCALE = 3


def pictures_of(model: Any, images: np.ndarray) -> dict[str, np.ndarray]:
    """Atoms of both layers in pixels, samples, and some images with what the model makes of them."""
    some = images[:_SHOWN].astype(np.float32) / 255
    observed = generator(0, Stream.DEEP_SAMPLES, 2**32).random(some.shape) < 0.5
    return {
        "layer1": model.pixel_atoms(1)[..., 0],
        "layer2": model.pixel_atoms(2)[..., 0],
        "samples": model.sample(2 * _SHOWN),
        "images": some,
        "reconstructed": model.reconstruct(some),
        "damaged": np.where(observed, some, np.nan),
        "completed": model.inpaint(some, observed),
    }


def rows_of(folder: Path, key: str, label: str) -> list[list[Tile | None]]:
    """Rows of the gallery for one model, none when its arrays are gone."""
    arrays = read_arrays(folder, key)
    if arrays is None:
        return []
    atoms: list[Tile | None] = [
        Tile(f"{label}: atoms of layer {layer}", atom_mosaic(arrays[f"layer{layer}"], scale))
        for layer, scale in ((1, _SCALE), (2, 1))
    ]
    digits: list[Tile | None] = [
        Tile(f"{name}", _strip(arrays[name]))
        for name in ("samples", "images", "reconstructed", "damaged", "completed")
    ]
    return [atoms, digits[:1], digits[1:3], digits[3:]]


def _strip(pictures: np.ndarray) -> np.ndarray:
    """Pictures side by side, ten in a row."""
    rows = [np.hstack(list(pictures[first : first + _SHOWN])) for first in range(0, len(pictures), _SHOWN)]
    return grey(np.vstack(rows), 0.0, 1.0, 2)
