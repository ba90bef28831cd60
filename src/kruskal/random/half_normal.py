"""Normals that are cut off at zero: their mass and draws, also far out in the tail.

For s > 0 with density ~ exp(-(s - m)^2 / (2 v)) and x = m / sqrt(v), the mass is sqrt(2 pi v) Phi(x). Below
x = -8 both the mass and the quantile follow from Mills' ratio R(a) = (1 - Phi(a)) / phi(a), whose continued
fraction converges fast there.
"""

import math

from kruskal.kernel import kernel
from kruskal.random.normal import normal_quantile

_TAIL = -8.0
_ROOT_HALF = math.sqrt(0.5)
_LOG_ROOT = 0.5 * math.log(2.0 / math.pi)


@kernel
def log_half_mass(x):
    """log(2 Phi(x)) + x^2 / 2 without overflow: the mass of a positive slab, but for its width."""
    if x < _TAIL:
        return _LOG_ROOT + math.log(_mills(-x))
    return math.log(math.erfc(-x * _ROOT_HALF)) + 0.5 * x * x


@kernel
def positive_normal(x, u):
    """A draw of N(x, 1) given that it is positive, from a uniform 0 < u < 1."""
    if x >= _TAIL:
        # P(draw > s) = Phi(x - s) / Phi(x) = u
        return max(x - normal_quantile(0.5 * u * math.erfc(-x * _ROOT_HALF)), 0.0)
    # log P(N > a + s | N > a) = -(a s + s^2 / 2) + log R(a + s) / R(a) = log u, by Newton's method
    a, log_u = -x, math.log(u)
    s = -2.0 * log_u / (a + math.sqrt(a * a - 2.0 * log_u))
    for _ in range(3):
        ratio = _mills(a + s)
        s += (-(a + 0.5 * s) * s + math.log(ratio / _mills(a)) - log_u) * ratio
    return max(s, 0.0)


@kernel
def _mills(a):
    """(1 - Phi(a)) / phi(a) for a >= 8: a continued fraction from the bottom up."""
    value = a
    for level in range(40, 0, -1):
        value = a + level / value
    return 1.0 / value
