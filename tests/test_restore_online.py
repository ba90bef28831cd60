"""Restoring by learning online: options, results, checkpoints."""

import numpy as np
import pytest

import kruskal
from kruskal import settings as settings_module
from kruskal.engines.progress import Silent
from kruskal.settings import resolve

X = np.add.outer(np.sin(np.arange(14.0) / 3), np.cos(np.arange(14.0) / 3))
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.6, X, np.nan)
QUICK = {
    "patch_shape": (4, 4), "n_atoms": 6, "sparsity": 0, "epochs": 4, "batch_size": 40, "threads": 1
}  # fmt: skip


class Told(Silent):
    """Remembers what it is told, and presses Ctrl-C after a number of visits."""

    def __init__(self, stop=None):
        self.notes, self.begun, self.shown, self.last = [], None, [], stop

    def start(self, total, done=0, unit="sweep"):
        self.begun = total, done, unit

    def note(self, text):
        self.notes.append(text)

    def update(self, done, values):
        self.shown.append((done, values["epoch"]))
        if done == self.last:
            raise KeyboardInterrupt


@pytest.mark.parametrize("model", ["kfa", "bpfa"])
@pytest.mark.parametrize("x", [X, HOLES], ids=["complete", "masked"])
@pytest.mark.parametrize("online", ["exact", "cdf", "incremental"])
def test_online(online, x, model):
    """All kinds restore; a row of the trace per visit, a draw per kept epoch."""
    told = Told()
    found = kruskal.inpaint(
        x, online=online, model=model, regions=4, seed=1, progress=told, **QUICK | {"epochs": 10}
    )
    missing = np.isnan(x)
    assert np.abs(found.mean - X).mean() < 0.35 and np.isfinite(found.std).all()
    assert found.kept == 5 and all(len(values) == 40 for values in found.trace.values())
    assert found.noise_std == pytest.approx(found.trace["noise_std"][-20:].mean())
    assert told.begun == (40, 0, "batch") and told.shown[0] == (1, 1) and told.shown[-1] == (40, 10)
    assert (found.usage <= 1).all() and (found.usage > 0).any() and missing.any() == (x is HOLES)
    names = ("online", "batch_size", "batches", "passes", "sweeps", "burn_in")
    expected = (online, 40, 4, 3 if online == "cdf" else 1, 10, 5)
    assert tuple(found.settings[name] for name in names) == expected


def test_true_means_exact():
    assert resolve((14, 14), online=True).online == "exact"
    assert resolve((14, 14), online=False).online is None


def test_the_paper_by_default():
    settings = resolve((256, 256), online="cdf", setting="paper")
    assert (settings.sweeps, settings.burn_in, settings.passes) == (10, 5, 3)
    assert settings.batches == 13 and settings.batch_size == 5000
    assert resolve((256, 256), online="exact", patch_shape=(8, 8), stride=1).batches == 4


@pytest.mark.parametrize("online", ["exact", "cdf", "incremental"])
def test_an_interrupted_run_ends_as_an_uninterrupted_one(online, tmp_path):
    """In the middle of an epoch that is kept."""
    options = {"online": online, "regions": 4, "seed": 5} | QUICK
    whole = kruskal.inpaint(HOLES, **options)
    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint(HOLES, checkpoint=tmp_path / "run", progress=Told(10), **options)
    resumed = kruskal.resume(tmp_path / "run", threads=2)
    for folder, result in (("whole", whole), ("resumed", resumed)):
        result.save(tmp_path / f"{folder}.npz")
    assert (tmp_path / "whole.npz").read_bytes() == (tmp_path / "resumed.npz").read_bytes()


def test_one_large_batch():
    """A batch that is larger than the array is the array, and that is said."""
    told = Told()
    options = QUICK | {"batch_size": 1000}
    found = kruskal.inpaint(HOLES, online="exact", progress=told, **options)
    assert found.settings["batches"] == 1 and found.settings["batch_size"] == 121
    assert told.notes[-1] == "one batch holds all 121 patches, not 1000 as asked for"
    plain = kruskal.inpaint(
        HOLES, patch_shape=(4, 4), n_atoms=6, sparsity=0, sweeps=4, annealing=0, threads=1
    )
    np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-3, atol=1e-3)


