"""reproduce: options, what it prints, what it leaves on the disk and how it ends."""

import errno
import json
import os
import signal

import numpy as np
import pytest

from kruskal import data, restore
from kruskal.experiments import registry, store
from kruskal.experiments.cells import Cell
from kruskal.experiments.tables import Table, score_of


class Halves:
    """Two cells that halve a number; ``trouble`` is called in the second one."""

    name = "barbara"  # the command looks it up by a name that exists
    title = "Halves"
    what = "halves of small numbers"
    datasets = ()
    trouble = staticmethod(lambda: None)

    def cells(self, quick, seeds):
        return [
            Cell(f"{setting}-n{number}-seed{seed}", {"setting": setting, "number": number, "seed": seed})
            for seed in range(1, (seeds or 1) + 1)
            for setting, number in (("paper", 4), ("default", 6))[: 1 if quick else 2]
        ]

    def run(self, cell, context):
        if cell.key.startswith("default"):
            self.trouble()
        return {"psnr": cell.options["number"] / 2, "threads": context.threads}

    def tables(self, results):
        scores = score_of(results, "paper-n4", 1.5), score_of(results, "default-n6", 1.5)
        return [Table("Halves", ("", "4", "6"), [("half", *scores)])]

    def figure(self, results, folder):
        return b"\x89PNG"


@pytest.fixture
def halves(monkeypatch):
    """Let the command find `Halves`; returns it, so that a test can give it trouble."""
    experiment = Halves()
    monkeypatch.setattr(registry, "get", lambda name: experiment)
    return experiment


def test_list(cli):
    answer = cli("reproduce", "--list")
    assert answer.status == 0 and answer.err == ""
    assert [line.split()[0] for line in answer.out.splitlines()] == list(registry.NAMES)
    assert "strides 1, 2, 4, 8" in answer.out


def test_tables_and_files(cli, halves, tmp_path):
    answer = cli("reproduce", "barbara", "--threads", "1")
    assert answer.status == 0, answer.err
    assert "difference   +0.50   +1.50" in answer.out and "\x1b" not in answer.out
    assert "mean difference over 2 cells +1.00 dB, least +0.50" in answer.out
    last = answer.out.splitlines()[-1]
    assert last == "written: kruskal-results/barbara/barbara.json, kruskal-results/barbara/barbara.png"
    assert all(line.startswith("kruskal: reproduce: ") for line in answer.err.splitlines())
    assert "2/2 default-n6-seed1: 3.00 dB, 0 s; 0 s elapsed" in answer.err
    assert (tmp_path / "kruskal-results" / "barbara" / "cells" / "paper-n4-seed1.json").is_file()
    again = cli("reproduce", "barbara")
    assert again.out == answer.out and "0 of 2 cells to run" in again.err


def test_json(cli, halves, tmp_path):
    answer = cli("reproduce", "barbara", "--out", "here", "--json", "--setting", "default", "--seeds", "2")
    assert answer.status == 0, answer.err
    printed = json.loads(answer.out)
    assert printed == json.loads((tmp_path / "here" / "barbara" / "barbara.json").read_text())
    assert list(printed["cells"]) == ["default-n6-seed1", "default-n6-seed2"] and printed["finished"]


def test_chosen_cells(cli, halves):
    answer = cli("reproduce", "barbara", "--cells", "paper-*, *-n6-seed2", "--seeds", "2", "--json")
    assert list(json.loads(answer.out)["cells"]) == ["paper-n4-seed1", "paper-n4-seed2", "default-n6-seed2"]
    assert "1 of 1 cells" in cli("reproduce", "barbara", "--quick", "--out", "other").err


def test_interrupted_and_continued(cli, halves):
    def stop():
        raise KeyboardInterrupt

    halves.trouble = stop
    answer = cli("reproduce", "barbara")
    assert answer.status == 130
    assert "difference   +0.50      -" in answer.out and "written: " in answer.out
    last = "kruskal: interrupted with 1 cell left; the same command goes on with it."
    assert answer.err.splitlines()[-1] == last
    del halves.trouble
    answer = cli("reproduce", "barbara")
    assert answer.status == 0 and "1 of 2 cells to run" in answer.err and "+1.50" in answer.out


def test_ended_by_the_batch_system(cli, halves):
    halves.trouble = lambda: os.kill(os.getpid(), signal.SIGTERM)
    answer = cli("reproduce", "barbara")
    assert answer.status == 143 and "+0.50" in answer.out


