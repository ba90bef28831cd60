"""A chain under way: global state, kept draws and trace, advanced sweep by sweep."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from kruskal.engines.threads import ThreadEngine
from kruskal.gibbs.local import Codes, Shard
from kruskal.models import Global, Model
from kruskal.patches import Items, RunningMoments, Slab, cover, item_weights, scatter

TRACED = ("noise_std", "code_std", "active_per_item", "atoms_used", "alpha")


@dataclass
class Chain:
    """A Gibbs chain on an engine, with everything that is learned along the way.

    Attributes
    ----------
    done : number of sweeps made
    state : global state;  codes : local state, one `Codes` per shard
    moments : running moments of the reassembled array over the kept draws, in scaled units
    usage : (K,) sum over the kept draws of the number of items that use each atom
    trace : one list per name of `TRACED`, one value per sweep
    """

    model: Model
    engine: ThreadEngine
    seed: int
    burn_in: int
    cover: np.ndarray
    state: Global
    moments: RunningMoments
    usage: np.ndarray
    trace: dict[str, list[float]]
    done: int = 0

    @classmethod
    def begin(
        cls, model: Model, engine: ThreadEngine, items: Items, start: str, seed: int, burn_in: int
    ) -> "Chain":
        """A chain at its start: no sweep made."""
        counts = np.concatenate(engine.map(Shard.observed_counts))
        weights = cover(items, item_weights(counts), len(items.flat))
        return cls(
            model, engine, seed, burn_in, weights, model.start(start, items, seed),
            RunningMoments.zero(len(items.flat)), np.zeros(model.n_atoms), {name: [] for name in TRACED},
        )  # fmt: skip

    @property
    def codes(self) -> list[Codes]:
        """Codes of every shard."""
        return [shard.codes for shard in self.engine.shards]

    @codes.setter
    def codes(self, codes: list[Codes]) -> None:
        for shard, part in zip(self.engine.shards, codes, strict=True):
            shard.codes = part

    def advance(self) -> None:
        """Make one sweep; keep the draw if burn-in is over.

        Either all of it happens or, when interrupted, none: the state from before the sweep is put back.
        """
        before = self.codes
        try:
            state, report = self.model.sweep(self.state, self.engine, self.seed, self.done + 1)
            slabs: list[Slab] = []
            if self.done >= self.burn_in:
                dictionary = state.dictionary.astype(self.engine.dtype)
                slabs = self.engine.map(partial(_scatter_shard, dictionary=dictionary))
        except BaseException:
            self.engine.drain()
            self.codes = before
            raise
        self.state = state
        self.done += 1
        if slabs:
            self.moments.add(slabs, self.cover)
            self.usage = self.usage + report.counts
        for name, value in {
            "noise_std": state.noise_precision**-0.5,
            "code_std": state.code_precision**-0.5,
            "active_per_item": report.active_per_item,
            "atoms_used": float((report.counts > 0).sum()),
            "alpha": state.alpha,
        }.items():
            self.trace[name].append(float(value))


def _scatter_shard(shard: Shard, dictionary: np.ndarray) -> Slab:
    return scatter(shard.items, shard.codes, dictionary, item_weights(shard.observed_counts()))
