"""Caltech 101 by the protocol of the paper: three layers learned without labels, a Bayesian SVM on each."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.deep_cells import deep_model, pooled_features, svm_error
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, atom_mosaic, draw_gallery, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.tables import Table, over_seeds, score_of

MODELS = {"ckfa": 1, "cfa": 0}
COUNTS = (15, 30)
SPLITS = 3
SIDE = 128
PAPER = {
    ("ckfa", 1): (55.7, 63.2), ("ckfa", 2): (57.4, 64.5), ("ckfa", 3): (61.2, 69.9),
    ("cfa", 3): (43.24, 53.57),
}  # fmt: skip
"""Accuracy with 15 and 30 pictures of each class."""
FIT: dict[str, Any] = {
    "n_atoms": [64, 125, 128], "atom_sizes": [[16, 16], [9, 9], [5, 5]], "pooling": [[4, 4], [2, 2]],
    "sweeps": 12, "noise_precision": 1.0, "nonnegative": True, "n_training": 200, "seed": 1,
}  # fmt: skip
BLOCKS = [4, 2, 1]
"""Maps of layers 1 to 3 are pooled once more by such blocks: 8x8, 6x6 and 7x7 places are left."""
SVM = {"C": 0.03, "method": "em", "tol": 1e-3}
_AT_ONCE = 256


class CaltechFeatures:
    """Accuracy of the features of layers 1, 2 and 3."""

    name = "caltech101-features"
    title = "Caltech 101, features learned without labels"
    what = "Caltech 101: three layers of CKFA and CFA without labels, Bayesian SVM, 15 and 30 per class"
    datasets = ("caltech101",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Models and numbers of pictures by random split; a quick run has CKFA, 15 per class, one split."""
        return [
            _cell(model, count, seed)
            for seed in range(1, (1 if quick else seeds or SPLITS) + 1)
            for model in MODELS
            for count in COUNTS
            if not quick or (model, count) == ("ckfa", 15)
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """Accuracy in percent, up to 50 test pictures of each class."""
        from kruskal.data import split_by_class

        options, began = cell.options, time.perf_counter()
        pictures = context.load("caltech101")
        labels = np.array([label for _, label in pictures])
        # training pictures of 15 per class are among those of 30, and none of them is ever tested
        learned, _ = split_by_class(labels, min(COUNTS), seed=options["seed"])
        train, test = split_by_class(labels, options["count"], seed=options["seed"])
        order = np.random.default_rng(options["seed"]).permutation(learned)
        chosen = np.sort(order[: options["fit"]["n_training"]])
        name = f"deep-{options['model']}-split{options['seed']}"
        model = deep_model(
            context, name, MODELS[options["model"]], options["fit"], _read(pictures, chosen, options["side"])
        )
        inside, outside = (_features(model, pictures, part, options) for part in (train, test))
        found: dict[str, Any] = {}
        for layer, (known, asked) in enumerate(zip(inside, outside), 1):
            error = svm_error(known, labels[train], asked, labels[test], options["svm"], context.threads)
            found[f"accuracy_{layer}"] = 100.0 - error
        atoms = {f"layer{layer}": model.pixel_atoms(layer)[..., 0].astype(np.float32) for layer in (1, 2, 3)}
        keep_arrays(context.folder, cell.key, **atoms)
        return found | {
            "atoms": model.n_atoms_, "parameters": model.n_parameters_, "tested": len(test),
            "seconds": time.perf_counter() - began,
        }  # fmt: skip

    def tables(self, results: Results) -> list[Table]:
        """A row per model and layer beside the paper's."""
        rows: list[tuple[Any, ...]] = []
        for model in MODELS:
            for layer in (1, 2, 3):
                paper = PAPER.get((model, layer), (None, None))
                scores = [
                    score_of(results, _name(model, count), number, measure=f"accuracy_{layer}")
                    for count, number in zip(COUNTS, paper)
                ]
                runs = [run for count in COUNTS for run in over_seeds(results, _name(model, count))]
                atoms = "+".join(map(str, runs[0]["atoms"][:layer])) if runs else None
                rows.append((f"{model.upper()}, layer {layer}", atoms, *scores))
        columns = ("", "atoms", *(f"{count} images" for count in COUNTS))
        notes = [
            f"atoms are learned from {FIT['n_training']} pictures of the training set; one bottom-up pass",
            "the paper also has HBP-CFA (53.6/62.5, both layers 58.0/65.7), and supervised: DGDN 75.4/87.8, "
            "Kruskal DGDN 76.1/88.3",
            *run_notes(results.values()),
        ]
        return [Table("Caltech 101: accuracy in %", columns, rows, notes, unit="%")]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """Atoms of the first two layers in pixels, of every model that is there."""
        rows: list[list[Tile | None]] = []
        for model in MODELS:
            keys = [key for key in results if key.startswith(f"{model}-")]
            arrays = read_arrays(folder, keys[0]) if keys else None
            if arrays is not None:
                rows.append(
                    [Tile(f"{model.upper()}, layer {i}", atom_mosaic(arrays[f"layer{i}"], 1)) for i in (1, 2)]
                )
        return draw_gallery(self.title, "atoms in pixels, each scaled on its own", rows) if rows else None


EXPERIMENT: Experiment = CaltechFeatures()


def _name(model: str, count: int) -> str:
    return f"{model}-train{count}"


def _cell(model: str, count: int, seed: int) -> Cell:
    options = {
        "seed": seed, "model": model, "count": count, "side": SIDE, "blocks": BLOCKS, "fit": FIT, "svm": SVM,
    }  # fmt: skip
    return Cell(f"{_name(model, count)}-seed{seed}", options)


def _features(
    model: Any, pictures: list[tuple[Path, str]], part: np.ndarray, options: dict[str, Any]
) -> list[np.ndarray]:
    """Features of every layer of some of the pictures, a few hundred of which are in memory at once."""
    chunks = [
        pooled_features(model, _read(pictures, part[i : i + _AT_ONCE], options["side"]), options["blocks"])
        for i in range(0, len(part), _AT_ONCE)
    ]
    return [np.concatenate(parts) for parts in zip(*chunks)]


def _read(pictures: list[tuple[Path, str]], which: np.ndarray, side: int) -> np.ndarray:
    """Grey pictures (n, side, side, 1) with normalised local contrast."""
    from kruskal.data import normalize_contrast, resize
    from kruskal.data.labelled import read_picture, unit_range, with_channels

    made = [with_channels(unit_range(read_picture(pictures[i][0])), "grey") for i in which]
    return normalize_contrast(np.stack([resize(picture, side) for picture in made]))
