"""The castle: a colour picture with missing pixels, with noise, and whole with separate patches."""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from kruskal.experiments.cells import Cell, Context, percent
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.notes import run_notes
from kruskal.experiments.plots import (
    MODEL_COLOURS,
    PAPER_STYLE,
    SETTING_STYLES,
    Curve,
    Panel,
    draw_curves,
)
from kruskal.experiments.presets import CDF, MODELS, SETTINGS, options_for
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

METHODS = (*MODELS, CDF)
PATCH = (7, 7, 3)
N_ATOMS = 512
RANK = 10
"""One less than the generic rank of 7x7x3, which the paper's formula gives as 10 and which is 11."""


class Task(NamedTuple):
    """One column of the table: the damage, and whether the patches are side by side."""

    keep: float = 1.0
    noise: int = 0
    separate: bool = False

    @property
    def key(self) -> str:
        """As part of the key of a cell."""
        return "separate" if self.separate else f"keep{percent(self.keep)}-noise{self.noise}"


INPAINTING = tuple(Task(keep=keep) for keep in (0.2, 0.3, 0.5, 0.8))
DENOISING = tuple(Task(noise=noise) for noise in (5, 10, 15, 25))
SEPARATE = (Task(separate=True),)
TASKS = (*INPAINTING, *DENOISING, *SEPARATE)
QUICK = (INPAINTING[0], DENOISING[-1])

PAPER: dict[str, dict[Task, float]] = {
    "kfa": dict(zip(TASKS, (29.59, 32.46, 38.40, 49.08, 40.58, 36.20, 33.73, 30.54, 50.94))),
    "bpfa": dict(zip(TASKS, (29.12, 32.02, 36.45, 41.51, 40.37, 36.24, 33.98, 31.19))),
    "cdf-kfa": dict(zip(TASKS, (28.95, 31.87, 37.18, 44.60, 39.94, 35.63, 33.52, 30.60))),
}
"""PSNR in dB over all pixels and colours; of the uncorrupted picture the paper gives KFA's only."""


class Castle:
    """PSNR of the castle (481x321, three colours)."""

    name = "castle"
    title = "Castle, in colour"
    what = "Castle in colour: missing pixels, noise, and uncorrupted with separate patches, KFA and BPFA"
    datasets = ("castle",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Every task for all models in both settings.

        A quick run has 20 % of the pixels and noise 25.
        """
        return [
            _cell(setting, model, task, seed)
            for seed in range(1, (seeds or 1) + 1)
            for setting in reversed(SETTINGS)
            for model, task in product(METHODS, QUICK if quick else TASKS)
            if model != CDF or task in PAPER[CDF]
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """PSNR over all pixels and colours; pixels are missing independently in every colour."""
        options = cell.options
        truth = context.load("castle").values
        damage = {name: options[name] for name in ("keep", "noise", "seed")}
        return restore_and_score(truth, options["inpaint"], context, **damage)[0]

    def tables(self, results: Results) -> list[Table]:
        """For every setting with any cell the missing pixels, the noise, and the separate patches."""
        found = []
        for setting in SETTINGS:
            for words, tasks, columns in (
                ("missing pixels", INPAINTING, [f"{percent(task.keep)} %" for task in INPAINTING]),
                ("noise", DENOISING, [f"σ {task.noise}" for task in DENOISING]),
                ("uncorrupted, separate patches", SEPARATE, ["PSNR"]),
            ):
                runs = [
                    run
                    for model, task in product(METHODS, tasks)
                    for run in over_seeds(results, _name(setting, model, task))
                ]
                if runs:
                    title = f"Castle, {words}, {setting} setting: PSNR in dB"
                    rows = _rows(results, setting, tasks)
                    found.append(Table(title, ("", *columns), rows, run_notes(runs), by_row=True))
        return found

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """PSNR against the share of pixels and against the noise, ours and the paper's."""
        if not results:
            return None
        shares = [100 * task.keep for task in INPAINTING]
        noises = [float(task.noise) for task in DENOISING]
        panels = [
            Panel(
                "Missing pixels", "Observed pixels in %", _curves(results, INPAINTING, shares), False, shares
            ),
            Panel("Noise", "Noise σ", _curves(results, DENOISING, noises), False, noises),
        ]
        return draw_curves(self.title, "481x321, three colours, PSNR over all of them", panels)


EXPERIMENT: Experiment = Castle()


def _cell(setting: str, model: str, task: Task, seed: int) -> Cell:
    stride: int | tuple[int, ...] = PATCH if task.separate else 1
    inpaint = options_for(setting, model, patch_shape=PATCH, n_atoms=N_ATOMS, rank=RANK, stride=stride)
    if task.separate:  # the patch and its stride are the experiment, in either setting
        inpaint |= {"patch_shape": list(PATCH), "stride": list(PATCH)}
    options = {
        "setting": setting,
        "keep": task.keep,
        "noise": task.noise,
        "seed": seed,
        "inpaint": inpaint,
    }
    return Cell(f"{_name(setting, model, task)}-seed{seed}", options)


def _name(setting: str, model: str, task: Task) -> str:
    return f"{model}-{setting}-{task.key}"


def _rows(results: Results, setting: str, tasks: tuple[Task, ...]) -> list[tuple[str | Score, ...]]:
    """One row per model that the paper has a number of; with noise a last one has KFA beside their best."""
    rows: list[tuple[str | Score, ...]] = []
    for model, paper in PAPER.items():
        if model in MODELS or any(task in paper for task in tasks):
            scores = [score_of(results, _name(setting, model, task), paper.get(task)) for task in tasks]
            rows.append((model.upper(), *scores))
    if tasks == DENOISING:  # where KFA is not the best of the paper
        best = {task: max(paper[task] for paper in PAPER.values()) for task in tasks}
        scores = [score_of(results, _name(setting, "kfa", task), best[task]) for task in tasks]
        rows.append(("KFA, best of the paper's", *scores))
    return rows


def _curves(results: Results, tasks: tuple[Task, ...], x: list[float]) -> list[Curve]:
    curves = []
    for model in MODELS:
        for setting in SETTINGS:
            scores = [score_of(results, _name(setting, model, task)) for task in tasks]
            ours, spread = [score.ours for score in scores], [score.spread for score in scores]
            style = SETTING_STYLES[setting]
            curves.append(
                Curve(f"{model.upper()}, {setting} setting", x, ours, spread, MODEL_COLOURS[model], style)
            )
        numbers = [PAPER[model][task] for task in tasks]
        label = f"{model.upper()}, paper's number"
        curves.append(Curve(label, x, numbers, (), MODEL_COLOURS[model], PAPER_STYLE))
    return curves
