"""A chain over batches: what it equals, that it goes on where it was, and what streams teach."""

import dataclasses

import numpy as np
import pytest
from tests.gibbs.worlds import dense_codes
from tests.models.test_limits import sparse_data
from threadpoolctl import threadpool_info, threadpool_limits

from kruskal.engines import checkpoint
from kruskal.engines import online as engine_module
from kruskal.engines.batches import Batches
from kruskal.engines.chain import Chain
from kruskal.engines.online import OnlineChain
from kruskal.engines.stream import Learned, learn_batch
from kruskal.engines.threads import ThreadEngine
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA
from kruskal.models.base import FactorModel
from kruskal.models.online import KINDS, PASSES
from kruskal.patches import Items, cut
from kruskal.settings import resolve

SETTINGS = resolve((14, 14), patch_shape=(4, 4), n_atoms=6, sweeps=8, regions=4, seed=3)
MODEL = dataclasses.replace(SETTINGS.build_model(), delay=2)


def picture(keep=0.7):
    random = np.random.default_rng(0)
    values = np.add.outer(np.sin(np.arange(14.0)), np.cos(np.arange(14.0))).astype(np.float32)
    observed = None if keep is None else random.random((14, 14)) < keep
    return cut(values, observed, SETTINGS.grid, SETTINGS.regions)


def make_chain(kind, n_batches=4, keep=0.7, passes=None, threads=1, model=MODEL, seed=3):
    return OnlineChain.begin(
        model, picture(keep), n_batches=n_batches, kind=kind, passes=passes or PASSES[kind], start="pca",
        seed=seed, threads=threads,
    )  # fmt: skip


def go(chain, visits, burn_in=1):
    for _ in range(visits):
        chain.advance(chain.done >= burn_in * chain.batches.n_batches, look=True)


def leaves(value):
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [getattr(value, name) for name in vars(value)] if dataclasses.is_dataclass(value) else [value]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


def test_the_start_does_not_depend_on_the_threads_of_blas(monkeypatch):
    real, seen = type(MODEL).start, []

    def start(self, name, items, seed):
        seen.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
        return real(self, name, items, seed)

    monkeypatch.setattr(type(MODEL), "start", start)
    with threadpool_limits(2, user_api="blas"):
        make_chain("exact").close()
        learn_batch(MODEL, None, picture())
    assert seen == [{1}, {1}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
def test_one_batch_and_one_pass_is_a_sweep(keep, kind):
    """Bit for bit, but for the exact sums, which are other sums of the same numbers, or more precise ones.

    The paper's kind differs after the first epoch, when it draws all codes once more.
    """
    items = picture(keep)
    with ThreadEngine(items, 1) as engine, make_chain(kind, 1, keep, passes=1) as chain:
        plain = Chain.begin(MODEL, engine, items, "pca", 3)
        exactly = kind != "exact"
        for number in range(1 if kind == "cdf" else 5):
            plain.advance(number > 1)
            if kind == "cdf":
                chain.now = chain._after_visit(False)
            else:
                chain.advance(number > 1)
            for name, one, other in zip(plain.now.state._fields, plain.now.state, chain.now.state):
                if exactly:
                    np.testing.assert_array_equal(other, one, err_msg=name)
                else:
                    np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-6, err_msg=name)
            (one,), (other,) = plain.now.codes, chain.now.codes
            np.testing.assert_array_equal(other.atom, one.atom)
        if exactly:
            np.testing.assert_array_equal(chain.now.moments.mean(), plain.now.moments.mean())
            np.testing.assert_array_equal(chain.now.trace, plain.now.trace)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [None, 0.7], ids=["complete", "masked"])
def test_the_number_of_threads_does_not_matter(keep, kind, monkeypatch):
    """Batches of several shards."""
    monkeypatch.setattr("kruskal.gibbs.local._ITEMS_PER_SHARD", 10)
    states = []
    for threads in (1, 2):
        with make_chain(kind, 3, keep, threads=threads) as chain:
            go(chain, 8)
            assert chain.engine.n_shards > 3
            states.append(chain.now)
    assert same(*states)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("visits", [4, 6])
def test_a_saved_chain_goes_on_as_if_nothing_had_happened(kind, visits, tmp_path):
    """At the end of an epoch and in the middle of one."""
    with make_chain(kind) as chain:
        go(chain, visits)
        checkpoint.save(tmp_path, chain, {}, ended=False)
        go(chain, 7)
        later = chain.now
    with make_chain(kind) as chain:
        header = {"state": f"state-{visits:06d}.npz", "done": visits}
        checkpoint.restore(tmp_path, header, chain)
        go(chain, 7)
        assert same(chain.now, later) and chain.now.moments.draws > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["visit", "expect", "traced", "looked_at"])
def test_an_interrupted_visit_leaves_no_trace(kind, place, monkeypatch):
    with make_chain(kind, threads=2) as chain:
        go(chain, 7)
        before = chain.now
        copies = [np.copy(leaf) for leaf in leaves(before)]
        with monkeypatch.context() as patch:
            home = FactorModel if place == "expect" else engine_module
            right = getattr(home, place)

            def interrupt(*arguments):
                right(*arguments)
                raise KeyboardInterrupt

            patch.setattr(home, place, interrupt)
            with pytest.raises(KeyboardInterrupt):
                go(chain, 1)
        assert chain.now is before
        assert all(np.array_equal(leaf, copy) for leaf, copy in zip(leaves(before), copies))
        go(chain, 1)
        with make_chain(kind) as other:
            go(other, 8)
            assert same(other.now, chain.now)


