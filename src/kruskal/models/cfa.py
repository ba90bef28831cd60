"""CFA and CKFA: convolutional factor analysis with Gaussian atoms and with Kruskal atoms."""

from dataclasses import dataclass

import numpy as np

from kruskal.gibbs.conv_local import ImageShard
from kruskal.gibbs.conv_start import patch_items
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.gibbs.start import gaussian_start, kruskal_start
from kruskal.models.conv import ConvGlobal, ConvModel
from kruskal.models.kruskal_prior import PAPER_ALPHA, check_alpha_mode, draw_kruskal_prior
from kruskal.random import Stream, generator
from kruskal.tensor import RANK_TOLERANCE, compose, effective_ranks, entry_rows


@dataclass(frozen=True, kw_only=True)
class CFA(ConvModel):
    """Convolutional factor analysis, D_k[j, c] ~ N(0, 1/P); see `ConvModel` for the parameters."""

    def start(self, name: str, shards: list[ImageShard], seed: int) -> ConvGlobal:
        """The global state in which a chain begins; ``name`` as in `kruskal.gibbs.start`."""
        items = patch_items(shards, self.layout, generator(seed, Stream.MAP_START, 0))
        atoms = gaussian_start(name, items, self.n_atoms, generator(seed, Stream.START, 0))
        return self.for_images(self.initial(atoms), sum(shard.n_images for shard in shards))

    @property
    def n_parameters(self) -> int:
        """Numbers that the dictionary is made of."""
        m_x, m_y, channels = self.shape
        return self.n_atoms * m_x * m_y * channels

    def ranks(self, state: ConvGlobal, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
        """(K,) matrix rank of atoms of one channel at a relative tolerance; -1 (not defined) for others."""
        if self.shape[2] != 1:
            return np.full(self.n_atoms, -1)
        strength = np.linalg.svd(state.dictionary.reshape(-1, *self.atom_size), compute_uv=False)
        return (strength > tolerance * strength[:, :1]).sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class CKFA(ConvModel):
    """Convolutional Kruskal-factor analysis: atoms are Kruskal tensors over x, y and the channels.

    Parameters
    ----------
    rank : number of Kruskal terms R an atom may have, at least 1
    alpha_mode : ``sample``, ``map`` or ``fixed``;  alpha_start : its first value
    alpha_prior : (a, b)
    moves : whether to make the scale and swap moves between factors and weights

    See `ConvModel` for the others.
    """

    rank: int = 1
    alpha_mode: str = "sample"
    alpha_start: float = 10.0
    alpha_prior: AlphaPrior = PAPER_ALPHA
    moves: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha_mode(self.alpha_mode)

    def start(self, name: str, shards: list[ImageShard], seed: int) -> ConvGlobal:
        """The global state in which a chain begins: delta = 1, nothing is shrunk before it is learned."""
        items = patch_items(shards, self.layout, generator(seed, Stream.MAP_START, 0))
        weights, factors = kruskal_start(
            name, items, self.n_atoms, self.rank, generator(seed, Stream.START, 0)
        )
        state = self.initial(
            compose(weights, factors, entry_rows(self.shape)), weights=weights, factors=factors,
            log_delta=np.zeros_like(weights), alpha=float(self.alpha_start),
        )  # fmt: skip
        return self.for_images(state, sum(shard.n_images for shard in shards))

    @property
    def n_parameters(self) -> int:
        """Numbers that the dictionary is made of: K R (1 + m_x + m_y + C)."""
        return self.n_atoms * self.rank * (1 + sum(self.shape))

    def draw_atom_prior(self, state: ConvGlobal, seed: int, number: int) -> ConvGlobal:
        """Swap and scale moves inside the atoms, then delta and alpha."""
        return draw_kruskal_prior(
            state, self.shape, self.alpha_mode, self.alpha_prior, self.moves, number > self.delay, seed,
            number,
        )  # fmt: skip

    def ranks(self, state: ConvGlobal, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
        """(K,) rank of every atom at a relative tolerance."""
        return effective_ranks(state.weights, state.factors, self.shape, tolerance)
