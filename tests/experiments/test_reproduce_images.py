"""barbara, datasize, complexity, castle: the right cells, on small pictures, beside the paper's numbers."""

import json

import numpy as np
import pytest
from reproduce_example import make_context, short_runs, small_arrays

from kruskal import data
from kruskal.experiments import barbara, castle, complexity, datasize, registry
from kruskal.experiments.scoring import restore_and_score

MINE = ("barbara", "datasize", "complexity", "castle")


@pytest.fixture
def calls(monkeypatch):
    return short_runs(monkeypatch)


def cell_of(experiment, key, quick=False):
    return next(cell for cell in experiment.cells(quick, None) if cell.key == key)


def run(experiment, key, tmp_path):
    return experiment.run(cell_of(experiment, key), make_context(tmp_path))


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("seeds", [None, 3])
def test_quick_cells_are_among_the_others(name, seeds):
    experiment = registry.get(name)
    everything = {cell.key: cell for cell in experiment.cells(False, seeds)}
    quick = experiment.cells(True, seeds)
    assert 0 < len(quick) < len(everything) and experiment.name == name
    assert all(everything[cell.key] == cell for cell in quick)
    for cell in everything.values():
        assert json.loads(json.dumps(cell.options)) == cell.options  # a saved cell compares equal
        assert cell.key.endswith(f"-seed{cell.options['seed']}")


@pytest.mark.parametrize("name", MINE)
def test_nothing_is_shown_of_nothing(name, tmp_path):
    experiment = registry.get(name)
    assert experiment.figure({}, tmp_path) is None
    assert all(score.ours is None for table in experiment.tables({}) for score in table.scores())


@pytest.mark.parametrize("name", MINE)
def test_every_cell_has_a_place_in_a_table(name, tmp_path):
    """A key that the tables look for in vain would leave a gap nobody notices."""
    experiment = registry.get(name)
    results = {cell.key: {"psnr": 100.0 + place} for place, cell in enumerate(experiment.cells(False, 1))}
    shown = {score.ours for table in experiment.tables(results) for score in table.scores()}
    assert {result["psnr"] for result in results.values()} <= shown
    assert experiment.figure(results, tmp_path).startswith(b"\x89PNG")


def test_cells_of_barbara():
    cells = barbara.EXPERIMENT.cells(False, None)
    assert len(cells) == 2 * 2 * 30 + 5 and len(barbara.EXPERIMENT.cells(False, 2)) == 250
    assert len({cell.key for cell in cells}) == 125
    quick = {cell.key for cell in barbara.EXPERIMENT.cells(True, None)}
    assert quick == {
        *(f"kfa-default-keep{keep}-noise{noise}-seed1" for keep in (20, 50, 100) for noise in (0, 25)),
        "bpfa-default-keep20-noise0-seed1",
        "bpfa-default-keep100-noise25-seed1",
    }
    paper = cell_of(barbara.EXPERIMENT, "kfa-paper-keep20-noise5-seed1").options
    assert paper["inpaint"]["patch_shape"] == [8, 8] and paper["inpaint"]["rank"] == 7
    assert paper["inpaint"]["n_atoms"] == 256 and paper["inpaint"]["stride"] == 1
    assert (paper["keep"], paper["noise"], paper["setting"]) == (0.2, 5, "paper")


def test_means_of_barbara_leave_the_doubtful_cells_out():
    results = {}
    for cell in barbara.EXPERIMENT.cells(False, None):
        model, keep, noise = cell.options["inpaint"]["model"], cell.options["keep"], cell.options["noise"]
        number = barbara.PAPER[model][noise][barbara.KEEPS.index(keep)]
        wrong = (model, keep, noise) in {("kfa", 0.3, 15), ("kfa", 0.5, 20), ("kfa", 1.0, 25)}
        results[cell.key] = {"psnr": number + (100 if wrong else 0.5)}
    tables = barbara.EXPERIMENT.tables(results)
    assert len(tables) == 5
    for table, counted in zip(tables, (27, 30, 27, 30)):
        found = table.mean_differences()[""]
        assert found["counted"] == counted and found["mean"] == pytest.approx(0.5), table.title
    cdf = tables[-1].scores()
    assert [score.doubtful for score in cdf] == [True, False, True, True, True]
    assert [score.paper for score in cdf] == [23.51, 26.80, 27.92, 28.72, 30.17]
    block = {number for row in barbara.PAPER["kfa"].values() for number in row}
    assert [score.paper in block for score in cdf] == [score.doubtful for score in cdf]  # that is the doubt


