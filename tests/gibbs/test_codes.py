"""The code draw: equal to its plain twin, and exact in distribution also where pairs are skipped unseen."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2, kstest, norm, poisson

from kruskal.gibbs.codes import code_model, draw_codes
from kruskal.gibbs.local import Codes, split
from kruskal.gibbs.pairs import SLACK, lower_log_uniform, staying_bar, surely_changes
from kruskal.gibbs.slabs import draw_slabs
from tests.gibbs import reference as ref
from tests.gibbs.reference import World
from tests.gibbs.twins import draw_all_codes, pair_uniform
from tests.gibbs.worlds import all_codes, dense_codes, make_items, make_shards, model_of

ODDS = {
    "rare": (1e-6, 0.02),  # most pairs are skipped
    "mixed": (1e-3, 0.9),
    "common": (0.9, 1.0 - 1e-9),
}


def code_world(
    n_atoms, shape, n_items, odds="mixed", masked=False, noise_precision=3.0, seed=0, n_regions=1
) -> World:
    """Data made of the atoms themselves, with usages spread over ``odds``; an item may be unobserved.

    Every region has the same usages in another order; items lie in the regions without any order.
    """
    random = np.random.default_rng([seed, n_atoms, n_items, *shape, masked])
    n_entries = int(np.prod(shape))
    low, high = logit(np.array(ODDS[odds]))
    usage = expit(np.linspace(low, high, n_atoms) if n_atoms > 1 else np.array([0.5 * (low + high)]))
    atoms = random.standard_normal((n_atoms, n_entries)) / np.sqrt(n_entries)
    slab = random.standard_normal((n_items, n_atoms))
    used = random.random((n_items, n_atoms)) < min(0.5, 3.0 / n_atoms)
    noise = random.standard_normal((n_items, n_entries)) / np.sqrt(noise_precision)
    observed = np.ones((n_items, n_entries), bool)
    if masked:
        observed = random.random((n_items, n_entries)) < 0.5
        observed[n_items // 2] = False
        observed[0] = True
    return World(
        shape, (slab * used) @ atoms + noise, observed, slab, used, atoms, np.zeros((n_atoms, 0)), [],
        np.zeros((n_atoms, 0)), 1.0, random.permutation(np.arange(n_items) % n_regions),
        np.array([random.permutation(usage) for _ in range(n_regions)]), usage, 1.0, 0.8, noise_precision,
    )  # fmt: skip


def after(world: World, codes: np.ndarray) -> World:
    """The world with other codes."""
    return world.changed(slab=codes, used=codes != 0.0)


@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "uncollapsed"])
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize(
    "n_atoms, shape, n_regions",
    [(1, (3, 2), 1), (5, (1,), 2), (33, (5, 3), 3), (70, (8, 2), 1), (200, (2, 3, 2), 5)],
)
def test_kernel_draws_what_the_twin_draws(n_atoms, shape, n_regions, odds, masked, collapsed):
    """Two sweeps: from codes of no particular origin, then from the codes that the kernel itself drew."""
    world = code_world(n_atoms, shape, 14, odds, masked, n_regions=n_regions)
    (shard,) = make_shards(world)
    for sweep in (1, 2):
        expected = draw_all_codes(world, seed=5, sweep=sweep, collapsed=collapsed)
        drawn = draw_codes(shard, model_of(world), seed=5, sweep=sweep, collapsed=collapsed)
        codes = dense_codes(shard.codes, n_atoms)
        np.testing.assert_array_equal(codes != 0.0, expected != 0.0)
        np.testing.assert_allclose(codes, expected, rtol=1e-10, atol=1e-10)
        counts = [(expected[world.region == g] != 0.0).sum(axis=0) for g in range(n_regions)]
        np.testing.assert_array_equal(drawn, counts)
        world = after(world, expected)
    if n_atoms >= 33 and odds != "rare":
        assert 0 < np.count_nonzero(codes) < codes.size


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_items_of_later_shards_have_their_own_random_numbers(masked):
    """More than one shard, more than one chunk: items are addressed by their number among all items."""
    world = code_world(6, (2, 2), 1100, "mixed", masked, n_regions=4)
    shards = make_shards(world)
    assert len(shards) > 1
    drawn = [draw_codes(shard, model_of(world), seed=3, sweep=4) for shard in shards]
    expected = draw_all_codes(world, seed=3, sweep=4)
    np.testing.assert_allclose(all_codes(shards, 6), expected, rtol=1e-10, atol=1e-10)
    counts = [(expected[world.region == g] != 0.0).sum(axis=0) for g in range(4)]
    np.testing.assert_array_equal(np.sum(drawn, axis=0), counts)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_a_shard_need_not_have_items_in_every_region(masked):
    """Not even in the last one: the number of regions is that of the log odds."""
    world = code_world(6, (2, 2), 30, "mixed", masked, n_regions=3)
    world = world.changed(region=np.ones(30, int))
    (shard,) = make_shards(world)
    assert shard.items.n_regions == 2
    drawn = draw_codes(shard, model_of(world), seed=3, sweep=4)
    expected = draw_all_codes(world, seed=3, sweep=4)
    np.testing.assert_allclose(dense_codes(shard.codes, 6), expected, rtol=1e-10, atol=1e-10)
    nobody = np.zeros(6)
    np.testing.assert_array_equal(drawn, [nobody, (expected != 0.0).sum(axis=0), nobody])


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "uncollapsed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_odds_of_any_size(dtype, masked, collapsed):
    """Usages whose probability is 0 or 1 in floating point: all or nothing, and nothing overflows."""
    world = code_world(5, (3, 2), 40, "mixed", masked, n_regions=2)
    log_odds = np.array([[-1e300, -1e5, 0.0, 1e5, 1e300], [1e300, 1e5, 0.0, -1e5, -1e300]])
    (shard,) = make_shards(world, dtype)
    model = model_of(world, dtype)._replace(log_odds=log_odds)
    with np.errstate(all="raise"):
        draw_codes(shard, model, seed=3, sweep=1, collapsed=collapsed)
    used = dense_codes(shard.codes, 5) != 0.0
    for g in range(2):
        here = used[world.region == g]
        assert here[:, log_odds[g] > 0].all() and not here[:, log_odds[g] < 0].any()
    assert 0 < used[:, 2].sum() < 40


@pytest.mark.parametrize("noise_precision", [1e-6, 1e4, 1e8])
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_kernel_at_extreme_noise(masked, noise_precision):
    """The bound that decides what may be skipped must hold for hardly any and for a lot of information."""
    world = code_world(40, (4, 3), 12, "rare", masked, noise_precision)
    (shard,) = make_shards(world)
    expected = draw_all_codes(world, seed=8, sweep=1)
    draw_codes(shard, model_of(world), seed=8, sweep=1)
    codes = dense_codes(shard.codes, 40)
    np.testing.assert_array_equal(codes != 0.0, expected != 0.0)
    np.testing.assert_allclose(codes, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_single_precision_agrees_with_double(masked):
    """Same random numbers: a pair may differ only where rounding tips a decision, which is rare."""
    world = code_world(64, (4, 4), 300, "mixed", masked)
    codes = {}
    for dtype in (np.float32, np.float64):
        (shard,) = make_shards(world, dtype)
        draw_codes(shard, model_of(world, dtype), seed=2, sweep=1)
        assert shard.codes.value.dtype == dtype
        codes[dtype] = dense_codes(shard.codes, 64)
    same = ((codes[np.float32] != 0) == (codes[np.float64] != 0)).all(axis=1)
    assert same.mean() > 0.99
    np.testing.assert_allclose(codes[np.float32][same], codes[np.float64][same], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "uncollapsed"])
def test_more_codes_than_room_was_made_for(masked, collapsed):
    """Every pair in use: far more codes than the kernel first makes room for."""
    world = code_world(120, (3,), 40, "common", masked)
    (shard,) = make_shards(world.changed(used=np.zeros_like(world.used)))
    drawn = draw_codes(shard, model_of(world), seed=2, sweep=1, collapsed=collapsed)
    expected = draw_all_codes(world.changed(used=np.zeros_like(world.used)), 2, 1, collapsed)
    assert drawn.sum() == np.count_nonzero(expected) > 3000
    np.testing.assert_allclose(dense_codes(shard.codes, 120), expected, rtol=1e-9, atol=1e-9)


EDGES = [  # (item, atom of 64) of sweep 34, seed 0, and the first 16 bits of the uniform of that pair
    (1919337, 50, 0), (1444532, 50, 0), (1157794, 48, 1), (988, 62, 0xFFFF), (7, 20, None),
]  # fmt: skip


@pytest.mark.parametrize("side", [1.0 + 1e-6, 1.0 - 1e-6], ids=["above", "below"])
@pytest.mark.parametrize("item, k, first", EDGES)
@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("used", [False, True], ids=["unused", "in use"])
def test_pairs_are_decided_by_all_bits_of_their_uniform(item, k, first, used, masked, side):
    """Odds of the change just above the pair's uniform: z must change; just below: it must not."""
    uniform = pair_uniform(k, 64, item, 34, seed=0)
    assert first is None or int(uniform * 2.0**16) == first
    log_odds = np.full((1, 64), -50.0)
    log_odds[0, k] = np.log(side * uniform) * (-1.0 if used else 1.0)
    observed = np.array([[True, not masked]])
    (shard,) = split(make_items(np.zeros((1, 2)), observed, (2,)))
    shard.first = item
    if used:
        shard.codes = Codes(np.array([0, 1]), np.array([k], np.uint16), np.array([0.5]))
    model = code_model(np.zeros((64, 2)), log_odds, 1.0, 1.0, np.dtype(np.float64), not masked)
    counts = draw_codes(shard, model, seed=0, sweep=34)
    assert counts[0, k] == ((side > 1.0) != used)


