r"""Codes: z_kn and s_kn of every item, given the atoms   (METHODS 1.7).

With the residual without atom k, x~_n = x_n - sum_{k' != k} d_k' w_k'n, and the mask omega,

    c_kn = gamma_eps sum_i omega_in d_ik^2,    l_kn = gamma_eps sum_i omega_in d_ik x~_in          (1.10)

collapsed:    logit P(z=1) = logit pi_k + 1/2 log(gamma_s / (gamma_s + c)) + l^2 / (2 (gamma_s + c))  (1.13)
uncollapsed:  logit P(z=1 | s) = logit pi_k - (s^2 c - 2 s l) / 2                                    (1.11)
then          s | z=1 ~ N(l / (gamma_s + c), 1 / (gamma_s + c))                                      (1.12)

s with z=0 is its prior draw and never stored; the uncollapsed form draws it afresh where it needs it.

Items are independent given the atoms; within an item the atoms are visited in order. Three things make the
sweep fast without changing its distribution:

* only the observed entries of an item are touched, and correlations are computed for a block of contiguous
  atoms at a time (masked), or for a chunk of items by one matrix product (complete data, Gram form);
* an atom whose probability is surely below `RARE` is looked at only if it is among the few candidates, each
  atom being one with probability RARE, and then accepted with probability P(z=1) / RARE: the same Bernoulli
  draw with a comparison in place of a random number, a logarithm and an exponential;
* "surely below" is decided with an upper bound of the log odds that needs no logarithm: the bits of a
  float32, read as an integer, interpolate log2 from below.
"""

import math
from typing import NamedTuple

import numpy as np

from kruskal.gibbs.local import Codes, Shard, count_codes
from kruskal.kernel import kernel
from kruskal.random import Stream, key_of
from kruskal.random.philox import normal, philox, uniform_32, uniform_53

RARE = 1.0 / 64.0
"""Pairs less probable than this are thinned."""

_BLOCK = 32  # atoms per block of the masked sweep: two cache lines of float32 per entry
_CHUNK = 128  # items per matrix product of the complete sweep
_SLACK = 1e-3  # room for rounding in the bound, in units of the log odds
_NEVER_SKIP = -1.0  # a threshold below every squared correlation
_LOG_2 = math.log(2.0)
_LOG_RARE_ODDS = math.log(RARE / (1.0 - RARE))
_LOG_NOT_RARE = math.log1p(-RARE)
_CODES = int(Stream.CODES)
_CANDIDATES = int(Stream.CANDIDATES)


class CodeModel(NamedTuple):
    """All that an item needs to know to draw its codes; made once per sweep by `code_model`.

    Attributes
    ----------
    dictionary : (K, P) atoms in the data's precision;  columns : (P, K) the same, entry-major
    gram : (K, K) D^T D in the data's precision (used by complete data only, else (0, 0))
    log_odds : (K,) float64 logit pi_k
    code_precision, noise_precision : gamma_s, gamma_eps
    """

    dictionary: np.ndarray
    columns: np.ndarray
    gram: np.ndarray
    log_odds: np.ndarray
    code_precision: float
    noise_precision: float


class CodeDraw(NamedTuple):
    """What one shard reports after drawing its codes: sufficient statistics of the scalar conditionals."""

    counts: np.ndarray  # (K,) sum_n z_kn
    squares: np.ndarray  # (K,) sum_n z_kn s_kn^2
    residual_squares: float  # sum over observed entries of (x - Dw)^2


def code_model(dictionary, usage, code_precision, noise_precision, dtype, complete) -> CodeModel:
    """Cast the global state once for all items; ``dictionary`` (K, P) float64, ``usage`` (K,) pi."""
    atoms = np.ascontiguousarray(dictionary, dtype=dtype)
    gram = atoms @ atoms.T if complete else np.zeros((0, 0), dtype)
    log_odds = np.log(usage) - np.log1p(-usage)
    return CodeModel(
        atoms, np.ascontiguousarray(atoms.T), gram, log_odds, float(code_precision), float(noise_precision)
    )


