"""mnist and mnist-size: the right cells, on small digits, beside the paper's numbers."""

import json

import numpy as np
import pytest

from kruskal.data.datasets import Mnist
from kruskal.experiments import mnist, mnist_size, registry
from kruskal.experiments.cells import Context

MINE = ("mnist", "mnist-size")
SHORT = {"n_atoms": (3, 4), "atom_sizes": (8, 3), "pooling": (2,), "epochs": 1, "least_steps": 0}


def small_mnist():
    """Forty images of 12x12 bytes for training, twenty for tests, in two classes."""
    random = np.random.default_rng(0)

    def some(n):
        return random.integers(0, 256, (n, 12, 12), np.uint8), np.arange(n, dtype=np.uint8) % 2

    return Mnist(*some(40), *some(20))


def context(folder):
    return Context(folder, threads=1, load=lambda name: small_mnist())


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("seeds", [None, 3])
def test_quick_cells_are_among_the_others(name, seeds):
    experiment = registry.get(name)
    everything = {cell.key: cell for cell in experiment.cells(False, seeds)}
    quick = experiment.cells(True, seeds)
    assert 0 < len(quick) < len(everything) and experiment.name == name
    assert all(everything[cell.key] == cell for cell in quick)
    for cell in everything.values():
        assert json.loads(json.dumps(cell.options)) == cell.options
        assert cell.key.endswith(f"-seed{cell.options['seed']}")


@pytest.mark.parametrize("name", MINE)
def test_nothing_is_shown_of_nothing(name, tmp_path):
    experiment = registry.get(name)
    assert experiment.figure({}, tmp_path) is None
    assert all(score.ours is None for table in experiment.tables({}) for score in table.scores())


@pytest.mark.parametrize("name", MINE)
def test_every_cell_has_a_place_in_a_table(name):
    experiment = registry.get(name)
    results = {}
    for place, cell in enumerate(experiment.cells(False, 1)):
        measures = ("error_top", "error_both") if "labels" in cell.options else ("error",)
        measures = () if "unlabelled" in cell.options else measures
        found = {measure: 100.0 + place + 0.5 * i for i, measure in enumerate(measures)}
        results[cell.key] = found | {"n_dictionary_parameters": 7, "atoms": [3, 4], "parameters": 7}
    shown = {score.ours for table in experiment.tables(results) for score in table.scores()}
    wanted = {value for found in results.values() for name, value in found.items() if "error" in name}
    assert wanted <= shown


def test_supervised_cells_are_what_saved_ones_hold():
    keys = {cell.key: cell.options for cell in mnist.EXPERIMENT.cells(False, None)}
    assert keys["dgdn-seed1"] == {"model": {"atoms": "gaussian", **mnist.LARGE}, "seed": 1}
    assert {f"kruskal-dgdn-r8-generative-seed{seed}" for seed in (1, 2, 3)} <= set(keys)


def test_the_papers_numbers():
    scores = {row[0]: row[1] for row in mnist.EXPERIMENT.tables({})[0].rows}
    assert scores["DGDN, free atoms"].paper == 0.37
    assert scores["Kruskal DGDN, R = 1"].paper == 0.35
    assert scores["35-CNN committee"].paper == 0.23


def test_a_run_of_each_kind(monkeypatch, tmp_path):
    from kruskal.estimators import deep_generative

    fit = deep_generative.DGDN

    def short(**options):
        return fit(**(SHORT | {name: options[name] for name in options if name not in SHORT}))

    monkeypatch.setattr(deep_generative, "DGDN", short)
    results = {}
    for key in ("dgdn-seed1", "kruskal-dgdn-r1-generative-seed1", "kruskal-dgdn-r8-generative-seed1"):
        cell = next(cell for cell in mnist.EXPERIMENT.cells(False, 1) if cell.key == key)
        results[key] = mnist.EXPERIMENT.run(cell, context(tmp_path))
        assert 0.0 <= results[key]["error"] <= 100.0
    assert "residual" in results[key] and json.dumps(results)
    for key in ("kruskal-dgdn-r6-unlabelled-seed1", "kruskal-dgdn-r1-unlabelled-seed1"):
        cell = next(cell for cell in mnist.EXPERIMENT.cells(False, 1) if cell.key == key)
        unlabelled = mnist.EXPERIMENT.run(cell, context(tmp_path))
        assert unlabelled["residual"] > 0.0 and "error" not in unlabelled
    assert mnist.EXPERIMENT.figure(results, tmp_path).startswith(b"\x89PNG")
    cell = mnist_size.EXPERIMENT.cells(True, 1)[0]
    small = cell._replace(options=cell.options | {"size": 20})
    found = mnist_size.EXPERIMENT.run(small, context(tmp_path))
    results = {cell.key: found}
    assert mnist_size.EXPERIMENT.figure(results, tmp_path).startswith(b"\x89PNG")


def test_draws_of_images():
    labels = np.repeat(np.arange(10), 60)
    chosen = mnist_size.draw_images(labels, 100, 1)
    assert (np.bincount(labels[chosen]) == 10).all() and len(set(chosen)) == 100
    assert (mnist_size.draw_images(labels, 100, 2) != chosen).any()
    assert set(chosen) <= set(mnist_size.draw_images(labels, 300, 1))  # larger draws hold the smaller
    assert (mnist_size.draw_images(labels, 600, 1) == np.arange(600)).all()
