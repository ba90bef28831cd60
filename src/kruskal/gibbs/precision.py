r"""Precisions: gamma_eps of the noise and gamma_s of the codes.

    gamma_eps ~ Gamma(c + 1/2 sum_n |Omega_n|,  d + 1/2 sum over observed of (x - Dw)^2)       (1.15)
    gamma_s   ~ Gamma(e + 1/2 sum z_kn,         f + 1/2 sum z_kn s_kn^2)                       (1.16')

gamma_s has the codes with z = 0 integrated out: exact, and it mixes faster than drawing them. A prior that is
cut off below or above t gives the same conditional, cut off there.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincc

SMALLEST, LARGEST = 1e-12, 1e15
"""Precisions are kept inside this range: data are scaled to about 1, and what follows must not overflow."""
FIRST_CAP = 16.0
"""Of the noise precision where annealing begins: noise a quarter of the range of the data."""
_ANNEALED = 1600.0  # the bound of the noise sinks to a fortieth
_OFTEN = 0.1  # what is cut off is drawn and thrown away as long as so much is left


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


def draw_precision(
    count: float,
    squares: float,
    prior: GammaPrior,
    random: np.random.Generator,
    least: float = 0.0,
    most: float = math.inf,
) -> float:
    """A precision given ``count`` normal deviates with sum of squares ``squares``, and that it is at least
    ``least``, or at most ``most``: one of the two may be given."""
    shape, rate = precision_conditional(count, squares, prior)
    if most < math.inf:
        assert least == 0.0
        drawn = _gamma_below(shape, most * rate, random)
    else:
        drawn = _gamma_above(shape, least * rate, random)
    return float(np.clip(drawn / rate, max(least, SMALLEST), min(most, LARGEST)))


def _gamma_below(shape: float, most: float, random: np.random.Generator) -> float:
    """Gamma(shape, 1) given that it is at most ``most``, by rejection.

    Far out in the tail: with a the shape, t the bound and x = t (1 - y), the density is proportional to
    (1 - y)^(a-1) e^(t y), which is at most e^(-(a-1-t) y). So an exponential y of that rate is accepted with
    the probability (1 - y)^(a-1) e^((a-1) y). A bound near 0 of a shape that is small leaves x^(a-1) e^-x.
    """
    if gammainc(shape, most) >= _OFTEN:
        while True:
            draw = random.standard_gamma(shape)
            if draw <= most:
                return float(draw)
    steepness = shape - 1.0 - most
    while True:
        if steepness > 1.0:
            y = random.standard_exponential() / steepness
            log_share = (shape - 1.0) * (math.log1p(-y) + y) if y < 1.0 else -math.inf
            draw = most * (1.0 - y)
        else:
            draw = most * (1.0 - random.random()) ** (1.0 / shape)
            log_share = -draw
        if math.log1p(-random.random()) <= log_share:
            return float(draw)


def _gamma_above(shape: float, least: float, random: np.random.Generator) -> float:
    """Gamma(shape, 1) given that it is at least ``least``, by rejection.

    Far out in the tail: with a the shape, t the bound and x = t (1 + y), the density is proportional to
    (1 + y)^(a-1) e^(-t y), which is at most e^(-(t-a+1) y) if a > 1, else e^(-t y). So an exponential y of
    that rate is accepted with the probability (1 + y)^(a-1) e^(-(a-1) y) or (1 + y)^(a-1).
    """
    if not least > 0.0:
        return float(random.standard_gamma(shape))
    if gammaincc(shape, least) >= _OFTEN:
        while True:
            draw = random.standard_gamma(shape)
            if draw >= least:
                return float(draw)
    tangent = max(shape - 1.0, 0.0)
    while True:
        y = random.standard_exponential() / (least - tangent)
        if math.log1p(-random.random()) <= (shape - 1.0) * math.log1p(y) - tangent * y:
            return least * (1.0 + y)


def annealed_cap(number: int, annealing: int, first: float, last: float | None = None) -> float:
    """The largest noise precision of sweep ``number``, so that noise is not small at once.

    It grows from ``first`` to ``last``, or 1,600 times the first, in ``annealing`` sweeps, counted from one;
    then there is none.
    """
    growth = _ANNEALED if last is None else last / first
    return first * growth ** ((number - 1) / annealing) if number <= annealing else math.inf