def draw_codes(shard: Shard, model: CodeModel, seed: int, sweep: int, collapsed: bool = True) -> CodeDraw:
    """Draw z and s of every item of a shard; replaces ``shard.codes`` and, if masked, ``shard.residual``."""
    key = key_of(seed)
    old = shard.codes
    capacity = len(old.atom) + len(old.atom) // 4 + 8 * shard.n_items + len(model.dictionary)
    items = shard.items
    while True:
        start = np.zeros(shard.n_items + 1, np.int64)
        atom = np.empty(capacity, np.uint16)
        value = np.empty(capacity, items.flat.dtype)
        address = (*key, sweep, shard.first)
        if not collapsed:
            draw = _sweep_uncollapsed
        elif items.complete:
            draw = _sweep_complete
        else:
            draw = _sweep_masked
        squares = draw(
            items.flat, items.origin, items.offset, shard.entry_start, shard.entry, *old, *model, address,
            start, atom, value, shard.residual,
        )  # fmt: skip
        if squares >= 0.0:
            break
        capacity *= 2  # the buffer was too small; the same random numbers give the same codes again
    filled = int(start[-1])
    shard.codes = Codes(start, atom[:filled].copy(), value[:filled].copy())
    counts, code_squares = count_codes(shard.codes, len(model.dictionary))
    return CodeDraw(counts, code_squares, squares)


@kernel
def _candidates(item, address, n_atoms, found):
    """Choose every atom with probability RARE, by geometric jumps; returns how many, in increasing order."""
    key_0, key_1, sweep, _ = address
    count = 0
    k = -1
    counter = 0
    while True:
        words = philox(counter, item, sweep, _CANDIDATES, key_0, key_1)
        for word in words:
            gap = math.log(uniform_32(word)) / _LOG_NOT_RARE
            if gap >= n_atoms:
                return count
            k += 1 + int(gap)
            if k >= n_atoms:
                return count
            found[count] = k
            count += 1
        counter += 1


@kernel
def _decide(k, item, address, log_odds, correlation, energy, old, candidate, gamma_s, gamma_eps):
    """One (z, s): the new value of w_kn (0 when z=0). ``correlation`` is with the full residual."""
    key_0, key_1, sweep, _ = address
    precision = gamma_s + gamma_eps * energy
    linear = gamma_eps * (correlation + energy * old)
    logit = log_odds + 0.5 * math.log(gamma_s / precision) + 0.5 * linear * linear / precision
    probability = 1.0 / (1.0 + math.exp(-logit)) if logit > -700.0 else 0.0
    if old == 0.0 and probability <= RARE:
        if not candidate:
            return 0.0
        probability /= RARE
    word_0, word_1, word_2, word_3 = philox(k, item, sweep, _CODES, key_0, key_1)
    if uniform_53(word_0, word_1) >= probability:
        return 0.0
    return linear / precision + normal(word_2, word_3) / math.sqrt(precision)


@kernel
def _correlate(columns, entry, residual, first, last, correlation):
    """correlation[k - first] = sum_j columns[entry[j], k] residual[j] for first <= k < last."""
    width = last - first
    for i in range(width):
        correlation[i] = 0
    n = entry.shape[0]
    j = 0
    while j + 4 <= n:
        row_0 = columns[entry[j], first:last]
        row_1 = columns[entry[j + 1], first:last]
        row_2 = columns[entry[j + 2], first:last]
        row_3 = columns[entry[j + 3], first:last]
        r_0, r_1, r_2, r_3 = residual[j], residual[j + 1], residual[j + 2], residual[j + 3]
        for i in range(width):
            correlation[i] += row_0[i] * r_0 + row_1[i] * r_1 + row_2[i] * r_2 + row_3[i] * r_3
        j += 4
    while j < n:
        row = columns[entry[j], first:last]
        r = residual[j]
        for i in range(width):
            correlation[i] += row[i] * r
        j += 1


