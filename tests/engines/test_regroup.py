"""Items are grouped anew on the way: as a whole or not at all, with the usage that belongs to the groups."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import kruskal
from kruskal.defaults import Look
from kruskal.engines import chain as chains
from kruskal.engines import checkpoint
from kruskal.engines.regions import alike_in
from kruskal.engines.threads import ThreadEngine
from kruskal.errors import InputError
from kruskal.gibbs.local import count_codes
from kruskal.models import base
from kruskal.patches import cut
from kruskal.settings import resolve

SETTINGS = resolve((14, 14), patch_shape=(4, 4), n_atoms=6, sweeps=8, burn_in=4, regions=4, seed=3)
QUICK = {
    "patch_shape": (5, 5),
    "n_atoms": 8,
    "sweeps": 8,
    "burn_in": 6,
    "regions": 4,
    "seed": 1,
    "auto": False,
}


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
    assert chain.now.regrouped and not before.regrouped and chain.now.done == 3
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
    chain.go_on_from(saved._replace(region=first, regrouped=False))
    header = {"state": "state-000003.npz", "done": 3}
    checkpoint.restore(tmp_path, header, chain)
    assert chain.now.regrouped
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


def wavy(seed=1, share=0.6, noise=0.0):
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:40, :40]
    truth = 100 + 50 * np.sin(rows / 3.0) * np.cos(columns / (2.0 + rows / 40.0))
    return truth + noise * random.standard_normal(truth.shape), random.random(truth.shape) < share


@pytest.mark.parametrize("grouping", ["likeness", "restored"])
def test_a_run_groups_anew_and_goes_on_from_any_sweep(grouping, tmp_path, monkeypatch):
    values, seen = wavy()
    times = []
    real = chains.Chain.regroup

    def counted(self, regions_of):
        times.append(self.done)
        real(self, regions_of)

    monkeypatch.setattr(chains.Chain, "regroup", counted)
    whole = kruskal.inpaint(values, seen, threads=1, grouping=grouping, **QUICK)
    assert times == [3]
    np.testing.assert_array_equal(
        whole.mean, kruskal.inpaint(values, seen, threads=2, grouping=grouping, **QUICK).mean
    )
    by_place = kruskal.inpaint(values, seen, threads=1, grouping="place", **QUICK)
    assert len(times) == 2 and not np.array_equal(whole.mean, by_place.mean)
    advance = chains.Chain.advance
    for stop in (2, 3, 4):  # in the sweep after these; the one after 3 comes after the regrouping

        def interrupted(self, *options, stop=stop, **more):
            if self.done == stop:
                raise KeyboardInterrupt
            advance(self, *options, **more)

        folder = tmp_path / f"{grouping}{stop}"
        monkeypatch.setattr(chains.Chain, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kruskal.inpaint(values, seen, threads=1, grouping=grouping, checkpoint=folder, **QUICK)
        monkeypatch.setattr(chains.Chain, "advance", advance)
        np.testing.assert_array_equal(kruskal.resume(folder).mean, whole.mean)
    assert times == [3] * 5  # never twice in a run


def test_when_nothing_is_grouped_anew(monkeypatch):
    """Complete data by likeness, one region, no burn-in to speak of, batches."""
    monkeypatch.setattr(chains.Chain, "regroup", lambda *_: pytest.fail("grouped anew"))
    values, seen = wavy(noise=20.0)
    kruskal.denoise(values, threads=1, grouping="likeness", **QUICK)
    for options in (
        {"regions": 1},
        {"burn_in": 1},
        {"burn_in": 0},
        {"online": True, "sweeps": None, "epochs": 3, "burn_in": 2},
    ):
        kruskal.inpaint(values, seen, threads=1, **QUICK | {"grouping": "likeness"} | options)


def test_defaults():
    clean, noisy = Look(0.3, 0.01), Look(0.3, 0.1)
    assert resolve((64, 64), look=clean).grouping == "restored"
    assert resolve((64, 64), look=noisy).grouping == "likeness"
    for shape in ((64, 64, 3), (30, 30, 30), (4096,)):
        assert resolve(shape, look=clean).grouping == "place"
    for options in ({"look": Look(1.0, 0.01)}, {"online": "exact"}, {"brief": True}, {"setting": "paper"}):
        assert resolve((64, 64), **{"look": clean} | options).grouping == "place"
    with pytest.raises(InputError, match="grouping 'restored' needs sweeps over all patches"):
        resolve((64, 64), look=clean, online="exact", grouping="restored")


def test_counts_of_regions_without_items():
    """A group that nobody joined has nothing but its prior."""
    codes = chains.Codes(np.array([0, 1, 2]), np.array([0, 1], np.uint16), np.ones(2, np.float32))
    counts = count_codes(codes, np.array([0, 2], np.uint16), 4, 2)
    np.testing.assert_array_equal(counts, [[1, 0], [0, 0], [0, 1], [0, 0]])
