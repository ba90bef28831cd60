"""The standard normal quantile function, and normals made with it.

Wichura's algorithm AS 241 (1988), routine PPND16: rational approximations with a relative error of about
1e-16. In the middle (85 % of all draws) it takes no transcendental function, and it needs one uniform per
normal: much cheaper than Box and Muller.
"""

import math

import numpy as np

from kruskal.kernel import kernel
from kruskal.random.philox import uniform_52

_ROOT_2 = math.sqrt(2.0)
_LOG_2 = math.log(2.0)
_SHORT_TOP = tuple(np.float32(c) for c in (5.9109374720e1, 1.5929113202e2, 5.0434271938e1, 3.3871327179e0))
_SHORT_BOTTOM = tuple(np.float32(c) for c in (6.7187563600e1, 7.8757757664e1, 1.7895169469e1, 1.0))
_SHORT_MIDDLE = np.float32(0.180625)
MIDDLE = 0.425
"""Where |u - 1/2| is at most this, the quantile is a ratio of polynomials."""


@kernel
def normal_quantile(u):
    """The x with P(N(0, 1) <= x) = u, for 0 < u < 1."""
    return middle_quantile(u) if abs(u - 0.5) <= MIDDLE else tail_quantile(u)


@kernel
def tail_quantile(u):
    """`normal_quantile` for |u - 1/2| > MIDDLE."""
    tail = u if u < 0.5 else 1.0 - u
    r = math.sqrt(-math.log(tail))
    x = _near_tail(r - 1.6) if r <= 5.0 else _far_tail(r - 5.0)
    return -x if u < 0.5 else x


@kernel
def normal(high, low):
    """A standard normal from two random words."""
    return normal_quantile(uniform_52(high, low))


@kernel
def fill_normals(words, uniforms, normals):
    """Normals for rows of ``words`` (items, 2 n) uint32, many at a time with vector instructions.

    Uniform j of a row is made of words j and n + j, and ``normals`` (items, n) holds its quantile;
    ``uniforms`` (items, n) is scratch space. Those in the tails are collected, worked out and put back.
    Normals in single precision come from the same uniforms, and have its digits.
    """
    for m in range(words.shape[0]):
        _fill_row(words[m], uniforms[m], normals[m])
    _fill_tails(uniforms.ravel(), normals.ravel())


@kernel
def _fill_row(words, uniforms, normals):
    n = normals.shape[0]
    for j in range(n):
        uniforms[j] = uniform_52(np.uint64(words[j]), np.uint64(words[n + j]))
    if normals.itemsize == 4:
        for j in range(n):
            normals[j] = _short_quantile(np.float32(uniforms[j] - 0.5))
    else:
        for j in range(n):
            normals[j] = middle_quantile(uniforms[j])


@kernel
def _fill_tails(uniforms, normals):
    place = np.empty(uniforms.shape[0] + 1, np.uint32)
    n_tails = 0
    for j in range(uniforms.shape[0]):
        place[n_tails] = j
        n_tails += abs(uniforms[j] - 0.5) > MIDDLE
    tail = np.empty(n_tails)
    for i in range(n_tails):
        tail[i] = min(uniforms[place[i]], 1.0 - uniforms[place[i]])
    root = np.empty(n_tails)  # sqrt(-log(tail))
    fill_logs(tail, root)
    for i in range(n_tails):
        root[i] = math.sqrt(-root[i])
    quantile = np.empty(n_tails)
    for i in range(n_tails):
        quantile[i] = _near_tail(root[i] - 1.6)
    for i in range(n_tails):
        x = quantile[i] if root[i] <= 5.0 else _far_tail(root[i] - 5.0)
        normals[place[i]] = -x if uniforms[place[i]] < 0.5 else x


@kernel
def fill_logs(numbers, logs):
    """``logs`` = log of positive ``numbers`` (both (n,) float64) with vector instructions.

    With x = 2^e m and 2^-1/2 < m <= 2^1/2, log x = e log 2 + 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172,
    and eleven terms of the series of atanh have all digits.
    """
    bits = numbers.view(np.int64)
    exponent = np.empty(numbers.shape[0])
    mantissa = np.empty(numbers.shape[0])
    mantissa_bits = mantissa.view(np.int64)
    for i in range(numbers.shape[0]):
        exponent[i] = float((bits[i] >> 52) - 1023)
        mantissa_bits[i] = (bits[i] & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000
    for i in range(numbers.shape[0]):
        halve = mantissa[i] > _ROOT_2
        m = 0.5 * mantissa[i] if halve else mantissa[i]
        e = exponent[i] + 1.0 if halve else exponent[i]
        s = (m - 1.0) / (m + 1.0)
        square = s * s
        series = 1.0 / 21.0
        for odd in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
            series = series * square + 1.0 / odd
        logs[i] = e * _LOG_2 + 2.0 * s * series


@kernel
def middle_quantile(u):
    """`normal_quantile` for |u - 1/2| <= MIDDLE."""
    q = u - 0.5
    r = 0.180625 - q * q
    top = 2.5090809287301226727e3
    for coefficient in (
        3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4, 1.3731693765509461125e4,
        1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
    ):  # fmt: skip
        top = top * r + coefficient
    bottom = 5.2264952788528545610e3
    for coefficient in (
        2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4, 5.3941960214247511077e3,
        6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
    ):  # fmt: skip
        bottom = bottom * r + coefficient
    return q * top / bottom


@kernel
def _short_quantile(q):
    """`middle_quantile` at q + 1/2 in single precision: routine PPND7 of AS 241."""
    r = _SHORT_MIDDLE - q * q
    top, bottom = _SHORT_TOP[0], _SHORT_BOTTOM[0]
    for power in (1, 2, 3):
        top = top * r + _SHORT_TOP[power]
        bottom = bottom * r + _SHORT_BOTTOM[power]
    return q * top / bottom


@kernel
def _near_tail(r):
    top = 7.74545014278341407640e-4
    for coefficient in (
        2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
        3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0,
        1.42343711074968357734e0,
    ):  # fmt: skip
        top = top * r + coefficient
    bottom = 1.05075007164441684324e-9
    for coefficient in (
        5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
        6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
    ):  # fmt: skip
        bottom = bottom * r + coefficient
    return top / bottom


@kernel
def _far_tail(r):
    top = 2.01033439929228813265e-7
    for coefficient in (
        2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
        2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0,
        6.65790464350110377720e0,
    ):  # fmt: skip
        top = top * r + coefficient
    bottom = 2.04426310338993978564e-15
    for coefficient in (
        1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
    ):  # fmt: skip
        bottom = bottom * r + coefficient
    return top / bottom
