"""The functions that people call: arguments, results, checkpoints."""

import json
import os
import signal
from contextlib import contextmanager

import numpy as np
import pytest

import kruskal
from kruskal import running
from kruskal.data import Scaling
from kruskal.defaults import Look, default_patch_shape
from kruskal.engines import checkpoint
from kruskal.engines.chain import Chain
from kruskal.engines.progress import Silent
from kruskal.kernel import Compilation
from kruskal.settings import resolve

X = np.add.outer(np.sin(np.arange(12.0)), np.cos(np.arange(12.0)))
QUICK = {"patch_shape": (4, 4), "n_atoms": 6, "sweeps": 4}


class Notes:
    """A progress that remembers what it was told."""

    def __init__(self):
        self.notes, self.updates = [], []

    def start(self, total, done=0, unit="sweep"):
        pass

    def note(self, text):
        self.notes.append(text)

    def update(self, done, values):
        self.updates.append(done)

    def stop(self):
        pass


def bumpy(side=24, noise=0.1):
    x = np.add.outer(np.sin(np.arange(side) / 2.0), np.cos(np.arange(side) / 3.0))
    return x + noise * np.random.default_rng(0).standard_normal(x.shape)


def test_kept_draws_are_of_the_model_however_short_the_run():
    """The simpler rules of the first sweeps end with the burn-in, so they have no say in what is kept."""
    options = {"sweeps": 4, "burn_in": 2, "annealing": 0, "grouping": "place", "rank": 2, "auto": False}
    one, more = (
        kruskal.denoise(bumpy(), patch_shape=(6, 6), n_atoms=16, regions=n, threads=1, **options)
        for n in (1, 16)
    )
    assert (one.mean != more.mean).any()
    assert more.trace["alpha"][1] == 10.0 and len(set(more.trace["alpha"][1:])) == 3
    terms = kruskal.inpaint(bumpy(), model="mgp-cp", rank=2, sweeps=4, burn_in=1, threads=1, annealing=0)
    assert len(set(terms.trace["alpha"])) == 4


