r"""Usage: pi_k, the probability that an item uses atom k.

pi_k ~ Beta(a_pi / K + sum_n z_kn, b_pi (K - 1) / K + N - sum_n z_kn)       (1.14)
"""

from typing import NamedTuple

import numpy as np

SMALLEST = 1e-12
"""Usage is kept inside [SMALLEST, 1 - SMALLEST]."""


class UsagePrior(NamedTuple):
    """The two parameters a_pi, b_pi of the beta process; K atoms have Beta(a_pi / K, b_pi (K - 1) / K)."""

    a: float
    b: float

    def shapes(self, n_atoms: int) -> tuple[float, float]:
        """The two shapes of the beta prior of one atom. One atom alone gets b_pi, as the limit would be 0."""
        return self.a / n_atoms, self.b * max(n_atoms - 1, 1) / n_atoms


def usage_conditional(counts: np.ndarray, n_items: int, prior: UsagePrior) -> tuple[np.ndarray, np.ndarray]:
    """Shapes (K,), (K,) of the beta conditional, given counts_k = sum_n z_kn."""
    used, unused = prior.shapes(len(counts))
    return used + counts, unused + (n_items - counts)


def draw_usage(
    counts: np.ndarray, n_items: int, prior: UsagePrior, random: np.random.Generator
) -> np.ndarray:
    """pi (K,) given how many of the N items use each atom."""
    return np.clip(random.beta(*usage_conditional(counts, n_items, prior)), SMALLEST, 1.0 - SMALLEST)
