"""Running cells: saved ones are skipped, failing ones told, interrupted tables go on."""

import errno
import json
import math

import pytest
from reproduce_example import PNG, Listener, Squares, make_context

from kruskal.errors import InputError
from kruskal.experiments import reproduce, store
from kruskal.experiments.cells import Cell, json_number, percent

ALL = ["default-n2-seed1", "default-n3-seed1", "default-n4-seed1", "paper-n2-seed1"]


@pytest.fixture
def say():
    return Listener()


@pytest.fixture
def run(tmp_path, say):
    """Run an experiment below tmp_path."""

    def call(experiment, **options):
        say.lines.clear()
        selection = reproduce.select(experiment, **options)
        return reproduce.run(experiment, selection, tmp_path / "out", make_context, say)

    return call


def cell_file(tmp_path, key):
    return tmp_path / "out" / "squares" / "cells" / f"{key}.json"


def test_all_cells_are_run_saved_and_summarised(run, tmp_path, say):
    outcome = run(Squares())
    assert list(outcome.records) == ALL and outcome.left == 0 and not outcome.failed
    record = json.loads(cell_file(tmp_path, "default-n3-seed1").read_text())
    assert record == outcome.records["default-n3-seed1"]
    assert record["results"] == {"psnr": 9.0, "shape": [3, 1], "threads": 1}
    assert record["options"] == {"setting": "default", "number": [3, 1], "seed": 1}
    assert record["seed"] == 1 and record["threads"] == 1 and record["seconds"] >= 0
    assert record["version"] and record["machine"]["cores"] >= 1
    written = outcome.save(tmp_path / "out")
    assert [path.name for path in written] == ["squares.json", "squares.png"]
    summary = json.loads(written[0].read_text())
    assert summary["finished"] and list(summary["cells"]) == ALL and summary["failed"] == {}
    assert summary["tables"][0]["mean_differences"][""] == {"mean": -6.0, "least": -6.0, "counted": 2}
    assert written[1].read_bytes() == PNG + b"squares"
    finished = say.heard("dB")
    assert (
        len(finished) == 4 and "2/4 default-n3-seed1: 9.00 dB, 0 s; 0 s elapsed, about 0 s left" in finished
    )
    assert "left" not in finished[-1]


def test_saved_cells_are_skipped(run, say):
    run(Squares(), patterns=["default-n3-*"])
    again = Squares()
    outcome = run(again)
    assert again.runs == [ALL[0], ALL[2], ALL[3]] and list(outcome.records) == ALL
    assert say.heard("3 of 4 cells to run")
    last = Squares()
    assert list(run(last, patterns=["paper-*"]).records) == ALL  # the tables show what is there
    assert last.runs == []


def test_cells_of_other_options_are_run_again(run, say):
    run(Squares())
    other = Squares(factor=10)
    assert run(other, patterns=["*-n2-*"]).results[ALL[0]]["psnr"] == 40.0
    assert other.runs == [ALL[0], ALL[3]] and say.heard(f"{ALL[0]} is run again: its options were others")
    outcome = run(other, patterns=["*-n2-*"])
    assert list(outcome.records) == [ALL[0], ALL[3]]  # the others would mix two experiments in one table
    assert say.heard("2 saved cells of other options or another version are left out")


def test_cells_of_another_version_are_run_again(run, say, monkeypatch):
    run(Squares())
    monkeypatch.setattr(reproduce, "made_by", lambda: "99.0")
    newer = Squares()
    run(newer)
    assert newer.runs == ALL and len(say.heard("is run again: it was made by version")) == 4


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"options": 1, "version": 2, "results": 3}'])
def test_damaged_cells_are_run_again(run, say, tmp_path, text):
    run(Squares())
    cell_file(tmp_path, ALL[1]).write_text(text)
    again = Squares()
    assert run(again).left == 0
    assert again.runs == [ALL[1]] and say.heard(f"{ALL[1]} is run again")


def test_a_cell_file_without_results_is_not_used(run, tmp_path):
    run(Squares())
    path = cell_file(tmp_path, ALL[1])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"results": None}))
    again = Squares()
    run(again)
    assert again.runs == [ALL[1]]


def test_a_failing_cell_does_not_stop_the_others(run, say, tmp_path):
    trouble = {
        ALL[0]: InputError("x is constant."),
        ALL[2]: ZeroDivisionError("no\nway"),
        ALL[3]: MemoryError(),
    }
    outcome = run(Squares(trouble))
    assert list(outcome.records) == [ALL[1]] and outcome.left == 3 and outcome.ended_by is None
    assert outcome.failed[ALL[0]] == "x is constant"
    assert outcome.failed[ALL[2]].startswith("ZeroDivisionError: no way (reproduce_example.py:")
    assert outcome.failed[ALL[3]] == "the memory does not suffice"
    assert say.heard(f"1/4 {ALL[0]} failed: x is constant")
    assert not json.loads(outcome.save(tmp_path / "out")[0].read_text())["finished"]
    healed = Squares()
    assert run(healed).left == 0 and healed.runs == [ALL[0], ALL[2], ALL[3]]


def test_numbers_that_json_cannot_hold_are_a_failure(run, monkeypatch):
    monkeypatch.setattr(Squares, "run", lambda self, cell, context: {"psnr": math.nan})
    outcome = run(Squares(), quick=True, setting="default")
    assert "ValueError" in outcome.failed[ALL[0]] and not outcome.records
    assert json_number(math.inf) is None and json_number(2) == 2.0


