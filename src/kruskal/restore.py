"""Restoring an array: what most people call."""

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.choose import Pilot, choose, worth_a_pilot
from kruskal.data import Scaling, observed_entries, refuse_constant
from kruskal.defaults import MOST_SWEEPS, Look
from kruskal.engines import checkpoint as checkpoints
from kruskal.engines.chain import Chain
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.online import AnyChain, OnlineChain
from kruskal.engines.progress import COMPILING, Progress, Silent
from kruskal.engines.stopping import Stopping
from kruskal.engines.threads import StackEngine, ThreadEngine, check_threads
from kruskal.errors import InputError, path_of
from kruskal.kernel import watch_compilation
from kruskal.models import MGPCPModel
from kruskal.models.base import FactorModel
from kruskal.online import check_memory
from kruskal.patches import Items, cut
from kruskal.restoration import Restoration
from kruskal.reuse import open_dictionary, settle
from kruskal.settings import Settings, refuse_for_mgp_cp, resolve

RANK_TOLERANCE = 0.01


def inpaint(
    x: Any,
    observed: Any = None,
    *,
    setting: str = "default",
    model: str = "kfa",
    patch_shape: Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    n_atoms: int | None = None,
    rank: int | str = "auto",
    sweeps: int | None = None,
    burn_in: int | None = None,
    start: str = "pca",
    alpha: str | float = "sample",
    codes: str = "collapsed",
    channels: str | None = None,
    usage_prior: tuple[float, float] | None = None,
    sparsity: float | None = None,
    regions: int | None = None,
    dictionary: Dictionary | str | Path | None = None,
    adapt: bool = False,
    auto: bool | None = None,
    until_converged: bool = False,
    time_budget: float | None = None,
    online: str | bool | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    passes: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 120.0,
    progress: Progress | None = None,
) -> Restoration:
    """Fill in the missing entries of an array and remove its noise.

    Parameters
    ----------
    x : array of any order; NaN and masked entries are missing
    observed : bool array of the same shape, True where ``x`` is observed (None: wherever it is not NaN)
    setting : "default", or "paper": the paper's model with its patch, prior, rank and number of samples
    model : "kfa" or "bpfa", dictionaries of patches, or "mgp-cp": one Kruskal tensor for the whole array or,
        with ``patch_shape``, for all patches stacked. It has no atoms and no sparse codes: n_atoms, codes,
        channels, usage_prior, sparsity, regions and auto are refused
    patch_shape : shape of the items (default: from the order and size of the array and the share observed;
        for "mgp-cp" the whole array)
    stride : distance of neighbouring patches, one number or one per axis (default: 1, more for large arrays)
    n_atoms : size of the dictionary
    rank : most Kruskal terms of an atom or, for "mgp-cp", of the tensor; or "auto"
    sweeps, burn_in : length of the chain, and how many sweeps at its beginning are not kept
    start : "pca" or "random"
    alpha : "sample", "map" or a number: how the shrinkage of the ranks is learned
    codes : "collapsed" or "uncollapsed" draws of the codes
    channels : "keep" takes the last axis whole into every patch, "cut" cuts it like the others
    usage_prior : (a_pi, b_pi) of the beta process; a larger b_pi is sparser, the paper has (K, 1)
    sparsity : the same as b_pi per item, with a_pi = K (default: 0 for clean and nearly complete data, which
        is the paper's prior, 2 for clean data with much missing, 1/8 for noisy data)
    regions : the array is divided into at most this many regions (powers of two), each with a usage of its
        own (default: up to 64); 1 is the paper's model
    dictionary : start from these atoms, of `kruskal.learn` or the file of one; they settle patch, model,
        number of atoms and rank. They stay as they are, and only codes, usage and precisions are drawn
    adapt : learn the atoms of the dictionary further
    auto : test the defaults of patch, sparsity and rank in short pilot runs that predict hidden entries, and
        take others where these are surely better; None does so when none of the three is given and there
        is neither a dictionary nor a time budget
    until_converged : end burn-in when the trace is level, and the run when more draws no longer move the
        estimate; ``sweeps`` (default then 500) and ``burn_in`` are upper limits
    time_budget : end the sweeps after so many seconds, pilot runs not counted; a resumed run has them anew.
        Such a run cannot be repeated exactly
    online : learn from one batch of patches at a time, and remember of the others "exact" sums (the same as
        True), the paper's surrogates ("cdf"), or surrogates that are replaced at each visit
        ("incremental"); docs/model.md says what each guarantees
    batch_size : patches per batch (default: 20,000; the paper's 5,000 for "cdf"); more than there are
        patches means all of them
    epochs : how often every batch is visited, in the place of ``sweeps``; ``burn_in`` then counts epochs
        (default: 10, 5 of them burn-in)
    passes : sweeps over a batch at a visit (default: 1; the paper's 3 for "cdf")
    seed : everything random follows from it
    threads : number of threads (default: all cores); the result does not depend on it
    checkpoint : folder for the state of the run; `resume` goes on from it
    checkpoint_seconds : how often it is written
    progress : told how far the run is

    Returns
    -------
    Restoration

    Examples
    --------
    >>> import kruskal, numpy as np
    >>> x = np.add.outer(np.sin(np.arange(30.0)), np.cos(np.arange(30.0)))
    >>> x[np.random.default_rng(0).random(x.shape) < 0.5] = np.nan
    >>> result = kruskal.inpaint(x, patch_shape=(6, 6), n_atoms=16, sweeps=20, seed=0)
    >>> bool(np.isfinite(result.mean).all())
    True
    """
    values = _numeric(x)
    mask = observed_entries(
        x if isinstance(x, np.ma.MaskedArray) else values, observed, name="x", mask_name="observed"
    )
    refuse_constant(values, mask, "x")
    look = Look.at(values, mask, Scaling.fit(values, mask).scale)
    if until_converged and sweeps is None and epochs is None and setting == "default":
        sweeps, epochs = (None, MOST_SWEEPS) if online else (MOST_SWEEPS, None)
    known = open_dictionary(dictionary)
    resolved = partial(_resolve, settle({
        "setting": setting, "model": model, "patch_shape": patch_shape, "stride": stride, "n_atoms": n_atoms,
        "rank": rank, "sweeps": sweeps, "burn_in": burn_in, "start": start, "alpha": alpha, "codes": codes,
        "channels": channels, "usage_prior": usage_prior, "sparsity": sparsity, "regions": regions,
        "until_converged": until_converged, "time_budget": time_budget, "online": online,
        "batch_size": batch_size, "epochs": epochs, "passes": passes, "seed": seed, "look": look,
    }, known, adapt, values.shape))  # fmt: skip
    settings = resolved(values.shape)
    pilots: list[Pilot] = []
    threads, progress = check_threads(threads), progress or Silent()
    free = {
        name for name, given in (
            ("patch_shape", patch_shape is not None), ("rank", rank != "auto"),
            ("sparsity", usage_prior is not None or sparsity is not None),
        ) if not given
    }  # fmt: skip
    if model == "mgp-cp":
        refuse_for_mgp_cp(auto=auto or None)
        auto = False
    if auto is None:
        auto = len(free) == 3 and setting == "default" and time_budget is None and known is None
    if auto and known is not None:
        raise InputError("auto tests patch, sparsity and rank, but a dictionary settles them: leave it out")
    if auto and free and worth_a_pilot(mask, look):
        better, pilots = choose(
            values,
            mask,
            resolved,
            partial(_estimate, threads=threads),
            free,
            channels,
            settings.seed,
            progress.note,
        )
        settings = resolved(values.shape, **better)
    check_memory(settings.online, settings.n_atoms, math.prod(settings.patch_shape), bool(mask.all()))
    if settings.online and batch_size is not None and batch_size > settings.batch_size:
        progress.note(f"one batch holds all {settings.batch_size} patches: batch_size {batch_size} is larger")
    run = _Run(
        settings,
        tuple(pilots),
        threads,
        progress,
        None if checkpoint is None else path_of("checkpoint", checkpoint, "folder"),
        _seconds("checkpoint_seconds", checkpoint_seconds),
        known,
    )
    if run.directory is not None:
        checkpoints.begin(run.directory, values, mask, run.header(), known)
    return run.restore(values, mask)


