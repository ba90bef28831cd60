"""Convolutional factor analysis of images: the estimators `kruskal.CFA` and `kruskal.CKFA`.

    >>> import numpy as np, kruskal
    >>> images = np.random.default_rng(0).random((10, 12, 12))
    >>> model = kruskal.CKFA(n_atoms=4, atom_size=(5, 5), rank=1, sweeps=3).fit(images)
    >>> model.dictionary_.shape, model.transform(images).shape
    ((4, 5, 5, 1), (10, 4, 8, 8))

Images have shape (N, M_x, M_y) or, with channels, (N, M_x, M_y, C). Missing entries are NaN or False in
``observed``. A single picture is a batch of one: `fit_reconstruct` fills it in.
"""

from typing import Any, Self

import numpy as np

from kruskal.data.arrays import real_array, refuse_infinite
from kruskal.data.masks import refuse_masked
from kruskal.engines.progress import Progress
from kruskal.engines.threads import ImageThreads
from kruskal.errors import InputError, flag, whole_number
from kruskal.estimators.image_batches import Moments, Reconstruction, image_batch
from kruskal.estimators.image_learning import ImageLearner, Model
from kruskal.estimators.image_options import ImageOptions, image_options
from kruskal.estimators.items import check_share
from kruskal.estimators.scikit import Transformer, refuse_mask, unchanged_on_failure
from kruskal.gibbs.conv_local import dense_maps, sparse_maps
from kruskal.models import CFA as GaussianModel
from kruskal.models import CKFA as KruskalModel
from kruskal.models.kruskal_prior import PROPER_ALPHA
from kruskal.tensor import refuse_impossible_rank