@kernel
def _energies(columns, entry, first, last, energy):
    """energy[k - first] = sum_j columns[entry[j], k]^2 for first <= k < last."""
    width = last - first
    for i in range(width):
        energy[i] = 0
    n = entry.shape[0]
    j = 0
    while j + 4 <= n:
        row_0 = columns[entry[j], first:last]
        row_1 = columns[entry[j + 1], first:last]
        row_2 = columns[entry[j + 2], first:last]
        row_3 = columns[entry[j + 3], first:last]
        for i in range(width):
            energy[i] += row_0[i] * row_0[i] + row_1[i] * row_1[i] + row_2[i] * row_2[i] + row_3[i] * row_3[i]
        j += 4
    while j < n:
        row = columns[entry[j], first:last]
        for i in range(width):
            energy[i] += row[i] * row[i]
        j += 1


@kernel
def _bounds(energy, bar, gamma_s, gamma_eps, width, ratio, ratio_bits, squared_bar):
    """Squared correlation above which an atom may be as probable as RARE.

    2 (log odds - logit RARE) = correlation^2 gamma_eps^2 / precision - log(precision / gamma_s) - bar, and
    log2(y) >= exponent + mantissa - 1, which is what the bits of y say when read as an integer.
    """
    for i in range(width):
        ratio[i] = np.float32(1.0) + np.float32(gamma_eps / gamma_s) * np.float32(energy[i])
    inverse = np.float32(gamma_s / (gamma_eps * gamma_eps))
    bits_to_log = np.float32(_LOG_2 / 8388608.0)
    log_offset = np.float32(127.0 * _LOG_2)
    for i in range(width):
        log_ratio = np.float32(ratio_bits[i]) * bits_to_log - log_offset
        squared_bar[i] = (bar[i] + log_ratio) * ratio[i] * inverse


@kernel
def _sweep_masked(
    flat, origin, offset, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, residual,
):  # fmt: skip
    n_atoms = dictionary.shape[0]
    weight = np.zeros(n_atoms, flat.dtype)
    bar = np.empty(n_atoms, np.float32)  # 2 (logit RARE - logit pi_k)
    for k in range(n_atoms):
        bar[k] = 2.0 * (_LOG_RARE_ODDS - log_odds[k]) - _SLACK
    forced = np.zeros(n_atoms, np.bool_)  # in use or candidate: always looked at
    candidate = np.zeros(n_atoms, np.bool_)
    found = np.empty(n_atoms, np.int64)
    correlation = np.empty(_BLOCK, flat.dtype)
    energy = np.empty(_BLOCK, flat.dtype)
    ratio = np.empty(_BLOCK, np.float32)
    ratio_bits = ratio.view(np.int32)
    squared_bar = np.empty(_BLOCK, np.float32)
    drawn = np.empty(1, flat.dtype)  # rounds a draw to the precision it is stored in
    squares = 0.0
    filled = 0
    for n in range(origin.shape[0]):
        if filled + n_atoms > new_atom.shape[0]:
            return -1.0
        item = address[3] + n
        here = entry[entry_start[n] : entry_start[n + 1]]
        rest = residual[entry_start[n] : entry_start[n + 1]]
        for j in range(here.shape[0]):
            rest[j] = flat[origin[n] + offset[here[j]]]
        for c in range(code_start[n], code_start[n + 1]):
            k = code_atom[c]
            weight[k] = code_value[c]
            forced[k] = True
            _subtract(rest, here, dictionary[k], code_value[c])
        n_found = _candidates(item, address, n_atoms, found)
        for c in range(n_found):
            candidate[found[c]] = True
            forced[found[c]] = True
        for first in range(0, n_atoms, _BLOCK):
            last = min(first + _BLOCK, n_atoms)
            width = last - first
            _energies(columns, here, first, last, energy)
            _correlate(columns, here, rest, first, last, correlation)
            _bounds(energy, bar[first:last], gamma_s, gamma_eps, width, ratio, ratio_bits, squared_bar)
            for i in range(width):
                if forced[first + i]:
                    squared_bar[i] = _NEVER_SKIP
            for i in range(width):
                if np.float32(correlation[i]) * np.float32(correlation[i]) <= squared_bar[i]:
                    continue
                k = first + i
                old = weight[k]
                drawn[0] = _decide(
                    k, item, address, log_odds[k], float(correlation[i]), float(energy[i]), float(old),
                    candidate[k], gamma_s, gamma_eps,
                )  # fmt: skip
                new = drawn[0]
                if new != 0:
                    new_atom[filled] = k
                    new_value[filled] = new
                    filled += 1
                if new != old:
                    _subtract(rest, here, dictionary[k], new - old)
                    if k + 1 < last:
                        _correlate(columns, here, rest, k + 1, last, correlation[i + 1 :])
        for c in range(code_start[n], code_start[n + 1]):
            weight[code_atom[c]] = 0
            forced[code_atom[c]] = False
        for c in range(n_found):
            candidate[found[c]] = False
            forced[found[c]] = False
        new_start[n + 1] = filled
        for j in range(rest.shape[0]):
            squares += float(rest[j]) * float(rest[j])
    return squares


