r"""The linear systems of `kruskal.gibbs.slabs`, of eight items side by side.

With A the atoms that an item uses, and rho = gamma_s / gamma_eps, its system is

    M = D_A^T diag(omega) D_A + rho I = L L^T,    h = D_A^T (omega o x)

free of gamma_eps but for rho. Systems are small (5 to 60 unknowns) and many: the items of a window are sorted
by how many atoms they use, and eight of about the same size are worked on at once, one in every lane of a
vector (`kruskal.gibbs.lanes`), so that nothing is left over at the ends of rows and no sum runs across lanes.
What an item has less than the largest of the eight is filled with atoms of zeros.

Cells of a system of n unknowns: cell (i, j) of M or L at i * pitch + j for j <= i < n, and h as one more row
n, which the factorisation turns into L^-1 h.
"""

import numpy as np

from kruskal.gibbs.cells import ROWS, invert_pivot, multiply_rows, reduce_rows, subtract_row
from kruskal.gibbs.lanes import aligned_zeros, dot
from kruskal.gibbs.vectors import ITEMS, LANES
from kruskal.kernel import kernel

WINDOW = 64
"""Consecutive items that are sorted."""


@kernel
def most_active(code_start):
    """The largest number of atoms that an item uses."""
    most = 0
    for n in range(code_start.shape[0] - 1):
        most = max(most, code_start[n + 1] - code_start[n])
    return most


@kernel
def sort_window(code_start, first, stop, order, place):
    """``order`` = items first <= n < stop by decreasing number of codes, then -1; ``place`` is scratch."""
    most = place.shape[0] - 1
    for size in range(most + 1):
        place[size] = 0
    for n in range(first, stop):
        place[code_start[n + 1] - code_start[n]] += 1
    total = 0
    for size in range(most, -1, -1):
        total += place[size]
        place[size] = total - place[size]
    for n in range(first, stop):
        size = code_start[n + 1] - code_start[n]
        order[place[size]] = n
        place[size] += 1
    for at in range(stop - first, order.shape[0]):
        order[at] = -1


@kernel
def padded_rows(dictionary, sign):
    """``sign`` times the atoms, with zeros up to a whole number of `LANES` entries."""
    n_atoms, n_entries = dictionary.shape
    rows = aligned_zeros(n_atoms, (n_entries + LANES - 1) // LANES * LANES, dictionary)
    for k in range(n_atoms):
        for i in range(n_entries):
            rows[k, i] = sign * dictionary[k, i]
    return rows


@kernel
def take_group(order, group, code_start, code_atom, begin, active, picked):
    """Where the codes of the items of a group begin, how many these are, and their atoms (n, ITEMS)."""
    for lane in range(ITEMS):
        n = order[group * ITEMS + lane]
        begin[lane] = code_start[n] if n >= 0 else 0
        active[lane] = code_start[n + 1] - code_start[n] if n >= 0 else 0
        for a in range(active[lane]):
            picked[a, lane] = code_atom[begin[lane] + a]


@kernel
def take_data(flat, origin, offset, entry_start, entry, complete, order, group, data):
    """Observed entries of the items of a group, (ITEMS, P'); returns the largest number of them."""
    most = 0
    for lane in range(ITEMS):
        n = order[group * ITEMS + lane]
        if n < 0:
            continue
        base, line = np.uint64(origin[n]), np.uint64(lane)
        if complete:
            most = offset.shape[0]
            for i in range(most):
                data[line, i] = flat[base + np.uint64(offset[i])]
        else:
            first, count = entry_start[n], entry_start[n + 1] - entry_start[n]
            most = max(most, count)
            for j in range(count):
                data[line, j] = flat[base + np.uint64(offset[entry[first + j]])]
    return most


@kernel
def set_complete(products, rows, sign, data, picked, active, size, pitch, cells):
    """M and h of complete data: products of atoms are looked up; ``rows`` holds ``sign`` times the atoms."""
    live = ITEMS
    for i in range(active[0]):
        while active[live - 1] <= i:
            live -= 1
        for j in range(i + 1):
            cell = np.uint64(i * pitch + j)
            for lane in range(live):
                cells[cell, lane] = products[np.uint64(picked[i, lane]), np.uint64(picked[j, lane])]
            for lane in range(live, ITEMS):
                cells[cell, lane] = 0.0
        cell = np.uint64(active[0] * pitch + i)
        for lane in range(ITEMS):
            cells[cell, lane] = sign * dot(rows, picked[i, lane], data, lane, size) if lane < live else 0.0


@kernel
def set_masked(
    dictionary, entry_start, entry, order, group, data, picked, active, seen, pitch, seen_atoms, cells
):
    """M and h of masked data, from the observed entries of the atoms and, as one row more, of the data."""
    n_unknowns = active[0]
    for cell in range((n_unknowns + 1) * seen):
        for lane in range(ITEMS):
            seen_atoms[cell, lane] = 0.0
    for lane in range(ITEMS):
        n = order[group * ITEMS + lane]
        if n < 0:
            continue
        first, count = entry_start[n], entry_start[n + 1] - entry_start[n]
        for a in range(active[lane]):
            k, start = np.uint64(picked[a, lane]), np.uint64(a * seen)
            for j in range(count):
                seen_atoms[start + np.uint64(j), lane] = dictionary[k, entry[first + j]]
        for j in range(count):
            seen_atoms[np.uint64(n_unknowns * seen + j), lane] = data[lane, j]
    for i in range(0, n_unknowns + 1, ROWS):
        for j in range(min(i + ROWS, n_unknowns)):
            multiply_rows(cells, i * pitch + j, pitch, seen_atoms, i * seen, seen, j * seen, seen)


@kernel
def factorise(n_unknowns, pitch, rho, cells, inverse):
    """M becomes L, h becomes L^-1 h; ``inverse`` (n, ITEMS) is one over the diagonal of L."""
    one = np.ones((1, ITEMS))
    for i in range(0, n_unknowns + 1, ROWS):
        for j in range(min(i, n_unknowns)):
            reduce_rows(cells, i * pitch, pitch, j * pitch, j, inverse, j)
        for j in range(i, min(i + ROWS, n_unknowns)):
            reduce_rows(cells, i * pitch, pitch, j * pitch, j, one, 0)
            # no pivot of rho I + a Gram matrix is below rho, but for rounding
            invert_pivot(cells, j * pitch + j, rho, inverse, j)
            column = np.uint64(j)
            for r in range(j, i + ROWS):
                below = np.uint64(r * pitch + j)
                for lane in range(ITEMS):
                    cells[below, lane] *= inverse[column, lane]


@kernel
def solve_back(n_unknowns, pitch, cells, inverse, unknown):
    """``unknown`` (n, ITEMS) becomes L^-T times itself."""
    for b in range(n_unknowns - 1, -1, -1):
        row = np.uint64(b)
        for lane in range(ITEMS):
            unknown[row, lane] *= inverse[row, lane]
        subtract_row(unknown, cells, b * pitch, b, unknown, b)
