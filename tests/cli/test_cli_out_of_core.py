"""kruskal inpaint --out-of-core."""

import json
import subprocess
import sys

import numpy as np
import pytest

from kruskal import __version__
from kruskal.cli import out_of_core

zarr = pytest.importorskip("zarr", reason="zarr is not installed")
SMALL = ("--patch", "4x4", "--stride", "2", "--atoms", "8", "--threads", "1", "--epochs", "2")
RUN = ("inpaint", "in.zarr", "-o", "out.zarr", *SMALL)


@pytest.fixture
def stored(tmp_path):
    """A damaged array as a zarr store, whole, with a mask beside it."""
    i = np.arange(30.0)
    values = np.sin(i[:, None] / 3) + np.cos(i / 4)
    observed = np.random.default_rng(0).random(values.shape) < 0.6
    array = zarr.open_array(str(tmp_path / "in.zarr"), mode="w", shape=(30, 30), dtype="f4", chunks=(16, 16))
    array[...] = np.where(observed, values, 9.0)
    np.save(tmp_path / "mask.npy", observed)
    return values


def test_out_of_core(cli, stored, tmp_path):
    words = ("--out-of-core", "--online", "--block", "16x16", "--mask", "mask.npy", "--std", "std.npy")
    answer = cli(*RUN, *words)
    assert answer.status == 0, answer.err
    assert "kfa: 2 epochs over 4 blocks of 16x16 with 196 patches of 4x4" in answer.out
    assert "written: out.zarr, std.npy" in answer.out and "kruskal: block 12/12, noise" in answer.err
    out = zarr.open_array(str(tmp_path / "out.zarr"), mode="r")
    assert out.chunks == (16, 16) and np.sqrt(np.mean((out[...] - stored) ** 2)) < 0.3
    answer = cli(*RUN, *words, "--json", "--quiet")
    summary = json.loads(answer.out)
    assert (summary["n_blocks"], summary["block_shape"], summary["epochs"]) == (4, [16, 16], 2)
    assert summary["version"] == __version__


def test_large_arrays_go_block_by_block_by_themselves(cli, stored, monkeypatch):
    monkeypatch.setattr(out_of_core, "LARGE", 500)
    assert "1 block of 30x30" in cli(*RUN, "--mask", "mask.npy").out
    # unless an option needs all of the array
    words = ("--mask", "mask.npy", "--save", "all.npz", "--online")
    assert "block of" not in cli(*RUN, *words).out


@pytest.mark.parametrize(
    "words, part",
    [
        (("--out-of-core", "--checkpoint", "run"), "--checkpoint needs the whole array in memory"),
        (("--out-of-core", "--reference", "in.zarr"), "--reference needs the whole array in memory"),
        (("--out-of-core", "--online", "--surrogate", "cdf"), "--surrogate needs the whole array"),
        (("--out-of-core", "--online", "--surrogate", "exact"), "--surrogate needs the whole array"),
        (("--out-of-core", "--adapt"), "--adapt needs the whole array in memory"),
        (("--out-of-core", "--time-budget", "0"), "--time-budget needs the whole array in memory"),
        (("--out-of-core", "--annealing", "2"), "--annealing needs the whole array in memory"),
        (("--out-of-core", "--block", "16"), "--block must have one size per axis"),
        (
            ("--out-of-core", "--mask", "mask.png"),
            "--mask 'mask.png' cannot be read part by part, expected one of .zarr, .npy",
        ),
        (
            ("--out-of-core", "--mask-is", "missing"),
            "--mask-is is 'missing' without a mask: give --mask, or leave --mask-is out.",
        ),
        (("--block", "8x8"), "--block is for arrays that are restored block by block"),
    ],
)
def test_bad_input(cli, stored, tmp_path, words, part):
    answer = cli(*RUN, *words)
    assert answer.status == 2 and part in answer.err, answer.err
    assert not (tmp_path / "out.zarr").exists()


def test_a_damaged_store_is_told_in_one_sentence(cli, stored, tmp_path):
    for name in ("zarr.json", ".zarray"):
        if (tmp_path / "in.zarr" / name).exists():
            (tmp_path / "in.zarr" / name).write_text("{")
    answer = cli(*RUN, "--out-of-core")
    assert answer.status == 2 and "cannot read 'in.zarr'" in answer.err and answer.err.count("\n") == 1


def test_damaged_chunks_are_told_in_one_sentence(tmp_path):
    """A process of its own, as what zarr leaves under way is told at the end of the process."""
    array = zarr.open_array(str(tmp_path / "in.zarr"), mode="w", shape=(64, 64), dtype="f4", chunks=(4, 4))
    array[...] = np.arange(64.0 * 64).reshape(64, 64)
    for path in (tmp_path / "in.zarr").rglob("*"):
        if path.is_file() and "zarr" not in path.name and path.name[0] != ".":
            path.write_bytes(b"x")
    words = (*RUN, "--out-of-core", "--block", "64x64")
    run = subprocess.run(
        [sys.executable, "-m", "kruskal", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 2 and run.stderr.startswith("kruskal: cannot read [0:64, 0:64] of 'in.zarr': ")
    assert run.stderr.count("\n") == 1, run.stderr


@pytest.mark.parametrize("option", [None, "--mask", "--reference"])
@pytest.mark.parametrize("command", ["inpaint", "denoise"])
def test_missing_chunks_are_told_in_memory(cli, stored, tmp_path, command, option):
    half = zarr.open_array(str(tmp_path / "half.zarr"), mode="w", shape=(30, 30), dtype="f4", chunks=(16, 16))
    half[:16] = (stored[:16] > 0) if option == "--mask" else stored[:16]
    files = ("half.zarr",) if option is None else ("in.zarr", option, "half.zarr")
    small = (*SMALL[:-2], "--sweeps", "4", "--no-auto")
    answer = cli(command, *files, "-o", "out.npy", *small)
    assert answer.status == 0, answer.err
    assert answer.err.count("2 chunks of 'half.zarr' are not there and read as its fill value") == 1
    assert "not there" not in cli(command, *files, "-o", "out.npy", *small, "--quiet").err
    told = json.loads(cli("info", "half.zarr", "--json").out)
    assert told["missing_chunks"] == 2
    assert "missing_chunks" not in json.loads(cli("info", "in.zarr", "--json").out)
