"""Tables, their notes, the presets and the figures."""

import io

import pytest
from rich.console import Console

from kruskal.errors import InputError
from kruskal.experiments import notes, plots, presets
from kruskal.experiments.tables import Score, Table, over_seeds, score_of, show
from kruskal.restore import inpaint

RESULTS = {
    "kfa-keep20-seed1": {"psnr": 27.0},
    "kfa-keep20-seed2": {"psnr": 29.0},
    "kfa-keep20-noise5-seed1": {"psnr": 99.0},
    "kfa-keep30-seed1": {"psnr": None},
}


def printed(table):
    stream = io.StringIO()
    show(Console(file=stream, width=120), table)
    return stream.getvalue()


def test_scores_are_means_over_seeds():
    score = score_of(RESULTS, "kfa-keep20", 27.5)
    assert score.ours == 28.0 and score.spread == pytest.approx(2**0.5) and score.difference == 0.5
    assert len(over_seeds(RESULTS, "kfa-keep20")) == 2
    assert score_of(RESULTS, "kfa-keep30", 1.0).difference is None
    assert score_of(RESULTS, "kfa-keep20-noise5").spread is None
    assert score_of(RESULTS, "kfa").ours is None


ROWS = [
    ("0", Score(28.0, 27.0), Score(31.0, 30.9), None),
    ("5", Score(30.0, 20.0, doubtful=True), Score(None, 30.0), Score(40.0)),
]


def test_doubtful_cells_are_left_out_of_the_mean():
    table = Table("T", ("σ", "20 %", "30 %", "50 %"), ROWS, ["a note"])
    found = table.mean_differences()[""]
    assert found["mean"] == pytest.approx(0.55) and found["counted"] == 2
    assert found["least"] == pytest.approx(0.1)
    assert table.all_notes()[0] == "mean difference over 2 cells +0.55 dB, least +0.10"
    assert "doubtful" in table.all_notes()[1] and table.all_notes()[2] == "a note"


def test_means_by_row_and_without_a_unit():
    assert list(Table("T", ("σ", "20 %"), ROWS, by_row=True).mean_differences()) == ["0"]
    assert Table("T", ("σ", "20 %"), ROWS, unit=None).mean_differences() == {}


def test_printed_tables():
    text = printed(Table("T [bold]", ("σ", "20 %", "30 %", "[s]"), ROWS))
    assert text.startswith("T [bold]\n") and "[s]" in text  # brackets are no markup
    lines = [line.split() for line in text.splitlines()]
    assert ["0", "ours", "28.00", "31.00", "-"] in lines
    assert ["paper", "27.00", "30.90"] in lines and ["difference", "+1.00", "+0.10"] in lines
    assert ["paper", "20.00?", "30.00", "-"] in lines and ["difference", "+10.00", "-", "-"] in lines


def test_tables_without_a_paper_take_one_line():
    table = Table("T", ("K", "PSNR"), [("1", Score(9.0, spread=0.5)), ("2", Score(None)), ("3", None)])
    lines = [line.split() for line in printed(table).splitlines()]
    assert ["1", "9.00", "±", "0.50"] in lines and ["2", "-"] in lines and ["3", "-"] in lines
    assert table.all_notes() == []
    assert table.to_json()["rows"][0][1]["ours"] == 9.0 and table.to_json()["rows"][2] == ["3", None]


def test_json_of_a_table():
    values = Table("T", ("σ", "20 %", "30 %", "50 %"), ROWS).to_json()
    assert values["rows"][0][1]["difference"] == 1.0 and values["rows"][1][1]["doubtful"]
    assert values["columns"] == ["σ", "20 %", "30 %", "50 %"] and values["unit"] == "dB"


def test_notes():
    runs = [
        {"seconds": 30.0, "coverage": 0.9, "settings": {"model": "kfa", "stride": [1, 1], "alpha": "sample"}},
        {
            "seconds": 50.0,
            "coverage": None,
            "settings": {"model": "kfa", "stride": [2, 2], "alpha": "sample"},
        },
        {"coverage": 0.96, "settings": {"usage_prior": (256.0, 7750.125)}},
    ]
    settings, time, coverage = notes.run_notes(runs)
    assert settings == "settings: stride 1x1 or 2x2, alpha sample, usage_prior (256, 7750.12)"
    assert time == "time: 1 min 20 s in all, the longest run 50 s"
    assert "holds 93.0 % of the missing entries (runs: 90.0 to 96.0 %)" in coverage
    assert notes.run_notes([{}]) == []


PAPER = {"patch_shape": (8, 8), "n_atoms": 256, "rank": 7, "stride": 2}


def test_the_papers_setting():
    kfa, bpfa = (presets.options_for("paper", model, **PAPER) for model in ("kfa", "bpfa"))
    assert kfa == {
        "setting": "paper", "model": "kfa", "patch_shape": [8, 8], "n_atoms": 256, "rank": 7, "stride": 2,
    }  # fmt: skip
    del kfa["rank"]
    assert bpfa == kfa | {"model": "bpfa"}  # the same care for both


def test_the_default_setting_gives_nothing():
    assert presets.options_for("default", "bpfa", **PAPER) == {"model": "bpfa"}
    with pytest.raises(InputError, match="setting must be one of paper, default, not 'best'"):
        presets.options_for("best", "kfa", **PAPER)


def test_presets_are_options_of_inpaint():
    accepted = set(inpaint.__kwdefaults__)
    for setting in presets.SETTINGS:
        assert set(presets.options_for(setting, "kfa", **PAPER)) <= accepted


def test_figures_bear_gaps():
    curve = plots.Curve("a", (1, 2, 4), (3.0, None, 4.0), (0.1, None, None))
    nothing = plots.Curve("b", (1, 2), (None, None))
    for panels in (
        [plots.Panel("t", "x", [curve, nothing], True, (1, 2, 4))],
        [plots.Panel("t", "x", [nothing])],
    ):
        assert plots.draw_curves("title", "subtitle", panels).startswith(b"\x89PNG")
    gaps = plots.ScoreMap("t", ("0", "5"), ("20 %", "30 %"), [[Score(None)] * 2, [Score(2.0, 1.0, True)] * 2])
    assert plots.draw_differences("title", "subtitle", [gaps] * 3, "rows", "columns").startswith(b"\x89PNG")
