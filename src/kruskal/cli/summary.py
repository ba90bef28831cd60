"""What a finished restoration says about itself: one dictionary for programs, a few lines for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from kruskal import __version__
from kruskal.cli.options import counted, shape_text
from kruskal.engines.progress_words import duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kruskal.restore import Restoration

_BATCHING = ("batch_size", "batches", "passes")
_SCORES = ("psnr", "ssim", "rrse", "coverage")


def summarise(
    restoration: Restoration,
    observed: NDArray[np.bool_],
    reference: NDArray[Any] | None = None,
) -> dict[str, Any]:
    """Collect the numbers of a restoration, ready for JSON.

    Parameters
    ----------
    restoration : Restoration
        What came out.
    observed : ndarray of bool
        True where the data were given.
    reference : ndarray, optional
        The true array; adds psnr, ssim, rrse (over all, observed and missing entries) and, of the
        missing entries, the share within mean ± 2·sqrt(std² + noise²) as coverage and the share within
        mean ± 2·std as coverage_std.

    Returns
    -------
    dict
        Numbers, words, None for what is not defined (the PSNR of a perfect result, for example); no NaN.
    """
    from kruskal.report import coverage, scores

    settings = restoration.settings
    used = np.asarray(restoration.usage) > 0
    found: dict[str, Any] = {}
    if reference is not None:
        found |= scores(clipped_like(restoration.mean, reference), reference, observed)
        missing = ~observed & np.isfinite(reference)
        if missing.any():
            for name, noise in (("coverage", restoration.noise_std), ("coverage_std", 0.0)):
                found[name] = coverage(restoration.mean, restoration.std, noise, reference, where=missing)
    length = "epochs" if settings.get("online") else "sweeps"
    found |= {
        "noise_std": float(restoration.noise_std),
        "seconds": float(restoration.seconds),
        length: len(restoration.trace["noise_std"]) // settings.get("batches", 1),
        "kept": restoration.kept,
        "pilots": list(restoration.pilots),
        "notes": list(restoration.notes),
        "n_items": restoration.n_items,
        "n_atoms": len(used),
        "n_atoms_used": int(used.sum()),
        "rank_histogram": rank_histogram(restoration.ranks, used),
        "alpha": last_alpha(restoration),
        "share_observed": float(observed.mean()),
    }
    shown = (
        *("setting", "model", "patch_shape", "stride", "sparsity", "usage_prior", "regions", "grouping"),
        "counts",
        "seed",
    )
    found |= {name: settings.get(name) for name in shown}
    found["burn_in"] = found[length] - found["kept"]
    if "rank" in restoration.trace:
        found["inferred_rank"] = restoration.rank
    if settings.get("online"):
        found |= {name: settings[name] for name in ("online", *_BATCHING)}
    found |= {"rank": settings.get("rank") or None, "threads": restoration.threads, "version": __version__}
    return json_ready(found)


def told_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they are told: sweeps of a run that learned online are epochs, others have no batches."""
    if settings.get("online"):
        return {"epochs" if name == "sweeps" else name: value for name, value in settings.items()}
    return {name: value for name, value in settings.items() if name not in _BATCHING}


def scores_of(summary: dict[str, Any]) -> dict[str, float | None]:
    """Pick what was found by comparison with a reference; empty when there was none."""
    return {name: value for name, value in summary.items() if name.split("_")[0] in _SCORES}


def rank_histogram(ranks: NDArray[Any], used: NDArray[np.bool_]) -> dict[str, int]:
    """Count the used atoms of every rank; empty where ranks are not defined (free atoms of order 3 and more).

    The keys are words because JSON wants them so.
    """
    known = np.asarray(ranks)[used]
    values, counts = np.unique(known[known >= 0], return_counts=True)
    return {str(int(value)): int(count) for value, count in zip(values, counts)}


def last_alpha(restoration: Restoration) -> float | None:
    """Return the shrinkage parameter alpha at the end of the run; None for a model without one."""
    drawn = restoration.trace.get("alpha")
    return None if drawn is None else float(drawn[-1])


def clipped_like(mean: NDArray[Any], reference: NDArray[Any]) -> NDArray[Any]:
    """Clip the (unrounded) mean to the range of an integer reference; leave it alone otherwise."""
    if reference.dtype.kind not in "iu":
        return mean
    limits = np.iinfo(reference.dtype)
    return np.clip(mean, limits.min, limits.max)


def json_ready(value: Any) -> Any:
    """Turn NumPy scalars, arrays and tuples into what JSON can hold, and NaN and infinities into None."""
    if isinstance(value, dict):
        return {str(name): json_ready(content) for name, content in value.items()}
    if isinstance(value, np.ndarray):
        return json_ready(value.tolist())
    if isinstance(value, list | tuple):
        return [json_ready(content) for content in value]
    if isinstance(value, np.generic):
        # item() of an extended precision number is that number again
        return json_ready(float(value) if isinstance(value, np.floating) else value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_text(summary: dict[str, Any]) -> str:
    """Write the summary for people.

    Parameters
    ----------
    summary : dict
        What `summarise` returned.

    Returns
    -------
    str
        A few lines without a final newline.
    """
    from kruskal.report.metrics import INTERVAL, INTERVAL_STD

    patch = shape_text(summary["patch_shape"] or ())
    what = f"{summary['n_items']} patches of {patch}" if summary["n_items"] > 1 else f"an array of {patch}"
    used = f"{summary['n_atoms_used']} of {summary['n_atoms']} atoms used"
    if summary.get("inferred_rank") is not None:
        used = f"rank {summary['inferred_rank']} of at most {summary['rank']}"
    if summary.get("online"):
        batches = counted(summary["batches"], "batch", "batches")
        sweeps = f"{counted(summary['epochs'], 'epoch')} of {batches} ({summary['online']})"
    else:
        sweeps = counted(summary["sweeps"], "sweep")
    lines = [
        f"{summary['model']}: {sweeps} over {what} in {duration(summary['seconds'])}",
        f"noise {summary['noise_std']:.4g}, {used}",
    ]
    if summary["pilots"]:
        seconds = sum(pilot["seconds"] for pilot in summary["pilots"])
        pilots = counted(len(summary["pilots"]), "pilot run")
        lines.append(f"defaults tested in {pilots} of {duration(seconds)}")
    for name, unit in (("psnr", " dB"), ("ssim", ""), ("rrse", "")):
        if name in summary:
            lines.append(_score_line(summary, name, unit))
    if summary.get("coverage") is not None:
        lines.append(
            f"{100 * summary['coverage']:.1f} % of the missing entries lie within {INTERVAL}, "
            f"{100 * summary['coverage_std']:.1f} % within {INTERVAL_STD}"
        )
    return "\n".join(lines)


def _score_line(summary: dict[str, Any], name: str, unit: str) -> str:
    def words(value: float | None) -> str:
        return "-" if value is None else f"{value:.4g}{unit}"

    parts = [
        f"{which} {words(summary[f'{name}_{which}'])}"
        for which in ("observed", "missing")
        if summary.get(f"{name}_{which}") is not None
    ]
    return f"{name.upper()} {words(summary[name])}" + (f" ({', '.join(parts)})" if parts else "")
