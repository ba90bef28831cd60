"""A sweep as a function: pure, consistent, and doing what its options say."""

import numpy as np
import pytest
from scipy.special import expit

from kruskal.engines.threads import ThreadEngine
from kruskal.errors import InputError
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.shrinkage import alpha_mode, alpha_statistics
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, KFA
from kruskal.patches import Items
from kruskal.tensor import compose
from tests.gibbs.worlds import all_codes
from tests.models.test_limits import run, sparse_data, with_regions


def make_kfa(**options):
    return KFA(**({"shape": (3, 2), "n_atoms": 6, "usage_prior": UsagePrior(6.0, 1.0), "rank": 2} | options))


def make_bpfa(**options):
    return BPFA(**({"shape": (3, 2), "n_atoms": 6, "usage_prior": UsagePrior(6.0, 1.0)} | options))


def make_items(keep=0.7, n_items=80, n_regions=1):
    items = Items.from_matrix(*sparse_data((3, 2), 6, n_items, keep=keep))
    return with_regions(items, n_regions)


@pytest.mark.parametrize("n_regions", [1, 4])
@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
@pytest.mark.parametrize("make", [make_kfa, make_bpfa])
def test_a_sweep_is_a_pure_function(make, keep, n_regions):
    """Its argument is left alone, and the same call gives the same result, after whatever came before."""
    model, items = make(), make_items(keep, n_regions=n_regions)
    start = model.start("random", items, 1)
    before = [np.copy(value) for value in start]
    first, first_codes = run(model, items, start, 7)
    for value, copy in zip(start, before):
        np.testing.assert_array_equal(value, copy)
    second, second_codes = run(model, items, start, 7)
    for one, other in zip(first[-1], second[-1]):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(first_codes, second_codes)
    other_seed, _ = run(model, items, start, 1, seed=5)
    assert not np.array_equal(other_seed[0].dictionary, first[0].dictionary)


@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
@pytest.mark.parametrize("make", [make_kfa, make_bpfa])
def test_fixed_atoms_stay_and_all_else_is_drawn_as_ever(make, keep):
    """One sweep differs from that of the whole model in the atoms alone; more sweeps leave them too."""
    items = make_items(keep, n_regions=3)
    whole, fixed = make(delay=0), make(delay=0, fixed_atoms=True)
    start = whole.start("pca", items, 1)
    (expected,), expected_codes = run(whole, items, start, 1)
    states, _ = run(fixed, items, start, 8)
    (first,), codes = run(fixed, items, start, 1)
    np.testing.assert_array_equal(codes, expected_codes)
    for name in ("log_odds", "usage_mean", "concentration", "code_precision", "noise_precision"):
        np.testing.assert_array_equal(getattr(first, name), getattr(expected, name))
    for name in ("dictionary", "weights", "factors", "log_delta", "alpha"):
        np.testing.assert_array_equal(getattr(states[-1], name), getattr(start, name))
    assert states[-1].noise_precision != first.noise_precision
    assert not np.array_equal(expected.dictionary, start.dictionary)


