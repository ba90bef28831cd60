"""How large a dictionary must be: PSNR against the number of atoms and against that of parameters."""

from itertools import product
from pathlib import Path
from typing import Any

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.notes import run_notes
from kruskal.experiments.plots import MODEL_COLOURS, Curve, Panel, draw_curves
from kruskal.experiments.presets import options_for
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, score_of

SIDE = 8
ATOMS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
QUICK_ATOMS = (2, 8, 16, 64)
LABELS = {"kfa": "KFA, R = 1", "bpfa": "BPFA"}
PARAMETERS_PER_ATOM = {"kfa": 1 + 2 * SIDE, "bpfa": SIDE * SIDE}
"""Of a dictionary: R (1 + sum m_t) = 17 numbers per atom of KFA with R = 1, prod m_t = 64 of BPFA."""


class Complexity:
    """PSNR of the uncorrupted picture against the size of the dictionary."""

    name = "complexity"
    title = "Barbara, size of the dictionary"
    what = "Barbara, uncorrupted: PSNR against the number of atoms and of parameters, KFA with R = 1 and BPFA"
    datasets = ("barbara256",)

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Small dictionaries first; the paper's setting only, since K and R are what is varied."""
        return [
            _cell(model, n_atoms, seed)
            for seed in range(1, (seeds or 1) + 1)
            for n_atoms, model in product(QUICK_ATOMS if quick else ATOMS, LABELS)
        ]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """PSNR over all pixels of the unrounded mean, and the number of parameters."""
        truth = context.load("barbara256").values
        measures, _ = restore_and_score(truth, cell.options["inpaint"], context, seed=cell.options["seed"])
        return measures | {"parameters": cell.options["parameters"]}

    def tables(self, results: Results) -> list[Table]:
        """One row per number of atoms."""
        rows: list[tuple[str | Score, ...]] = []
        for n_atoms in ATOMS:
            row: list[str | Score] = [str(n_atoms)]
            for model in LABELS:
                row += [f"{parameters(model, n_atoms):,}", score_of(results, _name(model, n_atoms))]
            rows.append(tuple(row))
        columns = ["K", *(word for label in LABELS.values() for word in ("parameters", label))]
        notes = ["the paper shows this as a figure, without numbers", *run_notes(results.values())]
        return [Table("Barbara uncorrupted, paper setting: PSNR in dB", columns, rows, notes)]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """The same points against the number of parameters and against that of atoms, as in the paper."""
        if not results:
            return None
        against_parameters, against_atoms = [], []
        for model, label in LABELS.items():
            scores = [score_of(results, _name(model, n_atoms)) for n_atoms in ATOMS]
            ours, spread = [score.ours for score in scores], [score.spread for score in scores]
            sizes = [parameters(model, n_atoms) for n_atoms in ATOMS]
            against_parameters.append(Curve(label, sizes, ours, spread, MODEL_COLOURS[model]))
            against_atoms.append(Curve(label, ATOMS, ours, spread, MODEL_COLOURS[model]))
        ticks = (1, 2, 4, 8, 16, 32, 64, 128, 256)
        panels = [
            Panel(
                "Against the number of parameters", "Parameters of the dictionary", against_parameters, True
            ),
            Panel("Against the number of atoms", "Atoms K", against_atoms, True, ticks),
        ]
        return draw_curves(self.title, "uncorrupted 256x256, patches 8x8, stride 1", panels)


EXPERIMENT: Experiment = Complexity()


def parameters(model: str, n_atoms: int) -> int:
    """Number of parameters of a dictionary: 17 K or 64 K."""
    return PARAMETERS_PER_ATOM[model] * n_atoms


def _cell(model: str, n_atoms: int, seed: int) -> Cell:
    options = {
        "setting": "paper",
        "seed": seed,
        "parameters": parameters(model, n_atoms),
        "inpaint": options_for("paper", model, patch_shape=(SIDE, SIDE), n_atoms=n_atoms, rank=1, stride=1),
    }
    return Cell(f"{_name(model, n_atoms)}-seed{seed}", options)


def _name(model: str, n_atoms: int) -> str:
    return f"{model}-paper-atoms{n_atoms}"