def test_a_time_budget_keeps_no_draw_of_the_first_sweeps():
    """Half of no time is over at once; the first sweeps have other rules and are not kept for that."""
    found = kruskal.denoise(bumpy(), sweeps=50, time_budget=1e-6, n_atoms=8, auto=False, threads=1)
    assert len(found.trace["alpha"]) == 6 and found.kept == 1
    online = {"online": True, "epochs": 8, "batch_size": 60, "patch_shape": (6, 6), "stride": 1, "n_atoms": 8}
    found = kruskal.denoise(bumpy(), time_budget=1e-6, threads=1, **online)
    batches = found.settings["batches"]
    assert batches > 1 and len(found.trace["alpha"]) == batches * (1 + -(-5 // batches)) and found.kept == 1


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"patch_shape": (13, 4)}, "patch_shape 13x4 is larger than the array 12x12 along axis 0"),
        ({"patch_shape": (4,)}, "patch_shape must have one size per axis"),
        ({"patch_shape": (float("inf"), 4)}, "patch_shape must hold whole numbers of at least 1"),
        ({"patch_shape": 8}, "patch_shape must hold whole numbers of at least 1, such as (8, 8), not 8"),
        ({"patch_shape": (0, 4)}, "patch_shape must hold whole numbers of at least 1"),
        ({"stride": 5}, "stride 5x5 is larger than the patch 4x4 along axis 0"),
        ({"stride": 0}, "stride must be a whole number of at least 1, not 0"),
        ({"stride": (1, 1, 1)}, "stride must be one number or one per axis"),
        ({"n_atoms": 0}, "n_atoms must be a whole number of 1 to 65535, not 0"),
        ({"n_atoms": 70_000}, "n_atoms must be a whole number of 1 to 65535"),
        ({"rank": 5}, "rank 5 is not possible: no tensor of shape 4x4 has a rank above 4"),
        ({"rank": "many"}, "rank must be 'auto' or a whole number"),
        ({"model": "bpfa", "rank": 2}, "rank is not for bpfa, whose atoms have no Kruskal terms"),
        ({"model": "bpfa", "alpha": 3.0}, "alpha is not for bpfa"),
        ({"sweeps": 0}, "sweeps must be a whole number of at least 1, not 0"),
        ({"burn_in": 4}, "burn_in must be smaller than sweeps"),
        ({"burn_in": -1}, "burn_in must be a whole number of at least 0"),
        ({"annealing": -1}, "annealing must be a whole number of at least 0, not -1"),
        ({"annealing": 3}, "annealing must be at most burn_in: 3 was given with a burn_in of 2"),
        ({"annealing": 1, "online": True, "sweeps": None}, "annealing is not for learning online"),
        ({"start": np.array(["pca", "random"])}, "start must be one of pca, random"),
        ({"start": "warm"}, "start must be one of pca, random, not 'warm'"),
        ({"model": "pca"}, "model must be one of kfa, bpfa"),
        ({"alpha": 0.0}, "alpha must be 'sample', 'map' or a number above 0"),
        ({"alpha": np.array([1.0, 2.0])}, "alpha must be 'sample', 'map' or a number above 0"),
        ({"codes": "fast"}, "codes must be one of collapsed, uncollapsed"),
        ({"channels": "drop"}, "channels must be one of keep, cut"),
        ({"usage_prior": (1.0, 0.0)}, "usage_prior must be two positive numbers"),
        ({"usage_prior": 3}, "usage_prior must be two positive numbers"),
        ({"sparsity": -1}, "sparsity must be a number from 0 to 1e12, not -1"),
        ({"sparsity": "much"}, "sparsity must be a number from 0 to 1e12, not 'much'"),
        ({"sparsity": 1, "usage_prior": (1, 1)}, "usage_prior says it all: leave sparsity out"),
        ({"regions": 0}, "regions must be a whole number of 1 to 4096, not 0"),
        ({"grouping": "colour"}, "grouping must be one of place, likeness, not 'colour'"),
        ({"setting": "best"}, "setting must be one of default, paper, not 'best'"),
        ({"time_budget": 0}, "time_budget must be a number of seconds above 0, not 0"),
        ({"time_budget": float("nan")}, "time_budget must be a number of seconds above 0, not nan"),
        ({"until_converged": "x"}, "until_converged must be True or False, not 'x'"),
        ({"until_converged": np.ones(2)}, "until_converged must be True or False"),
        ({"auto": "yes"}, "auto must be True or False, not 'yes'"),
        ({"adapt": "no"}, "adapt must be True or False, not 'no'"),
        ({"alpha": True}, "alpha must be 'sample', 'map' or a number above 0 and at most 1e8, not True"),
        ({"sparsity": True}, "sparsity must be a number from 0 to 1e12, not True"),
        ({"model": np.array(["kfa", "bpfa"])}, "model must be one of kfa, bpfa"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"threads": 0}, "threads must be a whole number of at least 1, not 0"),
        ({"threads": "a"}, "threads must be a whole number of at least 1, not 'a'"),
        ({"checkpoint": 3}, "checkpoint must be the path of a folder, not 3"),
        ({"checkpoint_seconds": "a"}, "checkpoint_seconds must be a number of at least 0, not 'a'"),
        ({"checkpoint_seconds": -1}, "checkpoint_seconds must be a number of at least 0"),
    ],
    ids=str,
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(kruskal.InputError) as caught:
        kruskal.inpaint(X, **(QUICK | options))
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "x, sentence",
    [
        (np.full((12, 12), 3.0), "x is constant: all 144 observed entries are 3.0"),
        (X.astype(complex), "x must hold real numbers, not complex128"),
        (np.array(["a", "b"]), "x must hold real numbers"),
        ([[1.0, 2.0], [3.0]], "x must be an array: the lists given have different lengths"),
        (None, "x must hold real numbers, not None"),
        ("picture.png", "x must hold real numbers, not 'picture.png'"),
        (np.float64(3.0), "x must have at least one axis"),
        (np.zeros((0, 3)), "x must have at least one axis and one entry"),
        (np.full((12, 12), np.nan), "nothing of x is observed: all 144 entries are missing"),
        (np.where(X > 1.5, np.inf, X), "x is infinite at"),
    ],
    ids=["constant", "complex", "words", "ragged", "none", "path", "scalar", "empty", "missing", "infinite"],
)
def test_bad_arrays_get_one_sentence(x, sentence):
    with pytest.raises(kruskal.InputError) as caught:
        kruskal.inpaint(x, **QUICK)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_result_has_what_it_promises(tmp_path):
    result = kruskal.inpaint(X, X > -1, **QUICK)
    assert result.mean.shape == result.std.shape == X.shape and (result.std > 0).all()
    assert result.dictionary.shape == (6, 4, 4) and result.ranks.shape == result.usage.shape == (6,)
    assert set(result.trace) == {"noise_std", "code_std", "active_per_item", "atoms_used", "alpha"}
    assert all(len(values) == 4 for values in result.trace.values())
    assert repr(result).startswith("<Restoration of 12x12 by kfa: noise_std ")
    result.save(tmp_path / "result.npz")
    with np.load(tmp_path / "result.npz") as saved:
        np.testing.assert_array_equal(saved["mean"], result.mean)
        np.testing.assert_array_equal(saved["trace_alpha"], result.trace["alpha"])
    with pytest.raises(kruskal.InputError, match=r"must end in \.npz"):
        result.save(tmp_path / "result.png")


