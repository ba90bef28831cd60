r"""Coding: posterior means of the codes of new items, for atoms, usage and precisions that stay as they are.

Every item has Gibbs chains of its own that are run from their first sweep to their last before the next item
is looked at: several short ones, as what an item that is hardly observed is made of has many answers, and one
chain stays with the first it finds. A sweep draws (z, s) atom by atom, z from r / (1 + r) with the odds of
(1.13), s from (1.12), then all s of the item jointly (2.1). What is averaged over the kept sweeps is not the
draw but its mean given z,

    E[w_A | z, x] = m_A,    E[w_A w_A^T | z, x] = m_A m_A^T + Lambda^-1.

As the atoms do not change, the correlations of all atoms with what is left of the item are

    V = D^T (omega o x) - sum_{a in A} w_a g_a,    g_a = D^T diag(omega) d_a,

and the row g_a is computed once for every atom that the item ever uses (looked up, for complete data). So the
observed entries are visited once per atom in use, not once per sweep.

The random numbers of an item are addressed by a fingerprint of its observed entries: its codes are a function
of the item and the seed, whatever else is coded with it, in whatever order.
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.codes import CodeModel
from kruskal.gibbs.coding_parts import (
    add_moments,
    draw_jointly,
    fingerprint,
    gather,
    item_variance,
    list_used,
    new_slot,
    raise_bars,
    set_bars,
    sort_slots,
    tempered,
)
from kruskal.gibbs.lanes import above, add_row, add_rows, lowest, set_rows
from kruskal.gibbs.local import Codes, Shard
from kruskal.gibbs.pairs import NEVER, SLACK
from kruskal.gibbs.scan import is_on, sum_energies
from kruskal.gibbs.vectors import LANES
from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.normal import normal
from kruskal.random.philox import fill_words, philox

_PAIRS = int(Stream.CODING)
_SLABS = int(Stream.CODING_SLABS)
_ONE, _ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_AHEAD = 16  # sweeps whose random words are made at a time


class CodingPlan(NamedTuple):
    """How the chains of an item are run.

    Attributes
    ----------
    chains : how many, each from the beginning;  seed : of all draws
    sweeps : length of a chain;  burn_in : how many sweeps at its beginning are not kept
    first_noise_precision : gamma_eps of the first sweep of a chain, if that is less than the true one. From
        there it rises to it over the burn-in: with little noise an item clings to the atoms it took first
    """

    chains: int
    sweeps: int
    burn_in: int
    seed: int
    first_noise_precision: float


class Coded(NamedTuple):
    """What is known of the items of a shard.

    Attributes
    ----------
    codes : posterior means of w
    variance : (n, P) posterior variances of the entries of the items without noise, or (0, 0)
    """

    codes: Codes
    variance: np.ndarray


def code_shard(shard: Shard, model: CodeModel, plan: CodingPlan, with_variance: bool = False) -> Coded:
    """Posterior means of the codes of every item of a shard.

    ``model`` holds one region; the codes and the residual of the shard are neither used nor changed.
    """
    items = shard.items
    start, done = np.zeros(shard.n_items + 1, np.int64), 0
    atom, value = np.empty(0, np.uint16), np.empty(0, items.flat.dtype)
    variance = np.zeros((shard.n_items, len(items.offset)) if with_variance else (0, 0))
    while done < shard.n_items:
        room = len(atom) + 16 * shard.n_items + len(model.dictionary)
        atom, value = _resized(atom, room), _resized(value, room)
        done = _code(
            items.flat, items.origin, items.offset, shard.entry_start, shard.entry, *model, key_of(plan.seed),
            plan.first_noise_precision, plan.chains, plan.sweeps, plan.burn_in, done, start, atom, value,
            variance,
        )  # fmt: skip
    filled = int(start[-1])
    return Coded(Codes(start, atom[:filled].copy(), value[:filled].copy()), variance)


def _resized(array: np.ndarray, size: int) -> np.ndarray:
    result = np.empty(size, array.dtype)
    result[: len(array)] = array
    return result


@kernel
def _code(
    flat, origin, offset, entry_start, entry, dictionary, columns, gram, log_odds, gamma_s, gamma_eps,
    products, key, first_gamma, chains, sweeps, burn_in, first, start, atom, value, variance,
):  # fmt: skip
    """Code the items from ``first`` on, as far as there is room for their codes; returns where it stopped."""
    complete = entry_start.shape[0] == 1
    (n_atoms, n_entries), n_padded = dictionary.shape, columns.shape[1]
    level = np.full(n_padded, NEVER)
    for a in range(n_atoms):
        level[a] = -2.0 * log_odds[0, a] - SLACK
    words = np.empty((min(_AHEAD, chains * sweeps), n_padded), np.uint32)
    uniforms = np.empty(n_padded, np.float32)
    uniform_bits = uniforms.view(np.int32)
    ratio = np.empty(n_padded, np.float32)
    ratio_bits = ratio.view(np.int32)
    base, slope = np.empty(n_padded, np.float32), np.empty(n_padded, np.float32)
    bar = np.full(n_padded, NEVER)
    energy = np.empty(n_padded, flat.dtype)
    whole = np.empty(n_padded, flat.dtype)  # D^T (omega o x)
    correlation = np.zeros(n_padded, flat.dtype)
    place, data = np.arange(n_entries).astype(np.uint32), np.empty(n_entries, flat.dtype)
    single = np.empty(n_entries, np.float32)  # for the fingerprint
    bits = single.view(np.uint32)
    # a slot for every atom that the item ever uses: row g_a, entries and, in double precision, products;
    # there is room for all atoms, but memory is taken only by slots that are ever filled
    slot_of = np.full(n_atoms, -1, np.int64)
    slot_atom = np.empty(n_atoms, np.int64)
    rows = gram if complete else np.empty((n_atoms, n_padded), flat.dtype)
    pieces = np.empty((n_atoms, n_entries), flat.dtype)
    piece, line = np.empty(n_entries, flat.dtype), np.empty(n_padded, flat.dtype)
    # what is added to D^T x: weights times rows, of the atoms in use before and of every change
    line_of, weight = np.empty(2 * n_atoms, np.int64), np.empty(2 * n_atoms, flat.dtype)
    in_use = np.zeros(n_padded // LANES, np.uint64)
    table = products if complete else np.empty((n_atoms, n_atoms))
    linear_of, total, second = np.empty(n_atoms), np.zeros(n_atoms), np.empty((n_atoms, n_atoms))
    old, new = np.empty(n_atoms, np.int64), np.empty(n_atoms, np.int64)  # slots in use, atoms ascending
    slab, noise = np.zeros(n_atoms), np.empty(n_atoms)
    factor, mean = np.empty((n_atoms, n_atoms)), np.empty(n_atoms)
    for n in range(first, origin.shape[0]):
        filled = start[n]
        if filled + n_atoms > atom.shape[0]:
            return n
        seen = gather(flat, origin[n], offset, entry_start, entry, n, complete, place, data)
        item, high = fingerprint(place, data, seen, single, bits)
        key_0, key_1 = key[0] ^ high, key[1]
        if not complete or n == first:
            sum_energies(columns, place, 0, seen, energy)
        for block in range(0, n_padded, LANES):
            set_rows(whole, block, data, columns, place, 0, seen)
        n_slots = n_old = 0
        for step in range(chains * sweeps):  # all chains one after the other; slots stay
            sweep = step % sweeps
            if sweep == 0:
                n_old = 0
            row = step % words.shape[0]
            if row == 0:  # a row per step: the roles of item and sweep in the counter are exchanged
                fill_words(words, step, item, _PAIRS, key_0, key_1)
            address = (key_0, key_1, step, 0)
            gamma = tempered(gamma_eps, first_gamma, sweep, burn_in)
            if sweep <= burn_in:
                set_bars(energy, level, gamma_s, gamma, ratio, ratio_bits, base, slope)
            raise_bars(words, row, uniforms, uniform_bits, base, slope, bar)
            # V is set from the beginning in every sweep, so that rounding errors do not add up
            list_used(old, n_old, slot_atom, slab, complete, line_of, weight, in_use)
            n_lines, n_new, c = n_old, 0, 0
            for block in range(0, n_padded, LANES):
                for i in range(LANES):
                    k = np.uint64(block) + np.uint64(i)
                    correlation[k] = whole[k]
                add_rows(correlation, 0, block, weight, rows, line_of, 0, n_lines)
                used = in_use[block // LANES]
                in_use[block // LANES] = 0
                looked_at = above(correlation, 0, block, bar) | used
                while looked_at != 0:
                    bit = np.uint64(lowest(looked_at))
                    later = (_ALL << bit) << _ONE
                    looked_at &= later
                    k = np.uint64(block) + bit
                    before = 0.0
                    if (used >> bit) & _ONE:
                        before = slab[c]
                        c += 1
                    precision = gamma_s + gamma * energy[k]
                    linear = gamma * (correlation[k] + float(energy[k]) * before)
                    center = linear / precision
                    pair_log_odds = log_odds[0, k] + 0.5 * (math.log(gamma_s / precision) + linear * center)
                    now = 0.0
                    if is_on(words[row, k], pair_log_odds, k, item, address):
                        if slot_of[k] < 0:
                            new_slot(
                                k, n_slots, dictionary, columns, place, data, seen, complete, slot_of,
                                slot_atom, rows, pieces, piece, line, table, linear_of, second,
                            )  # fmt: skip
                            n_slots += 1
                        high_1, low_1, high_2, low_2 = philox(n_new, item, step, _SLABS, key_0, key_1)
                        now = center + normal(high_1, low_1) / math.sqrt(precision)
                        noise[n_new] = normal(high_2, low_2)
                        new[n_new] = slot_of[k]
                        n_new += 1
                    if now != before:
                        weight[n_lines] = before - now
                        line_of[n_lines] = k if complete else slot_of[k]
                        looked_at = later & (
                            used
                            | add_row(correlation, 0, block, weight[n_lines], rows, line_of[n_lines], bar)
                        )
                        n_lines += 1
            keep = sweep >= burn_in
            draw_jointly(
                new, n_new, slot_atom, table, pieces, seen, linear_of, complete, gamma_s, gamma, noise,
                factor, slab, mean,
            )  # fmt: skip
            if keep:
                add_moments(new, n_new, factor, mean, variance.shape[0] > 0, total, second)
            for a in range(n_new):
                old[a] = new[a]
            n_old = n_new
        scale = 1.0 / (chains * (sweeps - burn_in))
        if variance.shape[0] > 0:
            item_variance(dictionary, slot_atom, n_slots, total, second, scale, variance, n)
        sort_slots(slot_atom, n_slots, old)
        for a in range(n_slots):
            slot = old[a]
            if total[slot] != 0.0:
                atom[filled] = slot_atom[slot]
                value[filled] = scale * total[slot]
                filled += 1
            total[slot] = 0.0
            slot_of[slot_atom[slot]] = -1
        start[n + 1] = filled
    return origin.shape[0]