def denoise(x: Any, **options: Any) -> Restoration:
    """Remove the noise of an array; `inpaint` by the name that fits complete data, with the same options."""
    return inpaint(x, **options)


def resume(
    directory: str | Path, *, threads: int | None = None, progress: Progress | None = None
) -> Restoration:
    """Go on with a run that was given ``checkpoint=directory``; it ends as an uninterrupted run would."""
    directory = path_of("directory", directory, "folder")
    threads = check_threads(threads)
    saved = checkpoints.load(directory)
    try:
        seconds = _seconds("checkpoint_seconds", saved.settings.pop("checkpoint_seconds"))
        pilots = tuple(Pilot.from_json(pilot) for pilot in saved.settings.pop("pilots"))
        settings = Settings.from_json(saved.settings)
    except (TypeError, KeyError) as error:
        raise InputError(f"checkpoint folder {directory} cannot be read: its settings are damaged") from error
    run = _Run(settings, pilots, threads, progress or Silent(), directory, seconds, saved.dictionary)
    return run.restore(saved.values, saved.observed, saved.header)


def _resolve(given: dict[str, Any], shape: tuple[int, ...], **options: Any) -> Settings:
    """Settings for an array of this shape with the user's options and, before them, others."""
    return resolve(shape, **(given | options))


