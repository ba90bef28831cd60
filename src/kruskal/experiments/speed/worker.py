"""Measurements that want a process of their own: its peak memory is theirs, its caches are cold.

`call` starts one; it reads one JSON object from standard input and prints one on standard output.
"""

import json
import subprocess
import sys
import time
from statistics import median
from typing import Any

import numpy as np

from kruskal.data import corrupt
from kruskal.experiments.speed.measure import Product, TimedChain, local_memory, peak_memory
from kruskal.experiments.speed.plan import DAMAGE_SEED, Plan
from kruskal.experiments.speed.problems import make_problem, mirrored, picture, prepare, textured

_LAST = 3


class WorkerFailed(Exception):
    """A measurement that did not come to its end, in one sentence without any path."""


def call(task: str, request: dict[str, Any]) -> dict[str, Any]:
    """Do a task of `TASKS` in a new process and return its answer."""
    command = [sys.executable, "-m", "kruskal.experiments.speed.worker", task]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True)
    if done.returncode < 0:
        raise WorkerFailed(f"ended by signal {-done.returncode}, perhaps for want of memory")
    if done.returncode > 0:
        sys.stderr.write(done.stderr)
        raise WorkerFailed(f"failed with exit status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def growth(request: dict[str, Any]) -> dict[str, Any]:
    """Seconds per sweep, peak memory and matrix product of one size.

    The request holds n_items, n_atoms, patch_shape, keep, threads, sweeps and runs; it is part of the answer.
    Times are medians over the last sweeps of all runs: one short run tells more of the machine than of N.
    """
    source = textured(request["n_items"], request["patch_shape"])
    problem = make_problem(source.values, request["keep"], request["patch_shape"], request["n_atoms"])
    with TimedChain(problem, request["threads"]) as timed:
        phases = _last(timed, request["sweeps"])
        peak = peak_memory()  # of one chain, before the product, whose matrices no sampler holds
        product = Product(problem, timed.engine.shards)
        for _ in range(_LAST):
            product.run(timed.threads)
        seconds, way = product.fastest(timed.threads)
        memory = local_memory(timed.engine.shards)
    sweeps = [timed.sweep_seconds]
    for _ in range(request["runs"] - 1):
        with TimedChain(problem, request["threads"]) as again:
            phases += _last(again, request["sweeps"])
            sweeps.append(again.sweep_seconds)
    return request | {
        "array": source.name,
        "n_entries": len(problem.items.offset),
        "sweep_seconds": median(taken for run in sweeps for taken in run[-_LAST:]),
        "codes_seconds": median(taken["codes"] for taken in phases),
        "atoms_seconds": median(taken["atoms"] for taken in phases),
        "all_sweep_seconds": sweeps,
        "start_seconds": timed.start_seconds,
        **timed.cores(_LAST),
        "active_per_item": timed.chain.trace()["active_per_item"][-1],
        "peak_bytes": peak,
        "bytes_per_item": memory["bytes_per_item"],
        "beyond_codes_to_raw": memory["beyond_codes_to_raw"],
        "product_seconds": seconds,
        "product_way": way,
    }


def _last(timed: TimedChain, sweeps: int) -> list[dict[str, float]]:
    """Make so many sweeps; the phases of the last ones."""
    return [timed.advance() for _ in range(sweeps)][-_LAST:]


def quality(request: dict[str, Any]) -> dict[str, Any]:
    """Seconds of sampling until the picture with a fifth of its entries passes a PSNR.

    The clock runs from the damaged array on, so it includes the start; not compilation, which a short run on
    a corner has done, and not the computation of the PSNR. Two estimates are looked at after every sweep: the
    reassembled draw, and the mean of the later half of the draws, which is what a run of that length with
    half of it as burn-in would return.
    """
    from kruskal.experiments.speed.phases import compile_kernels
    from kruskal.report import psnr

    plan = Plan(**request["plan"])
    source = picture()
    values = mirrored(source.values, (plan.side,) * 2)
    compile_kernels(values, request["keep"], plan, request["threads"])
    damaged = corrupt(values, keep=request["keep"], seed=DAMAGE_SEED)
    began = time.perf_counter()
    problem = prepare(damaged, plan.patch_shape, plan.n_atoms)
    curve: list[dict[str, float]] = []
    draws: list[tuple[np.ndarray, np.ndarray]] = []  # weighted sum and weight of each draw
    reached: dict[str, Any] | None = None
    with TimedChain(problem, request["threads"]) as timed:
        clock = time.perf_counter() - began
        so_far = np.zeros(values.size), np.zeros(values.size)
        for sweep in range(1, plan.quality_sweeps + 1):
            timed.advance()
            clock += timed.sweep_seconds[-1]
            moments = timed.chain.now.moments
            draws.append((moments.total - so_far[0], moments.weight - so_far[1]))
            so_far = moments.total, moments.weight
            point = {"sweep": sweep, "seconds": clock}
            for name, kept in {"draw": draws[-1:], "mean": draws[sweep // 2 :]}.items():
                estimate = sum(total for total, _ in kept) / sum(weight for _, weight in kept)
                restored = np.clip(problem.scaling.inverse(estimate).reshape(values.shape), 0, 255)
                point[name] = psnr(restored, values)
                if reached is None and point[name] >= plan.target_psnr:
                    reached = {"seconds": clock, "sweep": sweep, "by": name}
            curve.append(point)
    peak = peak_memory()  # before the runs of other seeds
    return {
        "picture": source.name,
        "keep": request["keep"],
        "threads": request["threads"],
        "target_psnr": plan.target_psnr,
        "reached": reached,
        "run_sweeps": len(curve),
        "run_seconds": clock,
        "start_seconds": timed.start_seconds,
        **timed.cores(len(curve)),
        "final_psnr": curve[-1]["mean"],
        "peak_bytes": peak,
        "curve": curve,
        "psnr_of_seeds": {seed: _restored(values, seed, request, plan) for seed in plan.quality_seeds},
    }


def _restored(values: np.ndarray, seed: int, request: dict[str, Any], plan: Plan) -> float:
    """PSNR of a run of `kruskal.inpaint` that the next version can be compared with: no rule decides."""
    from kruskal.report import psnr
    from kruskal.restore import inpaint

    damaged = corrupt(values, keep=request["keep"], seed=seed)
    result = inpaint(
        damaged.values, damaged.observed, patch_shape=plan.patch_shape, stride=1, n_atoms=plan.n_atoms,
        rank=2, sweeps=plan.quality_sweeps, burn_in=plan.quality_sweeps // 2, annealing=0, auto=False,
        seed=seed, threads=request["threads"],
    )  # fmt: skip
    return psnr(np.clip(result.mean, 0, 255), values)


def images(request: dict[str, Any]) -> dict[str, Any]:
    """Whole images beside dense convolutions; the request holds the plan and threads."""
    from kruskal.experiments.speed.images import images as measure

    return measure(Plan(**request["plan"]), request["threads"])


TASKS = {"growth": growth, "quality": quality, "images": images}


if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](json.load(sys.stdin))))
