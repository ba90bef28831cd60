r"""One Kruskal atom (KFA): factors and weights given p and q, what the data say of its entries.

Blocked over the R terms. For mode t and row j let A_i = (lambda_r prod_{t' != t} u^(t')_{i_t' r})_r:

    u^(t)_j ~ N(Q_j^-1 h_j, Q_j^-1),  Q_j = m_t I + sum_{i: i_t = j} q_i A_i A_i^T,  h_j = sum p_i A_i   (1.4)
    lambda ~ N(L^-1 F^T p, L^-1),     L = diag(tau) + F^T diag(q) F,  f_ir = prod_t u^(t)_{i_t r}        (1.6)

and one coefficient at a time (`scalar`), with b_i = d_i - a_i u and g_i = d_i - lambda_r f_ir:

    u ~ N(mu, 1/w),      w = m_t + sum_{i: i_t=j} q_i a_i^2,  mu = sum (p_i - q_i b_i) a_i / w           (1.3)
    lambda_r ~ N(nu, 1/v),  v = tau_r + sum_i q_i f_ir^2,     nu = sum (p_i - q_i g_i) f_ir / v          (1.5)

tau_r reaches 1e6^r, so weights are drawn as lambda = tau^-1/2 eta, with the precision
I + tau^-1/2 F^T q F tau^-1/2 for eta.
All randomness comes in as arrays of standard normals: the kernels are plain functions.
"""

import math

import numpy as np

from kruskal.kernel import kernel
from kruskal.tensor.kruskal import compose_atom


@kernel
def draw_kruskal(
    atom, weights, factors, log_precision, rows, sizes, p, q, constant_q, noise, weight_noise, blocked,
    fixed_weights,
):  # fmt: skip
    """Draw the factors and weights of one atom in place, and compose it; ``constant_q``: q is one number."""
    if blocked:
        if constant_q:
            _draw_factors_constant(weights, factors, rows, sizes, p, q[0], noise)
        else:
            _draw_factors(weights, factors, rows, sizes, p, q, noise)
        if not fixed_weights:
            _draw_weights(weights, factors, log_precision, rows, p, q, weight_noise)
        compose_atom(weights, factors, rows, atom)
    else:
        compose_atom(weights, factors, rows, atom)
        _draw_factors_scalar(atom, weights, factors, rows, sizes, p, q, noise)
        if not fixed_weights:
            _draw_weights_scalar(atom, weights, factors, log_precision, rows, p, q, weight_noise)
        compose_atom(weights, factors, rows, atom)


@kernel
def _draw_gaussian_vector(precision, linear, noise, out):
    """out ~ N(Q^-1 h, Q^-1) for Q ``precision`` (R, R, destroyed: lower triangle read) and h ``linear``."""
    n = linear.shape[0]
    for j in range(n):  # Cholesky Q = L L^T in the lower triangle
        for m in range(j):
            for i in range(j, n):
                precision[i, j] -= precision[i, m] * precision[j, m]
        pivot = math.sqrt(precision[j, j])
        for i in range(j, n):
            precision[i, j] /= pivot
    for j in range(n):  # L y = h
        total = linear[j]
        for m in range(j):
            total -= precision[j, m] * out[m]
        out[j] = total / precision[j, j]
    for j in range(n):
        out[j] += noise[j]
    for j in range(n - 1, -1, -1):  # L^T x = y + noise
        total = out[j]
        for m in range(j + 1, n):
            total -= precision[m, j] * out[m]
        out[j] = total / precision[j, j]


@kernel
def _others(weights, factors, rows, i, mode, a):
    """A_i: the weights times the factors of all modes but ``mode`` for entry i."""
    for r in range(a.shape[0]):
        a[r] = weights[r]
    for t in range(rows.shape[1]):
        row = np.uint64(rows[i, t])
        for r in range(a.shape[0] if t != mode else 0):  # a loop on a branch would have references counted
            a[r] *= factors[row, r]


@kernel
def _draw_factors(weights, factors, rows, sizes, p, q, noise):
    rank = weights.shape[0]
    a = np.empty(rank)
    drawn = np.empty(rank)
    offset = 0
    for mode in range(sizes.shape[0]):
        size = sizes[mode]
        precision = np.zeros((size, rank, rank))
        linear = np.zeros((size, rank))
        for i in range(rows.shape[0]):
            _others(weights, factors, rows, i, mode, a)
            row = np.uint64(rows[i, mode] - offset)
            for r in range(rank):
                linear[row, r] += p[i] * a[r]
                scaled = q[i] * a[r]
                for s in range(r + 1):
                    precision[row, r, s] += scaled * a[s]
        for j in range(size):
            for r in range(rank):
                precision[j, r, r] += size
            at = (offset + j) * rank
            _draw_gaussian_vector(precision[j], linear[j], noise[at : at + rank], drawn)
            for r in range(rank):
                factors[offset + j, r] = drawn[r]
        offset += size


