"""A chain that learns batch by batch: one batch is at hand, the others are remembered.

Progress is counted in visits to batches. An epoch visits every batch once, and is to an online run what a
sweep is to another: the kept draws are made of the items of a whole epoch, each as it was at its visit.
"""

from dataclasses import dataclass

import numpy as np

from kruskal.engines.batches import Batches, Source
from kruskal.engines.chain import TRACED, Chain, Progressed, looked_at, traced
from kruskal.engines.tasks import blas_on_one_thread
from kruskal.engines.threads import ThreadEngine
from kruskal.gibbs.local import Codes, join_codes, pick_codes, split_codes
from kruskal.gibbs.start import evenly_spread
from kruskal.gibbs.surrogate import Sums, added
from kruskal.models import Global
from kruskal.models.base import FactorModel
from kruskal.models.online import (
    Visit,
    new_epoch,
    nothing_seen,
    passes_at,
    refresh,
    settle,
    visit,
)
from kruskal.patches import PartialDraw


@dataclass
class OnlineChain:
    """A chain over batches; see `kruskal.engines.chain.Chain`, of which it has the form.

    Attributes
    ----------
    source : where the items of a batch come from
    batches : which items these are, and when it is their turn
    kind : what is remembered, one of `kruskal.models.online.KINDS`;  passes : sweeps over a batch per visit
    now : ``done`` counts visits, ``codes`` has one part per batch in the arrangement of the present epoch
    """

    model: FactorModel
    engine: ThreadEngine
    source: Source
    batches: Batches
    kind: str
    passes: int
    seed: int
    now: Progressed

    @classmethod
    def begin(
        cls, model: FactorModel, source: Source, *, n_batches: int, kind: str, passes: int,
        start: str | Global, seed: int, threads: int | None = None,
    ) -> "OnlineChain":  # fmt: skip
        """A chain at its start; it has an engine of its own, see `close`."""
        batches = Batches(source.n_items, n_batches, seed, reshuffled=kind == "cdf")
        sample = source.take(evenly_spread(source.n_items))
        with blas_on_one_thread():  # its sums depend on the number of threads
            state = model.start(start, sample, seed) if isinstance(start, str) else start
        state = state._replace(log_odds=np.tile(state.log_odds[:1], (source.n_regions, 1)))
        memory = nothing_seen(kind, n_batches, source.n_regions, state, source.complete)
        codes = [Codes.empty(size, sample.flat.dtype) for size in batches.sizes]
        now = Progressed.beginning(state, codes, source.size, model.n_atoms, memory)
        return cls(model, ThreadEngine(sample.part(0, 1), threads), source, batches, kind, passes, seed, now)

    @property
    def done(self) -> int:
        """Number of visits made."""
        return self.now.done

    @property
    def rows_per_sweep(self) -> int:
        """Rows of the trace that an epoch adds: one per visit."""
        return self.batches.n_batches

    def in_sweeps(self) -> Progressed | None:
        """The state counted in epochs, its trace averaged over them; None in the middle of one."""
        epochs, place = divmod(self.done, self.batches.n_batches)
        if place > 0:
            return None
        trace = self.now.trace.reshape(epochs, self.batches.n_batches, len(TRACED)).mean(axis=1)
        return self.now._replace(done=epochs, trace=trace)

    def go_on_from(self, saved: Progressed) -> None:
        """Put another state, such as a saved one, in the place of the present one."""
        self.now = saved

    def trace(self) -> dict[str, np.ndarray]:
        """The trace by name: one value per visit."""
        return dict(zip(TRACED, self.now.trace.T))

    def close(self) -> None:
        """Stop the threads."""
        self.engine.close()

    def __enter__(self) -> "OnlineChain":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def advance(self, keep: bool, look: bool = False) -> None:
        """Visit the next batch; ``keep`` counts when an epoch begins, ``look`` when it ends.

        Either all of it happens or, when interrupted, none.
        """
        try:
            after = self._after_visit(keep)
            if after.done % self.batches.n_batches == 0:
                after = self._after_epoch(after, look)
        except BaseException:
            self.engine.drain()
            raise
        self.now = after

    def _after_visit(self, keep: bool) -> Progressed:
        now = self.now
        epoch, place = divmod(now.done, self.batches.n_batches)
        if place == 0:
            now = self._new_epoch(now, epoch, keep)
        batch = int(self.batches.order(epoch)[place])
        self._hold(now.codes, epoch, batch)
        made: Visit = visit(
            self.model, now.state, now.memory, self.engine, batch, epoch > 0, now.keeping, self.seed,
            self._numbers_before(now.done) + 1, self._passes_at(now.done),
        )  # fmt: skip
        draw, usage = now.partial, now.usage
        if now.keeping:
            draw = draw.with_slabs(self.model.expect(made.state, self.engine))
            usage = usage + made.report.counts
        return now._replace(
            done=now.done + 1, state=made.state, memory=made.memory, codes=self._with_codes(now.codes, batch),
            partial=draw, usage=usage, trace=traced(now.trace, self.model, made.state, made.report),
        )  # fmt: skip

    def _new_epoch(self, now: Progressed, epoch: int, keep: bool) -> Progressed:
        codes = now.codes
        if self.batches.reshuffled and epoch > 0:
            place = np.empty(self.source.n_items, np.int64)
            place[self.batches.arrangement(epoch - 1)] = np.arange(self.source.n_items)
            moved = pick_codes(join_codes(codes), place[self.batches.arrangement(epoch)])
            codes = tuple(split_codes(moved, self.batches.sizes))
        draw = PartialDraw.zero(self.source.size if keep else 0)
        return now._replace(codes=codes, memory=new_epoch(now.memory), keeping=keep, partial=draw)

    def _after_epoch(self, now: Progressed, look: bool) -> Progressed:
        if now.keeping:
            now = now._replace(moments=now.moments.with_whole(now.partial), partial=PartialDraw.zero(0))
        if self.kind == "cdf" and now.done == self.batches.n_batches:
            now = self._after_refresh(now)
        return looked_at(now) if look else now

    def _after_refresh(self, now: Progressed) -> Progressed:
        """The paper's update of all codes, and from these of all scalars, when the first epoch is over."""
        number = self._numbers_before(now.done)  # the one that the last visit left free
        codes, sums = now.codes, Sums.zero(*now.state.log_odds.shape)
        for batch in range(self.batches.n_batches):
            self._hold(codes, 0, batch)
            sums = added(sums, refresh(self.model, now.state, self.engine, self.seed, number))
            codes = self._with_codes(codes, batch)
        return now._replace(codes=codes, state=settle(self.model, now.state, sums, self.seed, number))

    def _passes_at(self, visits: int) -> int:
        return passes_at(self.kind, self.passes, self.batches.n_batches, visits)

    def _numbers_before(self, visits: int) -> int:
        """Sweep numbers that these visits may use; the paper's have one more, for the update of all codes."""
        first = min(visits, self.batches.n_batches)
        free = 1 if self.kind == "cdf" else 0
        return sum(map(self._passes_at, range(first))) + (visits - first) * self.passes + visits * free

    def _hold(self, codes: tuple[Codes, ...], epoch: int, batch: int) -> None:
        """Let the engine hold a batch. Random numbers know items by their place in the arrangement."""
        first, stop = self.batches.bounds[batch : batch + 2]
        items = self.source.take(self.batches.arrangement(epoch)[first:stop])
        self.engine.hold(items, self.source.n_regions, int(first), codes[batch])

    def _with_codes(self, codes: tuple[Codes, ...], batch: int) -> tuple[Codes, ...]:
        """All codes, with those of the engine for a batch."""
        new = join_codes(self.engine.codes())
        return (*codes[:batch], new, *codes[batch + 1 :])


AnyChain = Chain | OnlineChain
