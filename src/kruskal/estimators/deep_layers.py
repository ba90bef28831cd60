"""Options of a deep model, one value per layer, and how images pass through its layers in batches."""

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kruskal.data import refuse_constant, refuse_huge
from kruskal.engines.progress import Progress, check_progress
from kruskal.engines.threads import Threads
from kruskal.errors import InputError, flag, one_of, positive_number, shown, whole_number
from kruskal.estimators.convolutional import CFA, CKFA
from kruskal.estimators.image_batches import image_batch, pair_of_sizes
from kruskal.estimators.image_options import USAGES, check_alpha_prior
from kruskal.gibbs.conv_features import bottom_up, pool_maps, unit_atoms
from kruskal.gibbs.local import MOST_ATOMS
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.random import Stream, generator
from kruskal.tensor import refuse_impossible_rank

FEATURES = ("bottom-up", "gibbs")
_LARGEST_BATCH = 2**24  # numbers that the windows or maps of a batch may have
_MOST_IMAGES = 512


class LayerOptions(NamedTuple):
    """What is asked of one layer; see `kruskal.DeepCKFA`."""

    n_atoms: int
    atom_size: tuple[int, int]
    pooling: tuple[int, int]
    rank: int
    sweeps: int
    noise_precision: float
    nonnegative: bool
    usage: str
    alpha_prior: AlphaPrior


def layer_options(
    *, n_atoms: Any, atom_sizes: Any, pooling: Any, rank: Any, sweeps: Any, noise_precision: Any,
    nonnegative: Any, usage: Any, alpha_prior: Any,
) -> list[LayerOptions]:  # fmt: skip
    """The options of every layer; a single value stands for all layers."""
    counts = [whole_number("n_atoms", count, 1, MOST_ATOMS) for count in _several("n_atoms", n_atoms, None)]
    depth = len(counts)
    sizes = _several("atom_sizes", atom_sizes, depth, pairs=True)
    blocks = list(pooling) if _is_list(pooling) else pooling
    if _is_list(blocks) and len(blocks) == depth - 1:
        blocks = [*blocks, (1, 1)]  # none after the last layer
    blocks = _several("pooling", blocks, depth, pairs=True)
    ranks, sweep_counts = _several("rank", rank, depth), _several("sweeps", sweeps, depth)
    precisions = _several("noise_precision", noise_precision, depth)
    signs, usages = _several("nonnegative", nonnegative, depth), _several("usage", usage, depth)
    return [
        LayerOptions(
            counts[i],
            pair_of_sizes("atom_sizes", sizes[i]),
            pair_of_sizes("pooling", blocks[i]),
            whole_number("rank", ranks[i], 0),
            whole_number("sweeps", sweep_counts[i], 1),
            positive_number("noise_precision", precisions[i]),
            flag("nonnegative", signs[i]),
            one_of("usage", usages[i], USAGES),
            check_alpha_prior(alpha_prior),
        )
        for i in range(depth)
    ]


def check_map_sweeps(value: Any) -> tuple[int, int]:
    """(sweeps, burn_in), of which the second is smaller."""
    try:
        sweeps, burn_in = value
    except (TypeError, ValueError):
        raise InputError(f"map_sweeps must be (sweeps, burn_in), not {shown(value)}") from None
    sweeps = whole_number("map_sweeps", sweeps, 1)
    return sweeps, whole_number("map_sweeps", burn_in, 0, sweeps - 1)


def complete_images(X: Any) -> np.ndarray:
    """Images (N, M_x, M_y, C) of which nothing is missing."""
    images, seen, _ = image_batch(X, None)
    if not seen.all():
        missing = int(seen.size - np.count_nonzero(seen))
        raise InputError(f"X has {missing} missing entries, expected complete images")
    refuse_huge(images, "X")
    return images