def _estimate(values: np.ndarray, observed: np.ndarray, settings: Settings, threads: int) -> np.ndarray:
    """The restored array of a run that nobody watches."""
    return _Run(settings, (), threads, Silent(), None, math.inf).restore(values, observed).mean


def _seconds(name: str, value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not seconds >= 0.0:
        raise InputError(f"{name} must be a number of at least 0, not {value!r}")
    return seconds


def _numeric(x: Any) -> np.ndarray:
    """The array without its mask, if it holds real numbers."""
    try:
        values = np.ma.getdata(x) if isinstance(x, np.ma.MaskedArray) else np.asarray(x)
    except ValueError as error:
        raise InputError("x must be an array: the lists given have different lengths") from error
    if values.dtype.kind not in "buif":
        raise InputError(f"x must hold real numbers, not {values.dtype}")
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"x must have at least one axis and one entry, not shape {values.shape}")
    return values


@dataclass(frozen=True)
class _Run:
    """One run: what it is told, where its state is kept, who is told how far it is."""

    settings: Settings
    pilots: tuple[Pilot, ...]
    threads: int
    progress: Progress
    directory: Path | None
    checkpoint_seconds: float
    dictionary: Dictionary | None = None

    def header(self) -> dict[str, Any]:
        """What a checkpoint says of the run."""
        return self.settings.to_json() | {
            "checkpoint_seconds": self.checkpoint_seconds,
            "pilots": [pilot.to_json() for pilot in self.pilots],
        }

    def restore(
        self, values: np.ndarray, observed: np.ndarray, saved: dict[str, Any] | None = None
    ) -> Restoration:
        """Make the sweeps that are not made yet, and read off the result."""
        began = time.perf_counter()
        settings = self.settings
        scaling = Scaling.fit(values, observed)
        items = cut(scaling.forward(np.where(observed, values, 0)), observed, settings.grid, settings.regions)
        with ExitStack() as stack:
            if self.directory is not None:
                stack.enter_context(checkpoints.locked(self.directory))
            stack.enter_context(watch_compilation(partial(self.progress.note, COMPILING)))
            chain = self._begin(items, stack)
            if saved is not None and self.directory is not None:
                checkpoints.restore(self.directory, saved, chain)
            if settings.online is None:
                self.progress.start(settings.sweeps, chain.done)
            else:
                self.progress.start(settings.sweeps * settings.batches, chain.done, "batch")
            stack.callback(self.progress.stop)
            if saved is None or not saved["ended"]:
                self._sweep_to_the_end(chain, scaling, began)
            return self._read_off(chain, scaling, items.n_items, time.perf_counter() - began)

    def _begin(self, items: Items, stack: ExitStack) -> AnyChain:
        """The chain at its start, on threads that end with ``stack``."""
        settings, model = self.settings, self.settings.build_model()
        start = self.dictionary.first_state(items.n_regions) if self.dictionary else settings.start
        if settings.online is not None and isinstance(model, FactorModel):
            online = OnlineChain.begin(
                model, items, n_batches=settings.batches, kind=settings.online, passes=settings.passes,
                start=start, seed=settings.seed, threads=self.threads,
            )  # fmt: skip
            return stack.enter_context(online)
        kind = StackEngine if settings.model == "mgp-cp" else ThreadEngine
        engine = stack.enter_context(kind(items, self.threads))
        return Chain.begin(model, engine, items, start, settings.seed)

    def _sweep_to_the_end(self, chain: AnyChain, scaling: Scaling, began: float) -> None:
        settings, saved_at = self.settings, time.monotonic()
        plan = Stopping(settings.sweeps, settings.burn_in, settings.until_converged, settings.time_budget)
        keep = chain.now.keeping
        try:
            while True:
                whole, seconds = chain.in_sweeps(), time.perf_counter() - began
                if whole is not None:  # an epoch is kept or not, and made, as a whole
                    if plan.ended(whole, seconds):
                        break
                    keep = plan.keeps(whole, seconds)
                chain.advance(keep, look=settings.until_converged)
                self._tell(chain, scaling)
                if time.monotonic() - saved_at >= self.checkpoint_seconds:
                    self._save(chain)
                    saved_at = time.monotonic()
        except KeyboardInterrupt:
            self._save(chain)
            raise
        self._save(chain, ended=True)

    def _tell(self, chain: AnyChain, scaling: Scaling) -> None:
        shown = {name: float(values[-1]) for name, values in self._trace(chain, scaling).items()}
        if self.settings.online is not None:
            shown["epoch"] = math.ceil(chain.done / chain.rows_per_sweep)
        self.progress.update(chain.done, shown)

    def _save(self, chain: AnyChain, ended: bool = False) -> None:
        """Write a checkpoint, if asked for. A failure is told and does not cost the run."""
        if self.directory is not None:
            try:
                checkpoints.save(self.directory, chain, self.header(), ended)
            except InputError as error:
                self.progress.note(f"no checkpoint could be written after sweep {chain.done}: {error}")

    def _trace(self, chain: AnyChain, scaling: Scaling) -> dict[str, np.ndarray]:
        """The trace without what the model does not have, noise in the units of the data."""
        trace = chain.trace()
        if self.settings.model == "bpfa":
            del trace["alpha"]
        if self.settings.model == "mgp-cp":
            trace = {name: trace[name] for name in ("noise_std", "atoms_used", "alpha")}
            trace["rank"] = trace.pop("atoms_used")
        trace["noise_std"] = scaling.inverse_std(trace["noise_std"])
        return trace

    def _read_off(self, chain: AnyChain, scaling: Scaling, n_items: int, seconds: float) -> Restoration:
        settings, now, trace = self.settings, chain.now, self._trace(chain, scaling)
        terms: dict[str, Any] = {}
        if isinstance(chain.model, MGPCPModel):
            weights, factors = chain.model.sorted_terms(now.state)
            terms = {"weights": scaling.inverse_std(weights), "factors": factors, "offset": scaling.offset}
        return Restoration(
            mean=scaling.inverse(now.moments.mean()).reshape(settings.array_shape),
            std=scaling.inverse_std(np.sqrt(now.moments.variance())).reshape(settings.array_shape),
            noise_std=float(trace["noise_std"][-now.moments.draws * chain.rows_per_sweep :].mean()),
            dictionary=chain.model.atoms(now.state),
            ranks=chain.model.ranks(now.state, RANK_TOLERANCE),
            usage=now.usage / (now.moments.draws * n_items),
            trace=trace,
            settings=settings.to_json(),
            pilots=tuple(pilot.to_json() for pilot in self.pilots),
            kept=now.moments.draws,
            n_items=n_items,
            threads=self.threads,
            seconds=seconds,
            **terms,
        )
