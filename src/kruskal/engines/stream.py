"""Learning from a stream of batches, and restoring items with what was learned; no codes are kept."""

from typing import NamedTuple

import numpy as np

from kruskal.engines.chain import TRACED, traced
from kruskal.engines.tasks import blas_on_one_thread
from kruskal.engines.threads import ThreadEngine
from kruskal.gibbs.surrogate import Filtered
from kruskal.models import FIRST_NOISE_PRECISION, Global
from kruskal.models.base import FactorModel
from kruskal.models.online import elsewhere, learn_from
from kruskal.patches import Items, RunningMoments


class Learned(NamedTuple):
    """What a stream of batches has taught: the global state, what is remembered, the sweeps made so far.

    ``trace`` has one row per batch, of its last sweep.
    """

    state: Global
    memory: Filtered
    sweeps: int = 0
    trace: np.ndarray = np.zeros((0, len(TRACED)))

    @classmethod
    def beginning(cls, state: Global) -> "Learned":
        """No batch yet; learning begins with ``state``."""
        return cls(state, Filtered.nothing(len(state.log_odds), *state.dictionary.shape))


def learn_batch(
    model: FactorModel, learned: Learned | None, items: Items, *, seed: int = 0, start: str = "pca",
    passes: int = 3, forgetting: float = 1.0, threads: int | None = None,
) -> Learned:  # fmt: skip
    """Learn from one more batch of a stream; its codes are forgotten afterwards.

    Parameters
    ----------
    learned : from the batches before; None begins with the ``start`` of that name, made from this batch
    forgetting : factor from 0 to 1 on everything that is remembered of the batches before
    """
    if learned is None:
        with blas_on_one_thread():  # its sums depend on the number of threads
            learned = Learned.beginning(model.start(start, items, seed))
    state, memory, sweeps, trace = learned
    with ThreadEngine(items, threads, len(state.log_odds)) as engine:
        after = learn_from(model, state, memory, engine, seed, sweeps + 1, passes, forgetting)
    assert isinstance(after.memory, Filtered)
    trace = traced(trace, model, after.state, after.report)
    return Learned(after.state, after.memory, sweeps + passes, trace)


class Expected(NamedTuple):
    """What sweeps over items with the atoms kept have told: running moments of their array, and a trace."""

    moments: RunningMoments
    trace: np.ndarray


def expect_batch(
    model: FactorModel, learned: Learned, items: Items, *, share: float, seed: int, place: int, sweeps: int,
    burn_in: int, threads: int | None = None,
) -> Expected:  # fmt: skip
    """Restore items with atoms from other batches; all sweeps after ``burn_in`` are kept.

    Parameters
    ----------
    model : with ``fixed_atoms``;  share : how much of what is remembered counts for usage and precisions
    place : number of the batch: each has sweep numbers of its own, after those of learning
    """
    n_regions = items.n_regions
    rest = elsewhere(learned.memory, n_regions, share)
    # noise starts large, as in every run: codes are then free to find their atoms
    state = learned.state._replace(
        log_odds=np.repeat(learned.state.log_odds, n_regions + 1, axis=0),
        noise_precision=FIRST_NOISE_PRECISION,
    )
    moments, trace = RunningMoments.zero(items.size), np.zeros((0, len(TRACED)))
    with ThreadEngine(items, threads, n_regions + 1) as engine:
        for turn in range(sweeps):
            number = learned.sweeps + place * sweeps + turn + 1
            state, report = model.sweep(state, engine, seed, number, rest)
            trace = traced(trace, model, state, report)
            if turn >= burn_in:
                moments = moments.with_draw(model.expect(state, engine), engine.share)
    return Expected(moments, trace)
