"""bench.png: seconds per sweep against N and against K, with the matrix product of the same shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kruskal.experiments.speed.console import threads_of
from kruskal.report.canvas import ACCENT, QUIET, SECOND, drawing_style, new_figure, place_axes, png_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"complete": ACCENT, "masked": SECOND}
_LABELS = {"complete": "all observed", "masked": "20 % observed"}
_PANELS = {"items": ("n_items", "Number of items N"), "atoms": ("n_atoms", "Number of atoms K")}


def draw(results: dict[str, Any]) -> bytes:
    """The picture as a PNG file; solid lines for the most threads, faint ones for a single thread."""
    growth = results["growth"]
    first, facts = growth["items"][0], results["machine"]
    subtitle = (
        f"{facts['cpu']}, {facts['cores']} cores; P = {first['n_entries']}, K = {first['n_atoms']} (left)"
    )
    if growth["atoms"]:
        subtitle += f", N = {growth['atoms'][0]['n_items']:,} (right)"
    with drawing_style():
        figure = new_figure(1440, 640, "Seconds per sweep", subtitle)
        for place, (axis, (field, label)) in enumerate(_PANELS.items()):
            axes = place_axes(figure, 84 + 690 * place, 140, 590, 420)
            _draw_panel(axes, growth[axis], field)
            axes.set_xlabel(label)
            axes.set_title(f"Against the {label[0].lower()}{label[1:]}")
            if place == 0 and axes.lines:
                axes.legend(loc="upper left")
        return png_bytes(figure)


def _draw_panel(axes: Axes, runs: list[dict[str, Any]], field: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, color=QUIET, alpha=0.15, linewidth=0.5)
    counts = sorted({run["threads"] for run in runs}, reverse=True)
    for threads in counts:
        most = threads == counts[0]
        plural = threads_of(threads)
        for kind, colour in _COLOURS.items():
            points = [run for run in runs if run["threads"] == threads and run["kind"] == kind]
            axes.plot(
                [run[field] for run in points], [run["sweep_seconds"] for run in points], "o-", color=colour,
                markersize=3, alpha=1.0 if most else 0.4, label=f"{_LABELS[kind]}, {plural}",
            )  # fmt: skip
        if most:
            points = [run for run in runs if run["threads"] == threads and run["kind"] == "complete"]
            axes.plot(
                [run[field] for run in points], [run["product_seconds"] for run in points], "--", color=QUIET,
                label=f"matrix product, {plural}",
            )  # fmt: skip
    axes.minorticks_off()
    sizes = sorted({run[field] for run in runs})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
