"""Every mistake gets one sentence, a status that is not zero, and leaves nothing behind."""

import errno
import os

import numpy as np
import pytest
from cli_tools import SMALL, listing

from kruskal import restore

ORDER_2 = np.random.default_rng(0).random((12, 12))


@pytest.fixture
def files(tmp_path, picture):
    """Good and bad inputs."""
    infinite, empty = ORDER_2.copy(), ORDER_2.copy()
    infinite[3, 4] = np.inf
    empty[:] = np.nan
    arrays = {
        "good": ORDER_2,
        "infinite": infinite,
        "all_nan": empty,
        "constant": np.full((12, 12), 7.0),
        "complex": ORDER_2 + 1j,
        "words": np.array([["a", "b"], ["c", "d"]]),
        "scalar": np.array(3.0),
        "nothing": np.zeros((0, 4)),
        "order_4": np.random.default_rng(1).random((6, 6, 6, 6)),
        "mask_small": np.ones((5, 5), dtype=bool),
        "mask_none": np.zeros((12, 12), dtype=bool),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "garbage.png").write_bytes(b"this is not a picture")
    (tmp_path / "garbage.npy").write_bytes(b"\x93NUMPY\x01\x00nonsense")
    (tmp_path / "text.txt").write_text("1 2 3")
    (tmp_path / "folder").mkdir()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("infinite.npy", "infinite"),
        ("all_nan.npy", "nothing is observed"),
        ("constant.npy", "constant"),
        ("complex.npy", "complex"),
        ("words.npy", "dtype"),
        ("scalar.npy", "single number"),
        ("nothing.npy", "empty"),
        ("absent.npy", "no such file"),
        ("garbage.png", "garbage.png"),
        ("garbage.npy", "garbage.npy"),
        ("text.txt", "suffix"),
        ("folder", "folder"),
    ],
)
@pytest.mark.parametrize("command", ["inpaint", "denoise"])
def test_bad_arrays(refused, files, command, name, part):
    assert part in refused(command, name, "-o", "out.npy", *SMALL)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--mask", "mask_small.npy"], "mask has shape (5, 5)"),
        (["--mask", "mask_none.npy"], "nothing is observed"),
        (["--mask", "absent.npy"], "absent.npy"),
        (["--mask", "mask_small.npy", "--mask-is", "bad"], "--mask-is"),
        (["--patch", "13x4"], "13"),
        (["--patch", "4"], "patch"),
        (["--patch", "4x4x4"], "patch"),
        (["--patch", "0x4"], "--patch"),
        (["--patch", "four"], "--patch"),
        (["--stride", "0"], "--stride"),
        (["--stride", "1x1x1"], "stride"),
        (["--stride", "-1"], "--stride"),
        (["--atoms", "0"], "--atoms"),
        (["--atoms", "-5"], "--atoms"),
        (["--atoms", "70000"], "65535"),
        (["--sweeps", "0"], "--sweeps"),
        (["--sweeps", "-1"], "--sweeps"),
        (["--burn-in", "-1"], "--burn-in"),
        (["--burn-in", "5"], "burn_in"),
        (["--threads", "0"], "--threads"),
        (["--seed", "-1"], "--seed"),
        (["--rank", "0"], "--rank"),
        (["--rank", "5"], "rank 5 is not possible"),
        (["--rank", "high"], "--rank"),
        (["--alpha", "0"], "--alpha"),
        (["--alpha", "-2"], "--alpha"),
        (["--alpha", "maybe"], "--alpha"),
        (["--usage-prior", "3"], "--usage-prior"),
        (["--usage-prior", "0,1"], "--usage-prior"),
        (["--checkpoint-seconds", "-1"], "--checkpoint-seconds"),
        (["--key", "x"], "key"),
    ],
)
def test_bad_options(refused, files, options, part):
    defaults = {"--patch": "4x4", "--stride": "2", "--atoms": "8", "--sweeps": "5"}
    kept = [word for name, value in defaults.items() if name not in options for word in (name, value)]
    assert part in refused("inpaint", "good.npy", "-o", "out.npy", *kept, *options)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["-o", "absent/out.npy"], "absent"),
        (["-o", "text.txt/out.npy"], "does not exist"),
        (["-o", "/proc/out.npy"], "/proc"),
        (["-o", "out.xyz"], "suffix"),
        (["-o", "out"], "suffix"),
        (["-o", "out.png"], "float64"),
        (["-o", "good.npy"], "would overwrite IN good.npy"),
        (["-o", "folder/../good.npy"], "would overwrite IN good.npy"),
        (["-o", "out.npy", "--std", "out.npy"], "--std out.npy would overwrite --output out.npy"),
        (["-o", "out.npy", "--std", "std.png"], "use .tif or .npy"),
        (["-o", "out.npy", "--std", "absent/std.npy"], "absent"),
        (["-o", "out.npy", "--save", "all.npy"], "--save must name an npz file"),
        (["-o", "out.npy", "--save", "absent/all.npz"], "absent"),
        (["-o", "out.npy", "--report", "page.pdf"], "--report must name an html file"),
        (["-o", "out.npy", "--report", "absent/page.html"], "--report"),
        (["-o", "out.npy", "--figures", "absent/figures"], "--figures"),
        (["-o", "out.npy", "--figures", "text.txt"], "is a file"),
        (["-o", "out.npy", "--reference", "mask_small.npy"], "--reference mask_small.npy has the shape 5x5"),
        (["-o", "out.npy", "--reference", "all_nan.npy"], "no finite value"),
        (["-o", "out.npy", "--reference", "absent.npy"], "absent.npy"),
        (["-o", "all_nan.npy", "--reference", "all_nan.npy"], "would overwrite --reference"),
        (["-o", "out.npy", "--checkpoint", "absent/run"], "--checkpoint"),
        (["-o", "out.npy", "--checkpoint", "text.txt"], "is a file"),
        (["-o", "out.npy", "--checkpoint", "."], "holds other files"),
    ],
)
def test_bad_places(refused, files, monkeypatch, options, part):
    def never(*_, **__):
        raise AssertionError("the run must not start")

    monkeypatch.setattr(restore, "inpaint", never)
    assert part in refused("inpaint", "good.npy", *options, *SMALL)


