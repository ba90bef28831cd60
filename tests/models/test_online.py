"""The paper's algorithm against a plain twin: what is remembered, what is drawn from it, when it is reset."""

from dataclasses import replace

import numpy as np
import pytest

from kruskal.engines.online import OnlineChain
from kruskal.engines.stream import expect_batch, learn_batch
from kruskal.gibbs.pair_sums import residual_squares
from kruskal.gibbs.statistics import AtomTerms
from kruskal.gibbs.surrogate import Exact, Filtered, Sums
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, base
from kruskal.models.online import elsewhere
from kruskal.patches import Items
from tests.gibbs.worlds import dense_codes
from tests.models.test_limits import sparse_data, with_regions

N_ITEMS, N_ATOMS, N_BATCHES = 90, 5, 3


@pytest.fixture(params=[None, 0.6], ids=["complete", "masked"])
def data(request):
    values, observed = sparse_data((3, 2), N_ATOMS, N_ITEMS, keep=request.param)
    mask = np.ones(values.shape, bool) if observed is None else observed
    return Items.from_matrix(values, observed), values.reshape(N_ITEMS, 6), mask.reshape(N_ITEMS, 6)


def begin(items, kind="cdf", passes=3):
    model = BPFA(shape=(3, 2), n_atoms=N_ATOMS, usage_prior=UsagePrior(5.0, 1.0))
    items = with_regions(items, 2)
    options = {"kind": kind, "passes": passes, "start": "pca", "seed": 2, "threads": 1}
    return OnlineChain.begin(model, items, n_batches=N_BATCHES, **options)


