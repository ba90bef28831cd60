r"""One Kruskal atom, one coefficient at a time, given p and q of its entries (`kruskal.gibbs.atoms`).

With a_i the weight times the factors of all other modes, b_i = d_i - a_i u and g_i = d_i - lambda_r f_ir:

    u ~ N(mu, 1/w),      w = m_t + sum_{i: i_t=j} q_i a_i^2,  mu = sum (p_i - q_i b_i) a_i / w           (1.3)
    lambda_r ~ N(nu, 1/v),  v = tau_r + sum_i q_i f_ir^2,     nu = sum (p_i - q_i g_i) f_ir / v          (1.5)
"""

import math

import numpy as np

from kruskal.kernel import kernel
from kruskal.tensor.kruskal import compose_atom


@kernel
def draw_kruskal_scalar(
    atom, weights, factors, log_precision, rows, sizes, p, q, noise, weight_noise, fixed_weights
):
    """Draw the factors, then the weights, and compose the atom; all in place."""
    compose_atom(weights, factors, rows, atom)
    _draw_factors(atom, weights, factors, rows, sizes, p, q, noise)
    if not fixed_weights:
        _draw_weights(atom, weights, factors, log_precision, rows, p, q, weight_noise)
    compose_atom(weights, factors, rows, atom)


@kernel
def _draw_factors(atom, weights, factors, rows, sizes, p, q, noise):
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
def _draw_weights(atom, weights, factors, log_precision, rows, p, q, noise):
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
