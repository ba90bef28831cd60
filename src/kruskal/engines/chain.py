"""A chain under way: global state, kept draws and trace, advanced sweep by sweep."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.codes import atom_products
from kruskal.gibbs.expected import expect_items
from kruskal.gibbs.local import Codes, Shard
from kruskal.models import Engine, Global, Model
from kruskal.patches import Items, RunningMoments

TRACED = ("noise_std", "code_std", "active_per_item", "atoms_used", "alpha")


class Progressed(NamedTuple):
    """All that a sweep changes, in one piece: it is replaced as a whole or not at all.

    Attributes
    ----------
    done : number of sweeps made
    state : global state;  codes : local state, one `Codes` per shard
    moments : running moments of the reassembled array over the kept draws, in scaled units
    usage : (K,) sum over the kept draws of the number of items that use each atom
    trace : (done, len(TRACED)) one row per sweep
    checked_draws, checked : number of kept draws and estimate when it was last looked at for convergence
    shift : how far it had moved then since the look before, as a part of its std; infinite before two looks
    """

    done: int
    state: Global
    codes: tuple[Codes, ...]
    moments: RunningMoments
    usage: np.ndarray
    trace: np.ndarray
    checked_draws: int
    checked: np.ndarray
    shift: float


@dataclass
class Chain:
    """A Gibbs chain on an engine, with everything that is learned along the way."""

    model: Model
    engine: Engine
    seed: int
    now: Progressed

    @classmethod
    def begin(cls, model: Model, engine: Engine, items: Items, start: str, seed: int) -> "Chain":
        """A chain at its start: no sweep made."""
        first = Progressed(
            done=0,
            state=model.start(start, items, seed),
            codes=tuple(engine.map(_codes_of)),
            moments=RunningMoments.zero(len(items.flat)),
            usage=np.zeros(model.n_atoms),
            trace=np.zeros((0, len(TRACED))),
            checked_draws=0,
            checked=np.zeros(0),
            shift=math.inf,
        )
        return cls(model, engine, seed, first)

    @property
    def done(self) -> int:
        """Number of sweeps made."""
        return self.now.done

    def go_on_from(self, saved: Progressed) -> None:
        """Put another state, such as a saved one, in the place of the present one."""
        self.engine.put_codes(saved.codes)
        self.now = saved

    def trace(self) -> dict[str, np.ndarray]:
        """The trace by name: one value per sweep."""
        return dict(zip(TRACED, self.now.trace.T))

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
                dictionary = state.dictionary.astype(self.engine.dtype)
                expected = partial(
                    expect_items, dictionary=dictionary,
                    products=atom_products(dictionary, self.engine.complete),
                    code_precision=state.code_precision, noise_precision=state.noise_precision,
                )  # fmt: skip
                moments, usage = moments.with_draw(self.engine.map(expected)), usage + report.counts
            row = {
                "noise_std": state.noise_precision**-0.5,
                "code_std": state.code_precision**-0.5,
                "active_per_item": report.active_per_item,
                "atoms_used": (report.counts > 0).sum(),
                "alpha": state.alpha,
            }
            trace = np.vstack([before.trace, [float(row[name]) for name in TRACED]])
            codes = tuple(self.engine.map(_codes_of))
            after = before._replace(
                done=before.done + 1, state=state, codes=codes, moments=moments, usage=usage, trace=trace
            )
            after = looked_at(after) if look else after
        except BaseException:
            self.engine.drain()
            self.engine.put_codes(before.codes)
            raise
        self.now = after


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


def _codes_of(shard: Shard) -> Codes:
    return shard.codes