@pytest.mark.parametrize("base", [-12.0, -100.0, 7.0])
@pytest.mark.parametrize("in_use", [False, True], ids=["unused", "in use"])
def test_bars_of_all_first_bits(in_use, base):
    """Beyond the bar there is every change, however large or small u is; and sure changes are changes.

    log odds = base + square, so that an unused atom comes where the square exceeds log u - base and one in
    use goes where it is below -log u - base. Both are looked at at the ends of every cell.
    """
    bits = np.arange(1 << 16).astype(np.uint16)
    slope, level = np.float32(1.0), np.float32(-(2.0 * base + SLACK) * 0.5)
    ends = np.log((np.arange(1 << 16) + np.array([[1e-9], [1.0]])) / 2.0**16)
    lowest, highest = (-ends[::-1] if in_use else ends) - base
    for b, low, high in zip(bits, lowest, highest):
        bar = staying_bar(b, slope, level) if in_use else slope * lower_log_uniform(b) + level
        if in_use:
            assert bar >= high
            assert not surely_changes(1, np.float32(low), b, bar, slope, level)
        else:
            assert bar <= low
            assert not surely_changes(0, np.float32(high), b, bar, slope, level)
    sure = [
        surely_changes(
            int(in_use), np.float32(low - 0.1 if in_use else high + 0.1), b,
            staying_bar(b, slope, level) if in_use else slope * lower_log_uniform(b) + level, slope, level,
        )
        for b, low, high in zip(bits, lowest, highest)
    ]  # fmt: skip
    assert np.mean(sure) > 0.99


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_that_is_not_a_number_is_dropped(dtype, masked):
    """Such as a singular system may leave behind: the item has finite codes again after one sweep."""
    world = code_world(33, (5, 3), 14, "mixed", masked)
    (shard,) = make_shards(world, dtype)
    value = shard.codes.value.copy()
    value[0] = np.nan
    shard.codes = shard.codes._replace(value=value)
    first = shard.codes.start[:2]
    draw_codes(shard, model_of(world, dtype), seed=5, sweep=1)
    assert first[1] > first[0] and np.isfinite(shard.codes.value).all()


