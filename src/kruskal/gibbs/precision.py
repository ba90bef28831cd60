r"""Precisions: gamma_eps of the noise and gamma_s of the codes.

    gamma_eps ~ Gamma(c + 1/2 sum_n |Omega_n|,  d + 1/2 sum over observed of (x - Dw)^2)       (1.15)
    gamma_s   ~ Gamma(e + 1/2 sum z_kn,         f + 1/2 sum z_kn s_kn^2)                       (1.16')

gamma_s has the codes with z = 0 integrated out: exact, and it mixes faster than drawing them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

SMALLEST, LARGEST = 1e-12, 1e15
"""Precisions are kept inside this range: data are scaled to about 1, and what follows must not overflow."""
_ANNEALED = 1600.0  # the bound of the noise sinks to a fortieth


class GammaPrior(NamedTuple):
    """Gamma(shape, rate)."""

    shape: float
    rate: float

    @property
    def mean(self) -> float:
        """Of the distribution."""
        return self.shape / self.rate


def precision_conditional(count: Any, squares: Any, prior: GammaPrior) -> tuple[Any, Any]:
    """Shape and rate of a precision (or of many), given the number and sum of squares of what it governs."""
    return prior.shape + 0.5 * count, prior.rate + 0.5 * squares


def draw_precision(count: float, squares: float, prior: GammaPrior, random: np.random.Generator) -> float:
    """A precision given ``count`` normal deviates with sum of squares ``squares``."""
    shape, rate = precision_conditional(count, squares, prior)
    return float(np.clip(random.standard_gamma(shape) / rate, SMALLEST, LARGEST))


def annealed_cap(number: int, annealing: int, first: float) -> float:
    """The largest noise precision of sweep ``number``, so that noise is not small at once.

    It grows from ``first`` to 1,600 times that in ``annealing`` sweeps, counted from one; then there is none.
    """
    return first * _ANNEALED ** ((number - 1) / annealing) if number <= annealing else math.inf
