"""Pictures that are in no table of the paper: what a user gets, beside other programs."""

from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from kruskal.data import corrupt
from kruskal.experiments.cells import Cell, Context, percent
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, draw_gallery, grey, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.peers import installed_version, not_installed, run_peer
from kruskal.experiments.presets import options_for
from kruskal.experiments.sample_pictures import FRESH, HAD_A_SAY, PICTURES, picture
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

NOISES = (10, 25, 50)
KEEPS = (0.2, 0.5)
DENOISERS = {"kfa": "KFA", "bm3d": "BM3D"}
INPAINTERS = {"kfa": "KFA", "bpfa": "BPFA", "biharmonic": "biharmonic"}
PEERS = ("bm3d", "biharmonic")
COVERAGE_GOAL = (90.0, 98.0)
_SHOWN = 6


class Task(NamedTuple):
    """One kind of damage: noise, or missing pixels."""

    keep: float = 1.0
    noise: int = 0

    @property
    def key(self) -> str:
        """As part of the key of a cell."""
        return f"noise{self.noise}" if self.noise else f"keep{percent(self.keep)}"


DENOISING = tuple(Task(noise=noise) for noise in NOISES)
INPAINTING = tuple(Task(keep=keep) for keep in KEEPS)
SHOWN_TASKS = {INPAINTING[0]: INPAINTERS, DENOISING[1]: DENOISERS}
"""Of these the pictures are kept for the figure."""
QUICK_PICTURES = ("camera", "gravel")
QUICK_TASKS = (DENOISING[1], INPAINTING[0])


