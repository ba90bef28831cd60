"""The speed of the sampler: what `kruskal bench` measures, section by section, and what it writes."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kruskal.data import atomic_path
from kruskal.experiments.speed.goals import goals
from kruskal.experiments.speed.growth import growth
from kruskal.experiments.speed.machine import machine
from kruskal.experiments.speed.online import online
from kruskal.experiments.speed.peers import peers
from kruskal.experiments.speed.phases import phases
from kruskal.experiments.speed.plan import KEEPS, Plan
from kruskal.experiments.speed.plot import draw
from kruskal.experiments.speed.startup import startup
from kruskal.experiments.speed.worker import WorkerFailed, call

JSON_NAME, PLOT_NAME = "bench.json", "bench.png"
SECTIONS = ("startup", "phases", "quality", "growth", "images", "online", "peers")


def run(
    plan: Plan, thread_counts: Sequence[int], say: Callable[[str], None], only: Sequence[str] = SECTIONS
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure one section after the other; yield its name and all results so far.

    Parameters
    ----------
    plan : the sizes
    thread_counts : numbers of threads that are compared
    say : told what is being measured now, since some of it takes minutes
    only : names of the sections to measure
    """
    most = max(thread_counts)
    results: dict[str, Any] = {
        "plan": asdict(plan),
        "threads": list(thread_counts),
        "finished": False,
        "machine": machine(),
    }
    sections: dict[str, Callable[[], dict[str, Any]]] = {
        "machine": lambda: results["machine"],
        "startup": lambda: startup(plan.startup_repeats, say),
        "phases": lambda: phases(plan, thread_counts, say),
        "quality": lambda: _quality(plan, most, say),
        "growth": lambda: growth(plan, thread_counts, say),
        "images": lambda: _images(plan, most, say),
        "online": lambda: online(plan, most, say),
        "peers": lambda: peers(plan, most, say),
    }
    for name in ("machine", *(name for name in SECTIONS if name in only)):
        results[name] = sections[name]()
        yield name, results
    results["goals"] = [goal.to_json() for goal in goals(results)]
    results["finished"] = True
    yield "goals", results


def _quality(plan: Plan, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    say(f"quality: {plan.quality_sweeps} sweeps with a fifth of the entries, {threads} threads")
    return _alone("quality", {"plan": asdict(plan), "keep": KEEPS["masked"], "threads": threads})


def _images(plan: Plan, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    say(
        f"images: {plan.image_sweeps} sweeps of CKFA over {plan.n_images:,} images and {plan.n_pictures} "
        f"larger ones, and training of DGDN on {plan.n_trained:,}"
    )
    return _alone("images", {"plan": asdict(plan), "threads": threads})


def _alone(task: str, request: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own, whose peak memory is that of the task."""
    try:
        return call(task, request)
    except WorkerFailed as error:
        return {"failed": str(error)}


def save(folder: Path, results: dict[str, Any]) -> None:
    """Write bench.json, and bench.png once there is something to draw, each aside and renamed."""
    folder.mkdir(exist_ok=True)
    with atomic_path(folder / JSON_NAME) as temporary:
        temporary.write_text(as_json(results) + "\n")
    if results.get("growth", {}).get("items"):
        with atomic_path(folder / PLOT_NAME) as temporary:
            temporary.write_bytes(draw(results))


def as_json(results: dict[str, Any]) -> str:
    """All results as one JSON object."""
    return json.dumps(results, indent=1, allow_nan=False)
