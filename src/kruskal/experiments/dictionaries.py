"""Dictionaries learned from clean pictures: how they look, and which ranks their atoms have."""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.experiment import Experiment, Results
from kruskal.experiments.gallery import Tile, atom_mosaic, draw_gallery, keep_arrays, read_arrays
from kruskal.experiments.notes import run_notes
from kruskal.experiments.presets import options_for
from kruskal.experiments.scoring import restore_and_score
from kruskal.experiments.tables import Score, Table, over_seeds

PICTURES: dict[str, dict[str, Any]] = {
    "barbara": {"dataset": "barbara256", "patch_shape": (8, 8), "n_atoms": 256},
    "castle": {"dataset": "castle", "patch_shape": (7, 7, 3), "n_atoms": 512},
}
MAIN_RANKS = {"barbara": 7, "castle": 10}
OTHER_RANKS = (1, 2, 4, 8)
THRESHOLDS = {"absolute 1e-6": (1e-6, False), "relative 1e-6": (1e-6, True), "relative 1e-2": (1e-2, True)}
"""Of the singular values: the bound, and whether it is relative to the largest of the atom."""
PAPER = {
    "the paper's KFA": {"1": 0.0, "8": 0.0, "4 or 5": 96.0},
    "the paper's KFA R = 8": {"8": 0.0},
    "the paper's BPFA": {"8": 100.0, "4 or 5": 0.0},
}
"""What its text says of Barbara's dictionaries: percent of the atoms by rank."""
FULL_RANK = {"barbara": 8, "castle": 7}
_SCALE = 3


class Dictionary(NamedTuple):
    """One dictionary: the picture, the setting, the model and, in the paper's setting, its rank."""

    picture: str
    setting: str
    model: str
    rank: int = 0

    @property
    def key(self) -> str:
        """The key of its cell without the seed."""
        rank = f"-rank{self.rank}" if self.rank else ""
        return f"{self.picture}-{self.model}-{self.setting}{rank}"

    @property
    def label(self) -> str:
        """As in tables and figures."""
        rank = f" R = {self.rank}" if self.rank else ""
        return f"{self.model.upper()}{rank}, {self.setting}"


CLEAN = [
    Dictionary(picture, "paper", model, MAIN_RANKS[picture] if model == "kfa" else 0)
    for picture, model in product(PICTURES, ("kfa", "bpfa"))
]
"""The dictionaries of the paper's first figure, left to right."""
BY_RANK = [Dictionary("barbara", "paper", "kfa", rank) for rank in OTHER_RANKS]
"""The second figure."""
DEFAULT = [one._replace(setting="default", rank=0) for one in CLEAN]
QUICK = (CLEAN[0], CLEAN[1])


class Dictionaries:
    """The dictionaries of Barbara and the castle, and the ranks of their atoms."""

    name = "dictionaries"
    title = "Dictionaries of clean pictures"
    what = "dictionaries of Barbara and the castle (KFA, BPFA; R = 1, 2, 4, 8) and the ranks of their atoms"
    datasets = ("barbara256", "castle")

    def cells(self, quick: bool, seeds: int | None) -> list[Cell]:
        """The paper's dictionaries, then those of the default setting; a quick run has Barbara's main two."""
        wanted = QUICK if quick else [*CLEAN, *BY_RANK, *DEFAULT]
        return [_cell(one, seed) for seed in range(1, (seeds or 1) + 1) for one in wanted]

    def run(self, cell: Cell, context: Context) -> dict[str, Any]:
        """Share of the atoms in use by rank, for every threshold, as ``ranks``; and the PSNR."""
        truth = context.load(cell.options["dataset"]).values
        measures, restoration = restore_and_score(
            truth, cell.options["inpaint"], context, seed=cell.options["seed"]
        )
        order = np.argsort(-restoration.usage, kind="stable")
        atoms = restoration.dictionary[order[restoration.usage[order] > 0]]
        keep_arrays(context.folder, cell.key, atoms=atoms.astype(np.float32))
        ranks = {name: shares_by_rank(atoms, *bound) for name, bound in THRESHOLDS.items()}
        return measures | {"ranks": ranks}

    def tables(self, results: Results) -> list[Table]:
        """One table per picture that has any cell."""
        tables = []
        for picture in PICTURES:
            wanted = [one for one in (*CLEAN, *BY_RANK, *DEFAULT) if one.picture == picture]
            runs = [run for one in wanted for run in over_seeds(results, one.key)]
            if runs:
                tables.append(_table(results, picture, wanted, runs))
        return tables

    def figure(self, results: Results, folder: Path) -> bytes | None:
        """All dictionaries of the first seed: the paper's two figures, then the default setting."""
        rows = []
        for wanted in (CLEAN, BY_RANK, DEFAULT):
            tiles: list[Tile | None] = []
            for one in wanted:
                key = f"{one.key}-seed1"
                arrays = read_arrays(folder, key) if key in results else None
                if arrays is not None and len(arrays["atoms"]):
                    colour = arrays["atoms"].ndim == 4
                    picture = atom_mosaic(arrays["atoms"], _SCALE, colour=colour)
                    tiles.append(Tile(f"{one.picture.capitalize()}, {one.label}", picture))
            if tiles:
                rows.append(tiles)
        subtitle = "atoms in use, the most used first; each is scaled on its own, grey is zero"
        return draw_gallery(self.title, subtitle, rows) if rows else None


