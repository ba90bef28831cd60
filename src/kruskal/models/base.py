"""The sampler that all factor models share: one sweep, as draws of local state and of global state.

Local state lives in the shards of an engine, global state is one small NamedTuple. A sweep is

    codes of every item, then its slabs  ->  usage, precisions  ->  atoms  ->  what governs the atoms

and everything that touches items goes through ``engine.map``: what a shard returns is summed in the order of
the shards. A model knows what is drawn, never where the data live.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from kruskal.gibbs.atoms import AtomNoise, AtomOptions, AtomState, draw_atoms_block, draw_atoms_complete
from kruskal.gibbs.codes import CodeDraw, CodeModel, atom_products, code_model, draw_codes
from kruskal.gibbs.local import Codes, Shard
from kruskal.gibbs.precision import GammaPrior, draw_precision
from kruskal.gibbs.slabs import draw_slabs, expect_items
from kruskal.gibbs.statistics import block_size, block_statistics, complete_statistics, sum_in_order
from kruskal.gibbs.usage import CONCENTRATION_PRIOR, Usage, UsagePrior, draw_usage
from kruskal.patches import Items, Slab
from kruskal.random import Stream, generator
from kruskal.tensor import entry_rows

T = TypeVar("T")
VAGUE = GammaPrior(1e-6, 1e-6)
FIRST_NOISE_PRECISION = 100.0  # noise a tenth of the range of the data


class Global(NamedTuple):
    """The state that exists once. Models with Gaussian atoms have R = 0.

    Attributes
    ----------
    dictionary : (K, P) atoms d_k
    weights : (K, R) lambda;  factors : (K, sum m_t, R) u;  log_delta : (K, R);  alpha : float
    log_odds : (G, K) logit pi of each region;  usage_mean : (K,) eta;  concentration : h
    code_precision : gamma_s;  noise_precision : gamma_eps
    """

    dictionary: np.ndarray
    weights: np.ndarray
    factors: np.ndarray
    log_delta: np.ndarray
    alpha: float
    log_odds: np.ndarray
    usage_mean: np.ndarray
    concentration: float
    code_precision: float
    noise_precision: float


class SweepReport(NamedTuple):
    """What a sweep tells of itself."""

    counts: np.ndarray  # (K,) items that use each atom
    residual_squares: float
    active_per_item: float


class Engine(Protocol):
    """Who runs it: holds the shards and applies a function to each of them, results in order."""

    n_items: int
    n_observed: int
    region_sizes: np.ndarray  # (G,) int64, items of each region
    complete: bool
    dtype: np.dtype
    n_shards: int

    def map(self, function: Callable[[Shard], T]) -> list[T]:
        """``function`` of every shard, in the order of the shards."""
        ...

    def codes(self) -> tuple[Codes, ...]:
        """The codes of every shard."""
        ...

    def put_codes(self, codes: Sequence[Codes]) -> None:
        """Replace the codes of every shard."""
        ...

    def drain(self) -> None:
        """Wait until nothing works on a shard any more, after `map` was interrupted."""
        ...


class Model(Protocol):
    """What a chain needs of a model; states and engines are the model's own kinds."""

    @property
    def n_atoms(self) -> int:
        """Number of atoms K."""
        ...

    def start(self, name: str, items: Items, seed: int) -> Any:
        """The global state in which a chain begins."""
        ...

    def sweep(self, state: Any, engine: Any, seed: int, number: int) -> tuple[Any, SweepReport]:
        """One sweep over local and global state; ``number`` counts from 1 and addresses the randomness."""
        ...

    def expect(self, state: Any, engine: Any) -> list[Slab]:
        """Weighted sums over the items of what this draw says of them, for a kept draw."""
        ...

    def watched(self, state: Any, report: SweepReport) -> dict[str, float]:
        """What the trace holds of a sweep."""
        ...

    def atoms(self, state: Any) -> np.ndarray:
        """(K, m_1, .., m_T) the atoms."""
        ...

    def ranks(self, state: Any, tolerance: float = 0.01) -> np.ndarray:
        """(K,) rank of every atom at a relative tolerance."""
        ...