@pytest.mark.parametrize("scale, offset", [(1e300, 0.0), (1e-300, 0.0), (1.0, 1e6), (-50.0, 3.0)])
def test_units_do_not_matter(scale, offset):
    plain = kruskal.inpaint(X, X < 1.2, **QUICK, seed=1)
    moved = kruskal.inpaint(scale * X + offset, X < 1.2, **QUICK, seed=1)
    assert np.isfinite(moved.mean).all() and np.isfinite(moved.std).all()
    error = np.abs((moved.mean - offset) / scale - X).max()
    assert error < 3 * np.abs(plain.mean - X).max() + 0.5


@pytest.mark.parametrize("shape", [(1, 40), (40,), (5, 2), (3,)])
def test_tiny_arrays(shape):
    x = np.random.default_rng(0).random(shape)
    result = kruskal.inpaint(x, sweeps=3)
    assert result.mean.shape == shape and np.isfinite(result.mean).all()


def test_one_item_and_one_atom():
    result = kruskal.inpaint(X, patch_shape=(12, 12), n_atoms=1, sweeps=6)
    assert result.n_items == 1 and np.isfinite(result.mean).all()


def test_a_checkpoint_goes_on(tmp_path):
    whole = kruskal.inpaint(X, X < 1.2, **QUICK)
    kept = kruskal.inpaint(X, X < 1.2, **QUICK, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    np.testing.assert_array_equal(kept.mean, whole.mean)
    again = kruskal.resume(tmp_path / "run")
    np.testing.assert_array_equal(again.mean, whole.mean)
    np.testing.assert_array_equal(again.std, whole.std)
    with pytest.raises(kruskal.InputError, match="already holds a run"):
        kruskal.inpaint(X, **QUICK, checkpoint=tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "state-of-the-art.npz").write_text("mine")
    with pytest.raises(kruskal.InputError, match=r"holds other files, such as state-of-the-art\.npz"):
        kruskal.inpaint(X, **QUICK, checkpoint=tmp_path / "mine")
    with pytest.raises(kruskal.InputError, match="is no checkpoint folder"):
        kruskal.resume(tmp_path)


@pytest.mark.parametrize("damage", ['"n_atoms": 6', '"sweeps": 4', '"checkpoint_seconds": 0.0', '"rank": 2'])
def test_a_damaged_header_is_refused(tmp_path, damage):
    kruskal.inpaint(X, X < 1.2, **QUICK, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    header = tmp_path / "run" / "state.json"
    text = header.read_text()
    assert damage in text
    name = damage.split(":")[0]
    changed = damage.replace("6", "7") if "atoms" in damage else f'{name[:-1]}x": 1'
    header.write_text(text.replace(damage, changed))
    with pytest.raises(kruskal.InputError, match="cannot be read"):
        kruskal.resume(tmp_path / "run")


@pytest.mark.parametrize("name", ["state-000004.npz", "input.npz"])
def test_a_file_that_was_cut_off_is_refused(tmp_path, name):
    kruskal.inpaint(X, X < 1.2, **QUICK, checkpoint=tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(b"")
    with pytest.raises(kruskal.InputError, match="cannot be read"):
        kruskal.resume(tmp_path / "run")


def test_a_run_that_fails_keeps_what_it_has(tmp_path, monkeypatch):
    """Whatever ends it, not only Ctrl-C."""
    whole = kruskal.inpaint(X, X < 1.2, **QUICK)

    class Listener(Silent):
        def update(self, done, values):
            if done == 2:
                raise RuntimeError("a listener that fails")

    with pytest.raises(RuntimeError):
        kruskal.inpaint(X, X < 1.2, **QUICK, checkpoint=tmp_path / "run", progress=Listener())
    assert (tmp_path / "run" / "state-000002.npz").exists()
    np.testing.assert_array_equal(kruskal.resume(tmp_path / "run").mean, whole.mean)


@pytest.mark.parametrize(
    "error", [kruskal.InputError("no space left"), OSError(5, "no space left"), MemoryError("no space left")]
)
def test_a_failed_checkpoint_does_not_cost_the_run(tmp_path, monkeypatch, error):
    def full_disk(*_):
        raise error

    monkeypatch.setattr(checkpoint, "save", full_disk)
    told = Notes()
    result = kruskal.inpaint(X, **QUICK, checkpoint=tmp_path / "run", checkpoint_seconds=0, progress=told)
    assert np.isfinite(result.mean).all() and told.updates == [1, 2, 3, 4]
    assert any("no checkpoint could be written after sweep 4: no space left" in note for note in told.notes)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_during_the_last_checkpoint_comes_after_it(tmp_path, monkeypatch):
    save = checkpoint.save

    def disturbed(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        save(*arguments)

    monkeypatch.setattr(checkpoint, "save", disturbed)
    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint(X, X < 1.2, **QUICK, checkpoint=tmp_path / "run")
    header = json.loads((tmp_path / "run" / "state.json").read_text())
    assert (header["done"], header["ended"]) == (4, True)


@pytest.mark.parametrize("compiled, sweeps", [(0.0, 6), (3600.0, 20)])
def test_compilation_does_not_count_as_time_of_a_budget(monkeypatch, compiled, sweeps):
    @contextmanager
    def watch(callback):
        compilation = Compilation(callback)
        compilation.seconds = compiled
        yield compilation

    told = Notes()
    monkeypatch.setattr(running, "watch_compilation", watch)
    result = kruskal.inpaint(X, X < 1.2, **QUICK | {"sweeps": 20}, time_budget=1e-6, progress=told)
    assert len(result.trace["noise_std"]) == sweeps
    notes = ["time was up in sweep 6, before the burn-in of 10 was over"] if sweeps < 10 else []
    assert told.notes == notes


def test_pilots_that_are_asked_for_in_vain():
    told = Notes()
    kruskal.inpaint(X, auto=True, sweeps=2, progress=told)
    assert any(note.startswith("no pilot runs") for note in told.notes)


def test_a_run_that_fails_in_its_first_sweep_saves_nothing(tmp_path, monkeypatch):
    def no_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr(Chain, "advance", no_memory)
    with pytest.raises(MemoryError):
        kruskal.inpaint(X, X < 1.2, **QUICK, checkpoint=tmp_path / "run")
    assert sorted(os.listdir(tmp_path / "run")) == ["input.npz", "state.json"]


def test_a_folder_is_held_while_it_is_read(tmp_path, monkeypatch):
    """Else a run that goes on elsewhere could be overwritten from an older state."""
    kruskal.inpaint(X, X < 1.2, **QUICK, checkpoint=tmp_path / "run")
    load, held = checkpoint.load, []

    def watched(directory):
        held.append((directory / "lock").exists())
        return load(directory)

    monkeypatch.setattr(checkpoint, "load", watched)
    kruskal.resume(tmp_path / "run")
    assert held == [True]


@pytest.mark.parametrize(
    "shape, channels, patch",
    [
        ((256, 256), None, (8, 8)),
        ((300,), None, (64,)),
        ((128, 128, 3), None, (8, 8, 3)),
        ((128, 128, 3), "cut", (6, 6, 3)),
        ((75, 75, 75), None, (6, 6, 6)),
        ((100, 100, 200), "keep", (2, 2, 200)),
        ((100, 100, 31), "keep", (5, 5, 31)),
        ((4, 4, 4, 4, 4), None, (2, 2, 2, 2, 2)),
        ((3, 3, 3, 3, 3, 3), None, (2, 2, 2, 2, 2, 2)),
        ((6, 6), None, (3, 3)),
        ((1,), None, (1,)),
    ],
)
def test_default_patches(shape, channels, patch):
    assert default_patch_shape(shape, channels) == patch


def test_defaults_follow_the_share_that_is_observed():
    sides = {share: resolve((64, 64), look=Look(share, 0.0)).patch_shape[0] for share in (0.1, 0.5, 0.9)}
    assert sides == {0.1: 16, 0.5: 12, 0.9: 8}
    few = resolve((64, 64), look=Look(0.1, 0.0))
    assert (few.usage_prior[1], few.sweeps, few.n_atoms) == (2.0 * few.grid.n_items, 48, 256)
    colour = resolve((64, 64, 3), look=Look(0.1, 0.0))
    assert (colour.usage_prior[1], colour.sweeps) == (64.0 * colour.grid.n_items, 100)
    brief = resolve((64, 64, 3), look=Look(0.1, 0.0), online="cdf")
    assert brief.usage_prior[1] == 2.0 * brief.grid.n_items
    assert resolve((64, 64, 30), look=Look(0.1, 0.0)).sweeps == 100
    assert resolve((64, 64), look=Look(0.1, 0.1)).patch_shape == (12, 12)
    for growth, size, sparsity in ((None, 8, 0.125), (2.7, 8, 0.125), (3.5, 16, 16.0)):
        noisy = resolve((64, 64), look=Look(1.0, 0.1, growth))
        assert noisy.patch_shape == (size, size) and noisy.sparsity == sparsity
    assert resolve((64, 64), look=Look(0.4, 0.1, 3.5)).sparsity == 0.125
    assert resolve((64, 64), look=Look(1.0, 0.1, 3.5), online="cdf").sparsity == 0.125
    assert resolve((40, 40, 40), look=Look(0.1, 0.0)).patch_shape == (10, 10, 10)
    assert resolve((40, 40, 40), look=Look(0.2, 0.0)).patch_shape == (8, 8, 8)


@pytest.mark.parametrize("model", ["kfa", "bpfa", "mgp-cp"])
def test_annealed_noise_sinks_slowly_and_is_free_afterwards(model):
    """The bound of sweep n is b 40^(-(n-1)/A), b a quarter of the range (mgp-cp: the size of the data)."""
    options = {"model": model, "sweeps": 18, "burn_in": 16, "seed": 1, "threads": 1, "rank": 2}
    options |= {} if model == "mgp-cp" else {"patch_shape": (4, 4), "n_atoms": 6}
    options |= {"rank": "auto"} if model == "bpfa" else {}
    plain = kruskal.inpaint(X, **options, annealing=0)
    slow = kruskal.inpaint(X, **options, annealing=12 if model == "mgp-cp" else 16)
    bounds = 40.0 ** (-np.arange(12) / 12)
    first = np.sqrt((X**2).mean()) if model == "mgp-cp" else 0.25 * Scaling.fit(X, np.isfinite(X)).scale
    trace = slow.trace["noise_std"]
    assert (trace[:12] >= first * bounds * (1 - 1e-6)).all()
    assert (plain.trace["noise_std"][:12] < first * bounds).any()
    assert trace[12:].max() < trace[:12].min()


@pytest.mark.parametrize("seed", range(4))
def test_atoms_come_back_after_annealing(seed):
    """Those that are of no use while the noise is large are not lost."""
    i = np.arange(40.0)
    x = 100 + 50 * np.add.outer(np.sin(i / 3), np.cos(i / 4))
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.5, x, np.nan)
    found = kruskal.inpaint(
        holes, patch_shape=(6, 6), n_atoms=12, sweeps=50, annealing=20, seed=seed, threads=1
    )
    assert np.sqrt(np.mean((found.mean - x) ** 2)) < 0.1


def test_clean_incomplete_pictures_are_annealed():
    def annealing(shape, look, **options):
        return resolve(shape, look=look, **options).annealing

    holes = Look(0.3, 0.0)
    assert annealing((64, 64), holes) == 20 and annealing((64, 64, 3), holes) == 41
    assert annealing((64, 64), holes, sweeps=12) == 5 and annealing((64, 64), holes, annealing=0) == 0
    assert annealing((64, 64), holes, sweeps=500) == 50
    for look in (Look(1.0, 0.0), Look(0.3, 0.1)):
        assert annealing((64, 64), look) == 0
    assert annealing((30, 30, 30), holes) == 41 and annealing((500,), holes) == 0
    assert annealing((64, 64), holes, online="cdf") == annealing((64, 64), holes, setting="paper") == 0
    assert annealing((64, 64), holes, known_atoms="fixed") == annealing((64, 64), holes, time_budget=9.0) == 0


def test_a_grey_picture_saved_in_colour(tmp_path):
    """Noise that all channels share is noise; one is restored and repeated, also in a resumed run."""
    random = np.random.default_rng(8)
    truth = np.add.outer(np.sin(np.arange(40) / 4), np.cos(np.arange(40) / 5))
    noisy = np.repeat((truth + 0.4 * random.standard_normal((40, 40)))[..., None], 3, axis=2)
    run = tmp_path / "run"
    found = kruskal.denoise(noisy, sweeps=30, auto=False, checkpoint=run, checkpoint_seconds=0)
    once = kruskal.denoise(noisy[..., 0], sweeps=30, auto=False)
    np.testing.assert_array_equal(found.mean, np.repeat(once.mean[..., None], 3, axis=2))
    np.testing.assert_array_equal(found.std[..., 2], once.std)
    assert found.noise_std == once.noise_std == pytest.approx(0.4, rel=0.1)
    assert np.square(once.mean - truth).mean() < 0.2 * 0.4**2
    np.testing.assert_array_equal(kruskal.resume(run).mean, found.mean)
    noisy[0, 0, 1] += 1e-6  # not the same any more
    assert kruskal.denoise(noisy, sweeps=2, auto=False).settings["patch_shape"][2] == 3
    assert resolve((64, 64, 3), channels="apart").patch_shape == (8, 8, 1)
    assert resolve((40, 40, 40, 9), channels="apart").patch_shape[3] == 1


def test_observed_entries_can_be_kept():
    random = np.random.default_rng(5)
    x = np.ma.masked_array(random.standard_normal((12, 12)), random.random((12, 12)) < 0.3)
    found = kruskal.inpaint(x, patch_shape=(4, 4), n_atoms=4, sweeps=4)
    kept, seen = found.with_observed(x), ~x.mask
    np.testing.assert_array_equal(kept.mean[seen], x.data[seen])
    np.testing.assert_array_equal(kept.mean[~seen], found.mean[~seen])
    np.testing.assert_array_equal(kept.std, np.where(seen, 0.0, found.std))
    assert (found.std > 0.0).all() and kept.dictionary is found.dictionary
    np.testing.assert_array_equal(found.with_observed(x.data, seen).mean, kept.mean)
    with pytest.raises(
        kruskal.InputError, match=r"x must have the shape \(12, 12\) of the result, not \(12, 11\)"
    ):
        found.with_observed(x[:, 1:])


def test_the_papers_setting_averages_overlapping_patches_as_they_are():
    assert resolve((14, 14)).build_model().weighted
    assert not resolve((14, 14), setting="paper").build_model().weighted
    random = np.random.default_rng(3)
    options = {"patch_shape": (4, 4), "n_atoms": 6, "sweeps": 6, "burn_in": 3, "setting": "paper"}
    paper = kruskal.inpaint(random.standard_normal((14, 14)), random.random((14, 14)) < 0.5, **options)
    assert np.isfinite(paper.mean).all() and (paper.std > 0.0).all()


def test_the_papers_setting_does_not_look_at_the_data():
    one, other = (resolve((64, 64), setting="paper", look=look) for look in (Look(0.1, 0.0), Look(1.0, 0.3)))
    assert one == other
    assert (one.patch_shape, one.n_atoms, one.rank, one.usage_prior) == ((8, 8), 256, 7, (256.0, 1.0))
    assert (one.sweeps, one.burn_in, one.regions) == (150, 40, 1)
    assert resolve((64, 64, 3), setting="paper", patch_shape=(7, 7, 3)).rank == 10
    assert resolve((64, 64), setting="paper", sweeps=20).burn_in == 10


def test_defaults_follow_the_noise():
    clean, noisy = (resolve((64, 64), look=Look(1.0, noise)) for noise in (0.01, 0.1))
    assert (clean.rank, clean.usage_prior, clean.regions, clean.patch_shape) == (2, (512.0, 1.0), 1, (8, 8))
    assert (noisy.rank, noisy.usage_prior) == (4, (256.0, noisy.grid.n_items / 8))
    assert noisy.regions == noisy.grid.n_items // 256 and noisy.patch_shape == (8, 8)
    large = resolve((2000, 2000))
    assert large.stride[0] > 1 and large.grid.n_items <= 250_000


def test_noisy_volumes_have_more_atoms_and_regions():
    """Complete ones that are not learned online, and never more than one atom for 16 patches."""
    noisy, volume = Look(1.0, 0.1), (40, 40, 40)
    settings = resolve(volume, look=noisy)
    assert (settings.n_atoms, settings.regions, settings.grouping) == (1024, 128, "likeness")
    small = resolve((14, 14, 14), look=noisy)
    assert (small.n_atoms, small.regions) == (256, small.grid.n_items // 256)
    middle = resolve((24, 24, 24), look=noisy)
    assert 256 < middle.n_atoms == middle.grid.n_items // 16 < 1024
    for shape, options in (
        (volume, {"look": Look(0.5, 0.1)}), (volume, {"look": noisy, "online": True}),
        ((300, 300, 3), {"look": noisy}), (volume, {"look": Look(1.0, 0.01)}),
    ):  # fmt: skip
        other = resolve(shape, **options)
        assert other.n_atoms <= 512 and other.regions <= 64
    given = resolve(volume, look=noisy, n_atoms=30, regions=2)
    assert (given.n_atoms, given.regions) == (30, 2)


def test_noise_on_little_detail():
    """Larger patches and few atoms where noise leaves three directions of a small patch to be seen."""
    for directions, growth, side, sparsity in (
        (2.9, None, 12, 8.0), (3.1, None, 8, 0.125), (2.0, 3.5, 16, 16.0), (2.0, 2.5, 12, 8.0),
        (8.5, 3.5, 16, 16.0), (9.5, 3.5, 8, 0.125), (5.0, 7.0, 8, 0.125), (None, 3.5, 16, 16.0),
    ):  # fmt: skip
        settings = resolve((64, 64), look=Look(1.0, 0.1, growth, 0.1, directions))
        assert (settings.patch_shape, settings.sparsity) == ((side, side), sparsity)
    assert resolve((64, 64), look=Look(1.0, 0.01, None, 0.1, 2.0)).patch_shape == (8, 8)  # not noisy
    step = np.where(np.arange(80) < 40, 0.0, 0.5)
    faint = np.add.outer(step, step) + 0.5 * np.random.default_rng(4).standard_normal((80, 80))
    look = Look.at(faint, np.ones(faint.shape, bool), 1.0)
    assert look.plain and not Look.at(faint[..., None], np.ones((80, 80, 1), bool), 1.0).plain


def test_stripes_on_a_slope_are_not_smooth():
    """Differences to the second neighbour that are as large as those to the fourth say nothing of growth."""
    places, random = np.arange(90.0), np.random.default_rng(6)
    slope, stripes = np.add.outer(places, places) / 60, 0.1 * np.sin(2 * np.pi * places / 5.9)
    noise, everywhere = 0.05 * random.standard_normal((90, 90)), np.ones((90, 90), bool)
    striped = Look.at(slope + np.add.outer(stripes, stripes) + noise, everywhere, 1.0)
    assert striped.noisy and striped.growth > 6.0 and not striped.smooth
    assert Look.at(slope + noise, everywhere, 1.0).smooth


def textured(shape=(60, 60), std=0.05):
    """Rough in all directions of patch space, and noisy."""
    random = np.random.default_rng(2)
    walk = np.cumsum(random.standard_normal(shape), axis=0) / 10
    return walk + std * random.standard_normal(shape)


def test_the_noise_of_complete_noisy_data_is_bounded(tmp_path):
    """Also in a resumed run, and whatever the units; not with holes, fixed atoms, or in the paper's model."""
    x = textured()
    look = Look.at(x, np.ones(x.shape, bool), Scaling.fit(x, np.ones(x.shape, bool)).scale)
    bound = look.most_noise
    assert look.noisy and 0.05 < bound < 0.2
    options = {"patch_shape": (6, 6), "n_atoms": 8, "sweeps": 12, "sparsity": 100.0}
    result = kruskal.denoise(x, **options, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    assert result.settings["most_noise"] == bound
    first, later = np.split(result.trace["noise_std"], [5])
    assert (first > bound).all() and (later <= bound * (1 + 1e-6)).all()
    again = kruskal.resume(tmp_path / "run")
    np.testing.assert_array_equal(again.mean, result.mean)
    np.testing.assert_array_equal(again.trace["noise_std"], result.trace["noise_std"])
    larger = kruskal.denoise(1024 * x, **options)
    assert larger.settings["most_noise"] == 1024 * bound
    np.testing.assert_array_equal(larger.mean, 1024 * result.mean)
    free = kruskal.denoise(x, **options, setting="paper")
    assert free.settings["most_noise"] is None
    assert free.trace["noise_std"][-1] > bound
    holes = np.random.default_rng(3).random(x.shape) < 0.9
    assert kruskal.inpaint(x, holes, **options).settings["most_noise"] is None
    assert resolve(x.shape, look=look, model="mgp-cp").most_noise is None
    assert resolve(x.shape, look=look, known_atoms="fixed").most_noise is None
    assert resolve(x.shape, look=look, known_atoms="adapted").most_noise == bound


def test_what_cannot_listen_is_refused_before_anything_is_written(tmp_path):
    sentence = "progress must be None or have the methods start, note, update and stop, not be 3"
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.inpaint(X, **QUICK, progress=3, checkpoint=tmp_path / "run")
    assert not list(tmp_path.iterdir())
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.resume(tmp_path, progress=3)
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.learn([X], patch_shape=(4, 4), n_atoms=4, sweeps=2, progress=3)


def test_a_mask_without_the_last_axis_holds_for_all_along_it():
    rows = np.arange(12) % 3 > 0
    short, whole = (kruskal.inpaint(X, mask, **QUICK) for mask in (rows, np.tile(rows[:, None], (1, 12))))
    np.testing.assert_array_equal(short.mean, whole.mean)


@pytest.mark.filterwarnings("error")
def test_a_range_beyond_that_of_float32():
    x = (np.random.default_rng(0).random((30, 30)) * 3.3e38).astype(np.float32)
    assert np.isfinite(kruskal.inpaint(x, **QUICK).mean).all()


def test_values_too_small_to_be_floats():
    """Below the smallest normal number floats lose their digits: the result was 0, with a std of 0."""
    with pytest.raises(kruskal.InputError, match=r"x holds no value larger than .*e-3\d\d, expected some"):
        kruskal.denoise(X * 1e-315, **QUICK)
    assert np.isfinite(kruskal.denoise(X * 1e-300, **QUICK).std).all()