def test_pilot_runs_are_made_as_ever():
    x = np.add.outer(np.sin(np.arange(96.0)), np.cos(np.arange(96.0)))
    x[np.random.default_rng(1).random(x.shape) < 0.5] = np.nan
    found = kruskal.inpaint(x, online="exact", epochs=2, n_atoms=6, batch_size=3000)
    assert found.pilots and found.settings["online"] == "exact"


@pytest.mark.parametrize("online", ["exact", "cdf", "incremental"])
@pytest.mark.parametrize("x", [X, HOLES], ids=["complete", "masked"])
def test_known_atoms_may_be_used_online(online, x):
    """The sums of `exact` take in a batch also when the atoms are kept."""
    learned = kruskal.learn([x], patch_shape=(4, 4), n_atoms=8, sweeps=20, seed=0, threads=1)
    options = {"dictionary": learned, "seed": 1, "threads": 1}
    plain = kruskal.inpaint(x, **options, sweeps=10)
    found = kruskal.inpaint(x, **options, online=online, batch_size=40, epochs=10)
    np.testing.assert_array_equal(found.dictionary, learned.dictionary)
    assert found.noise_std < 2.0 * plain.noise_std + 0.02
    assert np.sqrt(np.mean((found.mean - plain.mean) ** 2)) < 0.1


def test_pilot_runs_know_the_sparsity_of_the_run():
    """In colour a run that is not online would be far sparser."""
    x = np.random.default_rng(0).normal(size=(64, 64, 1)) + np.ones(3)
    holes = np.where(np.random.default_rng(1).random(x.shape) < 0.4, np.cumsum(x, 0), np.nan)
    found = kruskal.inpaint(holes, online="cdf", epochs=2, n_atoms=6, threads=1)
    assert found.pilots[0]["sparsity"] == 2.0


def test_until_converged_and_time_budget():
    """Decided between epochs."""
    options = QUICK | {"online": "exact"}
    found = kruskal.inpaint(HOLES, time_budget=1e-3, **options)
    assert found.kept == 1 and len(found.trace["noise_std"]) % 4 == 0
    found = kruskal.inpaint(HOLES, until_converged=True, **(options | {"epochs": 40}))
    assert found.kept >= 10 and len(found.trace["noise_std"]) % 4 == 0


@pytest.mark.parametrize(
    "options, sentence",
    [
        (
            {"online": "sometimes"},
            "online must be one of exact, cdf, incremental, True or None, not 'sometimes'",
        ),
        ({"online": "exact", "batch_size": 0}, "batch_size must be a whole number of at least 1, not 0"),
        ({"online": "exact", "batch_size": 2.5}, "batch_size must be a whole number"),
        ({"online": "cdf", "epochs": 0}, "epochs must be a whole number of at least 1, not 0"),
        ({"online": "cdf", "passes": 0}, "passes must be a whole number of at least 1, not 0"),
        ({"online": "cdf", "epochs": 3, "burn_in": 3}, "burn_in must be smaller than epochs: 3 was given"),
        ({"online": "cdf", "sweeps": 3}, "sweeps is not for learning online: give epochs instead"),
        ({"batch_size": 10}, "batch_size is for learning online: give online as well"),
        ({"epochs": 10}, "epochs is for learning online: give online as well"),
        ({"passes": 2}, "passes is for learning online: give online as well"),
    ],
)
def test_bad_options(options, sentence):
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.inpaint(HOLES, **options)


def test_a_model_without_an_online_form(monkeypatch):
    monkeypatch.setattr(settings_module, "MODELS", ("kfa", "bpfa", "other"))
    with pytest.raises(kruskal.InputError, match="model kfa or bpfa, not with 'other'"):
        resolve((14, 14), model="other", online="exact")


def test_sums_that_would_not_fit_are_refused(tmp_path):
    """Before anything is done; complete data need no sums over pairs at every entry."""
    options = {"online": "exact", "patch_shape": (14, 14), "n_atoms": 2000, "checkpoint": tmp_path / "run"}
    with pytest.raises(kruskal.InputError, match=r"'exact' would keep 2.9 GiB for 2000 atoms of 196 entries"):
        kruskal.inpaint(HOLES, **options)
    assert not (tmp_path / "run").exists()
    found = kruskal.inpaint(X, online="exact", patch_shape=(4, 4), n_atoms=3000, epochs=1)
    assert found.kept == 1