@kernel
def _subtract(rest, here, atom, amount):
    for j in range(here.shape[0]):
        rest[j] -= amount * atom[here[j]]


@kernel
def _next_to_look_at(correlation, squared_bar, first):
    """First atom from ``first`` on whose squared correlation exceeds its bar; the number of atoms if none."""
    n_atoms = correlation.shape[0]
    k = first
    while k + 16 <= n_atoms:
        values = correlation[k : k + 16]
        bars = squared_bar[k : k + 16]
        hits = 0
        for i in range(16):
            hits += values[i] * values[i] > bars[i]
        if hits > 0:
            break
        k += 16
    while k < n_atoms:
        if correlation[k] * correlation[k] > squared_bar[k]:
            return k
        k += 1
    return n_atoms


@kernel
def _sweep_complete(
    flat, origin, offset, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, residual,
):  # fmt: skip
    n_items, (n_atoms, n_entries) = origin.shape[0], dictionary.shape
    weight = np.zeros(n_atoms, flat.dtype)
    squared_bar = np.empty(n_atoms, flat.dtype)
    bar = np.empty(n_atoms, flat.dtype)  # squared_bar of this item: lowered for atoms that must be looked at
    for k in range(n_atoms):
        ratio = 1.0 + gamma_eps * float(gram[k, k]) / gamma_s
        log_bar = 2.0 * (_LOG_RARE_ODDS - log_odds[k]) + math.log(ratio) - _SLACK
        squared_bar[k] = log_bar * ratio * gamma_s / (gamma_eps * gamma_eps)
        bar[k] = squared_bar[k]
    candidate = np.zeros(n_atoms, np.bool_)
    found = np.empty(n_atoms, np.int64)
    rests = np.empty((_CHUNK, n_entries), flat.dtype)
    correlations = np.empty((_CHUNK, n_atoms), flat.dtype)
    drawn = np.empty(1, flat.dtype)
    squares = 0.0
    filled = 0
    for chunk in range(0, n_items, _CHUNK):
        chunk_size = min(_CHUNK, n_items - chunk)
        for m in range(chunk_size):
            n = chunk + m
            rest = rests[m]
            for i in range(n_entries):
                rest[i] = flat[origin[n] + offset[i]]
            for c in range(code_start[n], code_start[n + 1]):
                _subtract_row(rest, dictionary[code_atom[c]], code_value[c])
        np.dot(rests[:chunk_size], columns, correlations[:chunk_size])
        for m in range(chunk_size):
            if filled + n_atoms > new_atom.shape[0]:
                return -1.0
            n = chunk + m
            item = address[3] + n
            rest = rests[m]
            correlation = correlations[m]
            for c in range(code_start[n], code_start[n + 1]):
                weight[code_atom[c]] = code_value[c]
                bar[code_atom[c]] = _NEVER_SKIP
            n_found = _candidates(item, address, n_atoms, found)
            for c in range(n_found):
                candidate[found[c]] = True
                bar[found[c]] = _NEVER_SKIP
            k = _next_to_look_at(correlation, bar, 0)
            while k < n_atoms:
                old = weight[k]
                drawn[0] = _decide(
                    k, item, address, log_odds[k], float(correlation[k]), float(gram[k, k]), float(old),
                    candidate[k], gamma_s, gamma_eps,
                )  # fmt: skip
                new = drawn[0]
                if new != 0:
                    new_atom[filled] = k
                    new_value[filled] = new
                    filled += 1
                if new != old:
                    _subtract_row(rest, dictionary[k], new - old)
                    _subtract_row(correlation[k + 1 :], gram[k, k + 1 :], new - old)
                k = _next_to_look_at(correlation, bar, k + 1)
            for c in range(code_start[n], code_start[n + 1]):
                weight[code_atom[c]] = 0
                bar[code_atom[c]] = squared_bar[code_atom[c]]
            for c in range(n_found):
                candidate[found[c]] = False
                bar[found[c]] = squared_bar[found[c]]
            new_start[n + 1] = filled
            for i in range(n_entries):
                squares += float(rest[i]) * float(rest[i])
    return squares


