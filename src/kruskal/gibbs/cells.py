"""Loops over cells, in registers: a cell is one number of each of `ITEMS` items, see `kruskal.gibbs.vectors`.

Arrays of cells are (cells, ITEMS); rows of a matrix of cells lie ``pitch`` cells apart.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kruskal.gibbs.vectors import ITEMS, VectorCode
from kruskal.kernel import by_hand

ROWS = 4
"""Rows of cells that are worked on at once."""


@by_hand
def multiply_rows(typing, cells, at, pitch, rows, row, row_pitch, other, size):
    """cells[at + r pitch] = sum_{m < size} rows[row + r row_pitch + m] rows[other + m] for `ROWS` r."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        nothing = ir.Constant(code.vector(0, ITEMS), None)
        totals = [cgutils.alloca_once_value(builder, nothing) for _ in range(ROWS)]
        with code.each(code.zero, code.whole(7)) as m:
            right = code.cell(3, builder.add(code.whole(6), m))
            for r, total in enumerate(totals):
                left = code.cell(3, builder.add(code.step(4, r, 5), m))
                builder.store(code.multiply_add(left, right, builder.load(total)), total)
        for r, total in enumerate(totals):
            code.put_cell(builder.load(total), 0, code.step(1, r, 2))

    return types.void(cells, at, pitch, rows, row, row_pitch, other, size), generate


@by_hand
def reduce_rows(typing, cells, row, pitch, other, size, scale, at):
    """One step of the Cholesky factorisation of `ITEMS` matrices, for `ROWS` rows.

    The cell c at row + r pitch + size becomes
    (c - sum_{m < size} cells[row + r pitch + m] cells[other + m]) scale[at].
    """

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        ends = [builder.add(code.step(1, r, 2), code.whole(4)) for r in range(ROWS)]
        totals = [cgutils.alloca_once_value(builder, code.cell(0, end)) for end in ends]
        with code.each(code.zero, code.whole(4)) as m:
            right = builder.fneg(code.cell(0, builder.add(code.whole(3), m)))
            for r, total in enumerate(totals):
                left = code.cell(0, builder.add(code.step(1, r, 2), m))
                builder.store(code.multiply_add(left, right, builder.load(total)), total)
        factor = code.cell(5, code.whole(6))
        for end, total in zip(ends, totals):
            code.put_cell(builder.fmul(builder.load(total), factor), 0, end)

    return types.void(cells, row, pitch, other, size, scale, at), generate


@by_hand
def invert_pivot(typing, cells, at, rho, inverse, line):
    """inverse[line] = (cells[at] + rho)^-1/2, but at most rho^-1/2."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        least = code.splat(arguments[2], ITEMS)
        pivot = builder.fadd(code.cell(0, code.whole(1)), least)
        pivot = builder.select(builder.fcmp_ordered(">", pivot, least), pivot, least)
        root = builder.call(code.function("llvm.sqrt", pivot.type), [pivot])
        one = code.splat(ir.Constant(pivot.type.element, 1.0), ITEMS)
        code.put_cell(builder.fdiv(one, root), 3, code.whole(4))

    return types.void(cells, at, cells.dtype, inverse, line), generate


@by_hand
def subtract_row(typing, values, cells, row, size, factor, at):
    """values[m] -= cells[row + m] factor[at] for m < size, all of them cells."""

    def generate(context, builder, signature, arguments):
        code = VectorCode(context, builder, signature, arguments)
        times = builder.fneg(code.cell(4, code.whole(5)))
        with code.each(code.zero, code.whole(3)) as m:
            here = code.cell(1, builder.add(code.whole(2), m))
            code.put_cell(code.multiply_add(here, times, code.cell(0, m)), 0, m)

    return types.void(values, cells, row, size, factor, at), generate
