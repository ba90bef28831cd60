"""Timing one chain: sweeps by phase, the matrix product beside them, and the memory of the local state."""

import copy
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kruskal.engines.chain import Chain
from kruskal.engines.threads import ThreadEngine
from kruskal.experiments.speed.plan import ENGINE_SEED
from kruskal.experiments.speed.problems import Problem
from kruskal.gibbs.local import Shard
from kruskal.models import Model
from kruskal.models.base import SweepReport

PHASES = ("codes", "slabs", "scalars", "atoms", "assembly")
_METHODS = {
    "draw_codes": "codes",
    "draw_slabs": "slabs",
    "draw_atoms": "atoms",
}
_MOST_ROWS = 65_536
_CALLS = 2
_CALM = 0.1  # BLAS threads spin for a while after a call and would take a core from what is timed next
ONE_CALL, ON_A_POOL, BLAS_THREADS = "one BLAS call", "shards on a pool", "BLAS threads"


class TimedChain:
    """A chain that tells how long every phase of a sweep took; a context manager.

    The model's own methods are timed from outside, so that what is measured is what a user runs: the scalars
    are what a sweep takes beyond its other draws, the assembly what `Chain.advance` takes beyond a sweep.
    With several threads what governs the atoms is drawn beside the codes and the usage beside the slabs, and
    they count there.

    Attributes
    ----------
    start_seconds : time to the first sweep: shards and start of the dictionary
    sweep_seconds : time of every sweep, assembly included
    cpu_seconds, other_seconds : processor time of every sweep, and what other programs took meanwhile
    report : what the last sweep told of itself
    """

    def __init__(self, problem: Problem, threads: int) -> None:
        began = time.perf_counter()
        self.threads = threads
        self.engine = ThreadEngine(problem.items, threads)
        self._spent: dict[str, float] = {}
        self.report: SweepReport | None = None
        model = self._watched(problem.settings.build_model(problem.scaling.scale))
        # every draw is kept (burn-in 0), so that every sweep pays for its assembly
        self.chain = Chain.begin(model, self.engine, problem.items, problem.settings.start, ENGINE_SEED)
        self.start_seconds = time.perf_counter() - began
        self.sweep_seconds: list[float] = []
        self.cpu_seconds: list[float] = []
        self.other_seconds: list[float] = []

    def advance(self) -> dict[str, float]:
        """Make one sweep and return the seconds of each phase."""
        self._spent = {}
        all_began, own_began, began = _machine_seconds(), time.process_time(), time.perf_counter()
        self.chain.advance(keep=True)
        seconds = time.perf_counter() - began
        self.sweep_seconds.append(seconds)
        self.cpu_seconds.append(time.process_time() - own_began)
        self.other_seconds.append(max(0.0, _machine_seconds() - all_began - self.cpu_seconds[-1]))
        spent = {name: self._spent.get(name, 0.0) for name in _METHODS.values()}
        inside = self._spent["sweep"]
        return {**spent, "scalars": inside - sum(spent.values()), "assembly": seconds - inside}

    def cores(self, last: int) -> dict[str, float]:
        """How many cores the last sweeps kept busy, and how many other programs did at the same time."""
        wall = sum(self.sweep_seconds[-last:])
        return {
            "cores_got": sum(self.cpu_seconds[-last:]) / wall,
            "cores_of_others": sum(self.other_seconds[-last:]) / wall,
        }

    def __enter__(self) -> "TimedChain":
        return self

    def __exit__(self, *exception: object) -> None:
        self.engine.close()

    def _watched(self, model: Model) -> Model:
        twin = copy.copy(model)
        for method, phase in _METHODS.items():
            object.__setattr__(twin, method, self._timed(phase, getattr(model, method)))
        object.__setattr__(twin, "sweep", self._timed("sweep", twin.sweep))
        return twin

    def _timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments, **named)
            self._spent[phase] = self._spent.get(phase, 0.0) + time.perf_counter() - began
            if phase == "sweep":
                self.report = result[1]
            return result

        return call


