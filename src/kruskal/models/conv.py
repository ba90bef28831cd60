"""The sampler of the convolutional models: images are items, codes are sparse maps.

A sweep is that of `kruskal.models.base` with another likelihood,

    maps of every image  ->  usage, precisions  ->  atoms  ->  what governs the atoms

and touches images only through ``engine.map``.
"""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kruskal.errors import InputError
from kruskal.gibbs.atoms import AtomNoise
from kruskal.gibbs.conv_atoms import ConvAtoms, draw_atom_masked, draw_atoms_lags
from kruskal.gibbs.conv_local import Layout
from kruskal.gibbs.conv_maps import (
    MapDraw,
    draw_maps,
    map_model,
    relocate_codes,
    relocation_model,
    tile_rows_for,
)
from kruskal.gibbs.conv_statistics import lag_block_size, lag_statistics, masked_statistics
from kruskal.gibbs.conv_usage import BlockKind, block_kinds, draw_map_usage, draw_usage_by_image
from kruskal.gibbs.precision import GammaPrior, draw_precision
from kruskal.gibbs.statistics import sum_in_order
from kruskal.gibbs.usage import CONCENTRATION_PRIOR, UsagePrior
from kruskal.models.base import DELAY, VAGUE
from kruskal.models.conv_state import ConvGlobal, ConvReport, ImageEngine
from kruskal.models.conv_usage import count_images, draw_new_usage, for_images, usage_of, with_usage
from kruskal.random import Stream, generator


