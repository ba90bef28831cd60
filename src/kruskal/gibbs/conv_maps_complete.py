"""Maps of complete images: Gram form.

The correlations V of all atoms with the residual come from matrix products over the places of a *tile*: a
number of block rows of an image, or whole images. Within a tile a change of W_k[p] by delta is propagated,

    V_k'[p'] -= delta A_k'k[p' - p],    A_k'k[lag] = sum_j D_k'[j] D_k[j + lag]                      (5.4)

to the places that are still to come; the next tile is correlated with the residual as it is then. Whole
images as tiles are best when changes are rare, single rows of blocks when they are many; both make the same
draws.
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
from kruskal.gibbs.conv_synthesis import gather_patches, subtract_atom, subtract_maps
from kruskal.gibbs.conv_tiles import copy_image, inside, propagate, set_merits, sum_squares
from kruskal.gibbs.pairs import (
    BITS_TO_LOG,
    LOG_OFFSET,
    NEVER,
    SLACK,
    WORDS_AHEAD,
)
from kruskal.gibbs.scan import STEP, float_uniforms, is_on, next_positive
from kruskal.kernel import kernel
from kruskal.random.philox import fill_words

_CHUNK = 512  # rows of a matrix product, if whole images are tiles


@kernel
def sweep_complete(
    images, observed, code_start, code_atom, code_place, code_value,
    dictionary, columns, table, log_odds, totals, image_log_odds, gamma_s, gamma_eps, nonnegative, layout,
    tile_rows, step, relocate, address, new_start, new_atom, new_place, new_value,
):  # fmt: skip
    """Draw the maps of a shard; returns the sum of squared residuals, or -1 when the buffer is too small."""
    _, _, _, n_rows, n_columns, p_x, p_y = layout
    n_images, n_atoms, n_padded = images.shape[0], dictionary.shape[0], columns.shape[1]
    key_0, key_1, sweep, first_image = address
    grid_x, grid_y = (n_rows + p_x - 1) // p_x, (n_columns + p_y - 1) // p_y
    n_blocks = grid_x * grid_y
    reach = (table.shape[2] - 1) // 2
    energy, deviation, log_shrink = np.empty(n_atoms), np.empty(n_atoms), np.empty(n_atoms)
    scale = np.empty(n_atoms)
    slope = np.zeros(n_padded, np.float32)  # bar = slope * (lower bound of log u) + level
    level = np.full(n_padded, NEVER)
    for k in range(n_atoms):
        energy[k] = table[k, p_x - 1, reach, k]
        precision = gamma_s + gamma_eps * energy[k]
        deviation[k] = 1.0 / math.sqrt(precision)
        log_shrink[k] = 0.5 * math.log(gamma_s / precision)
        scale[k] = precision / (gamma_eps * gamma_eps)
        slope[k] = 2.0 * scale[k]
    row = -1
    words = np.empty((WORDS_AHEAD, n_padded), np.uint32)
    uniforms = np.empty(n_padded, np.float32)
    uniform_bits = uniforms.view(np.int32)
    bar = np.full(n_padded, NEVER)
    merit = np.full(n_padded + STEP, -NEVER)
    standard, log_weights = np.empty(p_x * p_y), np.empty(p_x * p_y)
    whole = tile_rows >= grid_x
    tile_places = min(tile_rows * p_x, n_rows) * n_columns
    chunk_size = max(1, min(n_images, _CHUNK // tile_places)) if whole else 1
    rests = np.empty((chunk_size, images.shape[1], images.shape[2]), images.dtype)
    patches = np.empty((chunk_size * tile_places, dictionary.shape[1]), images.dtype)
    correlations = np.empty((chunk_size * tile_places, n_padded), images.dtype)
    drawn = np.empty(1, images.dtype)  # rounds a draw to the precision it is stored in
    squares = 0.0
    filled = c = 0
    words_from = -1
    for chunk in range(0, n_images, chunk_size):
        size = min(chunk_size, n_images - chunk)
        for m in range(size):
            n = chunk + m
            copy_image(images, n, rests, m)
            subtract_maps(
                rests, m, code_start[n], code_start[n + 1], code_atom, code_place, code_value, dictionary,
                layout,
            )  # fmt: skip
        for tile in range(0, grid_x, tile_rows):
            top, bottom = tile * p_x, min((tile + tile_rows) * p_x, n_rows)
            places = (bottom - top) * n_columns
            for m in range(size):
                gather_patches(rests, m, top, bottom, layout, patches, m * places)
            np.dot(patches[: size * places], columns, correlations[: size * places])
            for m in range(size):
                n = chunk + m
                codes_end = code_start[n + 1]
                own_row = row_of_image(image_log_odds, first_image + n)
                if row != own_row:
                    row = own_row
                    for k in range(n_atoms):
                        most = totals[k] + image_log_odds[row, k] + log_shrink[k]
                        level[k] = -(2.0 * most + SLACK) * scale[k]
                for b in range(tile * grid_y, min((tile + tile_rows) * grid_y, n_blocks)):
                    if filled + n_atoms > new_atom.shape[0]:
                        return -1.0
                    left = (b % grid_y) * p_y
                    upper = (b // grid_y) * p_x
                    height, width = min(p_x, n_rows - upper), min(p_y, n_columns - left)
                    block_end = c
                    while block_end < codes_end and inside(
                        code_place[block_end], n_columns, upper, left, height, width
                    ):
                        block_end += 1
                    if not is_visited(b, grid_x, grid_y, step):
                        filled = copy_codes(
                            code_atom,
                            code_place,
                            code_value,
                            c,
                            block_end,
                            new_atom,
                            new_place,
                            new_value,
                            filled,
                        )
                        c = block_end
                        continue
                    block = (first_image + n) * n_blocks + b
                    line = (n * n_blocks + b) % WORDS_AHEAD
                    if block - line != words_from:
                        words_from = block - line
                        fill_words(words, words_from, sweep, MAP_CODES, key_0, key_1)
                    corner = m * places + (upper - top) * n_columns + left
                    float_uniforms(words, line, uniforms)
                    for k in range(n_padded):
                        log_uniform = np.float32(uniform_bits[k]) * BITS_TO_LOG - LOG_OFFSET
                        bar[k] = slope[k] * log_uniform + level[k]
                    for i in range(c, block_end):
                        bar[code_atom[i]] = NEVER
                    set_merits(correlations, corner, n_columns, height, width, nonnegative, bar, merit)
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
                                code_atom, code_place, code_value, c, several, new_atom, new_place, new_value,
                                filled,
                            )  # fmt: skip
                            c = several
                            continue
                        old, old_x, old_y = 0.0, upper, left
                        if k == in_use:
                            old = float(code_value[c])
                            old_x, old_y = code_place[c] // n_columns, code_place[c] % n_columns
                            c += 1
                        for g in range(p_x * p_y):
                            x, y = upper + g // p_y, left + g % p_y
                            if x >= n_rows or y >= n_columns:
                                log_weights[g] = -np.inf
                                continue
                            at = corner + (g // p_y) * n_columns + g % p_y
                            linear = float(correlations[at, k])
                            if old != 0.0:
                                linear += old * table[k, x - old_x + p_x - 1, y - old_y + reach, k]
                            standard[g] = gamma_eps * linear * deviation[k]
                            gain = slab_gain(standard[g], nonnegative)
                            log_weights[g] = log_odds[k, g] + image_log_odds[row, k] + log_shrink[k] + gain
                        total = log_sum(log_weights)
                        drawn[0] = 0
                        new_x, new_y = upper, left
                        if relocate or is_on(words[line, k], total, k, block, address):
                            g = draw_cell(log_weights, total, k, block, address)
                            new_x, new_y = upper + g // p_y, left + g % p_y
                            drawn[0] = draw_value(
                                standard[g], deviation[k], nonnegative, filled - first_filled, block, address
                            )
                        new = float(drawn[0])
                        if new != 0.0:
                            new_atom[filled] = k
                            new_place[filled] = new_x * n_columns + new_y
                            new_value[filled] = drawn[0]
                            filled += 1
                        if new == 0.0 and old == 0.0:
                            continue
                        if new_x == old_x and new_y == old_y:
                            new, old = new - old, 0.0
                        for amount, at_x, at_y in ((new, new_x, new_y), (-old, old_x, old_y)):
                            if amount != 0.0:
                                drawn[0] = amount
                                place = at_x * n_columns + at_y
                                subtract_atom(rests, m, place, k, drawn[0], dictionary, layout)
                                propagate(
                                    correlations, table, k, drawn[0], at_x, at_y, m * places, top, bottom,
                                    upper, left, layout,
                                )  # fmt: skip
                        set_merits(correlations, corner, n_columns, height, width, nonnegative, bar, merit)
                new_start[n + 1] = filled
        for m in range(size):
            squares += sum_squares(rests, m)
    return squares
