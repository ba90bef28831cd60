"""The rows of Caltech 101 without labels: three layers of deep CFA or CKFA, a Bayesian SVM on each."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

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

SIDE = 64
"""Of the pictures that atoms are learned from."""
LARGE = 96
"""Of the pictures that the models which begin with these atoms see."""


class Features(NamedTuple):
    """Rows of features: label, rank of the atoms (0 is CFA), side of the pictures they are read from.

    Maps of layers 1 to 3 are pooled once more by such ``blocks``: 5x5, 3x3 and 4x4 places are left.
    """

    label: str
    rank: int
    side: int
    blocks: tuple[int, int, int]


ROWS = {
    "ckfa": Features("CKFA", 1, SIDE, (3, 2, 1)),
    "cfa": Features("CFA", 0, SIDE, (3, 2, 1)),
    "ckfa-large": Features(f"CKFA, side {LARGE}", 1, LARGE, (5, 4, 2)),
}
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
SVM = {"C": 0.03, "method": "stochastic", "tol": 1e-3, "max_passes": 30}
"""Settings were chosen in split 1 from a few tries: 10 training pictures of a class, seen on the other 5."""
_AT_ONCE = 256


def feature_cells(seed: int) -> list[Cell]:
    """All rows with both numbers of pictures, in one random split."""
    return [_cell(name, count, seed) for name in ROWS for count in COUNTS]


def run_features(cell: Cell, context: Context) -> dict[str, Any]:
    """Accuracy in percent of the features of every layer."""
    options, began = cell.options, time.perf_counter()
    pictures = context.load("caltech101")
    split = split_pictures(pictures, options["count"], options["seed"])
    model = split_model(context, pictures, split, options)
    inside, outside = (
        _features(model, pictures, part, options, context.threads) for part in (split.train, split.test)
    )
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


def learned_from(name: str, seed: int) -> dict[str, Any]:
    """What the options of a cell say of the layers that are learned without labels, see `split_model`."""
    return {"seed": seed, "rank": ROWS[name].rank, "learned_side": SIDE, "fit": FIT}


def split_model(
    context: Context, pictures: list[tuple[Path, str]], split: Split, options: Mapping[str, Any]
) -> Any:
    """The layers of a split, the same for 15 and 30 pictures of any side; ``options`` of a cell."""
    order = np.random.default_rng(options["seed"]).permutation(split.learned)
    chosen = np.sort(order[: options["fit"]["n_training"]])
    name = f"deep-{'ckfa' if options['rank'] else 'cfa'}-split{options['seed']}"
    images = read_pictures(pictures, chosen, options["learned_side"])
    return deep_model(context, name, options["rank"], options["fit"], images)


def feature_rows(results: Results) -> list[tuple[str | Score | None, ...]]:
    """A row per model and layer: label, atoms, numbers of the dictionaries, scores beside the paper's."""
    rows: list[tuple[str | Score | None, ...]] = []
    for name, row in ROWS.items():
        runs = [run for count in COUNTS for run in over_seeds(results, _key(name, count))]
        for layer in (1, 2, 3):
            paper = PAPER.get((name, layer), (None, None))
            scores = [
                score_of(results, _key(name, count), number, measure=f"accuracy_{layer}")
                for count, number in zip(COUNTS, paper)
            ]
            size = range_of([run["parameters"] for run in runs]) if runs and layer == 3 else None
            rows.append((f"{row.label}, layer {layer}", layer_ranges(runs, layer), size, *scores))
    return rows


def _key(name: str, count: int) -> str:
    return f"{name}-train{count}"


def _cell(name: str, count: int, seed: int) -> Cell:
    row = ROWS[name]
    options = {
        **learned_from(name, seed), "count": count, "side": row.side, "blocks": list(row.blocks), "svm": SVM,
    }  # fmt: skip
    return Cell(f"{_key(name, count)}-seed{seed}", options)


def _features(
    model: Any, pictures: list[tuple[Path, str]], part: np.ndarray, options: Mapping[str, Any],
    threads: int | None,
) -> list[np.ndarray]:  # fmt: skip
    """Features of every layer of some of the pictures, a few hundred of which are in memory at once."""
    chunks = []
    for i in range(0, len(part), _AT_ONCE):
        images = read_pictures(pictures, part[i : i + _AT_ONCE], options["side"])
        chunks.append(pooled_features(model, images, options["blocks"], threads))
    return [np.concatenate(parts) for parts in zip(*chunks)]
