"""Out of core: blocks make no difference, files are whole or not there, memory follows from the block."""

import tracemalloc

import numpy as np
import pytest

import kruskal
from kruskal.blockwise import BlockwiseRun
from kruskal.data import read, write
from kruskal.errors import InputError

zarr = pytest.importorskip("zarr", reason="zarr is not installed")
SHORT = {"patch_shape": (5, 5), "stride": 2, "n_atoms": 16, "epochs": 2, "threads": 1, "seed": 1}


def texture(shape, noise=0.02, share=0.4, seed=0):
    """A smooth texture, the same with noise and gaps, and what is observed of it."""
    i, j = np.arange(shape[0])[:, None], np.arange(shape[1])
    truth = np.sin(i / 4.0) * np.cos(j / 3.0) + 0.5 * np.sin((i + 2.0 * j) / 5.0)
    random = np.random.default_rng(seed)
    observed = random.random(shape) < share
    noisy = truth + noise * random.standard_normal(shape)
    return truth, np.where(observed, noisy, np.nan).astype(np.float32), observed


def error(values, truth):
    return float(np.sqrt(np.mean((values - truth) ** 2)))


def test_zarr_npy_arrays_masks_and_nan_give_the_same(tmp_path):
    truth, damaged, observed = texture((53, 41))
    np.save(tmp_path / "x.npy", damaged)
    filled = np.where(observed, damaged, 7.0).astype(np.float32)
    stored = zarr.open_array(str(tmp_path / "x.zarr"), mode="w", shape=(53, 41), dtype="f4", chunks=(20, 16))
    stored[...] = filled
    stored.attrs["unit"] = "mm"
    np.save(tmp_path / "mask.npy", observed)
    np.save(tmp_path / "gaps.npy", ~observed)
    runs = [
        (damaged, {}),
        (tmp_path / "x.npy", {}),
        (np.load(tmp_path / "x.npy", mmap_mode="r"), {}),
        (tmp_path / "x.zarr", {"observed": tmp_path / "mask.npy"}),
        (stored, {"observed": tmp_path / "gaps.npy", "mask_is": "missing"}),
        (np.ma.array(filled, mask=~observed), {}),
    ]
    results = []
    for number, (source, options) in enumerate(runs):
        target, std = tmp_path / f"out{number}.zarr", tmp_path / f"std{number}.npy"
        found = kruskal.inpaint_large(source, target, std=std, block_shape=(20, 16), **SHORT, **options)
        results.append((zarr.open_array(str(target), mode="r"), np.load(std), found))
    first, first_std, found = results[0]
    assert first.shape == (53, 41) and first.dtype == np.float32 and first.chunks == (20, 16)
    assert found.n_blocks == 9 and found.n_items == 25 * 19 and found.dictionary.shape == (5, 5)
    assert error(first[...], truth) < 0.1 * truth.std()
    assert first_std.dtype == np.float32 and (first_std > 0).all()
    assert np.sqrt(np.mean(((first[...] - truth) / first_std) ** 2)) < 3.0
    for other, other_std, _ in results[1:]:
        assert (other[...] == first[...]).all() and (other_std == first_std).all()
    assert results[3][0].attrs["unit"] == "mm"
    assert {path.name[0] for path in tmp_path.iterdir()} <= set("xmgso")  # nothing is left aside


@pytest.mark.parametrize("seed", range(4))
def test_patches_without_data_do_not_begin_the_chain(tmp_path, seed):
    """In a corner something is observed; patches are drawn at random, and most hold nothing."""
    x = np.full((48, 48), np.nan)
    x[:3, :3] = np.arange(9.0).reshape(3, 3)
    kruskal.inpaint_large(x, tmp_path / "out.npy", patch_shape=(4, 4), epochs=1, seed=seed, threads=1)
    assert np.isfinite(np.load(tmp_path / "out.npy")).all()
    kruskal.inpaint_large(
        np.array([[3.0, np.nan], [1.0, 2.0]]), tmp_path / "two.npy", epochs=1, seed=seed, threads=1
    )
    assert np.isfinite(np.load(tmp_path / "two.npy")).all()


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_std_of_extreme_data(tmp_path, size):
    """float32 would make it 0 or the largest number there is."""
    _, damaged, _ = texture((24, 24), share=0.8)
    x = damaged.astype(np.float64)
    kruskal.inpaint_large(x * size, tmp_path / "out.npy", std=tmp_path / "std.npy", **SHORT)
    kruskal.inpaint_large(x, tmp_path / "usual.npy", std=tmp_path / "usual_std.npy", **SHORT)
    std, usual = np.load(tmp_path / "std.npy"), np.load(tmp_path / "usual_std.npy")
    assert std.dtype == np.float64 and usual.dtype == np.float32
    assert np.median(std / size / usual) == pytest.approx(1, abs=0.3)


