r"""The inverse Gaussian distribution of shape 1, by the transformation of Michael, Schucany and Haas (1976).

With density sqrt(1 / (2 pi x^3)) exp(-(x - m)^2 / (2 m^2 x)) and mean m, the number (x - m)^2 / (m^2 x) is
chi-squared with one degree of freedom. Given its value v = z^2 there are two x, the smaller of which is right
with probability m / (m + x). With a = 1/m they are

    x = 1 / (a + v/2 + sqrt(v^2/4 + a v))     and     1 / (a^2 x),

written without the difference of nearly equal numbers that the textbook form has for large means; a = 0, the
mean infinity, is a proper distribution too (1 over a chi-squared).
"""

import math

from kruskal.kernel import kernel


@kernel
def inverse_gaussian(inverse_mean, normal, uniform):
    """A draw with mean 1 / ``inverse_mean`` and shape 1 from a standard normal and a uniform in (0, 1)."""
    chi = normal * normal
    small = 1.0 / (inverse_mean + 0.5 * chi + math.sqrt(0.25 * chi * chi + inverse_mean * chi))
    if uniform * (1.0 + inverse_mean * small) <= 1.0:
        return small
    return 1.0 / (inverse_mean * inverse_mean * small)
