"""A sweep happens as a whole or not at all; a saved state is the state."""

import dataclasses

import numpy as np
import pytest

from kruskal.engines import chain as chains
from kruskal.engines import checkpoint
from kruskal.engines.threads import ThreadEngine
from kruskal.errors import InputError
from kruskal.gibbs.codes import atom_products
from kruskal.gibbs.expected import expect_items
from kruskal.models import base
from kruskal.patches import cut
from kruskal.patches.assemble import RunningMoments
from kruskal.settings import resolve

SETTINGS = resolve((12, 12), patch_shape=(4, 4), n_atoms=6, sweeps=8, burn_in=2, regions=4, seed=3)


@pytest.fixture
def chain():
    random = np.random.default_rng(0)
    values = np.add.outer(np.sin(np.arange(12.0)), np.cos(np.arange(12.0))).astype(np.float32)
    items = cut(values, random.random((12, 12)) < 0.7, SETTINGS.grid, SETTINGS.regions)
    model = dataclasses.replace(SETTINGS.build_model(), delay=1)
    with ThreadEngine(items, threads=2) as engine:
        yield chains.Chain.begin(model, engine, items, "pca", 3)


def sweep(chain):
    """One more sweep, kept after the burn-in, and a look at the estimate."""
    chain.advance(keep=chain.done >= SETTINGS.burn_in, look=True)


def flat(now):
    """Everything in a state, as a list of arrays."""
    moments = vars(now.moments).values()
    assert len(moments) == 5
    codes = (array for codes in now.codes for array in codes)
    return [*now.state, *codes, *moments, now.usage, now.trace, now.checked_draws, now.checked, now.shift]


def same(one, other):
    return one.done == other.done and all(np.array_equal(a, b) for a, b in zip(flat(one), flat(other)))


def test_the_engine_knows_the_sizes_of_the_regions(chain):
    sizes = chain.engine.region_sizes
    assert len(sizes) == 4 and sizes.sum() == chain.engine.n_items == 81
    np.testing.assert_array_equal(sizes, np.bincount(SETTINGS.grid.regions(4)))


def test_kept_draws(chain):
    """Their number, what they sum up, and that the estimate is the weighted mean of the expected items."""
    for _ in range(2):
        sweep(chain)
    assert chain.now.moments.draws == 0 and not chain.now.usage.any()
    sums = np.zeros((3, 144))
    for number in range(3):
        sweep(chain)
        state, (shard,) = chain.now.state, chain.engine.shards
        dictionary = state.dictionary.astype(np.float32)
        products = atom_products(dictionary, complete=False)
        slab = expect_items(shard, dictionary, products, state.code_precision, state.noise_precision)
        for total, part in zip(sums, slab[1:]):
            total[slab.first : slab.first + len(part)] += part
        assert chain.now.moments.draws == number + 1
    np.testing.assert_allclose(chain.now.moments.mean(), sums[1] / sums[0], rtol=1e-12)
    np.testing.assert_allclose(chain.now.moments.square, sums[2], rtol=1e-12)
    used = np.bincount(shard.codes.atom, minlength=6)
    assert (chain.now.usage >= used).all() and chain.now.usage.sum() <= 3 * 81 * 6


@pytest.mark.parametrize("place", ["sweep", "expect", "moments", "trace"])
def test_an_interrupted_sweep_leaves_no_trace(chain, monkeypatch, place):
    for _ in range(4):
        sweep(chain)
    before = chain.now
    with monkeypatch.context() as patch:

        def interrupt(*_args, **_options):
            raise KeyboardInterrupt

        if place == "sweep":
            patch.setattr(type(chain.model), "draw_atom_prior", interrupt)
        elif place == "expect":
            patch.setattr(base, "expect_items", interrupt)
        elif place == "moments":
            patch.setattr(RunningMoments, "with_draw", interrupt)
        else:
            patch.setattr(chains.np, "vstack", interrupt)
        with pytest.raises(KeyboardInterrupt):
            sweep(chain)
    assert chain.now is before
    assert [shard.codes for shard in chain.engine.shards] == list(before.codes)
    sweep(chain)
    interrupted = chain.now
    chain.go_on_from(before)
    sweep(chain)
    assert same(interrupted, chain.now) and not same(interrupted, before)


def test_a_saved_state_is_the_state(chain, tmp_path):
    start = chain.now
    for _ in range(5):
        sweep(chain)
    saved = chain.now
    checkpoint.save(tmp_path, chain, SETTINGS.to_json(), ended=False)
    for _ in range(2):
        sweep(chain)
    later = chain.now
    header = {"state": "state-000005.npz", "done": 5}
    chain.go_on_from(start)
    checkpoint.restore(tmp_path, header, chain)
    assert chain.done == 5 and len(chain.trace()["alpha"]) == 5
    assert same(chain.now, saved)
    assert not (saved.state.log_odds == saved.state.log_odds[0]).all()  # regions are under way
    assert saved.state.concentration != start.state.concentration
    for _ in range(2):
        sweep(chain)
    assert same(chain.now, later)


def test_a_newer_state_replaces_only_its_own_kind(chain, tmp_path):
    (tmp_path / "state-of-the-art.npz").write_text("mine")
    sweep(chain)
    checkpoint.save(tmp_path, chain, {}, ended=False)
    sweep(chain)
    checkpoint.save(tmp_path, chain, {}, ended=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "state-000002.npz", "state-of-the-art.npz", "state.json",
    ]  # fmt: skip


def test_a_state_of_other_regions_is_refused(chain, tmp_path):
    """The header says how many regions there are; the usage must fit it."""
    sweep(chain)
    state = chain.now.state
    chain.now = chain.now._replace(state=state._replace(log_odds=state.log_odds[:2]))
    checkpoint.save(tmp_path, chain, {}, ended=False)
    chain.now = chain.now._replace(state=state)
    with pytest.raises(InputError, match=r"log_odds has shape \(2, 6\) instead of \(4, 6\)"):
        checkpoint.restore(tmp_path, {"state": "state-000001.npz", "done": 1}, chain)


@pytest.mark.parametrize("key", ["log_odds", "usage_mean", "concentration"])
def test_a_state_without_the_usage_of_regions_is_refused(chain, tmp_path, key):
    """Such as one of an older version."""
    sweep(chain)
    checkpoint.save(tmp_path, chain, {}, ended=False)
    path = tmp_path / "state-000001.npz"
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != f"global_{key}"}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=f"'global_{key}' is missing"):
        checkpoint.restore(tmp_path, {"state": path.name, "done": 1}, chain)


@pytest.mark.parametrize("done", [4, 6])
def test_a_state_that_does_not_fit_is_refused(chain, tmp_path, done):
    for _ in range(5):
        sweep(chain)
    checkpoint.save(tmp_path, chain, {}, ended=False)
    with pytest.raises(InputError, match="do not agree"):
        checkpoint.restore(tmp_path, {"state": "state-000005.npz", "done": done}, chain)
