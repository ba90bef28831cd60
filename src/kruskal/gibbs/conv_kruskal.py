"""Kruskal atoms over (x, y, channel) whose entries are coupled; see `kruskal.gibbs.conv_atoms`."""

import math

import numpy as np

from kruskal.kernel import kernel


@kernel
def factorise(matrix, least):
    """Cholesky factor in the lower triangle, in place; ``least`` times I is part of the matrix.

    No pivot of least I + a Gram matrix is below ``least``, but for rounding.
    """
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(i + 1):
            other = matrix[j]
            total = row[j]
            for m in range(j):
                total -= row[m] * other[m]
            row[j] = math.sqrt(max(total, least)) if i == j else total / other[j]


@kernel
def draw_vector(factor, linear, noise, out):
    """out ~ N(Q^-1 h, Q^-1) for Q = L L^T with L from `factorise` and h ``linear``."""
    n = linear.shape[0]
    for i in range(n):
        total = linear[i]
        for j in range(i):
            total -= factor[i, j] * out[j]
        out[i] = total / factor[i, i]
    for i in range(n):
        out[i] += noise[i]
    for i in range(n - 1, -1, -1):
        out[i] /= factor[i, i]
        for j in range(i):
            out[j] -= factor[i, j] * out[i]


@kernel
def draw_kruskal(atom, weights, factors, log_precision, shape, p, precision, noise, weight_noise):
    """Draw the factors of x, y and the channels, then the weights, and compose the atom; in place.

    ``p`` (P,) and ``precision`` (1 or C, m_x m_y, m_x m_y) are those of the likelihood.
    """
    m_x, m_y, n_channels = shape
    rank = weights.shape[0]
    _draw_spatial(weights, factors, shape, p, precision, noise, True)
    _draw_spatial(weights, factors, shape, p, precision, noise, False)
    plane = np.empty((rank, m_x * m_y))  # f_r: the spatial part of every term
    for r in range(rank):
        for i in range(m_x * m_y):
            plane[r, i] = factors[i // m_y, r] * factors[m_x + i % m_y, r]
    products = np.zeros((precision.shape[0], rank, rank))  # f_r^T Q_c f_r'
    for c in range(precision.shape[0]):
        _plane_products(plane, precision[c], products[c])
    _draw_channels(weights, factors, shape, p, plane, products, noise)
    _draw_weights(weights, factors, log_precision, shape, p, plane, products, weight_noise)
    for i in range(m_x * m_y):
        for c in range(n_channels):
            total = 0.0
            for r in range(rank):
                total += weights[r] * plane[r, i] * factors[m_x + m_y + c, r]
            atom[i * n_channels + c] = total


@kernel
def _draw_spatial(weights, factors, shape, p, precision, noise, along_x):
    """All u^(x) or u^(y) of an atom: unknown (own row, r), given the other spatial mode and the channels."""
    m_x, m_y, n_channels = shape
    rank, size = weights.shape[0], m_x * m_y
    length = m_x if along_x else m_y
    own, other = (0, m_x) if along_x else (m_x, 0)
    channels = m_x + m_y
    matrix = np.zeros((length * rank, length * rank))
    linear, drawn = np.zeros(length * rank), np.empty(length * rank)
    coupling = np.empty((rank, rank))
    folded = np.empty((size, length))
    for c in range(precision.shape[0]):
        for r in range(rank):
            for s in range(rank):
                total = 0.0
                if precision.shape[0] > 1:
                    total = factors[channels + c, r] * factors[channels + c, s]
                else:
                    for ch in range(n_channels):
                        total += factors[channels + ch, r] * factors[channels + ch, s]
                coupling[r, s] = weights[r] * weights[s] * total
        for s in range(rank):
            _fold(precision[c], factors, m_x, m_y, s, along_x, folded)
            for i in range(size):
                here, across = (i // m_y, i % m_y) if along_x else (i % m_y, i // m_y)
                for r in range(rank):
                    scale = coupling[r, s] * factors[other + across, r]
                    for j in range(length):
                        matrix[here * rank + r, j * rank + s] += scale * folded[i, j]
    for i in range(size):
        here, across = (i // m_y, i % m_y) if along_x else (i % m_y, i // m_y)
        for r in range(rank):
            total = 0.0
            for c in range(n_channels):
                total += p[i * n_channels + c] * factors[channels + c, r]
            linear[here * rank + r] += weights[r] * factors[other + across, r] * total
    for i in range(length * rank):
        matrix[i, i] += float(length)
    factorise(matrix, float(length))
    draw_vector(matrix, linear, noise[own * rank : (own + length) * rank], drawn)
    for i in range(length):
        for r in range(rank):
            factors[own + i, r] = drawn[i * rank + r]


@kernel
def _fold(matrix, factors, m_x, m_y, s, along_x, out):
    """out[i, j] = sum over the other mode of Q[i, (j, other)] u_s[other]."""
    for i in range(m_x * m_y):
        row, to = matrix[i], out[i]
        for j in range(to.shape[0]):
            to[j] = 0.0
        for x in range(m_x):
            for y in range(m_y):
                if along_x:
                    to[x] += row[x * m_y + y] * factors[m_x + y, s]
                else:
                    to[y] += row[x * m_y + y] * factors[x, s]


@kernel
def _plane_products(plane, matrix, out):
    rank, size = plane.shape
    for s in range(rank):
        for i in range(size):
            image = 0.0
            for j in range(size):
                image += matrix[i, j] * plane[s, j]
            for r in range(rank):
                out[r, s] += plane[r, i] * image


@kernel
def _draw_channels(weights, factors, shape, p, plane, products, noise):
    """u^(c): the rows of the channels are independent, each a vector of R; one matrix for all if Q is."""
    m_x, m_y, n_channels = shape
    rank = weights.shape[0]
    matrix = np.empty((rank, rank))
    linear, drawn = np.empty(rank), np.empty(rank)
    for c in range(n_channels):
        if c == 0 or products.shape[0] > 1:
            for r in range(rank):
                for s in range(rank):
                    matrix[r, s] = weights[r] * weights[s] * products[c, r, s]
                matrix[r, r] += float(n_channels)
            factorise(matrix, float(n_channels))
        for r in range(rank):
            linear[r] = 0.0
            for i in range(plane.shape[1]):
                linear[r] += p[i * n_channels + c] * plane[r, i]
            linear[r] *= weights[r]
        row = m_x + m_y + c
        draw_vector(matrix, linear, noise[row * rank : (row + 1) * rank], drawn)
        for r in range(rank):
            factors[row, r] = drawn[r]


@kernel
def _draw_weights(weights, factors, log_precision, shape, p, plane, products, noise):
    """lambda = tau^-1/2 eta, with the precision I + tau^-1/2 F^T Q F tau^-1/2 for eta."""
    m_x, m_y, n_channels = shape
    rank = weights.shape[0]
    deviation = np.exp(-0.5 * log_precision)
    matrix, linear, drawn = np.zeros((rank, rank)), np.zeros(rank), np.empty(rank)
    for c in range(n_channels):
        row = m_x + m_y + c
        shared = c if products.shape[0] > 1 else 0
        for r in range(rank):
            total = 0.0
            for i in range(plane.shape[1]):
                total += p[i * n_channels + c] * plane[r, i]
            linear[r] += deviation[r] * factors[row, r] * total
            for s in range(rank):
                both = factors[row, r] * factors[row, s] * deviation[r] * deviation[s]
                matrix[r, s] += both * products[shared, r, s]
    for r in range(rank):
        matrix[r, r] += 1.0
    factorise(matrix, 1.0)
    draw_vector(matrix, linear, noise, drawn)
    for r in range(rank):
        weights[r] = deviation[r] * drawn[r]
