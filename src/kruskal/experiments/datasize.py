"""How many patches a model needs: uncorrupted Barbara with strides 1, 2, 4 and 8."""

from itertools import product
from pathlib import Path
from typing import Any

from kruskal.experiments.cells import Cell, Context
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
from kruskal.experiments.presets import CDF, MGP_CP, MODELS, SETTINGS, mgp_cp_options, options_for
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

STRIDES = (1, 2, 4, 8)
QUICK_STRIDES = (4, 8)
SEEDS, QUICK_SEEDS = 10, 2
PAPER = {
    "kfa": (50.36, 49.71, 47.84, 44.26),
    "bpfa": (42.48, 41.43, 40.21, 36.88),
    "mgp-cp": (47.23, 45.68, 44.82, 42.76),
    "cdf-kfa": (44.56, 41.14, 40.83, 39.01),
}
"""Mean PSNR in dB of ten runs, by model, for the strides of `STRIDES`."""
PAPER_SPREAD = {"kfa": 0.1, "bpfa": 0.1, "mgp-cp": 1.2, "cdf-kfa": 0.6}
"""Standard deviation over the ten runs, as the text gives it for all strides."""


class DataSize:
    """PSNR of the uncorrupted picture against the stride of the patches."""

    name = "datasize"
    title = "Barbara, fewer and fewer patches"
    what = "Barbara, uncorrupted: strides 1, 2, 4, 8, mean and spread of 10 runs, KFA, BPFA, MGP-CP, CDF-KFA"
    datasets = ("barbara256",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """The shortest runs first; a quick run has the strides 4 and 8 and two seeds."""
        n_seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
        strides = QUICK_STRIDES if quick else STRIDES
        return [
            _cell(setting, model, stride, seed)
            for stride, setting in product(reversed(strides), reversed(SETTINGS))
            for model, seed in product(_methods(setting), range(1, n_seeds + 1))
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """PSNR over all pixels of the unrounded mean."""
        truth = context.load("barbara256").values
        return restore_and_score(truth, cell.options["inpaint"], context, seed=cell.options["seed"])[0]

    def tables(self, results: Results) -> list[Table]:
        """One table per setting that has any cell."""
        return [
            _table(results, setting)
            for setting in SETTINGS
            if any(over_seeds(results, _name(setting, *one)) for one in product(_methods(setting), STRIDES))
        ]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """PSNR against the stride, ours with bars of one standard deviation, and the paper's."""
        if not results:
            return None
        curves = []
        for model in PAPER:
            for setting in SETTINGS:
                if model not in _methods(setting):
                    continue
                scores = _scores(results, setting, model)
                label = f"{model.upper()}, {setting} setting"
                ours, spread = [score.ours for score in scores], [score.spread for score in scores]
                style = SETTING_STYLES[setting]
                curves.append(Curve(label, STRIDES, ours, spread, MODEL_COLOURS[model], style))
            label = f"{model.upper()}, paper's number"
            curves.append(Curve(label, STRIDES, PAPER[model], (), MODEL_COLOURS[model], PAPER_STYLE))
        panel = Panel("PSNR against the stride", "Stride Δ", curves, True, STRIDES)
        return draw_curves(self.title, "uncorrupted 256x256", [panel])


EXPERIMENT: Experiment = DataSize()


def _cell(setting: str, model: str, stride: int, seed: int) -> Cell:
    inpaint = options_for(setting, model, patch_shape=(8, 8), n_atoms=256, rank=7, stride=stride)
    if model == MGP_CP:  # the patches as one tensor 8x8xN, R = 64 as in the paper
        inpaint = mgp_cp_options(setting, patch_shape=[8, 8], rank=64)
    options = {
        "setting": setting,
        "stride": stride,
        "seed": seed,
        "inpaint": inpaint | {"stride": stride},  # the stride is the experiment, in either setting
    }
    return Cell(f"{_name(setting, model, stride)}-seed{seed}", options)


def _methods(setting: str) -> tuple[str, ...]:
    online = (CDF,) if setting == "paper" else ()
    return (*MODELS, *online, MGP_CP)


def _name(setting: str, model: str, stride: int) -> str:
    return f"{model}-{setting}-stride{stride}"


def _scores(results: Results, setting: str, model: str) -> list[Score]:
    return [
        score_of(results, _name(setting, model, stride), paper, paper_spread=PAPER_SPREAD[model])
        for stride, paper in zip(STRIDES, PAPER[model])
    ]


def _table(results: Results, setting: str) -> Table:
    scores = {model: _scores(results, setting, model) for model in PAPER}
    margin = [_less(kfa, bpfa) for kfa, bpfa in zip(scores["kfa"], scores["bpfa"])]
    rows: list[list[str | Score]] = [[model.upper(), *row] for model, row in scores.items()]
    rows.append(["KFA less BPFA", *margin])
    methods = _methods(setting)
    runs = {name: over_seeds(results, _name(setting, *name)) for name in product(methods, STRIDES)}
    counts = sorted({len(found) for found in runs.values() if found})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return Table(
        f"Barbara uncorrupted, {setting} setting: PSNR in dB, mean ± standard deviation over seeds",
        ("", *(f"Δ = {stride}" for stride in STRIDES)),
        rows,
        [
            f"seeds: {number} of ours, 10 of the paper",
            *run_notes([run for found in runs.values() for run in found]),
        ],
        by_row=True,
    )


def _less(one: Score, other: Score) -> Score:
    """The margin of one model over another, ours and the paper's."""
    ours = None if one.ours is None or other.ours is None else one.ours - other.ours
    paper = None if one.paper is None or other.paper is None else one.paper - other.paper
    return Score(ours, paper)
