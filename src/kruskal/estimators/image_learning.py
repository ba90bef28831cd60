"""How the convolutional estimators learn and infer: chains over images on threads, and what they leave."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kruskal.data import Scaling, refuse_constant
from kruskal.engines.progress import COMPILING
from kruskal.engines.threads import ImageThreads
from kruskal.errors import InputError, shown, whole_number
from kruskal.estimators.image_batches import image_batch
from kruskal.estimators.image_options import ImageOptions
from kruskal.estimators.items import refuse_far_out, warn_of_far
from kruskal.estimators.scikit import ScikitEstimator
from kruskal.gibbs.conv_memory import ConvMemory
from kruskal.gibbs.conv_synthesis import synthesise
from kruskal.gibbs.precision import FIRST_CAP, annealed_cap
from kruskal.gibbs.usage import UsagePrior
from kruskal.kernel import watch_compilation
from kruskal.models import CFA, CKFA, DELAY, ConvGlobal, ConvReport, sweep_batch
from kruskal.random import Stream, generator

Model = CFA | CKFA
_SWEEPS, _MASKED_SWEEPS = 20, 100
"""To read images with known atoms: maps of incomplete ones settle slowly."""
TRACED = ("noise_std", "active_per_image", "alpha")


class ImageLearner(ScikitEstimator, ABC):
    """What `kruskal.CFA` and `kruskal.CKFA` have in common; see there for the options and attributes."""

    # parameters that are changed or used as they are
    n_atoms: int
    threads: int | None

    @abstractmethod
    def _options(self) -> ImageOptions:
        """The parameters, checked."""

    @abstractmethod
    def _model(self, options: ImageOptions, image_shape: tuple[int, int, int], **common: Any) -> Model:
        """The model behind the estimator."""

    def _build(self, image_shape: tuple[int, ...]) -> Model:
        options = self._options()
        precision = None if options.noise_std is None else (self.scaling_.scale / options.noise_std) ** 2
        return self._model(
            options, (image_shape[0], image_shape[1], image_shape[2]), atom_size=options.atom_size,
            n_atoms=options.n_atoms, pooling=options.pooling, nonnegative=options.nonnegative,
            noise_precision=precision, usage_prior=UsagePrior(*options.usage_prior),
            delay=min(DELAY, options.burn_in), usage_by_image=options.usage == "by_image",
        )  # fmt: skip

    def _sweep(self, images: np.ndarray, seen: np.ndarray) -> Iterator[tuple[ImageThreads, int]]:
        """Make all sweeps of a fit and leave what was learned; yields after each."""
        options = self._options()
        progress, seed, burn_in = options.progress, options.seed, options.burn_in
        refuse_constant(images, seen, "X")
        warn_of_far(images, seen)
        self.scaling_ = Scaling.fit(images, seen)
        self.model_ = model = self._build(images.shape[1:])
        values = self.scaling_.forward(np.where(seen, images, 0))
        trace = []
        usage = np.zeros(model.n_atoms)
        told = watch_compilation(partial(progress.note, COMPILING))
        with told, ImageThreads(values, seen, options.threads) as engine:
            state = model.start(options.start, engine.shards, seed)
            progress.start(options.sweeps)
            try:
                for number in range(1, options.sweeps + 1):
                    state, report = model.sweep(state, engine, seed, number)
                    trace.append(self._row(state, report))
                    if number > burn_in:
                        usage += report.counts.sum(axis=1) / len(images)
                    self.state_ = state
                    yield engine, number
                    used = int((report.counts > 0).any(axis=1).sum())
                    shown = {"noise_std": trace[-1][0], "active_per_item": trace[-1][1], "atoms_used": used}
                    progress.update(number, shown)
            finally:
                progress.stop()
        self.trace_ = dict(zip(TRACED, np.array(trace).T))
        self.memory_: ConvMemory | None = None
        self.passes_ = options.sweeps  # random numbers up to this one are used up
        noise_std = float(self.trace_["noise_std"][burn_in:].mean())
        self._read_off(usage / (options.sweeps - burn_in), noise_std)

    def _learn_batch(self, images: np.ndarray, seen: np.ndarray, passes: int, memory: float) -> None:
        """Sweeps over one batch with the former ones remembered; maps begin coarse, as in a fit."""
        options = self._options()
        first = not self.__sklearn_is_fitted__()
        if first:
            refuse_constant(images, None, "X")
            self.scaling_ = Scaling.fit(images, seen)
            self.model_ = self._build(images.shape[1:])
            self.trace_ = {name: np.zeros(0) for name in TRACED}
        model = self.model_
        past = getattr(self, "memory_", None)
        past = None if past is None else past.faded(memory)
        number = getattr(self, "passes_", options.sweeps)
        values = self.scaling_.forward(images)
        refuse_far_out(values)
        with ImageThreads(values, None, options.threads) as engine:
            state = model.start(options.start, engine.shards, options.seed) if first else self.state_
            coarse = 1
            while (step := model.scan_step(coarse)) != (1, 1):
                model.draw_maps(state, engine, options.seed, number + coarse, step)
                coarse += 1
            for i in range(1, passes + 1):
                state, batch = sweep_batch(model, state, engine, past, options.seed, number + coarse + i)
        self.state_ = state
        self.passes_ = number + coarse + passes
        self.memory_ = batch if past is None else past.plus(batch)
        noise_std = self.scaling_.scale / state.noise_precision**0.5
        row = (noise_std, float(batch.counts.sum()) / len(images), float(state.alpha))
        self.trace_ = {name: np.append(self.trace_[name], value) for name, value in zip(TRACED, row)}
        self._read_off(self.memory_.counts.sum(axis=1) / self.memory_.n_images, noise_std)

    def _row(self, state: ConvGlobal, report: ConvReport) -> tuple[float, float, float]:
        return self.scaling_.scale / state.noise_precision**0.5, report.active_per_image, float(state.alpha)

    def _read_off(self, usage: np.ndarray, noise_std: float) -> None:
        state, shape = self.state_, self.model_.shape
        self.dictionary_ = self.scaling_.scale * state.dictionary.reshape(-1, *shape)
        self.usage_ = usage
        self.noise_std_ = noise_std
        self.ranks_ = self.model_.ranks(state)
        self.n_parameters_ = self.model_.n_parameters

    def keep_atoms(self, kept: np.ndarray) -> None:
        """Forget all atoms but those ``kept`` ((K,) bool), as if there had been no others."""
        self.refuse_unfitted()
        kept = np.asarray(kept)
        if kept.dtype != bool or kept.shape != (self.model_.n_atoms,) or not kept.any():
            raise InputError(
                f"kept must hold {self.model_.n_atoms} flags, one for each atom, some of them True, "
                f"not {shown(kept)}"
            )
        self.n_atoms = int(kept.sum())
        self.model_ = replace(self.model_, n_atoms=self.n_atoms)
        per_atom = ("dictionary", "weights", "factors", "log_delta", "log_odds")
        self.state_ = self.state_._replace(
            **{name: getattr(self.state_, name)[kept] for name in per_atom},
            image_log_odds=self.state_.image_log_odds[:, kept],
        )
        self.memory_ = None
        self._read_off(self.usage_[kept], self.noise_std_)

    def _infer(
        self, images: np.ndarray, seen: np.ndarray, sweeps: int | None, burn_in: int | None, first: int = 0
    ) -> Iterator[ImageThreads]:
        """Draw what images have of their own again and again, all else fixed; yields after burn-in.

        Where pixels are missing the burn-in begins with much noise: places that explain what is seen badly
        are left more easily then.
        """
        complete = bool(seen.all())
        sweeps = (_SWEEPS if complete else _MASKED_SWEEPS) if sweeps is None else sweeps
        whole_number("sweeps", sweeps, 1)
        burn_in = sweeps // 2 if burn_in is None else burn_in
        if whole_number("burn_in", burn_in, 0) >= sweeps:
            raise InputError(f"burn_in must be less than sweeps ({sweeps}), not {shown(burn_in)}")
        values = self.scaling_.forward(np.where(seen, images, 0))
        refuse_far_out(values)
        options = self._options()
        # sweeps count from 1, as the first ones visit few places: the numbers of the fit must not come again
        seed = int(generator(options.seed, Stream.MAP_READING, first).integers(2**63))
        with ImageThreads(values, seen, options.threads) as engine:
            state = self.model_.for_images(self.state_, len(images))
            precision, annealing = state.noise_precision, 0 if complete else 3 * burn_in // 4
            for number in range(1, sweeps + 1):
                cap = annealed_cap(number, annealing, FIRST_CAP, max(precision, FIRST_CAP))
                state = state._replace(noise_precision=min(precision, cap))
                state = self.model_.sweep_images(state, engine, seed, number)
                if number > burn_in:
                    yield engine

    def _synthesised(self, engine: ImageThreads) -> np.ndarray:
        visit = partial(synthesise, dictionary=self.state_.dictionary, layout=self.model_.layout)
        return np.concatenate(engine.map(visit))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` or `partial_fit` was called."""
        return hasattr(self, "dictionary_")

    def _checked(self, X: Any, observed: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
        self.refuse_unfitted()
        images, seen, shape = image_batch(X, observed, may_be_none=True)
        if images.shape[1:] != self.model_.image_shape:
            raise InputError(
                f"X has images of shape {images.shape[1:]}, expected {self.model_.image_shape} as in fit"
            )
        return images, seen, shape