def test_a_picture_cannot_hold_four_axes(refused, files):
    assert "use .tif or .npy" in refused("inpaint", "order_4.npy", "-o", "out.png", "--patch", "3x3x3x3")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission(refused, files, tmp_path):
    (tmp_path / "folder").chmod(0o500)
    assert "folder" in refused("inpaint", "good.npy", "-o", "folder/out.npy", *SMALL)


@pytest.mark.parametrize(
    "options", [["constant.npy"], ["good.npy", "--rank", "5"], ["good.npy", "--patch", "13x4"]]
)
@pytest.mark.parametrize("existing", [False, True])
def test_a_refused_run_leaves_no_checkpoint(refused, files, tmp_path, options, existing):
    if existing:
        (tmp_path / "run").mkdir()
    refused("inpaint", *options[:1], "-o", "out.npy", "--checkpoint", "run", *SMALL, *options[1:])


@pytest.mark.parametrize(
    ("error", "part"), [(MemoryError(), "memory"), (OSError(errno.ENOSPC, "No space"), "the disk is full")]
)
@pytest.mark.parametrize("options", [[], ["--checkpoint", "run"]])
def test_the_machine_refuses(refused, files, monkeypatch, error, part, options):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(restore, "inpaint", fail)
    sentence = refused("inpaint", "good.npy", "-o", "out.npy", *options, *SMALL, status=1)
    assert part in sentence and "resume" not in sentence


def test_failure_while_writing_leaves_nothing_half_written(cli, files, tmp_path, monkeypatch):
    """The disk fills up while the second output is written: the first is whole, the second is not there."""
    real, calls = np.lib.format.write_array, []

    def full(stream, *rest, **options):
        calls.append(stream)
        if len(calls) == 2:
            stream.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(stream, *rest, **options)

    monkeypatch.setattr("numpy.lib.format.write_array", full)
    before = set(listing(tmp_path))
    answer = cli("denoise", "good.npy", "-o", "out.npz", "--std", "std.npz", "--quiet", *SMALL)
    assert answer.status != 0 and answer.err.count("\n") == 1 and "std.npz" in answer.err
    assert len(calls) == 2
    assert set(listing(tmp_path)) - before == {"out.npz"}
    with np.load(tmp_path / "out.npz") as written:
        assert written["values"].shape == (12, 12)