def test_interrupted_and_continued(run, tmp_path):
    outcome = run(Squares({ALL[1]: KeyboardInterrupt()}))
    assert isinstance(outcome.ended_by, KeyboardInterrupt)
    assert list(outcome.records) == ALL[:1] and outcome.left == 3
    assert outcome.tables()[0].rows[0][1].ours == 4.0 and outcome.tables()[0].rows[0][2].ours is None
    assert [path.name for path in outcome.save(tmp_path / "out")] == ["squares.json", "squares.png"]
    rest = Squares()
    assert run(rest).left == 0 and rest.runs == ALL[1:]


def test_an_interrupt_between_cells_loses_nothing(run, say, monkeypatch):
    def say_and_stop(self, text):
        if text.startswith(f"1/4 {ALL[0]}:"):
            raise KeyboardInterrupt

    monkeypatch.setattr(Listener, "__call__", say_and_stop)
    outcome = run(Squares())
    assert list(outcome.records) == ALL[:1] and isinstance(outcome.ended_by, KeyboardInterrupt)


def test_a_full_disk_ends_the_run_with_a_sentence(run, tmp_path, monkeypatch):
    def full(value):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "as_json", full)
    experiment = Squares()
    outcome = run(experiment)
    assert experiment.runs == ALL[:1]  # it would only go on to lose more
    assert "No space left on device" in str(outcome.ended_by) and isinstance(outcome.ended_by, InputError)
    assert outcome.tables()[0].rows[0][1].ours == 4.0
    assert not list((tmp_path / "out" / "squares" / "cells").iterdir())


def test_two_runs_in_one_folder(run, tmp_path):
    with (
        store.Store(tmp_path / "out", "squares").opened(),
        pytest.raises(InputError, match="in use by another process"),
    ):
        run(Squares())
    left_over = tmp_path / "out" / "squares" / "cells" / ".kruskal-1-aa.json"
    left_over.write_text("")
    assert run(Squares()).left == 0 and not left_over.exists()


@pytest.mark.parametrize("place", ["out", "out/squares", "out/squares/cells"])
def test_a_file_in_the_place_of_a_folder(run, tmp_path, place):
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("")
    with pytest.raises(InputError, match="cannot use the folder"):
        run(Squares())


def test_a_missing_data_set_is_told_before_anything_is_made(run, tmp_path, monkeypatch):
    monkeypatch.setenv("KRUSKAL_DATA", str(tmp_path))
    experiment = Squares()
    monkeypatch.setattr(Squares, "datasets", ("castle",))
    with pytest.raises(InputError, match=r"castle_original\.png' is missing"):
        run(experiment)
    assert not experiment.runs and not (tmp_path / "out").exists()
    monkeypatch.setattr(Squares, "datasets", ())
    run(experiment)
    monkeypatch.setattr(Squares, "datasets", ("castle",))
    assert len(run(experiment).records) == 4  # all saved: no data are needed


def keys(selection):
    return [cell.key for cell in selection.wanted]


def test_choosing_cells():
    squares = Squares()
    assert keys(reproduce.select(squares)) == ALL
    assert keys(reproduce.select(squares, setting="paper")) == ALL[3:]
    assert keys(reproduce.select(squares, quick=True)) == [ALL[0], ALL[3]]
    assert keys(reproduce.select(squares, patterns=["paper-*", "*-n4-*"])) == ALL[2:]
    assert len(keys(reproduce.select(squares, seeds=3))) == 12
    assert len(reproduce.select(squares, seeds=3, quick=True).known) == 12


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"patterns": ["kfa-*"]}, "no cell matches 'kfa-*'; there are 4, such as default-n2-seed1"),
        ({"patterns": ["paper-*"], "setting": "default"}, "no cell matches 'paper-*'; there are 3"),
        ({"patterns": [""]}, "no cell matches ''"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1, not 0"),
        ({"setting": "best"}, "setting must be one of paper, default, both, not 'best'"),
    ],
)
def test_choosing_nothing(options, sentence):
    with pytest.raises(InputError) as error:
        reproduce.select(Squares(), **options)
    assert sentence in str(error.value)


def test_cells_without_a_setting_belong_to_both(monkeypatch):
    monkeypatch.setattr(
        Squares, "cells", lambda self, quick, seeds: [Cell("bm4d", {}), Cell("b", {"setting": "paper"})]
    )
    assert keys(reproduce.select(Squares(), setting="default")) == ["bm4d"]
    assert keys(reproduce.select(Squares(), setting="paper")) == ["bm4d", "b"]


def test_no_cells_of_a_setting(monkeypatch):
    monkeypatch.setattr(Squares, "cells", lambda self, quick, seeds: [Cell("a", {"setting": "paper"})])
    with pytest.raises(InputError, match="squares --quick has no cells of the setting default"):
        reproduce.select(Squares(), quick=True, setting="default")


@pytest.mark.parametrize("names", [("a", "a"), ("a/b",), ("",), ("a b",)])
def test_keys_must_be_unique_names_of_files(monkeypatch, names):
    monkeypatch.setattr(Squares, "cells", lambda self, quick, seeds: [Cell(name, {}) for name in names])
    with pytest.raises(ValueError, match="not unique names"):
        reproduce.select(Squares())


def test_percent():
    assert percent(0.2) == "20" and percent(1.0) == "100" and percent(0.125) == "12.5"
