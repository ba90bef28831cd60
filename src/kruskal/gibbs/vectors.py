"""Building blocks of loops in vector instructions, where the compiler's own vectoriser falls short.

A loop over a few atoms inside a loop over rows is compiled with a load and a store of the sum in every round
and with checks at run time whether arrays overlap; comparisons that are counted become no vector instructions
at all. The functions of `kruskal.gibbs.lanes` and `kruskal.gibbs.cells` hold all sums in registers. They are
written in vectors of LLVM, which the compiler cuts to what the processor has: there is one path for all
processors. Arrays are contiguous, and nothing is checked.
"""

from contextlib import contextmanager

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kruskal.kernel import by_hand

LANES = 64
"""Numbers that are worked on at once; arrays over atoms are padded to a multiple of it."""
ITEMS = 8
"""Items side by side in a cell."""
WHOLE = ir.IntType(64)
_FUSED = ("contract",)  # a product and a sum may become one instruction


@by_hand
def rarely(typing, condition):
    """The condition itself; the compiler lays the code out for its being false."""

    def generate(context, builder, signature, arguments):
        bit = ir.IntType(1)
        kind = ir.FunctionType(bit, [bit, bit])
        expect = cgutils.get_or_insert_function(builder.module, kind, "llvm.expect.i1")
        return builder.call(expect, [arguments[0], ir.Constant(bit, 0)])

    return types.boolean(types.boolean), generate


@by_hand
def apart(typing, mask):
    """The mask itself, but hidden from the compiler: what is done on a branch is done nowhere else."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(WHOLE, [WHOLE])
        return builder.asm(kind, "", "=r,0", [arguments[0]], True)

    return types.uint64(types.uint64), generate


class VectorCode:
    """What these functions are made of; arguments are named by their number."""

    zero = ir.Constant(WHOLE, 0)

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
        """One element of a one-dimensional array: a whole number of 64 bits, or one as another array has."""
        value = self._builder.load(self._place(at, self.zero, j))
        kind = self._types[at].dtype
        if isinstance(kind, types.Integer):
            return self._context.cast(self._builder, value, kind, types.int64)
        wanted = kind if like is None else self._types[like].dtype
        return self._context.cast(self._builder, value, kind, wanted)

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
        # with its size taken from the array, not known beforehand, the compiler would keep far more pointers
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
        with cgutils.for_range_slice(self._builder, begin, end, ir.Constant(WHOLE, 1)) as (j, _):
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
        return self._builder.add(self.whole(at), self._builder.mul(ir.Constant(WHOLE, r), self.whole(pitch)))

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
        return self._builder.bitcast(self._builder.fcmp_ordered(">", squares, bars), WHOLE)

    def _place(self, at, line, column):
        kind = self._types[at]
        array = self._context.make_array(kind)(self._context, self._builder, self._arguments[at])
        if kind.ndim == 2:
            pitch = cgutils.unpack_tuple(self._builder, array.shape)[1]
            column = self._builder.add(self._builder.mul(line, pitch), column)
        return self._builder.gep(array.data, [column])