class CFA(Transformer, ImageLearner):
    """Convolutional factor analysis: images are sums of a few atoms at a few places each, plus noise.

    Atoms and maps are drawn by exact Gibbs sampling; see docs/model.md.

    Parameters
    ----------
    n_atoms : number of atoms K
    atom_size : (m_x, m_y), or one number for both
    pooling : (p_x, p_y): at most one non-zero in each such block of a map; None: no such restriction
    nonnegative : whether the maps have no negative values
    sweeps : number of Gibbs sweeps of `fit`;  burn_in : of these, left out of averages (default: half)
    noise_std : a fixed standard deviation of the noise in the units of the data, or None to learn it
    usage : ``shared``: an atom is as likely to be used in one image as in another; ``by_image``: every image
        has a usage of its own around a shared mean (a hierarchical beta prior)
    usage_prior : (a_pi, b_pi), prior of the share of the places that are in use; (K, 1) by default, a larger
        b_pi makes sparser maps
    start : ``pca`` or ``random``
    seed, threads : results depend on the seed and never on the number of threads (None: all cores)
    progress : told how far a fit is (`kruskal.engines.progress.Progress`)

    Attributes
    ----------
    dictionary_ : (K, m_x, m_y, C) atoms of the last draw, times the unit of the data; maps place them
    usage_ : (K,) mean number of non-zeros per image of each map, over the sweeps after burn-in
    noise_std_ : standard deviation of the noise, mean over the same sweeps, in units of the data
    ranks_ : (K,) rank of each atom at a relative tolerance of 1 % (-1: not defined)
    n_parameters_ : numbers that the dictionary is made of
    trace_ : dict of arrays with one value per sweep: noise_std, active_per_image, alpha
    state_ : global state of the last draw, in scaled units;  scaling_ : what scaled units are
    """

    _grey = False  # whether the images of `fit` had no axis of channels

    def __init__(
        self, n_atoms: int = 64, atom_size: tuple[int, int] = (8, 8), *,
        pooling: tuple[int, int] | None = None, nonnegative: bool = False, sweeps: int = 100,
        burn_in: int | None = None,
        noise_std: float | None = None, usage: str = "shared",
        usage_prior: tuple[float, float] | None = None, start: str = "pca",
        seed: int = 0, threads: int | None = None, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self.n_atoms = n_atoms
        self.atom_size = atom_size
        self.pooling = pooling
        self.nonnegative = nonnegative
        self.sweeps = sweeps
        self.burn_in = burn_in
        self.noise_std = noise_std
        self.usage = usage
        self.usage_prior = usage_prior
        self.start = start
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def fit(self, X: Any, y: Any = None, observed: Any = None) -> Self:
        """Learn the atoms from images (N, M_x, M_y[, C]); ``observed`` has their shape, True is observed.

        ``y`` is ignored.
        """
        images, seen, shape = image_batch(X, observed)
        refuse_mask(y, shape)
        with unchanged_on_failure(self):
            self._grey = len(shape) == 3
            for _ in self._sweep(images, seen):
                pass
        return self

    def fit_reconstruct(self, X: Any, observed: Any = None) -> Reconstruction:
        """Learn the atoms, and average the images without noise over the sweeps after burn-in."""
        images, seen, shape = image_batch(X, observed)
        moments, burn_in = Moments(), self._options().burn_in
        with unchanged_on_failure(self):
            self._grey = len(shape) == 3
            for engine, number in self._sweep(images, seen):
                if number > burn_in:
                    moments.add(self._synthesised(engine))
        return moments.reconstruction(self.scaling_, shape)

    def partial_fit(self, X: Any, y: Any = None, *, passes: int = 6, memory: float = 1.0) -> Self:
        """Learn from one more batch of complete images, without those of former batches at hand; no ``y``.

        Their maps are remembered as sums, multiplied by ``memory`` (0 to 1; below 1 the past fades, 0 forgets
        it) at each new batch. This is a surrogate for `fit`, which draws all maps again in every sweep. The
        first batch chooses the units and the start; ``passes`` sweeps are made over every batch.
        """
        if self.usage == "by_image":
            raise InputError(
                "usage is by_image, which partial_fit cannot learn, as it keeps sums over images only: "
                "call fit with all images, or use usage='shared'"
            )
        batch = self._checked(X, None) if self.__sklearn_is_fitted__() else image_batch(X, None)
        images, seen, shape = batch
        refuse_mask(y, shape, "there is no mask, images must be complete")
        if not seen.all():
            raise InputError("X has missing entries, which partial_fit cannot use: call fit with all images")
        whole_number("passes", passes, 1)
        factor = check_share("memory", memory)
        with unchanged_on_failure(self):
            self._grey = self._grey if self.__sklearn_is_fitted__() else len(shape) == 3
            self._learn_batch(images, seen, passes, factor)
        return self

    def transform(
        self, X: Any, observed: Any = None, *, sweeps: int | None = None, burn_in: int | None = None,
        sparse: bool = False,
    ) -> Any:  # fmt: skip
        """Maps of images given the atoms: posterior means over ``sweeps`` less ``burn_in`` sweeps.

        By default 20 sweeps, 100 if any pixel of ``X`` is missing, half of them burn-in. Random numbers
        go by the place of an image in ``X``.

        Returns
        -------
        (N, K, map rows, map columns) float32, or with ``sparse`` a SciPy CSR matrix (N, K rows columns)
        """
        return self.read_maps(X, observed, sweeps, burn_in, flag("sparse", sparse))

    def read_maps(
        self, X: Any, observed: Any, sweeps: int | None, burn_in: int | None, sparse: bool = False,
        first: int = 0,
    ) -> Any:  # fmt: skip
        """`transform` of a batch of images, of which the first one has the number ``first``.

        Batches that begin at other numbers have other random numbers.
        """
        images, seen, _ = self._checked(X, observed)
        shape = (self.model_.n_atoms, *self.model_.layout.map_shape)
        total: Any = 0.0
        kept = 0
        for engine in self._infer(images, seen, sweeps, burn_in, first):
            kept += 1
            parts = engine.map(lambda shard: dense_maps(shard.maps, shape[0], shape[1:]))
            if sparse:
                from scipy.sparse import csr_matrix, vstack

                total = total + vstack([csr_matrix(part.reshape(len(part), -1)) for part in parts], "csr")
            else:
                total = total + np.concatenate(parts)
        return total / np.float32(kept)

    def inverse_transform(self, maps: Any) -> np.ndarray:
        """The images that maps (N, K, map rows, map columns) stand for, without noise.

        They have the shape of those of `fit`: (N, M_x, M_y) or (N, M_x, M_y, C).
        """
        self.refuse_unfitted()
        layout = self.model_.layout
        wanted = (self.model_.n_atoms, *layout.map_shape)
        refuse_masked(maps, "maps")
        dense = real_array(maps.toarray() if hasattr(maps, "toarray") else maps, "maps")
        if dense.shape[1:] == (np.prod(wanted),):
            dense = dense.reshape(-1, *wanted)
        if dense.shape[1:] != wanted:
            raise InputError(f"maps have shape {dense.shape}, expected (N, {', '.join(map(str, wanted))})")
        refuse_infinite(dense, "maps")
        with ImageThreads(np.zeros((len(dense), *layout.image_shape)), None, self.threads) as engine:
            free = layout._replace(pooling=(1, 1))  # means over draws may have several non-zeros per block
            for shard in engine.shards:
                part = dense[shard.first : shard.first + shard.n_images]
                shard.maps = sparse_maps(part.astype(np.float64), free)
            made = self._synthesised(engine)
        return self.scaling_.inverse(made).reshape(-1, *layout.image_shape[: 2 if self._grey else 3])

    def reconstruct(
        self, X: Any, observed: Any = None, *, sweeps: int | None = None, burn_in: int | None = None
    ) -> Reconstruction:
        """Images without noise, given the atoms: mean and std over ``sweeps`` less ``burn_in`` sweeps.

        By default 20 sweeps, 100 if any pixel of ``X`` is missing, half of them burn-in. ``std`` is that
        of the maps that these sweeps saw: with few sweeps it is too small.
        """
        images, seen, shape = self._checked(X, observed)
        moments = Moments()
        for engine in self._infer(images, seen, sweeps, burn_in):
            moments.add(self._synthesised(engine))
        return moments.reconstruction(self.scaling_, shape)

    def _options(self) -> ImageOptions:
        return image_options(**self.get_params())

    def _model(self, options: ImageOptions, image_shape: tuple[int, int, int], **common: Any) -> Model:
        return GaussianModel(image_shape=image_shape, **common)


class CKFA(CFA):
    """Convolutional Kruskal-factor analysis: `CFA` with atoms that are Kruskal tensors of inferred rank.

    Parameters
    ----------
    rank : number of Kruskal terms R that an atom over (x, y, channel) may have
    alpha_prior : (a, b) of the prior a^(alpha - 1) Gamma(alpha)^-b of how fast the weights of further terms
        shrink. With the paper's (1e6, 1e-6) alpha may grow without end, until every atom has a single term

    See `CFA` for the others.
    """

    def __init__(
        self, n_atoms: int = 64, atom_size: tuple[int, int] = (8, 8), *, rank: int = 2,
        pooling: tuple[int, int] | None = None, nonnegative: bool = False, sweeps: int = 100,
        burn_in: int | None = None,
        noise_std: float | None = None, usage: str = "shared",
        usage_prior: tuple[float, float] | None = None, start: str = "pca",
        seed: int = 0, threads: int | None = None, progress: Progress | None = None,
        alpha_prior: tuple[float, float] = PROPER_ALPHA,
    ) -> None:  # fmt: skip
        self.rank = rank
        self.alpha_prior = alpha_prior
        super().__init__(
            n_atoms, atom_size, pooling=pooling, nonnegative=nonnegative, sweeps=sweeps, burn_in=burn_in,
            noise_std=noise_std, usage=usage, usage_prior=usage_prior, start=start, seed=seed,
            threads=threads, progress=progress,
        )  # fmt: skip

    def _model(self, options: ImageOptions, image_shape: tuple[int, int, int], **common: Any) -> Model:
        assert options.rank is not None and options.alpha_prior is not None
        refuse_impossible_rank(options.rank, (*options.atom_size, image_shape[2]))
        return KruskalModel(
            image_shape=image_shape, rank=options.rank, alpha_prior=options.alpha_prior, **common
        )
