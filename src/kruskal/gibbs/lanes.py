"""Loops over `LANES` contiguous atoms or entries of one item, in registers; see `kruskal.gibbs.vectors`.

Arrays have one dimension (then ``line`` is 0) or two; ``first`` is the first of the columns that are worked
on, and lines must reach `LANES` columns beyond it.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from kruskal.gibbs.vectors import LANES, WHOLE, VectorCode
from kruskal.kernel import by_hand, kernel

_LINE = 64  # bytes of a line of the cache


@kernel
def aligned_zeros(lines, width, sample):
    """Zeros (lines, width) like those of ``sample``, from the beginning of a line of the cache on.

    A vector that lies across two lines takes twice the time to load.
    """
    size = lines * width
    space = np.zeros(size + _LINE, sample.dtype)
    start = (_LINE - space.ctypes.data % _LINE) % _LINE // sample.itemsize
    return space[start : start + size].reshape((lines, width))


@by_hand
def lowest(typing, mask):
    """Place of the lowest bit that is set in a uint64 that is not 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@by_hand
def above(typing, values, line, first, bars):
    """Bit i of the result: values[line, first + i]^2 > bars[first + i]."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        return code.exceeds(
            code.load(0, code.whole(1), code.whole(2)), code.load(3, code.zero, code.whole(2))
        )

    return types.uint64(values, line, first, bars), generate


@by_hand
def add_row(typing, values, line, first, weight, matrix, row, bars):
    """values[line, first + i] += weight * matrix[row, first + i]; then as `above`."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        at = code.whole(1), code.whole(2)
        added = code.multiply_add(
            code.splat(arguments[3]), code.load(4, code.whole(5), at[1]), code.load(0, *at)
        )
        code.store(added, 0, *at)
        return code.exceeds(added, code.load(6, code.zero, at[1]))

    return types.uint64(values, line, first, values.dtype, matrix, row, bars), generate


@by_hand
def add_rows(typing, values, line, first, weight, matrix, row, begin, end):
    """values[line, first + i] += sum_{begin <= j < end} weight[j] matrix[row[j], first + i].

    Matrix and weights may have fewer digits than the values.
    """

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        at = code.whole(1), code.whole(2)
        total = cgutils.alloca_once_value(builder, code.load(0, *at))
        with code.each(code.whole(6), code.whole(7)) as j:
            here = code.like(code.load(4, code.element(5, j), at[1]), code.vector(0))
            builder.store(
                code.multiply_add(code.splat(code.element(3, j, like=0)), here, builder.load(total)), total
            )
        code.store(builder.load(total), 0, *at)

    return types.void(values, line, first, weight, matrix, row, begin, end), generate


@by_hand
def add_sum_of_rows(typing, values, line, first, weight, matrix, row, begin, end):
    """As `add_rows`, but the sum is made in the precision of the matrix: for sums of few terms."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        at = code.whole(1), code.whole(2)
        total = cgutils.alloca_once_value(builder, ir.Constant(code.vector(4), None))
        with code.each(code.whole(6), code.whole(7)) as j:
            here = code.load(4, code.element(5, j), at[1])
            factor = code.splat(code.element(3, j, like=4))
            builder.store(code.multiply_add(factor, here, builder.load(total)), total)
        code.store(builder.fadd(code.load(0, *at), code.like(builder.load(total), code.vector(0))), 0, *at)

    return types.void(values, line, first, weight, matrix, row, begin, end), generate


@by_hand
def set_rows(typing, values, first, weight, matrix, row, begin, end):
    """values[first + i] = sum_{begin <= j < end} weight[j] matrix[row[j], first + i]."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        first = code.whole(1)
        total = cgutils.alloca_once_value(builder, ir.Constant(code.vector(0), None))
        with code.each(code.whole(5), code.whole(6)) as j:
            here = code.load(3, code.element(4, j), first)
            builder.store(code.multiply_add(code.splat(code.element(2, j)), here, builder.load(total)), total)
        code.store(builder.load(total), 0, code.zero, first)

    return types.void(values, first, weight, matrix, row, begin, end), generate


@by_hand
def sum_rows(typing, values, squares, first, weight, matrix, row, begin, end):
    """values[first + i] = sum_j weight[j] m_ij and squares[first + i] = sum_j m_ij^2.

    Here m_ij = matrix[row[j], first + i] and begin <= j < end.
    """

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        first = code.whole(2)
        nothing = ir.Constant(code.vector(0), None)
        total, square = (cgutils.alloca_once_value(builder, nothing) for _ in range(2))
        with code.each(code.whole(6), code.whole(7)) as j:
            here = code.load(4, code.element(5, j), first)
            added = code.multiply_add(code.splat(code.element(3, j)), here, builder.load(total))
            builder.store(added, total)
            builder.store(code.multiply_add(here, here, builder.load(square)), square)
        code.store(builder.load(total), 0, code.zero, first)
        code.store(builder.load(square), 1, code.zero, first)

    return types.void(values, squares, first, weight, matrix, row, begin, end), generate


@by_hand
def dot(typing, matrix, row, vectors, line, size):
    """sum_{i < size} matrix[row, i] vectors[line, i], in the precision of the vectors.

    Both hold zeros from ``size`` to the next multiple of `LANES`.
    """

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        kind = code.vector(2)
        total = cgutils.alloca_once_value(builder, ir.Constant(kind, None))
        with cgutils.for_range_slice(builder, code.zero, code.whole(4), ir.Constant(WHOLE, LANES)) as (
            first,
            _,
        ):
            here = code.like(code.load(0, code.whole(1), first), kind)
            builder.store(
                code.multiply_add(here, code.load(2, code.whole(3), first), builder.load(total)), total
            )
        return code.sum(builder.load(total))

    return vectors.dtype(matrix, row, vectors, line, size), generate


@by_hand
def solve_row(typing, rows, a, first, weight, begin, matrix, k, scale, squares):
    """rows[a] = scale (matrix[k] + sum_{b < a} weight[begin + b] rows[b]), then squares += rows[a]^2."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        first, kind = code.whole(2), code.vector(0)
        total = cgutils.alloca_once_value(builder, code.like(code.load(5, code.whole(6), first), kind))
        with code.each(code.zero, code.whole(1)) as b:
            factor = code.splat(code.element(3, builder.add(code.whole(4), b)))
            builder.store(code.multiply_add(factor, code.load(0, b, first), builder.load(total)), total)
        row = builder.fmul(builder.load(total), code.splat(arguments[7]))
        code.store(row, 0, code.whole(1), first)
        code.store(code.multiply_add(row, row, code.load(8, code.zero, first)), 8, code.zero, first)

    return types.void(rows, a, first, weight, begin, matrix, k, rows.dtype, squares), generate
