"""The models of whole images beside the dense convolutions that they must contain, by im2col and BLAS."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from kruskal.data import datasets
from kruskal.engines.progress import Silent
from kruskal.errors import InputError
from kruskal.experiments.caltech101_pictures import read_pictures
from kruskal.experiments.speed.measure import best_of, peak_memory
from kruskal.experiments.speed.plan import DAMAGE_SEED, ENGINE_SEED, Plan
from kruskal.experiments.speed.problems import Source, mirrored, picture

_SIDE, _PICTURE_SIDE = 28, 128
_LAYERS = ((36, 8), (152, 6))
_POOL = 3
_BATCH = 100
_GENERATIVE = 0.002  # weight of the reconstruction, so that a step contains the synthesis as well
_AT_ONCE = 200  # images whose patches are laid out at once
_ROUNDS = 5


class Atoms(NamedTuple):
    """So many square atoms of so many rows."""

    number: int
    size: int


_OF_DIGITS, _OF_PICTURES = Atoms(50, 8), Atoms(64, 16)


class Clock(Silent):
    """Listens to a run and notes when it told of which sweep or step."""

    def __init__(self) -> None:
        self.told: list[tuple[int, float]] = []

    def update(self, done: int, values: Mapping[str, float]) -> None:
        """Note the time."""
        self.told.append((done, time.perf_counter()))

    def seconds_of_one(self, last: int) -> float:
        """The fastest of the last so many intervals, per sweep or step."""
        pairs = list(zip(self.told, self.told[1:]))[-last:]
        return min((after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs)


def images(plan: Plan, threads: int) -> dict[str, Any]:
    """One Gibbs sweep of CKFA over digits and over pictures, and one step of DGDN with 100 digits."""
    source, pictures = digits(plan.n_images), larger_pictures(plan.n_pictures)
    return {
        "array": source.name,
        "picture_array": pictures.name,
        "threads": threads,
        "sweep": _sweep(source.values, _OF_DIGITS, plan.image_sweeps, threads),
        "picture_sweep": _sweep(pictures.values, _OF_PICTURES, plan.image_sweeps, threads),
        "step": _step(source.values[: plan.n_trained], plan.train_steps, threads),
    }


def digits(n_images: int) -> Source:
    """Training images of MNIST where it is found, else strokes that are made up; float32 in 0..1."""
    try:
        values = datasets.load("mnist").train_images[:n_images]
        return Source(values.astype(np.float32) / np.float32(255), "mnist")
    except InputError:
        random = np.random.default_rng(DAMAGE_SEED)
        rows, columns = np.mgrid[:_SIDE, :_SIDE].astype(np.float32)
        made = np.zeros((n_images, _SIDE, _SIDE), np.float32)
        for image in made:
            for _ in range(3):
                x, y, angle = random.uniform(6, 22), random.uniform(6, 22), random.uniform(0, np.pi)
                along = (rows - x) * np.cos(angle) + (columns - y) * np.sin(angle)
                across = (columns - y) * np.cos(angle) - (rows - x) * np.sin(angle)
                np.maximum(image, (np.abs(along) < 6) * np.exp(-(across**2) / 2), out=image)
        return Source(made, "made-up strokes (mnist was not found)")


def larger_pictures(n_pictures: int) -> Source:
    """Pictures of Caltech 101 where it is found, else cut from another one; 128x128, normalised contrast."""
    side = _PICTURE_SIDE
    try:
        found = datasets.load("caltech101")
        chosen = np.linspace(0, len(found) - 1, n_pictures).astype(int)
        return Source(read_pictures(found, chosen, side), "caltech101")
    except InputError:
        random = np.random.default_rng(DAMAGE_SEED)
        whole = mirrored(picture().values, (8 * side,) * 2).astype(np.float32)
        cut = [whole[x : x + side, y : y + side] for x, y in random.integers(0, 7 * side, (n_pictures, 2))]
        made = np.stack([(values - values.mean()) / (values.std() + 1.0) for values in cut])
        return Source(made, "parts of one picture (caltech101 was not found)")


def _sweep(values: np.ndarray, atoms: Atoms, sweeps: int, threads: int) -> dict[str, Any]:
    from kruskal.estimators.convolutional import CKFA

    shape = atoms.number, (atoms.size, atoms.size)
    CKFA(*shape, rank=1, sweeps=4, seed=ENGINE_SEED, threads=threads).fit(values[:50])  # compiles
    clock = Clock()
    model = CKFA(*shape, rank=1, sweeps=sweeps, seed=ENGINE_SEED, threads=threads, progress=clock).fit(values)
    peak = peak_memory()
    random = np.random.default_rng(ENGINE_SEED)
    dense_atoms = random.standard_normal((atoms.size**2, atoms.number)).astype(np.float32)
    with threadpool_limits(limits=threads):
        dense = best_of(lambda: _correlate_all(values, dense_atoms, atoms.size), 2)
    seconds = clock.seconds_of_one(3)
    return {
        "n_images": len(values),
        "active_per_image": float(model.trace_["active_per_image"][-1]),
        "seconds": seconds,
        "dense_seconds": dense,
        "to_dense": seconds / dense,
        "peak_bytes": peak,
    }


def _step(values: np.ndarray, steps: int, threads: int) -> dict[str, Any]:
    from kruskal.estimators.deep_generative import DGDN

    clock = Clock()
    labels = np.arange(len(values)) % 10
    n_atoms, sizes = zip(*_LAYERS)
    DGDN(
        n_atoms=n_atoms, atom_sizes=sizes, pooling=(_POOL,), epochs=1, least_steps=steps, batch_size=_BATCH,
        generative=_GENERATIVE, seed=ENGINE_SEED, threads=threads, progress=clock,
    ).fit(values, labels)  # fmt: skip
    with threadpool_limits(limits=threads):
        dense = best_of(_two_convolutions(values[:_BATCH]), _ROUNDS)
    seconds = clock.seconds_of_one(_ROUNDS)
    return {"batch": _BATCH, "seconds": seconds, "dense_seconds": dense, "to_dense": seconds / dense}


def _two_convolutions(batch: np.ndarray) -> Callable[[], None]:
    """Analysis and synthesis of a minibatch by both layers: correlations with the atoms, and transposes."""
    random = np.random.default_rng(ENGINE_SEED)
    (first, m), (second, n) = _LAYERS
    maps = (_SIDE - m + 1) // _POOL
    below = random.standard_normal((len(batch), maps, maps, first)).astype(np.float32)
    lower = random.standard_normal((m * m, first)).astype(np.float32)
    upper = random.standard_normal((n * n * first, second)).astype(np.float32)

    def run() -> None:
        for values, size, atoms in ((batch[..., None], m, lower), (below, n, upper)):
            shape = values.shape
            weights = _columns(values, size) @ atoms
            _scatter(weights @ atoms.T, shape, size)

    return run


def _correlate_all(values: np.ndarray, atoms: np.ndarray, size: int) -> None:
    """All images with all atoms, some images at a time, each result forgotten."""
    at_once = max(1, _AT_ONCE * _SIDE**2 // values[0].size)
    for first in range(0, len(values), at_once):
        _columns(values[first : first + at_once].reshape(-1, *values.shape[1:3], 1), size) @ atoms


def _columns(values: np.ndarray, size: int) -> np.ndarray:
    """(places, size^2 C) patches of images (n, M_x, M_y, C), laid out for a matrix product."""
    view = np.lib.stride_tricks.sliding_window_view(values, (size, size), axis=(1, 2))
    return view.transpose(0, 1, 2, 4, 5, 3).reshape(-1, size * size * values.shape[-1])


def _scatter(patches: np.ndarray, shape: tuple[int, ...], size: int) -> np.ndarray:
    """The transpose of `_columns`: patches added up where they overlap."""
    n_images, rows, columns, channels = shape
    inner = rows - size + 1, columns - size + 1
    patches = patches.reshape(n_images, *inner, size, size, channels)
    total = np.zeros(shape, patches.dtype)
    for x in range(size):
        for y in range(size):
            total[:, x : x + inner[0], y : y + inner[1]] += patches[:, :, :, x, y]
    return total