def test_a_memory_of_another_shape_is_refused(tmp_path):
    with make_chain("incremental", 4) as chain, make_chain("incremental", 2) as other:
        go(chain, 4)
        go(other, 4)
        other.now = other.now._replace(codes=chain.now.codes)
        checkpoint.save(tmp_path, chain, {}, ended=False)
        chain.now = chain.now._replace(memory=chain.now.memory._replace(recent=other.now.memory.total))
        with pytest.raises(Exception, match="memory_recent_sums"):
            checkpoint.restore(tmp_path, {"state": "state-000004.npz", "done": 4}, chain)


@pytest.mark.parametrize("reshuffled", [True, False])
def test_batches(reshuffled):
    """Every item once per epoch, sizes as equal as can be, neighbours in order, a function of the seed."""
    batches = Batches(23, 4, 5, reshuffled)
    assert sorted(batches.sizes) == [5, 6, 6, 6]
    first, second = batches.arrangement(0), batches.arrangement(1)
    np.testing.assert_array_equal(np.sort(first), np.arange(23))
    assert all((np.diff(part) > 0).all() for part in np.split(first, batches.bounds[1:-1]))
    assert np.array_equal(first, second) == (not reshuffled)
    orders = [tuple(batches.order(epoch)) for epoch in range(6)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert (len(set(orders)) > 1) == (not reshuffled)
    assert not np.array_equal(first, Batches(23, 4, 6, reshuffled).arrangement(0))
    np.testing.assert_array_equal(Batches(23, 1, 5, reshuffled).arrangement(3), np.arange(23))


def test_codes_follow_their_items_into_new_batches():
    """When the batches of an epoch are others than those of the epoch before."""
    with make_chain("cdf") as chain:
        go(chain, 4)
        before, after = chain.now, chain._new_epoch(chain.now, 1, False)
        weights = np.zeros((2, chain.source.n_items, 6))
        for epoch, now in enumerate((before, after)):
            dense = np.concatenate([dense_codes(codes, 6) for codes in now.codes])
            weights[epoch, chain.batches.arrangement(epoch)] = dense
        np.testing.assert_array_equal(weights[0], weights[1])
        assert (weights[0] != 0).any()


def test_all_codes_are_drawn_after_the_first_epoch_of_the_paper(monkeypatch):
    """Once, and the scalars follow from all items; with other numbers than those of any visit."""
    calls = []
    monkeypatch.setattr(engine_module, "settle", lambda *a: calls.append((a[2], a[4])) or a[1])
    with make_chain("cdf") as chain:
        go(chain, 3)
        before = chain.now.codes
        go(chain, 1)
        assert all(not np.array_equal(a.value, b.value) for a, b in zip(before, chain.now.codes))
        go(chain, 8)
    ((sums, number),) = calls
    assert number == 16 and sums.region_sizes.sum() == 121
    assert sums.counts.sum() > 0 and sums.residual_squares > 0


def numbers_used(kind, monkeypatch):
    used = []
    monkeypatch.setattr(engine_module, "visit", lambda *a: used.extend(range(a[8], a[8] + a[9])) or right(*a))
    with make_chain(kind) as chain:
        go(chain, 9)
    return used


right = engine_module.visit


@pytest.mark.parametrize("kind", KINDS)
def test_no_sweep_number_is_used_twice(kind, monkeypatch):
    """They address the random numbers. The first batches get more sweeps, not with the paper's kind."""
    used = numbers_used(kind, monkeypatch)
    assert len(used) == len(set(used)) == (27 if kind == "cdf" else 12 + 6 + 4 + 3 + 5)
    assert (16 in used) == (kind != "cdf")


def test_the_order_of_batches_changes_results_within_monte_carlo_error(monkeypatch):
    """The estimate of two runs with other orders differs no more than that of two runs with other seeds."""

    def estimate(seed, order=None):
        with monkeypatch.context() as patch:
            if order is not None:
                patch.setattr(Batches, "order", lambda self, epoch: np.array(order))
            with make_chain("exact", 3, seed=seed) as chain:
                go(chain, 60, burn_in=8)
                return chain.now.moments.mean()

    first = estimate(1, (0, 1, 2))
    by_order = np.abs(estimate(1, (2, 1, 0)) - first).mean()
    by_seed = [np.abs(estimate(seed) - first).mean() for seed in (2, 3, 4)]
    assert 0 < by_order < 2.0 * max(by_seed)


def test_a_stream_of_batches():
    """Learns atoms that explain items never seen; forgetting and the seed matter, threads do not."""
    values, observed = sparse_data((3, 2), 6, 1200, keep=0.7)
    model = BPFA(shape=(3, 2), n_atoms=6, usage_prior=UsagePrior(6.0, 1.0))

    def learn(**options):
        learned = None
        for part in range(5):
            here = slice(200 * part, 200 * (part + 1))
            items = Items.from_matrix(values[here], observed[here])
            learned = learn_batch(model, learned, items, **({"seed": 1, "threads": 1} | options))
        return learned

    learned = learn()
    assert isinstance(learned, Learned) and learned.sweeps == 15
    assert learned.memory.sums.region_sizes.sum() == 1000
    assert learned.memory.sums.n_observed == observed[:1000].sum()
    assert learned.state.noise_precision > 20.0 / values.var()
    assert same(learned, learn(threads=2)) and not same(learned, learn(seed=2))
    forgetting = learn(forgetting=0.5)
    assert forgetting.memory.sums.region_sizes.sum() == pytest.approx(200 * (2 - 0.5**4))
    assert forgetting.memory.sums.n_observed < 0.5 * learned.memory.sums.n_observed
    assert all(np.isfinite(leaf).all() for leaf in leaves(forgetting))