@kernel
def _draw_factors_constant(weights, factors, rows, sizes, p, q, noise):
    """The same when q is one number: Q = m_t I + q lambda lambda^T o (o_{t' != t} U^T U) for all rows."""
    rank = weights.shape[0]
    a = np.empty(rank)
    drawn = np.empty(rank)
    offset = 0
    for mode in range(sizes.shape[0]):
        size = sizes[mode]
        shared = np.empty((rank, rank))
        for r in range(rank):
            for s in range(r + 1):
                shared[r, s] = q * weights[r] * weights[s]
        start = 0
        for t in range(sizes.shape[0]):
            if t != mode:
                for r in range(rank):
                    for s in range(r + 1):
                        total = 0.0
                        for j in range(start, start + sizes[t]):
                            total += factors[j, r] * factors[j, s]
                        shared[r, s] *= total
            start += sizes[t]
        linear = np.zeros((size, rank))
        for i in range(rows.shape[0]):
            _others(weights, factors, rows, i, mode, a)
            line = linear[rows[i, mode] - offset]
            for r in range(rank):
                line[r] += p[i] * a[r]
        for r in range(rank):
            shared[r, r] += size
        precision = np.empty((rank, rank))
        for j in range(size):
            precision[:] = shared
            at = (offset + j) * rank
            _draw_gaussian_vector(precision, linear[j], noise[at : at + rank], drawn)
            for r in range(rank):
                factors[offset + j, r] = drawn[r]
        offset += size


@kernel
def _draw_weights(weights, factors, log_precision, rows, p, q, noise):
    rank = weights.shape[0]
    f = np.empty(rank)
    deviation = np.empty(rank)  # tau^-1/2
    for r in range(rank):
        deviation[r] = math.exp(-0.5 * log_precision[r])
    precision = np.zeros((rank, rank))
    linear = np.zeros(rank)
    for i in range(rows.shape[0]):
        _others(deviation, factors, rows, i, -1, f)
        for r in range(rank):
            linear[r] += p[i] * f[r]
            scaled = q[i] * f[r]
            for s in range(r + 1):
                precision[r, s] += scaled * f[s]
    for r in range(rank):
        precision[r, r] += 1.0
    _draw_gaussian_vector(precision, linear, noise, weights)
    for r in range(rank):
        weights[r] *= deviation[r]


@kernel
def _draw_factors_scalar(atom, weights, factors, rows, sizes, p, q, noise):
    rank = weights.shape[0]
    offset = 0
    a = np.empty(rows.shape[0])
    for mode in range(sizes.shape[0]):
        size = sizes[mode]
        for r in range(rank):
            precision = np.full(size, float(size))
            linear = np.zeros(size)
            for i in range(rows.shape[0]):
                a[i] = weights[r]
                for t in range(rows.shape[1]):
                    if t != mode:
                        a[i] *= factors[rows[i, t], r]
                j = rows[i, mode] - offset
                without = atom[i] - a[i] * factors[rows[i, mode], r]
                precision[j] += q[i] * a[i] * a[i]
                linear[j] += (p[i] - q[i] * without) * a[i]
            for i in range(rows.shape[0]):
                atom[i] -= a[i] * factors[rows[i, mode], r]
            for j in range(size):
                deviate = noise[(offset + j) * rank + r] / math.sqrt(precision[j])
                factors[offset + j, r] = linear[j] / precision[j] + deviate
            for i in range(rows.shape[0]):
                atom[i] += a[i] * factors[rows[i, mode], r]
        offset += size


@kernel
def _draw_weights_scalar(atom, weights, factors, log_precision, rows, p, q, noise):
    f = np.empty(rows.shape[0])
    for r in range(weights.shape[0]):
        scale = math.exp(-0.5 * log_precision[r])  # lambda = scale * eta, eta ~ N(0, 1)
        precision = 1.0
        linear = 0.0
        for i in range(rows.shape[0]):
            f[i] = 1.0
            for t in range(rows.shape[1]):
                f[i] *= factors[rows[i, t], r]
            atom[i] -= weights[r] * f[i]
            precision += q[i] * f[i] * f[i] * scale * scale
            linear += (p[i] - q[i] * atom[i]) * f[i] * scale
        weights[r] = scale * (linear / precision + noise[r] / math.sqrt(precision))
        for i in range(rows.shape[0]):
            atom[i] += weights[r] * f[i]
