"""Items are grouped anew on the way: as a whole or not at all, with the usage that belongs to the groups."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import kruskal
from kruskal.engines import chain as chains
from kruskal.engines import checkpoint
from kruskal.engines.regions import alike_in
from kruskal.engines.threads import ThreadEngine
from kruskal.errors import InputError
from kruskal.gibbs.likeness import group_alike
from kruskal.gibbs.local import count_codes
from kruskal.models import base
from kruskal.patches import RunningMoments, cut
from kruskal.settings import resolve

SETTINGS = resolve((14, 14), patch_shape=(4, 4), n_atoms=6, sweeps=8, burn_in=4, regions=4, seed=3)
QUICK = {
    "patch_shape": (5, 5), "n_atoms": 8, "sweeps": 14, "burn_in": 12, "regions": 4, "seed": 1, "auto": False,
    "grouping": "likeness", "threads": 1,
}  # fmt: skip


@pytest.fixture
def chain():
    random = np.random.default_rng(0)
    values = np.add.outer(np.sin(np.arange(14.0)), np.cos(np.arange(14.0))).astype(np.float32)
    items = cut(values, random.random((14, 14)) < 0.7, SETTINGS.grid, SETTINGS.regions)
    model = dataclasses.replace(SETTINGS.build_model(), delay=1)
    with ThreadEngine(items, threads=2) as engine:
        yield chains.Chain.begin(model, engine, items, "pca", 3)


def odd_and_even(estimate):
    """Two regions of 121 items."""
    assert estimate.shape == (196,) and np.isfinite(estimate).all()
    return (np.arange(121) % 2).astype(np.uint16)


def test_items_and_usage_follow(chain):
    for _ in range(3):
        chain.advance(keep=False)
    before = chain.now
    chain.regroup(odd_and_even)
    np.testing.assert_array_equal(chain.engine.region_sizes, [61, 60, 0, 0])
    np.testing.assert_array_equal(chain.engine.regions(), np.arange(121) % 2)
    assert chain.now.regrouped == chain.now.done == 3 and before.regrouped == 0
    assert chain.now.state.log_odds.shape == before.state.log_odds.shape
    for name, old, new in zip(before.state._fields, before.state, chain.now.state):
        assert name == "log_odds" or np.array_equal(old, new)
    chain.advance(keep=True)
    assert chain.now.moments.draws == 1 and np.isfinite(chain.now.moments.mean()).all()


def test_the_usage_is_drawn_from_its_conditional(chain):
    """Many draws of pi against the beta conditional, from counts of our own."""
    for _ in range(3):
        chain.advance(keep=False)
    chain.regroup(odd_and_even)
    state, engine = chain.now.state, chain.engine
    counts = np.zeros((4, 6))
    for shard in engine.shards:
        for n in range(shard.n_items):
            for c in range(shard.codes.start[n], shard.codes.start[n + 1]):
                counts[(shard.first + n) % 2, shard.codes.atom[c]] += 1
    sizes = np.array([61, 60, 0, 0])[:, None]
    first = state.concentration * state.usage_mean + counts
    second = state.concentration * (1 - state.usage_mean) + sizes - counts
    draws = np.stack(
        [1 / (1 + np.exp(-chain.model.in_other_regions(state, engine, s, 3).log_odds)) for s in range(2000)]
    )
    checked = first > 0.5  # others are next to nothing
    assert checked.sum() > 10
    for at in zip(*np.nonzero(checked)):
        assert stats.kstest(draws[:, *at], stats.beta(first[at], second[at]).cdf).pvalue > 1e-4


def test_annealing_keeps_the_usage_up(chain):
    chain.advance(keep=False)
    chain.model = dataclasses.replace(chain.model, annealing=2)
    empty = chain.now.state._replace(usage_mean=np.full(6, 1e-12))
    log_odds = chain.model.in_other_regions(empty, chain.engine, 1, 2).log_odds
    assert log_odds.min() == -7.0
    assert chain.model.in_other_regions(empty, chain.engine, 1, 3).log_odds.min() < -7.0


@pytest.mark.parametrize("place", ["expect", "regions", "usage"])
def test_when_interrupted_nothing_changes(chain, monkeypatch, place):
    for _ in range(2):
        chain.advance(keep=False)
    before, sizes = chain.now, chain.engine.region_sizes.copy()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    regions_of = odd_and_even
    if place == "expect":
        monkeypatch.setattr(base, "expect_items", interrupt)
    elif place == "regions":
        regions_of = interrupt
    else:
        monkeypatch.setattr(base, "region_conditional", interrupt)
    with pytest.raises(KeyboardInterrupt):
        chain.regroup(regions_of)
    assert chain.now is before
    np.testing.assert_array_equal(chain.engine.regions(), before.region)
    np.testing.assert_array_equal(chain.engine.region_sizes, sizes)


def test_a_checkpoint_holds_the_regions(chain, tmp_path):
    for _ in range(3):
        chain.advance(keep=False)
    first = chain.engine.regions()
    chain.regroup(odd_and_even)
    saved = chain.now
    checkpoint.save(tmp_path, chain, SETTINGS.to_json(), ended=False)
    chain.advance(keep=True)
    wanted = chain.now.moments.mean()
    chain.engine.put_regions(first)
    chain.now = saved._replace(region=first, regrouped=0)
    header = {"state": "state-000003.npz", "done": 3}
    checkpoint.restore(tmp_path, header, chain)
    assert chain.now.regrouped == 3
    np.testing.assert_array_equal(chain.engine.regions(), np.arange(121) % 2)
    chain.advance(keep=True)
    np.testing.assert_array_equal(chain.now.moments.mean(), wanted)


@pytest.mark.parametrize(
    "region", [np.zeros(120, np.uint16), np.full(121, 4, np.uint16)], ids=["few", "high"]
)
def test_a_checkpoint_with_other_regions_is_refused(chain, tmp_path, region):
    chain.advance(keep=False)
    checkpoint.save(tmp_path, chain, SETTINGS.to_json(), ended=False)
    path = tmp_path / "state-000001.npz"
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    np.savez(path, **arrays | {"region": region})
    with pytest.raises(InputError, match="regions belong to other items"):
        checkpoint.restore(tmp_path, {"state": path.name, "done": 1}, chain)


def test_items_that_look_alike_in_the_estimate():
    """Whatever was observed: stripes of two kinds, of which the array itself says nothing."""
    grid = resolve((6, 40), patch_shape=(4, 4)).grid
    items = cut(np.zeros((6, 40), np.float32), np.ones((6, 40), bool), grid, 2)
    estimate = np.zeros((6, 40))
    estimate[:, ::8] = 1.0
    region = alike_in(estimate.ravel(), items, 1, (6, 40)).reshape(3, 37)
    assert (region == region[0]).all() and len(np.unique(region)) == 2
    np.testing.assert_array_equal(region[0, :16], region[0, 16:32])
    assert items.observed.size == 0 and not items.flat.any()


def test_the_estimate_is_what_a_kept_draw_would_add(chain):
    for _ in range(3):
        chain.advance(keep=False)
    seen = []
    chain.regroup(lambda estimate: (seen.append(estimate), odd_and_even(estimate))[1])
    slabs = chain.model.expect(chain.now.state, chain.engine)
    wanted = RunningMoments.zero(196).with_draw(slabs, chain.engine.share).mean()
    np.testing.assert_array_equal(seen[0], wanted)
    assert np.ptp(wanted) > 1.0


def test_when_it_may_be_done(chain):
    """Regions must have a usage of their own, no draw may be kept, and once is enough."""
    assert chain.model.delay == 1 and not chain.may_regroup()
    chain.advance(keep=False)
    assert chain.may_regroup()
    kept = chain.now
    chain.advance(keep=True)
    assert not chain.may_regroup()
    chain.go_on_from(kept)
    chain.regroup(odd_and_even)
    assert not chain.may_regroup()


def wavy(share=0.6):
    random = np.random.default_rng(1)
    rows, columns = np.mgrid[:40, :40]
    truth = 100 + 50 * np.sin(rows / 3.0) * np.cos(columns / (2.0 + rows / 40.0))
    return truth + 2.0 * random.standard_normal(truth.shape), random.random(truth.shape) < share


@pytest.fixture
def regrouped(monkeypatch):
    """Sweeps, groups and estimates of every time that a chain is grouped anew; no draw was kept before."""
    found = []
    real = chains.Chain.regroup

    def watched(self, regions_of):
        assert self.now.moments.draws == 0 and not self.now.regrouped
        estimates = []
        real(self, lambda estimate: (estimates.append(estimate), regions_of(estimate))[1])
        found.append((self.done, self.now.region, estimates[0]))

    monkeypatch.setattr(chains.Chain, "regroup", watched)
    return found


def test_a_run_groups_anew_and_goes_on_from_any_sweep(tmp_path, monkeypatch, regrouped):
    values, seen = wavy()
    whole = kruskal.inpaint(values, seen, **QUICK)
    assert [times for times, *_ in regrouped] == [6]
    np.testing.assert_array_equal(whole.mean, kruskal.inpaint(values, seen, **QUICK | {"threads": 2}).mean)
    assert len(regrouped) == 2
    by_place = kruskal.inpaint(values, seen, **QUICK | {"grouping": "place"})
    assert len(regrouped) == 2 and not np.array_equal(whole.mean, by_place.mean)
    advance = chains.Chain.advance
    for stop in (5, 6, 7):  # in the sweep after these; the one after 6 comes after the regrouping

        def interrupted(self, *options, stop=stop, **more):
            if self.done == stop:
                raise KeyboardInterrupt
            advance(self, *options, **more)

        folder = tmp_path / f"run{stop}"
        monkeypatch.setattr(chains.Chain, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kruskal.inpaint(values, seen, checkpoint=folder, **QUICK)
        monkeypatch.setattr(chains.Chain, "advance", advance)
        np.testing.assert_array_equal(kruskal.resume(folder).mean, whole.mean)
    assert [times for times, *_ in regrouped] == [6] * 5  # never twice in a run


def test_a_run_groups_by_the_estimate_alone(regrouped):
    """Not by what is observed, which would give other groups."""
    values, seen = wavy(share=0.3)
    kruskal.inpaint(values, seen, **QUICK | {"sweeps": 22, "burn_in": 20})
    ((times, region, estimate),) = regrouped
    assert times == 10
    settings = resolve(values.shape, patch_shape=(5, 5), regions=4)
    first = np.zeros(values.shape, np.float32)
    complete = cut(first, np.ones(values.shape, bool), settings.grid, 4)
    np.testing.assert_array_equal(region, alike_in(estimate, complete, 1, values.shape))
    masked = cut(np.where(seen, estimate.reshape(values.shape), 0).astype(np.float32), seen, settings.grid, 4)
    assert not np.array_equal(region, group_alike(masked, 4, 1, values.shape, number=1).region)


@pytest.mark.parametrize("options", [{"until_converged": True, "annealing": 0}, {"time_budget": 1.0}])
def test_a_burn_in_that_ends_early_is_regrouped_at_its_end(options, regrouped):
    """And, where the trace decides, goes on until it is level again."""
    values, seen = wavy()
    restored = kruskal.inpaint(values, seen, **QUICK | {"sweeps": 4000, "burn_in": 2000} | options)
    ((times, *_),) = regrouped
    assert times >= 5 and restored.kept >= 1
    if "until_converged" in options:
        assert times < 1000 and len(restored.trace["noise_std"]) - restored.kept >= times + 10


def test_when_nothing_is_grouped_anew(regrouped):
    """Complete data, one region, hardly a burn-in, batches."""
    values, seen = wavy()
    kruskal.denoise(values, **QUICK)
    for options in (
        {"regions": 1},
        {"burn_in": 4},
        {"burn_in": 0},
        {"online": True, "sweeps": None, "epochs": 3, "burn_in": 2},
    ):
        kruskal.inpaint(values, seen, **QUICK | options)
    assert not regrouped


def test_counts_of_regions_without_items():
    """A group that nobody joined has nothing but its prior."""
    codes = chains.Codes(np.array([0, 1, 2]), np.array([0, 1], np.uint16), np.ones(2, np.float32))
    counts = count_codes(codes, np.array([0, 2], np.uint16), 4, 2)
    np.testing.assert_array_equal(counts, [[1, 0], [0, 0], [0, 1], [0, 0]])