# ------------------------------------------------------------------------------------ in distribution


def separate_atoms(masked: bool):
    """Atoms with disjoint supports: the pairs of an item are independent, their probabilities known.

    Returns the shards of many equal items, the code model, and for every atom P(z=1), mean and precision.
    """
    n_atoms, n_items = 60, 20_000
    random = np.random.default_rng(4)
    sizes = random.uniform(0.3, 2.0, n_atoms)
    observed = np.ones(n_atoms + 1, bool)
    observed[-1] = not masked  # an entry that no atom touches
    values = np.append(random.standard_normal(n_atoms), 0.5)
    atoms = np.hstack([np.diag(sizes), np.zeros((n_atoms, 1))])
    usage = expit(np.linspace(-7.0, 2.0, n_atoms))
    items = make_items(np.tile(values, (n_items, 1)), np.tile(observed, (n_items, 1)), (n_atoms + 1,))
    c, linear = 2.0 * sizes**2, 2.0 * sizes * values[:-1]
    log_odds = [ref.logit_collapsed(usage[k], 0.7, c[k], linear[k]) for k in range(n_atoms)]
    model = code_model(atoms, logit(usage)[None], 0.7, 2.0, np.dtype(np.float64), items.complete)
    return split(items), model, expit(log_odds), linear / (0.7 + c), 0.7 + c


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("collapsed", [True, False], ids=["collapsed", "uncollapsed"])
def test_inclusion_frequencies(masked, collapsed):
    """Counts of 60 atoms in 20,000 equal items, two sweeps, by chi-square; rare and common atoms alike.

    Codes from their posterior stay in it, and the collapsed form changes z as often as it should.
    """
    shards, model, probability, mean, precision = separate_atoms(masked)
    assert (probability < 0.02).sum() > 15 and (probability > 0.5).sum() > 5
    random = np.random.default_rng(5)
    before = []
    for shard in shards:
        used = random.random((shard.n_items, len(mean))) < probability
        codes = np.where(used, mean + random.standard_normal(used.shape) / np.sqrt(precision), 0.0)
        shard.codes = dense_to_sparse(codes)
        before.append(used)
    was_used = np.concatenate(before)
    for sweep in (1, 2):
        for shard in shards:
            draw_codes(shard, model, seed=1, sweep=sweep, collapsed=collapsed)
        codes = np.concatenate([sparse_to_dense(shard.codes, len(mean)) for shard in shards])
        used = codes != 0.0
        n_items = len(codes)
        deviation = used.sum(axis=0) - n_items * probability
        statistic = (deviation**2 / (n_items * probability * (1.0 - probability))).sum()
        assert chi2.sf(statistic, len(mean)) > 1e-4
        if collapsed:
            share = 2.0 * np.minimum(probability, 1.0 - probability)
            deviation = (used != was_used).sum(axis=0) - n_items * share
            statistic = (deviation**2 / (n_items * share * (1.0 - share) + 1.0)).sum()
            assert chi2.sf(statistic, len(mean)) > 1e-4
        was_used = used
        standard = (codes - mean) * np.sqrt(precision)
        assert kstest(standard[used], norm.cdf).pvalue > 1e-4
        # neighbouring atoms are independent, and so are neighbouring items
        products = used - probability
        products /= np.sqrt(probability * (1.0 - probability))
        correlations = (products[:, 1:] * products[:, :-1]).sum(axis=0) / np.sqrt(n_items)
        together = n_items * probability[1:] * probability[:-1]  # expected: a few make no normal deviate
        assert (together > 10).sum() > 10 and np.abs(correlations[together > 10]).max() < 5.0
        rare = (used[:, 1:] & used[:, :-1]).sum(axis=0)[together <= 10]
        assert poisson.sf(rare - 1, together[together <= 10]).min() > 1e-6
        both_items = (products[1:] * products[:-1]).sum() / np.sqrt(products[1:].size)
        assert abs(both_items) < 4.5