@dataclass(frozen=True, kw_only=True)
class FactorModel:
    """Sparse sums of atoms with spike-slab codes; subclasses say what an atom is.

    Parameters
    ----------
    shape : shape of one item
    n_atoms : K
    usage_prior : (a_pi, b_pi);  code_prior : (e, f);  noise_prior : (c, d)
    concentration_prior : (e_h, f_h), for items in several regions
    delay : sweeps in which all regions share one usage, and shrinkage is not learned
    collapsed : draw z with s integrated out (default), or the paper's uncollapsed form
    joint : after that, draw the s of all atoms in use of an item anew, jointly
    fixed_atoms : keep the atoms and what governs them as they are
    """

    shape: tuple[int, ...]
    n_atoms: int
    usage_prior: UsagePrior
    code_prior: GammaPrior = VAGUE
    noise_prior: GammaPrior = VAGUE
    concentration_prior: GammaPrior = CONCENTRATION_PRIOR
    delay: int = 5
    collapsed: bool = True
    joint: bool = True
    fixed_atoms: bool = False
    rows: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", entry_rows(self.shape))

    def sweep(self, state: Global, engine: Engine, seed: int, number: int) -> tuple[Global, SweepReport]:
        """One exact Gibbs sweep."""
        codes = code_model(
            state.dictionary,
            state.log_odds,
            state.code_precision,
            state.noise_precision,
            engine.dtype,
            engine.complete,
        )
        drawn = sum_in_order(
            engine.map(partial(draw_codes, model=codes, seed=seed, sweep=number, collapsed=self.collapsed))
        )
        if self.joint:
            drawn = self.draw_slabs(drawn, codes, engine, seed, number)
        state = self.draw_scalars(state, drawn, engine, seed, number)
        if not self.fixed_atoms:
            state = self.draw_atoms(state, drawn, engine, seed, number)
            state = self.draw_atom_prior(state, seed, number)
        counts = drawn.counts.sum(axis=0)
        return state, SweepReport(counts, drawn.residual_squares, float(counts.sum()) / engine.n_items)

    def expect(self, state: Global, engine: Engine) -> list[Slab]:
        """The expected items given which atoms they use, summed where they overlap."""
        dictionary = state.dictionary.astype(engine.dtype)
        return engine.map(
            partial(
                expect_items, dictionary=dictionary, products=atom_products(dictionary, engine.complete),
                code_precision=state.code_precision, noise_precision=state.noise_precision,
            )
        )  # fmt: skip

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

    def draw_slabs(
        self, drawn: CodeDraw, codes: CodeModel, engine: Engine, seed: int, number: int
    ) -> CodeDraw:
        """All s of every item anew, jointly; the z, and so the counts, stay."""
        parts = sum_in_order(engine.map(partial(draw_slabs, model=codes, seed=seed, sweep=number)))
        return CodeDraw(drawn.counts, parts.squares, parts.residual_squares)

    def draw_scalars(self, state: Global, drawn: CodeDraw, engine: Engine, seed: int, number: int) -> Global:
        """pi, gamma_s and gamma_eps."""
        usage = draw_usage(
            Usage(state.log_odds, state.usage_mean, state.concentration), drawn.counts, engine.region_sizes,
            self.usage_prior, self.concentration_prior, number <= self.delay,
            generator(seed, Stream.USAGE, number),
        )  # fmt: skip
        return state._replace(
            log_odds=usage.log_odds, usage_mean=usage.mean, concentration=usage.concentration,
            code_precision=draw_precision(
                drawn.counts.sum(), drawn.squares.sum(), self.code_prior,
                generator(seed, Stream.CODE_PRECISION, number),
            ),
            noise_precision=draw_precision(
                engine.n_observed, drawn.residual_squares, self.noise_prior,
                generator(seed, Stream.NOISE_PRECISION, number),
            ),
        )  # fmt: skip

    def draw_atoms(self, state: Global, drawn: CodeDraw, engine: Engine, seed: int, number: int) -> Global:
        """All atoms in order, from the statistics of the shards."""
        atoms = self.atom_state(state)
        rank = atoms.weights.shape[1]
        n_coefficients = atoms.factors[0].size if rank else atoms.dictionary.shape[1]
        noise = AtomNoise(
            generator(seed, Stream.ATOMS, number).standard_normal((self.n_atoms, n_coefficients)),
            generator(seed, Stream.ATOM_WEIGHTS, number).standard_normal((self.n_atoms, rank)),
        )
        options = self.atom_options()
        if engine.complete:
            statistics = sum_in_order(engine.map(partial(complete_statistics, n_atoms=self.n_atoms)))
            draw_atoms_complete(atoms, statistics, state.noise_precision, noise, options)
        else:
            share = engine.n_observed / (engine.n_items * atoms.dictionary.shape[1])
            size = block_size(self.n_atoms, engine.n_shards, int(drawn.counts.sum()), share)
            change = np.zeros((0, atoms.dictionary.shape[1]))
            for first in range(0, self.n_atoms, size):
                width = min(size, self.n_atoms - first)
                visit = partial(
                    block_statistics, first=first, size=width, previous=first - size, change=change
                )
                block = sum_in_order(engine.map(visit))
                change = draw_atoms_block(atoms, first, block, state.noise_precision, noise, options)
                change = change.astype(engine.dtype)
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
        prior = self.concentration_prior
        values = {
            "weights": np.zeros((n_atoms, 0)), "factors": np.zeros((n_atoms, 0, 0)),
            "log_delta": np.zeros((n_atoms, 0)), "alpha": 1.0, **atoms,
        }  # fmt: skip
        return Global(
            dictionary, log_odds=np.full((items.n_regions, n_atoms), math.log(usage / (1.0 - usage))),
            usage_mean=np.full(n_atoms, usage), concentration=prior.shape / prior.rate,
            code_precision=1.0, noise_precision=FIRST_NOISE_PRECISION, **values,
        )  # fmt: skip

    def draw_atom_prior(self, state: Global, seed: int, number: int) -> Global:
        """Draw what governs the atoms; nothing for fixed priors."""
        return state
