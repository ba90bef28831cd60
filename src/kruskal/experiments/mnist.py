"""The MNIST tables: DGDN and Kruskal DGDN with all 60,000 training images, and features without labels."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, draw_gallery, keep_arrays
from kruskal.experiments.mnist_features import feature_atoms, feature_cells, feature_table, run_features
from kruskal.experiments.mnist_pictures import pictures_of, rows_of
from kruskal.experiments.notes import run_notes
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

SEEDS = 3
PAPER = {"dgdn": 0.37, "kruskal-dgdn-r1": 0.35}
"""Error in % of the paper's models of the same name."""
OTHERS = {"35-CNN committee": 0.23, "6-layer CNN": 0.35, "4-layer CNN": 0.37}
"""What the paper quotes of others."""
GENERATIVE: dict[str, Any] = {
    "generative": 2.5, "cells": "largest", "sharpness": 16.0, "epochs": 80, "dropout": 0.1,
}  # fmt: skip
"""Where images are to be reconstructed: drawn cells, which help to tell classes apart, would spoil them; and
two aims take longer than one, and need less chance to keep the model from fitting all images."""


class Row(NamedTuple):
    """A row of the table: label, options of `kruskal.DGDN` but for the seed, whether labels are seen."""

    label: str
    options: Mapping[str, Any]
    labels: bool = True


LARGE = {"epochs": 40, "cells": "drawn", "sharpness": 1.0, "dropout": 0.5}
"""For models that can fit all training images: chance keeps them from it."""
SMALL = {"epochs": 20, "pretrain": True, "dropout": 0.2}
"""For R = 1, which cannot; all settings were chosen with the last 10,000 training images left out."""
SMALL_GENERATIVE = GENERATIVE | {
    "generative": 0.5, "dropout": 0.0, "pretrain": False, "decide_on": [1, 2], "places": 3,
    "svm": "stochastic",
    "svm_options": {
        "C": 0.001, "standardize": True, "tol": 0.01, "max_passes": 20, "calibration_folds": 0,
    },
}  # fmt: skip
"""Of R = 1, which cannot do both well with its top weights alone: decisions see both layers. Atoms from Gibbs
sampling, good for telling classes apart, reconstruct worse than random ones in as many epochs."""
MODELS = {
    "dgdn": Row("DGDN, free atoms", {"atoms": "gaussian", **LARGE}),
    "kruskal-dgdn-r1": Row("Kruskal DGDN, R = 1", {"atoms": "kruskal", "rank": 1, **SMALL}),
    "kruskal-dgdn-r8": Row("Kruskal DGDN, R = 8", {"atoms": "kruskal", "rank": 8, **LARGE}),
}
QUARTER = {"kruskal-dgdn-r6": Row("Kruskal DGDN, R = 6", {"atoms": "kruskal", "rank": 6, **LARGE})}
"""A quarter of the numbers of free atoms."""


def _generative(name: str) -> dict[str, Any]:
    """What the generative rows of a model have for its own options."""
    return SMALL_GENERATIVE if name == "kruskal-dgdn-r1" else GENERATIVE


ROWS = (
    MODELS
    | {
        f"{name}-generative": Row(f"{row.label}, generative", {**row.options, **_generative(name)})
        for name, row in MODELS.items()
    }
    | {
        f"{name}-unlabelled": Row(f"{row.label}, no labels", {**row.options, **_generative(name)}, False)
        for name, row in (MODELS | QUARTER).items()
    }
)
QUICK = ("kruskal-dgdn-r1",)


