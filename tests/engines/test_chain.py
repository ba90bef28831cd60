"""A sweep happens as a whole or not at all; a saved state is the state."""

import numpy as np
import pytest

from kruskal.engines import chain as chains
from kruskal.engines import checkpoint
from kruskal.engines.threads import ThreadEngine
from kruskal.errors import InputError
from kruskal.patches import Items
from kruskal.patches.assemble import RunningMoments
from kruskal.settings import resolve

SETTINGS = resolve((12, 12), patch_shape=(4, 4), n_atoms=6, sweeps=8, burn_in=2, seed=3)


@pytest.fixture
def chain():
    random = np.random.default_rng(0)
    values = np.add.outer(np.sin(np.arange(12.0)), np.cos(np.arange(12.0))).astype(np.float32)
    grid = SETTINGS.grid
    items = Items(values.ravel(), random.random(144) < 0.7, grid.origins(), grid.offsets(), (4, 4))
    with ThreadEngine(items, threads=2) as engine:
        yield chains.Chain.begin(SETTINGS.build_model(), engine, items, "pca", 3, SETTINGS.burn_in)


def flat(now):
    """Everything in a state, as a list of arrays."""
    moments = (now.moments.draws, now.moments.mean, now.moments.deviation, now.moments.square)
    return [*now.state, *(array for codes in now.codes for array in codes), *moments, now.usage, now.trace]


def same(one, other):
    return one.done == other.done and all(np.array_equal(a, b) for a, b in zip(flat(one), flat(other)))


@pytest.mark.parametrize("place", ["sweep", "scatter", "moments", "trace"])
def test_an_interrupted_sweep_leaves_no_trace(chain, monkeypatch, place):
    for _ in range(4):
        chain.advance()
    before = chain.now
    with monkeypatch.context() as patch:

        def interrupt(*_args, **_options):
            raise KeyboardInterrupt

        if place == "sweep":
            patch.setattr(type(chain.model), "draw_atom_prior", interrupt)
        elif place == "scatter":
            patch.setattr(chains, "scatter", interrupt)
        elif place == "moments":
            patch.setattr(RunningMoments, "with_draw", interrupt)
        else:
            patch.setattr(chains.np, "vstack", interrupt)
        with pytest.raises(KeyboardInterrupt):
            chain.advance()
    assert chain.now is before
    assert [shard.codes for shard in chain.engine.shards] == list(before.codes)
    chain.advance()
    interrupted = chain.now
    chain.go_on_from(before)
    chain.advance()
    assert same(interrupted, chain.now) and not same(interrupted, before)


def test_a_saved_state_is_the_state(chain, tmp_path):
    start = chain.now
    for _ in range(5):
        chain.advance()
    checkpoint.save(tmp_path, chain, SETTINGS.to_json())
    for _ in range(2):
        chain.advance()
    later = chain.now
    header = {"state": "state-000005.npz", "done": 5}
    chain.go_on_from(start)
    checkpoint.restore(tmp_path, header, chain)
    assert chain.done == 5 and len(chain.trace()["alpha"]) == 5
    for _ in range(2):
        chain.advance()
    assert same(chain.now, later)


def test_a_newer_state_replaces_only_its_own_kind(chain, tmp_path):
    (tmp_path / "state-of-the-art.npz").write_text("mine")
    chain.advance()
    checkpoint.save(tmp_path, chain, {})
    chain.advance()
    checkpoint.save(tmp_path, chain, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "state-000002.npz", "state-of-the-art.npz", "state.json",
    ]  # fmt: skip


@pytest.mark.parametrize("done", [4, 6])
def test_a_state_that_does_not_fit_is_refused(chain, tmp_path, done):
    for _ in range(5):
        chain.advance()
    checkpoint.save(tmp_path, chain, {})
    with pytest.raises(InputError, match="do not agree"):
        checkpoint.restore(tmp_path, {"state": "state-000005.npz", "done": done}, chain)


def test_a_folder_is_held_by_one(tmp_path):
    with checkpoint.locked(tmp_path):
        with pytest.raises(InputError, match="in use by another process"), checkpoint.locked(tmp_path):
            pass
        assert (tmp_path / "lock").exists()
    with checkpoint.locked(tmp_path):
        pass
    assert not (tmp_path / "lock").exists()
