"""Training of a deep model under way: minibatch by minibatch, parts of a minibatch on threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from kruskal.deep import rmsprop
from kruskal.deep.dense import Dense
from kruskal.deep.objective import Part, Sums
from kruskal.engines.threads import Threads
from kruskal.models.dgdn import DeepModel, Start
from kruskal.random import Stream, generator

PARTS = 4
"""A minibatch is cut into so many parts, whatever the number of threads: sums are the same sums."""
TRACED = ("hinge", "residual", "training_error", "validation_error")


class Data(NamedTuple):
    """images : (N, M_x, M_y C) in working precision;  signs : (N, Y) +-1, 0 for images without label."""

    images: np.ndarray
    signs: np.ndarray


class Progressed(NamedTuple):
    """All that a step changes, in one piece: it is replaced as a whole or not at all.

    Attributes
    ----------
    done : number of steps made
    moving : parameters and what the optimiser keeps
    sums : of the epoch under way
    trace : (epochs, len(TRACED)) means per image of the epochs that are over; NaN where not known
    """

    done: int
    moving: rmsprop.Moving
    sums: Sums
    trace: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it but ``done``, by name."""
        return {**self.moving._asdict(), "sums": np.array(self.sums), "trace": self.trace}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Progressed":
        """The inverse, with ``done`` among the arrays."""
        moving = rmsprop.Moving(*(arrays[name] for name in rmsprop.Moving._fields))
        return cls(int(arrays["done"]), moving, Sums(*arrays["sums"].tolist()), arrays["trace"])


class Training:
    """Steps of training, each a pure function of the state before it.

    Parameters
    ----------
    model : what is trained;  start : where it begins;  data : what it is trained on
    schedule : of the optimiser, ``total`` steps in all;  batch_size : images of a minibatch
    seed : addresses order, cells and dropout
    engine : `PARTS` parts on threads
    validate : given the averaged parameters, a share of errors on other images; called after each epoch
    """

    def __init__(
        self,
        model: DeepModel,
        start: Start,
        data: Data,
        schedule: rmsprop.Schedule,
        batch_size: int,
        seed: int,
        engine: Threads[int],
        validate: Callable[[Dense], float] | None = None,
    ) -> None:
        self.model, self.scales, self.data, self.schedule = model, start.scales, data, schedule
        self.batch_size, self.seed, self.engine, self.validate = batch_size, seed, engine, validate
        self.steps_per_epoch = -(-len(data.images) // batch_size)
        self.now = Progressed(0, rmsprop.begin(start.parameters), Sums(), np.zeros((0, len(TRACED))))
        self._order = (-1, np.zeros(0, np.int64))

    def go_on_from(self, arrays: dict[str, np.ndarray]) -> None:
        """Put a saved state in the place of the present one."""
        self.now = Progressed.from_arrays(arrays)

    def advance(self) -> None:
        """Make one step; when interrupted, none."""
        before = self.now
        number = before.done + 1
        epoch, place = divmod(before.done, self.steps_per_epoch)
        items = self._epoch_order(epoch)[place * self.batch_size : (place + 1) * self.batch_size]
        batch = Part(self.data.images[items], items, self.data.signs[items], self._kept(len(items), number))
        draw = self.model.draw(self.seed, Stream.DEEP_CELLS, number)
        try:
            sums, gradient = self.model.gradient(
                before.moving.parameters, self.scales, batch, self.engine, draw
            )
        except BaseException:
            self.engine.drain()
            raise
        moving = rmsprop.step(before.moving, gradient, number, self.schedule)
        after = Progressed(number, moving, before.sums.plus(sums), before.trace)
        if place == self.steps_per_epoch - 1:
            after = self._epoch_ended(after)
        self.now = after

    def _epoch_ended(self, now: Progressed) -> Progressed:
        """Add a row to the trace."""
        n_images = len(self.data.images)
        n_labelled = int(np.count_nonzero(self.data.signs.any(axis=1)))
        error = np.nan
        if self.validate is not None:
            error = self.validate(self.model.dense(now.moving.average, self.scales))
        row = [
            now.sums.hinge / n_labelled if n_labelled else np.nan,
            now.sums.residual / n_images if self.model.terms.generative else np.nan,
            now.sums.wrong / n_labelled if n_labelled else np.nan,
            error,
        ]
        return now._replace(sums=Sums(), trace=np.vstack([now.trace, row]))

    def _epoch_order(self, epoch: int) -> np.ndarray:
        """The images in the order of this epoch."""
        if self._order[0] != epoch:
            random = generator(self.seed, Stream.DEEP_ORDER, epoch)
            self._order = (epoch, random.permutation(len(self.data.images)))
        return self._order[1]

    def _kept(self, n_images: int, number: int) -> np.ndarray | None:
        """What the top weights of the minibatch are multiplied with."""
        share, network = self.model.dropout, self.model.network
        if share == 0.0 or not network.n_classes:
            return None
        random = generator(self.seed, Stream.DEEP_DROPOUT, number)
        kept = random.random((n_images, network.n_features), np.float32) >= share
        return kept.astype(self.data.images.dtype) / self.data.images.dtype.type(1.0 - share)


@contextmanager
def part_threads(threads: int | None) -> Iterator[Threads[int]]:
    """The parts of minibatches on threads."""
    with Threads(list(range(PARTS)), threads) as engine:
        yield engine
