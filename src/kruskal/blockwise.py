"""A run over an array that is not in memory: a first look at it, learning from it, restoring it."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import SMALLEST_NORMAL, Scaling, far_entries, observed_entries, refuse_constant, refuse_tiny
from kruskal.data.lazy import LazyArray, open_lazy, written_in_boxes
from kruskal.data.masks import refuse_masked
from kruskal.data.outliers import TOO_FAR
from kruskal.defaults import Look, default_regions
from kruskal.engines.chain import TRACED
from kruskal.engines.progress import Progress
from kruskal.engines.regions import in_regions
from kruskal.engines.stream import Expected
from kruskal.engines.tasks import blas_on_one_thread
from kruskal.errors import InputError, one_of, shown
from kruskal.gibbs.start import evenly_spread
from kruskal.models.base import FactorModel
from kruskal.ongoing import Ongoing
from kruskal.patches import (
    Blocks,
    Grid,
    Items,
    Ordinary,
    Part,
    Slices,
    hole_sentence,
    hole_variance,
    nearby_share,
    seen_slices,
    within,
)
from kruskal.random import Stream, generator
from kruskal.settings import Settings

_Matrix = tuple[np.ndarray, np.ndarray]  # patches (n, m_1, .., m_T) and which of their entries are observed
_PER_ATOM = 10  # patches that the start wants to see
_SAMPLED = 8  # blocks that a first look, and the start, are at


@dataclass(frozen=True)
class Scene:
    """The array to restore and its mask, neither of them in memory.

    ``declared`` is what a masked array, which is in memory, says itself: True is observed.
    """

    values: LazyArray
    mask: LazyArray | None
    mask_is: str
    declared: np.ndarray | None = None

    @classmethod
    def of(cls, source: Any, observed: Any, key: str | None, mask_key: str | None, mask_is: str) -> "Scene":
        """Open both; only their shapes and types are looked at."""
        for name, chosen, read in (("key", key, source), ("mask_key", mask_key, observed)):
            if chosen is not None and not isinstance(read, str | os.PathLike):
                raise InputError(
                    f"{name} is {shown(chosen)}, but there is no file to find it in: leave {name} out"
                )
        values = open_lazy(source, "source", key)
        refuse_masked(observed, "observed")
        mask = None if observed is None else open_lazy(observed, "observed", mask_key)
        if mask is not None and mask.shape not in (values.shape, values.shape[:-1]):
            raise InputError(f"observed has shape {mask.shape}, expected {values.shape} like source")
        one_of("mask_is", mask_is, ("observed", "missing"))
        if mask is None and mask_is == "missing":
            raise InputError("mask_is is 'missing' without a mask: give observed, or leave mask_is out")
        declared = ~np.ma.getmaskarray(source) if isinstance(source, np.ma.MaskedArray) else None
        return cls(values, mask, mask_is, declared)

    def read(self, box: tuple[slice, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The entries of a box and which of them are observed."""
        values = self.values.read(box)
        mask = None if self.mask is None else self.mask.read(box[: len(self.mask.shape)])
        where = ", ".join(f"{here.start}:{here.stop}" for here in box)
        observed = observed_entries(
            values, mask, mask_is=self.mask_is, may_be_none=True,
            declared=None if self.declared is None else self.declared[box],
            name=f"[{where}] of {self.values.name}",
            mask_name="observed" if self.mask is None else f"[{where}] of {self.mask.name}",
        )  # fmt: skip
        return values, observed

    def first_look(
        self, block_shape: tuple[int, ...], seed: int
    ) -> tuple[Look, Scaling, Ordinary, str | None]:
        """A look at some blocks; at others as long as what was seen is nothing, or all the same.

        Also what the entries seen are like, scaled, and a note if one of them lies far outside.
        """
        ones = (1,) * len(block_shape)
        blocks = Blocks(Grid(self.values.shape, ones, ones), block_shape)
        values: list[np.ndarray] = []
        masks: list[np.ndarray] = []
        for number in _sample_order(blocks, seed):
            if len(values) == _SAMPLED:
                if not _all_the_same(values, masks):
                    break
                values, masks = values[1:], masks[1:]
            here, seen = self.read(blocks.core(number))
            if seen.any():
                values.append(here)
                masks.append(seen)
        if not values:
            raise InputError(f"nothing of {self.values.name} is observed: all its entries are missing")
        flat, flags = (np.concatenate([one.ravel() for one in parts]) for parts in (values, masks))
        refuse_constant(flat, flags, self.values.name)
        refuse_tiny(flat, self.values.name, SMALLEST_NORMAL, flags)
        far = far_entries(flat, flags, self.values.name)
        scaling = Scaling.fit(flat, flags)
        look = Look.at_all(values, masks, scaling.scale)
        return look, scaling, Ordinary.of(scaling.forward(flat[flags])), far


