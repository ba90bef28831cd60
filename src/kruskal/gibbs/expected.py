r"""Expected items: what the kept draws are made of, the values s of the atoms in use averaged out.

With the systems of `kruskal.gibbs.slabs`, the mean of an item over s_A and its variance at entry p are

    mean_p = d_p^T m_A,   v_p = d_p^T Lambda^-1 d_p,

and they are added up over the overlapping items with the weight t / (v_p + 1 / gamma_eps), one over the
predictive variance times a trust t. An item with hardly an observed entry would seem to be sure, as v_p is
given z and z is then drawn next to its prior; so t is the number of observed entries over 8 (or over all, if
fewer), at most 1. Or, as in the paper, all items have the same weight. With Lambda = gamma_eps L L^T the
variances are sums over the rows of L^-1 D_A^T, over gamma_eps.
"""

import numpy as np

from kruskal.gibbs.cells import ROWS
from kruskal.gibbs.lanes import add_rows, aligned_zeros, solve_row
from kruskal.gibbs.local import Shard
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
from kruskal.patches import Slab

_ENOUGH = 8  # observed entries from which on an item is trusted
_HARDLY = 1e-6  # trust in an item without any: it has a say only where no better informed one is


def expect_items(
    shard: Shard, dictionary: np.ndarray, products: np.ndarray, code_precision: float, noise_precision: float,
    weighted: bool = True,
) -> Slab:  # fmt: skip
    """Weighted sums over a shard's items of their means given z; see `kruskal.patches.Slab`.

    Parameters
    ----------
    dictionary : (K, P) in the data's precision;  products : from `kruskal.gibbs.codes.atom_products`
    weighted : by trust and precision, or all alike
    """
    items, codes = shard.items, shard.codes
    first = int(items.origin.min())
    size = int(items.origin.max()) + int(items.offset[-1]) + 1 - first
    weight, total, square = np.zeros(size), np.zeros(size), np.zeros(size)
    _expect(
        items.flat, items.origin, items.offset, shard.entry_start, shard.entry, codes.start, codes.atom,
        dictionary, products, code_precision, noise_precision, most_active(codes.start), first,
        weighted, weight, total, square,
    )  # fmt: skip
    return Slab(first, weight, total, square)


@kernel
def _expect(
    flat, origin, offset, entry_start, entry, code_start, code_atom, dictionary, products, gamma_s, gamma_eps,
    most, first_entry, weighted, weight, total, square,
):  # fmt: skip
    complete = entry_start.shape[0] == 1
    rho, noise = gamma_s / gamma_eps, 1.0 / gamma_eps
    rows = padded_rows(dictionary, 1.0)
    n_entries, width = dictionary.shape[1], rows.shape[1]
    order = np.empty(WINDOW, np.int64)
    place = np.empty(most + 1, np.int64)
    begin, active = np.zeros(ITEMS, np.int64), np.zeros(ITEMS, np.int64)
    picked = np.zeros((most + 1, ITEMS), np.uint16)
    double = np.zeros(1)
    data = aligned_zeros(ITEMS, width, double)
    cells = aligned_zeros((most + 1 + ROWS) * (most + 1), ITEMS, double)
    seen_atoms = aligned_zeros((most + 1 + ROWS) * n_entries if not complete else 0, ITEMS, double)
    inverse = aligned_zeros(most + 1, ITEMS, double)
    slab = aligned_zeros(most + 1, ITEMS, double)
    here, amount = np.zeros(most + 1, np.uint16), np.zeros(most + 1)
    # variances need no more than single precision
    lower = np.zeros(most * (most + 1) // 2 + 1, np.float32)
    solved = aligned_zeros(most + 1, width, lower)
    mean = aligned_zeros(1, width, double)[0]
    variance = aligned_zeros(1, width, lower)[0]
    for first in range(0, origin.shape[0], WINDOW):
        stop = min(first + WINDOW, origin.shape[0])
        sort_window(code_start, first, stop, order, place)
        for group in range((stop - first + ITEMS - 1) // ITEMS):
            take_group(order, group, code_start, code_atom, begin, active, picked)
            n_unknowns = active[0]
            pitch = n_unknowns | 1
            seen = take_data(flat, origin, offset, entry_start, entry, complete, order, group, data)
            if complete:
                set_complete(products, rows, 1.0, data, picked, active, n_entries, pitch, cells)
            else:
                set_masked(
                    dictionary, entry_start, entry, order, group, data, picked, active, seen, pitch,
                    seen_atoms, cells,
                )  # fmt: skip
            factorise(n_unknowns, pitch, rho, cells, inverse)
            for a in range(n_unknowns):
                for lane in range(ITEMS):
                    slab[a, lane] = cells[n_unknowns * pitch + a, lane]
            solve_back(n_unknowns, pitch, cells, inverse, slab)
            for lane in range(ITEMS):
                n = order[group * ITEMS + lane]
                if n < 0:
                    continue
                for a in range(active[lane]):
                    here[a], amount[a] = picked[a, lane], slab[a, lane]
                    for b in range(a):
                        lower[a * (a - 1) // 2 + b] = -cells[a * pitch + b, lane]
                for i in range(width):
                    mean[i] = 0.0
                    variance[i] = 0.0
                for start in range(0, width, LANES):
                    add_rows(mean, 0, start, amount, rows, here, 0, active[lane])
                    for a in range(active[lane]):
                        scale = np.float32(inverse[a, lane])
                        solve_row(solved, a, start, lower, a * (a - 1) // 2, rows, here[a], scale, variance)
                count = n_entries if complete else entry_start[n + 1] - entry_start[n]
                trust = max(min(1.0, count / min(_ENOUGH, n_entries)), _HARDLY)
                base = origin[n] - first_entry
                for i in range(n_entries):
                    at = base + offset[i]
                    spread = noise * variance[i]
                    precision = trust / (spread + noise) if weighted else 1.0
                    weight[at] += precision
                    total[at] += precision * mean[i]
                    square[at] += precision * (mean[i] * mean[i] + spread)
