"""What a table says of its runs: the settings, the time they took, how honest the intervals are."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from kruskal.engines.progress_words import duration

_NOT_TOLD = ("array_shape", "model", "seed")


def run_notes(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Sentences about runs, of whatever they hold of ``settings``, ``seconds`` and ``coverage``."""
    runs = list(results)
    notes = []
    settings = [run["settings"] for run in runs if run.get("settings")]
    if settings:
        notes.append(f"settings: {describe_settings(settings)}")
    seconds = [run["seconds"] for run in runs if run.get("seconds") is not None]
    if seconds:
        notes.append(f"time: {duration(sum(seconds))} in all, the longest run {duration(max(seconds))}")
    shares = [run["coverage"] for run in runs if run.get("coverage") is not None]
    if shares:
        notes.append(
            f"mean ± 2·sqrt(std² + noise²) holds {100 * fmean(shares):.1f} % of the missing entries "
            f"(runs: {100 * min(shares):.1f} to {100 * max(shares):.1f} %)"
        )
    return notes


def describe_settings(settings: Iterable[Mapping[str, Any]]) -> str:
    """The options of several runs on one line; where they differ, all values.

    >>> describe_settings([{"patch_shape": [8, 8], "rank": 2}, {"patch_shape": [8, 8], "rank": 4}])
    'patch_shape 8x8, rank 2 or 4'
    """
    values: dict[str, dict[str, None]] = {}  # inner dictionaries as ordered sets
    for one in settings:
        for name, value in one.items():
            if name not in _NOT_TOLD:
                values.setdefault(name, {})[_word(value)] = None
    return ", ".join(f"{name} {' or '.join(words)}" for name, words in values.items())


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        whole = all(isinstance(part, int) for part in value)
        return "x".join(map(str, value)) if whole else f"({', '.join(_word(part) for part in value)})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