def test_the_number_of_threads_and_the_format_have_no_influence(tmp_path):
    _, damaged, _ = texture((40, 40))
    options = SHORT | {"block_shape": (20, 20)}
    kruskal.inpaint_large(damaged, tmp_path / "one.npy", **options)
    kruskal.inpaint_large(damaged, tmp_path / "two.zarr", **(options | {"threads": 3}))
    assert (np.load(tmp_path / "one.npy") == zarr.open_array(str(tmp_path / "two.zarr"))[...]).all()


def test_blocks_agree_with_one_block_and_with_memory_and_have_no_borders(tmp_path):
    truth, damaged, _ = texture((96, 96), share=0.5)
    options = SHORT | {"epochs": 12, "sweeps": 12}
    kruskal.inpaint_large(damaged, tmp_path / "whole.npy", **options)
    kruskal.inpaint_large(
        damaged, tmp_path / "cut.npy", block_shape=np.array([32, 48]), **(options | {"epochs": 6})
    )
    kept = {name: SHORT[name] for name in ("patch_shape", "stride", "n_atoms", "threads", "seed")}
    memory = error(kruskal.inpaint(damaged, sweeps=30, **kept).mean, truth)
    whole, cut = (np.load(tmp_path / name) for name in ("whole.npy", "cut.npy"))
    assert error(whole, truth) < 1.35 * memory and error(cut, truth) < 1.35 * memory
    rows, columns = [31, 32, 63, 64], [47, 48]
    border = np.zeros(truth.shape, bool)
    border[rows] = border[:, columns] = True
    border[[0, 1, -2, -1]] = border[:, [0, 1, -2, -1]] = False
    inner = np.zeros(truth.shape, bool)
    inner[2:-2, 2:-2] = True
    inner &= ~border
    off = (cut - truth) ** 2
    assert np.sqrt(off[border].mean() / off[inner].mean()) < 1.15
    step = np.diff(cut - truth, axis=0)  # a seam would show as a jump from row 31 to 32
    assert np.sqrt(np.mean(step[[31, 63]] ** 2) / np.mean(step[8:24] ** 2)) < 1.3


def test_three_axes_integers_and_a_mask_for_all_channels(tmp_path):
    truth, _, _ = texture((36, 30))
    colours = np.clip(120 + 60 * truth[..., None] * np.array([1.0, 0.8, -0.5]), 0, 255).astype(np.uint8)
    observed = np.random.default_rng(3).random((36, 30)) < 0.6
    options = {"patch_shape": (5, 5, 3), "stride": (2, 2, 1), "block_shape": (17, 16, 3)}
    kruskal.inpaint_large(colours, tmp_path / "out.npy", observed, **(SHORT | options))
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.uint8 and out.shape == colours.shape
    assert error(out.astype(float), colours) < 0.15 * colours.std()


def test_blocks_without_data_and_smaller_than_a_patch(tmp_path):
    truth, damaged, _ = texture((42, 25))
    damaged[:12] = np.nan
    kruskal.inpaint_large(damaged, tmp_path / "out.npy", block_shape=(6, 3), **(SHORT | {"epochs": 12}))
    out = np.load(tmp_path / "out.npy")
    assert np.isfinite(out).all() and np.abs(out).max() < 5.0
    assert error(out[14:], truth[14:]) < 0.25 * truth.std()


@pytest.mark.parametrize("phase", ["_sample", "_expected"])
@pytest.mark.parametrize("name", ["out.zarr", "out.npy"])
def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch, phase, name):
    _, damaged, _ = texture((40, 40))
    calls, function = [], getattr(BlockwiseRun, phase)

    def interrupted(*args, **options):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return function(*args, **options)

    monkeypatch.setattr(BlockwiseRun, phase, interrupted)
    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint_large(damaged, tmp_path / name, std=tmp_path / "s.npy", block_shape=(16, 16), **SHORT)
    assert list(tmp_path.iterdir()) == []


