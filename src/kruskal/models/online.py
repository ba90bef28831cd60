"""Learning batch by batch: what is drawn at a visit to a batch, and what is remembered of it afterwards.

The engine holds the items of one batch; the others take part through what is remembered of them
(`kruskal.gibbs.surrogate`). Everything here is a function of state and memory, which it returns anew.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.pair_sums import PARTS, PairStatistics, add_pairs, data_squares, residual_squares
from kruskal.gibbs.statistics import AtomTerms, complete_statistics, sum_in_order
from kruskal.gibbs.surrogate import (
    Exact,
    Filtered,
    Incremental,
    Memory,
    Rest,
    Sums,
    added,
    present_sums,
    present_terms,
)
from kruskal.models.base import FactorModel
from kruskal.models.protocol import Engine, Global, SweepReport

KINDS = ("exact", "cdf", "incremental")
"""What is remembered, by name: `Exact`, `Filtered` (forgotten at every epoch) and `Incremental`."""
PASSES = {"exact": 1, "cdf": 3, "incremental": 1}
"""Sweeps over a batch per visit; three are the paper's."""
_FIRST_PASSES = 12


class Visit(NamedTuple):
    """What a visit to a batch leaves behind; the codes are in the engine. ``report`` is of the last pass."""

    state: Global
    memory: Memory
    report: SweepReport


def nothing_seen(kind: str, n_batches: int, n_regions: int, state: Global, complete: bool) -> Memory:
    """The memory in which learning begins."""
    n_atoms, n_entries = state.dictionary.shape
    if kind == "exact":
        return Exact.nothing(n_regions, n_atoms, n_entries, complete)
    nothing = Filtered.nothing(n_regions, n_atoms, n_entries)
    return nothing if kind == "cdf" else Incremental(nothing, nothing.sums, (nothing,) * n_batches)


def new_epoch(memory: Memory) -> Memory:
    """The memory when an epoch begins: the paper's forgets all, the others only what was recent."""
    if isinstance(memory, Filtered):
        return Filtered.nothing(len(memory.sums.counts), *memory.terms.linear.shape)
    return memory._replace(recent=Sums.zero(*memory.recent.counts.shape))


