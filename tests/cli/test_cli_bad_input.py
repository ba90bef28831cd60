"""Every mistake gets one sentence, a status that is not zero, and leaves nothing behind."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_tools import SMALL, listing

from kruskal import data, restore
from kruskal.cli import checks
from kruskal.cli.errors import name_options

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
    for name in ("pipe.npy", "pipe.html"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "to_pipe.npy").symlink_to("pipe.npy")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("infinite.npy", "infinite.npy is infinite at 1 observed entry"),
        ("all_nan.npy", "nothing of all_nan.npy is observed: all 144 entries are missing"),
        ("constant.npy", "constant.npy is constant"),
        ("complex.npy", "complex"),
        ("words.npy", "dtype"),
        ("scalar.npy", "single number"),
        ("nothing.npy", "empty"),
        ("absent.npy", "no such file"),
        ("garbage.png", "garbage.png"),
        ("garbage.npy", "garbage.npy"),
        ("text.txt", "suffix"),
        ("absent", "cannot read 'absent': no such file."),
        ("folder", "cannot read 'folder': it is a folder, expected a file or a .zarr store."),
    ],
)
@pytest.mark.parametrize("command", ["inpaint", "denoise"])
def test_bad_arrays(refused, files, command, name, part):
    assert part in refused(command, name, "-o", "out.npy", *SMALL)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--mask", "mask_small.npy"], "--mask has shape (5, 5)"),
        (["--mask", "mask_none.npy"], "nothing of good.npy is observed"),
        (["--mask", "absent.npy"], "absent.npy"),
        (["--mask", "mask_small.npy", "--mask-is", "bad"], "--mask-is"),
        (["--mask-key", "a"], "--mask-key is 'a' without a file: give --mask, or leave --mask-key out."),
        (["--reference-key", "a"], "--reference-key is 'a' without a file: give --reference, or leave"),
        (["--patch", "13x4"], "--patch 13x4 is larger"),
        (["--patch", "4"], "--patch must have"),
        (["--patch", "4x4x4"], "patch"),
        (["--patch", "0x4"], "--patch"),
        (["--patch", "four"], "--patch"),
        (["--stride", "0"], "--stride"),
        (["--stride", "1x1x1"], "--stride must"),
        (["--stride", "-1"], "--stride"),
        (["--atoms", "0"], "--atoms"),
        (["--atoms", "-5"], "--atoms"),
        (["--atoms", "70000"], "--atoms must be a whole number of 1 to 65535"),
        (["--sweeps", "0"], "--sweeps"),
        (["--sweeps", "-1"], "--sweeps"),
        (["--burn-in", "-1"], "--burn-in"),
        (["--burn-in", "5"], "--burn-in must be smaller"),
        (["--threads", "0"], "--threads"),
        (["--seed", "-1"], "--seed"),
        (["--rank", "0"], "--rank"),
        (["--rank", "5"], "--rank 5 is not possible"),
        (["--rank", "high"], "--rank"),
        (["--alpha", "0"], "--alpha"),
        (["--alpha", "-2"], "--alpha"),
        (["--alpha", "maybe"], "--alpha"),
        (["--usage-prior", "3"], "--usage-prior"),
        (["--usage-prior", "0,1"], "--usage-prior"),
        (["--checkpoint-seconds", "-1", "--checkpoint", "run"], "--checkpoint-seconds must be a number"),
        (["--checkpoint-seconds", "5"], "--checkpoint-seconds is 5 without a folder: give --checkpoint, or"),
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
        (["-o", "out.npy", "--save", "all.npy"], "--save must name a .npz file"),
        (["-o", "out.npy", "--save", "absent/all.npz"], "absent"),
        (["-o", "out.npy", "--report", "page.pdf"], "--report must name a .html file"),
        (["-o", "out.npy", "--report", "absent/page.html"], "--report"),
        (["-o", "pipe.npy"], "cannot write 'pipe.npy': it is a device, a pipe or a socket"),
        (["-o", "to_pipe.npy"], "cannot write 'to_pipe.npy': it is a device, a pipe or a socket"),
        (["-o", "out.npy", "--report", "pipe.html"], "--report: cannot write 'pipe.html': it is a device"),
        (["-o", "out.npy", "--figures", "absent/figures"], "--figures"),
        (["-o", "out.npy", "--figures", "text.txt"], "is a file"),
        (["-o", "out.npy", "--reference", "mask_small.npy"], "--reference mask_small.npy has the shape 5x5"),
        (["-o", "out.npy", "--reference", "all_nan.npy"], "no finite value"),
        (["-o", "out.npy", "--reference", "absent.npy"], "absent.npy"),
        (["-o", "all_nan.npy", "--reference", "all_nan.npy"], "would overwrite --reference"),
        (["-o", "out.npy", "--checkpoint", "absent/run"], "--checkpoint"),
        (["-o", "out.npy", "--checkpoint", "text.txt"], "is a file"),
        (["-o", "out.npy", "--checkpoint", "."], "holds other files"),
        (
            ["-o", "out.npy", "--figures", "out.npy"],
            "--figures out.npy would overwrite --output out.npy; give",
        ),
        (["-o", "out.npy", "--report", "out.html", "--figures", "out.html"], "overwrite --report out.html"),
        (["-o", "out.npy", "--save", "folder/input.npz", "--checkpoint", "folder"], "would overwrite --save"),
        (["-o", "out.zarr", "--checkpoint", "out.zarr"], "--checkpoint out.zarr would overwrite --output"),
        (["-o", "out.zarr", "--checkpoint", "out.zarr/run"], "run lies inside of --output out.zarr; give"),
        (["-o", "out.zarr", "--std", "out.zarr/std.npy"], "std.npy lies inside of --output out.zarr; give"),
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
    assert answer.status != 0 and answer.err.count("\n") == 1
    assert answer.err.startswith("kruskal: out.npz was written, but: cannot write 'std.npz': ")
    assert len(calls) == 2
    assert set(listing(tmp_path)) - before == {"out.npz"}
    with np.load(tmp_path / "out.npz") as written:
        assert written["values"].shape == (12, 12)


@pytest.mark.parametrize(
    ("write", "options", "sentence"),
    [
        ("write_bytes", ["--figures", "new"], "out.npy was written, but: cannot write 'new': No space"),
        ("write_bytes", ["--figures", "old"], "out.npy was written, but: cannot write 'old/ranks.png': No"),
        (
            "write_text",
            ["--std", "std.npy", "--report", "page.html"],
            "out.npy and std.npy were written, but: cannot write 'page.html': No space left on device.",
        ),
    ],
)
def test_a_disk_that_is_full_after_the_result(cli, files, tmp_path, monkeypatch, write, options, sentence):
    """The sentence says that OUT is there, and a new folder for figures does not stay half filled."""
    real = getattr(Path, write)

    room = [3] if write == "write_bytes" else [0]  # files that still fit

    def full(path, content, **options):
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, content, **options)

    (tmp_path / "old").mkdir()
    monkeypatch.setattr(Path, write, full)
    answer = cli("denoise", "good.npy", "-o", "out.npy", *options, "--quiet", *SMALL)
    assert answer.status == 2 and answer.err.startswith(f"kruskal: {sentence}"), answer.err
    assert np.load(tmp_path / "out.npy").shape == (12, 12)
    left = listing(tmp_path)
    assert "new" not in left and "page.html" not in left
    assert not [name for name in left if "kruskal-" in name]


def test_no_room_for_temporary_files_after_the_result(cli, files, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    answer = cli("denoise", "good.npy", "-o", "out.npy", "--report", "page.html", "--quiet", *SMALL)
    assert answer == (1, "", "kruskal: out.npy was written, but the disk is full (/tmp).\n")


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("burn_in must be smaller than sweeps: 5", "--burn-in must be smaller than --sweeps: 5"),
        ("burn_in must be smaller than epochs: 5", "--burn-in must be smaller than --epochs: 5"),
        ("annealing must be at most burn_in: 5", "--annealing must be at most --burn-in: 5"),
        (
            "observed has shape (5,), expected (4,) like source",
            "--mask has shape (5,), expected (4,) like dir/in.npy",
        ),
        ("the file has 8 atoms, so leave n_atoms out", "the file has 8 atoms, so leave --atoms out"),
        ("the file has rank 2, so leave rank out", "the file has rank 2, so leave --rank out"),
        ("stride is for patches: give patch_shape", "--stride is for patches: give --patch"),
        ("n_atoms must be a whole number", "--atoms must be a whole number"),
        ("patch_shape 9x9 is larger than the array", "--patch 9x9 is larger than the array"),
        ("usage_prior must be two", "--usage-prior must be two"),
        ("checkpoint_seconds must not", "--checkpoint-seconds must not"),
        ("mask holds NaN", "--mask holds NaN"),
        ("keep is 2, expected", "--keep is 2, expected"),
        ("x is constant", "dir/in.npy is constant"),
        ("values is infinite", "dir/in.npy is infinite"),
        (
            "it holds 2 arrays, choose one by key= from a, b",
            "it holds 2 arrays, choose one by --key from a, b",
        ),
    ],
)
def test_sentences_name_the_option(sentence, said):
    assert name_options(sentence, Path("dir/in.npy")) == said


@pytest.mark.parametrize(
    "sentence",
    [
        "--mask has shape (5, 5), expected (4, 4) like the array",
        "mask.npy is empty",
        "cannot read 'mask': no such file",
        "cannot read 'a key= b.npy': no such file",
        "cannot read 'my burn_in run.npy': no such file",
        "cannot read dir/n_atoms.npy: no such file",
        "'a burn_in b.npy' has one class only",
        "the model and its start keep the noise",
        "checkpoint folder seed already holds a run",
        "nothing is observed: all 4 entries are missing",
        "x",
        "",
    ],
)
def test_sentences_that_need_no_translation(sentence):
    assert name_options(sentence, "x" if sentence == "x" else "in.npy") == sentence


def test_sentences_of_corrupt_name_the_option(refused, files):
    assert refused("corrupt", "good.npy", "-o", "out.npz", "--keep", "0").startswith("--keep is 0.0,")
    assert refused("corrupt", "good.npy", "-o", "out.npz", "--noise", "-1").startswith("--noise is -1.0,")
    assert refused("corrupt", "infinite.npy", "-o", "out.npz").startswith("infinite.npy is infinite")
    assert refused("corrupt", "all_nan.npy", "-o", "out.npz").startswith("nothing of all_nan.npy is observed")
    sentence = refused("corrupt", "good.npy", "-o", "out.npz", "--keep", "1e-9")
    assert sentence.endswith("which leaves none of the 144 entries of good.npy.")
    sentence = refused("corrupt", "good.npy", "-o", "out.npz", "--seed", 2**64)
    assert sentence == f"--seed must be a whole number from 0 to 2**64 - 1, not {2**64}."


def test_a_folder_with_the_name_of_an_argument_is_not_an_option(refused, tmp_path):
    (tmp_path / "start").mkdir()
    assert refused("resume", "start").startswith("start is not a checkpoint")


def test_files_with_several_arrays(cli, refused, files, tmp_path):
    np.savez(tmp_path / "two.npz", a=ORDER_2, b=np.ones((12, 12)))
    words = ("inpaint", "good.npy", "-o", "out.npy", "--quiet", *SMALL)
    assert "choose one by --mask-key from a" in refused(*words, "--mask", "two.npz")
    assert "choose one by --reference-key from a" in refused(*words, "--reference", "two.npz")
    chosen = ("--mask", "two.npz", "--mask-key", "b", "--reference", "two.npz", "--reference-key", "a")
    answer = cli(*words, *chosen, "--json")
    assert answer.status == 0 and '"psnr"' in answer.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("inpaint good.npy -o x.npy --model foo", "'--model': 'foo' is not one of 'kfa', 'bpfa', 'mgp-cp'"),
        ("reproduce --setting foo", "'--setting': 'foo' is not one of"),
        ("classify train in -o x.npz --colour blue", "'--colour': 'blue' is not one of 'grey', 'colour'"),
        ("corrupt good.npy -o d.npz --keep 20%", "'--keep': expected a number such as 0.5, not '20%'"),
        ("inpaint good.npy -o x.npy --sweeps x", "'--sweeps': expected a whole number such as 3, not 'x'"),
    ],
)
def test_words_that_are_no_choice_and_no_number(files, refused, words, sentence):
    said = refused(*words.split())
    assert f"Invalid value for {sentence}" in said and "Value error" not in said


def test_an_output_that_is_a_folder(files, refused):
    assert "cannot write 'folder': it is a folder" in refused("inpaint", "good.npy", "-o", "folder")
    assert "not the folder 'folder'." in refused("corrupt", "good.npy", "-o", "folder")


@pytest.fixture
def started(monkeypatch):
    """No run may start."""

    def never(*_, **__):
        raise AssertionError("the run must not start")

    for name in ("kruskal.restore.inpaint", "kruskal.learning.learn", "kruskal.large.inpaint_large"):
        monkeypatch.setattr(name, never)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("inpaint picture.png -o restoration.png", "--output restoration.png"),
        ("inpaint picture.png -o out.png --std traces.png", "--std traces.png"),
        ("inpaint uncertainty.png -o out.png", "IN uncertainty.png"),
        ("inpaint picture.png --mask ranks.png -o out.png", "--mask ranks.png"),
        ("learn dictionary.png -o out.npz", "dictionary.png"),
        ("learn picture.png --mask traces.png -o out.npz", "traces.png"),
    ],
)
@pytest.mark.parametrize("folder", [".", "link"])
def test_figures_overwrite_nothing(refused, started, picture, tmp_path, words, sentence, folder):
    for name in ("uncertainty", "dictionary", "ranks"):
        (tmp_path / f"{name}.png").write_bytes((tmp_path / "picture.png").read_bytes())
    (tmp_path / "link").symlink_to(".")
    said = refused(*words.split(), "--figures", folder)
    assert said == f"--figures {folder} would overwrite {sentence}; give another name."


def test_figures_beside_other_files(cli, picture, tmp_path):
    """The names that are refused are those that are written, and no others."""
    (tmp_path / "uncertainty.png").write_bytes((tmp_path / "picture.png").read_bytes())
    words = ("--patch", "4x4", "--atoms", "8", "--sweeps", "5", "--threads", "1", "--quiet")
    for name, command in (("l", "learn"), ("i", "inpaint")):
        (tmp_path / name).mkdir()
        suffix = {"learn": ".npz", "inpaint": ".png"}[command]
        answer = cli(command, "uncertainty.png", "-o", f"{name}/out{suffix}", "--figures", name, *words)
        assert answer.status == 0, answer.err
        written = {path.name for path in (tmp_path / name).iterdir()} - {f"out{suffix}"}
        assert written == set({"l": checks.DICTIONARY_FIGURES, "i": checks.RESTORATION_FIGURES}[name])


@pytest.mark.parametrize("options", [[], ["--out-of-core"]])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("e.zarr/in.zarr -o e.zarr", "--output e.zarr would overwrite IN e.zarr/in.zarr; give another name."),
        ("e.zarr/in.npy -o e.zarr", "--output e.zarr would overwrite IN e.zarr/in.npy; give another name."),
        ("e.zarr/in.zarr -o o.npy --std e.zarr", "--std e.zarr would overwrite IN e.zarr/in.zarr; give"),
        ("good.npy --mask e.zarr/in.npy -o e.zarr", "--output e.zarr would overwrite --mask e.zarr/in.npy;"),
        ("e.zarr/in.zarr -o e.zarr/in.zarr/o.npy", "o.npy lies inside of IN e.zarr/in.zarr; give another"),
    ],
)
def test_stores_that_contain_what_is_read(refused, started, files, tmp_path, words, sentence, options):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    zarr.open_group(str(tmp_path / "e.zarr"), mode="w")
    data.write(tmp_path / "e.zarr" / "in.zarr", ORDER_2)
    np.save(tmp_path / "e.zarr" / "in.npy", ORDER_2 > 0.5)
    assert sentence in refused("inpaint", *words.split(), *options)


def test_a_dictionary_does_not_go_into_a_store_that_is_read(refused, started, tmp_path):
    pytest.importorskip("zarr", reason="zarr is not installed")
    data.write(tmp_path / "in.zarr", ORDER_2)
    said = refused("learn", "in.zarr", "-o", "in.zarr/d.npz")
    assert said == "--output in.zarr/d.npz lies inside of in.zarr; give another name."


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("words", "written"),
    [
        (("inpaint", "good.npy", "-o", "out.npy", "--json", "--quiet", *SMALL), "out.npy"),
        (("corrupt", "good.npy", "-o", "out.npz"), "out.npz"),
        (("learn", "good.npy", "-o", "out.npz", *SMALL), "out.npz"),
    ],
)
def test_a_summary_that_cannot_be_printed(files, tmp_path, words, written):
    """A process of its own, as the standard output is that of a process."""
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "kruskal", *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE
        )
    assert run.returncode == 1
    said = run.stderr.decode().splitlines()
    assert f"kruskal: {written} written, but not its summary: the disk is full." in said
    assert (tmp_path / written).exists()
