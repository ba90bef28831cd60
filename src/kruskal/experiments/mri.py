"""The MRI table: the BrainWeb phantom with noise, and from a fifth of its voxels."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.data import corrupt
from kruskal.experiments.cells import Cell, Context, json_number, percent
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, draw_gallery, grey, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.peers import installed_version, not_installed, run_peer
from kruskal.experiments.presets import MODELS, SETTINGS, options_for
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

PATCH = (8, 8, 8)
STRIDE, N_ATOMS, RANK = 4, 512, 24
PEAK = 255.0
CROP = slice(50, 125)
"""Of every axis: the region that the demo of BM4D denoises."""
NOISE_PERCENT = 19


class Task(NamedTuple):
    """A row of the table: which part of the volume, and the damage."""

    region: str
    keep: float = 1.0
    noise_percent: int = 0

    @property
    def key(self) -> str:
        """As part of the key of a cell."""
        damage = f"noise{self.noise_percent}" if self.noise_percent else f"keep{percent(self.keep)}"
        return f"{self.region}-{damage}"

    @property
    def label(self) -> str:
        """As in the table."""
        missing = f"{percent(self.keep)} % of the voxels"
        return f"{self.region}, {f'σ {self.noise_percent} %' if self.noise_percent else missing}"

    @property
    def noise(self) -> float:
        """Standard deviation in grey levels."""
        return self.noise_percent / 100 * PEAK


CROP_NOISE = Task("crop", noise_percent=NOISE_PERCENT)
CROP_MISSING = Task("crop", keep=0.2)
WHOLE_MISSING = Task("whole", keep=0.2)
TASKS = (CROP_NOISE, CROP_MISSING, WHOLE_MISSING)
METHODS = {"sbtd": "sBTD", "bm4d": "BM4D", "bpfa": "BPFA", "kfa": "KFA"}
_NOISE_PAPER = {"bm4d": 29.70, "bpfa": 29.26, "kfa": 29.67}
_MISSING_PAPER = {"sbtd": 22.33, "bpfa": 30.21, "kfa": 30.46}
PAPER = {CROP_NOISE: _NOISE_PAPER, CROP_MISSING: _MISSING_PAPER, WHOLE_MISSING: _MISSING_PAPER}
"""PSNR in dB; the paper does not say of which region, so its 20 % stands beside both of ours."""
_BM4D = f"bm4d-{CROP_NOISE.key}"


class Mri:
    """PSNR of the BrainWeb T1 phantom (181x217x181)."""

    name = "mri"
    title = "MRI, three-way"
    what = "BrainWeb MRI: noise of 19 % and 20 % of the voxels, KFA, BPFA and, if installed, BM4D"
    datasets = ("brainweb",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Both models in both settings, and BM4D if installed; a quick run has the crop's default setting."""
        found = []
        for seed in range(1, (seeds or 1) + 1):
            if installed_version("bm4d"):
                found.append(_bm4d_cell(seed))
            for task, setting, model in product(TASKS, reversed(SETTINGS), MODELS):
                if not quick or (task.region == "crop" and setting == "default"):
                    found.append(_cell(setting, model, task, seed))
        return found

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """``psnr`` over voxels above 0, as in BM4D's demo, ``psnr_all`` over all; both with the peak 255."""
        from kruskal.report import psnr

        options = cell.options
        truth = volume(context.load, options["region"])
        damage = {name: options[name] for name in ("keep", "noise", "seed")}
        foreground = truth > 0
        if "bm4d" in options:
            measures, estimate = run_peer("bm4d", truth, **damage)
        else:
            measures, restoration = restore_and_score(
                truth, options["inpaint"], context, **damage, peak=PEAK, where=foreground
            )
            estimate = np.clip(restoration.mean, 0.0, PEAK)
        middle = len(truth) // 2
        keep_arrays(
            context.folder,
            cell.key,
            truth=truth[middle],
            seen=corrupt(truth, **damage).values[middle],
            mean=estimate[middle],
        )
        return measures | {
            "psnr": json_number(psnr(estimate, truth, PEAK, foreground)),
            "psnr_all": json_number(psnr(estimate, truth, PEAK)),
            "foreground": float(foreground.mean()),
        }

    def tables(self, results: Results) -> list[Table]:
        """One table per setting that has any cell; BM4D, which has no setting, is in all of them."""
        tables = []
        for setting in SETTINGS:
            runs = [
                run
                for task, model in product(TASKS, MODELS)
                for run in over_seeds(results, _name(setting, model, task))
            ]
            if runs:
                tables.append(_table(results, setting, runs))
        if not tables and over_seeds(results, _BM4D):
            tables.append(_table(results, SETTINGS[-1], []))
        return tables

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """The middle slice of the first axis: truth, damage and each restoration of the first seed."""
        rows: list[list[Tile | None]] = []
        for task in TASKS:
            keys = {f"{_BM4D}-seed1": "BM4D"} if task == CROP_NOISE else {}
            for setting, model in product(SETTINGS, MODELS):
                keys[f"{_name(setting, model, task)}-seed1"] = f"{model.upper()}, {setting}"
            row = _row_of_tiles(results, folder, keys, 4 if task.region == "crop" else 2)
            if row:
                first, *others = row
                rows.append([first._replace(caption=f"{task.label}: truth"), *others])
        return draw_gallery(self.title, "the middle slice of the first axis", rows) if rows else None


