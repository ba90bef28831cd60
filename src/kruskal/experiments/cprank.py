"""How MGP-CP finds the rank: synthetic tensors of rank 5, of which 30 % are observed with noise.

Not in the paper, which shows no known rank.
"""

from pathlib import Path
from typing import Any

import numpy as np

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.notes import run_notes
from kruskal.experiments.presets import mgp_cp_options
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds, score_of

RANK, KEEP, NOISE = 5, 0.3, 0.05
SHAPES = {3: (20, 20, 20), 4: (10, 10, 10, 10)}
SEEDS, QUICK_SEEDS = 10, 2


class CPRank:
    """Inferred ranks of tensors of order 3 and 4."""

    name = "cprank"
    title = "Inferred rank of synthetic tensors"
    what = "Tensors of rank 5, order 3 and 4, 30 % observed, 5 % noise: the rank that MGP-CP infers"
    datasets = ()

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """Both orders for every seed; a quick run has order 3 and two seeds."""
        n_seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
        orders = (3,) if quick else tuple(SHAPES)
        return [_cell(order, seed) for seed in range(1, n_seeds + 1) for order in orders]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """The inferred rank and the error over all entries."""
        options = cell.options
        truth = synthetic(tuple(options["shape"]), options["rank"], options["seed"])
        return restore_and_score(
            truth, options["inpaint"], context, keep=options["keep"], seed=options["seed"],
            noise=options["noise"] * float(truth.std()), peak=float(np.abs(truth).max()),
        )[0]  # fmt: skip

    def tables(self, results: Results) -> list[Table]:
        """One row per order."""
        if not results:
            return []
        rows: list[tuple[str | Score | None, ...]] = []
        for order, shape in SHAPES.items():
            found = [run["rank"] for run in over_seeds(results, _name(order))]
            right = f"{sum(rank == RANK for rank in found)} of {len(found)}" if found else None
            score = score_of(results, _name(order), measure="rrse", digits=4)
            rows.append(("x".join(map(str, shape)), right, ", ".join(map(str, found)) or None, score))
        notes = [
            "the rank of a run is that of most of its kept draws, counting terms of at least 1 % of the "
            "strongest that are stronger than a fit to noise alone; RRSE over all entries, without noise",
            *run_notes(results.values()),
        ]
        columns = ("shape", f"rank {RANK} inferred", "ranks by seed", "RRSE")
        return [Table("Synthetic tensors of rank 5, MGP-CP", columns, rows, notes, unit=None)]

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """None: the table says it all."""
        return None


EXPERIMENT: Experiment = CPRank()


def synthetic(shape: tuple[int, ...], rank: int, seed: int) -> np.ndarray:
    """A Kruskal tensor with standard normal factors and weights of one."""
    random = np.random.default_rng([seed, *shape])
    tensor = random.standard_normal((shape[0], rank))
    for size in shape[1:]:
        tensor = tensor[..., None, :] * random.standard_normal((size, rank))
    return np.asarray(tensor.sum(axis=-1))


def _cell(order: int, seed: int) -> Cell:
    options = {
        "shape": list(SHAPES[order]), "rank": RANK, "keep": KEEP, "noise": NOISE, "seed": seed,
        "inpaint": mgp_cp_options("default"),
    }  # fmt: skip
    return Cell(f"{_name(order)}-seed{seed}", options)


def _name(order: int) -> str:
    return f"order{order}"