def test_a_result_from_before_stays_when_the_input_breaks(tmp_path):
    _, damaged, _ = texture((40, 40))
    np.save(tmp_path / "out.npy", np.arange(3))
    damaged[30, 30] = np.inf
    with pytest.raises(InputError, match=r"^\[.*\] of source is infinite at 1 observed entry"):
        kruskal.inpaint_large(damaged, tmp_path / "out.npy", block_shape=(20, 20), **SHORT)
    assert (np.load(tmp_path / "out.npy") == np.arange(3)).all()


class Listener(kruskal.engines.progress.Silent):
    """Keeps what it is told."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_missing_chunks_of_a_mask_are_told(tmp_path):
    truth, _, _ = texture((40, 40))
    path = tmp_path / "mask.zarr"
    mask = zarr.open_array(str(path), mode="w", shape=(40, 40), dtype="bool", chunks=(20, 20))
    mask[:20] = np.ones((20, 40), bool)
    listener = Listener()
    found = kruskal.inpaint_large(truth, tmp_path / "out.npy", path, progress=listener, **SHORT)
    assert found.notes[0].startswith(f"2 chunks of '{path}' are not there")
    assert "is a guess" in found.notes[1] and set(found.notes) <= set(listener.notes)


def test_broken_stores(tmp_path):
    _, damaged, _ = texture((40, 40))
    path = tmp_path / "x.zarr"
    stored = zarr.open_array(str(path), mode="w", shape=(40, 40), dtype="f4", chunks=(20, 20))
    with pytest.raises(InputError, match="none of its 4 chunks is there"):
        kruskal.inpaint_large(path, tmp_path / "out.zarr", **SHORT)
    stored[...] = damaged
    chunks = [
        one for one in path.rglob("*") if one.is_file() and "zarr" not in one.name and one.name[0] != "."
    ]
    assert len(chunks) == 4
    chunks[0].write_bytes(chunks[0].read_bytes()[:20])
    with pytest.raises(InputError, match=r"cannot read \[.*\] of '.*x.zarr': "):
        kruskal.inpaint_large(path, tmp_path / "out.zarr", **SHORT)
    chunks[0].unlink()
    listener = Listener()
    kruskal.inpaint_large(path, tmp_path / "out.zarr", progress=listener, **SHORT)
    assert any("1 chunks of" in note and "half written" in note for note in listener.notes)
    for name in ("zarr.json", ".zarray"):
        if (path / name).exists():
            (path / name).write_text("{")
    with pytest.raises(InputError, match=r"cannot read '.*x.zarr': "):
        kruskal.inpaint_large(path, tmp_path / "out.zarr", **SHORT)
    (tmp_path / "half.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match=r"cannot read '.*half.npy': "):
        kruskal.inpaint_large(tmp_path / "half.npy", tmp_path / "out.zarr", **SHORT)


def test_bad_input(tmp_path):
    _, damaged, _ = texture((40, 40))
    good = tmp_path / "out.npy"
    np.save(tmp_path / "in.npy", damaged)
    refused = [
        (
            (damaged, tmp_path / "out.png"),
            {},
            "target '.*out.png' cannot be written part by part, expected one of .zarr, .npy",
        ),
        ((damaged, tmp_path / "no" / "out.npy"), {}, "does not exist"),
        ((tmp_path / "in.tif", good), {}, "source '.*in.tif' cannot be read part by part"),
        ((tmp_path / "none.npy", good), {}, "no such file"),
        ((tmp_path / "in.npy", tmp_path / "in.npy"), {}, "would overwrite"),
        ((damaged, good), {"std": good}, "would overwrite"),
        ((3.0, good), {}, "source must be a path or have a shape"),
        ((np.array(["a"]), good), {}, "source has dtype <U1, expected real numbers"),
        ((np.zeros((0, 3)), good), {}, "expected at least one axis and one entry"),
        ((damaged, good, damaged[:20] > 0), {}, r"observed has shape \(20, 40\), expected \(40, 40\)"),
        ((np.full_like(damaged, np.nan), good), {}, "nothing of source is observed"),
        ((np.ones((40, 40)), good), {"block_shape": (4, 4)}, "source is constant"),
        ((damaged, good), {"block_shape": (4,)}, "block_shape must have one size per axis"),
        ((damaged, good), {"block_shape": (4, 0)}, "block_shape must be a whole number of at least 1"),
        ((damaged, good), {"forgetting": 2.0}, "forgetting must be a number from 0 to 1"),
        ((damaged, good), {"sweeps": 3, "burn_in": 3}, "burn_in must be a whole number of 0 to 2"),
        ((damaged, good), {"epochs": 0}, "epochs must be a whole number of at least 1"),
        ((damaged, good), {"model": "mgp-cp"}, "must be in memory"),
        ((damaged, good), {"patch_shape": (50, 5)}, "is larger than the array"),
    ]
    for arguments, options, sentence in refused:
        with pytest.raises(InputError, match=sentence):
            kruskal.inpaint_large(*arguments, **(SHORT | options))
    assert [path.name for path in tmp_path.iterdir()] == ["in.npy"]


def test_memory_follows_from_the_block_and_not_from_the_array(tmp_path):
    """Python's own allocations at their peak, for an array and for one of twice its size."""
    options = SHORT | {
        "block_shape": (64, 64),
        "epochs": 1,
        "batch_size": 400,
        "n_atoms": 8,
        "sweeps": 2,
        "burn_in": 0,
    }
    peaks = []
    for height in (256, 512):
        np.save(tmp_path / "x.npy", texture((height, 128))[1])
        tracemalloc.start()
        kruskal.inpaint_large(tmp_path / "x.npy", tmp_path / "out.zarr", **options)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0], peaks


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"seed": -1}, "seed must be a whole number"),
        ({"block_shape": 8}, "block_shape must have one size per axis"),
        ({"forgetting": "a"}, "forgetting must be a number from 0 to 1"),
        ({"mask_is": "foo"}, "mask_is must be one of observed, missing"),
        ({"std": 3}, "std must be the path"),
        ({"mask_is": "missing"}, "mask_is is 'missing' without a mask: give observed, or leave mask_is out"),
        ({"key": "z"}, "key is 'z', but there is no file to find it in: leave key out"),
        ({"observed": np.eye(12), "mask_key": "q"}, "mask_key is 'q', but there is no file to find it in"),
        ({"mask_key": "q"}, "mask_key is 'q', but there is no file to find it in"),
        ({"block_shape": np.array([4, 4, 4])}, "block_shape must have one size per axis"),
        ({"block_shape": ((4, 4), 4)}, "block_shape must be a whole number of at least 1"),
        ({"progress": 3}, "progress must be None or have the methods start, note, update and stop"),
    ],
)
def test_wrong_options_get_a_sentence(options, sentence, tmp_path):
    with pytest.raises(kruskal.InputError, match=sentence):
        kruskal.inpaint_large(np.ones((12, 12)), tmp_path / "out.npy", **options)
    with pytest.raises(kruskal.InputError, match="target must be the path"):
        kruskal.inpaint_large(np.ones((12, 12)), None)
    assert not list(tmp_path.iterdir())


