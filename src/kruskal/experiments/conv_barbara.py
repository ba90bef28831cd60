"""Convolutional inpainting of Barbara: CFA against CKFA, and how their filters look."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import corrupt
from kruskal.experiments.cells import Cell, Context, json_number
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, atom_mosaic, draw_gallery, grey, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.tables import Score, Table, over_seeds, score_of
from kruskal.models.kruskal_prior import PAPER_ALPHA

SIDE, ATOMS, KEEP, SWEEPS = 8, 64, 0.5, 150
MODELS = {"cfa": 0, "ckfa-rank1": 1, "ckfa-rank2": 2, "ckfa-rank4": 4}
"""Ranks by the name of the model; 0 is CFA."""
_SCALE = 4


class ConvBarbara:
    """PSNR of Barbara (256x256) with half of its pixels, as a sum of atoms at sparse places."""

    name = "conv-barbara"
    title = "Barbara, convolutional inpainting"
    what = "Barbara, half of the pixels: convolutional inpainting by CFA and CKFA (R = 1, 2, 4), and filters"
    datasets = ("barbara256",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Every model; a quick run has CFA and CKFA with R = 1."""
        return [
            _cell(model, seed)
            for seed in range(1, (seeds or 1) + 1)
            for model in MODELS
            if not quick or model in ("cfa", "ckfa-rank1")
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """PSNR over all pixels of the mean, and the number of parameters of the dictionary."""
        from kruskal.estimators.convolutional import CFA, CKFA
        from kruskal.report import psnr

        options, began = cell.options, time.perf_counter()
        truth = context.load("barbara256").values
        damaged = corrupt(truth, keep=options["keep"], noise=0.0, seed=options["seed"])
        common = options["fit"] | {
            "seed": options["seed"], "threads": context.threads, "progress": context.progress,
        }  # fmt: skip
        rank = options["rank"]
        model = CKFA(rank=rank, alpha_prior=PAPER_ALPHA, **common) if rank else CFA(**common)
        mean = model.fit_reconstruct(damaged.values[None], damaged.observed[None]).mean[0]
        order = np.argsort(-model.usage_, kind="stable")
        keep_arrays(
            context.folder, cell.key, mean=mean.astype(np.float32),
            atoms=model.dictionary_[order, :, :, 0].astype(np.float32),
        )  # fmt: skip
        return {
            "psnr": json_number(psnr(np.clip(mean, 0.0, 255.0), truth)),
            "parameters": model.n_parameters_,
            "noise_std": json_number(model.noise_std_),
            "active": float(model.trace_["active_per_image"][-1]),
            "seconds": time.perf_counter() - began,
        }

    def tables(self, results: Results) -> list[Table]:
        """One row per model, with its gain over CFA."""
        base = score_of(results, _name("cfa")).ours
        rows: list[tuple[str | Score | None, ...]] = []
        for model, rank in MODELS.items():
            score = score_of(results, _name(model))
            gain = None if base is None or score.ours is None else Score(score.ours - base)
            runs = over_seeds(results, _name(model))
            size = f"{runs[0]['parameters']:,}" if runs else None
            rows.append((_label(rank), size, score, gain))
        columns = ("", "parameters", "PSNR", "over CFA")
        notes = ["the paper has no such table", *run_notes(results.values())]
        title = f"Barbara, {100 * KEEP:g} % of the pixels, {ATOMS} atoms of {SIDE}x{SIDE}: PSNR in dB"
        return [Table(title, columns, rows, notes)]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """Filters and restored picture of every model, of the first seed."""
        filters: list[Tile | None] = []
        pictures: list[Tile | None] = []
        for model, rank in MODELS.items():
            key = f"{_name(model)}-seed1"
            arrays = read_arrays(folder, key) if key in results else None
            if arrays is not None:
                filters.append(Tile(f"{_label(rank)}, filters", atom_mosaic(arrays["atoms"], _SCALE)))
                caption = f"{_label(rank)}, {results[key]['psnr']:.2f} dB"
                pictures.append(Tile(caption, grey(arrays["mean"], 0.0, 255.0)))
        subtitle = "atoms, the most used first, each scaled on its own, grey is zero; the restored picture"
        return draw_gallery(self.title, subtitle, [filters, pictures]) if filters else None


EXPERIMENT: Experiment = ConvBarbara()


def _label(rank: int) -> str:
    return f"CKFA, R = {rank}" if rank else "CFA"


def _cell(model: str, seed: int) -> Cell:
    options = {
        "seed": seed,
        "keep": KEEP,
        "rank": MODELS[model],
        "fit": {"n_atoms": ATOMS, "atom_size": [SIDE, SIDE], "sweeps": SWEEPS},
    }
    return Cell(f"{_name(model)}-seed{seed}", options)


def _name(model: str) -> str:
    return f"{model}-keep{100 * KEEP:g}"