EXPERIMENT: Experiment = Mri()


def volume(load: Callable[[str], Any], region: str) -> np.ndarray:
    """The phantom or its crop, uint8."""
    values = np.rint(load("brainweb").values).astype(np.uint8)
    return np.ascontiguousarray(values[CROP, CROP, CROP]) if region == "crop" else values


def _cell(setting: str, model: str, task: Task, seed: int) -> Cell:
    options = {
        "setting": setting,
        "region": task.region,
        "keep": task.keep,
        "noise": task.noise,
        "seed": seed,
        "inpaint": options_for(setting, model, patch_shape=PATCH, n_atoms=N_ATOMS, rank=RANK, stride=STRIDE),
    }
    return Cell(f"{_name(setting, model, task)}-seed{seed}", options)


def _bm4d_cell(seed: int) -> Cell:
    options = {
        "region": CROP_NOISE.region,
        "keep": CROP_NOISE.keep,
        "noise": CROP_NOISE.noise,
        "seed": seed,
        "bm4d": installed_version("bm4d"),
    }
    return Cell(f"{_BM4D}-seed{seed}", options)


def _name(setting: str, model: str, task: Task) -> str:
    return f"{model}-{setting}-{task.key}"


def _table(results: Results, setting: str, runs: list[Any]) -> Table:
    def score(method: str, task: Task, measure: str = "psnr") -> Score:
        paper = PAPER[task].get(method) if measure == "psnr" else None
        name = f"bm4d-{task.key}" if method == "bm4d" else _name(setting, method, task)
        return score_of(results, name, paper, measure=measure)

    rows: list[tuple[str | Score, ...]] = []
    for task in TASKS:
        rows.append((f"{task.label}, foreground", *(score(method, task) for method in METHODS)))
        if task.region == "whole":  # all of the crop is foreground
            scores = [score(method, task, "psnr_all") for method in METHODS]
            rows.append((f"{task.label}, all voxels", *scores))
    notes = [
        f"crop: [{CROP.start}:{CROP.stop}] of every axis, all of it foreground; whole: 181x217x181",
        "PSNR with peak 255 over the foreground, the voxels whose true value is above 0, and over all; "
        "σ in percent of 255; the paper does not name its region, so its 20 % stands beside both",
        "BM4D is told σ, KFA and BPFA are not; sBTD is for reference",
    ]
    ours, theirs = score("kfa", CROP_NOISE).ours, score("bm4d", CROP_NOISE).ours
    if ours is not None and theirs is not None:
        notes.append(f"KFA less BM4D, run here on the same noise: {ours - theirs:+.2f} dB")
    if theirs is None and installed_version("bm4d") is None:
        notes.append(not_installed("bm4d"))
    title = f"BrainWeb MRI, {setting} setting: PSNR in dB"
    return Table(title, ("", *METHODS.values()), rows, [*notes, *run_notes(runs)], unit=None)


def _row_of_tiles(results: Results, folder: Path, keys: dict[str, str], scale: int) -> list[Tile]:
    """Truth and damage, then what there is of the cells; empty if there is nothing."""
    row: list[Tile] = []
    for key, words in keys.items():
        arrays = read_arrays(folder, key) if key in results else None
        if arrays is None:
            continue
        if not row:
            names = {"truth": "truth", "seen": "damaged"}
            row = [Tile(word, grey(arrays[name], 0.0, PEAK, scale)) for name, word in names.items()]
        row.append(Tile(f"{words}, {results[key]['psnr']:.2f} dB", grey(arrays["mean"], 0.0, PEAK, scale)))
    return row
