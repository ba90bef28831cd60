"""How time and memory grow with the number of items N, of atoms K and of entries of a patch P."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from kruskal.experiments.speed.console import threads_of
from kruskal.experiments.speed.plan import KEEPS, Plan
from kruskal.experiments.speed.problems import n_entries
from kruskal.experiments.speed.worker import WorkerFailed, call

AXES = {"items": "n_items", "atoms": "n_atoms", "entries": "n_entries"}
LARGE = 60_000
"""From so many items on time must be linear in their number."""


def growth(plan: Plan, thread_counts: Sequence[int], say: Callable[[str], None]) -> dict[str, Any]:
    """Measure every size in a process of its own; one that fails is named and left out of the exponents."""
    runs: dict[tuple, dict[str, Any]] = {}
    result: dict[str, Any] = {"failed": []}
    threads_used = thread_counts if plan.growth_threads == "all" else [max(thread_counts)]
    for axis, requests in _requests(plan, threads_used).items():
        done = []
        for number, request in enumerate(requests, 1):
            key = tuple(map(str, request.values()))
            if key not in runs:
                say(f"growth, {axis} {number} of {len(requests)}: {_describe(request)}")
                try:
                    runs[key] = call("growth", request)
                except WorkerFailed as error:
                    runs[key] = {}
                    result["failed"].append(f"{_describe(request)}: {error}")
            if runs[key]:
                done.append(runs[key])
        result[axis] = done
    result["exponents"] = exponents(result)
    return result


def _requests(plan: Plan, thread_counts: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    def requests(sizes: Iterable[tuple[int, int, tuple[int, ...]]], runs: int = 1) -> list[dict[str, Any]]:
        return [
            {
                "n_items": n_items, "n_atoms": n_atoms, "patch_shape": list(patch), "keep": keep,
                "kind": kind, "threads": threads, "sweeps": plan.growth_sweeps, "runs": runs,
            }
            for threads in thread_counts
            for kind, keep in KEEPS.items()
            for n_items, n_atoms, patch in sizes
        ]  # fmt: skip

    patch, n_atoms = plan.patch_shape, plan.n_atoms
    return {
        "items": requests([(n_items, n_atoms, patch) for n_items in plan.item_counts], plan.growth_runs),
        "atoms": requests([(plan.atom_items, count, patch) for count in plan.atom_counts]),
        "entries": requests([(plan.patch_items, n_atoms, shape) for shape in plan.patch_shapes]),
    }


def _describe(request: dict[str, Any]) -> str:
    patch = request["patch_shape"]
    return (
        f"N={request['n_items']:,} K={request['n_atoms']} P={n_entries(patch)} "
        f"({'x'.join(map(str, patch))}), "
        f"{request['kind']}, {threads_of(request['threads'])}"
    )


def exponents(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Growth exponents of the time per sweep for every axis, kind of data and number of threads.

    Along N there are two: over all sizes, and from 60,000 items on.
    """
    found = []
    for axis, field in AXES.items():
        runs = results.get(axis, [])
        for threads in sorted({run["threads"] for run in runs}):
            for kind in KEEPS:
                chosen = [run for run in runs if run["threads"] == threads and run["kind"] == kind]
                ranges = {"all": 0, "large": LARGE} if axis == "items" else {"all": 0}
                for name, least in ranges.items():
                    points = [run for run in chosen if run[field] >= least]
                    sizes = [run[field] for run in points]
                    found.append(
                        {
                            "axis": axis, "range": name, "kind": kind, "threads": threads,
                            "sizes": sizes,
                            "sweep": exponent(sizes, [run["sweep_seconds"] for run in points]),
                            "codes": exponent(sizes, [run["codes_seconds"] for run in points]),
                        }
                    )  # fmt: skip
    return found


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """b of seconds ~ sizes^b by least squares on logarithms; None for fewer than two different sizes."""
    if len(set(sizes)) < 2:
        return None
    x = np.log(np.asarray(sizes, float))
    y = np.log(np.asarray(seconds, float))
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return slope if math.isfinite(slope) else None
