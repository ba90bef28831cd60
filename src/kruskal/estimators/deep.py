"""Deep convolutional factor analysis, layer by layer: `kruskal.DeepCFA` and `kruskal.DeepCKFA`.

    >>> import numpy as np, kruskal
    >>> images = np.random.default_rng(0).random((12, 14, 14))
    >>> model = kruskal.DeepCKFA((4, 6), ((5, 5), (3, 3)), ((2, 2),), sweeps=3, threads=1).fit(images)
    >>> model.transform(images).shape[1] == 3 * 3 * len(model.atoms(2))
    True

The maps of a layer, pooled by blocks, are the images of the next one; its channels are the atoms that are
left after little-used ones are dropped.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np

from kruskal.data import refuse_constant, refuse_tiny
from kruskal.engines.progress import Progress, check_progress
from kruskal.engines.threads import check_threads
from kruskal.errors import InputError, check_seed, one_of, whole_number
from kruskal.estimators.convolutional import CFA
from kruskal.estimators.deep_layers import (
    FEATURES,
    LayerOptions,
    MapReader,
    check_map_sweeps,
    complete_images,
    image_shapes,
    layer_options,
    layer_seed,
    learn_layer,
    map_batches,
    map_shape,
    root_mean_square,
)
from kruskal.estimators.items import check_below_one, refuse_far_out
from kruskal.estimators.scikit import Transformer, refuse_mask
from kruskal.gibbs.conv_features import project
from kruskal.models.kruskal_prior import PROPER_ALPHA
from kruskal.random import Stream, generator


class DeepCFA(Transformer):
    """Several layers of `kruskal.CFA`, learned one after the other without labels.

    Parameters with one value per layer may be given as a single value for all.

    Parameters
    ----------
    n_atoms : number of atoms of every layer before little-used ones are dropped
    atom_sizes : (m_x, m_y) of every layer, or one number for both; two numbers for two layers are one for
        each
    pooling : (p_x, p_y) after every layer, or after all but the last: the entry of largest size of each block
        goes on, with its sign; while a layer is learned a block has at most one non-zero
    sweeps : Gibbs sweeps in which a layer is learned
    noise_precision : of the noise of a layer, whose input is scaled to a mean square of 1. It is fixed, as it
        would run away with maps that explain the noise as well. 5 here is 50 for MNIST in [0, 1]
    nonnegative : whether the maps have no negative values
    usage : ``shared`` or ``by_image``, see `kruskal.CFA`
    features : ``bottom-up`` (correlations with the atoms) or ``gibbs`` (posterior means): what a layer hands
        to the next one and to `transform`
    map_sweeps : (sweeps, burn_in) of these posterior means
    prune : atoms are dropped that are used less than this share of the mean use
    n_training : number of images, chosen at random, that the atoms are learned from (None: all)
    seed, threads : results depend on the seed and never on the number of threads (None: all cores)
    progress : told how far a fit is (`kruskal.engines.progress.Progress`)

    Attributes
    ----------
    layers_ : fitted `kruskal.CFA` or `kruskal.CKFA`, one per layer, pruned
    scales_ : root mean squares of the images and of the pooled maps of every layer, by which they are divided
    n_atoms_ : atoms left in every layer;  n_parameters_ : numbers that all dictionaries are made of
    n_features_ : features of every layer
    """

    layers_: list[CFA]

    def __init__(
        self, n_atoms: Any = (50, 200), atom_sizes: Any = ((8, 8), (6, 6)), pooling: Any = ((3, 3),), *,
        sweeps: Any = 30, noise_precision: Any = 5.0, nonnegative: Any = True, features: str = "bottom-up",
        map_sweeps: tuple[int, int] = (10, 5), prune: float = 0.05, n_training: int | None = None,
        seed: int = 0, threads: int | None = None, progress: Progress | None = None, usage: Any = "shared",
    ) -> None:  # fmt: skip
        self.n_atoms = n_atoms
        self.atom_sizes = atom_sizes
        self.pooling = pooling
        self.sweeps = sweeps
        self.noise_precision = noise_precision
        self.nonnegative = nonnegative
        self.features = features
        self.map_sweeps = map_sweeps
        self.prune = prune
        self.n_training = n_training
        self.seed = seed
        self.threads = threads
        self.progress = progress
        self.usage = usage

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn all layers from complete images (N, M_x, M_y) or (N, M_x, M_y, C); ``y`` is ignored."""
        layers = self._check()
        images = complete_images(X)
        refuse_mask(y, np.shape(X), "there is no mask, images must be complete")
        image_shapes(images.shape[1:], layers)
        name = "X"
        if self.n_training is not None and self.n_training < len(images):
            order = generator(self.seed, Stream.DEEP_IMAGES, 0).permutation(len(images))
            images = images[np.sort(order[: self.n_training])]
            name = f"the choice of n_training ({self.n_training}) images of X"
        refuse_constant(images, None, name)
        refuse_tiny(images, name, 1e-30)
        unit = root_mean_square(images, "X is zero everywhere")
        values = images.astype(np.float32) / np.float32(unit)
        models, scales = [], [unit]
        for number, layer in enumerate(layers, 1):
            name = f"layer {number} of {len(layers)}"
            seed = layer_seed(self.seed, number)
            model = learn_layer(layer, values, name, self.prune, seed, self.threads, self.progress)
            models.append(model)
            maps = self._read([self._reader(model)], [1.0, 1.0], values, [0])
            scales.append(root_mean_square(maps, f"the maps of layer {number} are zero everywhere"))
            values = (maps / np.float32(scales[-1])).reshape(len(maps), *map_shape(model))
        self._keep(models, scales)
        return self

    def transform(self, X: Any, layers: Any = None) -> np.ndarray:
        """Features (N, d) of images, float32: the scaled pooled maps of ``layers``, side by side.

        ``layers`` is a number from 1 or a list of them (None: the last).
        """
        self.refuse_unfitted()
        chosen = self._chosen(layers)
        images = complete_images(X)
        wanted = self.layers_[0].model_.image_shape
        if images.shape[1:] != wanted:
            raise InputError(f"X has images of shape {images.shape[1:]}, expected {wanted} as in fit")
        refuse_far_out(np.array(float(np.abs(images).max()) / self.scales_[0]))
        readers = [self._reader(model) for model in self.layers_[: max(chosen) + 1]]
        return self._read(readers, self.scales_[: len(readers) + 1], images, chosen)

    def atoms(self, layer: int) -> np.ndarray:
        """Atoms (K, m_x, m_y, C) of a layer (from 1), in its own units, those that are left."""
        self.refuse_unfitted()
        return self.layers_[whole_number("layer", layer, 1, len(self.layers_)) - 1].dictionary_

    def pixel_atoms(self, layer: int) -> np.ndarray:
        """Atoms of a layer (from 1) as the pictures (K, rows, columns, C) that they stand for."""
        atoms = self.atoms(layer)
        for model in reversed(self.layers_[: layer - 1]):
            atoms = project(atoms, model.dictionary_, model.pooling or (1, 1))
        return atoms

    def save(self, path: str | Path) -> None:
        """Write the fitted model to an npz file."""
        from kruskal.estimators.deep_file import save_deep

        self.refuse_unfitted()
        save_deep(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of `save`, of a model of this class."""
        from kruskal.estimators.deep_file import load_deep

        model = load_deep(path)
        if type(model) is not cls:
            raise InputError(f"{path} holds a {type(model).__name__}, which {cls.__name__} cannot use")
        return model

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "layers_")

    def _check(self) -> list[LayerOptions]:
        check_seed(self.seed)
        check_threads(self.threads)
        check_progress(self.progress)
        one_of("features", self.features, FEATURES)
        check_below_one("prune", self.prune)
        if self.n_training is not None:
            whole_number("n_training", self.n_training, 1)
        check_map_sweeps(self.map_sweeps)
        return layer_options(
            n_atoms=self.n_atoms, atom_sizes=self.atom_sizes, pooling=self.pooling, rank=self._rank(),
            sweeps=self.sweeps, noise_precision=self.noise_precision, nonnegative=self.nonnegative,
            usage=self.usage, alpha_prior=self._alpha_prior(),
        )  # fmt: skip

    def _rank(self) -> Any:
        return 0

    def _alpha_prior(self) -> Any:
        return PROPER_ALPHA  # nothing is drawn with it

    def _reader(self, model: CFA) -> MapReader:
        return MapReader(model, self.features, check_map_sweeps(self.map_sweeps))

    def _read(
        self, readers: list[MapReader], scales: list[float], images: np.ndarray, chosen: list[int]
    ) -> np.ndarray:
        """Features of the ``chosen`` layers (from 0) of all images."""
        widths = [int(np.prod(map_shape(readers[i].model))) for i in chosen]
        out = np.empty((len(images), sum(widths)), dtype=np.float32)
        places = np.cumsum([0, *widths])
        for batch, found in map_batches(readers, scales, images, check_threads(self.threads)):
            for i, first, stop in zip(chosen, places[:-1], places[1:]):
                out[batch, first:stop] = found[i].reshape(len(found[i]), -1)
        return out

    def _keep(self, models: list[CFA], scales: list[float]) -> None:
        self.layers_, self.scales_ = models, scales
        self.n_atoms_ = [model.n_atoms for model in models]
        self.n_parameters_ = sum(model.n_parameters_ for model in models)
        self.n_features_ = [int(np.prod(map_shape(model))) for model in models]

    def _chosen(self, layers: Any) -> list[int]:
        depth = len(self.layers_)
        several = isinstance(layers, list | tuple) or (isinstance(layers, np.ndarray) and layers.ndim == 1)
        wanted = [depth] if layers is None else list(layers) if several else [layers]
        if not wanted:
            raise InputError("layers is empty, expected numbers of layers")
        return [whole_number("layers", number, 1, depth) - 1 for number in wanted]


class DeepCKFA(DeepCFA):
    """Several layers of `kruskal.CKFA`: `DeepCFA` with atoms that are Kruskal tensors.

    Parameters
    ----------
    rank : number of Kruskal terms R that an atom over (x, y, channel) may have, at least 1
    alpha_prior : see `kruskal.CKFA`

    See `DeepCFA` for the others.
    """

    def __init__(
        self, n_atoms: Any = (50, 200), atom_sizes: Any = ((8, 8), (6, 6)), pooling: Any = ((3, 3),), *,
        rank: Any = 1, sweeps: Any = 30, noise_precision: Any = 5.0, nonnegative: Any = True,
        features: str = "bottom-up", map_sweeps: tuple[int, int] = (10, 5), prune: float = 0.05,
        n_training: int | None = None, seed: int = 0, threads: int | None = None,
        progress: Progress | None = None, usage: Any = "shared",
        alpha_prior: tuple[float, float] = PROPER_ALPHA,
    ) -> None:  # fmt: skip
        super().__init__(
            n_atoms, atom_sizes, pooling, sweeps=sweeps, noise_precision=noise_precision,
            nonnegative=nonnegative, features=features, map_sweeps=map_sweeps, prune=prune,
            n_training=n_training, seed=seed, threads=threads, progress=progress, usage=usage,
        )  # fmt: skip
        self.rank = rank
        self.alpha_prior = alpha_prior

    def _alpha_prior(self) -> Any:
        return self.alpha_prior

    def _rank(self) -> Any:
        ranks = self.rank if isinstance(self.rank, list | tuple | np.ndarray) else [self.rank]
        for rank in ranks:
            whole_number("rank", rank, 1)
        return self.rank
