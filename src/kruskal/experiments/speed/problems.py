"""The arrays that are measured: a real picture where there is one, mirrored to any size; a made-up volume."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kruskal.data import Corrupted, Scaling, corrupt, datasets
from kruskal.defaults import Look
from kruskal.errors import InputError
from kruskal.experiments.speed.plan import DAMAGE_SEED, ENGINE_SEED
from kruskal.patches import Items, cut
from kruskal.settings import Settings, resolve

PICTURE_SIDE = 256
_VOLUME_SEED = 20
_N_GRATINGS = 24
_GRAIN = 3.0


class Source(NamedTuple):
    """An array and what it is."""

    values: np.ndarray
    name: str


class Problem(NamedTuple):
    """A damaged array, cut into items, with the settings that `kruskal.inpaint` would choose for it."""

    damaged: Corrupted
    scaling: Scaling
    settings: Settings
    items: Items


def picture() -> Source:
    """Barbara, 256x256 uint8, where the data folder is found, else a picture that scikit-image brings."""
    try:
        return Source(datasets.load("barbara256").values, "barbara256")
    except InputError:
        from skimage.data import camera

        crop = np.ascontiguousarray(camera()[100 : 100 + PICTURE_SIDE, 130 : 130 + PICTURE_SIDE])
        return Source(crop, "camera of scikit-image (barbara256 was not found)")


def brain(side: int) -> Source:
    """A cube from the middle of BrainWeb's phantom where it is found, else a made-up volume."""
    try:
        values = datasets.load("brainweb").values
    except InputError:
        return Source(volume((side,) * 3), "made-up volume (brainweb was not found)")
    first = [(size - side) // 2 for size in values.shape]
    return Source(values[tuple(slice(start, start + side) for start in first)].copy(), "brainweb")


def mirrored(values: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The middle of an array, or the array continued by its mirror images, in any shape of its order."""
    for axis, size in enumerate(shape):
        have = values.shape[axis]
        if size <= have:
            start = (have - size) // 2
            values = values.take(range(start, start + size), axis=axis)
        else:
            width = [(0, size - have if other == axis else 0) for other in range(values.ndim)]
            values = np.pad(values, width, mode="symmetric")
    return values


def volume(shape: Sequence[int]) -> np.ndarray:
    """A textured array of any order: gratings of many directions in windows of their own, with some grain.

    Returns float64 whole numbers in 0..255; the same for the same shape.
    """
    random = np.random.default_rng(_VOLUME_SEED)
    places = np.stack(np.meshgrid(*(np.arange(size) for size in shape), indexing="ij"), axis=-1).astype(float)
    total = np.zeros(tuple(shape))
    for _ in range(_N_GRATINGS):
        direction = random.standard_normal(len(shape))
        direction *= 2 * np.pi / (random.uniform(4, 20) * np.linalg.norm(direction))
        centre = random.uniform(0, 1, len(shape)) * np.array(shape)
        spread = random.uniform(0.2, 0.5) * max(shape)
        window = np.exp(-((places - centre) ** 2).sum(axis=-1) / (2 * spread**2))
        total += window * np.sin(places @ direction + random.uniform(0, 2 * np.pi))
    total = 127.5 + 100.0 * total / max(float(np.abs(total).max()), 1e-12)
    return np.clip(np.rint(total + _GRAIN * random.standard_normal(total.shape)), 0, 255)


def grid_sides(n_items: int, order: int) -> tuple[int, ...]:
    """Whole numbers, as equal as possible, whose product is ``n_items``."""
    if order == 1:
        return (n_items,)
    side = max(1, round(n_items ** (1.0 / order)))
    while n_items % side:
        side -= 1
    return (side, *grid_sides(n_items // side, order - 1))


def textured(n_items: int, patch_shape: Sequence[int]) -> Source:
    """An array with exactly ``n_items`` patches at stride 1: from the picture, or a volume."""
    sides = grid_sides(n_items, len(patch_shape))
    shape = [side + patch - 1 for side, patch in zip(sides, patch_shape)]
    if len(shape) != 2:
        return Source(volume(shape), "made-up volume")
    source = picture()
    return Source(mirrored(source.values, shape), f"{source.name}, cropped or mirrored")


def make_problem(values: np.ndarray, keep: float, patch_shape: Sequence[int], n_atoms: int) -> Problem:
    """Drop entries and cut, with the defaults of `kruskal.inpaint` for all that is not given, stride 1."""
    damaged = corrupt(values, keep=keep, seed=DAMAGE_SEED)
    return prepare(damaged, patch_shape, n_atoms)


def prepare(damaged: Corrupted, patch_shape: Sequence[int], n_atoms: int) -> Problem:
    """What `kruskal.inpaint` does before its first sweep, for a damaged array; plain sweeps, no annealing."""
    values, observed = damaged
    scaling = Scaling.fit(values, observed)
    settings = resolve(
        values.shape, patch_shape=patch_shape, stride=1, n_atoms=n_atoms, annealing=0,
        seed=ENGINE_SEED, look=Look.at(values, observed, scaling.scale),
    )  # fmt: skip
    scaled = scaling.forward(np.where(observed, values, 0))
    items = cut(scaled, observed, settings.grid, settings.regions)
    return Problem(damaged, scaling, settings, items)


def n_entries(patch_shape: Sequence[int]) -> int:
    """Entries P of a patch."""
    return math.prod(patch_shape)
