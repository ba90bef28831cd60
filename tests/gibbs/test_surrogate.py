"""What is remembered of items: sums against plain NumPy, and what makes it exact."""

from functools import partial

import numpy as np
import pytest

from kruskal.gibbs.atoms import (
    AtomNoise,
    AtomOptions,
    draw_atoms_complete,
    draw_atoms_pairs,
)
from kruskal.gibbs.local import join_codes, pick_codes, split, split_codes
from kruskal.gibbs.pair_sums import (
    PARTS,
    PairStatistics,
    add_pairs,
    data_squares,
    pair_bytes,
    pair_row,
    residual_squares,
)
from kruskal.gibbs.statistics import AtomTerms, complete_statistics, sum_in_order
from kruskal.gibbs.surrogate import Filtered, Incremental, Sums, present_sums, present_terms
from tests.gibbs.test_atoms import draw_in_blocks
from tests.gibbs.worlds import (
    Case,
    atom_state,
    codes_of,
    dense_codes,
    make_items,
    make_shards,
    make_strong_world,
)

MASKED = Case((3, 2), 2, 3, True)
COMPLETE = Case((3, 2), 2, 3, False)


def pairs_of(shards, n_atoms=3, n_entries=6, sign=1.0):
    statistics = PairStatistics.zero(n_atoms, n_entries)
    for part in range(PARTS):
        for shard in shards:
            add_pairs(shard, part, statistics, sign)
    return statistics


def noise_of(world, seed=0):
    random = np.random.default_rng(seed)
    n_entries = sum(world.shape) * world.rank if world.rank else world.observed.shape[1]
    return AtomNoise(
        random.standard_normal((world.n_atoms, n_entries)),
        random.standard_normal((world.n_atoms, world.rank)),
    )


def test_rows_of_pairs():
    rows = [pair_row(k, other, 5) for k in range(5) for other in range(k, 5)]
    assert rows == list(range(15))
    assert pair_row(3, 1, 5) == pair_row(1, 3, 5)
    zero = PairStatistics.zero(5, 7)
    assert zero.products.nbytes + zero.data_products.nbytes == pair_bytes(5, 7)


def test_pair_sums():
    """Every pair at every entry, and with the data; taking the items out leaves nothing."""
    world = make_strong_world(MASKED)
    shards = make_shards(world)
    found = pairs_of(shards)
    omega, w = world.observed.astype(float), world.codes
    for k in range(3):
        for other in range(k, 3):
            expected = (omega * (w[:, k] * w[:, other])[:, None]).sum(axis=0)
            np.testing.assert_allclose(found.products[pair_row(k, other, 3)], expected, rtol=1e-12)
    np.testing.assert_allclose(found.data_products, w.T @ (omega * world.values), rtol=1e-12)
    np.testing.assert_allclose(found.products, -pairs_of(shards, sign=-1.0).products)
    assert (found.products[pair_row(0, 2, 3)] != 0).any()


@pytest.mark.parametrize("case", [MASKED, COMPLETE], ids=str)
def test_residuals_from_sums(case):
    """(3.2), for atoms that are not those of the codes."""
    world = make_strong_world(case)
    shards = make_shards(world)
    atoms = world.atoms + 0.3
    squares = sum(map(data_squares, shards))
    assert squares == pytest.approx((world.values[world.observed] ** 2).sum())
    if case.masked:
        statistics = pairs_of(shards)
    else:
        statistics = sum_in_order([complete_statistics(shard, n_atoms=3) for shard in shards])
    rest = (world.values - world.codes @ atoms)[world.observed]
    assert residual_squares(atoms, statistics, squares) == pytest.approx((rest**2).sum(), rel=1e-12)
    assert residual_squares(np.zeros_like(atoms), statistics, 0.0) == 0.0


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("noise", [1e-3, 1e-5])
def test_residuals_of_single_precision_data_from_sums(noise, masked):
    """(3.2) of data and codes of single precision, fitted almost perfectly: the differences are double."""
    random = np.random.default_rng(1)
    n_items, n_atoms, n_entries = 2000, 20, 24
    weights = random.standard_normal((n_items, n_atoms)) * (random.random((n_items, n_atoms)) < 0.3)
    atoms = random.standard_normal((n_atoms, n_entries))
    weights = weights.astype(np.float32)
    values = weights @ atoms + noise * random.standard_normal((n_items, n_entries))
    values = values.astype(np.float32)
    observed = random.random(values.shape) < 0.8 if masked else np.ones(values.shape, bool)
    shards = split(make_items(values, observed, (n_entries,)))
    for shard in shards:
        shard.codes = codes_of(weights[shard.first : shard.first + shard.n_items], np.float32)
    if masked:
        statistics = pairs_of(shards, n_atoms, n_entries)
    else:
        statistics = sum_in_order([complete_statistics(shard, n_atoms=n_atoms) for shard in shards])
    squares = sum(map(data_squares, shards))
    direct = ((values.astype(float) - weights.astype(float) @ atoms)[observed] ** 2).sum()
    assert len(shards) > 1 and direct < 0.1 * noise * squares
    assert residual_squares(atoms, statistics, squares) == pytest.approx(direct, abs=1e-13 * squares)