def passes_at(kind: str, passes: int, n_batches: int, visits: int) -> int:
    """Sweeps over the batch that is visited after ``visits`` others.

    The first batches get 12, 6, 4, 3, .. sweeps: atoms are learned from a part of the items before the others
    are looked at. Not so the paper's kind, nor a single batch, which is plain Gibbs sampling.
    """
    if kind == "cdf" or n_batches == 1 or visits >= n_batches:
        return passes
    return max(passes, _FIRST_PASSES // (visits + 1))


def visit(
    model: FactorModel, state: Global, memory: Memory, engine: Engine, batch: int, seen: bool, settled: bool,
    seed: int, number: int, passes: int,
) -> Visit:  # fmt: skip
    """Make ``passes`` sweeps over the batch that the engine holds, numbered from ``number`` on.

    Parameters
    ----------
    batch : its number;  seen : whether it was visited before, so that memory and codes know of it
    settled : False while the chain finds its way: pi, gamma_s and gamma_eps then follow the sweeps of this
        epoch, all of them, so that noise is lowered gently; codes from an epoch ago have no say in it. The
        atoms follow all batches in any case
    """
    if isinstance(memory, Exact):
        for turn in range(passes):
            state, memory, report = _visit_exact(
                model, state, memory, engine, seen or turn > 0, settled, seed, number + turn
            )
        return Visit(state, memory, report)
    others = memory.without(batch) if isinstance(memory, Incremental) else memory
    recent = memory.recent if isinstance(memory, Incremental) else memory.sums
    for turn in range(passes):
        follow = others.sums if settled or isinstance(memory, Filtered) else recent
        # the first of several passes only makes codes and what governs them fit each other (the paper's)
        state, report = model.sweep(
            state, engine, seed, number + turn, Rest(follow, others.terms), turn > 0 or passes == 1
        )
        recent = added(recent, report.sums)
    own = _present(state, engine, report.sums)
    if isinstance(memory, Incremental):
        return Visit(state, memory.replaced(batch, others, own, recent), report)
    return Visit(state, others.plus(own), report)


def learn_from(
    model: FactorModel, state: Global, memory: Filtered, engine: Engine, seed: int, number: int,
    passes: int = 3, forgetting: float = 1.0,
) -> Visit:  # fmt: skip
    """One batch of a stream: what is remembered counts times ``forgetting``, then `visit`.

    A factor rho below 1 gives the memory an effective size of N_b / (1 - rho) items for batches of N_b.
    """
    remembered = memory if forgetting == 1.0 else memory.forgotten(forgetting)
    return visit(model, state, remembered, engine, 0, False, True, seed, number, passes)


def elsewhere(memory: Filtered, n_regions: int, share: float) -> Rest:
    """What is remembered, times ``share``, as one region more than the ``n_regions`` of the items at hand.

    For draws with the atoms kept: it has no terms for them.
    """
    sums = memory.forgotten(share).sums
    counts = np.zeros((n_regions + 1, sums.counts.shape[1]))
    counts[-1] = sums.counts.sum(axis=0)
    sizes = np.zeros(n_regions + 1)
    sizes[-1] = sums.region_sizes.sum()
    sums = sums._replace(region_sizes=sizes, counts=counts)
    return Rest(sums, AtomTerms.zero(*memory.terms.linear.shape))


def refresh(model: FactorModel, state: Global, engine: Engine, seed: int, number: int) -> Sums:
    """Draw the codes of a batch, with everything global kept; returns what the scalars need of them."""
    return model.draw_local(state, engine, seed, number)


def settle(model: FactorModel, state: Global, sums: Sums, seed: int, number: int) -> Global:
    """Draw everything global but the atoms, given the sums over all items."""
    return model.govern(model.draw_scalars(state, sums, seed, number), seed, number)


def _visit_exact(
    model: FactorModel, state: Global, memory: Exact, engine: Engine, seen: bool, settled: bool, seed: int,
    number: int,
) -> tuple[Global, Exact, SweepReport]:  # fmt: skip
    """Take the batch out of the sums, draw, and put it back with its new codes."""
    squares = sum(engine.map(data_squares))
    others = _without(memory, engine, squares) if seen else _copied(memory)
    if settled:
        left = residual_squares(state.dictionary, others.pairs, others.data_squares)
        follow = others.sums._replace(residual_squares=left)
    else:
        follow = memory.recent
    terms = AtomTerms.zero(*others.pairs.data_products.shape)
    state, report = model.sweep(state, engine, seed, number, Rest(follow, terms, others.pairs))
    sums = added(others.sums, report.sums)._replace(residual_squares=0.0)
    recent = added(memory.recent, report.sums)
    # the sweep has added its items to the pairs
    return state, Exact(sums, recent, others.pairs, others.data_squares + squares), report


def _copied(memory: Exact) -> Exact:
    """With pairs of its own, which may be changed."""
    return memory._replace(pairs=type(memory.pairs)(*(array.copy() for array in memory.pairs)))


def _without(memory: Exact, engine: Engine, squares: float) -> Exact:
    """Without the items of the engine, whose squared entries sum up to ``squares``."""
    n_regions, (n_atoms, n_entries) = len(engine.region_sizes), memory.pairs.data_products.shape
    if engine.n_items == memory.sums.region_sizes.sum():  # nothing is left, not even rounding
        return Exact.nothing(n_regions, n_atoms, n_entries, engine.complete)
    others = _copied(memory)
    own = sum_in_order(engine.map(partial(present_sums, n_regions=n_regions, n_atoms=n_atoms)))
    sums = added(memory.sums, Sums(engine.region_sizes, engine.n_observed, own.counts, own.squares, 0.0), -1)
    if isinstance(others.pairs, PairStatistics):
        engine.fold(partial(add_pairs, statistics=others.pairs, sign=-1.0), PARTS)
    else:
        batch = sum_in_order(engine.map(partial(complete_statistics, n_atoms=n_atoms)))
        for whole, part in zip(others.pairs, batch):
            whole -= part
    return others._replace(sums=sums, data_squares=memory.data_squares - squares)


def _present(state: Global, engine: Engine, sums: Sums) -> Filtered:
    """Terms of the batch for the atoms as they are now."""
    found = sum_in_order(engine.map(partial(present_terms, dictionary=state.dictionary)))
    sums = sums._replace(residual_squares=found.residual_squares)
    return Filtered(sums, AtomTerms(found.linear, found.quadratic))