def test_stores_that_contain_what_is_read_or_written(tmp_path):
    group = tmp_path / "e.zarr"
    zarr.open_group(str(group), mode="w")
    _, damaged, observed = texture((40, 40))
    write(group / "in.zarr", damaged)
    np.save(tmp_path / "mask.npy", observed)
    (tmp_path / "link.zarr").symlink_to(group)
    source, out = group / "in.zarr", tmp_path / "out.zarr"
    refused = [
        ((source, group), {}, "^target '.*e.zarr' would overwrite '.*in.zarr', give another name"),
        ((source, tmp_path / "link.zarr"), {}, "^target '.*link.zarr' would overwrite '.*in.zarr', give"),
        ((tmp_path / "mask.npy", group, source), {}, "^target '.*e.zarr' would overwrite '.*in.zarr', give"),
        ((source, out), {"std": group}, "^std '.*e.zarr' would overwrite '.*in.zarr', give another name"),
        ((source, source / "o.npy"), {}, "^target '.*o.npy' lies inside of '.*in.zarr', give another name"),
    ]
    for arguments, options, sentence in refused:
        with pytest.raises(InputError, match=sentence):
            kruskal.inpaint_large(*arguments, **(SHORT | options))
    assert (read(source).values[observed] == damaged[observed]).all()
    kruskal.inpaint_large(source, group / "out.zarr", **SHORT)  # beside it
    assert read(group / "out.zarr").values.shape == (40, 40)
