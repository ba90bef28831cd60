r"""One Kruskal atom, blocked over its R terms, given p and q of its entries (`kruskal.gibbs.atoms`).

For mode t and row j let A_i = (lambda_r prod_{t' != t} u^(t')_{i_t' r})_r:

    u^(t)_j ~ N(Q_j^-1 h_j, Q_j^-1),  Q_j = m_t I + sum_{i: i_t = j} q_i A_i A_i^T,  h_j = sum p_i A_i   (1.4)
    lambda ~ N(L^-1 F^T p, L^-1),     L = diag(tau) + F^T diag(q) F,  f_ir = prod_t u^(t)_{i_t r}        (1.6)

tau_r reaches 1e6^r, so weights are drawn as lambda = tau^-1/2 eta, with the precision
I + tau^-1/2 F^T q F tau^-1/2 for eta.

R is small, so the inner loops run over the entries, or over the rows of a mode, whose draws do not depend on
each other: the factors are spread out over the entries, (T, R, P), and all else is a product or a sum of such
lines. Entries are in C order, so those of a row lie in runs of ``inner`` = m_{t+1} .. m_T.
"""

import math

import numpy as np

from kruskal.kernel import kernel


@kernel
def draw_kruskal(
    atom, weights, factors, log_precision, sizes, p, q, constant_q, noise, weight_noise, fixed_weights
):
    """Draw the factors mode by mode, then the weights, and compose the atom; all in place.

    ``constant_q``: q is one number, so that all rows of a mode share Q.
    """
    rank, n_entries, n_modes = weights.shape[0], p.shape[0], sizes.shape[0]
    spread = np.empty((n_modes, rank, n_entries))
    others = np.empty((rank, n_entries))
    values = np.empty(n_entries)
    largest = sizes.max()
    precision = np.empty((rank * (rank + 1) // 2, largest))
    linear = np.empty((rank, largest))
    inner, offset = n_entries, 0
    for mode in range(n_modes):
        inner //= sizes[mode]
        _spread_mode(factors, offset, sizes[mode], inner, mode, spread)
        offset += sizes[mode]
    inner, offset = n_entries, 0
    for mode in range(n_modes):
        size = sizes[mode]
        inner //= size
        _multiply_modes(spread, weights, mode, others)
        if constant_q:
            _shared_precision(weights, factors, sizes, mode, q[0], precision)
        else:
            _row_precisions(others, q, size, inner, values, precision)
        _row_terms(others, p, size, inner, values, linear)
        _draw_rows(precision, linear, size, noise, offset, factors)
        _spread_mode(factors, offset, size, inner, mode, spread)
        offset += size
    if not fixed_weights:
        _draw_weights(spread, weights, log_precision, p, q, weight_noise, others, precision, linear)
    _multiply_modes(spread, weights, -1, others)
    for i in range(n_entries):
        atom[i] = 0.0
    for r in range(rank):
        line = np.uint64(r)
        for i in range(n_entries):
            atom[i] += others[line, i]


@kernel
def _spread_mode(factors, offset, size, inner, mode, spread):
    """spread[mode, r, i] = u^(mode)_{i_mode r}."""
    t = np.uint64(mode)
    for r in range(factors.shape[1]):
        column = np.uint64(r)
        at = np.uint64(0)
        for _ in range(spread.shape[2] // (size * inner)):
            for j in range(size):
                value = factors[np.uint64(offset + j), column]
                for n in range(inner):
                    spread[t, column, at + np.uint64(n)] = value
                at += np.uint64(inner)


@kernel
def _multiply_modes(spread, weights, mode, others):
    """others[r, i] = lambda_r times the factors of all modes but ``mode`` for entry i; -1 leaves none out."""
    n_modes, rank, n_entries = spread.shape
    for r in range(rank):
        line, weight = np.uint64(r), weights[r]
        for i in range(n_entries):
            others[line, i] = weight
        for other in range(n_modes):
            t = np.uint64(other)
            for i in range(n_entries if other != mode else 0):  # a branch would have references counted
                others[line, i] *= spread[t, line, i]


@kernel
def _row_terms(others, p, size, inner, values, linear):
    """h_j of all rows, (R, m)."""
    for r in range(others.shape[0]):
        line = np.uint64(r)
        for i in range(p.shape[0]):
            values[i] = p[i] * others[line, i]
        _sum_rows(values, size, inner, r, linear)


@kernel
def _row_precisions(others, q, size, inner, values, precision):
    """Q_j of all rows: lower triangles, (R (R + 1) / 2, m)."""
    for r in range(others.shape[0]):
        line = np.uint64(r)
        for s in range(r + 1):
            second, cell = np.uint64(s), _cell(r, s)
            for i in range(q.shape[0]):
                values[i] = q[i] * others[line, i] * others[second, i]
            _sum_rows(values, size, inner, cell, precision)
        for j in range(size):
            precision[_cell(r, r), j] += size


@kernel
def _shared_precision(weights, factors, sizes, mode, q, precision):
    """The same when q is one number: Q = m_t I + q lambda lambda^T o (o_{t' != t} U^T U) for all rows."""
    for r in range(weights.shape[0]):
        for s in range(r + 1):
            product = q * weights[r] * weights[s]
            start = 0
            for t in range(sizes.shape[0]):
                if t != mode:
                    total = 0.0
                    for j in range(start, start + sizes[t]):
                        total += factors[j, r] * factors[j, s]
                    product *= total
                start += sizes[t]
            if r == s:
                product += sizes[mode]
            cell = _cell(r, s)
            for j in range(sizes[mode]):
                precision[cell, j] = product


@kernel
def _sum_rows(values, size, inner, line, total):
    """total[line, j] = the sum of ``values`` over the entries of row j."""
    row = np.uint64(line)
    for j in range(size):
        total[row, j] = 0.0
    at = np.uint64(0)
    for _ in range(values.shape[0] // (size * inner)):
        if inner == 1:
            for j in range(size):
                total[row, j] += values[at + np.uint64(j)]
            at += np.uint64(size)
        else:
            for j in range(size):
                one = 0.0
                for n in range(inner):
                    one += values[at + np.uint64(n)]
                total[row, j] += one
                at += np.uint64(inner)


@kernel
def _cell(r, s):
    """Place of (r, s), s <= r, in a lower triangle."""
    return np.uint64(r * (r + 1) // 2 + s)


@kernel
def _draw_rows(precision, linear, size, noise, offset, factors):
    """u_j ~ N(Q_j^-1 h_j, Q_j^-1) for all rows j at once; destroys Q and h."""
    rank = factors.shape[1]
    _draw_vectors(precision, linear, size, noise, offset * rank)
    for r in range(rank):
        line = np.uint64(r)
        for j in range(size):
            factors[np.uint64(offset + j), line] = linear[line, j]


@kernel
def _draw_vectors(precision, linear, size, noise, first):
    """h_j becomes a draw from N(Q_j^-1 h_j, Q_j^-1), with the normals ``noise[first + j R + r]``.

    Q = L L^T, L with the inverse of its diagonal in its place; then L y = h and L^T x = y + noise.
    """
    rank = linear.shape[0]
    for c in range(rank):
        pivot = _cell(c, c)
        for m in range(c):
            for r in range(c, rank):
                cell, left, right = _cell(r, c), _cell(r, m), _cell(c, m)
                for j in range(size):
                    precision[cell, j] -= precision[left, j] * precision[right, j]
        for j in range(size):
            precision[pivot, j] = 1.0 / math.sqrt(precision[pivot, j])
        for r in range(c + 1, rank):
            cell = _cell(r, c)
            for j in range(size):
                precision[cell, j] *= precision[pivot, j]
    for r in range(rank):
        line, pivot = np.uint64(r), _cell(r, r)
        for m in range(r):
            cell, other = _cell(r, m), np.uint64(m)
            for j in range(size):
                linear[line, j] -= precision[cell, j] * linear[other, j]
        for j in range(size):
            linear[line, j] *= precision[pivot, j]
    for r in range(rank - 1, -1, -1):
        line, pivot = np.uint64(r), _cell(r, r)
        for j in range(size):
            linear[line, j] += noise[np.uint64(first + j * rank + r)]
        for m in range(r + 1, rank):
            cell, other = _cell(m, r), np.uint64(m)
            for j in range(size):
                linear[line, j] -= precision[cell, j] * linear[other, j]
        for j in range(size):
            linear[line, j] *= precision[pivot, j]


@kernel
def _draw_weights(spread, weights, log_precision, p, q, noise, terms, precision, linear):
    rank = weights.shape[0]
    deviation = np.empty(rank)  # tau^-1/2
    for r in range(rank):
        deviation[r] = math.exp(-0.5 * log_precision[r])
    _multiply_modes(spread, deviation, -1, terms)
    for r in range(rank):
        line = np.uint64(r)
        total = 0.0
        for i in range(p.shape[0]):
            total += p[i] * terms[line, i]
        linear[line, 0] = total
        for s in range(r + 1):
            second = np.uint64(s)
            total = 1.0 if s == r else 0.0
            for i in range(q.shape[0]):
                total += q[i] * terms[line, i] * terms[second, i]
            precision[_cell(r, s), 0] = total
    _draw_vectors(precision, linear, 1, noise, 0)
    for r in range(rank):
        weights[r] = deviation[r] * linear[r, 0]