@dataclass(frozen=True, kw_only=True)
class ConvModel:
    """Sums of atoms at sparse places; subclasses say what an atom is.

    Parameters
    ----------
    image_shape : (M_x, M_y, C);  atom_size : (m_x, m_y);  n_atoms : K
    rank : number of Kruskal terms R an atom may have; 0 for Gaussian atoms
    usage_prior : (a_pi, b_pi) of the share of the blocks that are on, see `kruskal.gibbs.conv_usage`
    usage_by_image : whether every image has a usage of its own, around a mean that they share
    concentration_prior : (e_h, f_h), for usage by image
    pooling : (p_x, p_y), blocks of a map with at most one non-zero
    nonnegative : whether slabs are cut off at 0
    code_prior : (e, f);  noise_prior : (c, d)
    noise_precision : a fixed gamma_eps, or None to learn it
    delay : sweeps in which shrinkage is not learned, and all images share one usage
    scan : sweeps after which the grid of places that are visited becomes twice as fine; 0: all from the start
    relocate : whether non-zeros also move to places nearby (maps without pooling and of at least 4x4 places)
    """

    image_shape: tuple[int, int, int]
    atom_size: tuple[int, int]
    n_atoms: int
    usage_prior: UsagePrior
    rank: int = 0
    usage_by_image: bool = False
    concentration_prior: GammaPrior = CONCENTRATION_PRIOR
    pooling: tuple[int, int] = (1, 1)
    nonnegative: bool = False
    code_prior: GammaPrior = VAGUE
    noise_prior: GammaPrior = VAGUE
    noise_precision: float | None = None
    delay: int = DELAY
    scan: int = 3
    relocate: bool = True
    layout: Layout = field(init=False, repr=False, compare=False)
    kinds: list[BlockKind] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        layout = Layout(self.image_shape, self.atom_size, self.pooling)
        if min(layout.map_shape) < 1:
            raise InputError(
                f"atom_size is {self.atom_size[0]}x{self.atom_size[1]}, expected at most "
                f"{self.image_shape[0]}x{self.image_shape[1]}, the size of the images"
            )
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "kinds", block_kinds(layout))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one atom (m_x, m_y, C)."""
        return self.layout.atom_shape

    @property
    def n_coefficients(self) -> int:
        """Numbers that are drawn for one atom, without its weights: P for Gaussian atoms."""
        return sum(self.shape) * self.rank if self.rank else math.prod(self.shape)

    def sweep(
        self, state: ConvGlobal, engine: ImageEngine, seed: int, number: int
    ) -> tuple[ConvGlobal, ConvReport]:
        """One exact Gibbs sweep; ``number`` counts from 1 and addresses the randomness."""
        drawn = self.draw_maps(state, engine, seed, number)
        state = self.draw_usage(state, drawn, engine, seed, number)
        state = self.draw_precisions(state, drawn, engine.n_observed, seed, number)
        state = self.draw_atoms(state, engine, seed, number)
        state = self.draw_atom_prior(state, seed, number)
        return state, self.report(drawn, engine)

    def report(self, drawn: MapDraw, engine: ImageEngine) -> ConvReport:
        """What is told of a draw of the maps."""
        return ConvReport(drawn.counts, drawn.residual_squares, float(drawn.counts.sum()) / engine.n_images)

    def draw_maps(
        self, state: ConvGlobal, engine: ImageEngine, seed: int, number: int,
        step: tuple[int, int] | None = None,
    ) -> MapDraw:  # fmt: skip
        """All maps given everything else; nothing but the maps of the shards changes.

        ``step`` as in `scan_step`, by default that of sweep ``number``.
        """
        log_odds, image_log_odds = state.log_odds, None
        if self.usage_by_image:
            log_odds, image_log_odds = usage_of(state).log_cells, state.image_log_odds
        model = map_model(
            state.dictionary, log_odds, state.code_precision, state.noise_precision, self.nonnegative,
            self.layout, engine.dtype, engine.complete, tile_rows_for(self.layout),
            step or self.scan_step(number), image_log_odds,
        )  # fmt: skip
        drawn = sum_in_order(engine.map(partial(draw_maps, model=model, seed=seed, sweep=number)))
        if self.relocate and self.layout.n_cells == 1 and min(self.layout.map_shape) >= 4:
            side = 2 + number % 3  # windows of other sizes have other borders
            moving, windows = relocation_model(model, self.layout, (side, side))
            visit = partial(relocate_codes, model=moving, windows=windows, seed=seed, sweep=number)
            drawn = MapDraw(drawn.counts, *sum_in_order(engine.map(visit)))
        return drawn

    def scan_step(self, number: int) -> tuple[int, int]:
        """Which blocks a sweep visits: every one, and at first only some, as long as atoms do not overlap.

        From nothing, a scan over all places explains an image by slivers of atoms at neighbouring places,
        and takes long to leave that. Any such scan leaves the posterior invariant.
        """
        if self.scan == 0:
            return 1, 1
        halvings = (number - 1) // self.scan
        (m_x, m_y), (p_x, p_y) = self.atom_size, self.pooling
        return max(1, (m_x // p_x) >> halvings), max(1, (m_y // p_y) >> halvings)

    def draw_usage(
        self, state: ConvGlobal, drawn: MapDraw, engine: ImageEngine, seed: int, number: int
    ) -> ConvGlobal:
        """theta, or all that makes it up if every image has its own."""
        if not self.usage_by_image:
            return self.draw_shared_usage(state, drawn.counts, engine.n_images, seed, number)
        usage = draw_usage_by_image(
            usage_of(state), count_images(engine, self.n_atoms), drawn.counts, self.kinds,
            self.usage_prior, self.concentration_prior, number <= self.delay,
            generator(seed, Stream.USAGE, number),
        )  # fmt: skip
        return with_usage(state, usage)

    def draw_shared_usage(
        self, state: ConvGlobal, counts: np.ndarray, n_images: float, seed: int, number: int
    ) -> ConvGlobal:
        """theta, given sums over this many images."""
        random = generator(seed, Stream.USAGE, number)
        drawn = draw_map_usage(state.log_odds, counts, self.kinds, n_images, self.usage_prior, random)
        return state._replace(log_odds=drawn)

    def for_images(self, state: ConvGlobal, n_images: int) -> ConvGlobal:
        """The state for other images; what they have of their own begins at the mean."""
        return for_images(state, n_images) if self.usage_by_image else state

    def sweep_images(self, state: ConvGlobal, engine: ImageEngine, seed: int, number: int) -> ConvGlobal:
        """Draw all that images have of their own, given all that is shared: maps, and usage by image."""
        self.draw_maps(state, engine, seed, number)
        return draw_new_usage(state, engine, self.kinds, seed, number) if self.usage_by_image else state

    def draw_precisions(
        self, state: ConvGlobal, drawn: MapDraw, n_observed: float, seed: int, number: int
    ) -> ConvGlobal:
        """gamma_s and gamma_eps, given sums over this many observed entries."""
        noise_precision = self.noise_precision
        if noise_precision is None:
            noise_precision = draw_precision(
                n_observed, drawn.residual_squares, self.noise_prior,
                generator(seed, Stream.NOISE_PRECISION, number),
            )  # fmt: skip
        return state._replace(
            code_precision=draw_precision(
                drawn.counts.sum(), drawn.squares, self.code_prior,
                generator(seed, Stream.CODE_PRECISION, number),
            ),
            noise_precision=noise_precision,
        )  # fmt: skip

    def draw_atoms(self, state: ConvGlobal, engine: ImageEngine, seed: int, number: int) -> ConvGlobal:
        """All atoms in order, from the statistics of the shards."""
        atoms, noise = self.atoms_of(state), self.atom_noise(seed, number)
        visit: Any = partial(masked_statistics, dictionary=atoms.dictionary, layout=self.layout)
        if not engine.complete:
            for k in range(self.n_atoms):
                masked = sum_in_order(engine.map(partial(visit, atom=k)))
                draw_atom_masked(atoms, k, masked, state.noise_precision, noise)
            return self.with_atoms(state, atoms)
        visit = partial(lag_statistics, dictionary=atoms.dictionary, layout=self.layout)
        size = lag_block_size(self.layout, self.n_atoms, engine.n_shards)
        for first in range(0, self.n_atoms, size):
            width = min(size, self.n_atoms - first)
            lags = sum_in_order(engine.map(partial(visit, first=first, size=width)))
            draw_atoms_lags(atoms, first, lags, state.noise_precision, noise)
        return self.with_atoms(state, atoms)

    def atoms_of(self, state: ConvGlobal) -> ConvAtoms:
        """Copies of the atoms' arrays, as the draw changes them in place."""
        return ConvAtoms(
            state.dictionary.copy(), state.weights.copy(), state.factors.copy(),
            np.cumsum(state.log_delta, axis=1), self.shape,
        )  # fmt: skip

    def atom_noise(self, seed: int, number: int) -> AtomNoise:
        """The normals of one draw of all atoms."""
        return AtomNoise(
            generator(seed, Stream.ATOMS, number).standard_normal((self.n_atoms, self.n_coefficients)),
            generator(seed, Stream.ATOM_WEIGHTS, number).standard_normal((self.n_atoms, self.rank)),
        )

    def with_atoms(self, state: ConvGlobal, atoms: ConvAtoms) -> ConvGlobal:
        """The state with other atoms."""
        return state._replace(dictionary=atoms.dictionary, weights=atoms.weights, factors=atoms.factors)

    def initial(self, dictionary: np.ndarray, **atoms: Any) -> ConvGlobal:
        """The global state at the start with these atoms: nothing in use, noise a tenth of the range."""
        usage, cells = 0.01, self.layout.n_cells
        values = {
            "weights": np.zeros((self.n_atoms, 0)), "factors": np.zeros((self.n_atoms, 0, 0)),
            "log_delta": np.zeros((self.n_atoms, 0)), "alpha": 1.0, **atoms,
        }  # fmt: skip
        return ConvGlobal(
            dictionary, log_odds=np.full((self.n_atoms, cells), math.log(usage / cells / (1.0 - usage))),
            code_precision=1.0, noise_precision=self.noise_precision or 100.0,
            image_log_odds=np.zeros((0, self.n_atoms)), concentration=self.concentration_prior.mean, **values,
        )  # fmt: skip

    def draw_atom_prior(self, state: ConvGlobal, seed: int, number: int) -> ConvGlobal:
        """Draw what governs the atoms; nothing for fixed priors."""
        return state
