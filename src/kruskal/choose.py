"""Choosing patch, sparsity and rank for the data at hand: short pilot runs that predict hidden entries.

The rules of `kruskal.defaults` make the first candidate. Each of the others differs from it in one thing.
Some of the observed entries are hidden, every candidate predicts them in a short run on a part of the array,
and a candidate takes over where it is better beyond doubt: a paired comparison, entry by entry, as few hidden
entries say little. Absolute errors are compared, as a few large squares would drown all others. The work is
bounded by the size of the part and the number of sweeps.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kruskal.defaults import Look, patch_ladder
from kruskal.errors import InputError
from kruskal.patches import Grid
from kruskal.settings import Settings
from kruskal.tensor import maximal_rank

HIDDEN_SHARE = 0.05
_FEWEST, _MOST = 200, 20_000  # hidden entries
_SWEEPS, _BURN_IN = 24, 12
_WORK = 3_000_000  # entries over all items of a pilot run
_SURE = 2.5  # standard errors
# of the error of the first candidate: what gains less is not worth a change of the rules
_WORTH = 0.98
_RANKS = (2, 4)
_SPARSITIES = (0.125, 2.0)


@dataclass(frozen=True)
class Pilot:
    """One pilot run.

    Attributes
    ----------
    differs : what sets it apart from the first candidate: "", "patch_shape", "sparsity" or "rank"
    rmse : of the predicted hidden entries, in the units of the data
    lead : by how many standard errors its absolute errors are smaller than those of the first candidate
        (negative: larger)
    """

    differs: str
    patch_shape: tuple[int, ...]
    sparsity: float | None
    rank: int
    rmse: float
    lead: float
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As a dictionary of plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Pilot":
        """Back from `to_json`."""
        tuples: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**tuples)

    def sentence(self) -> str:
        """For people."""
        patch = "x".join(map(str, self.patch_shape))
        rank = f", rank {self.rank}" if self.rank else ""
        sparsity = "" if self.sparsity is None else f", sparsity {self.sparsity:g}"
        compared = f", {abs(self.lead):.1f} standard errors {'better' if self.lead > 0 else 'worse'}"
        return (
            f"pilot run: patch {patch}{rank}{sparsity}: predicts hidden entries "
            f"to {self.rmse:.4g}{compared if self.differs else ''} ({self.seconds:.1f} s)"
        )


Resolve = Callable[..., Settings]
"""Settings for an array shape and options that are given."""
Restore = Callable[[np.ndarray, np.ndarray, Settings], np.ndarray]
"""The restored array of a run without progress or checkpoints."""


def worth_a_pilot(observed: np.ndarray, look: Look) -> bool:
    """Whether pilots can tell anything: not for clean complete data, nor when few entries are observed.

    With nothing missing and no noise there is nothing to predict: the task is to represent what is there.
    """
    if look.only_represent:
        return False
    return _enough(observed)


def _enough(observed: np.ndarray) -> bool:
    return HIDDEN_SHARE * int(np.count_nonzero(observed)) >= _FEWEST


def choose(
    values: np.ndarray, observed: np.ndarray, resolve: Resolve, restore: Restore, free: set[str],
    channels: str | None, seed: int, tell: Callable[[str], None],
) -> tuple[dict[str, Any], list[Pilot]]:  # fmt: skip
    """Options that are better than the rules for this array, and the pilot runs that say so.

    Parameters
    ----------
    values, observed : the data
    resolve : settings for an array shape with these options beside the user's;  restore : makes a run
    free : which of "patch_shape", "sparsity" and "rank" the user left open
    tell : is told a sentence per pilot run

    Returns
    -------
    options : what to give beside the user's options; empty if the rules hold
    pilots : in the order in which they were made
    """
    base = resolve(values.shape)
    whole, here = values.shape, _part(observed, base)
    values, observed = values[here], observed[here]
    if not _enough(observed):
        return {}, []
    hidden = _hide(observed, seed)
    pilots: list[Pilot] = []
    first: np.ndarray | None = None
    for differs, options in _candidates(base, free, patch_ladder(values.shape, channels)):
        if "sparsity" in free:  # also if pilot runs, which are not online, had another by themselves
            options = {"sparsity": base.sparsity} | options
        began = time.perf_counter()
        try:
            settings = _short(resolve, whole, values.shape, options)
        except InputError:
            # what the user gave does not fit this candidate, such as a stride wider than a patch
            continue
        estimate = restore(values, observed & ~hidden, settings)
        errors = np.abs(estimate[hidden] - values[hidden].astype(np.float64))
        first = errors if first is None else first
        pilot = Pilot(
            differs, settings.patch_shape, settings.sparsity, settings.rank, math.sqrt((errors**2).mean()),
            _lead(first - errors), time.perf_counter() - began,
        )  # fmt: skip
        tell(pilot.sentence())
        pilots.append(pilot)
    return _better(pilots), pilots


def _candidates(
    base: Settings, free: set[str], ladder: list[tuple[int, ...]]
) -> list[tuple[str, dict[str, Any]]]:
    """The first candidate, then those that differ from it in one thing."""
    first = {"patch_shape": base.patch_shape} if "patch_shape" in free else {}
    result: list[tuple[str, dict[str, Any]]] = [("", first)]
    if "patch_shape" in free and base.patch_shape in ladder:
        step = ladder.index(base.patch_shape)
        for other in (step - 1, step + 1):
            if 0 <= other < len(ladder) and ladder[other] != base.patch_shape:
                result.append(("patch_shape", {"patch_shape": ladder[other]}))
    # a chain that is very sparse is slow to settle: a pilot run would always find it worse
    if "sparsity" in free and (base.sparsity or 0.0) <= max(_SPARSITIES):
        for sparsity in _SPARSITIES:
            if sparsity != base.sparsity:
                result.append(("sparsity", first | {"sparsity": sparsity}))
    if "rank" in free and base.model == "kfa":
        for rank in _RANKS:
            if base.rank != rank <= maximal_rank(base.patch_shape):
                result.append(("rank", first | {"rank": rank}))
    return result


def _short(
    resolve: Resolve, whole: tuple[int, ...], shape: tuple[int, ...], options: dict[str, Any]
) -> Settings:
    """Settings of a pilot run on a part of this shape: few sweeps, and patches twice as far apart as in a run
    on the whole."""
    full = resolve(whole, **options)
    short = {
        "stride": _pilot_stride(full), "sweeps": _SWEEPS, "burn_in": _BURN_IN,
        "annealing": None if full.annealing else 0,
    }  # fmt: skip
    plain = {"online": None, "batch_size": None, "epochs": None, "passes": None}  # pilots are small
    return resolve(shape, **options, **short, **plain, until_converged=False, time_budget=None)


def _pilot_stride(settings: Settings) -> tuple[int, ...]:
    pairs = zip(settings.stride, settings.patch_shape)
    return tuple(max(1, min(2 * step, size // 2)) for step, size in pairs)


def _part(observed: np.ndarray, base: Settings) -> tuple[slice, ...]:
    """As much of the array as a pilot run may take, around the middle of what is observed.

    Longer axes are cut first.
    """
    shape, sizes = observed.shape, list(observed.shape)
    entries, stride = math.prod(base.patch_shape), _pilot_stride(base)
    while Grid(tuple(sizes), base.patch_shape, stride).n_items * entries > _WORK:
        spare = [size / patch for size, patch in zip(sizes, base.patch_shape)]
        axis = int(np.argmax(spare))
        if spare[axis] <= 4.0:
            break
        sizes[axis] = max(4 * base.patch_shape[axis], int(0.8 * sizes[axis]))
    starts = [0] * observed.ndim
    for axis, (size, n) in enumerate(zip(sizes, shape)):
        if size < n:
            starts[axis] = min(max(_middle(observed, axis) - size // 2, 0), n - size)
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes))


def _middle(observed: np.ndarray, axis: int) -> int:
    """The median, rounded down, of where on this axis the observed entries are."""
    counts = np.count_nonzero(observed, axis=tuple(other for other in range(observed.ndim) if other != axis))
    upto = np.cumsum(counts)
    last = int(upto[-1]) - 1
    low, high = np.searchsorted(upto, [last // 2, (last + 1) // 2], side="right")
    return int(low + high) // 2


def _hide(observed: np.ndarray, seed: int) -> np.ndarray:
    """True for the observed entries that the pilots have to predict."""
    random = np.random.default_rng([seed, 0x9E37])
    places = np.flatnonzero(observed)
    count = min(max(int(HIDDEN_SHARE * len(places)), 1), _MOST)
    hidden = np.zeros(observed.size, bool)
    hidden[random.choice(places, count, replace=False)] = True
    return hidden.reshape(observed.shape)


def _lead(gain: np.ndarray) -> float:
    """Mean of the paired differences in units of its standard error."""
    error = float(gain.std(ddof=1)) / math.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return float(gain.mean()) / error if error > 0.0 else 0.0


def _better(pilots: list[Pilot]) -> dict[str, Any]:
    """What the surely better pilots differ in; of two patches the one with the smaller error."""
    chosen: dict[str, Any] = {}
    good = _WORTH * pilots[0].rmse if pilots else 0.0
    for name in ("patch_shape", "sparsity", "rank"):
        better = [p for p in pilots if p.differs == name and p.lead > _SURE and p.rmse < good]
        if better:
            chosen[name] = getattr(min(better, key=lambda pilot: pilot.rmse), name)
    return chosen
