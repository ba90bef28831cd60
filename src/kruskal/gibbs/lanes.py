"""Vector instructions on contiguous numbers, spelled out where the compiler's own vectoriser falls short.

A loop over a few atoms inside a loop over rows is compiled with a load and a store of the sum in every round
and with checks at run time whether arrays overlap; comparisons that are counted become no vector instructions
at all. The functions below hold all sums in registers. They are written in vectors of LLVM, which the compiler
cuts to what the processor has: there is one path for all processors.

Two layouts: `LANES` contiguous atoms or entries of one item, and `ITEMS` items side by side, where a *cell* is
one number of each. Arrays are contiguous, of one dimension (then ``line`` is 0) or two; ``first`` is the first of
the columns that are worked on. Nothing is checked: lines must reach `LANES` columns beyond it.
"""

from contextlib import contextmanager

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kruskal.kernel import kernel

LANES = 64
"""Numbers that are worked on at once; arrays over atoms are padded to a multiple of it."""
ITEMS = 8
"""Items side by side in a cell."""
ROWS = 4
"""Rows of cells that are worked on at once."""
_LINE = 64  # bytes of a line of the cache
_FUSED = ("contract",)  # a product and a sum may become one instruction
_WHOLE = ir.IntType(64)


@kernel
def aligned_zeros(lines, width, sample):
    """Zeros (lines, width) like those of ``sample``, from the beginning of a line of the cache on.

    A vector that lies across two lines takes twice the time to load.
    """
    size = lines * width
    space = np.zeros(size + _LINE, sample.dtype)
    start = (_LINE - space.ctypes.data % _LINE) % _LINE // sample.itemsize
    return space[start : start + size].reshape((lines, width))


@intrinsic
def lowest(typing, mask):
    """Place of the lowest bit that is set in a uint64 that is not 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def above(typing, values, line, first, bars):
    """Bit i of the result: values[line, first + i]^2 > bars[first + i]."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        return code.exceeds(
            code.load(0, code.whole(1), code.whole(2)), code.load(3, code.zero, code.whole(2))
        )

    return types.uint64(values, line, first, bars), generate


@intrinsic
def add_row(typing, values, line, first, weight, matrix, row, bars):
    """values[line, first + i] += weight * matrix[row, first + i]; then as `above`."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        at = code.whole(1), code.whole(2)
        added = code.multiply_add(
            code.splat(arguments[3]), code.load(4, code.whole(5), at[1]), code.load(0, *at)
        )
        code.store(added, 0, *at)
        return code.exceeds(added, code.load(6, code.zero, at[1]))

    return types.uint64(values, line, first, values.dtype, matrix, row, bars), generate


@intrinsic
def add_rows(typing, values, line, first, weight, matrix, row, begin, end):
    """values[line, first + i] += sum_{begin <= j < end} weight[j] matrix[row[j], first + i].

    Matrix and weights may have fewer digits than the values.
    """

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        at = code.whole(1), code.whole(2)
        total = cgutils.alloca_once_value(builder, code.load(0, *at))
        with code.each(code.whole(6), code.whole(7)) as j:
            here = code.like(code.load(4, code.element(5, j), at[1]), code.vector(0))
            builder.store(
                code.multiply_add(code.splat(code.element(3, j, like=0)), here, builder.load(total)), total
            )
        code.store(builder.load(total), 0, *at)

    return types.void(values, line, first, weight, matrix, row, begin, end), generate


@intrinsic
def set_rows(typing, values, first, weight, matrix, row, begin, end):
    """values[first + i] = sum_{begin <= j < end} weight[j] matrix[row[j], first + i]."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        first = code.whole(1)
        total = cgutils.alloca_once_value(builder, ir.Constant(code.vector(0), None))
        with code.each(code.whole(5), code.whole(6)) as j:
            here = code.load(3, code.element(4, j), first)
            builder.store(code.multiply_add(code.splat(code.element(2, j)), here, builder.load(total)), total)
        code.store(builder.load(total), 0, code.zero, first)

    return types.void(values, first, weight, matrix, row, begin, end), generate


@intrinsic
def sum_rows(typing, values, squares, first, weight, matrix, row, begin, end):
    """values[first + i] = sum_j weight[j] m_ij and squares[first + i] = sum_j m_ij^2.

    Here m_ij = matrix[row[j], first + i] and begin <= j < end.
    """

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
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


