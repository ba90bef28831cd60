"""The Barbara table: missing pixels and noise together, for KFA and BPFA, and the row of CDF-KFA."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from kruskal.experiments.cells import Cell, Context, percent
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.notes import run_notes
from kruskal.experiments.plots import ScoreMap, draw_differences
from kruskal.experiments.presets import CDF, MODELS, SETTINGS, options_for
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

NOISES = (0, 5, 10, 15, 20, 25)
KEEPS = (0.1, 0.2, 0.3, 0.5, 1.0)
QUICK = (
    *(("kfa", keep, noise) for noise in (0, 25) for keep in (0.2, 0.5, 1.0)),
    ("bpfa", 0.2, 0),
    ("bpfa", 1.0, 25),
)
"""The cells of a quick run, in the default setting."""

PAPER: dict[str, dict[int, tuple[float, ...]]] = {
    "bpfa": {
        0: (23.47, 26.87, 29.83, 35.60, 42.94),
        5: (23.34, 26.73, 29.27, 33.61, 37.70),
        10: (23.16, 26.07, 28.17, 31.17, 34.31),
        15: (22.66, 25.17, 26.82, 29.31, 32.14),
        20: (22.17, 24.27, 25.62, 27.90, 30.55),
        25: (21.68, 23.49, 24.72, 26.79, 29.30),
    },
    "kfa": {
        0: (24.24, 27.92, 30.90, 36.03, 50.43),
        5: (24.11, 27.43, 30.08, 33.51, 38.22),
        10: (23.51, 27.18, 28.54, 31.24, 34.44),
        15: (23.09, 25.43, 27.92, 29.36, 32.18),
        20: (22.47, 24.57, 26.09, 28.72, 30.71),
        25: (21.91, 23.96, 25.09, 27.02, 30.17),
    },
}
"""PSNR in dB by model and noise, for the shares of `KEEPS`."""
CDF_NOISES = (0, 5, 10, 15, 20)
CDF_PAPER = (23.51, 26.80, 27.92, 28.72, 30.17)
"""The row of CDF-KFA: for each share of `KEEPS` one noise level."""
DOUBTFUL = {("kfa", 0.3, 15), ("kfa", 0.5, 20), ("kfa", 1.0, 25)}
CDF_DOUBTFUL = (True, False, True, True, True)
_WHY_DOUBTFUL = (
    "doubtful: four of CDF-KFA's five numbers stand in KFA's block too, at other noise levels (23.51, 27.92, "
    "28.72, 30.17), and the last three of those break KFA's trend: perhaps slips of copying"
)


class Barbara:
    """PSNR of Barbara (256x256) for 6 noise levels by 5 shares of pixels."""

    name = "barbara"
    title = "Barbara, noise and missing pixels"
    what = "Barbara: 6 noise levels by 5 shares of pixels, KFA and BPFA"
    datasets = ("barbara256",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Every model in both settings and the row of CDF-KFA, or those of `QUICK`."""
        return [
            _cell(setting, model, keep, noise, seed)
            for seed in range(1, (seeds or 1) + 1)
            for setting, model, noise, keep in product(reversed(SETTINGS), MODELS, NOISES, KEEPS)
            if not quick or (setting == "default" and (model, keep, noise) in QUICK)
        ] + [
            _cell("paper", CDF, keep, noise, seed)
            for seed in range(1, (seeds or 1) + 1)
            for keep, noise in zip(KEEPS, CDF_NOISES)
            if not quick
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """PSNR over all pixels of the unrounded mean."""
        options = cell.options
        truth = context.load("barbara256").values
        damage = {name: options[name] for name in ("keep", "noise", "seed")}
        return restore_and_score(truth, options["inpaint"], context, **damage)[0]

    def tables(self, results: Results) -> list[Table]:
        """One table per model and setting that has any cell, and the paper's row of CDF-KFA."""
        return [*(_table(results, *found) for found in _found(results)), _cdf_table(results)]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """Ours less the paper's as a map, per model and setting."""
        rows, columns = [str(noise) for noise in NOISES], [f"{percent(keep)} %" for keep in KEEPS]
        maps = [
            ScoreMap(f"{model.upper()}, {setting} setting", rows, columns, scores)
            for setting, model, scores in _found(results)
        ]
        if not maps:
            return None
        subtitle = (
            "PSNR in dB, ours less the paper's of the same model; blue is better, ? doubtful in the paper"
        )
        return draw_differences(self.title, subtitle, maps, "Noise σ", "Observed pixels")


EXPERIMENT: Experiment = Barbara()


def _cell(setting: str, model: str, keep: float, noise: int, seed: int) -> Cell:
    options = {
        "setting": setting,
        "keep": keep,
        "noise": noise,
        "seed": seed,
        "inpaint": options_for(setting, model, patch_shape=(8, 8), n_atoms=256, rank=7, stride=1),
    }
    return Cell(f"{_name(setting, model, keep, noise)}-seed{seed}", options)


def _name(setting: str, model: str, keep: float, noise: int) -> str:
    return f"{model}-{setting}-keep{percent(keep)}-noise{noise}"


def _found(results: Results) -> Iterator[tuple[str, str, list[list[Score]]]]:
    """Setting, model and scores (noise by share) wherever there is any cell."""
    for setting, model in product(SETTINGS, MODELS):
        scores = _scores(results, setting, model)
        if any(score.ours is not None for row in scores for score in row):
            yield setting, model, scores


def _scores(results: Results, setting: str, model: str) -> list[list[Score]]:
    return [
        [
            score_of(
                results,
                _name(setting, model, keep, noise),
                PAPER[model][noise][place],
                doubtful=(model, keep, noise) in DOUBTFUL,
            )
            for place, keep in enumerate(KEEPS)
        ]
        for noise in NOISES
    ]


def _table(results: Results, setting: str, model: str, scores: list[list[Score]]) -> Table:
    runs = [
        run
        for noise, keep in product(NOISES, KEEPS)
        for run in over_seeds(results, _name(setting, model, keep, noise))
    ]
    doubt = [_WHY_DOUBTFUL] if model == "kfa" else []
    return Table(
        f"Barbara, {model.upper()}, {setting} setting: PSNR in dB",
        ("σ", *(f"{percent(keep)} %" for keep in KEEPS)),
        [(str(noise), *row) for noise, row in zip(NOISES, scores)],
        [*doubt, *run_notes(runs)],
    )


def _cdf_table(results: Results) -> Table:
    """The paper's row, at one noise level for each share of the pixels."""
    pairs = list(zip(KEEPS, CDF_NOISES))
    runs = [run for keep, noise in pairs for run in over_seeds(results, _name("paper", CDF, keep, noise))]
    scores = [
        score_of(results, _name("paper", CDF, keep, noise), paper, doubtful=doubtful)
        for (keep, noise), paper, doubtful in zip(pairs, CDF_PAPER, CDF_DOUBTFUL)
    ]
    return Table(
        "Barbara, CDF-KFA, paper setting: PSNR in dB",
        ("", *(f"{percent(keep)} %, σ {noise}" for keep, noise in pairs)),
        [("CDF-KFA", *scores)],
        [_WHY_DOUBTFUL, *run_notes(runs)],
    )
