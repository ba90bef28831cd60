"""All atoms of a factor model in order, given the items of an engine and the rest of them."""

from functools import partial

from kruskal.gibbs.atoms import (
    AtomNoise,
    AtomOptions,
    AtomState,
    draw_atoms_complete,
    draw_atoms_pairs,
)
from kruskal.gibbs.blocks import MaskedAtoms, block_size
from kruskal.gibbs.pair_sums import PARTS, PairStatistics, add_pairs
from kruskal.gibbs.statistics import (
    CompleteStatistics,
    complete_sums,
    sum_of_two,
)
from kruskal.gibbs.surrogate import Rest
from kruskal.models.protocol import Engine


def add_items(engine: Engine, rest: Rest) -> None:
    """Add the items of the engine to ``rest.pairs``, if the rest has them."""
    if isinstance(rest.pairs, PairStatistics):
        engine.fold(partial(add_pairs, statistics=rest.pairs, sign=1.0), PARTS)
    elif rest.pairs is not None:
        n_atoms, n_entries = rest.pairs.data_products.shape
        sum_of_two(rest.pairs, _complete(engine, n_atoms, n_entries, double=True))


def draw_dictionary(
    atoms: AtomState, engine: Engine, n_codes: int, rest: Rest, noise_precision: float, noise: AtomNoise,
    options: AtomOptions,
) -> None:  # fmt: skip
    """Draw all atoms in place; ``n_codes`` is the number of codes in the engine.

    ``rest.pairs`` is added to: afterwards it holds the items of the engine as well.
    """
    how = noise_precision, noise, options
    add_items(engine, rest)
    if isinstance(rest.pairs, PairStatistics):
        draw_atoms_pairs(atoms, rest.pairs, *how)
    elif engine.complete:
        whole = _complete(engine, *atoms.dictionary.shape) if rest.pairs is None else rest.pairs
        draw_atoms_complete(atoms, whole, *how, rest.terms)
    else:
        _draw_in_blocks(atoms, engine, n_codes, rest, *how)


def _complete(engine: Engine, n_atoms: int, n_entries: int, double: bool = False) -> CompleteStatistics:
    visit = partial(complete_sums, n_atoms=n_atoms, double=double)
    return engine.total(visit, sum_of_two).statistics(n_entries)


def _draw_in_blocks(
    atoms: AtomState, engine: Engine, n_codes: int, rest: Rest, noise_precision: float, noise: AtomNoise,
    options: AtomOptions,
) -> None:  # fmt: skip
    """The atoms of masked data, block by block: every block visits the items."""
    n_atoms, n_entries = atoms.dictionary.shape
    share = engine.n_observed / (engine.n_items * n_entries)
    size = block_size(n_atoms, n_entries, engine.n_shards, n_codes, share)
    engine.together(
        lambda shards: MaskedAtoms(shards, atoms, noise_precision, noise, options, rest.terms, size)
    )