def image_shapes(image_shape: tuple[int, ...], layers: Sequence[LayerOptions]) -> list[tuple[int, int]]:
    """Rows and columns of the pooled maps of every layer, or an InputError where atoms cannot be."""
    rows, columns, channels = image_shape
    shapes = []
    for number, layer in enumerate(layers, 1):
        rows, columns = rows - layer.atom_size[0] + 1, columns - layer.atom_size[1] + 1
        if min(rows, columns) < 1:
            a, b = layer.atom_size
            raise InputError(
                f"atom_sizes of layer {number} are {a}x{b}, expected at most "
                f"{rows + a - 1}x{columns + b - 1}, the size of what the layer is given"
            )
        refuse_impossible_rank(layer.rank, (*layer.atom_size, channels), f" of layer {number}")
        channels = layer.n_atoms  # pruning may leave fewer
        rows, columns = -(-rows // layer.pooling[0]), -(-columns // layer.pooling[1])
        shapes.append((rows, columns))
    return shapes


def layer_seed(seed: int, number: int) -> int:
    """Layer ``number`` (from 1) has random numbers of its own; the first has those of `kruskal.CFA`."""
    return seed if number == 1 else int(generator(seed, Stream.DEEP_LAYERS, number).integers(2**63))


def one_layer(layer: LayerOptions, seed: int, threads: int | None, progress: Progress | None = None) -> CFA:
    """The estimator of one layer, with a seed of its own."""
    options: dict[str, Any] = {
        "pooling": layer.pooling, "nonnegative": layer.nonnegative, "sweeps": layer.sweeps,
        "noise_std": layer.noise_precision**-0.5, "usage": layer.usage, "seed": seed, "threads": threads,
        "progress": progress,
    }  # fmt: skip
    if layer.rank:
        options |= {"rank": layer.rank, "alpha_prior": layer.alpha_prior}
        return CKFA(layer.n_atoms, layer.atom_size, **options)
    return CFA(layer.n_atoms, layer.atom_size, **options)


def learn_layer(
    layer: LayerOptions, values: np.ndarray, name: str, prune: float, seed: int, threads: int | None,
    progress: Progress | None,
) -> CFA:  # fmt: skip
    """One layer, learned from ``values`` (N, M_x, M_y, C) and pruned; ``name`` is what messages call it."""
    progress = check_progress(progress)
    refuse_constant(values, None, f"what {name} is given")
    size = "x".join(map(str, (*layer.atom_size, values.shape[3])))
    progress.note(f"{name}: {layer.n_atoms} atoms of {size} from {len(values)} images")
    began = time.perf_counter()
    model = one_layer(layer, seed, threads, progress).fit(values)
    seconds = time.perf_counter() - began
    kept = model.usage_ > prune * model.usage_.mean()
    if not kept.any():
        raise InputError(
            f"{name} uses none of its atoms, expected a larger noise_precision than {layer.noise_precision:g}"
        )
    model.keep_atoms(kept)
    pace = layer.sweeps * len(values) / max(seconds, 1e-9)
    progress.note(f"{name}: {kept.sum()} atoms kept, {pace:.0f} images per second and sweep")
    return model


def map_shape(model: CFA) -> tuple[int, int, int]:
    """(rows, columns, K) of the pooled maps of a layer."""
    return (*model.model_.layout.grid, model.n_atoms)


def root_mean_square(values: np.ndarray, problem: str) -> float:
    """Of all entries; the ``problem`` is that it is 0."""
    largest = float(np.abs(values).max())
    if largest == 0.0:
        raise InputError(f"{problem}, expected images that differ from zero")
    unit = 2.0 ** min(math.frexp(largest)[1], 127)  # squares stay in the range of float32
    squares = np.square(values / np.float32(unit), dtype=np.float32)
    return unit * float(np.sqrt(np.mean(squares, dtype=np.float64)))


class MapReader:
    """Reads the pooled maps of one layer, batch by batch, by one pass or by Gibbs sampling.

    Parameters
    ----------
    model : the layer, fitted
    features : ``bottom-up`` or ``gibbs``
    sweeps : (sweeps, burn_in) of Gibbs sampling
    """

    def __init__(self, model: CFA, features: str, sweeps: tuple[int, int]) -> None:
        self.model, self.features, self.sweeps = model, features, sweeps
        self.atoms = unit_atoms(model.dictionary_).astype(np.float32)
        self.pooling = model.pooling or (1, 1)

    @property
    def images_at_once(self) -> int:
        """How many images make a batch; it depends on sizes alone."""
        n_places = int(np.prod(self.model.model_.layout.map_shape))
        size = n_places * max(self.atoms[0].size, len(self.atoms))
        return max(1, min(_MOST_IMAGES, _LARGEST_BATCH // size))

    def read(self, images: np.ndarray, first: int) -> np.ndarray:
        """Pooled maps (n, rows, columns, K), float32, of a batch whose images have numbers from ``first``."""
        if self.features == "gibbs":
            maps = self.model.read_maps(images, None, *self.sweeps, first=first)
            return pool_maps(np.ascontiguousarray(maps.transpose(0, 2, 3, 1)), self.pooling)
        values = self.model.scaling_.forward(images)
        return bottom_up(values, self.atoms, self.pooling, self.model.nonnegative)


def through(
    readers: Sequence[MapReader], scales: Sequence[float], images: np.ndarray, batch: slice
) -> list[np.ndarray]:
    """Scaled pooled maps of a batch of images at every layer; ``scales`` has one more, that of images."""
    values, found = images[batch].astype(np.float32) / np.float32(scales[0]), []
    for reader, scale in zip(readers, scales[1:], strict=True):
        values = reader.read(values, batch.start) / np.float32(scale)
        found.append(values)
    return found


def map_batches(
    readers: Sequence[MapReader], scales: Sequence[float], images: np.ndarray, threads: int
) -> Iterator[tuple[slice, list[np.ndarray]]]:
    """`through` for all images, in order; the batches do not depend on the number of threads."""
    size = min(reader.images_at_once for reader in readers)
    batches = [slice(i, min(i + size, len(images))) for i in range(0, len(images), size)]
    if any(reader.features == "gibbs" for reader in readers):  # which has threads of its own
        for batch in batches:
            yield batch, through(readers, scales, images, batch)
        return
    for i in range(0, len(batches), threads):
        some = batches[i : i + threads]
        with Threads(some, threads) as engine:
            yield from zip(some, engine.map(lambda batch: through(readers, scales, images, batch)))


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _several(name: str, value: Any, depth: int | None, pairs: bool = False) -> list[Any]:
    """One value per layer from a list, or from a single value, which may be a pair.

    Two numbers for two layers are one for each, as `kruskal.DGDN` has them.
    """
    pair = pairs and depth != 2 and _is_list(value) and len(value) == 2 and not any(map(_is_list, value))
    single = pair or not _is_list(value)
    found = [value] * (depth or 1) if single else list(value)
    if not found and depth is None:
        raise InputError(f"{name} is empty, expected one entry for each layer")
    if depth is not None and len(found) != depth:
        raise InputError(f"{name} has {len(found)} entries, expected one for each of {depth} layers")
    return found
