"""Vector instructions on `LANES` contiguous numbers, spelled out where the compiler's vectoriser falls short.

A loop over a few atoms inside a loop over rows is compiled with a load and a store of the sum in every round,
with checks at run time whether arrays overlap, and comparisons that are counted with no vector instructions at
all. The functions below hold all lanes in registers. They are written in vectors of LLVM, which the compiler
cuts to what the processor has: there is one path for all processors.

Arrays are contiguous, of one dimension (then ``line`` is 0) or two, ``first`` is the first of the columns that
are worked on. Nothing is checked: lines must reach `LANES` columns beyond it.
"""

from contextlib import contextmanager

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 64
"""Numbers that are worked on at once; arrays over atoms are padded to a multiple of it."""
_FUSED = ("contract",)  # a product and a sum may become one instruction
_WHOLE = ir.IntType(64)


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
    """values[line, first + i] += sum_{begin <= j < end} weight[j] matrix[row[j], first + i]."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        at = code.whole(1), code.whole(2)
        total = cgutils.alloca_once_value(builder, code.load(0, *at))
        with code.each(6, 7) as j:
            added = code.multiply_add(
                code.splat(code.element(3, j)), code.load(4, code.element(5, j), at[1]), builder.load(total)
            )
            builder.store(added, total)
        code.store(builder.load(total), 0, *at)

    return types.void(values, line, first, weight, matrix, row, begin, end), generate


@intrinsic
def set_rows(typing, values, first, weight, matrix, row, begin, end):
    """values[first + i] = sum_{begin <= j < end} weight[j] matrix[row[j], first + i]."""

    def generate(context, builder, signature, arguments):
        code = _Code(context, builder, signature, arguments)
        first = code.whole(1)
        total = cgutils.alloca_once_value(builder, ir.Constant(code.vector(0), None))
        with code.each(5, 6) as j:
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
        with code.each(6, 7) as j:
            here = code.load(4, code.element(5, j), first)
            added = code.multiply_add(code.splat(code.element(3, j)), here, builder.load(total))
            builder.store(added, total)
            builder.store(code.multiply_add(here, here, builder.load(square)), square)
        code.store(builder.load(total), 0, code.zero, first)
        code.store(builder.load(square), 1, code.zero, first)

    return types.void(values, squares, first, weight, matrix, row, begin, end), generate


class _Code:
    """What the functions above are made of; arguments are named by their number."""

    zero = ir.Constant(_WHOLE, 0)

    def __init__(self, context, builder, signature, arguments) -> None:
        self._context, self._builder = context, builder
        self._types, self._arguments = signature.args, arguments

    def whole(self, at):
        """An argument as a whole number of 64 bits."""
        return self._context.cast(self._builder, self._arguments[at], self._types[at], types.int64)

    def vector(self, at):
        """The type of `LANES` elements of an array."""
        return ir.VectorType(self._context.get_value_type(self._types[at].dtype), LANES)

    def element(self, at, j):
        """One element of a one-dimensional array; a whole number comes with 64 bits."""
        value = self._builder.load(self._place(at, self.zero, j))
        kind = self._types[at].dtype
        if isinstance(kind, types.Integer):
            return self._context.cast(self._builder, value, kind, types.int64)
        return value

    def load(self, at, line, first):
        """`LANES` elements of an array."""
        place = self._builder.bitcast(self._place(at, line, first), self.vector(at).as_pointer())
        return self._builder.load(place, align=self._types[at].dtype.bitwidth // 8)

    def store(self, vector, at, line, first) -> None:
        """Put `LANES` elements into an array."""
        place = self._builder.bitcast(self._place(at, line, first), self.vector(at).as_pointer())
        self._builder.store(vector, place, align=self._types[at].dtype.bitwidth // 8)

    @contextmanager
    def each(self, begin, end):
        """A loop over the whole numbers from one argument to another."""
        one = ir.Constant(_WHOLE, 1)
        with cgutils.for_range_slice(self._builder, self.whole(begin), self.whole(end), one) as (j, _):
            yield j

    def splat(self, number):
        """A vector with the same number in all lanes."""
        kind = ir.VectorType(number.type, LANES)
        nothing = ir.Constant(kind, ir.Undefined)
        first = self._builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return self._builder.shuffle_vector(
            first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        )

    def multiply_add(self, left, right, total):
        """left * right + total."""
        return self._builder.fadd(self._builder.fmul(left, right, flags=_FUSED), total, flags=_FUSED)

    def exceeds(self, values, bars):
        """A bit per lane: values^2 > bars (which may have fewer digits)."""
        squares = self._builder.fmul(values, values)
        if bars.type != squares.type:
            bars = self._builder.fpext(bars, squares.type)
        return self._builder.bitcast(self._builder.fcmp_ordered(">", squares, bars), _WHOLE)

    def _place(self, at, line, column):
        kind = self._types[at]
        array = self._context.make_array(kind)(self._context, self._builder, self._arguments[at])
        if kind.ndim == 2:
            pitch = cgutils.unpack_tuple(self._builder, array.shape)[1]
            column = self._builder.add(self._builder.mul(line, pitch), column)
        return self._builder.gep(array.data, [column])
