"""The Caltech 101 table by the protocol of the paper: CKFA and CFA without labels, DGDN and Kruskal DGDN."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.experiments.caltech101_features import FIT, feature_cells, feature_rows, run_features
from kruskal.experiments.caltech101_pictures import COUNTS, layer_atoms, read_pictures, split_pictures
from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, atom_mosaic, draw_gallery, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

SPLITS = 3
SIDE = 64
SCALE = 0.15
"""Standard deviation that the pictures are given: the noise of pretraining is set for pictures in [0, 1]."""


class Row(NamedTuple):
    """A supervised row: its label, the options of `kruskal.DGDN` but for the seed, the paper's accuracies."""

    label: str
    options: Mapping[str, Any]
    paper: tuple[float | None, float | None] = (None, None)


COMMON: dict[str, Any] = {
    "n_atoms": [64, 125, 128], "atom_sizes": [8, 5, 3], "pooling": [4, 2], "epochs": 30, "batch_size": 50,
    "cells": "drawn", "sharpness": 1.0, "dropout": 0.5,
}  # fmt: skip
ROWS = {
    "dgdn": Row("DGDN", {"atoms": "gaussian", **COMMON}, (75.4, 87.8)),
    "kruskal-dgdn-r1": Row("Kruskal DGDN, R = 1", {"atoms": "kruskal", "rank": 1, **COMMON}, (76.1, 88.3)),
    "kruskal-dgdn-r4": Row("Kruskal DGDN, R = 4", {"atoms": "kruskal", "rank": 4, **COMMON}),
}
QUICK = ("ckfa-train15-seed1", "kruskal-dgdn-r1-train15-seed1")


class Caltech101:
    """Accuracy of features learned without labels, and of models that are learned with them."""

    name = "caltech101"
    title = "Caltech 101, with labels and without"
    what = "Caltech 101: CKFA and CFA without labels by layer, DGDN and Kruskal DGDN, 15 and 30 per class"
    datasets = ("caltech101",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Split by split; a quick run has CKFA and Kruskal DGDN with 15 pictures per class, one split."""
        splits = range(1, (1 if quick else seeds or SPLITS) + 1)
        cells = [cell for seed in splits for cell in [*feature_cells(seed), *_supervised_cells(seed)]]
        return [cell for cell in cells if not quick or cell.key in QUICK]

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


def with_mirrored(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (n, rows, columns, channels) and their labels, then the same with left and right exchanged."""
    return np.concatenate([images, images[:, :, ::-1]]), np.concatenate([labels, labels])


def _supervised_cells(seed: int) -> list[Cell]:
    return [
        Cell(
            f"{name}-train{count}-seed{seed}",
            {"seed": seed, "model": dict(row.options), "count": count, "side": SIDE, "scale": SCALE},
        )
        for name, row in ROWS.items()
        for count in COUNTS
    ]


def _run_supervised(cell: Cell, context: Context) -> dict[str, Any]:
    """Training pictures are also mirrored; a test picture and its mirrored one decide together."""
    from kruskal.estimators.deep_generative import DGDN

    options, began = cell.options, time.perf_counter()
    pictures = context.load("caltech101")
    split = split_pictures(pictures, options["count"], options["seed"])
    images, test = (read_pictures(pictures, part, options["side"]) for part in (split.train, split.test))
    unit = np.float32(options["scale"] / images.std())
    model = DGDN(
        **options["model"], seed=options["seed"], threads=context.threads, progress=context.progress
    ).fit(*with_mirrored(unit * images, split.labels[split.train]))
    decisions = np.stack([model.decision_function(unit * view) for view in (test, test[:, :, ::-1])]).sum(0)
    right = model.classes_[decisions.argmax(axis=1)] == split.labels[split.test]
    keep_arrays(context.folder, cell.key, **layer_atoms(model, (1, 2)))
    return {
        "accuracy": 100.0 * float(right.mean()),
        "training_error": 100.0 * float(model.trace_["training_error"][-1]),
        "atoms": list(options["model"]["n_atoms"]),
        "parameters": model.n_dictionary_parameters_,
        "tested": len(split.test),
        "seconds": time.perf_counter() - began,
    }


def _row(results: Results, name: str) -> tuple[str | Score | None, ...]:
    """A supervised row of the table."""
    row = ROWS[name]
    runs = [run for count in COUNTS for run in over_seeds(results, f"{name}-train{count}")]
    scores = [
        score_of(results, f"{name}-train{count}", number, measure="accuracy")
        for count, number in zip(COUNTS, row.paper)
    ]
    atoms = "+".join(map(str, row.options["n_atoms"]))
    return row.label, atoms, f"{runs[0]['parameters']:,}" if runs else None, *scores