def test_a_failing_cell(cli, halves):
    def fail():
        raise ValueError("too small")

    halves.trouble = fail
    answer = cli("reproduce", "barbara", "--json")
    assert answer.status == 1
    printed = json.loads(answer.out)
    assert list(printed["cells"]) == ["paper-n4-seed1"] and not printed["finished"]
    assert "too small" in printed["failed"]["default-n6-seed1"]
    last = answer.err.splitlines()[-1]
    assert last.startswith("kruskal: 1 cell failed, the first was default-n6-seed1: ValueError: too small")


def test_a_full_disk(cli, halves, monkeypatch):
    def full(value):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "as_json", full)
    answer = cli("reproduce", "barbara")
    assert answer.status == 2 and "+0.50" in answer.out and "written" not in answer.out
    assert "cannot write 'kruskal-results/barbara/cells/paper-n4-seed1.json'" in answer.err.splitlines()[-1]
    assert "No space left on device" in answer.err


def test_a_folder_in_use(cli, halves, tmp_path):
    with store.Store(tmp_path / "kruskal-results", "barbara").opened():
        answer = cli("reproduce", "barbara")
    assert answer.status == 2 and answer.out == ""
    assert "is in use by another process" in answer.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name an experiment: barbara, datasize,"),
        (("barbados",), "experiment 'barbados' is unknown, expected one of barbara, datasize,"),
        (
            ("barbara", "--cells", "kfa-*-keep99-*"),
            "no cell matches 'kfa-*-keep99-*'; there are 125, such as",
        ),
        (("barbara", "--cells", ""), "no cell matches ''"),
        (("barbara", "--seeds", "0"), "--seeds must be at least 1, not 0"),
        (("barbara", "--threads", "0"), "--threads must be at least 1, not 0"),
        (("barbara", "--setting", "best"), "--setting"),
        (("barbara", "--data", "absent"), "--data absent is no folder"),
        (("barbara", "--data", "."), "data set 'barbara256' is incomplete"),
        (("barbara", "--out", "file"), "--out file is a file; a folder is needed"),
        (("barbara", "--out", "absent/results"), "does not exist"),
        (("barbara", "--quick", "--setting", "paper"), "barbara --quick has no cells of the setting paper"),
    ],
)
def test_refused(refused, tmp_path, words, sentence):
    (tmp_path / "file").write_text("")
    assert sentence in refused("reproduce", *words)


def test_refused_when_the_experiments_folder_is_a_file(refused, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "barbara").write_text("")
    assert "is a file" in refused("reproduce", "barbara", "--out", "results")


def test_a_real_cell_with_the_data_of_a_folder(cli, tmp_path, monkeypatch):
    """The whole way from --data to the table, with a small picture and a short chain."""
    monkeypatch.setenv("KRUSKAL_DATA", str(tmp_path / "elsewhere"))
    rows, columns = np.mgrid[:20, :20]
    picture = np.rint(120 + 60 * np.sin(rows / 4) + 40 * np.cos(columns / 2)).astype(np.uint8)
    (tmp_path / "sets" / "barbara").mkdir(parents=True)
    data.write(tmp_path / "sets" / "barbara" / "barbara256.png", picture, dtype="uint8")
    inpaint = restore.inpaint

    def short(x, **options):
        return inpaint(x, **options | {"sweeps": 3, "n_atoms": 8, "burn_in": 1})

    monkeypatch.setattr(restore, "inpaint", short)
    cells = "kfa-default-keep50-noise0-*"
    answer = cli("reproduce", "barbara", "--quick", "--cells", cells, "--data", "sets", "--threads", "1")
    assert answer.status == 0, answer.err
    assert "Barbara, KFA, default setting" in answer.out and "36.03" in answer.out
    assert os.environ["KRUSKAL_DATA"] == str(tmp_path / "elsewhere")
    saved = tmp_path / "kruskal-results" / "barbara" / "cells" / "kfa-default-keep50-noise0-seed1.json"
    record = json.loads(saved.read_text())
    assert record["results"]["settings"]["sweeps"] == 3 and record["results"]["coverage"] > 0
    assert record["options"]["inpaint"] == {"model": "kfa"} and record["threads"] == 1


def test_help(cli):
    answer = cli("reproduce", "--help")
    wanted = (
        "--list",
        "--data",
        "--out",
        "--cells",
        "--seeds",
        "--quick",
        "--threads",
        "--setting",
        "--json",
    )
    assert answer.status == 0 and all(option in answer.out for option in wanted)


def test_without_data_the_option_is_named_too(refused, tmp_path, monkeypatch):
    monkeypatch.delenv("KRUSKAL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    said = refused("reproduce", "barbara", "--quick")
    assert "name it by --data, or set KRUSKAL_DATA to that folder" in said and said.rstrip().endswith(".")
