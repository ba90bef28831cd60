r"""Atoms of masked data: a few at a time, from sums over the items, by a team of threads.

The atoms are taken in blocks of b. For a block the items tell, with the residual h = x - Dw,

    sum omega w_k^2,   sum omega w_k h   per entry and atom,   sum omega w_k w_k'   per entry and pair k < k'

and that is all that is needed to draw the block's atoms one after the other. The change of the atoms is
applied to the residuals at the beginning of the next block's visit. Lists of the items that use each block
are made before the first, so a visit costs what the codes of its block do, however many items there are.

A few shards in a row are visited one after the other. What such rows find is added in pairs, up to one, so
that the order of all additions depends on the number of shards alone. All of this happens in one kernel per
thread (`kruskal.gibbs.together`): where few codes are in use a visit is shorter than it takes to wake up a
thread.
"""

from collections.abc import Sequence

import numpy as np

from kruskal.gibbs.atoms import AtomNoise, AtomOptions, AtomState, draw_block, pair_index
from kruskal.gibbs.local import Shard, shards_per_sum
from kruskal.gibbs.statistics import AtomTerms
from kruskal.gibbs.together import (
    NONE,
    OVER,
    await_finished,
    current_round,
    dismiss,
    finish,
    new_cells,
    open_round,
    pause,
    take,
)
from kruskal.kernel import address_of, array_at, kernel

_MOST_BYTES = 2**28  # of the sums of all rows of shards
_NO_BLOCK = 2**32  # the number of none
_SLICES = 4  # tasks in which the sums of all rows are added


def block_size(n_atoms: int, n_entries: int, n_shards: int, n_codes: int, observed_share: float) -> int:
    """Atoms per block: 16, or fewer where the pair sums would cost far more than the visits to the codes."""
    size, n_rows = 16, n_shards / shards_per_sum(n_shards)
    while size > 1 and (
        n_atoms * size * n_rows > 6.0 * n_codes * observed_share
        or 8 * _n_sums(size) * n_entries * n_rows > _MOST_BYTES
    ):
        size //= 2
    return size


def _n_sums(size: int) -> int:
    """Of every entry: squares and correlations of every atom, products of every pair."""
    return 2 * size + size * (size - 1) // 2


