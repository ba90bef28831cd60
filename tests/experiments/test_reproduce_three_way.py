"""amino, mri, dct4d, cprank: the right cells, on small arrays, beside the paper's numbers."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from reproduce_example import PNG, short_runs

from kruskal.data import Scaling, corrupt
from kruskal.experiments import amino, cprank, dct4d, mri, registry
from kruskal.experiments.cells import Context
from kruskal.report import psnr

MINE = ("amino", "mri", "dct4d", "cprank")


@pytest.fixture
def calls(monkeypatch):
    return short_runs(monkeypatch)


def context_of(folder, values=None):
    return Context(folder, threads=1, load=lambda name: SimpleNamespace(values=values))


def run(experiment, key, folder, values=None):
    cell = next(cell for cell in experiment.cells(False, None) if cell.key == key)
    return experiment.run(cell, context_of(folder, values))


def invented(experiment):
    """Results of all cells, every number once."""
    numbers = iter(range(1000, 9000))
    measures = ("psnr", "rrse", "rmse", "rmse_data", "recovered", "psnr_all")
    return {
        cell.key: {name: float(next(numbers)) for name in measures} | {"peak": 938.499}
        for cell in experiment.cells(False, 1)
    }


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("seeds", [None, 2])
def test_quick_cells_are_among_the_others(name, seeds):
    experiment = registry.get(name)
    everything = {cell.key: cell for cell in experiment.cells(False, seeds)}
    quick = experiment.cells(True, seeds)
    assert 0 < len(quick) < len(everything) == len(experiment.cells(False, seeds))
    assert experiment.name == name
    assert all(everything[cell.key] == cell for cell in quick)
    assert {cell.options.get("setting") for cell in quick} <= {"default", "paper", None}
    for cell in everything.values():
        assert json.loads(json.dumps(cell.options)) == cell.options
        assert cell.key.endswith(f"-seed{cell.options['seed']}")


@pytest.mark.parametrize("name", MINE)
def test_nothing_is_shown_of_nothing(name, tmp_path):
    experiment = registry.get(name)
    assert experiment.figure({}, tmp_path) is None and experiment.tables({}) == []


@pytest.mark.parametrize(
    ("name", "measures"),
    [("amino", ("psnr", "rrse")), ("mri", ("psnr",)), ("dct4d", ("rmse", "recovered"))],
)
def test_every_cell_has_a_place_in_a_table(name, measures, tmp_path):
    experiment = registry.get(name)
    results = invented(experiment)
    shown = {score.ours for table in experiment.tables(results) for score in table.scores()}
    assert {result[measure] for result in results.values() for measure in measures} <= shown
    assert experiment.figure(results, tmp_path) is None  # no array was kept: nothing to draw, no mistake


def test_amino_beside_the_paper():
    cells = {cell.key: cell.options for cell in amino.EXPERIMENT.cells(False, None)}
    paper = cells["kfa-paper-keep10-seed1"]["inpaint"]
    assert (paper["patch_shape"], paper["n_atoms"], paper["rank"], paper["stride"]) == (
        [5, 50, 4],
        256,
        20,
        1,
    )
    assert "rank" not in cells["bpfa-paper-keep10-seed1"]["inpaint"]
    assert cells["kfa-default-keep10-seed1"]["inpaint"] == {"model": "kfa"}
    assert cells["mgp-cp-paper-keep10-seed1"]["inpaint"] == {"model": "mgp-cp", "setting": "paper"}
    assert cells["mgp-cp-default-keep10-seed1"]["inpaint"] == {"model": "mgp-cp"}
    assert cells["kfa-known-default-keep10-seed1"]["learn"] == {"patch_shape": [5, 12, 12]}
    results = {
        "kfa-default-keep10-seed1": {"rrse": 0.010, "psnr": 53.0, "peak": 938.499, "seconds": 2.0},
        "mgp-cp-default-keep10-seed1": {"rrse": 0.020, "psnr": 48.0, "peak": 938.499, "rank": 7},
        "kfa-known-default-keep10-seed1": {"rrse": 0.0095, "psnr": 53.5, "peak": 938.499},
    }
    (table,) = amino.EXPERIMENT.tables(results)
    (_, *rrse), (_, *decibels), ranks = table.rows
    assert ranks == ("rank", None, "7", None, None, None) and rrse[1].ours == 0.020
    assert [score.paper for score in rrse] == [0.026, 0.02542, 0.02752, 0.01099, None]
    assert [score.paper for score in decibels] == [45.40, 45.60, 44.91, 52.88, None]
    assert rrse[-2].difference == pytest.approx(-0.00099) and rrse[0].ours is None
    assert rrse[-1].ours == 0.0095
    assert "938.499" in table.notes[0] and table.columns[-1] == "known atoms"


def test_amino_is_measured_as_in_the_paper(calls, tmp_path):
    random = np.random.default_rng(0)
    truth = np.einsum("ir,jr,kr->ijk", *(random.random((size, 2)) for size in (5, 24, 14)))
    measured = run(amino.EXPERIMENT, "kfa-default-keep10-seed1", tmp_path, truth)
    arrays = np.load(tmp_path / "kfa-default-keep10-seed1.npz")
    error = np.linalg.norm(arrays["mean"] - truth)
    assert measured["rrse"] == pytest.approx(error / np.linalg.norm(truth))
    assert measured["psnr"] == pytest.approx(20 * np.log10(truth.max() * np.sqrt(truth.size) / error))
    assert measured["peak"] == truth.max() and 0 <= measured["coverage"] <= 1
    seen = corrupt(truth, keep=0.1, seed=1)
    assert np.array_equal(calls[0]["observed"], seen.observed)
    assert np.array_equal(arrays["seen"], seen.values, equal_nan=True)
    other = run(amino.EXPERIMENT, "bpfa-default-keep10-seed1", tmp_path, truth)
    assert np.array_equal(calls[1]["observed"], seen.observed) and calls[1]["model"] == "bpfa"
    results = {"kfa-default-keep10-seed1": measured, "bpfa-default-keep10-seed1": other}
    assert amino.EXPERIMENT.figure(results, tmp_path).startswith(PNG)


@pytest.fixture
def head(monkeypatch):
    """A volume with a background of zeros, and a crop inside its foreground; float64 as it is loaded."""
    monkeypatch.setattr(mri, "CROP", slice(4, 12))
    places = np.indices((16, 17, 16))
    values = np.rint(120 + 60 * np.sin(places[0]) + 50 * np.cos(places[1] + places[2] / 2))
    values[:2] = values[-2:] = 0.0
    return values


@pytest.fixture
def fake_bm4d(monkeypatch):
    told = []

    def bm4d(noisy, sigma):
        told.append(sigma)
        return noisy - 1.0

    monkeypatch.setitem(sys.modules, "bm4d", SimpleNamespace(bm4d=bm4d))
    monkeypatch.setattr(mri, "installed_version", lambda peer: "9.9")
    return told


def test_cells_of_mri(monkeypatch):
    monkeypatch.setattr(mri, "installed_version", lambda peer: None)
    cells = {cell.key: cell.options for cell in mri.EXPERIMENT.cells(False, None)}
    assert len(cells) == 3 * 2 * 2 and not any("bm4d" in key for key in cells)
    quick = {cell.key for cell in mri.EXPERIMENT.cells(True, None)}
    assert quick == {f"{m}-default-crop-{t}-seed1" for m in ("kfa", "bpfa") for t in ("noise19", "keep20")}
    paper = cells["kfa-paper-whole-keep20-seed1"]
    assert (paper["keep"], paper["noise"], paper["region"]) == (0.2, 0.0, "whole")
    assert {name: paper["inpaint"][name] for name in ("patch_shape", "stride", "n_atoms", "rank")} == {
        "patch_shape": [8, 8, 8],
        "stride": 4,
        "n_atoms": 512,
        "rank": 24,
    }
    assert cells["kfa-paper-crop-noise19-seed1"]["noise"] == pytest.approx(48.45)
    monkeypatch.setattr(mri, "installed_version", lambda peer: "9.9")
    assert mri.EXPERIMENT.cells(True, None)[0].options["bm4d"] == "9.9"


def test_mri_says_which_voxels_count(calls, head, tmp_path):
    measured = run(mri.EXPERIMENT, "kfa-default-whole-keep20-seed1", tmp_path, head)
    assert calls[0]["observed"].shape == head.shape
    assert measured["foreground"] == 0.75
    share = 0.75 * 10 ** (-measured["psnr"] / 10)  # squared error of the foreground, per voxel of the whole
    assert share < 10 ** (-measured["psnr_all"] / 10)
    assert measured["psnr"] != measured["psnr_all"]
    crop = run(mri.EXPERIMENT, "kfa-default-crop-keep20-seed1", tmp_path, head)
    assert calls[1]["observed"].shape == (8, 8, 8)
    assert crop["psnr"] == pytest.approx(crop["psnr_all"]) and crop["foreground"] == 1.0
    results = {
        "kfa-default-whole-keep20-seed1": measured,
        "kfa-default-crop-keep20-seed1": crop,
    }
    assert mri.EXPERIMENT.figure(results, tmp_path).startswith(PNG)
    (table,) = mri.EXPERIMENT.tables(results)
    by_row = {row[0]: row[-1] for row in table.rows}
    assert by_row["whole, 20 % of the voxels, foreground"].ours == measured["psnr"]
    assert by_row["whole, 20 % of the voxels, all voxels"].ours == measured["psnr_all"]
    assert by_row["crop, 20 % of the voxels, foreground"].paper == 30.46
    assert by_row["crop, σ 19 %, foreground"].paper == 29.67


def test_bm4d_is_told_the_noise_and_measured_alike(calls, head, fake_bm4d, tmp_path):
    measured = run(mri.EXPERIMENT, "bm4d-crop-noise19-seed1", tmp_path, head)
    assert fake_bm4d == [pytest.approx(48.45)]
    truth = head[4:12, 4:12, 4:12]
    noisy = corrupt(truth, noise=48.45, seed=1).values
    assert measured["psnr"] == pytest.approx(psnr(np.clip(noisy - 1.0, 0, 255), truth, 255.0))
    run(mri.EXPERIMENT, "kfa-default-crop-noise19-seed1", tmp_path, head)
    kept = [np.load(tmp_path / f"{key}-crop-noise19-seed1.npz")["seen"] for key in ("bm4d", "kfa-default")]
    assert np.array_equal(*kept)
    results = {"bm4d-crop-noise19-seed1": measured, "kfa-default-crop-noise19-seed1": {"psnr": 20.0}}
    (table,) = mri.EXPERIMENT.tables(results)
    assert any(f"{20.0 - measured['psnr']:+.2f} dB" in note for note in table.notes)
    (alone,) = mri.EXPERIMENT.tables({"bm4d-crop-noise19-seed1": measured})
    assert alone.rows[0][2].ours == measured["psnr"] and alone.rows[0][2].paper == 29.70


def test_a_missing_bm4d_is_told(monkeypatch):
    monkeypatch.setattr(mri, "installed_version", lambda peer: None)
    (table,) = mri.EXPERIMENT.tables({"kfa-default-crop-noise19-seed1": {"psnr": 20.0}})
    assert any("bm4d is not installed" in note for note in table.notes)


def test_dct_filters_are_orthonormal_and_separable():
    filters = dct4d.dct_filters()
    assert filters.shape == (625, 5, 5, 5, 5)
    flat = filters.reshape(625, -1)
    assert np.allclose(flat @ flat.T, np.eye(625))
    assert all(
        (np.linalg.svd(one.reshape(5, -1), compute_uv=False)[1:] < 1e-12).all() for one in filters[::50]
    )
    assert np.allclose(filters[0], 1 / 25)


def test_dct_data_and_that_scaling_leaves_zero_where_it_is():
    data = dct4d.make_data(3)
    assert ((data.weights != 0).sum(axis=1) == 8).all() and data.clean.shape == (2500, 5, 5, 5)
    first = sum(weight * one for weight, one in zip(data.weights[0], data.filters))
    assert np.allclose(data.clean[:5], first)
    assert np.std(data.weights[data.weights != 0]) == pytest.approx(1.0, abs=0.05)
    assert not np.array_equal(data.weights, dct4d.make_data(4).weights)
    for noise in dct4d.NOISES.values():
        noisy = corrupt(data.clean, noise=noise, seed=3)
        assert Scaling.fit(noisy.values, noisy.observed).offset == 0.0


def test_recovered_filters_are_counted_once():
    filters = dct4d.dct_filters()
    random = np.random.default_rng(0)
    assert dct4d.n_recovered(-3.0 * random.permutation(filters), filters) == 625
    assert dct4d.n_recovered(np.concatenate([filters[:4], 2 * filters[:4]]), filters) == 4
    assert dct4d.n_recovered(np.zeros((3, 5, 5, 5, 5)), filters) == 0

    def turned(cosine):
        return cosine * filters[:1] + np.sqrt(1 - cosine**2) * filters[1:2]

    assert dct4d.n_recovered(turned(0.949), filters) == 0 and dct4d.n_recovered(turned(0.951), filters) == 1


@pytest.mark.parametrize(("noise", "least", "most"), [(0.1, 530, 575), (0.01, 610, 625)])
def test_what_could_be_recovered(noise, least, most):
    """By calculation 559 of 625 at the printed noise: a rank-one fit has 16 angles, the weights sum up."""
    data = dct4d.make_data(1)
    bound = dct4d.oracle(data, corrupt(data.clean, noise=noise, seed=1).values)
    assert least <= bound["recovered"] <= most
    assert bound["rmse"] == pytest.approx(noise * np.sqrt(8 / 625), rel=0.05)


def test_the_bound_is_shown_alone():
    (table,) = dct4d.EXPERIMENT.tables({"oracle-noise0.1-seed1": {"rmse": 0.011, "recovered": 553}})
    assert [row[-1].ours for row in table.rows] == [0.011, None, 553]


def test_dct_items_are_cut_without_overlap(calls, tmp_path):
    measured = run(dct4d.EXPERIMENT, "kfa-rank1-paper-noise0.1-seed1", tmp_path)
    assert calls[0]["patch_shape"] == [5, 5, 5, 5] and calls[0]["rank"] == 1
    assert (calls[0]["sweeps"], calls[0]["n_atoms"]) == (100, 625)
    assert measured["n_items"] == 500 and "psnr" not in measured
    assert 0.01 < measured["rmse"] < 0.2 and 0 <= measured["recovered"] <= 8
    assert measured["rmse_data"] != measured["rmse"]
    results = {"kfa-rank1-paper-noise0.1-seed1": measured}
    assert dct4d.EXPERIMENT.figure(results, tmp_path).startswith(PNG)
    (table,) = dct4d.EXPERIMENT.tables(results)
    compared = [score for score in table.scores() if score.paper is not None]
    assert [score.paper for score in compared] == [0.03795, 0.01387, 0.01095]
    assert all(score.doubtful for score in compared) and "0.0113" in table.notes[0]


def test_default_setting_of_dct_keeps_what_the_experiment_is():
    cells = {
        cell.key: cell.options["inpaint"]
        for cell in dct4d.EXPERIMENT.cells(False, 1)
        if "inpaint" in cell.options
    }
    assert cells["kfa-rank1-default-noise0.1-seed1"] == {
        "model": "kfa",
        "patch_shape": [5, 5, 5, 5],
        "stride": 5,
        "n_atoms": 625,
        "rank": 1,
        "sweeps": dct4d.LONG_SWEEPS,
        "burn_in": dct4d.ANNEALING,
        "annealing": dct4d.ANNEALING,
    }
    assert "rank" not in cells["bpfa-default-noise0.1-seed1"]
    assert cells["kfa-rank30-paper-noise0.1-seed1"]["rank"] == 30


def test_ranks_of_synthetic_tensors(calls, tmp_path):
    cells = cprank.EXPERIMENT.cells(False, None)
    assert len(cells) == 20 and len(cprank.EXPERIMENT.cells(True, None)) == 2
    truth = cprank.synthetic((6, 5, 4), 2, 1)
    assert np.linalg.matrix_rank(truth.reshape(6, 20)) == 2
    assert not np.array_equal(truth, cprank.synthetic((6, 5, 4), 2, 2))
    results = {"order3-seed1": {"rank": 5, "rrse": 0.02}, "order3-seed2": {"rank": 6, "rrse": 0.04}}
    (table,) = cprank.EXPERIMENT.tables(results)
    (shape, right, ranks, error), (_, *nothing) = table.rows
    assert (shape, right, ranks) == ("20x20x20", "1 of 2", "5, 6") and error.ours == pytest.approx(0.03)
    assert nothing[:2] == [None, None] and nothing[2].ours is None
    small = cells[0]._replace(options=cells[0].options | {"shape": [9, 8, 7], "rank": 2, "keep": 0.8})
    found = cprank.EXPERIMENT.run(small, Context(tmp_path))
    assert found["rank"] >= 0 and 0.0 < found["rrse"] < 2.0 and calls[-1]["model"] == "mgp-cp"