class Twin:
    """SCSS of METHODS 4.1 in plain NumPy, free of gamma_eps and of the prior."""

    def __init__(self):
        self.p, self.q = np.zeros((N_ATOMS, 6)), np.zeros((N_ATOMS, 6))
        self.counts, self.sizes = np.zeros((2, N_ATOMS)), np.zeros(2)
        self.slabs, self.observed, self.rest = np.zeros(N_ATOMS), 0, 0.0

    def add(self, x, omega, w, d, region):
        h = omega * (x - w @ d)
        for k in range(N_ATOMS):
            self.p[k] += (omega * w[:, [k]] * (h + np.outer(w[:, k], d[k]))).sum(axis=0)
            self.q[k] += (omega * w[:, [k]] ** 2).sum(axis=0)
        for g in range(2):
            self.counts[g] += (w[region == g] != 0).sum(axis=0)
            self.sizes[g] += (region == g).sum()
        self.slabs += (w**2).sum(axis=0)
        self.observed += omega.sum()
        self.rest += (h**2).sum()

    def compare(self, memory):
        np.testing.assert_allclose(memory.terms.linear, self.p, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(memory.terms.quadratic, self.q, rtol=1e-9)
        np.testing.assert_array_equal(memory.sums.counts, self.counts)
        np.testing.assert_array_equal(memory.sums.region_sizes, self.sizes)
        np.testing.assert_allclose(memory.sums.squares, self.slabs, rtol=1e-12)
        assert memory.sums.n_observed == self.observed
        assert memory.sums.residual_squares == pytest.approx(self.rest, rel=1e-9)


def batch_of(chain, values, omega, visit):
    """x, omega, w, d and regions of the batch of a visit, after it."""
    epoch, place = divmod(visit, N_BATCHES)
    chosen = np.split(chain.batches.arrangement(epoch), chain.batches.bounds[1:-1])[place]
    w = dense_codes(chain.now.codes[place], N_ATOMS)
    return values[chosen], omega[chosen], w, chain.now.state.dictionary, chain.source.region[chosen]


def test_the_paper_remembers_what_it_should(data):
    """At every visit of two epochs: terms at the end of the visit are added, a new epoch forgets."""
    items, values, omega = data
    with begin(items) as chain:
        for visit in range(2 * N_BATCHES):
            if visit % N_BATCHES == 0:
                twin = Twin()
            chain.now = chain._after_visit(False)  # without the update of all codes
            twin.add(*batch_of(chain, values, omega, visit))
            twin.compare(chain.now.memory)
        assert twin.q.min() >= 0 and (twin.q > 0).any()


def test_the_paper_draws_from_what_it_remembers(data, monkeypatch):
    """Three passes: the first without atoms; all with the memory from before the visit."""
    items = data[0]
    sweeps, precisions = [], []
    sweep, draw_precision = BPFA.sweep, base.draw_precision

    def watched(model, state, engine, seed, number, rest, with_atoms):
        sweeps.append((number, rest, with_atoms))
        after, report = sweep(model, state, engine, seed, number, rest, with_atoms)
        assert np.array_equal(after.dictionary, state.dictionary) == (not with_atoms)
        sweeps[-1] += (report,)
        return after, report

    def told(count, squares, *rest, **bounds):
        precisions.append((count, squares))
        return draw_precision(count, squares, *rest, **bounds)

    monkeypatch.setattr(BPFA, "sweep", watched)
    monkeypatch.setattr(base, "draw_precision", told)
    with begin(items) as chain:
        for visit in range(N_BATCHES):
            before = chain.now.memory
            chain.now = chain._after_visit(False)
            made = sweeps[-3:]
            assert [with_atoms for _, _, with_atoms, _ in made] == [False, True, True]
            assert [number for number, *_ in made] == [4 * visit + 1, 4 * visit + 2, 4 * visit + 3]
            for turn, (_, rest, _, report) in enumerate(made):
                np.testing.assert_array_equal(rest.terms.linear, before.terms.linear)
                codes, noise = precisions[-6 + 2 * turn : -4 + 2 * turn or None]
                assert codes[0] == before.sums.counts.sum() + report.sums.counts.sum()
                assert codes[1] == pytest.approx(before.sums.squares.sum() + report.sums.squares.sum())
                assert noise[0] == before.sums.n_observed + chain.engine.n_observed
                squares = before.sums.residual_squares + report.residual_squares
                assert noise[1] == pytest.approx(squares)
        assert before.sums.n_observed > 0


def test_exact_memory_is_that_of_all_codes(data):
    """After several epochs of taking out and putting back."""
    items, values, omega = data
    with begin(items, "exact", 1) as chain:
        for visit in range(5 * N_BATCHES):
            chain.advance(visit >= 6)
        memory, chosen = chain.now.memory, chain.batches.arrangement(0)
        weights = np.zeros((N_ITEMS, N_ATOMS))
        weights[chosen] = np.concatenate([dense_codes(codes, N_ATOMS) for codes in chain.now.codes])
    assert isinstance(memory, Exact)
    np.testing.assert_allclose(memory.pairs.data_products, weights.T @ (omega * values), atol=1e-9)
    if items.complete:
        np.testing.assert_allclose(memory.pairs.code_products, weights.T @ weights, atol=1e-9)
    else:
        row = 0
        for k in range(N_ATOMS):
            for other in range(k, N_ATOMS):
                expected = (omega * (weights[:, k] * weights[:, other])[:, None]).sum(axis=0)
                np.testing.assert_allclose(memory.pairs.products[row], expected, atol=1e-9)
                row += 1
    assert memory.data_squares == pytest.approx((omega * values**2).sum())
    np.testing.assert_array_equal(memory.sums.counts.sum(axis=0), (weights != 0).sum(axis=0))
    np.testing.assert_allclose(memory.sums.squares, (weights**2).sum(axis=0), rtol=1e-9)
    assert memory.sums.n_observed == omega.sum() and memory.sums.region_sizes.sum() == N_ITEMS


def test_exact_memory_of_single_precision_data_is_double():
    """Taking out and putting back leaves what all codes give, so that residuals of clean data are right."""
    values, _ = sparse_data((3, 2), N_ATOMS, N_ITEMS)
    items = Items.from_matrix(values.astype(np.float32))
    with begin(items, "exact", 1) as chain:
        for visit in range(5 * N_BATCHES):
            chain.advance(visit >= 6)
        memory, dictionary = chain.now.memory, chain.now.state.dictionary
        weights = np.zeros((N_ITEMS, N_ATOMS))
        chosen, codes = chain.batches.arrangement(0), chain.now.codes
        weights[chosen] = np.concatenate([dense_codes(part, N_ATOMS) for part in codes])
        assert codes[0].value.dtype == np.float32
    x = items.flat.astype(float).reshape(N_ITEMS, 6)
    squares = (x**2).sum()
    for found, expected in zip(memory.pairs, (weights.T @ weights, weights.T @ x)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * squares)
    left = residual_squares(dictionary, memory.pairs, memory.data_squares)
    assert left == pytest.approx(((x - weights @ dictionary) ** 2).sum(), abs=1e-13 * squares)


@pytest.mark.parametrize("kind", ["exact", "incremental"])
def test_noise_follows_the_present_epoch_until_draws_are_kept(data, kind, monkeypatch):
    """All its sweeps while the chain finds its way; afterwards all items, each once."""
    items, _, omega = data
    counts = []
    draw_precision = base.draw_precision

    def told(count, squares, *rest, **bounds):
        counts.append(count)
        return draw_precision(count, squares, *rest, **bounds)

    monkeypatch.setattr(base, "draw_precision", told)
    with begin(items, kind, 1) as chain:
        for visit in range(3 * N_BATCHES):
            chain.advance(visit >= 2 * N_BATCHES)
        sizes = [
            omega[part].sum() for part in np.split(chain.batches.arrangement(0), chain.batches.bounds[1:-1])
        ]
        orders = [chain.batches.order(epoch) for epoch in range(3)]
    observed = [int(count) for count in counts[1::2]]
    first = np.cumsum([sizes[batch] for batch, n in zip(orders[0], (12, 6, 4)) for _ in range(n)])
    np.testing.assert_array_equal(observed[:22], first)
    np.testing.assert_array_equal(observed[22:25], np.cumsum([sizes[batch] for batch in orders[1]]))
    np.testing.assert_array_equal(observed[25:], [omega.sum()] * 3)


def test_what_is_elsewhere_is_one_more_region():
    """Its share of all sums, none of them in the regions at hand, and nothing for the atoms."""
    random = np.random.default_rng(0)
    counts = random.integers(0, 30, (1, 4))
    sums = Sums(np.array([60]), 500, counts, random.random(4), 7.0)
    memory = Filtered(sums, AtomTerms(random.random((4, 6)), random.random((4, 6))))
    rest = elsewhere(memory, 3, 0.25)
    assert rest.sums.region_sizes.tolist() == [0, 0, 0, 15] and rest.sums.n_observed == 125
    assert np.array_equal(rest.sums.counts, [[0] * 4] * 3 + [(0.25 * counts[0]).tolist()])
    assert np.allclose(rest.sums.squares, 0.25 * sums.squares) and rest.sums.residual_squares == 1.75
    assert rest.pairs is None and not rest.terms.linear.any() and not rest.terms.quadratic.any()


def test_restoring_leaves_the_atoms_and_follows_the_rest_where_nothing_is_observed(data):
    items, _, _ = data
    model = BPFA(shape=(3, 2), n_atoms=N_ATOMS, usage_prior=UsagePrior(5.0, 1.0))
    learned = learn_batch(model, None, items, seed=1, passes=8, threads=1)
    before = [np.copy(part) for part in learned.state]
    unseen = Items.from_matrix(np.zeros((40, 3, 2), items.flat.dtype), np.zeros((40, 3, 2), bool))
    options = {"share": 0.5, "seed": 1, "place": 2, "sweeps": 30, "burn_in": 10, "threads": 1}
    found = expect_batch(replace(model, fixed_atoms=True), learned, unseen, **options)
    noise = found.trace[10:, 0].mean()
    assert noise == pytest.approx(learned.state.noise_precision**-0.5, rel=0.15)
    assert found.moments.draws == 20 and np.isfinite(found.moments.mean()).all()
    assert all((a == b).all() for a, b in zip(before, learned.state))
    other = expect_batch(replace(model, fixed_atoms=True), learned, unseen, **(options | {"place": 3}))
    assert (other.trace != found.trace).any()  # blocks have random numbers of their own