@kernel
def _subtract_row(row, other, amount):
    for i in range(row.shape[0]):
        row[i] -= amount * other[i]


@kernel
def _sweep_uncollapsed(
    flat, origin, offset, entry_start, entry, code_start, code_atom, code_value,
    dictionary, columns, gram, log_odds, gamma_s, gamma_eps, address,
    new_start, new_atom, new_value, residual,
):  # fmt: skip
    """The paper's form, complete or masked, one pair at a time: for comparison, not for speed."""
    key_0, key_1, sweep, first_item = address
    n_atoms, n_entries = dictionary.shape
    complete = entry_start.shape[0] == 1
    everything = np.arange(n_entries).astype(np.uint32)
    scratch = np.empty(n_entries, flat.dtype)
    weight = np.zeros(n_atoms, flat.dtype)
    drawn = np.empty(1, flat.dtype)
    squares = 0.0
    filled = 0
    for n in range(origin.shape[0]):
        if filled + n_atoms > new_atom.shape[0]:
            return -1.0
        item = first_item + n
        here = everything if complete else entry[entry_start[n] : entry_start[n + 1]]
        rest = scratch if complete else residual[entry_start[n] : entry_start[n + 1]]
        for j in range(here.shape[0]):
            rest[j] = flat[origin[n] + offset[here[j]]]
        for c in range(code_start[n], code_start[n + 1]):
            weight[code_atom[c]] = code_value[c]
            _subtract(rest, here, dictionary[code_atom[c]], code_value[c])
        for k in range(n_atoms):
            correlation = 0.0
            energy = 0.0
            for j in range(here.shape[0]):
                correlation += float(dictionary[k, here[j]]) * float(rest[j])
                energy += float(dictionary[k, here[j]]) ** 2
            old = weight[k]
            word_0, word_1, word_2, word_3 = philox(k, item, sweep, _CODES, key_0, key_1)
            _, _, word_4, word_5 = philox(k, item, sweep, _CODES + (1 << 16), key_0, key_1)
            slab = float(old) if old != 0 else normal(word_4, word_5) / math.sqrt(gamma_s)
            linear = gamma_eps * (correlation + energy * float(old))
            logit = log_odds[k] - 0.5 * (slab * slab * gamma_eps * energy - 2.0 * slab * linear)
            probability = 1.0 / (1.0 + math.exp(-logit)) if logit > -700.0 else 0.0
            drawn[0] = 0
            if uniform_53(word_0, word_1) < probability:
                precision = gamma_s + gamma_eps * energy
                drawn[0] = linear / precision + normal(word_2, word_3) / math.sqrt(precision)
            new = drawn[0]
            if new != 0:
                new_atom[filled] = k
                new_value[filled] = new
                filled += 1
            if new != old:
                _subtract(rest, here, dictionary[k], new - old)
            weight[k] = 0
        new_start[n + 1] = filled
        for j in range(rest.shape[0]):
            squares += float(rest[j]) * float(rest[j])
    return squares
