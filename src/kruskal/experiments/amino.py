"""The amino table: fluorescence of five samples from a tenth of its entries."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import corrupt
from kruskal.experiments.cells import Cell, Context, percent
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, draw_gallery, grey, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.presets import MGP_CP, MODELS, SETTINGS, mgp_cp_options, options_for
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

KEEP = 0.1
PATCH = (5, 50, 4)
METHODS = (*MODELS, MGP_CP)
KNOWN = "kfa-known"
"""KFA with atoms that were learned from the complete array, a bound."""
KNOWN_PATCH = (5, 12, 12)
"""What the rules of `kruskal.defaults` take for a tenth of such an array."""
N_ATOMS, RANK = 256, 20
PAPER = {
    "sbtd": (0.026, 45.40),
    "mgp-cp": (0.02542, 45.60),
    "bpfa": (0.02752, 44.91),
    "kfa": (0.01099, 52.88),
}
"""RRSE and PSNR by method; sBTD's RRSE has three decimals in the paper."""
_SCALE = 2


class Amino:
    """RRSE and PSNR of the amino data (5x201x61)."""

    name = "amino"
    title = "Amino acids, three-way"
    what = "Amino acids (5x201x61) from 10 % of the entries: RRSE and PSNR, KFA, BPFA and MGP-CP"
    datasets = ("amino",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """All models in both settings, and the bound; a quick run has the default setting only."""
        return [
            _cell(setting, model, seed)
            for seed in range(1, (seeds or 1) + 1)
            for setting, models in (("default", (*METHODS, KNOWN)), ("paper", METHODS))
            for model in models
            if not quick or setting == "default"
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """RRSE over all entries, PSNR with the largest entry as peak; nothing is clipped."""
        keep, seed = cell.options["keep"], cell.options["seed"]
        truth = context.load("amino").values
        peak, options = float(truth.max()), cell.options["inpaint"]
        if "learn" in cell.options:
            options = options | {"dictionary": _learned(truth, cell.options["learn"], seed, context)}
        measures, restoration = restore_and_score(truth, options, context, keep=keep, seed=seed, peak=peak)
        seen = corrupt(truth, keep=keep, seed=seed).values
        keep_arrays(context.folder, cell.key, truth=truth, seen=seen, mean=restoration.mean)
        return measures | {"peak": peak}

    def tables(self, results: Results) -> list[Table]:
        """One table per setting that has any cell."""
        tables = []
        for setting in SETTINGS:
            runs = [run for model in (*METHODS, KNOWN) for run in over_seeds(results, _name(setting, model))]
            if runs:
                bound = over_seeds(results, _name(setting, KNOWN))
                methods = [*PAPER, KNOWN] if bound else [*PAPER]
                measures = (("RRSE", "rrse", 5), ("PSNR", "psnr", 2))
                rows = [
                    *(_row(results, setting, methods, *row) for row in measures),
                    _ranks(results, setting, methods),
                ]
                notes = [
                    "over all entries, observed or not; PSNR in dB with the peak max(X) = "
                    f"{runs[0]['peak']:.3f}; kruskal has no sBTD, it is for reference",
                    "MGP-CP decomposes the whole array; its rank is that of most of the kept draws",
                    *run_notes(runs),
                ]
                if bound:
                    notes.append("known atoms: KFA with atoms that were learned from the complete array")
                title = f"Amino acids, {percent(KEEP)} % of the entries, {setting} setting"
                columns = ("", *(_label(method) for method in methods))
                tables.append(Table(title, columns, rows, notes, unit=None))
        return tables

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """The five samples: the truth, what is observed, and each restoration of the first seed."""
        rows: list[list[Tile | None]] = []
        for setting, model in product(SETTINGS, METHODS):
            key = f"{_name(setting, model)}-seed1"
            arrays = read_arrays(folder, key) if key in results else None
            if arrays is None:
                continue
            truth = arrays["truth"]
            high = float(truth.max())
            if not rows:
                rows = [_tiles("all entries", truth, high), _tiles("observed", arrays["seen"], high)]
            words = f"{model.upper()}, {setting}"
            rows.append(_tiles(words, arrays["mean"], high))
            rows.append(_tiles(f"{words}: 10 · |error|", 10 * np.abs(arrays["mean"] - truth), high))
        subtitle = "emission (across) by excitation (down) of the five samples; white is max(X)"
        return draw_gallery(self.title, subtitle, rows) if rows else None


EXPERIMENT: Experiment = Amino()


def _cell(setting: str, model: str, seed: int) -> Cell:
    options: dict[str, Any] = {"setting": setting, "keep": KEEP, "seed": seed}
    if model == MGP_CP:
        options["inpaint"] = mgp_cp_options(setting)
    elif model == KNOWN:
        options |= {"learn": {"patch_shape": list(KNOWN_PATCH)}, "inpaint": {}}
    else:
        options["inpaint"] = options_for(
            setting, model, patch_shape=PATCH, n_atoms=N_ATOMS, rank=RANK, stride=1
        )
    return Cell(f"{_name(setting, model)}-seed{seed}", options)


def _name(setting: str, model: str) -> str:
    return f"{model}-{setting}-keep{percent(KEEP)}"


def _learned(truth: np.ndarray, options: dict[str, Any], seed: int, context: Context) -> Any:
    """A dictionary of the complete array."""
    from kruskal.learning import learn

    return learn([truth], seed=seed, threads=context.threads, progress=context.progress, **options)


def _row(
    results: Results, setting: str, methods: list[str], label: str, measure: str, digits: int
) -> tuple[str | Score, ...]:
    place = 0 if measure == "rrse" else 1
    scores = []
    for method in methods:
        paper = PAPER[method][place] if method in PAPER else None
        scores.append(score_of(results, _name(setting, method), paper, measure=measure, digits=digits))
    return (label, *scores)


def _ranks(results: Results, setting: str, methods: list[str]) -> tuple[str | None, ...]:
    """The inferred ranks of MGP-CP, seed by seed."""
    runs = over_seeds(results, _name(setting, MGP_CP))
    found = ", ".join(str(run["rank"]) for run in runs if "rank" in run)
    return ("rank", *(found or None if method == MGP_CP else None for method in methods))


def _label(method: str) -> str:
    return {"sbtd": "sBTD", KNOWN: "known atoms"}.get(method, method.upper())


def _tiles(words: str, values: np.ndarray, high: float) -> list[Tile | None]:
    """One tile per sample, (61, 201) entries each, so that the long axis lies across."""
    return [
        Tile(f"{words}, sample {number}", grey(sample.T, 0.0, high, _SCALE))
        for number, sample in enumerate(values, 1)
    ]
