"""Threads that work together inside of kernels: tasks that they take, and how they wait for each other.

Between two calls from Python threads fall asleep, and to wake one up takes longer than many a task. So a team
of threads enters one kernel each and stays there until all is done. The leader allows tasks, numbered through
from 0; everyone takes the next one until there is none, and the leader waits until all are finished. Those
who follow may come late or not at all: the leader then does their tasks. Nothing here depends on who takes
which task.

The cells of memory that all look at stand in an array of `new_cells`, a line of the cache apart.
"""

import os
import platform

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from kruskal.kernel import by_hand, kernel

_TAKEN, _ALLOWED, _FINISHED = 0, 16, 32
_N_CELLS = 48
NONE, OVER = -1, -2
"""What `take` tells if there is no task at present, and if there will be none any more."""
_PATIENCE = 2_000  # looks, some tens of nanoseconds each, before other programs are let in between them
_PAUSES = {"x86_64": "llvm.x86.sse2.pause", "AMD64": "llvm.x86.sse2.pause"}  # of LLVM, by processor


def new_cells() -> np.ndarray:
    """For a team that has not begun: no task is allowed, taken or finished."""
    return np.zeros(_N_CELLS, np.int64)


def dismiss(cells: np.ndarray) -> None:
    """Let those who follow come to an end, whether or not anyone leads."""
    cells[_ALLOWED] = OVER


@kernel
def take(cells):
    """The number of the next task, which is now the caller's; or `NONE`, or `OVER`."""
    while True:
        allowed = _read(cells, _ALLOWED)
        if allowed == OVER:
            return OVER
        task = _read(cells, _TAKEN)
        if task >= allowed:
            return NONE
        if _swap(cells, _TAKEN, task, task + 1):
            return task


@kernel
def finish(cells):
    """Tell that a task is done, and everything written for it."""
    _add(cells, _FINISHED, 1)


@kernel
def allow(cells, stop):
    """Let all tasks below ``stop`` be taken, or tell that it is `OVER`."""
    _write(cells, _ALLOWED, stop)


@kernel
def await_finished(cells, stop):
    """Wait until all tasks below ``stop`` are done."""
    looks = 0
    while _read(cells, _FINISHED) < stop:
        looks += 1
        pause(looks)


@kernel
def pause(looks):
    """Wait for a moment, after so many looks in vain."""
    if looks < _PATIENCE:
        _breathe()
    else:
        _step_aside()


def _place(context, builder, signature, arguments):
    """Where a cell of the array stands: arguments 0 and 1."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [context.cast(builder, arguments[1], signature.args[1], types.int64)])


def _number(context, builder, signature, arguments, at):
    return context.cast(builder, arguments[at], signature.args[at], types.int64)


@by_hand
def _read(typing, cells, at):
    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature, arguments)
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(cells, at), generate


@by_hand
def _write(typing, cells, at, value):
    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature, arguments)
        builder.store_atomic(_number(context, builder, signature, arguments, 2), place, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(cells, at, value), generate


@by_hand
def _add(typing, cells, at, value):
    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature, arguments)
        return builder.atomic_rmw("add", place, _number(context, builder, signature, arguments, 2), "seq_cst")

    return types.int64(cells, at, value), generate


@by_hand
def _swap(typing, cells, at, old, new):
    """Put ``new`` in the place of ``old`` if that is there; whether it was."""

    def generate(context, builder, signature, arguments):
        place = _place(context, builder, signature, arguments)
        old, new = (_number(context, builder, signature, arguments, at) for at in (2, 3))
        return builder.extract_value(builder.cmpxchg(place, old, new, "seq_cst", "seq_cst"), 1)

    return types.boolean(cells, at, old, new), generate


@by_hand
def _breathe(typing):
    """Tell the processor that one waits for another."""

    def generate(context, builder, signature, arguments):
        name = _PAUSES.get(platform.machine())
        if name:
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), generate


@by_hand
def _step_aside(typing):
    """Let other programs have the core first."""

    def generate(context, builder, signature, arguments):
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