class Mnist:
    """Test error of single models, without augmentation."""

    name = "mnist"
    title = "MNIST, with labels and without"
    what = "MNIST: DGDN and Kruskal DGDN on all images, deep CFA and CKFA without labels and a Bayesian SVM"
    datasets = ("mnist",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Every supervised model for every seed, then those without labels; a quick run has one of each."""
        n_seeds = seeds or (1 if quick else SEEDS)
        names = QUICK if quick else tuple(ROWS)
        supervised = [
            Cell(
                f"{name}-seed{seed}",
                {"model": dict(ROWS[name].options), "seed": seed, **_no_labels(ROWS[name])},
            )
            for seed in range(1, n_seeds + 1)
            for name in names
        ]
        return supervised + feature_cells(quick, seeds)

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """Error in % on the 10,000 test images, which select nothing."""
        if "labels" in cell.options:
            return run_features(cell, context)
        data = context.load("mnist")
        labels = None if "unlabelled" in cell.options else data.train_labels
        model, found = train_and_test(
            data.train_images, labels, data.test_images, data.test_labels, cell.options, context
        )
        if model.generative:
            keep_arrays(context.folder, cell.key, **pictures_of(model, data.test_images))
        return found

    def tables(self, results: Results) -> list[Table]:
        """Errors beside the paper's, with the size of the dictionaries and the time; features apart."""
        rows: list[list[str | Score | None]] = []
        runs: list[Mapping[str, Any]] = []
        for name, row in ROWS.items():
            found = over_seeds(results, name)
            runs += found
            residual = score_of(results, name, measure="residual", digits=3)
            rows.append(
                [
                    row.label,
                    score_of(results, name, PAPER.get(name), measure="error"),
                    f"{found[0]['n_dictionary_parameters']:,}" if found else None,
                    f"{residual.ours:.3f}" if residual.ours is not None else None,
                ]
            )
        rows += [[label, Score(None, error), None, None] for label, error in OTHERS.items()]
        notes = [
            "dictionary: numbers that the atoms are made of",
            "residual: squared residual of reconstructed test images over their square",
            "R = 1, generative: decisions of a Bayesian SVM on both layers, all others on the top weights",
            "the rows without ours are others', as the paper quotes them",
            *run_notes(runs),
        ]
        columns = ("", "error", "dictionary", "residual")
        return [Table("MNIST: test error in %", columns, rows, notes, unit=None), feature_table(results)]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """Atoms of each layer, samples, reconstructed and completed digits of the generative models."""
        rows: list[list[Tile | None]] = []
        for name, row in ROWS.items():
            if f"{name}-seed1" in results and "generative" in row.options:
                rows += rows_of(folder, f"{name}-seed1", row.label)
        rows += feature_atoms(results, folder)
        subtitle = (
            "atoms are scaled each on their own, grey is zero; completed: half of the pixels were missing"
        )
        return draw_gallery(self.title, subtitle, rows) if rows else None


EXPERIMENT: Experiment = Mnist()


def _no_labels(row: Row) -> dict[str, bool]:
    """What the options of a cell say of a row without labels."""
    return {} if row.labels else {"unlabelled": True}


def train_and_test(
    images: np.ndarray,
    labels: np.ndarray | None,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    options: Mapping[str, Any],
    context: Context,
) -> tuple[Any, dict[str, Any]]:
    """Fit one model of the options ``model`` and ``seed``; the model, and its measures as plain values."""
    from kruskal.estimators.deep_generative import DGDN

    model = DGDN(
        **options["model"], seed=options["seed"], threads=context.threads, progress=context.progress
    ).fit(images, labels)
    found: dict[str, Any] = {
        "n_dictionary_parameters": model.n_dictionary_parameters_,
        "seconds": model.seconds_,
    }
    if labels is not None:
        began = time.perf_counter()
        wrong = model.predict(test_images) != test_labels
        found["test_seconds"] = time.perf_counter() - began
        found["error"] = 100.0 * float(wrong.mean())
        found["training_error"] = 100.0 * float(model.trace_["training_error"][-1])
    if model.generative:
        truth = test_images.astype(np.float32) / 255
        rest = model.reconstruct(test_images) - truth
        found["residual"] = float((rest**2).sum() / (truth**2).sum())
    return model, found
