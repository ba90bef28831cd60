"""MGP-CP as people call it: what it finds, what it refuses, threads, checkpoints."""

import numpy as np
import pytest

import kruskal
from kruskal.engines.threads import StackEngine
from kruskal.errors import InputError
from kruskal.gibbs import stack
from kruskal.gibbs.shrinkage import draw_delta
from kruskal.models import MGPCPModel
from kruskal.patches import Grid, cut
from kruskal.random import Stream, generator
from kruskal.settings import resolve


def low_rank(shape, rank, noise, share, seed):
    """A noisy Kruskal tensor, the truth, and which entries are observed."""
    random = np.random.default_rng(seed)
    letters = "abcd"[: len(shape)]
    spec = f"{','.join(f'{letter}r' for letter in letters)}->{letters}"
    truth = np.einsum(spec, *(random.normal(size=(n, rank)) for n in shape))
    values = truth + noise * truth.std() * random.normal(size=shape)
    return values, truth, random.random(shape) < share


VALUES, TRUTH, OBSERVED = low_rank((8, 9, 7), 2, 0.05, 0.6, 0)
QUICK = {"model": "mgp-cp", "rank": 4, "sweeps": 8, "seed": 3}


@pytest.mark.parametrize(
    "shape, share, seed", [((14, 12, 13), 0.4, 1), ((7, 6, 7, 6), 0.4, 2), ((40, 50), 0.7, 3)]
)
def test_the_rank_of_a_synthetic_tensor(shape, share, seed):
    values, truth, observed = low_rank(shape, 3, 0.05, share, seed)
    found = kruskal.inpaint(values, observed, model="mgp-cp", rank=8, sweeps=150, seed=seed)
    assert found.rank == 3
    assert found.trace["rank"].shape == (150,) and found.usage.shape == (8,)
    # the strongest term first, whatever place it had in a draw
    assert (np.diff(found.usage) <= 0).all() and (found.usage[: found.rank] > 0.5).all()
    assert found.noise_std == pytest.approx(0.05 * truth.std(), rel=0.15)
    off = (found.mean - truth)[~observed]
    assert np.sqrt((off**2).mean()) < 0.1 * truth.std()
    assert 0.8 < (np.abs(off) < 2.0 * found.std[~observed]).mean() <= 1.0


def test_complete_data():
    values, truth, _ = low_rank((10, 9, 8), 3, 0.1, 1.0, 4)
    found = kruskal.denoise(values, model="mgp-cp", rank=6, sweeps=120, seed=0)
    assert found.rank == 3
    assert np.linalg.norm(found.mean - truth) < 0.5 * np.linalg.norm(values - truth)


def test_the_estimator():
    fitted = kruskal.MGPCP(rank=4, sweeps=120, seed=1).fit(VALUES, observed=OBSERVED)
    assert fitted.rank_ == 2 and fitted.weights_.shape == (2,) and fitted.offset_ == 0.0
    assert [factor.shape for factor in fitted.factors_] == [(8, 2), (9, 2), (7, 2)]
    composed = np.einsum("r,ar,br,cr->abc", fitted.weights_, *fitted.factors_)
    assert np.linalg.norm(composed - fitted.mean_) < 0.05 * np.linalg.norm(fitted.mean_)
    assert fitted.std_.shape == VALUES.shape and fitted.noise_std_ > 0.0
    np.testing.assert_array_equal(fitted.mean_, fitted.restoration_.mean)


def test_patches_are_stacked():
    x = np.add.outer(np.sin(np.arange(20.0)), np.cos(0.7 * np.arange(22.0)))
    found = kruskal.inpaint(x, model="mgp-cp", patch_shape=(4, 4), stride=2, sweeps=40, seed=0)
    assert found.n_items == 90 and found.settings["rank"] == 16
    assert found.dictionary.shape == (16, 4, 4)
    assert [factor.shape for factor in found.factors] == [(90, 16), (4, 16), (4, 16)]
    assert np.sqrt(((found.mean - x) ** 2).mean()) < 0.05