@intrinsic
def dot(typing, matrix, row, vectors, line, size):
    """sum_{i < size} matrix[row, i] vectors[line, i], in the precision of the vectors; with `LANES` after ``size``."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        kind = code.vector(2)
        total = cgutils.alloca_once_value(builder, ir.Constant(kind, None))
        with cgutils.for_range_slice(builder, code.zero, code.whole(4), ir.Constant(_WHOLE, LANES)) as (
            first,
            _,
        ):
            here = code.like(code.load(0, code.whole(1), first), kind)
            builder.store(
                code.multiply_add(here, code.load(2, code.whole(3), first), builder.load(total)), total
            )
        return code.sum(builder.load(total))

    return vectors.dtype(matrix, row, vectors, line, size), generate


@intrinsic
def solve_row(typing, rows, a, first, weight, begin, matrix, k, scale, squares):
    """rows[a, .] = scale (matrix[k, .] + sum_{b < a} weight[begin + b] rows[b, .]); squares += rows[a, .]^2."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        first, kind = code.whole(2), code.vector(0)
        total = cgutils.alloca_once_value(builder, code.like(code.load(5, code.whole(6), first), kind))
        with code.each(code.zero, code.whole(1)) as b:
            factor = code.splat(code.element(3, builder.add(code.whole(4), b)))
            builder.store(code.multiply_add(factor, code.load(0, b, first), builder.load(total)), total)
        row = builder.fmul(builder.load(total), code.splat(arguments[7]))
        code.store(row, 0, code.whole(1), first)
        code.store(code.multiply_add(row, row, code.load(8, code.zero, first)), 8, code.zero, first)

    return types.void(rows, a, first, weight, begin, matrix, k, rows.dtype, squares), generate


@intrinsic
def multiply_rows(typing, cells, at, pitch, rows, row, row_pitch, other, size):
    """cells[at + r pitch] = sum_{m < size} rows[row + r row_pitch + m] rows[other + m] for `ROWS` r."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
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


@intrinsic
def reduce_rows(typing, cells, row, pitch, other, size, scale, at):
    """c = (c - sum_{m < size} cells[row + r pitch + m] cells[other + m]) scale[at], c at row + r pitch + size.

    For `ROWS` r: one step of the Cholesky factorisation of `ITEMS` matrices.
    """

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
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


@intrinsic
def invert_pivot(typing, cells, at, rho, inverse, line):
    """inverse[line] = (cells[at] + rho)^-1/2, but at most rho^-1/2."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        least = code.splat(arguments[2], ITEMS)
        pivot = builder.fadd(code.cell(0, code.whole(1)), least)
        pivot = builder.select(builder.fcmp_ordered(">", pivot, least), pivot, least)
        root = builder.call(code.function("llvm.sqrt", pivot.type), [pivot])
        one = code.splat(ir.Constant(pivot.type.element, 1.0), ITEMS)
        code.put_cell(builder.fdiv(one, root), 3, code.whole(4))

    return types.void(cells, at, cells.dtype, inverse, line), generate