@dataclass(frozen=True, kw_only=True)
class BlockwiseRun:
    """One run: what it is told, see `kruskal.inpaint_large`, and who is told how far it is.

    ``slices`` are learned on the way: every block is read for the atoms before any is restored; so are
    ``notes``, what there is to say of the result.
    """

    scene: Scene
    settings: Settings
    scaling: Scaling
    ordinary: Ordinary
    blocks: Blocks
    look: Look
    regions: int | None
    batch_size: int
    epochs: int
    forgetting: float
    sweeps: int
    burn_in: int
    threads: int
    progress: Progress
    slices: Slices = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def learn(self) -> Ongoing:
        """Go over the blocks in random order and learn from some of the patches that begin in each."""
        ongoing = Ongoing.beginning(self.settings, self.scaling, self._start())
        n_blocks = self.blocks.n_blocks
        for epoch in range(self.epochs):
            waiting: list[_Matrix] = []
            order = generator(self.settings.seed, Stream.BLOCK_ORDER, epoch).permutation(n_blocks)
            for done, number in enumerate(order, start=epoch * n_blocks + 1):
                waiting += self._sample(int(number), done, self.batch_size)
                last = done == (epoch + 1) * n_blocks
                # blocks with few patches wait for others
                if waiting and (last or _count(waiting) >= self.batch_size):
                    ongoing = ongoing.after(_items(waiting), self.forgetting, self.threads)
                    waiting = []
                if ongoing.learned is not None and len(ongoing.learned.trace) > 0:
                    self._tell(done, ongoing.learned.trace[-1], epoch + 1)
        return ongoing

    def restore(self, ongoing: Ongoing, target: str | Path, std: str | Path | None) -> float:
        """Restore and write the blocks one after the other; returns the mean noise, in units of the data."""
        values, noise, far = self.scene.values, [], 0
        extras = {"chunks": self.blocks.block_shape, **values.extras}
        with ExitStack() as stack:
            put = stack.enter_context(written_in_boxes(target, values.shape, values.dtype, extras))
            put_std = None
            if std is not None:
                # scaled deviations lie around one, so float32 holds them unless the data are extreme
                dtype = np.float32 if 1e-30 < self.scaling.scale < 1e30 else np.float64
                put_std = stack.enter_context(written_in_boxes(std, values.shape, dtype, extras))
            for number in range(self.blocks.n_blocks):
                part, core = self.blocks.covering(number), self.blocks.core(number)
                box = self.blocks.surroundings(number)
                scaled, seen = self._read(box)
                nearby = nearby_share(seen, self.settings.patch_shape, values.shape, self.slices)
                inside = within(box, part.box)
                scaled, seen, nearby = scaled[inside], seen[inside], nearby[inside]
                found = self._expected(ongoing, part, scaled, seen, number)
                put(core, self.scaling.inverse(_core(found.moments.mean(), part, core)))
                far += int(np.count_nonzero(_core(nearby, part, core) == 0))
                if put_std is not None:
                    variance = hole_variance(found.moments, seen, nearby, self.ordinary)
                    put_std(core, self.scaling.inverse_std(np.sqrt(_core(variance, part, core))))
                self._tell(self.epochs * self.blocks.n_blocks + number + 1, found.trace[-1])
                noise.append(found.trace[self.burn_in :, TRACED.index("noise_std")].mean())
        if far:
            self.notes.append(hole_sentence(far))
            self.progress.note(self.notes[-1])
        return float(self.scaling.inverse_std(np.mean(noise)))

    def _expected(
        self, ongoing: Ongoing, part: Part, scaled: np.ndarray, seen: np.ndarray, number: int
    ) -> Expected:
        regions = default_regions(part.n_items, self.look) if self.regions is None else self.regions
        patches = partial(part.cut, scaled, seen)
        items = in_regions(patches, regions, self.settings.grouping, self.settings.seed, scaled.shape)
        return ongoing.expected(
            items, place=number, sweeps=self.sweeps, burn_in=self.burn_in, threads=self.threads
        )

    def _start(self) -> Any:
        """The state in which learning begins, made from patches of several blocks."""
        model, seed = self.settings.build_model(), self.settings.seed
        assert isinstance(model, FactorModel)
        most = len(evenly_spread(self.settings.grid.n_items)) // _SAMPLED + 1
        found: list[_Matrix] = []
        for number in _sample_order(self.blocks, seed):
            found += self._sample(number, 0, most)
            if len(found) >= _SAMPLED and _count(found) >= _PER_ATOM * self.settings.n_atoms:
                break
        if not found:
            raise InputError(f"nothing is observed where patches of {self.scene.values.name} begin")
        with blas_on_one_thread():  # its sums depend on the number of threads
            return model.start(self.settings.start, _items(found), seed)

    def _sample(self, number: int, visit: int, most: int) -> list[_Matrix]:
        """At most so many of the patches that begin in a block and have an observed entry, at random."""
        part = self.blocks.own(number)
        if part is None:
            return []
        scaled, seen = self._read(part.box)
        for axis, found in seen_slices(seen, self.settings.patch_shape, self.scene.values.shape).items():
            self.slices[axis] = self.slices.get(axis, False) | found
        if not seen.any():
            return []
        items = part.cut(scaled, seen)
        order = np.arange(items.n_items)
        if items.n_items > most:
            order = generator(self.settings.seed, Stream.BLOCK_ITEMS, visit).permutation(items.n_items)
        chosen = _with_data(items, order, most)
        return [_as_matrix(items.take(chosen))] if len(chosen) else []

    def _read(self, box: tuple[slice, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The scaled entries of a box, and which of them are observed."""
        values, seen = self.scene.read(box)
        scaled = self.scaling.forward(np.where(seen, values, 0))
        if not np.abs(scaled).max(initial=0) <= TOO_FAR:
            raise InputError(
                f"{self.scene.values.name} holds values that are too large beside those of a first look at it"
            )
        return scaled, seen

    def _tell(self, done: int, row: np.ndarray, epoch: int | None = None) -> None:
        shown = dict(zip(TRACED, map(float, row)))
        shown["noise_std"] *= self.scaling.scale
        self.progress.update(done, shown if epoch is None else shown | {"epoch": epoch})


def _sample_order(blocks: Blocks, seed: int) -> list[int]:
    """All blocks in random order, for what looks at the first few."""
    return [int(n) for n in generator(seed, Stream.BLOCK_SAMPLE, 0).permutation(blocks.n_blocks)]


def _all_the_same(values: Sequence[np.ndarray], masks: Sequence[np.ndarray]) -> bool:
    first = values[0][masks[0]][0]
    return all(bool((here[seen] == first).all()) for here, seen in zip(values, masks))


def _as_matrix(items: Items) -> _Matrix:
    """The items one by one, (n, m_1, .., m_T), and which of their entries are observed."""
    place = items.origin[:, None] + items.offset[None, :]
    seen = np.ones(place.shape, bool) if items.complete else items.observed[place]
    return items.flat[place].reshape(-1, *items.shape), seen.reshape(-1, *items.shape)


def _with_data(items: Items, order: np.ndarray, most: int) -> np.ndarray:
    """The first so many, in that order, of the items of which anything is observed; their numbers, sorted."""
    if items.complete:
        return np.sort(order[:most])
    found: list[np.ndarray] = []
    for first in range(0, len(order), most):
        some = order[first : first + most]
        found.append(some[items.observed[items.origin[some][:, None] + items.offset].any(axis=1)])
        if sum(map(len, found)) >= most:
            break
    return np.sort(np.concatenate(found)[:most])


def _count(parts: Sequence[_Matrix]) -> int:
    return sum(len(values) for values, _ in parts)


def _items(parts: Sequence[_Matrix]) -> Items:
    """Patches of several blocks as one batch."""
    values, masks = (np.concatenate(arrays) for arrays in zip(*parts))
    return Items.from_matrix(values, masks)


def _core(flat: np.ndarray, part: Part, core: tuple[slice, ...]) -> np.ndarray:
    """The entries of a block out of the box that its patches lie in."""
    return flat.reshape(part.grid.array_shape)[within(part.box, core)]