def test_all_models_and_settings_see_the_same_damage(calls, tmp_path):
    seen = []
    short = data.corrupt(small_arrays()["barbara256"], keep=0.5, noise=10, seed=1)
    for model in ("kfa", "bpfa"):
        for setting in ("paper", "default"):
            found = run(barbara.EXPERIMENT, f"{model}-{setting}-keep50-noise10-seed1", tmp_path)
            seen.append(found)
    assert all((call["observed"] == short.observed).all() for call in calls)
    assert all(call["seed"] == 1 and call["threads"] == 1 for call in calls)
    assert set(calls[-1]) == {"model", "observed", "seed", "threads", "progress"}  # default: nothing given
    assert calls[0]["setting"] == "paper" and calls[2]["model"] == "bpfa"
    for found in seen:
        assert 8 < found["psnr"] < 40 and 0 <= found["coverage_std"] <= found["coverage"] <= 1
        assert found["settings"]["model"] in ("kfa", "bpfa") and found["seconds"] > 0
        json.dumps(found, allow_nan=False)


def test_scores_are_of_the_clipped_unrounded_mean(calls, tmp_path):
    truth = small_arrays()["barbara256"]
    found, restoration = restore_and_score(
        truth, {"model": "kfa", "patch_shape": [8, 8]}, make_context(tmp_path)
    )
    error = np.clip(restoration.mean, 0, 255) - truth
    assert found["psnr"] == pytest.approx(10 * np.log10(255**2 / np.mean(error**2)))
    assert "coverage" not in found  # nothing is missing
    where = truth > 100
    chosen, _ = restore_and_score(
        truth,
        {"model": "kfa", "patch_shape": [8, 8]},
        make_context(tmp_path),
        peak=200,
        where=where,
        clip=(90, 110),
    )
    error = (np.clip(restoration.mean, 90, 110) - truth)[where]
    assert chosen["psnr"] == pytest.approx(10 * np.log10(200**2 / np.mean(error**2)))


def test_data_size(calls, tmp_path):
    cells = datasize.EXPERIMENT.cells(False, None)
    assert len(cells) == 4 * 7 * 10 and len(datasize.EXPERIMENT.cells(False, 3)) == 84
    found = run(datasize.EXPERIMENT, "kfa-paper-stride8-seed4", tmp_path)
    assert found["n_items"] == 9 and calls[-1]["seed"] == 4 and calls[-1]["observed"].all()
    assert run(datasize.EXPERIMENT, "bpfa-default-stride4-seed1", tmp_path)["settings"]["stride"] == (4, 4)
    assert "n_atoms" not in calls[-1]
    found = run(datasize.EXPERIMENT, "mgp-cp-paper-stride8-seed1", tmp_path)
    assert found["n_items"] == 9 and calls[-1]["model"] == "mgp-cp" and "rank" in found


def test_table_of_data_size():
    results = {
        cell.key: {"psnr": (50.0 if "kfa" in cell.key else 42.0) + cell.options["seed"] % 2}
        for cell in datasize.EXPERIMENT.cells(False, 4)
        if cell.options["setting"] == "paper"
    }
    (table,) = datasize.EXPERIMENT.tables(results)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["KFA"][0].ours == 50.5 and rows["KFA"][0].spread == pytest.approx(3**-0.5)
    assert rows["KFA"][0].paper == 50.36 and rows["KFA"][0].paper_spread == 0.1
    assert rows["KFA less BPFA"][3].ours == pytest.approx(8) and rows["MGP-CP"][1].ours == 42.5
    assert rows["CDF-KFA"][1].ours == 50.5 and rows["CDF-KFA"][1].paper == 41.14
    assert rows["KFA less BPFA"][3].paper == pytest.approx(44.26 - 36.88)
    assert table.mean_differences()["KFA less BPFA"]["counted"] == 4
    assert "seeds: 4 of ours, 10 of the paper" in table.notes