def test_residuals_are_never_below_rounding():
    """Of items that are fitted perfectly a difference of large numbers is left, of either sign."""
    world = make_strong_world(MASKED)
    world = world.changed(values=world.codes @ world.atoms)
    shards = make_shards(world)
    squares = sum(map(data_squares, shards))
    assert 0.0 < residual_squares(world.atoms, pairs_of(shards), squares) <= 1.01e-12 * squares


@pytest.mark.parametrize("rank", [0, 2], ids=["gaussian", "kruskal"])
def test_three_forms_draw_the_same_atoms(rank):
    """In blocks, from pair sums, and, with a mask that is true everywhere, from the sums of complete data."""
    for case in (MASKED._replace(rank=rank), COMPLETE._replace(rank=rank)):
        world = make_strong_world(case)
        noise, options = noise_of(world), AtomOptions()
        shards = make_shards(world, keep_mask=True)
        blocks, pairs = atom_state(world), atom_state(world)
        for shard in shards:
            shard.residual[:] = (world.values - world.codes @ world.atoms)[world.observed]
        draw_in_blocks(shards, blocks, world, 2, noise, options)
        draw_atoms_pairs(pairs, pairs_of(shards), world.noise_precision, noise, options)
        np.testing.assert_allclose(pairs.dictionary, blocks.dictionary, rtol=1e-10)
        assert np.abs(pairs.dictionary - world.atoms).min() > 0
        if not case.masked:
            complete = atom_state(world)
            statistics = sum_in_order([complete_statistics(shard, n_atoms=3) for shard in make_shards(world)])
            draw_atoms_complete(complete, statistics, world.noise_precision, noise, options)
            np.testing.assert_allclose(pairs.dictionary, complete.dictionary, rtol=1e-10)


@pytest.mark.parametrize("case", [MASKED, COMPLETE, MASKED._replace(rank=0)], ids=str)
def test_present_terms(case):
    """sum omega w x~ and sum omega w^2 as the definition has them."""
    world = make_strong_world(case)
    terms = sum_in_order([present_terms(shard, world.atoms) for shard in make_shards(world)])
    omega, w = world.observed.astype(float), world.codes
    for k in range(3):
        without = world.values - w @ world.atoms + np.outer(w[:, k], world.atoms[k])
        np.testing.assert_allclose(terms.linear[k], (omega * w[:, [k]] * without).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(terms.quadratic, (w**2).T @ omega)
    rest = omega * (world.values - w @ world.atoms)
    assert terms.residual_squares == pytest.approx((rest**2).sum())


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "complete"])
def test_terms_of_other_items_count_as_items(masked):
    """One atom: half of the items at hand, the terms of the others, give the draw from all items."""
    world = make_strong_world(Case((3, 2), 2, 1, masked))
    noise, options = noise_of(world), AtomOptions()
    halves = []
    for here in (slice(0, 3), slice(3, 6), slice(0, 6)):
        part = world.changed(
            values=world.values[here], observed=world.observed[here], used=world.used[here],
            slab=world.slab[here], region=world.region[here],
        )  # fmt: skip
        (shard,) = make_shards(part, keep_mask=masked)
        if masked:
            shard.residual[:] = (part.values - part.codes @ part.atoms)[part.observed]
        halves.append(shard)
    past = AtomTerms(*present_terms(halves[1], world.atoms)[:2])
    states = [atom_state(world), atom_state(world)]
    for state, shard, terms in zip(states, (halves[0], halves[2]), (past, None)):
        if masked:
            draw_in_blocks([shard], state, world, 1, noise, options, terms)
        else:
            statistics = complete_statistics(shard, n_atoms=1)
            draw_atoms_complete(state, statistics, world.noise_precision, noise, options, terms)
    np.testing.assert_allclose(states[0].dictionary, states[1].dictionary, rtol=1e-10)


