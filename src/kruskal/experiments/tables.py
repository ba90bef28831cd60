"""Tables with ours, the paper's and the difference."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

DOUBTFUL = "?"
_LINES = "ours\npaper\ndifference"
_NOTE = f"{DOUBTFUL} the paper's number is doubtful, it is left out of the mean difference"


class Score(NamedTuple):
    """A number of ours beside the paper's; what is not known is None and shown as "-".

    Attributes
    ----------
    ours, paper : the two numbers
    doubtful : whether the paper's number is in doubt (it is marked, and no part of the mean difference)
    spread, paper_spread : standard deviations over seeds, if there are several
    digits : number of decimals that are shown
    """

    ours: float | None
    paper: float | None = None
    doubtful: bool = False
    spread: float | None = None
    paper_spread: float | None = None
    digits: int = 2

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Table:
    """A table of an experiment.

    Attributes
    ----------
    title : heading
    columns : names of the columns; the first is that of the row labels
    rows : a label, then one entry per column: text, a `Score`, a number of ours alone (`Score` without a
        paper's) or None for a gap
    notes : sentences below the table
    unit : unit of the mean difference (None: there is none, as the entries do not share a unit)
    by_row : whether every row has a mean difference of its own
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Score | None]]
    notes: Sequence[str] = ()
    unit: str | None = "dB"
    by_row: bool = False

    def scores(self) -> list[Score]:
        """All scores, row by row."""
        return [entry for row in self.rows for entry in row if isinstance(entry, Score)]

    def mean_differences(self) -> dict[str, dict[str, Any]]:
        """Mean and least of ours less the paper's, and how many there are, by the label of the row.

        Counted is what both have and what is not in doubt. The label is "" for the whole table, and nothing
        is there where nothing can be counted.
        """
        if self.unit is None:
            return {}
        groups = {str(row[0]): [row] for row in self.rows} if self.by_row else {"": self.rows}
        found = {label: _differences(rows) for label, rows in groups.items()}
        return {
            label: {"mean": fmean(values), "least": min(values), "counted": len(values)}
            for label, values in found.items()
            if values
        }

    def all_notes(self) -> list[str]:
        """The mean differences, what the mark means, and the table's own notes."""
        notes = []
        for label, found in self.mean_differences().items():
            cells = f"{found['counted']} cell{'s' if found['counted'] > 1 else ''}"
            notes.append(
                f"{label + ': ' if label else ''}mean difference over {cells} "
                f"{found['mean']:+.2f} {self.unit}, least {found['least']:+.2f}"
            )
        if any(score.doubtful for score in self.scores()):
            notes.append(_NOTE)
        return [*notes, *self.notes]

    def to_json(self) -> dict[str, Any]:
        """As plain values; a score becomes an object with ours, paper and difference."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [[_plain(entry) for entry in row] for row in self.rows],
            "unit": self.unit,
            "mean_differences": self.mean_differences(),
            "notes": self.all_notes(),
        }


def score_of(
    results: Mapping[str, Mapping[str, Any]],
    cell: str,
    paper: float | None = None,
    *,
    measure: str = "psnr",
    doubtful: bool = False,
    paper_spread: float | None = None,
    digits: int = 2,
) -> Score:
    """The mean of a measure over the seeds that are there of ``cell`` (a key without ``-seedN``)."""
    values = [value for result in over_seeds(results, cell) if (value := result.get(measure)) is not None]
    return Score(
        fmean(values) if values else None,
        paper,
        doubtful,
        stdev(values) if len(values) > 1 else None,
        paper_spread,
        digits,
    )


def over_seeds(results: Mapping[str, Mapping[str, Any]], cell: str) -> list[Mapping[str, Any]]:
    """The results of ``cell`` (a key without ``-seedN``) for all seeds that are there."""
    return [result for key, result in results.items() if re.fullmatch(re.escape(cell) + r"-seed\d+", key)]


def range_of(numbers: Sequence[int]) -> str:
    """The least and the largest, ``61-64``, or the number that all are."""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def layer_ranges(runs: Sequence[Mapping[str, Any]], depth: int | None = None) -> str | None:
    """The atoms of each layer (None: of all layers) over the runs, ``61-64+125``; None without runs."""
    layers = zip(*(run["atoms"][:depth] for run in runs), strict=True)
    return "+".join(range_of(numbers) for numbers in layers) or None


def show(console: Console, table: Table) -> None:
    """Print a table and its notes; scores that have a paper's number take three lines."""
    compared = any(score.paper is not None for score in table.scores())
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    drawn.add_column(escape(table.columns[0]), justify="left", no_wrap=True)
    if compared:
        drawn.add_column("", justify="left", no_wrap=True)
    for name in table.columns[1:]:
        drawn.add_column(escape(name), justify="right", no_wrap=True)
    for label, *entries in table.rows:
        # a row without scores, such as seconds, stays on one line
        lines = [_LINES if any(isinstance(entry, Score) for entry in entries) else ""] if compared else []
        drawn.add_row(_text(label, compared), *lines, *(_text(entry, compared) for entry in entries))
    console.print(table.title, style="bold", markup=False)
    console.print(drawn)
    for note in table.all_notes():
        console.print(note, markup=False)
    console.print()


def _differences(rows: Sequence[Sequence[str | Score | None]]) -> list[float]:
    scores = [entry for row in rows for entry in row if isinstance(entry, Score) and not entry.doubtful]
    return [score.difference for score in scores if score.difference is not None]


def _text(entry: str | Score | None, compared: bool) -> str:
    if not isinstance(entry, Score):
        return "-" if entry is None else escape(entry)
    ours = _number(entry.ours, entry.spread, entry.digits)
    if not compared:
        return ours
    paper = _number(entry.paper, entry.paper_spread, entry.digits) + DOUBTFUL * entry.doubtful
    difference = "-" if entry.difference is None else f"{entry.difference:+.{entry.digits}f}"
    return f"{ours}\n{paper}\n{difference}"


def _number(value: float | None, spread: float | None, digits: int) -> str:
    if value is None:
        return "-"
    return f"{value:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def _plain(entry: str | Score | None) -> Any:
    return entry._asdict() | {"difference": entry.difference} if isinstance(entry, Score) else entry
