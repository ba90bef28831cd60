"""A sweep as a function: pure, consistent, and doing what its options say."""

import numpy as np
import pytest

from kruskal.engines.threads import ThreadEngine
from kruskal.errors import InputError
from kruskal.gibbs.shrinkage import alpha_mode, alpha_statistics
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, KFA
from kruskal.patches import Items
from kruskal.tensor import compose
from tests.gibbs.worlds import all_codes
from tests.models.test_limits import run, sparse_data


def make_kfa(**options):
    return KFA(**({"shape": (3, 2), "n_atoms": 6, "usage_prior": UsagePrior(6.0, 1.0), "rank": 2} | options))


def make_bpfa(**options):
    return BPFA(**({"shape": (3, 2), "n_atoms": 6, "usage_prior": UsagePrior(6.0, 1.0)} | options))


def make_items(keep=0.7, n_items=80):
    return Items.from_matrix(*sparse_data((3, 2), 6, n_items, keep=keep))


@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
@pytest.mark.parametrize("make", [make_kfa, make_bpfa])
def test_a_sweep_is_a_pure_function(make, keep):
    """Its argument is left alone, and the same call gives the same result, after whatever came before."""
    model, items = make(), make_items(keep)
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


@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
def test_the_dictionary_is_what_the_factors_make(keep, blocked):
    """Through all moves that change factors without touching the dictionary."""
    model, items = make_kfa(blocked=blocked, shrinkage_delay=0), make_items(keep)
    states, _ = run(model, items, model.start("pca", items, 1), 30)
    for state in states:
        composed = compose(state.weights, state.factors, model.rows)
        np.testing.assert_allclose(state.dictionary, composed, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
def test_the_report(keep):
    """Counts and residual belong to the codes just drawn and the atoms they were drawn with."""
    values, observed = sparse_data((3, 2), 6, 80, keep=keep)
    model, items = make_bpfa(), Items.from_matrix(values, observed)
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


def test_alpha_modes_and_the_delay():
    items = make_items()
    start = make_kfa().start("pca", items, 1)
    assert start.alpha == 10.0 and not start.log_delta.any()
    states, _ = run(make_kfa(alpha_mode="fixed", alpha_start=3.0, shrinkage_delay=2), items, start, 4)
    assert not states[1].log_delta.any() and states[2].log_delta.all()
    assert {state.alpha for state in states} == {10.0}
    model = make_kfa(alpha_mode="map", shrinkage_delay=0)
    states, _ = run(model, items, start, 3)
    for state in states:
        assert state.alpha == alpha_mode(alpha_statistics(state.log_delta, model.alpha_prior))
    states, _ = run(make_kfa(shrinkage_delay=0), items, start, 4)
    assert len({state.alpha for state in states}) == 4
    with pytest.raises(InputError, match="sample, map, fixed"):
        make_kfa(alpha_mode="learn")


def test_fixed_weights_stay_fixed():
    model, items = make_kfa(fixed_weights=True, shrinkage_delay=0), make_items()
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


@pytest.mark.parametrize("make", [make_kfa, make_bpfa])
def test_one_atom_one_item_nothing_observed(make):
    """The smallest worlds run, on their priors alone."""
    values = np.zeros((2, 3, 2))
    observed = np.zeros(values.shape, bool)
    observed[0, 0, 0] = True
    items = Items.from_matrix(values, observed)
    model = make(n_atoms=1)
    states, codes = run(model, items, model.start("random", items, 1), 50)
    assert all(np.isfinite(value).all() for value in states[-1])
    assert np.isfinite(codes).all()
