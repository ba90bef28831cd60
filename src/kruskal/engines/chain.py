"""A chain under way: global state, kept draws and trace, advanced sweep by sweep."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kruskal.errors import refuse_not_finite
from kruskal.gibbs.local import Codes
from kruskal.models import Model, SweepReport
from kruskal.models.base import FactorModel
from kruskal.patches import Items, PartialDraw, RunningMoments

TRACED = ("noise_std", "code_std", "active_per_item", "atoms_used", "alpha")


class Progressed(NamedTuple):
    """All that a sweep changes, in one piece: it is replaced as a whole or not at all.

    Attributes
    ----------
    done : number of sweeps made
    state : global state, a NamedTuple;  codes : local state, one `Codes` per shard, if the model has any
    moments : running moments of the reassembled array over the kept draws, in scaled units
    usage : (K,) sum over the kept draws of the number of items that use each atom
    trace : (done, len(TRACED)) one row per sweep
    checked_draws, checked : number of kept draws and estimate when it was last looked at for convergence
    shift : how far it had moved then since the look before, as a part of its std; infinite before two looks
    memory : what is remembered of batches (`kruskal.gibbs.surrogate.Memory`); nothing unless learning online
    keeping, partial : whether the draw of the present epoch is kept, and as much of it as there is
    region : (N,) which items share a usage; nothing if they know it themselves, or have none
    regrouped : number of sweeps after which they were grouped anew; 0 if they were not
    """

    done: int
    state: Any
    codes: tuple[Codes, ...]
    moments: RunningMoments
    usage: np.ndarray
    trace: np.ndarray
    checked_draws: int
    checked: np.ndarray
    shift: float
    memory: Any = ()
    keeping: bool = False
    partial: PartialDraw = PartialDraw.zero(0)
    region: np.ndarray = np.zeros(0, np.uint16)
    regrouped: int = 0

    @classmethod
    def beginning(
        cls,
        state: Any,
        codes: Sequence[Codes],
        size: int,
        n_atoms: int,
        memory: Any = (),
        region: np.ndarray | None = None,
    ) -> "Progressed":
        """No sweep made, for an array of ``size`` entries."""
        return cls(
            done=0,
            state=state,
            codes=tuple(codes),
            moments=RunningMoments.zero(size),
            usage=np.zeros(n_atoms),
            trace=np.zeros((0, len(TRACED))),
            checked_draws=0,
            checked=np.zeros(0),
            shift=math.inf,
            memory=memory,
            region=np.zeros(0, np.uint16) if region is None else region,
        )


@dataclass
class Chain:
    """A Gibbs chain on an engine, with everything that is learned along the way."""

    model: Model
    engine: Any
    seed: int
    now: Progressed

    @classmethod
    def begin(cls, model: Model, engine: Any, items: Items, start: str | Any, seed: int) -> "Chain":
        """A chain at its start: no sweep made. ``start`` is the name of a start, or a state."""
        state = model.start(start, items, seed) if isinstance(start, str) else start
        now = Progressed.beginning(state, engine.codes(), items.size, model.n_atoms, region=engine.regions())
        return cls(model, engine, seed, now)

    @property
    def done(self) -> int:
        """Number of sweeps made."""
        return self.now.done

    @property
    def rows_per_sweep(self) -> int:
        """Rows of the trace that a sweep over all items adds."""
        return 1

    def in_sweeps(self) -> Progressed | None:
        """The state counted in sweeps over all items; None in the middle of one."""
        return self.now

    def go_on_from(self, saved: Progressed) -> None:
        """Put another state, such as a saved one, in the place of the present one."""
        self.engine.put_codes(saved.codes)
        self.engine.put_regions(saved.region)
        self.now = saved

    def trace(self) -> dict[str, np.ndarray]:
        """The trace by name: one value per sweep."""
        return dict(zip(TRACED, self.now.trace.T))

    def may_regroup(self) -> bool:
        """Whether the items may still be given other regions: no draw was kept, it was not done before, and
        regions have a usage of their own by now."""
        before_that = self.model.delay if isinstance(self.model, FactorModel) else math.inf
        return self.done >= before_that and not self.now.regrouped and not self.now.moments.draws

    def regroup(self, regions_of: Callable[[np.ndarray], np.ndarray]) -> None:
        """Give the items other regions, as many as before at most, and draw the usage of these.

        ``regions_of`` makes them, (N,), of what the array (flat, scaled) is expected to be now. Either all of
        it happens or, when interrupted, none.
        """
        before = self.now
        assert isinstance(self.model, FactorModel)
        try:
            slabs = self.model.expect(before.state, self.engine)
            nothing = RunningMoments.zero(len(before.moments.weight))
            region = regions_of(nothing.with_draw(slabs, self.engine.share).mean())
            self.engine.put_regions(region)
            state = self.model.in_other_regions(before.state, self.engine, self.seed, before.done)
        except BaseException:
            self.engine.drain()
            self.engine.put_regions(before.region)
            raise
        self.now = before._replace(state=state, region=region, regrouped=before.done)

    def advance(self, keep: bool, look: bool = False) -> None:
        """Make one sweep, keep the draw or not, and look for convergence or not.

        Either all of it happens or, when interrupted, none: codes are replaced by a sweep, never changed, so
        those from before can be put back, and the rest is replaced by one assignment.
        """
        before = self.now
        try:
            state, report = self.model.sweep(before.state, self.engine, self.seed, before.done + 1)
            moments, usage = before.moments, before.usage
            if keep:
                moments = moments.with_draw(self.model.expect(state, self.engine), self.engine.share)
                usage = usage + report.counts
            after = before._replace(
                done=before.done + 1, state=state, codes=self.engine.codes(), moments=moments,
                usage=usage, trace=traced(before.trace, self.model, state, report),
            )  # fmt: skip
            after = looked_at(after) if look else after
        except BaseException:
            self.engine.drain()
            self.engine.put_codes(before.codes)
            raise
        self.now = after


def traced(trace: np.ndarray, model: Model, state: Any, report: SweepReport) -> np.ndarray:
    """The trace with one more row."""
    watched = model.watched(state, report)
    row = [watched[name] for name in TRACED]
    refuse_not_finite(row, f"sweep {len(trace) + 1}")
    return np.vstack([trace, row])


def looked_at(now: Progressed) -> Progressed:
    """Compare the estimate with what it was at the last look, once half as many draws again are kept."""
    if now.moments.draws < next_check(now.checked_draws):
        return now
    estimate, shift = now.moments.mean(), math.inf
    if now.checked_draws > 0:
        shift = estimate_shift(estimate, now.checked, np.sqrt(now.moments.variance()))
    return now._replace(checked_draws=now.moments.draws, checked=estimate, shift=shift)


def next_check(draws: int) -> int:
    """Number of draws at which the estimate is compared with that of now: half as many again, at least 10."""
    return max(10, -(-3 * draws // 2))


def estimate_shift(new: np.ndarray, old: np.ndarray, std: np.ndarray) -> float:
    """Root mean square of the change of the estimate, as a part of that of its std."""
    spread = math.sqrt(float((std**2).mean()))
    return math.sqrt(float(((new - old) ** 2).mean())) / spread if spread > 0.0 else 0.0
