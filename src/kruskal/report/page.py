"""The report: one HTML file that holds everything and asks the network for nothing."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import atomic_path
from kruskal.errors import InputError
from kruskal.report.metrics import INTERVAL, INTERVAL_STD
from kruskal.report.page_style import STYLE
from kruskal.report.result import Result, order_by_usage, used_ranks

_SETS = {"": "All entries", "_observed": "Observed", "_missing": "Missing"}
_MEASURES = {
    "psnr": "PSNR, dB",
    "ssim": "SSIM",
    "rrse": "RRSE",
    "coverage": f"Missing within {INTERVAL}",
    "coverage_std": f"Missing within {INTERVAL_STD}",
}
_CAPTIONS = {
    "restoration": "What was given (missing entries are blue, missing single colours black), what the model "
    "makes of it and, where it is known, the truth; all on one scale.",
    "uncertainty": "Bright places are those the model is unsure about. With a reference they should be the "
    "places of large error, and the histogram should follow the curve; without one, the difference between "
    "data and restoration should look like noise without structure.",
    "dictionary": "The patterns the data are built from, the most used first. Each is scaled on its own; "
    "grey is zero, and the sign is arbitrary. The slices of atoms of higher order lie side by side.",
    "ranks": "How many Kruskal terms the atoms need (few means simple, separable patterns), and how quickly "
    "the usage falls from one atom to the next: if it does not fall to almost nothing, more atoms may help.",
    "traces": "The sampler at work. After the shaded burn-in the curves should fluctuate around a level; a "
    "curve that still climbs or falls asks for more sweeps.",
}


def write_report(
    path: str | Path,
    result: Result,
    scores: Mapping[str, float | None] | None,
    figures: Sequence[str | Path],
    title: str,
    command: str | None = None,
    *,
    seconds: float | None = None,
) -> Path:
    """Write a report on a restoration.

    Parameters
    ----------
    path : str or Path
        The HTML file; its folder must exist.
    result : Result
        A restoration.
    scores : mapping, optional
        What `kruskal.report.scores` found, when there is a reference; the coverage of the missing entries may
        be added as "coverage" and, without the noise, "coverage_std"; other keys are listed by their name.
    figures : sequence of str or Path
        PNG files, embedded in this order, usually from `kruskal.report.write_figures`.
    title : str
        Heading of the page.
    command : str, optional
        The command that made the result.
    seconds : float, optional
        How long it took; by default `result.seconds` when that exists.

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise InputError(f"the report cannot go to {path}, because its folder does not exist.")
    if seconds is None:
        seconds = getattr(result, "seconds", None)
    sections = [
        _headline(result, scores or {}, seconds),
        _notes(getattr(result, "notes", ())),
        _score_table(scores or {}),
        *(_figure(Path(figure)) for figure in figures),
        _settings_table(result),
        f"<h2>Command</h2>\n<pre>{escape(command)}</pre>" if command else "",
    ]
    with atomic_path(path) as temporary:
        # a file name in the title or the command may hold bytes that are no text
        temporary.write_text(_page(title, sections), encoding="utf-8", errors="backslashreplace")
    return path


def _page(title: str, sections: list[str]) -> str:
    """Return the whole page; it refers to nothing outside itself."""
    from kruskal import __version__

    body = "\n".join(section for section in sections if section)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
{body}
<footer>kruskal {escape(__version__)}</footer>
</main>
</body>
</html>
"""


def _headline(result: Result, scores: Mapping[str, float | None], seconds: float | None) -> str:
    """Return the numbers one looks for first."""
    ranks = used_ranks(result)
    numbers = []
    for name, label in _MEASURES.items():
        if name in scores:
            numbers.append((label, _number(name, scores[name])))
    numbers.append(("Noise, standard deviation", f"{result.noise_std:.3g}"))
    if "rank" in result.trace:
        numbers.append(("Rank", f"{result.trace['rank'][-1]:.0f}"))
    numbers.append(
        ("Atoms in use", f"{order_by_usage(result).size} <small>of {len(result.dictionary)}</small>")
    )
    if ranks.size:
        numbers.append(("Median rank", f"{np.median(ranks):g} <small>largest {ranks.max()}</small>"))
    numbers.append(("Items", f"{result.n_items:,}"))
    if seconds is not None:
        numbers.append(("Seconds", f"{seconds:.3g}" if seconds < 100 else f"{seconds:,.0f}"))
    cards = "\n".join(f"<div><dt>{label}</dt><dd>{number}</dd></div>" for label, number in numbers)
    return f'<dl class="headline">\n{cards}\n</dl>'


def _notes(notes: Sequence[str]) -> str:
    """Return what is doubtful, as a list; nothing if there is nothing to say."""
    rows = "\n".join(f"<li>{escape(note[:1].upper() + note[1:])}.</li>" for note in notes)
    return f"<h2>To know about this result</h2>\n<ul>\n{rows}\n</ul>" if notes else ""


def _score_table(scores: Mapping[str, float | None]) -> str:
    """Return a table with a row for each measure and a column for each set of entries."""
    measures: list[str] = []
    for key in scores:
        name = key.removesuffix("_observed").removesuffix("_missing")
        if name not in measures and not name.startswith("coverage"):
            measures.append(name)
    if not measures:
        return ""
    rows = []
    for name in measures:
        cells = "".join(f"<td>{_number(name, scores.get(name + suffix))}</td>" for suffix in _SETS)
        rows.append(f'<tr><th scope="row">{escape(_MEASURES.get(name, name))}</th>{cells}</tr>')
    heads = "".join(f'<th scope="col">{label}</th>' for label in _SETS.values())
    return (
        '<h2>Against the reference</h2>\n<table class="numbers">\n'
        f"<thead><tr><th></th>{heads}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table>"
    )


def _figure(path: Path) -> str:
    """Return a picture that carries its own bytes, with a sentence on how to read it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"the figure {path} cannot be read ({error.strerror}).") from error
    encoded = base64.b64encode(content).decode("ascii")
    caption = _CAPTIONS.get(path.stem, "")
    caption = f"\n<figcaption>{caption}</figcaption>" if caption else ""
    name = escape(path.stem.replace("_", " ").capitalize())
    return f'<figure>\n<img alt="{name}" src="data:image/png;base64,{encoded}">{caption}\n</figure>'


def _settings_table(result: Result) -> str:
    options = [(name.replace("_", " "), _setting(name, value)) for name, value in result.settings.items()]
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in options
    )
    return f"<h2>Settings</h2>\n<table>\n<tbody>\n{rows}\n</tbody>\n</table>" if rows else ""


def _setting(name: str, value: Any) -> str:
    """Return an option as text: shapes and strides with crosses, other lists with commas."""
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        between = " × " if name.endswith(("shape", "stride")) else ", "
        return between.join(str(part) for part in value)
    return str(value)


def _number(name: str, value: float | None) -> str:
    """Return a score in the digits that are usual for it; None (an empty set, or infinity) is a dash."""
    if value is None or not np.isfinite(value):
        return "–"
    if name.startswith("psnr"):
        return f"{value:.2f}"
    if name.startswith("coverage"):
        return f"{100 * value:.1f} %"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.4g}"