@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
def test_the_dictionary_is_what_the_factors_make(keep, blocked):
    """Through all moves that change factors without touching the dictionary."""
    model, items = make_kfa(blocked=blocked, delay=0), make_items(keep)
    states, _ = run(model, items, model.start("pca", items, 1), 30)
    for state in states:
        composed = compose(state.weights, state.factors, model.rows)
        np.testing.assert_allclose(state.dictionary, composed, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
def test_the_report(keep):
    """Counts and residual belong to the codes just drawn and the atoms they were drawn with."""
    values, observed = sparse_data((3, 2), 6, 80, keep=keep)
    model, items = make_bpfa(), with_regions(Items.from_matrix(values, observed), 3)
    with ThreadEngine(items, threads=1) as engine:
        state = model.start("pca", items, 1)
        for number in (1, 2, 3):
            atoms = state.dictionary
            state, report = model.sweep(state, engine, 1, number)
        codes = all_codes(engine.shards, 6)
    rest = values.reshape(80, 6) - codes @ atoms
    if observed is not None:
        rest = rest[observed.reshape(80, 6)]
    assert report.residual_squares == pytest.approx(float((rest**2).sum()), rel=1e-9)
    np.testing.assert_array_equal(report.counts, (codes != 0).sum(axis=0))
    assert report.active_per_item == pytest.approx((codes != 0).sum() / 80)
    assert (codes != 0).any()


def test_the_start_of_the_usage():
    """Every region begins alike; the concentration begins at the mean of its prior."""
    model = make_bpfa(concentration_prior=GammaPrior(6.0, 0.5))
    state = model.start("random", make_items(n_regions=4), 1)
    assert state.log_odds.shape == (4, 6) and state.usage_mean.shape == (6,)
    np.testing.assert_allclose(expit(state.log_odds), 0.01, rtol=1e-12)
    np.testing.assert_array_equal(state.usage_mean, 0.01)
    assert state.concentration == 12.0


@pytest.mark.parametrize("make", [make_kfa, make_bpfa])
def test_regions_have_their_own_usage_after_the_delay(make):
    items = make_items(n_regions=3)
    model = make(delay=2)
    start = model.start("pca", items, 1)
    states, _ = run(model, items, start, 8)
    for number, state in enumerate(states, 1):
        shared = (state.log_odds == state.log_odds[0]).all()
        assert shared == (number <= 2)
        assert (state.concentration == start.concentration) or number > 2
    assert len({state.concentration for state in states}) > 2
    assert len(np.unique(np.array([state.usage_mean for state in states[2:]]))) > 6


def test_one_region_has_no_concentration_to_learn():
    model, items = make_kfa(delay=0), make_items()
    start = model.start("pca", items, 1)
    states, _ = run(model, items, start, 4)
    assert {state.concentration for state in states} == {start.concentration}


def test_alpha_modes_and_the_delay():
    items = make_items()
    start = make_kfa().start("pca", items, 1)
    assert start.alpha == 10.0 and not start.log_delta.any()
    states, _ = run(make_kfa(alpha_mode="fixed", alpha_start=3.0, delay=2), items, start, 4)
    assert not states[1].log_delta.any() and states[2].log_delta.all()
    assert {state.alpha for state in states} == {10.0}
    model = make_kfa(alpha_mode="map", delay=0)
    states, _ = run(model, items, start, 3)
    for state in states:
        assert state.alpha == alpha_mode(alpha_statistics(state.log_delta, model.alpha_prior))
    states, _ = run(make_kfa(delay=0), items, start, 4)
    assert len({state.alpha for state in states}) == 4
    with pytest.raises(InputError, match="sample, map, fixed"):
        make_kfa(alpha_mode="learn")


def test_fixed_weights_stay_fixed():
    model, items = make_kfa(fixed_weights=True, delay=0), make_items()
    states, _ = run(model, items, model.start("random", items, 1), 5)
    np.testing.assert_array_equal(states[-1].weights, 1.0)
    assert not states[-1].log_delta.any()


def test_ranks():
    items = make_items()
    model = make_bpfa()
    ranks = model.ranks(model.start("random", items, 1))
    np.testing.assert_array_equal(ranks, 2)
    flat = BPFA(shape=(6,), n_atoms=6, usage_prior=UsagePrior(6.0, 1.0))
    np.testing.assert_array_equal(flat.ranks(model.start("random", items, 1)), -1)
    kfa = make_kfa(rank=1)
    np.testing.assert_array_equal(kfa.ranks(kfa.start("random", items, 1)), 1)


@pytest.mark.parametrize("n_regions", [1, 2])
@pytest.mark.parametrize("make", [make_kfa, make_bpfa])
def test_one_atom_one_item_nothing_observed(make, n_regions):
    """The smallest worlds run, on their priors alone."""
    values = np.zeros((2, 3, 2))
    observed = np.zeros(values.shape, bool)
    observed[0, 0, 0] = True
    items = with_regions(Items.from_matrix(values, observed), n_regions)
    model = make(n_atoms=1)
    states, codes = run(model, items, model.start("random", items, 1), 50)
    assert all(np.isfinite(value).all() for value in states[-1])
    assert np.isfinite(codes).all()