EXPERIMENT: Experiment = Dictionaries()


def shares_by_rank(atoms: np.ndarray, threshold: float, relative: bool) -> dict[str, float]:
    """Share of the atoms at each rank that occurs, by the rank as text.

    Parameters
    ----------
    atoms : (K, m_1, .., m_T), T >= 2
    threshold : singular values above it count
    relative : whether it is relative to the largest singular value of the atom

    Returns
    -------
    dict
        For T = 2 of the matrix rank; beyond of the largest of the ranks of the T unfoldings (the multilinear
        rank), a lower bound of the tensor rank.
    """
    if len(atoms) == 0:
        return {}
    ranks = multilinear_ranks(atoms, threshold, relative).max(axis=1)
    values, counts = np.unique(ranks, return_counts=True)
    return {str(value): float(count / len(atoms)) for value, count in zip(values, counts)}


def multilinear_ranks(atoms: np.ndarray, threshold: float, relative: bool) -> np.ndarray:
    """(K, T) rank of every unfolding of every atom; see `shares_by_rank`."""
    ranks = []
    for mode in range(1, atoms.ndim):
        unfolded = np.moveaxis(atoms, mode, 1).reshape(len(atoms), atoms.shape[mode], -1)
        strength = np.linalg.svd(unfolded, compute_uv=False)
        bound = threshold * strength[:, :1] if relative else threshold
        ranks.append((strength > bound).sum(axis=1))
    return np.stack(ranks, axis=1)


def _cell(one: Dictionary, seed: int) -> Cell:
    paper = {name: value for name, value in PICTURES[one.picture].items() if name != "dataset"}
    options = {
        "setting": one.setting,
        "dataset": PICTURES[one.picture]["dataset"],
        "seed": seed,
        "inpaint": options_for(one.setting, one.model, **paper, rank=one.rank),
    }
    return Cell(f"{one.key}-seed{seed}", options)


def _table(results: Results, picture: str, wanted: list[Dictionary], runs: list[Any]) -> Table:
    highest = max(int(rank) for run in runs for shares in run["ranks"].values() for rank in shares)
    ranks = range(1, max(highest, FULL_RANK[picture]) + 1)
    rows: list[tuple[str | Score | None, ...]] = []
    for one in wanted:
        for threshold in THRESHOLDS:
            found = [run["ranks"][threshold] for run in over_seeds(results, one.key)]
            if found:
                shares = [_mean_share(found, [rank]) for rank in ranks] + [_mean_share(found, [4, 5])]
                rows.append((f"{one.label}, {threshold}", *(Score(share, digits=0) for share in shares)))
    notes = [
        "of the atoms in use; singular values above an absolute bound (data in units near 1) or above one "
        "relative to the largest count: a Gibbs sample has no exact zeros, so the bound decides",
    ]
    if picture == "barbara":
        rows += [(label, *_paper_row(shares, len(ranks))) for label, shares in PAPER.items()]
        notes.append(
            "the paper's threshold is 1e-6; it also has ranks from 2 to 7 for KFA, and for R = 8 most atoms "
            "below rank 5"
        )
    else:
        notes.append("the largest rank of the three unfoldings, a lower bound of the tensor rank")
    title = f"{picture.capitalize()}, share of the atoms at each rank in %"
    columns = ("", *(str(rank) for rank in ranks), "4 or 5")
    return Table(title, columns, rows, [*notes, *run_notes(runs)], unit=None)


def _mean_share(found: list[dict[str, float]], ranks: list[int]) -> float:
    """In percent, over the seeds."""
    return 100 * sum(shares.get(str(rank), 0.0) for shares in found for rank in ranks) / len(found)


def _paper_row(shares: dict[str, float], n_ranks: int) -> list[Score | None]:
    names = [*(str(rank) for rank in range(1, n_ranks + 1)), "4 or 5"]
    return [Score(shares[name], digits=0) if name in shares else None for name in names]
