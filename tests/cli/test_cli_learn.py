"""learn, inpaint --dictionary and info of a dictionary, end to end on small arrays."""

import json
import signal

import numpy as np
import pytest
from cli_tools import SMALL, CtrlC, listing

from kruskal import data
from kruskal.engines import progress
from kruskal.engines.dictionary import Dictionary

RUN = ("--sweeps", "4", "--threads", "1")


@pytest.fixture
def others(tmp_path):
    """Two arrays of other sizes, with and without missing entries."""
    rows, columns = np.mgrid[:18, :26]
    values = 120 + 60 * np.cos(rows / 3) + 40 * np.sin(columns / 2)
    np.save(tmp_path / "one.npy", values)
    values[3:6, 4:9] = np.nan
    np.save(tmp_path / "two.npy", values[:, ::-1])


def test_learn_and_reuse(cli, others, damaged, picture, tmp_path):
    answer = cli("learn", "one.npy", "two.npy", "picture.png", "-o", "d.npz", "--figures", "atoms", *SMALL)
    assert answer.status == 0, answer.err
    assert "3 files" not in answer.err and "patches of 4x4" in answer.out and "d.npz, atoms" in answer.out
    learned = Dictionary.load(tmp_path / "d.npz")
    assert learned.shape == (4, 4) and learned.n_atoms == 8
    assert learned.settings["array_shapes"] == [[18, 26], [18, 26], [20, 20]]
    names = {path.name for path in (tmp_path / "atoms").iterdir()}
    assert names == {"dictionary.png", "ranks.png", "traces.png"}

    answer = cli(
        "inpaint", "damaged.npz", "-o", "fixed.npy", "--dictionary", "d.npz", "--save", "r.npz", *RUN
    )
    assert answer.status == 0, answer.err
    with np.load(tmp_path / "r.npz") as result:
        np.testing.assert_array_equal(result["dictionary"], learned.dictionary)
    answer = cli(
        *("inpaint", "damaged.npz", "-o", "adapted.npy", "--dictionary", "d.npz", "--adapt"),
        *("--save", "r.npz", "--patch", "4x4", "--atoms", "8", *RUN),
    )
    assert answer.status == 0, answer.err
    with np.load(tmp_path / "r.npz") as result:
        assert not np.array_equal(result["dictionary"], learned.dictionary)
    assert not [name for name in listing(tmp_path) if "kruskal-" in name]


def test_the_same_run_gives_the_same_file_on_any_number_of_threads(cli, others, tmp_path):
    words = ("learn", "one.npy", "two.npy", "--patch", "4x4", "--atoms", "6", "--sweeps", "3", "-q")
    for threads in (1, 2):
        assert cli(*words, "-o", f"{threads}.npz", "--threads", threads).status == 0
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_masks_as_files_and_as_nan_say_the_same(cli, others, tmp_path):
    two = np.load(tmp_path / "two.npy")
    np.save(tmp_path / "filled.npy", np.nan_to_num(two, nan=7.0))
    np.save(tmp_path / "holes.npy", np.isnan(two))
    np.save(tmp_path / "none.npy", np.zeros((18, 26), bool))
    words = ("-q", *SMALL)
    assert cli("learn", "one.npy", "two.npy", "-o", "nan.npz", *words).status == 0
    masks = ("--mask", "none.npy", "--mask", "holes.npy", "--mask-is", "missing")
    assert cli("learn", "one.npy", "filled.npy", *masks, "-o", "mask.npz", *words).status == 0
    assert (tmp_path / "nan.npz").read_bytes() == (tmp_path / "mask.npz").read_bytes()


def test_what_info_and_json_tell(cli, others):
    answer = cli("learn", "one.npy", "-o", "d.npz", "--json", "--model", "bpfa", *SMALL)
    told = json.loads(answer.out)
    assert told["model"] == "bpfa" and told["patch_shape"] == [4, 4] and told["n_atoms"] == 8
    answer = cli("info", "d.npz", "--json")
    assert json.loads(answer.out) == told and told["format"] == "dictionary of kruskal"
    assert "patch shape" in cli("info", "d.npz").out
    assert told["sweeps"] and not {"batch_size", "batches", "passes"} & set(told)


def test_resume_starts_from_the_copy_in_the_folder(cli, others, damaged, tmp_path):
    cli("learn", "one.npy", "-o", "d.npz", "-q", *SMALL)
    words = ("inpaint", "damaged.npz", "--dictionary", "d.npz", "-q", *RUN)
    assert cli(*words, "-o", "one.npy", "--checkpoint", "run").status == 0
    (tmp_path / "d.npz").unlink()
    first = (tmp_path / "one.npy").read_bytes()
    assert cli("resume", "run", "-q").status == 0
    assert (tmp_path / "one.npy").read_bytes() == first


