"""The atom draws: statistics and kernels equal their plain twins, whatever the blocks and the shards."""

import copy
from itertools import pairwise

import numpy as np
import pytest

from kruskal.engines.threads import Threads
from kruskal.gibbs.atoms import AtomNoise, AtomOptions, draw_atoms_complete, pair_index
from kruskal.gibbs.blocks import MaskedAtoms, block_size, list_users, visit
from kruskal.gibbs.codes import draw_codes
from kruskal.gibbs.local import make_shard, shard_bounds
from kruskal.gibbs.statistics import AtomTerms, complete_statistics, complete_sums, sum_in_order
from tests.gibbs import reference as ref
from tests.gibbs.reference import World
from tests.gibbs.test_codes import after
from tests.gibbs.twins import draw_all_atoms
from tests.gibbs.worlds import (
    Case,
    all_codes,
    atom_state,
    cases,
    codes_of,
    make_items,
    make_shards,
    make_strong_world,
    make_world,
    model_of,
)

WAYS = {
    "blocked": AtomOptions(),
    "scalar": AtomOptions(blocked=False),
    "fixed": AtomOptions(fixed_weights=True),
}


def drawn_world(world: World, keep_mask: bool = False):
    """A code draw makes shards consistent: returns them, and the world with the codes that were drawn."""
    shards = make_shards(world, keep_mask=keep_mask)
    for shard in shards:
        draw_codes(shard, model_of(world, keep_mask=keep_mask), seed=1, sweep=1)
    return shards, after(world, all_codes(shards, world.n_atoms))


def many_items_world(rank: int, masked: bool, n_items: int = 2100, n_atoms: int = 18) -> World:
    """Enough items for several shards, enough atoms for several blocks; atom 4 is used by nobody."""
    world = make_world(Case((3, 2), rank, n_atoms, masked), n_items=n_items, seed=2)
    usage = np.full((1, n_atoms), 0.15)
    usage[0, 4] = 1e-12
    used = world.used.copy()
    used[:, 4] = False
    return world.changed(usage=usage, used=used)


def atom_noise(world: World, seed: int = 0) -> AtomNoise:
    random = np.random.default_rng(seed)
    size = sum(world.shape) * world.rank if world.rank else world.n_entries
    return AtomNoise(
        random.standard_normal((world.n_atoms, size)), random.standard_normal((world.n_atoms, world.rank))
    )


def twin_of(world: World, noise: AtomNoise, options: AtomOptions) -> World:
    entries = noise.entries
    if world.rank:
        entries = entries.reshape(world.n_atoms, sum(world.shape), world.rank)
    return draw_all_atoms(world, entries, noise.weights, options.blocked, options.fixed_weights)