class Product:
    """The float32 matrix product (N x P) by (P x K): the least work of a sweep over complete data.

    Of more than 65,536 items only so many are multiplied, and the time is scaled up. Multiply with several
    threads in two ways: the rows of the shards on a pool with single-threaded BLAS, or one call with BLAS's
    own threads.
    """

    def __init__(self, problem: Problem, shards: list[Shard]) -> None:
        items, n_atoms = problem.items, problem.settings.n_atoms
        self.rows = min(items.n_items, _MOST_ROWS)
        self.scale = items.n_items / self.rows
        self._data = items.flat[items.origin[: self.rows, None] + items.offset].astype(np.float32)
        random = np.random.default_rng(ENGINE_SEED)
        self._atoms = random.standard_normal((len(items.offset), n_atoms)).astype(np.float32)
        self._result = np.empty((self.rows, n_atoms), np.float32)
        bounds = [shard.first for shard in shards] + [items.n_items]
        if self.rows < items.n_items:
            bounds = [self.rows * shard // len(shards) for shard in range(len(shards) + 1)]
        self._parts = [slice(first, stop) for first, stop in pairwise(bounds)]
        self._best: dict[int, dict[str, list[float]]] = {}

    def run(self, threads: int) -> float:
        """Multiply with so many threads in every way, and return the seconds of the fastest."""
        ways: dict[str, float] = {}
        with threadpool_limits(limits=1, user_api="blas"):
            if threads == 1:
                ways[ONE_CALL] = self._best_of(self._whole)
            else:
                with ThreadPoolExecutor(threads) as pool:
                    ways[ON_A_POOL] = self._best_of(lambda: list(pool.map(self._part, self._parts)))
        if threads > 1:
            with threadpool_limits(limits=threads, user_api="blas"):
                ways[BLAS_THREADS] = self._best_of(self._whole)
            time.sleep(_CALM)
        past = self._best.setdefault(threads, {})
        for way, seconds in ways.items():
            past.setdefault(way, []).append(seconds)
        return min(ways.values())

    def fastest(self, threads: int) -> tuple[float, str]:
        """Best seconds of all runs with so many threads, and in which way."""
        return min((min(seconds), way) for way, seconds in self._best[threads].items())

    def _whole(self) -> None:
        np.matmul(self._data, self._atoms, out=self._result)

    def _part(self, part: slice) -> None:
        np.matmul(self._data[part], self._atoms, out=self._result[part])

    def _best_of(self, function: Callable[[], object]) -> float:
        return best_of(function, _CALLS) * self.scale


def best_of(function: Callable[[], object], rounds: int) -> float:
    """Seconds of the fastest of several calls."""
    best = np.inf
    for _ in range(rounds):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


def local_memory(shards: list[Shard]) -> dict[str, Any]:
    """Bytes per item of everything that the shards hold; an array that they share is counted once."""
    groups: dict[str, int] = {}
    seen: set[int] = set()
    for shard in shards:
        for label, array in _arrays(shard):
            place = array.__array_interface__["data"][0]
            if array.nbytes and place not in seen:
                seen.add(place)
                groups[label] = groups.get(label, 0) + array.nbytes
    n_items = sum(shard.n_items for shard in shards)
    codes = sum(shard.codes.atom.nbytes + shard.codes.value.nbytes for shard in shards)
    raw = 4.0 * len(shards[0].items.offset)
    total = sum(groups.values())
    return {
        "bytes_per_item": total / n_items,
        "raw_bytes_per_item": raw,
        "code_bytes_per_item": codes / n_items,
        "beyond_codes_to_raw": (total - codes) / n_items / raw,
        "parts": {label: size / n_items for label, size in sorted(groups.items())},
    }


def _arrays(shard: Shard):
    """(name, array) of all arrays of a shard, those of its NamedTuples included."""
    for field, value in vars(shard).items():
        if isinstance(value, np.ndarray):
            yield field, value
        elif isinstance(value, tuple) and hasattr(value, "_asdict"):
            for name, part in value._asdict().items():
                if isinstance(part, np.ndarray):
                    yield f"{field}.{name}", part


def _machine_seconds() -> float:
    """Processor time of all programs since the machine started; 0 where the system does not tell."""
    try:
        user, nice, system, _, _, *rest = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except (OSError, ValueError):
        return 0.0
    return sum(map(int, (user, nice, system, *rest))) / os.sysconf("SC_CLK_TCK")


def peak_memory() -> int:
    """Most bytes of memory that this process has held.

    Not ``ru_maxrss`` where /proc tells better: Linux hands that down from the process that started this one.
    """
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
