"""Learning from a stream: repeatable, follows the data, and a batch that cannot be used changes nothing."""

from functools import partial

import numpy as np
import pytest

import kruskal
from kruskal.errors import InputError
from kruskal.gibbs.surrogate import Filtered

SHORT = {"n_atoms": 10, "threads": 1, "seed": 3}


def source(seed, shape=(5, 4), n_atoms=4, unit=100.0):
    """Batches of sparse sums of rank-one atoms, with little noise: ``batch(n_items, seed)``."""
    random = np.random.default_rng(seed)
    atoms = np.array([np.outer(*(random.standard_normal(size) for size in shape)) for _ in range(n_atoms)])

    def batch(n_items, number):
        draws = np.random.default_rng([seed, number])
        weights = draws.standard_normal((n_items, n_atoms)) * (draws.random((n_items, n_atoms)) < 0.4)
        items = np.tensordot(weights, atoms, 1) + 0.03 * draws.standard_normal((n_items, *shape))
        return unit * items

    return batch


def fed(model, batches, masks=None):
    for number, batch in enumerate(batches):
        model.partial_fit(batch, observed=None if masks is None else masks[number])
    return model


def state_of(model):
    return [np.copy(array) for array in (*model.learned_.state, *model.ongoing_.learned.memory.terms)]


def error_of(model, items):
    mean, _ = model.reconstruct(items)
    return float(np.sqrt(np.mean((mean - items) ** 2)))


@pytest.mark.parametrize("kind", [kruskal.KFA, kruskal.BPFA])
def test_a_stream_teaches_what_a_fit_does_and_is_repeatable(kind):
    # with so few atoms and terms a learned alpha runs to its limit
    estimator = partial(kruskal.KFA, rank=2, alpha=5.0) if kind is kruskal.KFA else kruskal.BPFA
    batch = source(0)
    batches = [batch(150, number) for number in range(5)]
    masks = [np.random.default_rng(number).random(items.shape) < 0.7 for number, items in enumerate(batches)]
    one, two = (fed(estimator(**SHORT), batches, masks) for _ in range(2))
    assert all((a == b).all() for a, b in zip(state_of(one), state_of(two)))
    fitted = estimator(sweeps=30, **SHORT).fit(np.concatenate(batches), observed=np.concatenate(masks))
    new = batch(100, 99)
    assert error_of(one, new) < 1.1 * error_of(fitted, new)
    assert one.noise_std_ == pytest.approx(3.0, rel=0.1)
    assert one.learned_.n_items == 750 and one.transform(new).shape == (100, 10)
    assert len(one.trace_["noise_std"]) == 5 and ("alpha" in one.trace_) == (kind is kruskal.KFA)


def test_nan_is_missing_as_the_mask_says():
    items = source(1)(120, 0)
    seen = np.random.default_rng(2).random(items.shape) < 0.6
    by_mask = fed(kruskal.KFA(**SHORT), [items] * 2, [seen] * 2)
    by_nan = fed(kruskal.KFA(**SHORT), [np.where(seen, items, np.nan)] * 2)
    assert all((a == b).all() for a, b in zip(state_of(by_mask), state_of(by_nan)))


def test_forgetting_follows_a_source_that_changes():
    before, after = source(3), source(4)
    batches = [before(150, number) for number in range(4)] + [after(150, number) for number in range(4)]
    remembers = fed(kruskal.BPFA(n_atoms=4, threads=1), batches)
    forgets = fed(kruskal.BPFA(n_atoms=4, threads=1, forgetting=0.3), batches)
    new = after(150, 99)
    assert error_of(forgets, new) < 0.6 * error_of(remembers, new)
    effective = forgets.ongoing_.learned.memory.sums.region_sizes.sum()
    assert effective == pytest.approx(150 * (1 - 0.3**8) / 0.7)


def test_with_forgetting_zero_the_memory_is_that_of_the_last_batch():
    batch = source(5)
    model = fed(kruskal.KFA(forgetting=0.0, **SHORT), [batch(60, 0), batch(80, 1)])
    assert isinstance(model.ongoing_.learned.memory, Filtered)
    assert model.ongoing_.learned.memory.sums.region_sizes.tolist() == [80]
    assert model.learned_.n_items == 140


