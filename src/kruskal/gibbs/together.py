"""Threads that work together inside of kernels: tasks that they take, and how they wait for each other.

Between two calls from Python threads fall asleep, and to wake one up takes longer than many a task. So a team
of threads enters one kernel each and stays there until all is done. The leader opens one round of tasks after
the other, numbered from 1; everyone takes tasks of the round until there is none, and the leader waits until
all are finished. Those who follow may come late or not at all: the leader then does their tasks. Nothing here
depends on who takes which task.

What a task touches is soonest at hand for the thread that had the same task in a round before. So threads
look for tasks from places of their own: of two neighbours one goes up, the other comes down, until they meet.

The cells of memory that all look at stand in an array of `new_cells`, a line of the cache apart.
"""

import os
import platform

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from kruskal.kernel import by_hand, kernel

_ROUND, _FINISHED, _FIRST_TASK, _LINE = 0, 16, 32, 16
NONE, OVER = -1, -2
"""What `take` tells if there is no task left, and the number of the round after the last."""
_PATIENCE = 2_000  # looks, some tens of nanoseconds each, before other programs are let in between them
_PAUSES = {"x86_64": "llvm.x86.sse2.pause", "AMD64": "llvm.x86.sse2.pause"}  # of LLVM, by processor


def new_cells(n_tasks: int) -> np.ndarray:
    """For a team that has not begun, and rounds of ``n_tasks`` tasks at most."""
    return np.zeros(_FIRST_TASK + n_tasks * _LINE, np.int64)


def dismiss(cells: np.ndarray) -> None:
    """Let those who follow come to an end, whether or not anyone leads."""
    cells[_ROUND] = OVER


@kernel
def open_round(cells, number):
    """Let the tasks of a round be taken, or tell that it is `OVER`."""
    _write(cells, _ROUND, number)


@kernel
def current_round(cells):
    """The number of the round that is open; 0 before the first."""
    return _read(cells, _ROUND)


@kernel
def take(cells, number, n_tasks, seat, n_seats):
    """A task of the round, which is now the caller's; or `NONE`. ``seat`` is the caller among ``n_seats``."""
    pair, n_pairs = seat // 2, (n_seats + 1) // 2
    down = seat % 2
    first = (pair + down) * n_tasks // n_pairs - down
    for j in range(n_tasks):
        task = (first - j if down else first + j) % n_tasks
        at = _FIRST_TASK + task * _LINE
        last = _read(cells, at)  # the last round in which somebody took this task
        if last < number and _swap(cells, at, last, number):
            return task
    return NONE


@kernel
def finish(cells):
    """Tell that a task is done, and everything written for it."""
    _add(cells, _FINISHED, 1)


@kernel
def await_finished(cells, n_tasks):
    """Wait until so many tasks, of all rounds, are done."""
    looks = 0
    while _read(cells, _FINISHED) < n_tasks:
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