def test_complexity(calls, tmp_path):
    assert len(complexity.ATOMS) >= 12 and (complexity.ATOMS[0], complexity.ATOMS[-1]) == (1, 256)
    assert {6, 12, 24} < set(complexity.ATOMS)
    found = run(complexity.EXPERIMENT, "kfa-paper-atoms6-seed1", tmp_path)
    assert found["parameters"] == 17 * 6 and found["settings"]["rank"] == 1
    assert found["settings"]["n_atoms"] == 6 and calls[-1]["setting"] == "paper"
    assert run(complexity.EXPERIMENT, "bpfa-paper-atoms1-seed1", tmp_path)["parameters"] == 64


def test_castle(calls, tmp_path):
    assert len(castle.EXPERIMENT.cells(False, None)) == 9 * 2 * 2 + 8 * 2
    quick = castle.EXPERIMENT.cells(True, None)
    assert {(c.options["keep"], c.options["noise"]) for c in quick} == {(0.2, 0), (1.0, 25)} and len(
        quick
    ) == 12
    found = run(castle.EXPERIMENT, "kfa-paper-keep50-noise0-seed1", tmp_path)
    assert found["settings"]["patch_shape"] == (7, 7, 3) and found["settings"]["rank"] == 10
    assert calls[-1]["n_atoms"] == 512 and found["coverage"] > 0
    masks = np.moveaxis(calls[-1]["observed"], -1, 0)
    assert (masks[0] != masks[1]).any() and (masks[1] != masks[2]).any()


@pytest.mark.parametrize("setting", ["paper", "default"])
def test_castle_with_separate_patches(calls, tmp_path, setting):
    found = run(castle.EXPERIMENT, f"kfa-{setting}-separate-seed1", tmp_path)
    assert found["settings"]["patch_shape"] == (7, 7, 3) and found["settings"]["stride"] == (7, 7, 3)
    assert calls[-1]["observed"].all()


def test_table_of_the_castle():
    results = {cell.key: {"psnr": 30.0} for cell in castle.EXPERIMENT.cells(False, None)}
    tables = castle.EXPERIMENT.tables(results)
    assert len(tables) == 6
    best = {row[0]: row[1:] for row in tables[1].rows}["KFA, best of the paper's"]
    assert [score.paper for score in best] == [40.58, 36.24, 33.98, 31.19]
    assert tables[2].rows[0][1].paper == 50.94 and tables[2].rows[1][1].paper is None
    assert len(castle.PAPER["bpfa"]) == 8


@pytest.mark.parametrize(
    "experiment, key",
    [
        (barbara.EXPERIMENT, "cdf-kfa-paper-keep20-noise5-seed1"),
        (datasize.EXPERIMENT, "cdf-kfa-paper-stride4-seed1"),
        (castle.EXPERIMENT, "cdf-kfa-paper-keep20-noise0-seed1"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_learning_online_as_the_paper_does(calls, tmp_path, experiment, key):
    """10 epochs of which 5 are burn-in, batches of 5,000, three passes: here three epochs of one batch."""
    options = cell_of(experiment, key).options["inpaint"]
    online = {"online": "cdf", "batch_size": 5000, "epochs": 10, "burn_in": 5, "passes": 3}
    assert online.items() <= options.items() and options["setting"] == "paper" and options["model"] == "kfa"
    found = run(experiment, key, tmp_path)
    settings = found["settings"]
    assert settings["online"] == "cdf" and settings["batches"] == 1 and settings["sweeps"] == 3
    assert settings["batch_size"] == found["n_items"]
    json.dumps(found, allow_nan=False)
    tables = experiment.tables({key: found})
    assert any(score.ours == found["psnr"] for table in tables for score in table.scores())
