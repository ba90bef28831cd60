"""caltech101 and the features of mnist: their cells, short runs on small stand-ins, tables and figures."""

import json

import numpy as np
import pytest
from reproduce_example import PNG

from kruskal import DeepCKFA, data
from kruskal.data.datasets import Mnist
from kruskal.experiments import (
    caltech101,
    caltech101_features,
    caltech101_pictures,
    deep_cells,
    mnist_features,
    registry,
)
from kruskal.experiments.cells import Context


def strokes(n_images, size, seed):
    """Two classes of strokes, uint8."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 12, (n_images, size, size)).astype(np.uint8)
    y = (np.arange(n_images) % 2).astype(np.uint8)
    for image, label in zip(X, y):
        for _ in range(3):
            i, j = random.integers(0, size - 4, 2)
            image[(slice(i, i + 4), j) if label else (i, slice(j, j + 4))] = 230
    return X, y


@pytest.mark.parametrize("name, number", [("mnist", 30 + 4 * (4 * 5 + 1)), ("caltech101", 54)])
def test_quick_cells_are_among_the_others(name, number):
    experiment = registry.get(name)
    everything = {cell.key: cell for cell in experiment.cells(False, None)}
    quick = experiment.cells(True, None)
    assert len(everything) == number and len(quick) == 2
    assert {cell.key[-1] for cell in experiment.cells(True, 2)} == {"1", "2"}
    assert all(everything[cell.key] == cell for cell in quick)
    assert all(json.loads(json.dumps(cell.options)) == cell.options for cell in quick)


def test_mnist(monkeypatch, tmp_path):
    small = {
        "n_atoms": [4, 5],
        "atom_sizes": [[4, 4], [2, 2]],
        "pooling": [[2, 2]],
        "sweeps": 6,
        "n_training": 20,
    }
    monkeypatch.setattr(mnist_features, "FIT", mnist_features.FIT | small)
    monkeypatch.setattr(mnist_features, "SIZES", (10, 40))
    experiment = registry.get("mnist")
    context = Context(tmp_path, 1, load=lambda name: Mnist(*strokes(40, 10, 0), *strokes(20, 10, 1)))
    cells = [cell for cell in experiment.cells(False, 1) if cell.key.startswith("ckfa")]
    results = {cell.key: experiment.run(cell, context) for cell in cells}
    json.dumps(results, allow_nan=False)
    assert len(results) == 4 and results["ckfa-bottom-up-n40-seed1"]["error_both"] <= 15.0
    assert len(list(tmp_path.glob("deep-*.npz"))) == 2
    table = experiment.tables(results)[1]
    rows = {row[0]: row for row in table.rows}
    assert (
        rows["deep CKFA, bottom-up, layers 1+2"][-1].ours == results["ckfa-bottom-up-n40-seed1"]["error_both"]
    )
    assert rows["deep CFA, gibbs, layer 2"][1] is None
    figure = experiment.figure(results, tmp_path)
    assert figure is not None and figure.startswith(PNG) and experiment.figure({}, tmp_path) is None


@pytest.fixture
def small_caltech(monkeypatch, tmp_path):
    """36 pictures, grey and colour, of three classes, and settings to match."""
    small = {
        "n_atoms": [4, 5, 3], "atom_sizes": [[5, 5], [3, 3], [2, 2]], "pooling": [[2, 2], [2, 2]],
        "sweeps": 5, "n_training": 8,
    }  # fmt: skip
    monkeypatch.setattr(caltech101_features, "FIT", caltech101_features.FIT | small)
    short = {
        "n_atoms": [4, 5, 3], "atom_sizes": [5, 3, 2], "pooling": [2, 2], "epochs": 2, "batch_size": 6,
    }  # fmt: skip
    top = {"n_atoms": [4], "epochs": 2, "batch_size": 6}
    sides = {caltech101.SIDE: 20, caltech101.LARGE: 24}
    rows = {
        name: row._replace(
            options={**row.options, **(top if row.below else short)},
            below={**row.below, "block": 1} if row.below else {},
            side=sides[row.side],
        )
        for name, row in caltech101.ROWS.items()
    }
    monkeypatch.setattr(caltech101, "ROWS", rows)
    features = {name: row._replace(side=sides[row.side]) for name, row in caltech101_features.ROWS.items()}
    monkeypatch.setattr(caltech101_features, "ROWS", features)
    for module in (caltech101, caltech101_features, caltech101_pictures):
        monkeypatch.setattr(module, "COUNTS", (6, 8))
    monkeypatch.setattr(caltech101_features, "SIDE", 20)
    pictures = []
    for n, image in enumerate(strokes(36, 26, 0)[0]):
        path = tmp_path / f"{n:02d}.png"
        data.write(path, np.stack([image] * 3, axis=-1) if n % 4 else image, dtype="uint8")
        pictures.append((path, f"class{n % 3}"))
    return Context(tmp_path, 1, load=lambda name: pictures)


def test_caltech_without_labels(small_caltech, tmp_path):
    experiment = registry.get("caltech101")
    cells = [cell for cell in experiment.cells(False, 1) if cell.key.startswith("ckfa")]
    results = {cell.key: experiment.run(cell, small_caltech) for cell in cells}
    json.dumps(results, allow_nan=False)
    names = ("ckfa", "ckfa-large")
    assert set(results) == {f"{name}-train{count}-seed1" for name in names for count in (6, 8)}
    assert all(0.0 <= run[f"accuracy_{layer}"] <= 100.0 for run in results.values() for layer in (1, 2, 3))
    assert results["ckfa-train6-seed1"]["tested"] == 18 and len(list(tmp_path.glob("deep-*.npz"))) == 1
    (table,) = experiment.tables(results)
    rows = {row[0]: row for row in table.rows}
    assert [score.paper for score in rows["CKFA, layer 3"][3:]] == [61.2, 69.9]
    assert rows["CKFA, layer 2"][3].ours == results["ckfa-train6-seed1"]["accuracy_2"]
    assert rows["CKFA, side 96, layer 2"][3].ours == results["ckfa-large-train6-seed1"]["accuracy_2"]
    assert rows["CKFA, side 96, layer 3"][1] == rows["CKFA, layer 3"][1]  # the same atoms
    assert rows["CFA, layer 1"][3].ours is None
    figure = experiment.figure(results, tmp_path)
    assert figure is not None and figure.startswith(PNG)


def test_features_of_pictures_of_any_size():
    """Of the size that was learned from they are pooled from what `transform` gives."""
    images = strokes(12, 20, 0)[0][..., None] / 255.0
    options = {"n_atoms": [3, 4], "atom_sizes": [5, 3], "pooling": [2, 2], "sweeps": 4, "prune": 0.0}
    model = DeepCKFA(**options, nonnegative=True, threads=1).fit(images)
    whole = model.transform(images, [1, 2])
    features = deep_cells.pooled_features(model, images, (1, 1), 1)
    assert np.array_equal(np.concatenate(features, axis=1), whole)
    maps = whole[:, : model.n_features_[0]].reshape(12, 8, 8, 3)
    blocks = maps.reshape(12, 4, 2, 4, 2, 3).max(axis=(2, 4))
    assert np.allclose(deep_cells.pooled_features(model, images, (2, 1), 2)[0], blocks.reshape(12, -1))
    larger = deep_cells.pooled_features(model, np.pad(images, ((0, 0), (0, 8), (0, 8), (0, 0))), (1, 1), 1)
    first = larger[0].reshape(12, 12, 12, 3)[:, :8, :8]
    assert np.allclose(first, maps, atol=1e-6)


def test_a_kept_model_is_of_use_to_the_same_images_only(tmp_path):
    images = strokes(12, 12, 0)[0] / 255.0
    fit = {"n_atoms": [3], "atom_sizes": [4], "pooling": [2], "sweeps": 2, "prune": 0.0}
    context = Context(tmp_path, 1)
    first, again, other = (
        deep_cells.deep_model(context, "deep-cfa", 0, fit, some) for some in (images, images, 1.0 - images)
    )
    assert np.array_equal(first.atoms(1), again.atoms(1)) and not hasattr(again.layers_[0], "trace_")
    assert not np.array_equal(first.atoms(1), other.atoms(1)) and len(list(tmp_path.iterdir())) == 2


def test_caltech_with_labels(small_caltech, tmp_path):
    experiment = registry.get("caltech101")
    keys = ("dgdn-train6-seed1", "dgdn-on-ckfa-train6-seed1")
    cells = {cell.key: cell for cell in experiment.cells(False, 1)}
    results = {key: experiment.run(cells[key], small_caltech) for key in keys}
    json.dumps(results, allow_nan=False)
    assert all(0.0 <= run["accuracy"] <= 100.0 and run["tested"] == 18 for run in results.values())
    on_top = results[keys[1]]
    assert len(on_top["atoms"]) == 3 and on_top["parameters"] > on_top["atoms"][1] * on_top["atoms"][2]
    (table,) = experiment.tables(results)
    rows = {row[0]: row for row in table.rows}
    assert [score.paper for score in rows["DGDN"][3:]] == [75.4, 87.8]
    assert rows["DGDN"][3].ours == results[keys[0]]["accuracy"] and rows["DGDN"][4].ours is None
    assert rows["DGDN, layer 3 on CKFA"][3].ours == results[keys[1]]["accuracy"]
    assert [score.paper for score in rows["Kruskal DGDN, R = 1"][3:]] == [76.1, 88.3]
    figure = experiment.figure(results, tmp_path)
    assert figure is not None and figure.startswith(PNG) and experiment.figure({}, tmp_path) is None


def test_caltech_from_given_layers(small_caltech):
    experiment = registry.get("caltech101")
    cells = {cell.key: cell for cell in experiment.cells(False, 1)}
    run = experiment.run(cells["kruskal-dgdn-from-ckfa-train6-seed1"], small_caltech)
    json.dumps(run, allow_nan=False)
    without = cells["ckfa-train6-seed1"]
    assert run["atoms"] == experiment.run(without, small_caltech)["atoms"] and run["tested"] == 18
    (table,) = experiment.tables({"kruskal-dgdn-from-ckfa-train6-seed1": run})
    rows = {row[0]: row for row in table.rows}
    assert rows["Kruskal DGDN, R = 1, from CKFA, side 96"][3].ours == run["accuracy"]


def test_atoms_of_all_runs_are_told():
    """Little-used atoms are dropped, so the splits differ in their number."""
    experiment = registry.get("caltech101")
    results = {
        "ckfa-train15-seed1": {"atoms": [64, 125, 120], "parameters": 5400},
        "ckfa-train30-seed1": {"atoms": [63, 125, 128], "parameters": 5600},
        "ckfa-train15-seed2": {"atoms": [61, 125, 121], "parameters": 5500},
        "dgdn-on-ckfa-train15-seed1": {"atoms": [64, 125, 256], "parameters": 9000},
        "dgdn-on-ckfa-train15-seed2": {"atoms": [61, 124, 256], "parameters": 9000},
    }
    rows = {row[0]: row[1:3] for row in experiment.tables(results)[0].rows}
    assert rows["CKFA, layer 1"] == ("61-64", None)
    assert rows["CKFA, layer 3"] == ("61-64+125+120-128", "5,400-5,600")
    assert rows["DGDN, layer 3 on CKFA"] == ("61-64+124-125+256", "9,000") and rows["DGDN"] == (None, None)
    named = {f"ckfa-gibbs-n100-seed{seed}": {"atoms": [50, 198 + seed], "parameters": 7} for seed in (1, 2)}
    table = registry.get("mnist").tables(named)[1]
    assert ("50+199-200", "7") in [row[1:3] for row in table.rows]


def test_training_pictures_are_no_test_pictures():
    pictures = [(None, f"class{n % 3}") for n in range(300)]
    few, many = (caltech101_pictures.split_pictures(pictures, count, 1) for count in (15, 30))
    assert set(few.train) <= set(many.train) and (few.learned == few.train).all()
    for split in (few, many):
        assert not set(split.train) & set(split.test) and set(split.learned) <= set(split.train)
        assert len(split.test) == 150
