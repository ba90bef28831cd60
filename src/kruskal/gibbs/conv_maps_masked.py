"""Maps of images with missing entries: only what is observed under an atom is touched.

A place of a map is what an item is to `kruskal.gibbs.codes_masked`, and the loops are the same, except that
overlapping places share one residual image. Energies depend on the place, and so do the bars; after a change
the correlations of the block with the atoms still to come are computed anew.
"""

import math

import numpy as np

from kruskal.gibbs.conv_blocks import (
    MAP_CODES,
    copy_codes,
    draw_cell,
    draw_value,
    is_visited,
    log_sum,
    row_of_image,
    same_atom,
    slab_gain,
)
from kruskal.gibbs.pairs import LANES, NEVER, SLACK, WORDS_AHEAD
from kruskal.gibbs.scan import STEP, correlate, is_on, next_positive, set_bars, sum_energies
from kruskal.kernel import kernel
from kruskal.random.philox import fill_words


@kernel
def sweep_masked(
    images, observed, code_start, code_atom, code_place, code_value,
    dictionary, columns, table, log_odds, totals, image_log_odds, gamma_s, gamma_eps, nonnegative, layout,
    tile_rows, step, relocate, address, new_start, new_atom, new_place, new_value,
):  # fmt: skip
    """Draw the maps of a shard; returns the sum of squared residuals, or -1 when the buffer is too small."""
    _, run, n_channels, n_rows, n_columns, p_x, p_y = layout
    n_atoms, n_entries, n_padded = dictionary.shape[0], columns.shape[0], columns.shape[1]
    key_0, key_1, sweep, first_image = address
    grid_x, grid_y, n_cells = (n_rows + p_x - 1) // p_x, (n_columns + p_y - 1) // p_y, p_x * p_y
    n_blocks = grid_x * grid_y
    width = images.shape[2]
    level = np.full((1, n_padded), NEVER)
    row = -1
    offset = np.empty(n_entries, np.int64)  # of the entries of an atom in a flat image
    for i in range(n_entries):
        offset[i] = i // run * width + i % run
    words = np.empty((WORDS_AHEAD, n_padded), np.uint32)
    uniforms = np.empty(n_padded, np.float32)
    ratio = np.empty(n_padded, np.float32)
    uniform_bits, ratio_bits = uniforms.view(np.int32), ratio.view(np.int32)
    entry = np.empty(n_cells * n_entries, np.uint32)  # observed entries under the atom, cell by cell
    rest = np.empty(n_cells * n_entries, images.dtype)
    corner, end = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    energies = np.empty((n_cells, n_padded), images.dtype)
    correlations = np.empty((n_cells, n_padded), images.dtype)
    bars = np.empty((n_cells, n_padded + STEP), np.float32)
    merit = np.full(n_padded + STEP, -NEVER)
    standard, log_weights = np.empty(n_cells), np.empty(n_cells)
    residual = np.empty(images.shape[1] * width, images.dtype)
    drawn = np.empty(1, images.dtype)  # rounds a draw to the precision it is stored in
    squares = 0.0
    filled = c = 0
    words_from = -1
    for n in range(images.shape[0]):
        own_row = row_of_image(image_log_odds, first_image + n)
        if row != own_row:
            row = own_row
            for k in range(n_atoms):
                level[0, k] = -2.0 * (totals[k] + image_log_odds[row, k]) - SLACK
        seen = observed[n].reshape(-1)
        residual[:] = images[n].reshape(-1)
        for i in range(code_start[n], code_start[n + 1]):
            place = np.int64(code_place[i])
            start = place // n_columns * width + place % n_columns * n_channels
            _subtract_seen(residual, seen, start, offset, dictionary, code_atom[i], code_value[i])
        for b in range(n_blocks):
            if filled + n_atoms > new_atom.shape[0]:
                return -1.0
            upper, left = b // grid_y * p_x, b % grid_y * p_y
            block_end = c
            while block_end < code_start[n + 1] and _block_of(code_place[block_end], layout) == b:
                block_end += 1
            if not is_visited(b, grid_x, grid_y, step):
                filled = copy_codes(
                    code_atom, code_place, code_value, c, block_end, new_atom, new_place, new_value, filled
                )
                c = block_end
                continue
            if relocate and c == block_end:
                continue
            block = (first_image + n) * n_blocks + b
            line = (n * n_blocks + b) % WORDS_AHEAD
            if block - line != words_from:
                words_from = block - line
                fill_words(words, words_from, sweep, MAP_CODES, key_0, key_1)
            for g in range(n_cells):
                x, y = upper + g // p_y, left + g % p_y
                corner[g] = -1
                if x < n_rows and y < n_columns:
                    corner[g] = x * width + y * n_channels
                    end[g] = _list_seen(seen, corner[g], offset, entry, g * n_entries)
                    sum_energies(columns, entry, g * n_entries, end[g], energies[g])
                    set_bars(
                        energies[g], level, 0, words, line, gamma_s, gamma_eps, ratio, ratio_bits, uniforms,
                        uniform_bits, bars[g],
                    )  # fmt: skip
            for i in range(c, block_end):
                for g in range(n_cells):
                    bars[g, code_atom[i]] = NEVER
            _correlate_cells(
                columns, residual, corner, offset, entry, end, rest, 0, correlations, bars, nonnegative, merit
            )
            first_filled = filled
            k = -1
            while True:
                in_use = np.int64(code_atom[c]) if c < block_end else n_padded
                k = next_positive(merit, k + 1, in_use)
                if k == n_padded:
                    break
                if relocate and same_atom(code_atom, c, block_end) > c + 1:
                    several = same_atom(code_atom, c, block_end)
                    filled = copy_codes(
                        code_atom, code_place, code_value, c, several, new_atom, new_place, new_value, filled
                    )
                    c = several
                    continue
                changed = False
                if k == in_use:
                    place = np.int64(code_place[c])
                    start = place // n_columns * width + place % n_columns * n_channels
                    _subtract_seen(residual, seen, start, offset, dictionary, k, -code_value[c])
                    changed = True
                    c += 1
                    _correlate_cells(
                        columns, residual, corner, offset, entry, end, rest, k // LANES * LANES,
                        correlations, bars, nonnegative, merit,
                    )  # fmt: skip
                for g in range(n_cells):
                    log_weights[g] = -np.inf
                    if corner[g] >= 0:
                        precision = gamma_s + gamma_eps * energies[g, k]
                        standard[g] = gamma_eps * correlations[g, k] / math.sqrt(precision)
                        log_weights[g] = log_odds[k, g] + 0.5 * math.log(gamma_s / precision)
                        log_weights[g] += image_log_odds[row, k] + slab_gain(standard[g], nonnegative)
                total = log_sum(log_weights)
                if relocate or is_on(words[line, k], total, k, block, address):
                    g = draw_cell(log_weights, total, k, block, address)
                    deviation = 1.0 / math.sqrt(gamma_s + gamma_eps * energies[g, k])
                    drawn[0] = draw_value(
                        standard[g], deviation, nonnegative, filled - first_filled, block, address
                    )
                    if drawn[0] != 0:
                        new_atom[filled] = k
                        new_place[filled] = (upper + g // p_y) * n_columns + left + g % p_y
                        new_value[filled] = drawn[0]
                        filled += 1
                        _subtract_seen(residual, seen, corner[g], offset, dictionary, k, drawn[0])
                        changed = True
                if changed:
                    _correlate_cells(
                        columns, residual, corner, offset, entry, end, rest, (k + 1) // LANES * LANES,
                        correlations, bars, nonnegative, merit,
                    )  # fmt: skip
        new_start[n + 1] = filled
        for i in range(residual.shape[0]):
            squares += float(residual[i]) * float(residual[i])
    return squares


@kernel
def _block_of(place, layout):
    _, _, _, _, n_columns, p_x, p_y = layout
    x, y = np.int64(place) // n_columns, np.int64(place) % n_columns
    return x // p_x * ((n_columns + p_y - 1) // p_y) + y // p_y


@kernel
def _subtract_seen(residual, seen, start, offset, dictionary, k, amount):
    """Take ``amount`` times atom k, whose first entry lies at ``start``, off the observed entries."""
    atom, first = np.uint64(k), np.uint64(start)
    for i in range(offset.shape[0]):
        at = first + np.uint64(offset[i])
        if seen[at]:
            residual[at] -= amount * dictionary[atom, i]


@kernel
def _list_seen(seen, start, offset, entry, begin):
    """Write the observed entries under an atom at ``start`` to ``entry``, from ``begin`` on; their end."""
    first, filled = np.uint64(start), begin
    for i in range(offset.shape[0]):
        entry[filled] = i
        filled += seen[first + np.uint64(offset[i])]
    return filled


@kernel
def _correlate_cells(
    columns, residual, corner, offset, entry, end, rest, first, correlations, bars, nonnegative, merit
):
    """Correlations of every cell of a block with the atoms from ``first`` on, and whether they may be on."""
    n_entries, n_padded = columns.shape
    nothing = correlations.dtype.type(0)
    for k in range(first, n_padded):
        merit[k] = -NEVER
    for g in range(corner.shape[0]):
        if corner[g] < 0:
            continue
        start = np.uint64(corner[g])
        for j in range(g * n_entries, end[g]):
            rest[j] = residual[start + np.uint64(offset[entry[j]])]
        correlate(columns, entry, g * n_entries, end[g], rest, first, n_padded, correlations[g])
        for k in range(first, n_padded):
            value = correlations[g, k]
            if nonnegative:
                value = max(value, nothing)
            merit[k] = max(merit[k], np.float32(value * value) - bars[g, k])
