"""One run of a restoration: its sweeps to the end, its checkpoints, and what is read off."""

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.choose import Pilot
from kruskal.data import Scaling, counts_of_roots
from kruskal.data.atomic import reason
from kruskal.engines import checkpoint as checkpoints
from kruskal.engines.chain import Chain, Progressed
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.lock import undisturbed
from kruskal.engines.online import AnyChain, OnlineChain
from kruskal.engines.progress import COMPILING, Progress
from kruskal.engines.regions import alike_in, in_regions
from kruskal.engines.stopping import Stopping
from kruskal.engines.threads import StackEngine, ThreadEngine
from kruskal.errors import InputError
from kruskal.kernel import Compilation, watch_compilation
from kruskal.models import MGPCPModel, Model
from kruskal.models.base import FactorModel
from kruskal.patches import Items, Ordinary, cut, hole_sentence, hole_variance, nearby_share
from kruskal.restoration import Restoration
from kruskal.settings import Settings
from kruskal.tensor import RANK_TOLERANCE

_ALL_NOISE = 0.95


@dataclass(frozen=True)
class Run:
    """One run: what it is told, where its state is kept, who is told how far it is; ``notes`` are what there
    was to say of the data and of the run."""

    settings: Settings
    pilots: tuple[Pilot, ...]
    threads: int
    progress: Progress
    directory: Path | None
    checkpoint_seconds: float
    dictionary: Dictionary | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say it now, and once in the result: a resumed run may have it from before."""
        if text not in self.notes:
            self.notes.append(text)
        self.progress.note(text)

    def header(self) -> dict[str, Any]:
        """What a checkpoint says of the run."""
        return self.settings.to_json() | {
            "checkpoint_seconds": self.checkpoint_seconds,
            "pilots": [pilot.to_json() for pilot in self.pilots],
            "notes": list(self.notes),
        }

    def restore(
        self, values: np.ndarray, observed: np.ndarray, saved: dict[str, Any] | None = None
    ) -> Restoration:
        """Make the sweeps that are not made yet, and read off the result; its folder, if any, is held."""
        began = time.perf_counter()
        settings = self.settings
        scaling = Scaling.fit(values, observed)
        scaled = scaling.forward(np.where(observed, values, 0))
        patches = partial(cut, scaled, observed, settings.grid)
        items = in_regions(patches, settings.regions, settings.grouping, settings.seed, settings.array_shape)
        nearby = None if observed.all() else nearby_share(observed, settings.patch_shape)
        self._tell_of_holes(nearby)
        with ExitStack() as stack:
            compilation = stack.enter_context(watch_compilation(partial(self.progress.note, COMPILING)))
            chain = self._begin(items, settings.build_model(scaling.scale), stack)
            if saved is not None and self.directory is not None:
                checkpoints.restore(self.directory, saved, chain)
            if settings.online is None:
                self.progress.start(settings.sweeps, chain.done)
            else:
                self.progress.start(settings.sweeps * settings.batches, chain.done, "batch")
            stack.callback(self.progress.stop)
            if saved is None or not saved["ended"]:
                self._sweep_to_the_end(chain, items, scaling, began, compilation)
            moments = chain.now.moments
            if nearby is None:
                variance = moments.variance()
            else:
                variance = hole_variance(moments, observed, nearby, Ordinary.of(scaled[observed]))
            self._tell_of_doubts(chain, scaled, observed)
            return self._read_off(chain, scaling, variance, items.n_items, time.perf_counter() - began)

    def _begin(self, items: Items, model: Model, stack: ExitStack) -> AnyChain:
        """The chain at its start, on threads that end with ``stack``."""
        settings = self.settings
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

    def _sweep_to_the_end(
        self, chain: AnyChain, items: Items, scaling: Scaling, began: float, compilation: Compilation
    ) -> None:
        settings, saved_at = self.settings, time.monotonic()
        plan = Stopping(
            settings.sweeps, settings.burn_in, settings.until_converged, settings.time_budget,
            settings.warming,
        )  # fmt: skip
        keep = chain.now.keeping
        try:
            while True:
                whole, seconds = chain.in_sweeps(), time.perf_counter() - began - compilation.seconds
                if whole is not None:  # an epoch is kept or not, and made, as a whole
                    if plan.ended(whole, seconds):
                        self._tell_why(plan, whole)
                        break
                    keep = plan.keeps(whole, seconds)
                    if self._regroup(chain, items, keep):
                        keep = plan.keeps(chain.now, seconds)
                chain.advance(keep, look=settings.until_converged)
                self._tell(chain, scaling)
                if time.monotonic() - saved_at >= self.checkpoint_seconds:
                    self._save(chain)
                    saved_at = time.monotonic()
        except BaseException:
            if chain.done:  # else there is nothing that the same start would not give again
                with undisturbed():
                    self._save(chain)
            raise
        with undisturbed(afterwards=True):
            self._save(chain, ended=True)

    def _tell_why(self, plan: Stopping, now: Progressed) -> None:
        """Why a run ended early, if it did so by itself."""
        unit = "sweep" if self.settings.online is None else "epoch"
        if now.done < plan.sweeps and plan.converged(now):
            burn_in = now.done - now.moments.draws
            self.note(f"converged in {unit} {now.done}, the first {burn_in} of which are not kept")
        elif now.done < plan.burn_in:
            self.note(f"time was up in {unit} {now.done}, before the burn-in of {plan.burn_in} was over")

    def _regroup(self, chain: AnyChain, items: Items, keep: bool) -> bool:
        """Half-way through the burn-in, or at its end if that is sooner, tell anew which items look alike.

        Returns whether that was done: no draw is kept before, and never again after.
        """
        settings = self.settings
        if not isinstance(chain, Chain) or not settings.regroups(items.complete) or items.n_regions == 1:
            return False
        if not chain.may_regroup() or not (keep or chain.done >= settings.burn_in // 2):
            return False
        chain.regroup(partial(alike_in, items=items, seed=settings.seed, array_shape=settings.array_shape))
        return True

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
            except (InputError, OSError, MemoryError) as error:
                self.note(f"no checkpoint could be written after sweep {chain.done}: {reason(error)}")

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

    def _as_given(self, flat: np.ndarray) -> np.ndarray:
        """In the shape of the input, with as many channels."""
        array, copies = flat.reshape(self.settings.array_shape), self.settings.copies
        return np.repeat(array[..., None], copies, axis=-1) if copies else array

    def _tell_of_holes(self, nearby: np.ndarray | None) -> None:
        far = 0 if nearby is None else int(np.count_nonzero(nearby == 0))
        if far:
            what = "entries, as roots" if self.settings.counts else "entries"
            self.note(hole_sentence(far * max(1, self.settings.copies), what))

    def _tell_of_doubts(self, chain: AnyChain, scaled: np.ndarray, observed: np.ndarray) -> None:
        """Say so if the model found nothing, or if too little was kept to tell the uncertainty."""
        now = chain.now
        kept = chain.trace()["noise_std"][-now.moments.draws * chain.rows_per_sweep :]
        noise, whole = float(kept.mean()), math.sqrt(float(np.mean(scaled[observed] ** 2, dtype=np.float64)))
        if noise > _ALL_NOISE * whole:
            self.note(
                f"nearly all of the data was taken for noise, {noise / whole:.0%} of its size: what is "
                "written is little more than a constant, and its standard deviation does not tell of that"
            )
        if self.settings.model == "mgp-cp" and now.moments.draws == 1:
            self.note("only one draw was kept, of which the standard deviation is 0: it tells nothing")

    def _read_off(
        self, chain: AnyChain, scaling: Scaling, variance: np.ndarray, n_items: int, seconds: float
    ) -> Restoration:
        settings, now, trace = self.settings, chain.now, self._trace(chain, scaling)
        terms: dict[str, Any] = {}
        if isinstance(chain.model, MGPCPModel):
            weights, factors = chain.model.sorted_terms(now.state)
            terms = {"weights": scaling.inverse_std(weights), "factors": factors, "offset": scaling.offset}
        mean = scaling.inverse(now.moments.mean())
        std = scaling.inverse_std(np.sqrt(variance))
        noise = float(trace["noise_std"][-now.moments.draws * chain.rows_per_sweep :].mean())
        if settings.counts:
            mean, std = counts_of_roots(mean, std)
            noise *= math.sqrt(mean.mean())  # that of a count is the root of its mean
        return Restoration(
            mean=self._as_given(mean),
            std=self._as_given(std),
            noise_std=noise,
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
            notes=tuple(self.notes),
            **terms,
        )
