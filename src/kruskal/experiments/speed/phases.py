"""Where the time of a sweep goes, beside the matrix product of the same shape."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

import numpy as np

from kruskal.experiments.speed.measure import PHASES, Product, TimedChain, local_memory
from kruskal.experiments.speed.plan import KEEPS, Plan
from kruskal.experiments.speed.problems import Problem, make_problem, mirrored, picture

_WARM_SIDE = 40


def phases(plan: Plan, thread_counts: Sequence[int], say: Callable[[str], None]) -> dict[str, Any]:
    """Time the phases on complete and on masked data, for every number of threads."""
    source = picture()
    values = mirrored(source.values, (plan.side,) * 2)
    rounds = plan.runs * plan.rounds
    result: dict[str, Any] = {"picture": source.name, "warm_sweeps": plan.warm_sweeps, "rounds": rounds}
    for kind, keep in KEEPS.items():
        sweeps = f"{plan.runs} x ({plan.warm_sweeps} + {plan.rounds}) sweeps"
        say(f"phases, {kind} data: {sweeps}, threads {list(thread_counts)}")
        compile_kernels(values, keep, plan, max(thread_counts))
        problem = make_problem(values, keep, plan.patch_shape, plan.n_atoms)
        result[kind] = measure(problem, thread_counts, plan.warm_sweeps, plan.rounds, plan.runs)
    return result


def compile_kernels(values: np.ndarray, keep: float, plan: Plan, threads: int = 1) -> None:
    """One sweep over a corner of the picture, so that no measured sweep compiles or loads a kernel."""
    corner = mirrored(values, [min(_WARM_SIDE, size) for size in values.shape])
    with TimedChain(make_problem(corner, keep, plan.patch_shape, 8), threads) as timed:
        for _ in range(6):  # the shrinkage is first drawn after five sweeps
            timed.advance()


def measure(
    problem: Problem, thread_counts: Sequence[int], warm: int, rounds: int, runs: int = 1
) -> dict[str, Any]:
    """Run one chain per number of threads side by side, sweep by sweep, and time the last ``rounds``.

    The chains draw the same numbers, so they do the same work at every moment; what disturbs the machine
    disturbs all of them and the matrix product alike. All of it is made ``runs`` times.
    """
    taken: dict[int, list[dict[str, float]]] = {threads: [] for threads in thread_counts}
    seen: dict[int, list[TimedChain]] = {threads: [] for threads in thread_counts}
    for run in range(runs):
        with ExitStack() as stack:
            chains = [stack.enter_context(TimedChain(problem, threads)) for threads in thread_counts]
            if run == 0:
                product = Product(problem, chains[0].engine.shards)
            for number in range(warm + rounds):
                for timed in chains if number % 2 else chains[::-1]:
                    seconds = timed.advance()
                    if number >= warm:
                        seconds["product"] = product.run(timed.threads)
                        taken[timed.threads].append(seconds)
            for timed in chains:
                seen[timed.threads].append(timed)
    first = chains[0]
    states = [timed.chain.now.state.dictionary for timed in chains]
    items, settings = problem.items, problem.settings
    result: dict[str, Any] = {
        "n_items": items.n_items,
        "n_entries": len(items.offset),
        "n_atoms": settings.n_atoms,
        "rank": settings.rank,
        "observed_share": first.engine.n_observed / (items.n_items * len(items.offset)),
        "active_per_item": first.chain.trace()["active_per_item"][-1],
        "identical_for_all_threads": all(np.array_equal(states[0], other) for other in states[1:]),
        "memory": local_memory(first.engine.shards),
        "threads": {},
    }
    pairs = items.n_items * settings.n_atoms
    for threads in thread_counts:
        summary = _summary(taken[threads], seen[threads], rounds, pairs)
        summary["product_seconds"], summary["product_way"] = product.fastest(threads)
        summary["codes_to_product"] = summary["phases"]["codes"] / summary["product_seconds"]
        result["threads"][str(threads)] = summary
    result["speed_up"] = _speed_up(result["threads"])
    return result


def _summary(
    taken: list[dict[str, float]], seen: list[TimedChain], rounds: int, pairs: int
) -> dict[str, Any]:
    """Best of every phase over the timed sweeps, and how the ratios come out from sweep to sweep."""
    best = {name: min(seconds[name] for seconds in taken) for name in PHASES}
    sweeps = [sum(seconds[name] for name in PHASES) for seconds in taken]
    start = min(timed.start_seconds for timed in seen)
    return {
        "phases": best,
        "sweep_seconds": min(sweeps),
        "sweep_seconds_median": median(sweeps),
        "run_seconds": [timed.start_seconds + sum(timed.sweep_seconds) for timed in seen],
        "run_sweeps": len(seen[0].sweep_seconds),
        "start_seconds": start,
        **seen[-1].cores(rounds),
        "codes_to_product_median": median(seconds["codes"] / seconds["product"] for seconds in taken),
        "atoms_to_codes": best["atoms"] / best["codes"],
        "atoms_to_codes_median": median(seconds["atoms"] / seconds["codes"] for seconds in taken),
        "pairs_per_second": pairs / best["codes"],
    }


def _speed_up(by_threads: dict[str, Any]) -> dict[str, Any]:
    """How much faster than one thread: a sweep, each phase of weight, the whole run with its start (median of
    all runs), and the matrix product, which tells what the machine itself gives."""
    if "1" not in by_threads:
        return {}
    one = by_threads["1"]
    return {
        threads: {
            "sweep": one["sweep_seconds"] / other["sweep_seconds"],
            "run": median(a / b for a, b in zip(one["run_seconds"], other["run_seconds"])),
            "codes": one["phases"]["codes"] / other["phases"]["codes"],
            "atoms": one["phases"]["atoms"] / other["phases"]["atoms"],
            "product": one["product_seconds"] / other["product_seconds"],
        }
        for threads, other in by_threads.items()
        if threads != "1"
    }
