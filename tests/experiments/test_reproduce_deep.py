"""mnist-features and caltech101-features: their cells, short runs on small stand-ins, tables and figures."""

import json

import numpy as np
import pytest
from reproduce_example import PNG

from kruskal import data
from kruskal.data.datasets import Mnist
from kruskal.experiments import caltech101_features, mnist_features, registry
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


@pytest.mark.parametrize("name, number", [("mnist-features", 4 * (4 * 5 + 1)), ("caltech101-features", 12)])
def test_quick_cells_are_among_the_others(name, number):
    experiment = registry.get(name)
    everything = {cell.key: cell for cell in experiment.cells(False, None)}
    quick = experiment.cells(True, None)
    assert len(everything) == number and len(quick) == 1
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
    experiment = registry.get("mnist-features")
    context = Context(tmp_path, 1, load=lambda name: Mnist(*strokes(40, 10, 0), *strokes(20, 10, 1)))
    cells = [cell for cell in experiment.cells(False, 1) if cell.options["model"] == "ckfa"]
    results = {cell.key: experiment.run(cell, context) for cell in cells}
    json.dumps(results, allow_nan=False)
    assert len(results) == 4 and results["ckfa-bottom-up-n40-seed1"]["error_both"] <= 15.0
    assert len(list(tmp_path.glob("deep-*.npz"))) == 2
    (table,) = experiment.tables(results)
    rows = {row[0]: row for row in table.rows}
    assert (
        rows["deep CKFA, bottom-up, layers 1+2"][-1].ours == results["ckfa-bottom-up-n40-seed1"]["error_both"]
    )
    assert rows["deep CFA, gibbs, layer 2"][1] is None
    figure = experiment.figure(results, tmp_path)
    assert figure is not None and figure.startswith(PNG) and experiment.figure({}, tmp_path) is None


def test_caltech(monkeypatch, tmp_path):
    small = {
        "n_atoms": [4, 5, 3], "atom_sizes": [[5, 5], [3, 3], [2, 2]], "pooling": [[2, 2], [2, 2]],
        "sweeps": 5, "n_training": 8,
    }  # fmt: skip
    monkeypatch.setattr(caltech101_features, "FIT", caltech101_features.FIT | small)
    monkeypatch.setattr(caltech101_features, "COUNTS", (6, 8))
    monkeypatch.setattr(caltech101_features, "SIDE", 20)
    X, y = strokes(24, 26, 0)
    pictures = []
    for n, (image, label) in enumerate(zip(X, y)):
        path = tmp_path / f"{n:02d}.png"
        data.write(path, np.stack([image] * 3, axis=-1) if n % 3 else image, dtype="uint8")
        pictures.append((path, f"class{label}"))
    experiment = registry.get("caltech101-features")
    context = Context(tmp_path, 1, load=lambda name: pictures)
    cells = [cell for cell in experiment.cells(False, 1) if cell.options["model"] == "ckfa"]
    results = {cell.key: experiment.run(cell, context) for cell in cells}
    json.dumps(results, allow_nan=False)
    assert set(results) == {"ckfa-train6-seed1", "ckfa-train8-seed1"}
    assert all(0.0 <= run[f"accuracy_{layer}"] <= 100.0 for run in results.values() for layer in (1, 2, 3))
    assert results["ckfa-train6-seed1"]["tested"] == 12 and len(list(tmp_path.glob("deep-*.npz"))) == 1
    (table,) = experiment.tables(results)
    rows = {row[0]: row for row in table.rows}
    assert [score.paper for score in rows["CKFA, layer 3"][2:]] == [61.2, 69.9]
    assert rows["CFA, layer 1"][2].ours is None
    figure = experiment.figure(results, tmp_path)
    assert figure is not None and figure.startswith(PNG)