class MaskedAtoms:
    """One draw of all atoms in order, for a team of threads; the arrays of ``atoms`` are changed in place.

    Parameters
    ----------
    shards : masked; their residuals must be current, and are those of the new atoms but for the last block's
    past : terms of other items
    size : atoms per block
    """

    def __init__(
        self, shards: Sequence[Shard], atoms: AtomState, noise_precision: float, noise: AtomNoise,
        options: AtomOptions, past: AtomTerms, size: int,
    ) -> None:  # fmt: skip
        self._shards = shards  # kept alive, as the kernels know no more than where their arrays are
        n_entries, dtype = atoms.dictionary.shape[1], shards[0].residual.dtype
        length = shards_per_sum(len(shards))
        n_rows = -(-len(shards) // length)
        first_code = np.cumsum([0, *(len(shard.codes.atom) for shard in shards)])
        n_blocks = -(-len(atoms.dictionary) // size)
        self._cells = new_cells(max(n_rows, _SLICES))
        self._visits = (
            np.array([_addresses(shard) for shard in shards], np.uint64),
            np.array([shard.n_items for shard in shards]),
            first_code,
            np.empty((len(shards), n_blocks + 1), np.int64),
            np.empty(first_code[-1], np.uint32),
            np.empty(first_code[-1], np.uint32),
            np.zeros(0, np.int64),
            np.zeros(0, np.uint16),
            np.zeros(0, dtype),
            np.empty((n_rows, _n_sums(size), n_entries)),
            length,
            size,
            np.empty((size, n_entries), dtype),
        )
        self._draws = (*atoms, *past, noise_precision, *noise, *options)

    def lead(self, n_seats: int) -> None:
        """Draw the atoms, and work on the sums with those who follow, if they come."""
        _lead(self._cells, self._visits, self._draws, n_seats)

    def follow(self, seat: int, n_seats: int) -> None:
        """Work on the sums until the leader is done."""
        _follow(self._cells, self._visits, seat, n_seats)

    def dismiss(self) -> None:
        """Let those who follow come to an end."""
        dismiss(self._cells)


def _addresses(shard: Shard) -> list[int]:
    arrays = (shard.entry_start, shard.entry, shard.residual, *shard.codes)
    return [address_of(array) for array in arrays]


@kernel
def _lead(cells, visits, draws, n_seats):
    sums, _, size, change = visits[-4:]
    atoms, how = draws[:6], draws[6:]
    n_rows, n_atoms = sums.shape[0], atoms[0].shape[0]
    n_blocks = (n_atoms + size - 1) // size
    n_finished = 0
    for block in range(n_blocks):
        for number in range(2 * block + 1, 2 * block + 3):
            open_round(cells, number)
            _work_on(cells, number, visits, 0, n_seats)
            n_finished += _n_tasks(number, n_rows)
            await_finished(cells, n_finished)
        first = block * size
        draw_block(*atoms, first, min(size, n_atoms - first), size, sums[0], *how, change)
    open_round(cells, OVER)


@kernel
def _follow(cells, visits, seat, n_seats):
    looks, exhausted = 0, 0
    while True:
        number = current_round(cells)
        if number == OVER:
            return
        if number == exhausted:
            looks += 1
            pause(looks)
        else:
            _work_on(cells, number, visits, seat, n_seats)
            looks, exhausted = 0, number


@kernel
def _n_tasks(number, n_rows):
    """Of a round: in odd ones the rows of shards are visited, in even ones their sums are added."""
    return n_rows if number % 2 else _SLICES


@kernel
def _work_on(cells, number, visits, seat, n_seats):
    """Do tasks of a round until there is none left."""
    n_tasks = _n_tasks(number, visits[-4].shape[0])
    task = take(cells, number, n_tasks, seat, n_seats)
    while task != NONE:
        if number % 2:
            _visit_row((number - 1) // 2, task, visits)
        else:
            _add_rows(visits[-4], task)
        finish(cells)
        task = take(cells, number, n_tasks, seat, n_seats)


@kernel
def _visit_row(block, place, visits):
    """What a row of shards says of a block of atoms."""
    (
        addresses, n_items, first_code, users_start, user, user_code, of_place, of_atom, of_value, sums,
        length, size, change,
    ) = visits  # fmt: skip
    sums[place] = 0.0
    for number in range(place * length, min((place + 1) * length, addresses.shape[0])):
        at, n = addresses[number], n_items[number]
        entry_start, start = array_at(at[0], n + 1, of_place), array_at(at[3], n + 1, of_place)
        n_seen, n_codes = entry_start[n], start[n]
        atom = array_at(at[4], n_codes, of_atom)
        mine = slice(first_code[number], first_code[number + 1])
        users = users_start[number], user[mine], user_code[mine]
        if block == 0:
            list_users(start, atom, size, *users)
        visit(
            entry_start, array_at(at[1], n_seen, user), array_at(at[2], n_seen, of_value),
            start, atom, array_at(at[5], n_codes, of_value), *users, block, size, change, sums[place],
        )  # fmt: skip


@kernel
def list_users(start, atom, size, users_start, user, user_code):
    """Which items use which block of ``size`` atoms, and which is their first code in it.

    Block b has the items ``user[j]`` with the codes from ``user_code[j]`` on, in the order of the items, for
    users_start[b] <= j < users_start[b + 1].
    """
    users_start[:] = 0
    width = np.uint32(size)
    for n in range(start.shape[0] - 1):  # no branches: no processor guesses them
        last = np.uint64(_NO_BLOCK)
        for c in range(start[n], start[n + 1]):
            block = np.uint64(np.uint32(atom[c]) // width)
            users_start[block + np.uint64(1)] += block != last
            last = block
    for b in range(1, users_start.shape[0]):
        users_start[b] += users_start[b - 1]
    for n in range(start.shape[0] - 1):  # from the last code to the first, which remains
        last = np.uint64(_NO_BLOCK)
        for c in range(start[n + 1] - 1, start[n] - 1, -1):
            block = np.uint64(np.uint32(atom[c]) // width)
            users_start[block] += block != last
            last = block
            place = np.uint64(users_start[block] - 1)
            user[place], user_code[place] = n, c
    for b in range(users_start.shape[0] - 1, 0, -1):  # the places have moved on to the next block's
        users_start[b] = users_start[b - 1]
    users_start[0] = 0


@kernel
def visit(
    entry_start, entry, residual, start, atom, value, users_start, user, user_code, block, size, change, sums
):  # fmt: skip
    """Add what the items of a shard say of a block of atoms.

    Before that the ``change`` of the block before is taken off the residuals. The users are of `list_users`.
    """
    squares, correlations, products = sums[:size], sums[size : 2 * size], sums[2 * size :]
    first, stop = block * size, (block + 1) * size
    previous = first - size
    for j in range(users_start[max(block - 1, 0)], users_start[block]):
        n, c = np.uint64(user[j]), np.int64(user_code[j])
        begin, n_seen, end = np.uint64(entry_start[n]), entry_start[n + 1] - entry_start[n], start[n + 1]
        while c < end and atom[c] < first:
            k, w = np.uint64(atom[c] - previous), value[c]
            for i in range(n_seen):
                at = begin + np.uint64(i)
                residual[at] -= w * change[k, entry[at]]
            c += 1
    for j in range(users_start[block], users_start[block + 1]):
        n, c = np.uint64(user[j]), np.int64(user_code[j])
        begin, n_seen, end = np.uint64(entry_start[n]), entry_start[n + 1] - entry_start[n], start[n + 1]
        while c < end and atom[c] < stop:
            k, w = np.uint64(atom[c] - first), float(value[c])
            for i in range(n_seen):
                at = begin + np.uint64(i)
                squares[k, entry[at]] += w * w
                correlations[k, entry[at]] += w * residual[at]
            other = c + 1
            while other < end and atom[other] < stop:
                both = w * float(value[other])
                pair = np.uint64(pair_index(np.int64(k), np.int64(atom[other]) - first, size))
                for i in range(n_seen):
                    products[pair, entry[begin + np.uint64(i)]] += both
                other += 1
            c += 1


@kernel
def _add_rows(sums, part):
    """Add what all rows of shards found, in pairs, up to one, in the first; one slice of the sums."""
    n_rows, n_sums, n_entries = sums.shape
    low, high = part * n_sums // _SLICES, (part + 1) * n_sums // _SLICES
    apart = 1
    while apart < n_rows:
        for one in range(0, n_rows - apart, 2 * apart):
            for j in range(low, high):
                for i in range(n_entries):
                    sums[one, j, i] += sums[one + apart, j, i]
        apart *= 2
