r"""What is remembered of items that are not at hand, when a dictionary is learned batch by batch.

A visit to a batch draws the codes of its items, then everything global from the statistics of the batch plus
those of the *rest*, the items elsewhere. All statistics are sums over items, free of gamma_eps. What is
remembered of them comes in three kinds:

`Filtered`     the paper's (SCSS): sums of terms as they were at the end of the visit, forgotten when an epoch
               begins. The terms of an atom, sum omega w x~, hold for the other atoms of that time: a
               surrogate, not the conditional.
`Incremental`  the same terms, but kept per batch and replaced at its next visit, so that the rest is always
               whole. Codes count with their present values, ``linear`` is of the atoms of the last visit.
`Exact`        sums over pairs of atoms (3.1), (3.3): the rest gives what its items would give if they were
               visited, for any atoms. A visit is one step of a Gibbs sampler that scans blocks of items.

Every kind counts the items it holds: what was not visited yet has no say.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.local import Shard, count_codes, sum_squares
from kruskal.gibbs.pair_sums import PairStatistics
from kruskal.gibbs.statistics import AtomTerms, CompleteStatistics
from kruskal.kernel import kernel


class Sums(NamedTuple):
    """What pi, gamma_s and gamma_eps need to know of items; all of it is additive.

    Attributes
    ----------
    region_sizes : (G,) number of items of each region
    n_observed : number of observed entries
    counts : (G, K) items of each region that use each atom
    squares : (K,) sum of z s^2
    residual_squares : sum over observed entries of (x - Dw)^2
    """

    region_sizes: np.ndarray
    n_observed: float
    counts: np.ndarray
    squares: np.ndarray
    residual_squares: float

    @classmethod
    def zero(cls, n_regions: int, n_atoms: int) -> "Sums":
        """Of no items."""
        return cls(
            np.zeros(n_regions, np.int64), 0, np.zeros((n_regions, n_atoms), np.int64), np.zeros(n_atoms), 0.0
        )


class Rest(NamedTuple):
    """The items outside of a batch, as a sweep over the batch sees them.

    Attributes
    ----------
    sums : for the scalars;  terms : for the atoms, as they are remembered
    pairs : for the atoms, whatever they are; None where ``terms`` must do. A sweep adds its items to it
    """

    sums: Sums
    terms: AtomTerms
    pairs: CompleteStatistics | PairStatistics | None = None

    @classmethod
    def nothing(cls, n_regions: int, n_atoms: int, n_entries: int) -> "Rest":
        """There are no other items."""
        return cls(Sums.zero(n_regions, n_atoms), AtomTerms.zero(n_atoms, n_entries))


class Filtered(NamedTuple):
    """Terms of items as they were when they were visited."""

    sums: Sums
    terms: AtomTerms

    @classmethod
    def nothing(cls, n_regions: int, n_atoms: int, n_entries: int) -> "Filtered":
        """No items yet."""
        return cls(Sums.zero(n_regions, n_atoms), AtomTerms.zero(n_atoms, n_entries))

    def plus(self, other: "Filtered") -> "Filtered":
        """With further items."""
        return Filtered(added(self.sums, other.sums), added(self.terms, other.terms))

    def less(self, other: "Filtered") -> "Filtered":
        """Without some of the items."""
        return Filtered(added(self.sums, other.sums, -1), added(self.terms, other.terms, -1))

    def forgotten(self, share: float) -> "Filtered":
        """All of it times ``share``, as if there had been fewer items of the same kind."""
        nothing = Filtered.nothing(len(self.sums.counts), *self.terms.linear.shape)
        return Filtered(added(nothing.sums, self.sums, share), added(nothing.terms, self.terms, share))


class Incremental(NamedTuple):
    """Terms of every batch as they were at its last visit, and their sum; ``recent`` as in `Exact`."""

    total: Filtered
    recent: Sums
    parts: tuple[Filtered, ...]

    def without(self, batch: int) -> Filtered:
        """All batches but one."""
        return self.total.less(self.parts[batch])

    def replaced(self, batch: int, rest: Filtered, new: Filtered, recent: Sums) -> "Incremental":
        """With the terms of a batch after its visit; ``rest`` is from `without`."""
        return Incremental(rest.plus(new), recent, (*self.parts[:batch], new, *self.parts[batch + 1 :]))


class Exact(NamedTuple):
    """Sums over all items that were visited, with their present codes.

    ``recent`` is over the sweeps of this epoch, each as it was: an item that was swept over twice counts
    twice. The residuals of ``sums`` are not kept, as ``pairs`` and ``data_squares`` give them for any atoms.
    """

    sums: Sums
    recent: Sums
    pairs: CompleteStatistics | PairStatistics
    data_squares: float

    @classmethod
    def nothing(cls, n_regions: int, n_atoms: int, n_entries: int, complete: bool) -> "Exact":
        """No items yet."""
        form = CompleteStatistics if complete else PairStatistics
        zero = Sums.zero(n_regions, n_atoms)
        return cls(zero, zero, form.zero(n_atoms, n_entries), 0.0)


Memory = Filtered | Incremental | Exact


def added(one, other, factor: float = 1):
    """NamedTuples of arrays and numbers, field by field: one + factor * other."""
    return type(one)(*(x + factor * y for x, y in zip(one, other)))


class CodeSums(NamedTuple):
    """``counts`` (G, K) and ``squares`` (K,) as in `Sums`."""

    counts: np.ndarray
    squares: np.ndarray


def present_sums(shard: Shard, n_regions: int, n_atoms: int) -> CodeSums:
    """Of the codes that a shard has at present."""
    counts = count_codes(shard.codes, shard.items.region, n_regions, n_atoms)
    return CodeSums(counts, sum_squares(shard.codes, n_atoms))


class TermsDraw(NamedTuple):
    """Terms of the items of one shard for the present atoms, and their squared residuals."""

    linear: np.ndarray
    quadratic: np.ndarray
    residual_squares: float


def present_terms(shard: Shard, dictionary: np.ndarray) -> TermsDraw:
    """Terms of a shard's items, complete or masked, given all atoms (K, P): one visit to the items."""
    items = shard.items
    linear, quadratic = np.zeros(dictionary.shape), np.zeros(dictionary.shape)
    squares = _present_terms(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, *shard.codes, dictionary,
        linear, quadratic,
    )  # fmt: skip
    return TermsDraw(linear, quadratic, squares)


@kernel
def _present_terms(
    flat, origin, offset, entry_start, entry, start, atom, value, dictionary, linear, quadratic
):
    complete = entry_start.shape[0] == 1
    n_entries = offset.shape[0]
    here = np.arange(n_entries)
    rest = np.empty(n_entries)
    squares = 0.0
    for n in range(origin.shape[0]):
        seen = n_entries
        if not complete:
            first = entry_start[n]
            seen = entry_start[n + 1] - first
            for j in range(seen):
                here[j] = entry[first + j]
        for j in range(seen):
            rest[j] = flat[origin[n] + offset[here[j]]]
        for c in range(start[n], start[n + 1]):
            w, k = float(value[c]), np.uint64(atom[c])
            for j in range(seen):
                rest[j] -= w * dictionary[k, here[j]]
        for j in range(seen):
            squares += rest[j] * rest[j]
        for c in range(start[n], start[n + 1]):
            w, k = float(value[c]), np.uint64(atom[c])
            for j in range(seen):
                linear[k, here[j]] += w * (rest[j] + w * dictionary[k, here[j]])
                quadratic[k, here[j]] += w * w
    return squares