@pytest.mark.parametrize(
    "words, sentence",
    [
        (
            ("learn", "one.npy", "-o", "d.npz", "--mask-key", "a"),
            "--mask-key is 'a' without a file: give --mask, or leave --mask-key out.",
        ),
        (("learn", "one.npy", "-o", "d.txt"), "--output must name a .npz file, not 'd.txt'."),
        (("learn", "no.npy", "-o", "d.npz"), "no.npy"),
        (("learn", "one.npy", "stack.npy", "-o", "d.npz"), "all arrays must have the same number of axes"),
        (
            ("learn", "one.npy", "two.npy", "--mask", "m.npy", "-o", "d.npz"),
            "--mask must be given once for every",
        ),
        (
            ("learn", "one.npy", "-o", "d.npz", "--patch", "30x4"),
            "--patch 30x4 is larger than the array 18x26",
        ),
        (("learn", "one.npy", "-o", "d.npz", "--rank", "x"), "--rank takes 'auto' or a whole number"),
        (
            ("learn", "flat.npy", "flat.npy", "-o", "d.npz"),
            "flat.npy and flat.npy are constant: all 162 observed entries are 5.0",
        ),
        (("learn", "flat.npy", "-o", "d.npz"), "flat.npy is constant: all 81 observed entries are 5.0"),
        (("learn", "in.npz", "-o", "in.npz"), "--output in.npz would overwrite in.npz; give another name."),
        (("learn", "one.npy", "-o", "no/d.npz"), "cannot write 'no/d.npz'"),
        (("inpaint", "one.npy", "-o", "o.npy", "--dictionary", "in.npz"), "in.npz is no dictionary file of"),
        (
            ("inpaint", "one.npy", "-o", "o.npy", "--dictionary", "no.npz"),
            "dictionary file no.npz does not exist",
        ),
        (
            ("inpaint", "one.npy", "-o", "o.npy", "--adapt"),
            "--adapt needs atoms to start from: give --dictionary.",
        ),
        (
            ("inpaint", "one.npy", "-o", "d.npz", "--dictionary", "d.npz"),
            "would overwrite --dictionary d.npz",
        ),
        (
            ("inpaint", "one.npy", "-o", "o.npy", "--dictionary", "d.npz", "--atoms", "9"),
            "--atoms 9 contradicts",
        ),
        (
            ("inpaint", "one.npy", "-o", "o.npy", "--dictionary", "d.npz", "--patch", "5x5"),
            "--patch 5x5 contra",
        ),
        (
            ("inpaint", "stack.npy", "-o", "o.npy", "--dictionary", "d.npz"),
            "--dictionary has atoms of shape 4x4",
        ),
    ],
)
def test_bad_input(cli, refused, others, tmp_path, words, sentence):
    np.save(tmp_path / "stack.npy", np.random.default_rng(0).random((8, 8, 8)))
    np.save(tmp_path / "flat.npy", np.full((9, 9), 5.0))
    np.savez(tmp_path / "in.npz", values=np.eye(9))
    if "--dictionary" in words:
        cli("learn", "one.npy", "-o", "d.npz", "-q", *SMALL)
    assert sentence in refused(*words)


@pytest.mark.parametrize("number, status", [(None, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_leaves_nothing(refused, others, monkeypatch, number, status):
    monkeypatch.setattr(progress, "choose", lambda quiet: CtrlC(2, number))
    words = ("learn", "one.npy", "two.npy", "-o", "d.npz", "--figures", "atoms", *SMALL)
    assert refused(*words, status=status) == "interrupted."


def test_ctrl_c_while_the_file_is_written_leaves_nothing(refused, others, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    assert refused("learn", "one.npy", "-o", "d.npz", "-q", *SMALL, status=130) == "interrupted."


def test_a_colour_picture_gives_atoms_in_colour(cli, tmp_path):
    colours = np.random.default_rng(0).integers(0, 255, (16, 16, 3)).astype(np.uint8)
    data.write(tmp_path / "c.png", colours, dtype="uint8")
    words = ("--patch", "4x4x3", "--atoms", "6", "--sweeps", "2", "--threads", "1", "-q")
    assert cli("learn", "c.png", "-o", "d.npz", "--figures", "f", *words).status == 0
    assert (tmp_path / "f" / "dictionary.png").is_file()


def test_learn_offers_models_that_have_a_dictionary(cli, tmp_path):
    words = cli("learn", "--help").out
    assert "kfa|bpfa" in words and "kfa|bpfa|" not in words
    refused = cli("learn", "x.npy", "-o", "d.npz", "--model", "mgp-cp")
    assert refused.status == 2 and "'kfa', 'bpfa'" in refused.err