class Pictures:
    """Blind denoising against BM3D, inpainting against two others, and coverage, in the default setting."""

    name = "pictures"
    title = "Pictures outside the paper"
    what = "12 pictures of scikit-image: denoising beside BM3D, inpainting beside two others, coverage"
    datasets = ()

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Every method and damage for every picture; a quick run has two pictures and two kinds of damage."""
        return [
            _cell(picture, method, task, seed)
            for seed in range(1, (seeds or 1) + 1)
            for picture in (QUICK_PICTURES if quick else PICTURES)
            for task, method in (*product(DENOISING, DENOISERS), *product(INPAINTING, INPAINTERS))
            if (not quick or task in QUICK_TASKS) and (method not in PEERS or installed_version(method))
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """PSNR over all pixels of the unrounded, clipped estimate; BM3D is told the noise, KFA is not."""
        options = cell.options
        truth = picture(options["picture"])
        damage = {name: options[name] for name in ("keep", "noise", "seed")}
        if "inpaint" in options:
            measures, restoration = restore_and_score(truth, options["inpaint"], context, **damage)
            estimate = restoration.mean
        else:
            measures, estimate = run_peer(options["peer"], truth, **damage)
        if Task(options["keep"], options["noise"]) in SHOWN_TASKS:
            rounded = np.rint(np.clip(estimate, 0, 255)).astype(np.uint8)
            keep_arrays(context.folder, cell.key, mean=rounded)
        return measures

    def tables(self, results: Results) -> list[Table]:
        """Denoising, inpainting, and coverage of KFA and BPFA."""
        found = [_denoising_table(results), _inpainting_table(results), _coverage_table(results)]
        return [table for table in found if table is not None]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """Up to six pictures, those without a say first, damaged by missing pixels and by noise."""
        names = [name for name in (*FRESH, *HAD_A_SAY) if any(key.startswith(f"{name}-") for key in results)]
        names = names[:_SHOWN]
        if not names:
            return None
        rows: list[list[Tile | None]] = [[Tile(name, grey(picture(name), 0, 255)) for name in names]]
        for task, methods in SHOWN_TASKS.items():
            words = f"σ {task.noise}" if task.noise else f"{percent(task.keep)} % of the pixels"
            seen = [corrupt(picture(name), **task._asdict(), seed=1).values for name in names]
            rows.append([Tile(words, grey(values, 0, 255)) for values in seen])
            for method, label in methods.items():
                tiles = [_tile(results, folder, name, method, task, label) for name in names]
                if any(tiles):
                    rows.append(tiles)
        return draw_gallery(self.title, "grey, 256x256, default setting, seed 1", rows)


EXPERIMENT: Experiment = Pictures()


def _cell(name: str, method: str, task: Task, seed: int) -> Cell:
    options: dict[str, Any] = {"picture": name, "keep": task.keep, "noise": task.noise, "seed": seed}
    if method in PEERS:
        options |= {"peer": method, "peer_version": installed_version(method)}
    else:
        inpaint = options_for("default", method, patch_shape=(8, 8), n_atoms=256, rank=7)
        options |= {"setting": "default", "inpaint": inpaint}
    return Cell(f"{_name(name, method, task)}-seed{seed}", options)


def _name(name: str, method: str, task: Task) -> str:
    return f"{name}-{method}-{task.key}" if method in PEERS else f"{name}-{method}-default-{task.key}"


def _label(name: str) -> str:
    return f"{name} *" if name in HAD_A_SAY else name


_MARK = "* had a say in the choice of defaults (docs/choices.md); the others had none"


def _value(results: Results, name: str, method: str, task: Task, measure: str = "psnr") -> float | None:
    return score_of(results, _name(name, method, task), measure=measure).ours


def _less(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second


def _runs(results: Results, methods: dict[str, str], tasks: tuple[Task, ...]) -> list[Any]:
    """All runs of these methods."""
    return [
        run
        for name, method, task in product(PICTURES, methods, tasks)
        for run in over_seeds(results, _name(name, method, task))
    ]


def _means(rows: list[tuple[str, list[float | None]]]) -> list[tuple[str | Score | None, ...]]:
    """The rows as scores, then the mean of every column over all pictures and over those without a say."""
    shown: list[tuple[str | Score | None, ...]] = [
        (_label(name), *(Score(value) if value is not None else None for value in values))
        for name, values in rows
        if any(value is not None for value in values)
    ]
    for words, names in (("mean", PICTURES), ("mean without *", FRESH)):
        columns = zip(*(values for name, values in rows if name in names))
        known = [[value for value in column if value is not None] for column in columns]
        if any(known):
            shown.append((words, *(Score(fmean(values)) if values else None for values in known)))
    return shown


def _denoising_table(results: Results) -> Table | None:
    ours = _runs(results, {"kfa": "KFA"}, DENOISING)
    rows = []
    for name in PICTURES:
        values: list[float | None] = []
        for task in DENOISING:
            kfa, bm3d = (_value(results, name, method, task) for method in DENOISERS)
            values += [kfa, bm3d, _less(kfa, bm3d)]
        rows.append((name, values))
    if not _runs(results, DENOISERS, DENOISING):
        return None
    columns = ["", *(word for noise in NOISES for word in (f"σ {noise}: KFA", "BM3D", "difference"))]
    notes = ["blind: KFA is not told σ, BM3D is; noise is neither clipped nor rounded", _MARK]
    if installed_version("bm3d") is None:
        notes.append(not_installed("bm3d"))
    return Table("Denoising, default setting: PSNR in dB", columns, _means(rows), [*notes, *run_notes(ours)])


def _inpainting_table(results: Results) -> Table | None:
    rows = [
        (name, [_value(results, name, method, task) for task in INPAINTING for method in INPAINTERS])
        for name in PICTURES
    ]
    if not _runs(results, INPAINTERS, INPAINTING):
        return None
    columns = [f"{percent(keep)} %: {label}" for keep in KEEPS for label in INPAINTERS.values()]
    notes = [_MARK]
    for other, label in list(INPAINTERS.items())[1:]:
        for task in INPAINTING:
            pairs = [[_value(results, name, method, task) for method in ("kfa", other)] for name in PICTURES]
            known = [gain for pair in pairs if (gain := _less(*pair)) is not None]
            if known:
                notes.append(
                    f"{percent(task.keep)} %, KFA less {label}: mean {fmean(known):+.2f} dB over "
                    f"{len(known)} pictures, least {min(known):+.2f}"
                )
    runs = _runs(results, {"kfa": "", "bpfa": ""}, INPAINTING)
    title = "Inpainting, default setting: PSNR in dB"
    return Table(title, ("", *columns), _means(rows), [*notes, *run_notes(runs)])


def _coverage_table(results: Results) -> Table | None:
    methods = {method: label for method, label in INPAINTERS.items() if method not in PEERS}
    pairs = list(product(INPAINTING, methods))
    shares = {
        name: [_value(results, name, method, task, "coverage") for task, method in pairs] for name in PICTURES
    }
    columns = [[value for value in column if value is not None] for column in zip(*shares.values())]
    if not any(columns):
        return None
    rows: list[tuple[str | Score | None, ...]] = [
        (_label(name), *(_percent_score(value) for value in values))
        for name, values in shares.items()
        if any(value is not None for value in values)
    ]
    for words, choose in (("least", min), ("most", max), ("mean", fmean)):
        rows.append((words, *(_percent_score(choose(values)) if values else None for values in columns)))
    low, high = COVERAGE_GOAL
    kfa = [100 * value for (_, method), values in zip(pairs, columns) if method == "kfa" for value in values]
    outside = sum(not low <= value <= high for value in kfa)
    notes = [
        "share of the missing pixels within mean ± 2·sqrt(std² + noise²); a Gaussian has 95.4 %",
        f"KFA: {outside} of {len(kfa)} outside {low:.0f} to {high:.0f} %",
        _MARK,
    ]
    labels = [f"{percent(task.keep)} %: {methods[method]}" for task, method in pairs]
    return Table("Coverage of 95 % intervals in %", ("", *labels), rows, notes, unit=None)


def _percent_score(share: float | None) -> Score | None:
    return None if share is None else Score(100 * share, digits=1)


def _tile(results: Results, folder: Path, name: str, method: str, task: Task, label: str) -> Tile | None:
    key = f"{_name(name, method, task)}-seed1"
    arrays = read_arrays(folder, key) if key in results else None
    if arrays is None:
        return None
    return Tile(f"{label}, {results[key]['psnr']:.2f} dB", grey(arrays["mean"], 0, 255))
