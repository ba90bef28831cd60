"""The paper's literal training under way: codes of every image are kept between visits."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from kruskal.deep import rmsprop
from kruskal.deep.dense import Dense
from kruskal.deep.objective import Part, Sums
from kruskal.engines.threads import Threads
from kruskal.engines.training import TRACED, Data
from kruskal.models.dgdn import DeepModel, Start
from kruskal.models.mcem import Codes, MonteCarloEM
from kruskal.random import Stream, generator


class Progressed(NamedTuple):
    """All that a step changes; see `kruskal.engines.training.Progressed`.

    Attributes
    ----------
    codes : of the minibatches, which hold the same images throughout; replaced, never changed
    """

    done: int
    moving: rmsprop.Moving
    sums: Sums
    trace: np.ndarray
    codes: tuple[Codes, ...]

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but ``done``, by name."""
        features, places = zip(*self.codes)
        kept = {"features": np.concatenate(features), "places": np.concatenate(places)}
        return {**self.moving._asdict(), "sums": np.array(self.sums), "trace": self.trace, **kept}


class MonteCarloTraining:
    """Visits to minibatches of fixed images in random order; parameters as of `Training`."""

    def __init__(
        self,
        model: DeepModel,
        expectation: MonteCarloEM,
        start: Start,
        data: Data,
        schedule: rmsprop.Schedule,
        batch_size: int,
        seed: int,
        engine: Threads[int],
        validate: Callable[[Dense], float] | None = None,
    ) -> None:
        self.model, self.expectation, self.scales, self.schedule = model, expectation, start.scales, schedule
        self.data, self.seed, self.engine, self.validate = data, seed, engine, validate
        n_images = len(data.images)
        order = generator(seed, Stream.DEEP_ORDER, 2**32).permutation(n_images)
        self.batches = [order[first : first + batch_size] for first in range(0, n_images, batch_size)]
        self.steps_per_epoch = len(self.batches)
        dense = model.dense(start.parameters, start.scales)
        codes = tuple(expectation.begin(dense, data.images[items], items) for items in self.batches)
        trace = np.zeros((0, len(TRACED)))
        self.now = Progressed(0, rmsprop.begin(start.parameters), Sums(), trace, codes)

    def go_on_from(self, arrays: dict[str, np.ndarray]) -> None:
        """Put a saved state in the place of the present one."""
        ends = np.cumsum([len(items) for items in self.batches])[:-1]
        codes = zip(np.split(arrays["features"], ends), np.split(arrays["places"], ends))
        moving = rmsprop.Moving(*(arrays[name] for name in rmsprop.Moving._fields))
        self.now = Progressed(
            int(arrays["done"]), moving, Sums(*arrays["sums"].tolist()), arrays["trace"],
            tuple(Codes(*one) for one in codes),
        )  # fmt: skip

    def advance(self) -> None:
        """Make one visit; when interrupted, none."""
        before = self.now
        epoch, place = divmod(before.done, self.steps_per_epoch)
        chosen = int(generator(self.seed, Stream.DEEP_ORDER, epoch).permutation(self.steps_per_epoch)[place])
        parameters = before.moving.parameters
        dense = self.model.dense(parameters, self.scales)
        items = self.batches[chosen]
        batch = Part(self.data.images[items], items, self.data.signs[items])
        visit = partial(
            self._visit, dense=dense, codes=before.codes[chosen], batch=batch, number=before.done + 1
        )
        try:
            found = self.engine.map(visit)
        except BaseException:
            self.engine.drain()
            raise
        sums, slope, _ = found[0]
        for other_sums, other_slope, _ in found[1:]:
            sums = sums.plus(other_sums)
            slope.add(other_slope)
        codes = Codes(*(np.concatenate(arrays) for arrays in zip(*(part for _, _, part in found))))
        gradient = self.model.chain(parameters, self.scales, slope)
        gradient /= parameters.dtype.type(len(items))
        gradient += self.model.prior_slope(parameters, len(self.data.images))
        moving = rmsprop.step(before.moving, gradient, before.done + 1, self.schedule)
        all_codes = (*before.codes[:chosen], codes, *before.codes[chosen + 1 :])
        after = Progressed(before.done + 1, moving, before.sums.plus(sums), before.trace, all_codes)
        if place == self.steps_per_epoch - 1:
            after = self._epoch_ended(after)
        self.now = after

    def _visit(
        self, number_of_part: int, dense: Dense, codes: Codes, batch: Part, number: int
    ) -> tuple[Sums, Dense, Codes]:
        bounds = np.linspace(0, len(batch.images), self.engine.n_shards + 1).astype(int)
        part = slice(bounds[number_of_part], bounds[number_of_part + 1])
        cut = Part(batch.images[part], batch.items[part], batch.signs[part])
        if part.start == part.stop:  # fewer images than parts
            empty = Codes(*(array[part] for array in codes))
            return Sums(), Dense.zeros(self.model.network, batch.images.dtype), empty
        labels = self.model.network.n_classes > 0
        mine, inverse_scales = self.expectation.visit(
            dense,
            Codes(*(array[part] for array in codes)),
            cut,
            self.seed,
            number,
            Stream.DEEP_UNPOOLING,
            labels,
        )
        sums, slope = self.expectation.gradient(dense, mine, cut, inverse_scales)
        return sums, slope, mine

    def _epoch_ended(self, now: Progressed) -> Progressed:
        n_images, n_labelled = len(self.data.images), int(np.count_nonzero(self.data.signs.any(axis=1)))
        error = np.nan
        if self.validate is not None:
            error = self.validate(self.model.dense(now.moving.average, self.scales))
        share = 1.0 / n_labelled if n_labelled else np.nan
        row = [share * now.sums.hinge, now.sums.residual / n_images, share * now.sums.wrong, error]
        return now._replace(sums=Sums(), trace=np.vstack([now.trace, row]))
