"""What the sampler found out about itself: ranks, usage and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kruskal.report.canvas import ACCENT, FAINT, HEADING, INK, QUIET, SECOND, new_figure, place_axes
from kruskal.report.result import Learned, order_by_usage, used_ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELS = {
    "noise_std": "Noise standard deviation",
    "active_per_item": "Active atoms per item",
    "atoms_used": "Atoms in use",
    "alpha": "Shrinkage α",
    "code_std": "Code standard deviation",
    "rank": "Rank",
    "log_joint": "Log joint density",
}
_MAY_BE_LOGARITHMIC = frozenset({"noise_std", "active_per_item", "alpha", "code_std"})
_LOGARITHMIC_RATIO = 20
_ABBREVIATED = 10_000
_LEFT, _WIDTH, _HEIGHT, _GAP_ACROSS, _GAP_DOWN = 84, 396, 230, 84, 96
_COLUMNS = 3
_MOST_LABELLED = 16


def draw_ranks(result: Learned) -> Figure:
    """Draw the histogram of the ranks of the used atoms and the usage of all of them in falling order.

    Parameters
    ----------
    result : Learned
        A restoration.

    Returns
    -------
    matplotlib.figure.Figure
    """
    usage = np.asarray(result.usage, dtype=float)[order_by_usage(result)]
    ranks = used_ranks(result)
    subtitle = f"{usage.size} atoms in use" if usage.size else "No atom is in use"
    if ranks.size:
        subtitle += f"; median rank {np.median(ranks):g}, largest {ranks.max()}"
    elif usage.size:
        subtitle += "; the rank of such atoms is not defined"
    figure = new_figure(1440, 600, "Ranks and usage", subtitle)
    limit = result.settings.get("rank")
    _draw_histogram(place_axes(figure, 84, 150, 590, 370), ranks, limit if isinstance(limit, int) else 0)

    axes = place_axes(figure, 790, 150, 590, 370)
    places = np.arange(1, usage.size + 1)
    axes.fill_between(places, 100 * usage, color=ACCENT, alpha=0.18, linewidth=0)
    axes.plot(places, 100 * usage, color=ACCENT)
    axes.set_title("Share of the items that use an atom, %")
    axes.set_xlabel("Atom, most used first")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=1, right=max(usage.size, 2))
    _whole_numbers(axes, vertical=False)
    return figure


def draw_traces(result: Learned) -> Figure | None:
    """Draw every trace over the sweeps, with the burn-in shaded.

    Parameters
    ----------
    result : Learned
        A restoration.

    Returns
    -------
    matplotlib.figure.Figure or None
        None when nothing was traced.
    """
    traces = {name: np.atleast_1d(np.asarray(trace, dtype=float)) for name, trace in result.trace.items()}
    names = [name for name in _LABELS if name in traces] + [name for name in traces if name not in _LABELS]
    names = [name for name in names if np.isfinite(traces[name]).any()]
    if not names:
        return None
    burn_in = result.settings.get("burn_in")
    per_sweep, unit = result.settings.get("batches", 1), "sweep"
    if result.settings.get("online"):
        unit = "visit to a batch"
    burn_in = burn_in * per_sweep if isinstance(burn_in, int) else 0
    n_sweeps = max(traces[name].size for name in names)

    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    width = _LEFT + max(columns, 2) * (_WIDTH + _GAP_ACROSS) - 24
    height = HEADING + 40 + rows * (_HEIGHT + _GAP_DOWN)
    subtitle = f"One value per {unit}, {n_sweeps} in all"
    if burn_in:
        subtitle += f"; the first {burn_in} (shaded) are the burn-in and not kept"
    figure = new_figure(width, height, "Traces", subtitle)
    for place, name in enumerate(names):
        row, column = divmod(place, columns)
        left = _LEFT + column * (_WIDTH + _GAP_ACROSS)
        top = HEADING + 40 + row * (_HEIGHT + _GAP_DOWN)
        axes = place_axes(figure, left, top, _WIDTH, _HEIGHT)
        _draw_trace(axes, name, traces[name], burn_in)
        axes.set_xlim(1, max(n_sweeps, 2))
        if place + columns >= len(names):
            axes.set_xlabel(unit.capitalize())
    return figure


def _draw_histogram(axes: Axes, ranks: NDArray[np.intp], limit: int) -> None:
    """Draw one bar per rank, up to the largest possible one; an axis with few bars has a number on each."""
    counts = np.bincount(ranks, minlength=2)
    largest = max(len(counts) - 1, limit)
    first = 0 if counts[0] else 1
    bars = axes.bar(np.arange(len(counts)), counts, width=0.8, color=ACCENT)
    axes.set_xlim(first - 0.6, largest + 0.6)
    axes.set_ylim(0, 1.1 * max(counts.max(), 1))
    axes.set_title("Atoms of each rank")
    axes.set_xlabel("Rank")
    _whole_numbers(axes, vertical=False)
    if largest - first < _MOST_LABELLED:
        axes.bar_label(
            bars, [str(count) if count else "" for count in counts], padding=2, size=7, color=QUIET
        )
        axes.set_xticks(range(first, largest + 1))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
    else:
        _whole_numbers(axes, vertical=True)


def _draw_trace(axes: Axes, name: str, trace: NDArray[Any], burn_in: int) -> None:
    """Draw one trace, shape (n_sweeps,), and write its last value at its end."""
    from matplotlib.ticker import EngFormatter

    sweeps = np.arange(1, trace.size + 1)
    finite = np.isfinite(trace)
    if burn_in:
        axes.axvspan(0.5, burn_in + 0.5, color=FAINT, alpha=0.45, linewidth=0)
    axes.plot(sweeps, np.where(finite, trace, np.nan), color=ACCENT)
    last = np.flatnonzero(finite)[-1]
    axes.plot(sweeps[last], trace[last], "o", color=SECOND, markersize=3, clip_on=False)
    axes.set_title(_LABELS.get(name, name.replace("_", " ").capitalize()), color=INK)
    axes.set_title(_short_number(trace[last]), loc="right", color=SECOND, size=8)
    smallest, largest = trace[finite].min(), trace[finite].max()
    if name in _MAY_BE_LOGARITHMIC and smallest > 0 and largest > _LOGARITHMIC_RATIO * smallest:
        axes.set_yscale("log")
    elif name == "atoms_used":
        _whole_numbers(axes, vertical=True)
    else:
        axes.locator_params(axis="y", nbins=4)
        if max(abs(smallest), abs(largest)) >= _ABBREVIATED:
            axes.yaxis.set_major_formatter(EngFormatter())
    _whole_numbers(axes, vertical=False)


def _short_number(value: float) -> str:
    """Return a number with three digits that count, in the notation of the tick labels."""
    from matplotlib.ticker import EngFormatter

    if abs(value) >= _ABBREVIATED:
        return EngFormatter(places=2)(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _whole_numbers(axes: Axes, vertical: bool) -> None:
    """Allow ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis = axes.yaxis if vertical else axes.xaxis
    axis.set_major_locator(MaxNLocator(nbins=6, integer=True))