def test_past_terms_with_gaps_under_complete_items():
    """A stream may bring masked items first and complete ones later: q is then not one number per atom."""
    world = make_strong_world(COMPLETE)
    noise, options = noise_of(world), AtomOptions()
    past = AtomTerms.zero(3, 6)
    past.quadratic[:] = np.arange(18).reshape(3, 6)
    statistics = sum_in_order([complete_statistics(shard, n_atoms=3) for shard in make_shards(world)])
    state, twin = atom_state(world), atom_state(world)
    draw_atoms_complete(state, statistics, world.noise_precision, noise, options, past)
    pairs = pairs_of(make_shards(world, keep_mask=True))
    for k in range(3):
        pairs.products[pair_row(k, k, 3)] += past.quadratic[k]
    draw_atoms_pairs(twin, pairs, world.noise_precision, noise, options)
    np.testing.assert_allclose(state.dictionary, twin.dictionary, rtol=1e-10)


def filtered(seed):
    random = np.random.default_rng(seed)
    sums = Sums(random.integers(1, 9, 2), 7, random.integers(1, 9, (2, 3)), random.random(3), 2.5)
    return Filtered(sums, AtomTerms(random.random((3, 4)), random.random((3, 4))))


def leaves(memory):
    return [*memory.sums, *memory.terms]


def test_forgetting_scales_everything_alike():
    memory = filtered(1)
    for part, whole in zip(leaves(memory.forgotten(0.25)), leaves(memory)):
        np.testing.assert_allclose(part, 0.25 * np.asarray(whole))


def test_a_batch_is_replaced_by_its_new_terms():
    one, other, new = filtered(1), filtered(2), filtered(3)
    memory = Incremental(one.plus(other), one.sums, (one, other))
    rest = memory.without(1)
    for part, whole in zip(leaves(rest), leaves(one)):
        np.testing.assert_allclose(part, whole)
    after = memory.replaced(1, rest, new, new.sums)
    assert after.parts == (one, new) and after.recent is new.sums
    for part, whole in zip(leaves(after.total), leaves(one.plus(new))):
        np.testing.assert_allclose(part, whole)


def test_present_sums():
    world = make_strong_world(MASKED, n_regions=3)
    counts, squares = sum_in_order([present_sums(shard, 3, 3) for shard in make_shards(world)])
    for region in range(3):
        np.testing.assert_array_equal(counts[region], world.used[world.region == region].sum(axis=0))
    np.testing.assert_allclose(squares, (world.codes**2).sum(axis=0))


def test_codes_are_joined_split_and_picked():
    random = np.random.default_rng(0)
    weights = random.standard_normal((7, 4)) * (random.random((7, 4)) < 0.4)
    weights[2] = 0.0
    codes = codes_of(weights)
    parts = split_codes(codes, [2, 0, 4, 1])
    assert [len(part.start) - 1 for part in parts] == [2, 0, 4, 1] and parts[2].start[0] == 0
    for one, other in zip(join_codes(parts), codes):
        np.testing.assert_array_equal(one, other)
    chosen = np.array([6, 0, 2, 3])
    np.testing.assert_array_equal(dense_codes(pick_codes(codes, chosen), 4), weights[chosen])


def test_parts_of_pair_sums_do_not_meet():
    """Every number is touched by one part only, so that threads need no lock."""
    world = make_strong_world(MASKED)
    touched = []
    for part in range(PARTS):
        statistics = PairStatistics.zero(3, 6)
        for shard in make_shards(world):
            partial(add_pairs, statistics=statistics, sign=1.0)(shard, part)
        touched.append(np.concatenate([(array != 0).ravel() for array in statistics]))
    assert np.sum(touched, axis=0).max() == 1
