"""Geweke's joint distribution test of whole sweeps: KFA and BPFA, masked and complete, in one region and in
three, all moves on.

KRUSKAL_GEWEKE_SWEEPS sets the number of sweeps per sampler (default 12,000, for four items; BPFA, which is
cheaper, makes twice as many); `python -m tests.gibbs.geweke` runs one of them alone.
"""

import numpy as np
import pytest

from kruskal.gibbs import moves, precision, shrinkage, usage
from kruskal.models import base, online
from tests.gibbs.geweke import ONLINE, SETTINGS, SWEEPS, describe, z_scores

LIMIT = 4.0
SEEDS = {name: 101 + i for i, name in enumerate(SETTINGS)}


@pytest.mark.parametrize("name", SETTINGS)
def test_sweeps_leave_the_joint_distribution_invariant(name):
    setting = SETTINGS[name]
    n_sweeps = (SWEEPS if setting.rank else 2 * SWEEPS) * 4 // len(setting.regions)
    scores = z_scores(setting, n_sweeps, SEEDS[name])
    print(name, describe(scores))
    assert max(map(abs, scores.values())) < LIMIT, describe(scores)


@pytest.mark.parametrize("name", ONLINE)
def test_exact_learning_in_batches_leaves_the_joint_distribution_invariant(name):
    """A fifth of the sweeps: each visits every batch, and the memory is made anew for the new data."""
    setting = ONLINE[name]
    scores = z_scores(setting, SWEEPS // 5, seed=201)
    print(name, describe(scores))
    assert max(map(abs, scores.values())) < LIMIT, describe(scores)


def without_half_in_delta(monkeypatch):
    right = shrinkage.delta_conditional

    def wrong(log_delta, weights, alpha, i):
        shape, rate = right(log_delta, weights, alpha, i)
        return shape, 1.0 + 2.0 * (rate - 1.0)

    monkeypatch.setattr(shrinkage, "delta_conditional", wrong)


def without_half_in_precisions(monkeypatch):
    def wrong(count, squares, prior):
        return prior.shape + 0.5 * count, prior.rate + squares

    monkeypatch.setattr(precision, "precision_conditional", wrong)


def without_half_in_the_balance_of_factors(monkeypatch):
    right = moves.draw_log_scale
    monkeypatch.setattr(moves, "draw_log_scale", lambda p, a, b, random: right(2.0 * p, a, b, random))


def without_the_jacobian_of_the_mean_usage(monkeypatch):
    right = usage.move_means

    def wrong(mean, concentration, counts, sizes, prior, *rest):
        less = usage.UsagePrior(prior.a - 2.0, prior.b - 2.0)  # with two atoms, both shapes less 1
        return right(mean, concentration, counts, sizes, less, *rest)

    monkeypatch.setattr(usage, "move_means", wrong)


def with_noise_put_on_its_bound(monkeypatch):
    """Instead of drawing it beyond."""
    right = base.draw_precision

    def wrong(count, squares, prior, random, least=0.0, most=np.inf):
        return min(max(right(count, squares, prior, random), least), most)

    monkeypatch.setattr(base, "draw_precision", wrong)


def without_half_of_the_prior_of_joint_slabs(monkeypatch):
    right = base.draw_slabs

    def wrong(shard, model, seed, sweep):
        return right(shard, model._replace(code_precision=0.5 * model.code_precision), seed, sweep)

    monkeypatch.setattr(base, "draw_slabs", wrong)


def with_half_of_the_odds(monkeypatch):
    right = base.draw_codes

    def wrong(shard, model, **how):
        return right(shard, model._replace(log_odds=model.log_odds - np.log(2.0)), **how)

    monkeypatch.setattr(base, "draw_codes", wrong)


def with_the_usage_of_the_next_region(monkeypatch):
    right = base.draw_usage

    def wrong(*arguments):
        drawn = right(*arguments)
        return drawn._replace(log_odds=np.roll(drawn.log_odds, 1, axis=0))

    monkeypatch.setattr(base, "draw_usage", wrong)


@pytest.mark.parametrize(
    "mutation, name",
    [
        (without_half_in_delta, "kfa"),
        (without_half_in_precisions, "bpfa-masked"),
        (without_half_in_the_balance_of_factors, "kfa-masked"),
        (without_the_jacobian_of_the_mean_usage, "bpfa-regions-masked"),
        (without_half_of_the_prior_of_joint_slabs, "bpfa-regions-masked"),
        (with_half_of_the_odds, "bpfa"),
        (with_half_of_the_odds, "bpfa-masked"),
        (with_the_usage_of_the_next_region, "bpfa-regions-masked"),
        (with_noise_put_on_its_bound, "kfa-little-noise"),
        (with_noise_put_on_its_bound, "kfa-much-noise"),
    ],
)
def test_a_missing_factor_is_caught(mutation, name, monkeypatch):
    mutation(monkeypatch)
    scores = z_scores(SETTINGS[name], 3000, seed=7)
    print(mutation.__name__, name, describe(scores))
    assert max(map(abs, scores.values())) > LIMIT, describe(scores)


def with_residuals_of_the_batch_alone(monkeypatch):
    """The rest is remembered as if it were fitted perfectly."""
    monkeypatch.setattr(online, "residual_squares", lambda dictionary, pairs, squares: 0.0)


def with_pairs_that_are_not_taken_out(monkeypatch):
    """The old codes of a batch stay in the sums for the atoms, beside the new ones."""
    right = online._without

    def wrong(memory, engine, squares):
        return right(memory, engine, squares)._replace(pairs=online._copied(memory).pairs)

    monkeypatch.setattr(online, "_without", wrong)


@pytest.mark.parametrize(
    "mutation, name",
    [
        (with_residuals_of_the_batch_alone, "kfa-online"),
        (with_pairs_that_are_not_taken_out, "bpfa-online-regions-masked"),
    ],
)
def test_a_wrong_memory_is_caught(mutation, name, monkeypatch):
    mutation(monkeypatch)
    scores = z_scores(ONLINE[name], 1000, seed=7)
    print(mutation.__name__, name, describe(scores))
    assert max(map(abs, scores.values())) > LIMIT, describe(scores)
