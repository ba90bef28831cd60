"""A tiny experiment, and a small world for the real ones."""

from pathlib import Path

import numpy as np

from kruskal import restore
from kruskal.data import datasets
from kruskal.data.metadata import Loaded, Metadata
from kruskal.experiments.cells import Cell, Context
from kruskal.experiments.tables import Table, score_of

PNG = b"\x89PNG\r\n\x1a\n"


class Squares:
    """Three cells per seed that square a number; ``trouble`` says what happens instead, by key."""

    name = "squares"
    title = "Squares"
    what = "squares of small numbers"
    datasets = ()

    def __init__(self, trouble=None, factor=1):
        self.trouble = trouble or {}
        self.factor = factor
        self.runs = []

    def cells(self, quick, seeds):
        numbers = (2,) if quick else (2, 3, 4)
        return [
            Cell(
                f"{setting}-n{number}-seed{seed}",
                {"setting": setting, "number": (number, self.factor), "seed": seed},
            )
            for seed in range(1, (seeds or 1) + 1)
            for setting, number in (*(("default", number) for number in numbers), ("paper", 2))
        ]

    def run(self, cell, context):
        self.runs.append(cell.key)
        context.progress.note(cell.key)
        if cell.key in self.trouble:
            raise self.trouble[cell.key]
        number, factor = cell.options["number"]
        return {"psnr": float(factor * number**2), "shape": (number, 1), "threads": context.threads}

    def tables(self, results):
        scores = [score_of(results, f"default-n{n}", 5.0 * n, doubtful=n == 4) for n in (2, 3, 4)]
        return [Table("Squares", ("", "2", "3", "4"), [("squares", *scores)])]

    def figure(self, results, folder):
        assert folder.is_dir() and results
        return PNG + b"squares"


def make_context(folder: Path) -> Context:
    """A context of one thread that says nothing."""
    return Context(folder, threads=1)


class Listener:
    """Remembers what is said."""

    def __init__(self):
        self.lines = []

    def __call__(self, text):
        self.lines.append(text)

    def heard(self, part):
        return [line for line in self.lines if part in line]


def small_arrays():
    """Textured stand-ins for the pictures, by the names of the data sets."""
    rows, columns = np.mgrid[:24, :22]
    grey = np.rint(120 + 60 * np.sin(rows / 3) + 50 * np.cos(columns / 2)).astype(np.uint8)
    return {"barbara256": grey, "castle": np.stack([grey, grey[::-1], 255 - grey], axis=-1)}


def short_runs(monkeypatch):
    """Load small arrays and make short chains; returns a list of the options of every chain.

    Nothing but the length and the size of the dictionary is changed.
    """
    calls = []
    inpaint = restore.inpaint

    def load(name):
        values = small_arrays()[name]
        return Loaded(values, None, Metadata("picture", ".png", values.dtype, values.shape))

    def short(x, **options):
        calls.append(options)
        length = "epochs" if "online" in options else "sweeps"
        bounded = options | {length: 3, "burn_in": 1}
        if options["model"] != "mgp-cp":
            bounded["n_atoms"] = min(8, options.get("n_atoms", 8))
        return inpaint(x, **bounded)

    monkeypatch.setattr(datasets, "load", load)
    monkeypatch.setattr(datasets, "locate", lambda name: Path(name))
    monkeypatch.setattr(restore, "inpaint", short)
    return calls
