"""The rows of Caltech 101 without labels: three layers of deep CFA or CKFA, a Bayesian SVM on each."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.experiments.caltech101_pictures import (
    COUNTS,
    Split,
    layer_atoms,
    read_pictures,
    split_pictures,
)
from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.deep_cells import deep_model, pooled_features, svm_error
from kruskal.experiments.experiment import Results
from kruskal.experiments.gallery import keep_arrays
from kruskal.experiments.tables import Score, layer_ranges, over_seeds, range_of, score_of

MODELS = {"ckfa": 1, "cfa": 0}
"""Ranks by the name of the model; 0 is CFA."""
SIDE = 64
PAPER = {
    ("ckfa", 1): (55.7, 63.2), ("ckfa", 2): (57.4, 64.5), ("ckfa", 3): (61.2, 69.9),
    ("cfa", 3): (43.24, 53.57),
}  # fmt: skip
"""Accuracy with 15 and 30 pictures of each class."""
FIT: dict[str, Any] = {
    "n_atoms": [64, 125, 128], "atom_sizes": [[8, 8], [5, 5], [3, 3]], "pooling": [[4, 4], [2, 2]],
    "sweeps": 12, "noise_precision": [4.0, 4.0, 12.0], "nonnegative": True, "n_training": 100, "seed": 1,
}  # fmt: skip
"""Numbers of atoms and pooling of the paper; pictures and atoms have half its 128 and 16, 9 and 5 pixels."""
BLOCKS = [3, 2, 1]
"""Maps of layers 1 to 3 are pooled once more by such blocks: 5x5, 3x3 and 4x4 places are left."""
SVM = {"C": 0.03, "method": "stochastic", "tol": 1e-3, "max_passes": 30}
"""Settings were chosen in split 1 from a few tries: 10 training pictures of a class, seen on the other 5."""
_AT_ONCE = 256


def feature_cells(seed: int) -> list[Cell]:
    """Both models with both numbers of pictures, in one random split."""
    return [_cell(model, count, seed) for model in MODELS for count in COUNTS]


def run_features(cell: Cell, context: Context) -> dict[str, Any]:
    """Accuracy in percent of the features of every layer."""
    options, began = cell.options, time.perf_counter()
    pictures = context.load("caltech101")
    split = split_pictures(pictures, options["count"], options["seed"])
    model = split_model(context, pictures, split, options)
    inside, outside = (_features(model, pictures, part, options) for part in (split.train, split.test))
    found: dict[str, Any] = {}
    wanted = split.labels[split.test]
    for layer, (known, asked) in enumerate(zip(inside, outside), 1):
        error = svm_error(known, split.labels[split.train], asked, wanted, options["svm"], context.threads)
        found[f"accuracy_{layer}"] = 100.0 - error
    keep_arrays(context.folder, cell.key, **layer_atoms(model, (1, 2)))
    return found | {
        "atoms": model.n_atoms_, "parameters": model.n_parameters_, "tested": len(split.test),
        "seconds": time.perf_counter() - began,
    }  # fmt: skip


def split_model(context: Context, pictures: list[tuple[Path, str]], split: Split, options: Any) -> Any:
    """The layers of a split, the same for 15 and 30 pictures; ``options`` of a cell."""
    order = np.random.default_rng(options["seed"]).permutation(split.learned)
    chosen = np.sort(order[: options["fit"]["n_training"]])
    name = f"deep-{options['features']}-split{options['seed']}"
    images = read_pictures(pictures, chosen, options["side"])
    return deep_model(context, name, MODELS[options["features"]], options["fit"], images)


def feature_rows(results: Results) -> list[tuple[str | Score | None, ...]]:
    """A row per model and layer: label, atoms, numbers of the dictionaries, scores beside the paper's."""
    rows: list[tuple[str | Score | None, ...]] = []
    for model in MODELS:
        runs = [run for count in COUNTS for run in over_seeds(results, _name(model, count))]
        for layer in (1, 2, 3):
            paper = PAPER.get((model, layer), (None, None))
            scores = [
                score_of(results, _name(model, count), number, measure=f"accuracy_{layer}")
                for count, number in zip(COUNTS, paper)
            ]
            size = range_of([run["parameters"] for run in runs]) if runs and layer == 3 else None
            rows.append((f"{model.upper()}, layer {layer}", layer_ranges(runs, layer), size, *scores))
    return rows


def _name(model: str, count: int) -> str:
    return f"{model}-train{count}"


def _cell(model: str, count: int, seed: int) -> Cell:
    options = {
        "seed": seed, "features": model, "count": count, "side": SIDE, "blocks": BLOCKS, "fit": FIT,
        "svm": SVM,
    }  # fmt: skip
    return Cell(f"{_name(model, count)}-seed{seed}", options)


def _features(
    model: Any, pictures: list[tuple[Path, str]], part: np.ndarray, options: dict[str, Any]
) -> list[np.ndarray]:
    """Features of every layer of some of the pictures, a few hundred of which are in memory at once."""
    chunks = []
    for i in range(0, len(part), _AT_ONCE):
        images = read_pictures(pictures, part[i : i + _AT_ONCE], options["side"])
        chunks.append(pooled_features(model, images, options["blocks"]))
    return [np.concatenate(parts) for parts in zip(*chunks)]
