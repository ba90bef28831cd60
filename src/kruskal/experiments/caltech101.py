"""The Caltech 101 table by the protocol of the paper: CKFA and CFA without labels, DGDN and Kruskal DGDN."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kruskal.experiments.caltech101_features import (
    FIT,
    LARGE,
    SIDE,
    feature_cells,
    feature_rows,
    learned_from,
    run_features,
    split_model,
)
from kruskal.experiments.caltech101_pictures import COUNTS, layer_atoms, read_pictures, split_pictures
from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.deep_cells import pooled_maps
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, atom_mosaic, draw_gallery, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.tables import Score, Table, layer_ranges, over_seeds, range_of, score_of

SPLITS = 3


class Row(NamedTuple):
    """A supervised row.

    Attributes
    ----------
    label : as in the table;  options : of `kruskal.DGDN`, but for the seed;  paper : its accuracies
    below : which of the layers that were learned without labels stays as it is, and how its maps are pooled
    starts : whether the model begins with the atoms of layers that were learned without labels
    side : of the pictures
    """

    label: str
    options: Mapping[str, Any]
    paper: tuple[float | None, float | None] = (None, None)
    below: Mapping[str, Any] = MappingProxyType({})
    starts: bool = False
    side: int = SIDE


WHOLE: dict[str, Any] = {
    "n_atoms": [64, 125, 128], "atom_sizes": [8, 5, 3], "pooling": [4, 2], "epochs": 12, "batch_size": 50,
    "least_steps": 0, "averaging": 0.99, "dropout": 0.5, "cells": "drawn", "sharpness": 1.0, "chains": 3,
}  # fmt: skip
"""All layers are trained: numbers of atoms and pooling of the paper, pictures and atoms half as large."""
TOP: dict[str, Any] = {
    "atoms": "gaussian", "n_atoms": [256], "atom_sizes": [1], "pooling": [], "epochs": 30, "batch_size": 50,
    "least_steps": 0, "warm_up": 50, "averaging": 0.99, "learning_rate": 0.001, "weight_decay": 0.03,
    "dropout": 0.5, "svm": "stochastic",
    "svm_options": {"C": 0.03, "calibration_folds": 0, "max_passes": 30},
}  # fmt: skip
"""Only the third layer is trained, on pooled maps of 3x3 places: atoms have one place."""
BELOW = {"layer": 2, "block": 2}
STARTED: dict[str, Any] = {
    "atoms": "kruskal", "rank": 1, "epochs": 2, "batch_size": 50, "least_steps": 0, "warm_up": 10,
    "averaging": 0.9, "learning_rate": 0.003, "dropout": 0.5, "decide_on": [2, 3], "places": 3,
    "shift": 6, "copies": "apart", "svm": "stochastic",
    "svm_options": {
        "C": 0.0002, "standardize": True, "tol": 0.01, "max_passes": 30, "calibration_folds": 0,
    },
}  # fmt: skip
"""All layers begin with the atoms of CKFA; decisions see layers 2 and 3 at 3x3 places, and shifted copies,
each of which is an item for the support vector machine."""
ROWS = {
    "dgdn": Row("DGDN", {"atoms": "gaussian", **WHOLE}, (75.4, 87.8)),
    "kruskal-dgdn-r1": Row("Kruskal DGDN, R = 1", {"atoms": "kruskal", "rank": 1, **WHOLE}, (76.1, 88.3)),
    "kruskal-dgdn-r4": Row("Kruskal DGDN, R = 4", {"atoms": "kruskal", "rank": 4, **WHOLE}),
    "dgdn-on-ckfa": Row("DGDN, layer 3 on CKFA", TOP, below=BELOW),
    "kruskal-dgdn-from-ckfa": Row(
        f"Kruskal DGDN, R = 1, from CKFA, side {LARGE}", STARTED, starts=True, side=LARGE
    ),
    "from-ckfa-untrained": Row(
        "the same without training: CKFA, layers 2 + 3", STARTED | {"epochs": 0}, starts=True, side=LARGE
    ),
}
"""Settings were chosen as those of `kruskal.experiments.caltech101_features`."""
QUICK = ("ckfa-train15", "kruskal-dgdn-r1-train15")


class Caltech101:
    """Accuracy of features learned without labels, and of models that are learned with them."""

    name = "caltech101"
    title = "Caltech 101, with labels and without"
    what = "Caltech 101: CKFA and CFA without labels by layer, DGDN and Kruskal DGDN, 15 and 30 per class"
    datasets = ("caltech101",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Split by split; a quick run has CKFA and Kruskal DGDN with 15 pictures per class, one split."""
        splits = range(1, (seeds or (1 if quick else SPLITS)) + 1)
        cells = [cell for seed in splits for cell in [*feature_cells(seed), *_supervised_cells(seed)]]
        return [cell for cell in cells if not quick or cell.key.rsplit("-", 1)[0] in QUICK]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """Accuracy in percent, up to 50 test pictures of each class."""
        return (_run_supervised if "model" in cell.options else run_features)(cell, context)

    def tables(self, results: Results) -> list[Table]:
        """A row per model and layer beside the paper's."""
        rows = [*feature_rows(results), *(_row(results, name) for name in ROWS)]
        columns = ("", "atoms", "dictionary", *(f"{count} images" for count in COUNTS))
        notes = [
            "dictionary: numbers that the atoms of all layers are made of",
            f"without labels: atoms are learned from {FIT['n_training']} training pictures, one bottom-up "
            "pass, Bayesian SVM",
            "from CKFA: training begins with its atoms; decisions on layers 2 and 3 and shifted copies",
            "layer 3 on CKFA: layers 1 and 2 are those without labels, only layer 3 learns from labels",
            "the paper also has HBP-CFA: 53.6/62.5, both layers 58.0/65.7",
            *run_notes(results.values()),
        ]
        return [Table("Caltech 101: accuracy in %", columns, rows, notes, unit="%")]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """Atoms of the first two layers in pixels, of every model that is there."""
        rows: list[list[Tile | None]] = []
        labels = {"ckfa": "CKFA", "cfa": "CFA"} | {name: row.label for name, row in ROWS.items()}
        for name, label in labels.items():
            keys = [key for key in results if key.startswith(f"{name}-train")]
            arrays = read_arrays(folder, keys[0]) if keys else None
            if arrays is not None:
                rows.append(
                    [Tile(f"{label}, layer {i}", atom_mosaic(arrays[f"layer{i}"], 1)) for i in (1, 2)]
                )
        return draw_gallery(self.title, "atoms in pixels, each scaled on its own", rows) if rows else None