def test_a_batch_that_cannot_be_used_changes_nothing():
    batch = source(6)
    model = fed(kruskal.KFA(**SHORT), [batch(80, 0)])
    before, learned = state_of(model), model.learned_
    good = batch(50, 1)
    refused = [
        (np.zeros((20, 5, 5)), None, r"items of shape \(5, 5\), expected \(5, 4\)"),
        (np.zeros((20, 20)), None, r"items of shape \(20,\), expected \(5, 4\)"),
        (good[:0], None, "0 sample"),
        (np.full_like(good, np.nan), None, "nothing of X is observed"),
        (good, np.zeros(good.shape, bool), "nothing of X is observed"),
        (good, np.ones((49, 5, 4), bool), "^observed has shape"),
        (np.where(good > 0, np.inf, good), None, "infinite"),
        (good * 1e300, None, "too large"),
        (good.astype(complex), None, "complex"),
    ]
    for items, mask, sentence in refused:
        with pytest.raises(InputError, match=sentence):
            model.partial_fit(items, observed=mask)
    with pytest.raises(InputError, match="by its name"):
        model.partial_fit(good, np.ones(good.shape, bool))
    for wrong in (1.5, -0.1, "all", np.nan):
        with pytest.raises(InputError, match="forgetting must be a number from 0 to 1"):
            model.set_params(forgetting=wrong).partial_fit(good)
    assert model.learned_ is learned and all((a == b).all() for a, b in zip(before, state_of(model)))
    model.set_params(forgetting=1.0).partial_fit(good)
    other = fed(kruskal.KFA(**SHORT), [batch(80, 0), good])
    assert all((a == b).all() for a, b in zip(state_of(other), state_of(model)))


def test_a_stream_is_not_annealed():
    """Neither by default, which `fit` is for pictures with holes, nor if asked to: it has no burn-in."""
    pictures = np.where(np.random.default_rng(0).random((60, 8, 8)) < 0.5, 1.0 + np.arange(8.0), np.nan)
    for given in (None, 1):
        model = kruskal.KFA(n_atoms=4, rank=1, sweeps=4, annealing=given, threads=1).partial_fit(pictures)
        assert model.learned_.settings["annealing"] == 0
        assert model.fit(pictures).learned_.settings["annealing"] == 1


def test_a_refused_first_batch_leaves_no_trace():
    with pytest.raises(InputError, match="annealing must be a whole number of at least 0, not -3"):
        kruskal.KFA(**SHORT, annealing=-3).partial_fit(source(7)(80, 0))
    model = kruskal.KFA(**SHORT)
    with pytest.raises(InputError, match="X is constant"):
        model.partial_fit(np.ones((30, 5, 4)))
    assert not hasattr(model, "learned_") and not hasattr(model, "ongoing_")
    with pytest.raises(InputError, match="not fitted"):
        model.transform(np.ones((30, 5, 4)))


def test_an_interrupt_leaves_the_state_from_before(monkeypatch):
    batch = source(7)
    model = fed(kruskal.KFA(**SHORT), [batch(80, 0)])
    before = state_of(model)

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kruskal.ongoing.learn_batch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(batch(80, 1))
    assert all((a == b).all() for a, b in zip(before, state_of(model)))


def test_a_stream_after_a_fit_or_a_file_begins_with_its_atoms(tmp_path):
    batch = source(8)
    fitted = kruskal.KFA(sweeps=20, rank=2, **SHORT).fit(batch(200, 0))
    fitted.save(tmp_path / "dictionary.npz")
    scaling = fitted.learned_.scaling
    loaded = kruskal.KFA.load(tmp_path / "dictionary.npz")
    for model in (fitted, loaded):
        model.partial_fit(batch(100, 1))
        assert model.learned_.scaling == scaling and model.learned_.rank == 2
        assert model.learned_.n_items == 100
    assert all((a == b).all() for a, b in zip(state_of(fitted), state_of(loaded)))
    fitted.fit(batch(200, 0))
    assert not hasattr(fitted, "ongoing_")


def test_a_stream_can_be_saved(tmp_path):
    batch = source(9)
    model = fed(kruskal.BPFA(forgetting=0.9, **SHORT), [batch(80, 0), batch(80, 1)])
    model.save(tmp_path / "dictionary.npz")
    again = kruskal.BPFA.load(tmp_path / "dictionary.npz")
    new = batch(30, 2)
    assert again.forgetting == 0.9 and (again.transform(new) == model.transform(new)).all()


def test_a_batch_in_other_units_has_a_sparsity_within_reason():
    """The rule for loud noise must not run away, or the user would be blamed for a sparsity of 1e12."""
    X = np.random.default_rng(0).random((60, 4, 4))
    model = kruskal.KFA(n_atoms=4, rank=1, sweeps=4, threads=1).fit(X)
    model.partial_fit(1e4 * X)
    assert model.learned_.settings["sparsity"] <= 125.0