@intrinsic
def subtract_row(typing, values, cells, row, size, factor, at):
    """values[m] -= cells[row + m] factor[at] for m < size, all of them cells."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        times = builder.fneg(code.cell(4, code.whole(5)))
        with code.each(code.zero, code.whole(3)) as m:
            here = code.cell(1, builder.add(code.whole(2), m))
            code.put_cell(code.multiply_add(here, times, code.cell(0, m)), 0, m)

    return types.void(values, cells, row, size, factor, at), generate


class _Code:
    """What the functions above are made of; arguments are named by their number."""

    zero = ir.Constant(_WHOLE, 0)

    def __init__(self, context, builder, signature, arguments) -> None:
        self._context, self._builder = context, builder
        self._types, self._arguments = signature.args, arguments

    def whole(self, at):
        """An argument as a whole number of 64 bits."""
        return self._context.cast(self._builder, self._arguments[at], self._types[at], types.int64)

    def vector(self, at, lanes=LANES):
        """The type of so many elements of an array."""
        return ir.VectorType(self._context.get_value_type(self._types[at].dtype), lanes)

    def element(self, at, j, like=None):
        """One element of a one-dimensional array: a whole number of 64 bits, or a number like those of another."""
        value = self._builder.load(self._place(at, self.zero, j))
        kind = self._types[at].dtype
        if isinstance(kind, types.Integer):
            return self._context.cast(self._builder, value, kind, types.int64)
        return (
            value if like is None else self._context.cast(self._builder, value, kind, self._types[like].dtype)
        )

    def load(self, at, line, first, lanes=LANES):
        """Contiguous elements of an array."""
        place = self._builder.bitcast(self._place(at, line, first), self.vector(at, lanes).as_pointer())
        return self._builder.load(place, align=self._types[at].dtype.bitwidth // 8)

    def store(self, vector, at, line, first) -> None:
        """Put contiguous elements into an array."""
        place = self._builder.bitcast(self._place(at, line, first), vector.type.as_pointer())
        self._builder.store(vector, place, align=self._types[at].dtype.bitwidth // 8)

    def cell(self, at, line):
        """A cell of an array of cells."""
        place = self._cell_place(at, line)
        return self._builder.load(place, align=self._types[at].dtype.bitwidth // 8)

    def put_cell(self, vector, at, line) -> None:
        """Put a cell into an array of cells."""
        self._builder.store(vector, self._cell_place(at, line), align=self._types[at].dtype.bitwidth // 8)

    def _cell_place(self, at, line):
        # its size is known when the code is made: with that of the array, the compiler keeps far more pointers
        array = self._context.make_array(self._types[at])(self._context, self._builder, self._arguments[at])
        return self._builder.gep(
            self._builder.bitcast(array.data, self.vector(at, ITEMS).as_pointer()), [line]
        )

    def like(self, vector, kind):
        """The same numbers with more digits, or fewer."""
        if vector.type == kind:
            return vector
        wider = isinstance(kind.element, ir.DoubleType)
        return self._builder.fpext(vector, kind) if wider else self._builder.fptrunc(vector, kind)

    @contextmanager
    def each(self, begin, end):
        """A loop over whole numbers."""
        with cgutils.for_range_slice(self._builder, begin, end, ir.Constant(_WHOLE, 1)) as (j, _):
            yield j

    def splat(self, number, lanes=LANES):
        """A vector with the same number in all lanes."""
        nothing = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
        first = self._builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return self._builder.shuffle_vector(
            first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
        )

    def function(self, name, kind):
        """A function of LLVM that takes and gives a vector."""
        digits = "f64" if isinstance(kind.element, ir.DoubleType) else "f32"
        return cgutils.get_or_insert_function(
            self._builder.module, ir.FunctionType(kind, [kind]), f"{name}.v{kind.count}{digits}"
        )

    def step(self, at, r, pitch):
        """An argument plus r times another."""
        return self._builder.add(self.whole(at), self._builder.mul(ir.Constant(_WHOLE, r), self.whole(pitch)))

    def sum(self, vector):
        """The sum of all lanes, in whatever order is fast."""
        lanes = vector.type.count
        while lanes > 1:  # fold the upper half onto the lower one
            lanes //= 2
            halves = [
                self._builder.shuffle_vector(
                    vector,
                    vector,
                    ir.Constant(ir.VectorType(ir.IntType(32), lanes), [*range(start, start + lanes)]),
                )
                for start in (0, lanes)
            ]
            vector = self._builder.fadd(*halves)
        return self._builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    def multiply_add(self, left, right, total):
        """left * right + total."""
        return self._builder.fadd(self._builder.fmul(left, right, flags=_FUSED), total, flags=_FUSED)

    def exceeds(self, values, bars):
        """A bit per lane: values^2 > bars (which may have fewer digits)."""
        squares = self._builder.fmul(values, values)
        bars = self.like(bars, squares.type)
        return self._builder.bitcast(self._builder.fcmp_ordered(">", squares, bars), _WHOLE)

    def _place(self, at, line, column):
        kind = self._types[at]
        array = self._context.make_array(kind)(self._context, self._builder, self._arguments[at])
        if kind.ndim == 2:
            pitch = cgutils.unpack_tuple(self._builder, array.shape)[1]
            column = self._builder.add(self._builder.mul(line, pitch), column)
        return self._builder.gep(array.data, [column])