EXPERIMENT: Experiment = Caltech101()


def _supervised_cells(seed: int) -> list[Cell]:
    return [
        Cell(
            f"{name}-train{count}-seed{seed}",
            {
                "seed": seed,
                "model": dict(row.options),
                "count": count,
                "side": row.side,
                **(learned_from("ckfa", seed) if row.below or row.starts else {}),
                **row.below,
            },
        )
        for name, row in ROWS.items()
        for count in COUNTS
    ]


def _run_supervised(cell: Cell, context: Context) -> dict[str, Any]:
    """Accuracy of a model that learns from the labels."""
    from kruskal.estimators.deep_generative import DGDN

    options, began = cell.options, time.perf_counter()
    pictures = context.load("caltech101")
    split = split_pictures(pictures, options["count"], options["seed"])
    known = split_model(context, pictures, split, options) if "fit" in options else None
    below, start = (known, None) if "layer" in options else (None, known)
    images, asked = (
        _seen(below, read_pictures(pictures, part, options["side"]), options)
        for part in (split.train, split.test)
    )
    model = DGDN(
        **options["model"],
        start=start,
        seed=options["seed"],
        threads=context.threads,
        progress=context.progress,
    ).fit(images, split.labels[split.train])
    right = model.predict(asked) == split.labels[split.test]
    kept = [] if below is None else below.layers_[: options["layer"]]
    if below is None:
        keep_arrays(context.folder, cell.key, **layer_atoms(model, (1, 2)))
    errors: Any = model.trace_.get("training_error", [])
    return {
        "accuracy": 100.0 * float(right.mean()),
        "training_error": 100.0 * float(errors[-1]) if len(errors) else None,
        "atoms": [*(layer.n_atoms for layer in kept), *(len(atoms) for atoms in model.atoms_)],
        "parameters": model.n_dictionary_parameters_ + sum(layer.n_parameters_ for layer in kept),
        "tested": len(split.test),
        "seconds": time.perf_counter() - began,
    }


def _seen(below: Any, images: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    """What the trained layers are given: the pictures, or the maps of a layer that was learned before."""
    return images if below is None else pooled_maps(below, images, options["layer"], options["block"])


def _row(results: Results, name: str) -> tuple[str | Score | None, ...]:
    """A supervised row of the table."""
    row = ROWS[name]
    runs = [run for count in COUNTS for run in over_seeds(results, f"{name}-train{count}")]
    scores = [
        score_of(results, f"{name}-train{count}", number, measure="accuracy")
        for count, number in zip(COUNTS, row.paper)
    ]
    size = range_of([run["parameters"] for run in runs]) if runs else None
    return row.label, layer_ranges(runs), size, *scores