def dense_to_sparse(dense) -> Codes:
    item, atom = np.nonzero(dense)
    start = np.searchsorted(item, np.arange(len(dense) + 1))
    return Codes(start.astype(np.int64), atom.astype(np.uint16), dense[item, atom])


def sparse_to_dense(codes, n_atoms):
    """Fast `dense_codes`."""
    dense = np.zeros((len(codes.start) - 1, n_atoms))
    dense[np.repeat(np.arange(len(dense)), np.diff(codes.start)), codes.atom] = codes.value
    return dense


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize(
    "collapsed, joint",
    [(True, True), (False, True), (False, False)],
    ids=["collapsed", "uncollapsed", "uncollapsed, single"],
)
def test_posterior_of_overlapping_atoms(masked, collapsed, joint):
    """Three correlated atoms: after many sweeps the patterns z have their exact posterior probabilities."""
    n_items, n_entries = 10_000, 5
    random = np.random.default_rng(11)
    atoms = random.standard_normal((3, n_entries)) + 0.7
    values = 0.6 * atoms[0] - 0.4 * atoms[2] + 0.5 * random.standard_normal(n_entries)
    usage, code_precision, noise_precision = np.array([0.4, 0.01, 0.2]), 1.3, 1.0
    observed = np.array([True, True, not masked, True, True])
    exact = []
    patterns = list(itertools.product([False, True], repeat=3))
    for pattern in patterns:
        used = np.array(pattern)
        design = atoms[used][:, observed]
        covariance = np.eye(int(observed.sum())) / noise_precision + design.T @ design / code_precision
        prior = np.where(used, np.log(usage), np.log1p(-usage)).sum()
        exact.append(prior + ref.log_gaussian_vector(values[observed], 0.0 * values[observed],
                                                     np.linalg.inv(covariance)))  # fmt: skip
    exact = np.exp(np.array(exact) - np.logaddexp.reduce(exact))
    items = make_items(np.tile(values, (n_items, 1)), np.tile(observed, (n_items, 1)), (n_entries,))
    log_odds = logit(usage)[None]
    model = code_model(atoms, log_odds, code_precision, noise_precision, np.dtype(np.float64), items.complete)
    shards = split(items)
    for sweep in range(1, 40):
        for shard in shards:
            draw_codes(shard, model, seed=6, sweep=sweep, collapsed=collapsed)
            if joint:
                draw_slabs(shard, model, seed=6, sweep=sweep)
    codes = np.concatenate([sparse_to_dense(shard.codes, 3) for shard in shards])
    used = codes != 0.0
    counts = np.bincount(used @ np.array([4, 2, 1]), minlength=8)
    statistic = ((counts - n_items * exact) ** 2 / (n_items * exact)).sum()
    assert chi2.sf(statistic, 7) > 1e-4, (counts, n_items * exact)
    design = atoms[:, observed]
    for pattern in patterns:  # and their slabs the joint normal distribution
        here, active = (used == pattern).all(axis=1), np.array(pattern)
        if active.any() and here.sum() > 200:
            part = design[active]
            precision = code_precision * np.eye(len(part)) + noise_precision * part @ part.T
            mean = np.linalg.solve(precision, noise_precision * part @ values[observed])
            off = codes[here][:, active] - mean
            distance = np.einsum("na,ab,nb->n", off, precision, off)
            assert kstest(distance, chi2(active.sum()).cdf).pvalue > 1e-4
            standard = off @ np.linalg.cholesky(precision)
            assert kstest(standard.ravel(), norm.cdf).pvalue > 1e-4
