"""The sampler that all factor models share: one sweep, as draws of local state and of global state.

Local state lives in the shards of an engine, global state is one small NamedTuple. A sweep is

    what governs the atoms; codes of every item, then its slabs  ->  usage, precisions  ->  atoms

and everything that touches items goes through the engine (``map``, ``total``): what shards return is summed
in an order that depends on the number of shards alone. A model knows what is drawn, never where the data
live.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kruskal.gibbs.atoms import AtomNoise, AtomOptions, AtomState
from kruskal.gibbs.codes import CodeModel, atom_products, code_model, draw_codes
from kruskal.gibbs.expected import expect_items
from kruskal.gibbs.local import count_codes
from kruskal.gibbs.precision import FIRST_CAP, GammaPrior, annealed_cap, draw_precision
from kruskal.gibbs.slabs import SlabDraw, draw_slabs
from kruskal.gibbs.statistics import sum_in_order
from kruskal.gibbs.surrogate import Rest, Sums, added
from kruskal.gibbs.usage import (
    CONCENTRATION_PRIOR,
    Usage,
    UsagePrior,
    draw_beta_log_odds,
    draw_usage,
    region_conditional,
)
from kruskal.models.dictionary import add_items, draw_dictionary
from kruskal.models.protocol import Engine, Global, SweepReport
from kruskal.patches import Items, Slab
from kruskal.random import Stream, generator
from kruskal.tensor import RANK_TOLERANCE, entry_rows

VAGUE = GammaPrior(1e-6, 1e-6)
DELAY = 5
"""Sweeps in which a chain finds its way by simpler rules, unless its burn-in is shorter."""
FIRST_NOISE_PRECISION = 100.0  # noise a tenth of the range of the data
_LEAST_LOG_ODDS = -7.0  # a usage of a thousandth


@dataclass(frozen=True, kw_only=True)
class FactorModel(ABC):
    """Sparse sums of atoms with spike-slab codes; subclasses say what an atom is.

    Parameters
    ----------
    shape : shape of one item
    n_atoms : K
    usage_prior : (a_pi, b_pi);  code_prior : (e, f);  noise_prior : (c, d)
    concentration_prior : (e_h, f_h), for items in several regions
    delay : sweeps in which all regions share one usage, and neither shrinkage is learned nor noise bounded
    annealing : sweeps in which the usage of an atom stays above a thousandth, and in the first three quarters
        of which the noise may not fall below a bound that sinks from a quarter of the range of the data to
        about a fortieth of that: atoms that mix several causes come apart before the chain is too cold, and
        those that are of no use at first can come back
    collapsed : draw z with s integrated out (default), or the paper's uncollapsed form
    weighted : average overlapping items by their precision; if not, all alike
    fixed_atoms : keep the atoms and what governs them as they are
    most_noise : the noise prior is cut off at this standard deviation; not in the first sweeps (``delay``),
        which begin with few codes and much noise, as strong structure is then found first
    least_noise : or from this one on
    """

    shape: tuple[int, ...]
    n_atoms: int
    usage_prior: UsagePrior
    code_prior: GammaPrior = VAGUE
    noise_prior: GammaPrior = VAGUE
    concentration_prior: GammaPrior = CONCENTRATION_PRIOR
    delay: int = DELAY
    annealing: int = 0
    collapsed: bool = True
    weighted: bool = True
    fixed_atoms: bool = False
    most_noise: float = math.inf
    least_noise: float = 0.0
    rows: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", entry_rows(self.shape))

    @abstractmethod
    def start(self, name: str, items: Items, seed: int) -> Global:
        """The global state in which a chain begins."""

    @abstractmethod
    def ranks(self, state: Global, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
        """(K,) rank of every atom at a relative tolerance."""

    def sweep(
        self, state: Global, engine: Engine, seed: int, number: int,
        rest: Rest | None = None, with_atoms: bool = True,
    ) -> tuple[Global, SweepReport]:  # fmt: skip
        """One sweep: exact Gibbs if there are no other items, or if the ``rest`` says what they would.

        ``with_atoms`` False leaves the atoms as they are.
        """
        if rest is None:
            rest = Rest.nothing(len(engine.region_sizes), *state.dictionary.shape)
        codes = told_to_items(state, engine)
        # the codes need the atoms, not what governs them, so that is drawn while the threads are at the codes
        governed = engine.beside(partial(self.govern, state, seed, number))
        parts = self.draw_codes(codes, engine, seed, number)
        state = governed()

        def count() -> tuple[np.ndarray, Usage]:
            counts = np.sum(parts, axis=0)
            everywhere, sizes = counts + rest.sums.counts, engine.region_sizes + rest.sums.region_sizes
            return counts, self.draw_usage(state, everywhere, sizes, seed, number)

        # the usage needs no more than z, so it is drawn while the threads are at the slabs
        counted = engine.beside(count)
        slabs = self.draw_slabs(codes, engine, seed, number)
        counts, usage = counted()
        own = Sums(engine.region_sizes, engine.n_observed, counts, *slabs)
        state = self.draw_precisions(with_usage(state, usage), added(own, rest.sums), seed, number)
        if with_atoms and not self.fixed_atoms:
            state = self.draw_atoms(state, int(counts.sum()), engine, seed, number, rest)
        else:
            add_items(engine, rest)
        active = float(counts.sum()) / engine.n_items
        return state, SweepReport(counts.sum(axis=0), own.residual_squares, active, own, rest.pairs)

    def govern(self, state: Global, seed: int, number: int) -> Global:
        """Draw what governs the atoms, unless they are kept."""
        return state if self.fixed_atoms else self.draw_atom_prior(state, seed, number)

    def draw_local(self, state: Global, engine: Engine, seed: int, number: int) -> Sums:
        """The codes of every item, then its slabs; what the scalars need to know of them."""
        codes = told_to_items(state, engine)
        counts = np.sum(self.draw_codes(codes, engine, seed, number), axis=0)
        slabs = self.draw_slabs(codes, engine, seed, number)
        return Sums(engine.region_sizes, engine.n_observed, counts, *slabs)

    def draw_codes(self, codes: CodeModel, engine: Engine, seed: int, number: int) -> list[np.ndarray]:
        """The z of every item, one atom after the other; how many every shard has, by region and atom."""
        return engine.map(partial(draw_codes, model=codes, seed=seed, sweep=number, collapsed=self.collapsed))

    def expect(self, state: Global, engine: Engine) -> list[Slab]:
        """The expected items given which atoms they use, summed where they overlap."""
        dictionary = state.dictionary.astype(engine.dtype)
        return engine.map(
            partial(
                expect_items, dictionary=dictionary, products=atom_products(dictionary, engine.complete),
                code_precision=state.code_precision, noise_precision=state.noise_precision,
                weighted=self.weighted,
            )
        )  # fmt: skip

    def in_other_regions(self, state: Global, engine: Engine, seed: int, number: int) -> Global:
        """The state for items whose regions were changed after so many sweeps: pi given codes, eta and h."""
        n_regions = len(engine.region_sizes)
        parts = engine.map(
            lambda shard: count_codes(shard.codes, shard.items.region, n_regions, self.n_atoms)
        )
        counts = np.sum(parts, axis=0)
        unused = engine.region_sizes[:, None] - counts
        shapes = region_conditional(state.usage_mean, state.concentration, counts, unused)
        log_odds = draw_beta_log_odds(*shapes, generator(seed, Stream.REGROUPED_USAGE, number))
        return state._replace(log_odds=self._bounded(log_odds, number))

    def watched(self, state: Global, report: SweepReport) -> dict[str, float]:
        """What the trace holds of a sweep."""
        return {
            "noise_std": state.noise_precision**-0.5,
            "code_std": state.code_precision**-0.5,
            "active_per_item": report.active_per_item,
            "atoms_used": float((report.counts > 0).sum()),
            "alpha": float(state.alpha),
        }

    def atoms(self, state: Global) -> np.ndarray:
        """(K, m_1, .., m_T) the dictionary."""
        return state.dictionary.reshape(-1, *self.shape)

    def draw_slabs(self, codes: CodeModel, engine: Engine, seed: int, number: int) -> SlabDraw:
        """All s of every item anew, jointly; the z, and so the counts, stay."""
        return sum_in_order(engine.map(partial(draw_slabs, model=codes, seed=seed, sweep=number)))

    def draw_scalars(self, state: Global, sums: Sums, seed: int, number: int) -> Global:
        """pi, gamma_s and gamma_eps."""
        drawn = self.draw_usage(state, sums.counts, sums.region_sizes, seed, number)
        return with_usage(self.draw_precisions(state, sums, seed, number), drawn)

    def draw_usage(
        self, state: Global, counts: np.ndarray, region_sizes: np.ndarray, seed: int, number: int
    ) -> Usage:
        """pi, and what governs it, given how many items of each region use each atom."""
        usage = draw_usage(
            Usage(state.log_odds, state.usage_mean, state.concentration), counts, region_sizes,
            self.usage_prior, self.concentration_prior, number <= self.delay,
            generator(seed, Stream.USAGE, number),
        )  # fmt: skip
        return usage._replace(log_odds=self._bounded(usage.log_odds, number))

    def _bounded(self, log_odds: np.ndarray, number: int) -> np.ndarray:
        """Not below a thousandth while annealing lasts, some sweeps longer than the noise is bounded."""
        return np.maximum(log_odds, _LEAST_LOG_ODDS) if number <= self.annealing else log_odds

    def draw_precisions(self, state: Global, sums: Sums, seed: int, number: int) -> Global:
        """gamma_s and gamma_eps."""
        code_precision = draw_precision(
            sums.counts.sum(), sums.squares.sum(), self.code_prior,
            generator(seed, Stream.CODE_PRECISION, number),
        )  # fmt: skip
        noise_precision = draw_precision(
            sums.n_observed, sums.residual_squares, self.noise_prior,
            generator(seed, Stream.NOISE_PRECISION, number),
            least=self.most_noise**-2 if number > self.delay else 0.0,
            most=self.least_noise**-2 if self.least_noise > 0.0 else math.inf,
        )  # fmt: skip
        cap = annealed_cap(number, -(-3 * self.annealing // 4), FIRST_CAP)
        return state._replace(code_precision=code_precision, noise_precision=min(noise_precision, cap))

    def draw_atoms(
        self, state: Global, n_codes: int, engine: Engine, seed: int, number: int, rest: Rest
    ) -> Global:
        """All atoms in order, from the statistics of the shards and of the rest, which is used up."""
        atoms = self.atom_state(state)
        rank = atoms.weights.shape[1]
        n_coefficients = atoms.factors[0].size if rank else atoms.dictionary.shape[1]
        noise = AtomNoise(
            generator(seed, Stream.ATOMS, number).standard_normal((self.n_atoms, n_coefficients)),
            generator(seed, Stream.ATOM_WEIGHTS, number).standard_normal((self.n_atoms, rank)),
        )
        draw_dictionary(atoms, engine, n_codes, rest, state.noise_precision, noise, self.atom_options())
        return state._replace(dictionary=atoms.dictionary, weights=atoms.weights, factors=atoms.factors)

    def atom_state(self, state: Global) -> AtomState:
        """Copies of the atoms' arrays, as the draw changes them in place."""
        return AtomState(
            state.dictionary.copy(), state.weights.copy(), state.factors.copy(),
            np.cumsum(state.log_delta, axis=1), self.rows, np.array(self.shape, dtype=np.int64),
        )  # fmt: skip

    def atom_options(self) -> AtomOptions:
        """How atoms are drawn."""
        return AtomOptions()

    def initial(self, dictionary: np.ndarray, items: Items, **atoms: Any) -> Global:
        """The global state at the start with these atoms: nothing in use, noise a tenth of the range."""
        n_atoms, usage = self.n_atoms, 0.01
        values = {
            "weights": np.zeros((n_atoms, 0)), "factors": np.zeros((n_atoms, 0, 0)),
            "log_delta": np.zeros((n_atoms, 0)), "alpha": 1.0, **atoms,
        }  # fmt: skip
        return Global(
            dictionary, log_odds=np.full((items.n_regions, n_atoms), math.log(usage / (1.0 - usage))),
            usage_mean=np.full(n_atoms, usage), concentration=self.concentration_prior.mean,
            code_precision=1.0, noise_precision=FIRST_NOISE_PRECISION, **values,
        )  # fmt: skip

    def draw_atom_prior(self, state: Global, seed: int, number: int) -> Global:
        """Draw what governs the atoms; nothing for fixed priors."""
        return state


def told_to_items(state: Global, engine: Engine) -> CodeModel:
    """What items need to know to draw their codes."""
    return code_model(
        state.dictionary, state.log_odds, state.code_precision, state.noise_precision, engine.dtype,
        engine.complete,
    )  # fmt: skip


def with_usage(state: Global, usage: Usage) -> Global:
    """The state with another usage."""
    return state._replace(log_odds=usage.log_odds, usage_mean=usage.mean, concentration=usage.concentration)
