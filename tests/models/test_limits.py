"""Limits in which two ways must give one result."""

import dataclasses

import numpy as np
import pytest

import kruskal
from kruskal.engines.threads import ThreadEngine
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, KFA, dictionary
from kruskal.patches import Items
from tests.gibbs.worlds import all_codes


def sparse_data(shape, n_atoms, n_items, seed=0, keep=None):
    """(N, *shape) values made of a few atoms each, and a mask or None."""
    random = np.random.default_rng(seed)
    size = int(np.prod(shape))
    atoms = random.standard_normal((n_atoms, size))
    codes = random.standard_normal((n_items, n_atoms)) * (random.random((n_items, n_atoms)) < 0.3)
    values = (codes @ atoms + 0.1 * random.standard_normal((n_items, size))).reshape(n_items, *shape)
    observed = None if keep is None else random.random(values.shape) < keep
    return values, observed


def run(model, items, state, sweeps, seed=4):
    """States after each sweep, and the codes (N, K) at the end."""
    states = []
    with ThreadEngine(items, threads=1) as engine:
        for number in range(1, sweeps + 1):
            state, _ = model.sweep(state, engine, seed, number)
            states.append(state)
        return states, all_codes(engine.shards, model.n_atoms)


def assert_close(first, second, tolerance):
    for name, one, other in zip(first._fields, first, second):
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("keep", [None, 0.6], ids=["complete", "masked"])
def test_kfa_of_order_and_rank_one_is_bpfa(keep):
    """With the weights fixed to 1. Both draw the same random numbers, so the chains agree to rounding."""
    values, observed = sparse_data((6,), 5, 60, keep=keep)
    items = Items.from_matrix(values, observed)
    common = {"shape": (6,), "n_atoms": 5, "usage_prior": UsagePrior(5.0, 1.0)}
    bpfa, kfa = BPFA(**common), KFA(**common, rank=1, fixed_weights=True)
    first = bpfa.start("random", items, 3)
    second = kfa.start("random", items, 3)._replace(
        dictionary=first.dictionary, factors=first.dictionary[:, :, None].copy()
    )
    np.testing.assert_array_equal(second.weights, 1.0)
    bpfa_states, bpfa_codes = run(bpfa, items, first, 15)
    kfa_states, kfa_codes = run(kfa, items, second, 15)
    np.testing.assert_array_equal(kfa_codes != 0, bpfa_codes != 0)
    np.testing.assert_allclose(kfa_codes, bpfa_codes, rtol=1e-10, atol=1e-11)
    for one, other in zip(bpfa_states, kfa_states):
        np.testing.assert_allclose(other.dictionary, one.dictionary, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(other.log_odds, one.log_odds, rtol=1e-10)
        assert other.noise_precision == pytest.approx(one.noise_precision, rel=1e-10)
        assert other.code_precision == pytest.approx(one.code_precision, rel=1e-10)


MODELS = {
    "bpfa": lambda: BPFA(shape=(3, 3), n_atoms=9, usage_prior=UsagePrior(9.0, 2.0)),
    "kfa": lambda: KFA(shape=(3, 3), n_atoms=9, usage_prior=UsagePrior(9.0, 2.0), rank=2, delay=2),
    "kfa-scalar": lambda: KFA(
        shape=(3, 3), n_atoms=9, usage_prior=UsagePrior(9.0, 2.0), rank=2, blocked=False, collapsed=False
    ),
}


def with_regions(items, n_regions, seed=0):
    """The items spread over regions without any order."""
    region = np.random.default_rng(seed).permutation(np.arange(items.n_items) % n_regions)
    return items._replace(region=region.astype(np.uint16))


@pytest.mark.parametrize("n_regions", [1, 6])
@pytest.mark.parametrize("name", MODELS)
def test_a_mask_that_is_all_true_gives_the_same_chain(name, n_regions):
    """The masked path, forced, against the complete one: statistics in another form, the same draws."""
    values, _ = sparse_data((3, 3), 7, 1500, seed=1)
    model = MODELS[name]()
    items = with_regions(Items.from_matrix(values), n_regions)
    masked = items._replace(observed=np.ones(values.size, bool))
    assert items.complete and not masked.complete
    state = model.start("pca", items, 2)
    complete_states, complete_codes = run(model, items, state, 8)
    masked_states, masked_codes = run(model, masked, state, 8)
    np.testing.assert_array_equal(masked_codes != 0, complete_codes != 0)
    np.testing.assert_allclose(masked_codes, complete_codes, rtol=1e-8, atol=1e-8)
    for one, other in zip(complete_states, masked_states):
        assert_close(one, other, 1e-8)


@pytest.mark.parametrize("name", ["bpfa", "kfa"])
def test_the_block_size_does_not_matter(name, monkeypatch):
    values, observed = sparse_data((3, 3), 7, 1500, seed=2, keep=0.5)
    model, items = MODELS[name](), Items.from_matrix(values, observed)
    state = model.start("random", items, 2)
    results = []
    for size in (1, 4, 16):
        monkeypatch.setattr(dictionary, "block_size", lambda *_, size=size: size)
        results.append(run(model, items, state, 6))
    for states, codes in results[1:]:
        np.testing.assert_allclose(codes, results[0][1], rtol=1e-8, atol=1e-8)
        assert_close(results[0][0][-1], states[-1], 1e-8)


@pytest.mark.parametrize("keep", [None, 0.6], ids=["complete", "masked"])
@pytest.mark.parametrize("name", MODELS)
def test_regions_that_share_their_usage_are_one_region(name, keep):
    """As long as the delay lasts, regions make no difference; after it they do."""
    values, observed = sparse_data((3, 3), 7, 200, seed=3, keep=keep)
    model = dataclasses.replace(MODELS[name](), delay=4)
    one = Items.from_matrix(values, observed)
    several = with_regions(one, 5)
    first, second = model.start("pca", one, 2), model.start("pca", several, 2)
    assert first.log_odds.shape == (1, 9) and second.log_odds.shape == (5, 9)
    for sweeps, equal in ((4, True), (6, False)):
        one_states, one_codes = run(model, one, first, sweeps)
        states, codes = run(model, several, second, sweeps)
        assert np.array_equal(codes, one_codes) == equal
        assert np.array_equal(states[-1].dictionary, one_states[-1].dictionary) == equal
        assert (states[-1].log_odds == one_states[-1].log_odds).all() == equal


@pytest.mark.parametrize("keep", [None, 0.6], ids=["complete", "masked"])
def test_the_names_of_the_regions_do_not_matter(keep):
    """A region whose items use hardly an atom has a small usage, whatever its number."""
    values, observed = sparse_data((3, 3), 7, 600, seed=5, keep=keep)
    quiet = np.arange(600) % 3 == 1
    values[quiet] = 0.01 * np.random.default_rng(1).standard_normal(values[quiet].shape)
    model, items = MODELS["bpfa"](), Items.from_matrix(values, observed)
    for order in ([0, 1, 2], [1, 2, 0]):
        region = np.array(order, np.uint16)[np.arange(600) % 3]
        items = items._replace(region=region)
        states, codes = run(model, items, model.start("pca", items, 2), 30)
        share = np.array([(codes[region == g] != 0).mean() for g in range(3)])
        usage = (1.0 / (1.0 + np.exp(-states[-1].log_odds))).mean(axis=1)
        assert usage.argmin() == share.argmin() == order[1]
        np.testing.assert_allclose(usage, share, atol=0.06)


# ------------------------------------------------------------------------------------- whole restorations


def picture(shape=(40, 40), seed=0):
    """A smooth array with noise, and a mask that keeps 60 %."""
    random = np.random.default_rng(seed)
    axes = np.meshgrid(*[np.linspace(0.0, 3.0, m) for m in shape], indexing="ij")
    clean = np.cos(sum((1 + i) * axis for i, axis in enumerate(axes))) + 0.3 * axes[0]
    return clean, clean + 0.05 * random.standard_normal(shape), random.random(shape) < 0.6


def assert_same_bits(first, second):
    for name in ("mean", "std", "noise_std", "dictionary", "ranks", "usage"):
        np.testing.assert_array_equal(getattr(second, name), getattr(first, name), err_msg=name)
    assert first.trace.keys() == second.trace.keys()
    for name in first.trace:
        np.testing.assert_array_equal(second.trace[name], first.trace[name], err_msg=name)


OPTIONS = {"patch_shape": (5, 5), "n_atoms": 24, "sweeps": 8, "seed": 3, "threads": 1}


@pytest.mark.parametrize("model", ["kfa", "bpfa"])
def test_restoring_with_an_all_true_mask_equals_restoring_without(model):
    _, noisy, _ = picture((20, 18))
    plain = kruskal.inpaint(noisy, model=model, **OPTIONS)
    masked = kruskal.inpaint(noisy, observed=np.ones(noisy.shape, bool), model=model, **OPTIONS)
    assert_same_bits(plain, masked)


@pytest.mark.parametrize("fill", [1e30, -1e30, np.nan, np.inf, 7.0])
def test_values_at_missing_entries_have_no_influence(fill):
    _, noisy, observed = picture((20, 18))
    expected = kruskal.inpaint(np.where(observed, noisy, 0.0), observed=observed, **OPTIONS)
    assert_same_bits(expected, kruskal.inpaint(np.where(observed, noisy, fill), observed=observed, **OPTIONS))
    if np.isnan(fill):
        assert_same_bits(expected, kruskal.inpaint(np.where(observed, noisy, fill), **OPTIONS))


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("model", ["kfa", "bpfa"])
def test_the_number_of_threads_does_not_matter(model, masked):
    """1,296 items are two shards."""
    _, noisy, observed = picture()
    runs = [
        kruskal.inpaint(
            noisy, observed=observed if masked else None, model=model, **(OPTIONS | {"threads": threads})
        )
        for threads in (1, 2)
    ]
    assert runs[0].n_items > 1024
    assert_same_bits(*runs)


@pytest.mark.parametrize("model", ["kfa", "bpfa"])
@pytest.mark.parametrize(
    "shape, patch",
    [
        ((200,), (8,)),
        ((24, 20), (4, 4)),
        ((10, 9, 8), (3, 3, 3)),
        ((6, 5, 6, 5), (2, 2, 3, 2)),
        ((4, 4, 4, 4, 4), (2, 2, 2, 2, 2)),
    ],
)
def test_orders_one_to_five(shape, patch, model):
    """Every order is filled in better than by the mean of what is observed, with a usable uncertainty."""
    clean, noisy, observed = picture(shape)
    result = kruskal.inpaint(
        noisy, observed=observed, model=model, patch_shape=patch, n_atoms=20, sweeps=30, seed=1, threads=1
    )
    assert result.mean.shape == result.std.shape == shape
    assert np.isfinite(result.mean).all() and np.isfinite(result.std).all() and (result.std >= 0).all()
    assert result.dictionary.shape == (20, *patch) and np.isfinite(result.noise_std)
    error = np.sqrt(np.mean((result.mean - clean)[~observed] ** 2))
    assert error < 0.6 * np.std(clean[~observed])
