"""A dictionary that is learned from a stream of batches, and used on some of its items."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kruskal.data import Scaling
from kruskal.engines.chain import TRACED
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.stream import Expected, Learned, expect_batch, learn_batch
from kruskal.learning import describe
from kruskal.models import Global
from kruskal.models.base import FactorModel
from kruskal.models.online import passes_at
from kruskal.patches import Items
from kruskal.settings import Settings

_PASSES = 3
_SAY, _LEAST_SAY = 0.1, 500  # of what is remembered: per item at hand, and in items
_MANY = 2**62  # how many batches will come is not known


@dataclass(frozen=True, eq=False)
class Ongoing:
    """A stream under way; a batch makes a new one, and leaves this one as it is.

    Attributes
    ----------
    settings, scaling : as the first batch has settled them
    learned : what the batches have taught, None before the first
    n_items : number of items seen
    """

    settings: Settings
    scaling: Scaling
    learned: Learned | None
    n_items: int = 0

    @classmethod
    def beginning(cls, settings: Settings, scaling: Scaling, state: Global | None = None) -> "Ongoing":
        """No batch yet. Without a ``state`` to begin with, the first batch makes one."""
        return cls(settings, scaling, None if state is None else Learned.beginning(state))

    def after(self, items: Items, forgetting: float, threads: int) -> "Ongoing":
        """With one more batch, scaled; the first batches get more passes, see `passes_at`."""
        visits = 0 if self.learned is None else len(self.learned.trace)
        learned = learn_batch(
            self._model(items.n_items, forgetting), self.learned, items, seed=self.settings.seed,
            start=self.settings.start, passes=passes_at("incremental", _PASSES, _MANY, visits),
            forgetting=forgetting, threads=threads,
        )  # fmt: skip
        return replace(self, learned=learned, n_items=self.n_items + items.n_items)

    def expected(self, items: Items, *, place: int, sweeps: int, burn_in: int, threads: int) -> Expected:
        """What the items, scaled and in regions, are without noise: sweeps over them with the atoms kept.

        Usage and precisions are those of the items. What is remembered has a small say in them, so that items
        without an observed entry do no harm. ``place`` is the number of these items among others.
        """
        assert self.learned is not None
        seen = float(self.learned.memory.sums.region_sizes.sum())
        share = min(1.0, max(_SAY * items.n_items, _LEAST_SAY) / seen)
        model = replace(self._model(items.n_items, share), fixed_atoms=True)
        return expect_batch(
            model, self.learned, items, share=share, seed=self.settings.seed, place=place, sweeps=sweeps,
            burn_in=burn_in, threads=threads,
        )  # fmt: skip

    def dictionary(self, described: Mapping[str, Any], tolerance: float) -> Dictionary:
        """What is learned by now; the draw after the last batch is the only one that is kept."""
        assert self.learned is not None
        state, memory, _, trace = self.learned
        users = memory.sums.counts.sum(axis=0)
        traced = dict(zip(TRACED, trace.T))
        if self.settings.model == "bpfa":
            del traced["alpha"]
        shape = self.settings.patch_shape
        return Dictionary(
            shape=shape,
            state=state,
            scaling=self.scaling,
            mean_dictionary=np.where(users[:, None] > 0, state.dictionary, 0.0).reshape(-1, *shape),
            ranks=self._model(0, 1.0).ranks(state, tolerance),
            usage=users / memory.sums.region_sizes.sum(),
            trace=traced | {"noise_std": self.scaling.inverse_std(traced["noise_std"])},
            kept=1,
            n_items=self.n_items,
            settings=describe(self.settings) | dict(described),
        )

    def _model(self, n_new: int, forgetting: float) -> FactorModel:
        """The model; ``sparsity`` is per item, so the prior of the usage grows with what is remembered."""
        settings = self.settings
        if settings.sparsity is not None and self.learned is not None:
            n_items = n_new + forgetting * float(self.learned.memory.sums.region_sizes.sum())
            settings = replace(
                settings, usage_prior=(settings.usage_prior[0], max(1.0, settings.sparsity * n_items))
            )
        model = settings.build_model()
        assert isinstance(model, FactorModel)
        return model
