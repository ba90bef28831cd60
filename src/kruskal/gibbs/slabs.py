r"""Slabs: the values s of all atoms that an item uses, jointly, given which atoms these are.

With A the atoms in use (z = 1), D_A their entries and omega the mask,

    s_A ~ N(m_A, Lambda^-1),  Lambda = gamma_s I + gamma_eps D_A^T diag(omega) D_A,
    m_A = gamma_eps Lambda^-1 D_A^T (omega o x)

`draw_slabs` draws s_A anew after the pass over z: one at a time, values of similar atoms would creep. With
Lambda = gamma_eps L L^T (`kruskal.gibbs.systems`), s_A = L^-T (L^-1 D_A^T (omega o x) + gamma_eps^-1/2
normals).
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.cells import ROWS, subtract_row
from kruskal.gibbs.codes import CodeModel
from kruskal.gibbs.lanes import add_rows, aligned_zeros
from kruskal.gibbs.local import Codes, Shard, sum_squares
from kruskal.gibbs.pairs import SLABS_AHEAD, ahead
from kruskal.gibbs.systems import (
    WINDOW,
    factorise,
    most_active,
    padded_rows,
    set_complete,
    set_masked,
    solve_back,
    sort_window,
    take_data,
    take_group,
)  # fmt: skip
from kruskal.gibbs.vectors import ITEMS, LANES
from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.normal import fill_normals
from kruskal.random.philox import fill_few_words

_JOINT_SLABS = int(Stream.JOINT_SLABS)


class SlabDraw(NamedTuple):
    """What one shard reports after the joint draw: sufficient statistics of the precisions."""

    squares: np.ndarray  # (K,) sum_n z_kn s_kn^2
    residual_squares: float  # sum over observed entries of (x - Dw)^2


def draw_slabs(shard: Shard, model: CodeModel, seed: int, sweep: int) -> SlabDraw:
    """Draw all s of every item of a shard jointly; replaces its codes and, if masked, its residual."""
    items, codes = shard.items, shard.codes
    value = np.empty_like(codes.value)
    squares = _draw(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, codes.start, codes.atom,
        model.dictionary, model.products, model.code_precision, model.noise_precision,
        (*key_of(seed), sweep, shard.first), most_active(codes.start), value, shard.residual,
    )  # fmt: skip
    shard.codes = Codes(codes.start, codes.atom, value)
    return SlabDraw(sum_squares(shard.codes, len(model.dictionary)), squares)


@kernel
def _draw(
    flat, origin, offset, entry_start, entry, code_start, code_atom, dictionary, products, gamma_s, gamma_eps,
    address, most, value, residual,
):  # fmt: skip
    key_0, key_1, sweep, first_item = address
    complete = entry_start.shape[0] == 1
    rho, noise_std = gamma_s / gamma_eps, 1.0 / math.sqrt(gamma_eps)
    rows = padded_rows(dictionary, -1.0)  # less the atoms, as they are taken off the data
    n_entries, width = dictionary.shape[1], rows.shape[1]
    order = np.empty(WINDOW, np.int64)
    place = np.empty(most + 1, np.int64)
    begin, active = np.zeros(ITEMS, np.int64), np.zeros(ITEMS, np.int64)
    picked = np.zeros((most + 1, ITEMS), np.uint16)
    double = np.zeros(1)
    data = aligned_zeros(ITEMS, width, double)
    cells = aligned_zeros((most + 1 + ROWS) * (most + 1), ITEMS, double)
    seen_atoms = aligned_zeros((most + 1 + ROWS) * n_entries if not complete else 0, ITEMS, double)
    rest = aligned_zeros(n_entries, ITEMS, double)
    inverse = aligned_zeros(most + 1, ITEMS, double)
    slab = aligned_zeros(most + 1, ITEMS, double)
    words = np.empty((1, 2 * WINDOW * SLABS_AHEAD), np.uint32)
    uniforms = np.empty((1, WINDOW * SLABS_AHEAD))
    normals = np.empty(((most + SLABS_AHEAD - 1) // SLABS_AHEAD, 1, WINDOW * SLABS_AHEAD))
    squares = 0.0
    for first in range(0, origin.shape[0], WINDOW):
        stop = min(first + WINDOW, origin.shape[0])
        sort_window(code_start, first, stop, order, place)
        largest = code_start[order[0] + 1] - code_start[order[0]]
        for page in range((largest + SLABS_AHEAD - 1) // SLABS_AHEAD):
            fill_few_words(
                words[0], SLABS_AHEAD // 2, first_item + first, sweep, _JOINT_SLABS, key_0, key_1, page
            )
            fill_normals(words, uniforms, normals[page])
        for group in range((stop - first + ITEMS - 1) // ITEMS):
            take_group(order, group, code_start, code_atom, begin, active, picked)
            n_unknowns = active[0]
            pitch = n_unknowns | 1
            seen = take_data(flat, origin, offset, entry_start, entry, complete, order, group, data)
            if complete:
                set_complete(products, rows, -1.0, data, picked, active, n_entries, pitch, cells)
            else:
                set_masked(
                    dictionary, entry_start, entry, order, group, data, picked, active, seen, pitch,
                    seen_atoms, cells,
                )  # fmt: skip
            factorise(n_unknowns, pitch, rho, cells, inverse)
            for a in range(n_unknowns):
                page, at = a // SLABS_AHEAD, a % SLABS_AHEAD
                for lane in range(ITEMS):
                    n = max(order[group * ITEMS + lane], first)
                    deviate = (
                        noise_std * normals[page, 0, ahead(n - first, at, WINDOW)]
                        if a < active[lane]
                        else 0.0
                    )
                    slab[a, lane] = cells[n_unknowns * pitch + a, lane] + deviate
            solve_back(n_unknowns, pitch, cells, inverse, slab)
            for lane in range(ITEMS):
                for a in range(active[lane]):
                    value[begin[lane] + a] = slab[a, lane]
                    slab[a, lane] = float(value[begin[lane] + a])  # the value as it is stored
            if complete:
                for lane in range(ITEMS):
                    for start in range(0, width, LANES):
                        add_rows(
                            data, lane, start, value, rows, code_atom, begin[lane], begin[lane] + active[lane]
                        )
                    if order[group * ITEMS + lane] >= 0:
                        squares += _line_squares(data, lane, n_entries)
            else:
                for j in range(seen):
                    for lane in range(ITEMS):
                        rest[j, lane] = seen_atoms[n_unknowns * seen + j, lane]
                for a in range(n_unknowns):
                    subtract_row(rest, seen_atoms, a * seen, seen, slab, a)
                for lane in range(ITEMS):
                    n = order[group * ITEMS + lane]
                    if n >= 0:
                        for j in range(entry_start[n + 1] - entry_start[n]):
                            residual[entry_start[n] + j] = rest[j, lane]
                            squares += rest[j, lane] * rest[j, lane]
    return squares


@kernel
def _line_squares(data, lane, size):
    line = np.uint64(lane)
    total = 0.0
    for i in range(size):
        total += data[line, i] * data[line, i]
    return total