@pytest.mark.parametrize("options", [{}, {"patch_shape": (4, 4, 4), "stride": 2}])
@pytest.mark.parametrize("complete", [False, True])
def test_threads_do_not_matter(options, complete, monkeypatch):
    monkeypatch.setattr(stack, "_ENTRIES_PER_PART", 40)
    observed = None if complete else OBSERVED
    one, three = (
        kruskal.inpaint(VALUES, observed, **QUICK, **options, threads=threads) for threads in (1, 3)
    )
    np.testing.assert_array_equal(one.mean, three.mean)
    np.testing.assert_array_equal(one.std, three.std)
    for name, values in one.trace.items():
        np.testing.assert_array_equal(values, three.trace[name])


@pytest.mark.parametrize("options", [{}, {"patch_shape": (4, 4, 4), "stride": 2}])
def test_a_resumed_run_equals_an_uninterrupted_one(options, tmp_path):
    whole = kruskal.inpaint(VALUES, OBSERVED, **QUICK, **options)

    class Interrupt:
        def start(self, total, done=0): ...
        def note(self, text): ...
        def stop(self): ...
        def update(self, done, values):
            assert values["rank"] >= 0 and "code_std" not in values
            if done == 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint(VALUES, OBSERVED, **QUICK, **options, checkpoint=tmp_path / "a", progress=Interrupt())
    resumed = kruskal.resume(tmp_path / "a")
    np.testing.assert_array_equal(whole.mean, resumed.mean)
    np.testing.assert_array_equal(whole.std, resumed.std)
    np.testing.assert_array_equal(whole.weights, resumed.weights)
    for name, values in whole.trace.items():
        np.testing.assert_array_equal(values, resumed.trace[name])


def test_a_result_can_be_saved(tmp_path):
    found = kruskal.inpaint(VALUES, OBSERVED, **QUICK)
    found.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["weights"], found.weights)
        np.testing.assert_array_equal(archive["factors_2"], found.factors[2])
        assert archive["trace_rank"].shape == (8,)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"n_atoms": 8}, "n_atoms is no option of the model mgp-cp: .* neither atoms nor sparse codes"),
        ({"sparsity": 1.0}, "sparsity is no option of the model mgp-cp"),
        ({"usage_prior": (1.0, 1.0)}, "usage_prior is no option of the model mgp-cp"),
        ({"regions": 4}, "regions is no option of the model mgp-cp"),
        ({"codes": "uncollapsed"}, "codes is no option of the model mgp-cp"),
        ({"channels": "keep"}, "channels is no option of the model mgp-cp"),
        ({"auto": True}, "auto is no option of the model mgp-cp"),
        ({"stride": 2}, "stride is no option of the model mgp-cp: it decomposes the whole array unless"),
        ({"rank": 0}, "rank must be a whole number of at least 1, not 0"),
        ({"rank": 57}, "rank 57 is not possible: no tensor of shape 8x9x7 has a rank above 56"),
        ({"rank": "full"}, "rank must be 'auto' or a whole number"),
        ({"alpha": -1.0}, "alpha must be 'sample', 'map' or a number above 0"),
        ({"start": "svd"}, "start must be one of pca, random"),
        ({"patch_shape": (4, 4)}, "patch_shape must have one size per axis"),
    ],
)
def test_what_makes_no_sense_is_refused(options, sentence):
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.inpaint(VALUES, OBSERVED, **(QUICK | options))


@pytest.mark.parametrize("shape", [(30,), (1, 30), (30, 1, 1)])
def test_a_vector_has_no_decomposition(shape):
    x = np.sin(np.arange(30.0)).reshape(shape)
    if shape[0] == 1:
        assert kruskal.inpaint(x, model="mgp-cp", sweeps=3).mean.shape == shape
        return
    with pytest.raises(kruskal.InputError, match="x must have at least two axes longer than 1"):
        kruskal.inpaint(x, model="mgp-cp", sweeps=3)


@pytest.mark.parametrize(
    ("x", "observed", "sentence"),
    [
        (np.ones((4, 5)), None, "X is constant: all 20 observed entries are 1.0"),
        (np.sin(np.arange(9.0)), None, "X must have at least two axes longer than 1"),
        (np.full((4, 5), np.nan), None, "nothing of X is observed"),
        (np.eye(4), np.ones(3), r"observed has shape \(3,\), expected .* like X$"),
    ],
)
def test_the_estimator_calls_the_array_by_its_own_name(x, observed, sentence):
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.MGPCP(sweeps=3).fit(x, observed=observed)


