"""How tables of measurements and the numbers in them are printed."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH = 170


def new_console() -> Console:
    """Standard output; without a terminal wide enough that no table is folded."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table whose first column is text and whose other columns are numbers."""
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        drawn.add_column(name, justify="right" if place else "left", no_wrap=place == 0)
    for row in rows:
        drawn.add_row(*(cell if isinstance(cell, str) else number(cell) for cell in row))
    console.print(drawn)


def number(value: float | None) -> str:
    """Three digits that count; thousands are separated."""
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds, with as many decimals as are worth reading."""
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def threads_of(number: int | str) -> str:
    """As "1 thread" or "2 threads"."""
    return f"{number} thread{'s' if str(number) != '1' else ''}"
