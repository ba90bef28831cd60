"""MNIST with few training images: test error against their number."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.mnist import MODELS, train_and_test
from kruskal.experiments.notes import run_notes
from kruskal.experiments.plots import Curve, Panel, draw_curves
from kruskal.experiments.tables import Score, Table, over_seeds, score_of
from kruskal.random import Stream, generator
from kruskal.report.canvas import ACCENT, INK, SECOND

SIZES = (100, 500, 1_000, 5_000, 60_000)
QUICK_SIZES = (100, 1_000)
DRAWS = 5
COLOURS = {"dgdn": SECOND, "kruskal-dgdn-r1": ACCENT, "kruskal-dgdn-r8": INK}


class MnistSize:
    """Test error of models that are trained on a part of the training images."""

    name = "mnist-size"
    title = "MNIST, fewer and fewer training images"
    what = "MNIST: test error with 100, 500, 1,000, 5,000 and 60,000 training images, 5 draws"
    datasets = ("mnist",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """The shortest runs first; a quick run has two sizes and two draws."""
        sizes = QUICK_SIZES if quick else SIZES
        n_draws = seeds or (2 if quick else DRAWS)
        return [
            _cell(model, size, seed) for size, seed, model in product(sizes, range(1, n_draws + 1), MODELS)
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """Error in % on the 10,000 test images; images are drawn by the seed, as many of each class."""
        data = context.load("mnist")
        chosen = draw_images(data.train_labels, cell.options["size"], cell.options["seed"])
        return train_and_test(
            data.train_images[chosen], data.train_labels[chosen], data.test_images, data.test_labels,
            cell.options, context,
        )[1]  # fmt: skip

    def tables(self, results: Results) -> list[Table]:
        """Mean and standard deviation over the draws."""
        rows: list[list[str | Score | None]] = [
            [MODELS[model].label, *_scores(results, model)] for model in MODELS
        ]
        runs = [
            run for model, size in product(MODELS, SIZES) for run in over_seeds(results, _name(model, size))
        ]
        notes = [
            "images are drawn at random, as many of each class; the paper's figure has no numbers to quote",
            *run_notes(runs),
        ]
        columns = ("", *(f"{size:,}" for size in SIZES))
        return [
            Table("MNIST: test error in %, mean ± standard deviation over draws", columns, rows, notes, None)
        ]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """Error against the number of images, with bars of one standard deviation."""
        if not results:
            return None
        curves = []
        for model in MODELS:
            scores = _scores(results, model)
            errors, spread = [score.ours for score in scores], [score.spread for score in scores]
            curves.append(Curve(MODELS[model].label, SIZES, errors, spread, COLOURS[model]))
        names = [f"{size:,}" for size in SIZES]
        panel = Panel("Test error", "Training images", curves, True, SIZES, names)
        return draw_curves(
            self.title, "mean of the draws, single models, no augmentation", [panel], "Error in %"
        )


EXPERIMENT: Experiment = MnistSize()


def draw_images(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Indices of ``size`` images, equally many of each class as far as they go; all when size is all."""
    if size >= len(labels):
        return np.arange(len(labels))
    order = generator(seed, Stream.DEEP_ORDER, 2**40).permutation(len(labels))
    place = np.empty(len(labels), int)
    for one in np.unique(labels):
        members = order[labels[order] == one]
        place[members] = np.arange(len(members))
    # the first of every class, then the second of every class, and so on
    return np.sort(order[np.argsort(place[order], kind="stable")][:size])


def _cell(model: str, size: int, seed: int) -> Cell:
    options = {"model": dict(MODELS[model].options), "size": size, "seed": seed}
    return Cell(f"{_name(model, size)}-seed{seed}", options)


def _name(model: str, size: int) -> str:
    return f"{model}-size{size}"


def _scores(results: Results, model: str) -> list[Score]:
    return [score_of(results, _name(model, size), measure="error") for size in SIZES]