def users_of(shard, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists of the items that use each block of ``size`` atoms."""
    n_blocks = -(-(int(shard.codes.atom.max(initial=0)) + 1) // size) + 1
    n_codes = len(shard.codes.atom)
    users = np.empty(n_blocks + 1, np.int64), np.empty(n_codes, np.uint32), np.empty(n_codes, np.uint32)
    list_users(shard.codes.start, shard.codes.atom, size, *users)
    return users


def block_sums(shards, first: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squares, correlations and products of a block over all shards, with the residuals as they are."""
    n_entries = len(shards[0].items.offset)
    sums = np.zeros((2 * size + size * (size - 1) // 2, n_entries))
    nothing = np.zeros((size, n_entries), shards[0].residual.dtype)
    for shard in shards:
        users = users_of(shard, size)
        visit(
            shard.entry_start, shard.entry, shard.residual, *shard.codes, *users, first // size, size,
            nothing, sums,
        )  # fmt: skip
    return sums[:size], sums[size : 2 * size], sums[2 * size :]


def draw_in_blocks(shards, state, world: World, size: int, noise: AtomNoise, options: AtomOptions, past=None):
    """All atoms of masked data in blocks of ``size``, by a leader whom nobody follows; the shards stay."""
    past = AtomTerms.zero(world.n_atoms, world.n_entries) if past is None else past
    MaskedAtoms(copy.deepcopy(shards), state, world.noise_precision, noise, options, past, size).lead(1)


def sweep_blocks(world: World, shards, size: int, noise: AtomNoise, options: AtomOptions):
    """A sweep over the atoms of masked data in blocks of ``size``, as the model does it."""
    state = atom_state(world)
    draw_in_blocks(shards, state, world, size, noise, options)
    return state


def assert_same_atoms(state, world: World, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(state.dictionary, world.atoms, rtol=tolerance, atol=tolerance)
    if world.rank:
        np.testing.assert_allclose(state.weights, world.weights, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(
            state.factors, np.concatenate(world.modes, axis=1), rtol=tolerance, atol=tolerance
        )


# --------------------------------------------------------------------------------------------- statistics


def test_statistics_of_complete_data():
    """C = W W^T and B = W X^T, summed over shards."""
    shards, world = drawn_world(many_items_world(0, masked=False))
    assert len(shards) == 3
    total = sum_in_order([complete_statistics(shard, n_atoms=world.n_atoms) for shard in shards])
    np.testing.assert_allclose(total.code_products, world.codes.T @ world.codes, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(total.data_products, world.codes.T @ world.values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "double", "tolerance"),
    [(np.float32, False, 1e-5), (np.float32, True, 1e-14), (np.float64, False, 1e-14)],
)
def test_statistics_of_many_atoms_and_chunks(dtype, double, tolerance):
    """Atoms and entries that fill no vectors, items that fill no chunk, an atom without users, and sums that
    go on from other shards."""
    n_items, n_atoms, n_entries = 700, 150, 70
    random = np.random.default_rng(3)
    codes = np.where(random.random((n_items, n_atoms)) < 0.1, random.normal(size=(n_items, n_atoms)), 0.0)
    codes[:, 77] = 0.0
    codes, values = codes.astype(dtype), random.normal(size=(n_items, n_entries)).astype(dtype)
    items = make_items(values, np.ones(values.shape, bool), (n_entries,))
    found = None
    for first, stop in ((0, 300), (300, n_items)):
        shard = make_shard(items, first, stop)
        shard.codes = codes_of(codes[first:stop], dtype)
        found = complete_sums(shard, found, n_atoms=n_atoms, double=double)
    total = found.statistics(n_entries)
    w, x = codes.astype(float), values.astype(float)
    np.testing.assert_allclose(total.code_products, w.T @ w, rtol=0, atol=100 * tolerance)
    np.testing.assert_allclose(total.data_products, w.T @ x, rtol=0, atol=100 * tolerance)
    np.testing.assert_array_equal(total.code_products, total.code_products.T)


def test_later_shards_are_smaller():
    """All items are in one shard each, and the last shard, which is begun last, is the smallest."""
    for n_items in (1, 1_024, 1_025, 62_001):
        bounds = shard_bounds(n_items)
        assert bounds[0][0] == 0 and bounds[-1][1] == n_items
        assert all(one[1] == other[0] for one, other in pairwise(bounds))
        sizes = np.diff(bounds)[:, 0]
        assert (sizes > 0).all() and (np.diff(sizes) <= 1).all()


@pytest.mark.parametrize("size", [1, 5, 16])
def test_lists_of_users(size):
    """Every block has the items with a code in it, in order, each once with the first of these codes."""
    shards, _ = drawn_world(many_items_world(0, masked=True))
    for shard in shards:
        start, atom = shard.codes.start, shard.codes.atom
        begins, user, code = users_of(shard, size)
        for block, (begin, stop) in enumerate(pairwise(begins)):
            inside = atom // size == block
            wanted = [
                (n, i + np.argmax(inside[i:j]))
                for n, (i, j) in enumerate(pairwise(start))
                if inside[i:j].any()
            ]
            assert list(zip(user[begin:stop], code[begin:stop])) == wanted
        assert begins[0] == 0


@pytest.mark.parametrize("size", [1, 5, 16])
def test_statistics_of_masked_data(size):
    """q and p of every atom with all atoms as they were: what the first block reports, and later ones too."""
    shards, world = drawn_world(many_items_world(0, masked=True))
    rest = np.where(world.observed, world.values - world.codes @ world.atoms, 0.0)
    for first in range(0, world.n_atoms, size):
        width = min(size, world.n_atoms - first)
        squares, correlations, products = block_sums(shards, first, size)
        block = world.codes[:, first : first + width]
        np.testing.assert_allclose(squares[:width], (block**2).T @ world.observed, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(correlations[:width], block.T @ rest, rtol=1e-9, atol=1e-9)
        for a in range(width):
            for b in range(a + 1, width):
                expected = (block[:, a] * block[:, b]) @ world.observed
                np.testing.assert_allclose(products[pair_index(a, b, size)], expected, rtol=1e-9, atol=1e-9)


def test_statistics_give_the_terms_of_the_conditional():
    """gamma (sum w h + sum w^2 d) and gamma sum w^2 are p and q of (1.2) and (1.1)."""
    shards, world = drawn_world(many_items_world(2, masked=True, n_items=40))
    squares, correlations, _ = block_sums(shards, 0, world.n_atoms)
    for k in range(world.n_atoms):
        q, p = ref.atom_terms(world, k)
        gamma = world.noise_precision
        np.testing.assert_allclose(gamma * squares[k], q, rtol=1e-9, atol=1e-12)
        mixed = gamma * (correlations[k] + squares[k] * world.atoms[k])
        np.testing.assert_allclose(mixed, p, rtol=1e-9, atol=1e-9)


def test_block_size_is_sensible():
    for n_codes in (0, 10, 10_000, 10**8):
        assert 1 <= block_size(256, 64, 16, n_codes, 0.2) <= 16
    assert block_size(256, 64, 16, 10**8, 0.2) > block_size(256, 64, 16, 10, 0.2)
    assert block_size(256, 10**6, 16, 10**8, 0.2) < 16


# -------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("make", [make_world, make_strong_world], ids=["prior", "strong"])
@pytest.mark.parametrize("case", cases((0,)), ids=str)
def test_gaussian_atoms_equal_the_twin(case, make):
    shards, world = drawn_world(make(case))
    noise = atom_noise(world)
    expected = twin_of(world, noise, AtomOptions())
    if case.masked:
        state = sweep_blocks(world, shards, 2, noise, AtomOptions())
    else:
        state = atom_state(world)
        statistics = complete_statistics(shards[0], n_atoms=world.n_atoms)
        draw_atoms_complete(state, statistics, world.noise_precision, noise, AtomOptions())
    assert_same_atoms(state, expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [make_world, make_strong_world], ids=["prior", "strong"])
@pytest.mark.parametrize("case", cases((1, 3)), ids=str)
def test_kruskal_atoms_equal_the_twin(case, make, way):
    shards, world = drawn_world(make(case))
    noise, options = atom_noise(world), WAYS[way]
    expected = twin_of(world, noise, options)
    if case.masked:
        state = sweep_blocks(world, shards, 2, noise, options)
    else:
        state = atom_state(world)
        statistics = complete_statistics(shards[0], n_atoms=world.n_atoms)
        draw_atoms_complete(state, statistics, world.noise_precision, noise, options)
    assert_same_atoms(state, expected)
    if way == "fixed":
        np.testing.assert_array_equal(state.weights, world.weights)


@pytest.mark.parametrize("rank", [0, 2])
def test_any_block_size_gives_the_same_atoms(rank):
    """1 to 16, over several shards; all equal the twin, which knows of neither."""
    shards, world = drawn_world(many_items_world(rank, masked=True))
    noise = atom_noise(world)
    expected = twin_of(world, noise, AtomOptions())
    for size in range(1, 17):
        assert_same_atoms(sweep_blocks(world, shards, size, noise, AtomOptions()), expected)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_team_draws_the_same_atoms(threads):
    """To the last bit, whoever takes which task, also of more threads than tasks; again and again."""
    shards, world = drawn_world(many_items_world(2, masked=True, n_items=9_300))
    assert len(shards) == 10
    noise = atom_noise(world)
    expected = sweep_blocks(world, shards, 4, noise, AtomOptions())
    past = AtomTerms.zero(world.n_atoms, world.n_entries)
    for _ in range(5):
        state = atom_state(world)
        with Threads(copy.deepcopy(shards), threads) as engine:
            engine.together(
                lambda all_shards, state=state: MaskedAtoms(
                    all_shards, state, world.noise_precision, noise, AtomOptions(), past, 4
                )
            )
        np.testing.assert_array_equal(state.dictionary, expected.dictionary)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_mask_that_is_all_true_draws_the_same_atoms(rank, way):
    """The masked and the complete path, both given the same codes."""
    world = many_items_world(rank, masked=False)
    shards, world = drawn_world(world)
    masked_shards, same = drawn_world(many_items_world(rank, masked=False), keep_mask=True)
    np.testing.assert_allclose(same.codes, world.codes, rtol=1e-8, atol=1e-8)
    noise, options = atom_noise(world), WAYS[way]
    state = atom_state(world)
    statistics = sum_in_order([complete_statistics(shard, n_atoms=world.n_atoms) for shard in shards])
    draw_atoms_complete(state, statistics, world.noise_precision, noise, options)
    other = sweep_blocks(world, masked_shards, 4, noise, options)
    np.testing.assert_allclose(other.dictionary, state.dictionary, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.factors, state.factors, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.weights, state.weights, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("rank", [0, 2])
def test_an_atom_without_users_is_a_draw_from_its_prior(rank, masked):
    shards, world = drawn_world(many_items_world(rank, masked))
    assert not world.used[:, 4].any() and world.used[:, 3].any()
    noise = atom_noise(world)
    if masked:
        state = sweep_blocks(world, shards, 4, noise, AtomOptions())
    else:
        state = atom_state(world)
        statistics = sum_in_order([complete_statistics(shard, n_atoms=world.n_atoms) for shard in shards])
        draw_atoms_complete(state, statistics, world.noise_precision, noise, AtomOptions())
    if rank == 0:
        expected = noise.entries[4] / np.sqrt(world.n_entries)
        np.testing.assert_allclose(state.dictionary[4], expected, rtol=1e-12)
    else:
        sizes = np.repeat(world.shape, world.shape)
        expected = noise.entries[4].reshape(-1, rank) / np.sqrt(sizes)[:, None]
        np.testing.assert_allclose(state.factors[4], expected, rtol=1e-12)
        np.testing.assert_allclose(state.weights[4], noise.weights[4] / np.sqrt(world.tau[4]), rtol=1e-12)


@pytest.mark.parametrize("way", ["blocked", "scalar"])
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_shrinkage_beyond_the_range_of_floats_is_harmless(masked, way):
    """tau up to 1e6^R and beyond: weights go to zero, nothing overflows, unshrunk terms stay the twin's."""
    shards, world = drawn_world(many_items_world(4, masked, n_items=60))
    noise = atom_noise(world)
    state = atom_state(world)
    log_precision = np.zeros_like(world.weights) + np.array([0.0, 30.0, 500.0, 900.0])
    state = state._replace(log_precision=log_precision)
    if masked:
        draw_in_blocks(shards, state, world, world.n_atoms, noise, WAYS[way])
    else:
        statistics = sum_in_order([complete_statistics(shard, n_atoms=world.n_atoms) for shard in shards])
        draw_atoms_complete(state, statistics, world.noise_precision, noise, WAYS[way])
    assert all(np.isfinite(array).all() for array in state)
    assert np.abs(state.weights[:, 2:]).max() < 1e-80
    assert np.abs(state.weights[:, 0]).min() > 1e-6
