"""Time to a given quality on a large picture: learning batch by batch beside full sweeps."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kruskal.data import Corrupted, corrupt, datasets
from kruskal.errors import InputError
from kruskal.experiments.speed.plan import DAMAGE_SEED, ENGINE_SEED, Plan
from kruskal.experiments.speed.problems import Source, mirrored, picture
from kruskal.report import psnr
from kruskal.restore import inpaint

_KEEPS = (0.2, 0.5)
_BATCHES = {"online": "exact", "batch_size": 20_000}
_WARM_SIDE = 40


def online(plan: Plan, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Seconds and PSNR of whole restorations of growing length, in batches and by full sweeps."""
    source = _large_picture(plan.online_side)
    result: dict[str, Any] = {
        "picture": source.name,
        "side": plan.online_side,
        "threads": threads,
        "runs": [],
    }
    corner = source._replace(values=source.values[:_WARM_SIDE, :_WARM_SIDE])
    for keep in _KEEPS:
        say(f"online: {keep:.0%} observed, epochs {plan.online_epochs} and sweeps {plan.online_sweeps}")
        _restore(corner, keep, threads, epochs=2, **_BATCHES)  # compiles
        _restore(corner, keep, threads, sweeps=2)
        batches = [
            _restore(source, keep, threads, epochs=number, **_BATCHES) for number in plan.online_epochs
        ]
        sweeps = [_restore(source, keep, threads, sweeps=number) for number in plan.online_sweeps]
        compared = [one | _beside(one, sweeps) for one in batches]
        result["runs"].append({"keep": keep, "batches": compared, "sweeps": sweeps})
    return result


def _large_picture(side: int) -> Source:
    """Barbara in its larger size where it is found, else a picture that is continued by its mirror images."""
    try:
        source = Source(datasets.load("barbara512").values, "barbara512")
    except InputError:
        source = picture()
    return source._replace(values=mirrored(source.values, (side, side)))


def _restore(source: Source, keep: float, threads: int, **length: Any) -> dict[str, Any]:
    """Restore the picture in the paper's setting from all patches; the last third of the run is averaged."""
    damaged: Corrupted = corrupt(source.values, keep=keep, seed=DAMAGE_SEED)
    number = length.get("epochs") or length["sweeps"]
    burn_in = number - max(1, number // 3)
    found = inpaint(
        *damaged, setting="paper", stride=1, burn_in=burn_in, seed=ENGINE_SEED, threads=threads, **length
    )
    reached = psnr(np.clip(found.mean, 0, 255), source.values, peak=255)
    return {"number": number, "seconds": found.seconds, "psnr": reached}


def _beside(one: dict[str, Any], sweeps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Seconds of full sweeps to the same PSNR, interpolated; the longest if none is there."""
    better = [run["psnr"] >= one["psnr"] for run in sweeps]
    if any(better):
        first = better.index(True)  # interpolated from the run before, if there is one
        around = sweeps[max(0, first - 1) : first + 1]
        reached, took = ([run[what] for run in around] for what in ("psnr", "seconds"))
        seconds = float(np.interp(one["psnr"], reached, took))
    else:
        seconds = max(run["seconds"] for run in sweeps)
    return {"sweep_seconds": seconds, "reached": any(better), "to_sweeps": one["seconds"] / seconds}
