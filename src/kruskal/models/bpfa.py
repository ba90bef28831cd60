"""BPFA: beta process factor analysis, the vectorised model. Atoms are Gaussian, d_ik ~ N(0, 1/P)."""

from dataclasses import dataclass

import numpy as np

from kruskal.gibbs.start import gaussian_start
from kruskal.models.base import FactorModel, Global
from kruskal.patches import Items
from kruskal.random import Stream, generator
from kruskal.tensor import RANK_TOLERANCE


@dataclass(frozen=True, kw_only=True)
class BPFA(FactorModel):
    """Beta process factor analysis (Zhou et al. 2009); see `FactorModel` for the parameters."""

    def start(self, name: str, items: Items, seed: int) -> Global:
        """The global state in which a chain begins."""
        return self.initial(
            gaussian_start(name, items, self.n_atoms, generator(seed, Stream.START, 0)), items
        )

    def ranks(self, state: Global, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
        """(K,) matrix rank of atoms of order 2 at a relative tolerance; -1 (not defined) for other orders."""
        if len(self.shape) != 2:
            return np.full(self.n_atoms, -1)
        strength = np.linalg.svd(state.dictionary.reshape(-1, *self.shape), compute_uv=False)
        return (strength > tolerance * strength[:, :1]).sum(axis=1)
