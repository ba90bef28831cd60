"""What the measurements are held against."""

from typing import Any, NamedTuple

from kruskal.experiments.speed.console import threads_of


class Goal(NamedTuple):
    """One aim: ``low`` <= measured <= ``high``; a measurement of None never arrived where it should."""

    name: str
    measured: float | None
    low: float | None
    high: float | None

    @property
    def met(self) -> bool:
        """Whether it is met."""
        if self.measured is None:
            return False
        over = self.low is None or self.measured >= self.low
        return over and (self.high is None or self.measured <= self.high)

    def to_json(self) -> dict[str, Any]:
        """As a dictionary of plain values."""
        return self._asdict() | {"met": self.met}


_TO_PRODUCT = {"complete": 4.0, "masked": 6.0}
_TO_DENSE = (
    ("sweep", "sweep of CKFA / dense correlation", 10.0),
    ("picture_sweep", "sweep of CKFA / dense correlation, larger pictures", 15.0),
    ("step", "step of DGDN / dense convolutions", 8.0),
)
_MILLION = 1_000_000


def goals(results: dict[str, Any]) -> list[Goal]:
    """Aims of everything that has been measured so far."""
    found: list[Goal] = []
    for kind, bound in _TO_PRODUCT.items():
        measured = results.get("phases", {}).get(kind)
        if measured is None:
            continue
        for threads, one in measured["threads"].items():
            where = f"{kind}, {threads_of(threads)}"
            found.append(Goal(f"code sweep / product ({where})", one["codes_to_product"], None, bound))
            found.append(Goal(f"dictionary update / code sweep ({where})", one["atoms_to_codes"], None, 0.5))
        for threads, ratios in measured["speed_up"].items():
            if threads == "2":
                found.append(Goal(f"speed-up of a whole run, 2 threads ({kind})", ratios["run"], 1.8, None))
        memory = measured["memory"]["beyond_codes_to_raw"]
        found.append(Goal(f"memory beyond the codes / raw data ({kind})", memory, None, 3.0))
    growth = results.get("growth", {})
    for one in growth.get("exponents", []):
        wanted = (one["axis"], one["range"]) in (("items", "large"), ("atoms", "all"))
        if wanted and one["sweep"] is not None:
            letter = "N from 60,000 on" if one["axis"] == "items" else "K"
            name = f"exponent of {letter} ({one['kind']}, {threads_of(one['threads'])})"
            low = 0.95 if one["axis"] == "items" else None
            found.append(Goal(name, one["sweep"], low, 1.05))
    for run in growth.get("items", []):
        if run["n_items"] == _MILLION:
            name = f"peak GB at N = 1,000,000 ({run['kind']}, {threads_of(run['threads'])})"
            found.append(Goal(name, run["peak_bytes"] / 1e9, None, 8.0))
    quality = results.get("quality")
    if quality and "curve" in quality:
        reached = quality["reached"]
        name = f"seconds to {quality['target_psnr']} dB, {threads_of(quality['threads'])}"
        found.append(Goal(name, reached["seconds"] if reached else None, None, 4.0))
        name = f"peak GB of that run ({quality['run_sweeps']} sweeps)"
        found.append(Goal(name, quality["peak_bytes"] / 1e9, None, 1.0))
    for what, name, bound in _TO_DENSE:
        if what in results.get("images", {}):
            found.append(Goal(name, results["images"][what]["to_dense"], None, bound))
    for run in results.get("online", {}).get("runs", []):
        name = f"seconds online / by full sweeps to the same PSNR ({run['keep']:.0%} observed)"
        found.append(Goal(name, run["batches"][-1]["to_sweeps"], None, 0.5))
    beside = results.get("peers", {}).get("tensorly", {})
    if "sweep_to_iteration" in beside:
        name = "sweep of MGP-CP / iteration of tensorly"
        found.append(Goal(name, beside["sweep_to_iteration"], None, 5.0))
    if "startup" in results:
        found.append(Goal("seconds of import kruskal", results["startup"]["import_seconds"], None, 0.3))
    return found
