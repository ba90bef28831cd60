"""One sweep of MGP-CP beside one iteration of tensorly's masked decomposition, on the same array."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kruskal.experiments.speed.plan import DAMAGE_SEED, ENGINE_SEED, Plan
from kruskal.restore import inpaint

_TRUE_RANK = 10
_KEEP = 0.1
# sweeps; what lies between them is timed, without the start
_SHORT, _LONG = 2, 8


def decomposition(plan: Plan, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Seconds of a sweep and of an iteration, a tenth of a cube observed, ``plan.n_terms`` terms."""
    random = np.random.default_rng(DAMAGE_SEED)
    side, rank = plan.decomposed_side, plan.n_terms
    factors = [random.standard_normal((side, _TRUE_RANK)) for _ in range(3)]
    values = np.einsum("ir,jr,kr->ijk", *factors)
    observed = random.random(values.shape) < _KEEP
    values = np.where(observed, values, 0.0)
    say(f"peers: MGP-CP and tensorly on {side}x{side}x{side}, {_KEEP:.0%} observed, {rank} terms")

    def ours(sweeps: int) -> None:
        inpaint(
            values, observed, model="mgp-cp", rank=rank, sweeps=sweeps, burn_in=sweeps - 1,
            threads=threads, seed=ENGINE_SEED,
        )  # fmt: skip

    def theirs(iterations: int) -> None:
        from tensorly.decomposition import parafac

        mask = observed.astype(float)
        parafac(values, rank, n_iter_max=iterations, init="random", random_state=0, mask=mask, tol=0)

    ours(_SHORT)  # compiles
    sweep = _seconds_of_one(ours)
    with threadpool_limits(limits=threads):
        iteration = _seconds_of_one(theirs)
    return {
        "shape": [side] * 3,
        "n_terms": rank,
        "observed_share": float(observed.mean()),
        "sweep_seconds": sweep,
        "iteration_seconds": iteration,
        "sweep_to_iteration": sweep / iteration,
        "threads": threads,
    }


def _seconds_of_one(run: Callable[[int], None]) -> float:
    """Best of two, so that a disturbance does not count."""
    taken = dict.fromkeys((_SHORT, _LONG), np.inf)
    for _ in range(2):
        for count in taken:
            began = time.perf_counter()
            run(count)
            taken[count] = min(taken[count], time.perf_counter() - began)
    return max(float(taken[_LONG] - taken[_SHORT]) / (_LONG - _SHORT), 1e-9)
