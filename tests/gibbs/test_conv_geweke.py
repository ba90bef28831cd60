"""Geweke's joint distribution test of whole sweeps of CFA and CKFA: complete, masked, pooled, non-negative.

KRUSKAL_GEWEKE_SWEEPS sets the number of sweeps (a fifteenth of it is made here); `python -m
tests.gibbs.conv_geweke` runs one of them alone.
"""

import numpy as np
import pytest

from kruskal.gibbs import conv_usage
from kruskal.models import conv
from tests.gibbs import geweke
from tests.gibbs.conv_geweke import SETTINGS, describe, z_scores

SWEEPS = geweke.SWEEPS // 15
LIMIT = 4.0


@pytest.mark.parametrize("name", SETTINGS)
def test_sweeps_leave_the_joint_distribution_invariant(name):
    scores = z_scores(SETTINGS[name], SWEEPS, seed=301 + list(SETTINGS).index(name))
    print(name, describe(scores))
    assert max(map(abs, scores.values())) < LIMIT, describe(scores)


def with_a_diagonal_precision(monkeypatch):
    """E14: atoms as if places did not overlap."""
    right = conv.lag_statistics

    def wrong(*arguments, **options):
        statistics = right(*arguments, **options)
        own = np.eye(len(statistics.pairs), dtype=bool)[..., None, None]
        return statistics._replace(pairs=np.where(own, _only_lag_0(statistics.pairs), statistics.pairs))

    monkeypatch.setattr(conv, "lag_statistics", wrong)


def _only_lag_0(pairs: np.ndarray) -> np.ndarray:
    middle = np.zeros(pairs.shape[2:])
    middle[pairs.shape[2] // 2, pairs.shape[3] // 2] = 1.0
    return pairs * middle


def without_refused_draws(monkeypatch):
    monkeypatch.setattr(conv_usage, "refused_counts", lambda log_odds, *rest: np.zeros(log_odds.shape))


def without_refused_draws_of_images(monkeypatch):
    right = conv_usage.refused_by_image
    monkeypatch.setattr(
        conv_usage,
        "refused_by_image",
        lambda *given: conv_usage.RefusedDraws(*(0.0 * x for x in right(*given))),
    )


def with_the_usage_of_another_image(monkeypatch):
    right = conv.count_images
    monkeypatch.setattr(conv, "count_images", lambda *given: right(*given)[::-1])


def with_one_usage_for_all_images(monkeypatch):
    right = conv.draw_usage_by_image
    monkeypatch.setattr(conv, "draw_usage_by_image", lambda *given: right(*given[:-2], True, given[-1]))


def with_slabs_of_both_signs(monkeypatch):
    right = conv.draw_maps

    def wrong(shard, model, seed, sweep):
        return right(shard, model._replace(nonnegative=False), seed, sweep)

    monkeypatch.setattr(conv, "draw_maps", wrong)


@pytest.mark.parametrize(
    "mutation, name, n_sweeps",
    [
        (with_a_diagonal_precision, "cfa-positive", 2500),
        (without_refused_draws, "cfa-pooling", 800),
        (without_refused_draws_of_images, "cfa-by-image-pooling", 1500),
        (with_the_usage_of_another_image, "cfa-by-image", 800),
        (with_one_usage_for_all_images, "cfa-by-image", 400),
        (with_slabs_of_both_signs, "cfa-positive", 400),
    ],
)
def test_a_mistake_is_caught(mutation, name, n_sweeps, monkeypatch):
    mutation(monkeypatch)
    scores = z_scores(SETTINGS[name], n_sweeps, seed=7, n_prior=20_000)
    print(mutation.__name__, name, describe(scores))
    assert max(map(abs, scores.values())) > LIMIT, describe(scores)
