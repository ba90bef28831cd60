"""The part of the MNIST table without labels: two layers of deep CFA or CKFA, a Bayesian SVM on features."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.deep_cells import deep_model, svm_error
from kruskal.experiments.experiment import Results
from kruskal.experiments.gallery import Tile, atom_mosaic, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.tables import Table, layer_ranges, over_seeds, range_of, score_of
from kruskal.random import Stream, generator

MODELS = {"ckfa": 1, "cfa": 0}
"""Ranks by the name of the model; 0 is CFA."""
FEATURES = ("bottom-up", "gibbs")
SIZES = (100, 500, 1000, 5000, 60000)
DRAWS = 5
FIT: dict[str, Any] = {
    "n_atoms": [50, 200], "atom_sizes": [[8, 8], [6, 6]], "pooling": [[3, 3]], "sweeps": 25,
    "noise_precision": 5.0, "nonnegative": True, "n_training": 2000, "seed": 1,
}  # fmt: skip
SVM = {"method": "stochastic", "tol": 1e-3, "max_passes": 30}
COSTS = {"top": 0.03, "both": 0.01}
"""Of 0.01, 0.1 and 1, on the last 10,000 training images with the first 5,000 labels and CKFA: 0.01 was best
for both layers, and 0.1 for the top one, where 0.03 stands because the search ends nearer to its optimum."""
_TILES = 4


def feature_cells(quick: bool, seeds: int | None) -> list[Cell]:
    """Models, features and numbers of labels; a quick run has CKFA, one pass, 1,000 labels, one draw."""
    return [
        _cell(model, features, size, seed)
        for features in FEATURES
        for model in MODELS
        for size in SIZES
        for seed in range(1, (1 if size == max(SIZES) else seeds or (1 if quick else DRAWS)) + 1)
        if not quick or (model, features, size) == ("ckfa", "bottom-up", 1000)
    ]


def run_features(cell: Cell, context: Context) -> dict[str, Any]:
    """Errors on all 10,000 test images, in percent."""
    options, began = cell.options, time.perf_counter()
    mnist = context.load("mnist")
    name = f"deep-{options['model']}-{options['fit']['features']}"
    model = deep_model(context, name, MODELS[options["model"]], options["fit"], _unit(mnist.train_images))
    order = generator(options["seed"], Stream.DEEP_SPLIT, 0).permutation(len(mnist.train_labels))
    used = np.sort(order[: options["labels"]])
    labels = mnist.train_labels[used]
    train = model.transform(_unit(mnist.train_images[used]), [1, 2])
    test = model.transform(_unit(mnist.test_images), [1, 2])
    found: dict[str, Any] = {}
    for measure, first in (("top", model.n_features_[0]), ("both", 0)):
        svm = options["svm"] | {"C": options["costs"][measure]}
        found[f"error_{measure}"] = svm_error(
            train[:, first:], labels, test[:, first:], mnist.test_labels, svm, context.threads
        )
    atoms = {f"layer{layer}": model.pixel_atoms(layer)[..., 0].astype(np.float32) for layer in (1, 2)}
    keep_arrays(context.folder, cell.key, **atoms)
    return found | {
        "atoms": model.n_atoms_, "parameters": model.n_parameters_, "features": model.n_features_,
        "seconds": time.perf_counter() - began,
    }  # fmt: skip


def feature_table(results: Results) -> Table:
    """A row per model, kind of features and layers; a column per number of labels."""
    rows: list[tuple[Any, ...]] = []
    all_runs: list[Mapping[str, Any]] = []
    for features in FEATURES:
        for model in MODELS:
            runs = [run for size in SIZES for run in over_seeds(results, _name(model, features, size))]
            all_runs += runs
            size_text = range_of([run["parameters"] for run in runs]) if runs else None
            for measure, shown in (("top", "layer 2"), ("both", "layers 1+2")):
                scores = [
                    score_of(results, _name(model, features, size), measure=f"error_{measure}")
                    for size in SIZES
                ]
                label = f"deep {model.upper()}, {features}, {shown}"
                rows.append((label, layer_ranges(runs), size_text, *scores))
    columns = ("", "atoms", "parameters", *(f"{size:,}" for size in SIZES))
    notes = [
        f"test error in % by the number of labels; atoms are learned from {FIT['n_training']:,} training "
        "images without labels",
        *run_notes(all_runs),
    ]
    return Table("MNIST: features learned without labels, Bayesian SVM", columns, rows, notes, unit=None)


def feature_atoms(results: Results, folder: Path) -> list[list[Tile | None]]:
    """Rows of a gallery: atoms of both layers in pixels, of every model that is there."""
    rows: list[list[Tile | None]] = []
    for features in FEATURES:
        for model in MODELS:
            keys = [key for key in results if key.startswith(f"{model}-{features}-")]
            arrays = read_arrays(folder, keys[0]) if keys else None
            if arrays is not None:
                label = f"deep {model.upper()}, {features}"
                rows.append(
                    [
                        Tile(f"{label}, layer {i}", atom_mosaic(arrays[f"layer{i}"], _TILES // i))
                        for i in (1, 2)
                    ]
                )
    return rows


def _name(model: str, features: str, labels: int) -> str:
    return f"{model}-{features}-n{labels}"


def _cell(model: str, features: str, labels: int, seed: int) -> Cell:
    options = {
        "seed": seed, "model": model, "labels": labels, "fit": FIT | {"features": features}, "svm": SVM,
        "costs": COSTS,
    }  # fmt: skip
    return Cell(f"{_name(model, features, labels)}-seed{seed}", options)


def _unit(images: np.ndarray) -> np.ndarray:
    return images.astype(np.float32) / np.float32(255.0)