@pytest.mark.parametrize("alpha", ["map", 2.5])
def test_alpha_by_maximum_or_fixed(alpha):
    found = kruskal.inpaint(VALUES, OBSERVED, **QUICK, alpha=alpha)
    assert np.isfinite(found.mean).all()
    if alpha == 2.5:
        assert (found.trace["alpha"] == 2.5).all()
    with pytest.raises(kruskal.InputError, match="alpha_mode must be one of"):
        MGPCPModel(item_shape=(3,), sizes=(4, 3), rank=2, alpha_mode="mean")


@pytest.mark.parametrize("moves", [True, False])
def test_alpha_and_delta_move_along_their_ridge_only_with_moves(moves):
    """Without moves delta is as it was drawn given the weights."""
    shape = VALUES.shape
    items = cut(VALUES, None, Grid(shape, shape, (1, 1, 1)))
    model = MGPCPModel(item_shape=shape[1:], sizes=shape, rank=3, delay=0, moves=moves)
    with StackEngine(items, 1) as engine:
        state, moved = model.start("pca", items, 0), 0
        for number in range(1, 21):
            before, (state, _) = state, model.sweep(state, engine, 0, number)
            random = generator(0, Stream.SHRINKAGE, number)
            drawn = draw_delta(before.log_delta[None], state.weights[None], before.alpha, random)
            moved += not np.array_equal(drawn[0], state.log_delta)
    assert (moved > 0) == moves


def test_settings():
    whole = resolve((5, 201, 61), model="mgp-cp")
    assert whole.patch_shape == (5, 201, 61) and whole.sizes == (5, 201, 61) and whole.rank == 32
    patches = resolve((256, 256), model="mgp-cp", patch_shape=(8, 8), stride=8, setting="paper")
    assert patches.sizes == (1024, 8, 8) and patches.rank == 64
    assert (patches.sweeps, patches.burn_in, patches.annealing) == (150, 40, 0)


def test_extreme_data():
    """Exact low rank without noise, a huge scale, rows and columns without data: finite everywhere."""
    values, truth, observed = low_rank((6, 5, 4), 1, 0.0, 0.7, 5)
    observed[2], observed[:, 3] = False, False
    found = kruskal.inpaint(1e30 * values, observed, model="mgp-cp", rank=5, sweeps=60, seed=1)
    assert np.isfinite(found.mean).all() and np.isfinite(found.std).all()
    seen = observed.any(axis=(1, 2))[:, None, None] & observed.any(axis=(0, 2))[None, :, None]
    seen = seen & np.ones_like(observed)
    assert np.abs(found.mean - 1e30 * truth)[seen].max() < 1e-3 * 1e30 * np.abs(truth).max()


def test_until_converged():
    found = kruskal.inpaint(VALUES, OBSERVED, model="mgp-cp", rank=4, until_converged=True, seed=0)
    assert 30 < len(found.trace["rank"]) < 500 and found.rank == 2


def test_the_estimator_can_be_cloned_and_changed():
    model = kruskal.MGPCP(rank=3, sweeps=7, seed=2)
    twin = kruskal.MGPCP(**model.get_params())
    assert twin.get_params() == model.get_params() and repr(twin) == "MGPCP(rank=3, seed=2, sweeps=7)"
    assert twin.set_params(rank=2).rank == 2 and not twin.__sklearn_is_fitted__()
    with pytest.raises(InputError, match="ranks is no parameter of MGPCP"):
        twin.set_params(ranks=2)


def test_labels_are_ignored_and_a_mask_in_their_place_is_refused():
    values = VALUES[:, :, 0]
    model = kruskal.MGPCP(rank=2, sweeps=10, threads=1)
    alone = model.fit(values).mean_
    np.testing.assert_array_equal(model.fit(values, np.arange(len(values)) % 2).mean_, alone)
    with pytest.raises(InputError, match="observed="):
        model.fit(values, values > 0)


@pytest.mark.parametrize(
    "x, sentence",
    [
        (None, "X is None, expected real numbers"),
        (5.0, "X is a single number, expected an array"),
        ([[1, 2], [3]], "X is not an array: its rows differ in length"),
    ],
)
def test_what_is_no_array_is_said_to_be_none(x, sentence):
    with pytest.raises(InputError, match=f"^{sentence}"):
        kruskal.MGPCP(rank=1, sweeps=2).fit(x)
