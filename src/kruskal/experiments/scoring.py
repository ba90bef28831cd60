"""Damage an array, restore it and say how good that is: what most cells do."""

import math
from typing import Any

import numpy as np

from kruskal.data import corrupt
from kruskal.experiments.cells import Context, json_number


def restore_and_score(
    truth: np.ndarray,
    options: dict[str, Any],
    context: Context,
    *,
    keep: float = 1.0,
    noise: float = 0.0,
    seed: int = 1,
    peak: float | None = None,
    where: np.ndarray | None = None,
    clip: tuple[float, float] | None = None,
) -> tuple[dict[str, Any], Any]:
    """One restoration of a damaged array, and its measures.

    The damage is that of ``kruskal corrupt``: the mask follows from ``keep`` and ``seed`` alone, so all
    models and settings see the same one; noise is neither clipped nor rounded.

    Parameters
    ----------
    truth : array of any shape, the undamaged values
    options : of `kruskal.inpaint`, without seed, threads and progress (see `presets.options_for`)
    context : threads and progress
    keep, noise, seed : the damage; the chain has the same seed
    peak : of the PSNR (default: 255 for uint8, see `kruskal.report.default_peak`)
    where : bool, the shape of ``truth``: the entries that PSNR and RRSE count (default: all)
    clip : bounds for the estimate before it is measured (default: those of the type of an integer array)

    Returns
    -------
    measures : plain JSON values: psnr, rrse, noise_std, n_items, seconds, settings, atoms_used; of MGP-CP the
        inferred rank; with missing entries also the share of them within mean ± 2 sqrt(std² + noise²) as
        coverage and within mean ± 2 std as coverage_std
    restoration : `kruskal.Restoration`
    """
    from kruskal.report import coverage, psnr, rrse
    from kruskal.restore import inpaint

    damaged = corrupt(truth, keep=keep, noise=noise, seed=seed)
    restoration = inpaint(
        damaged.values,
        observed=damaged.observed,
        seed=seed,
        threads=context.threads,
        progress=context.progress,
        **options,
    )
    estimate = np.clip(restoration.mean, *(clip or _bounds(truth)))
    measures: dict[str, Any] = {
        "psnr": json_number(psnr(estimate, truth, peak, where)),
        "rrse": json_number(rrse(estimate, truth, where)),
        "noise_std": json_number(restoration.noise_std),
        "atoms_used": int((restoration.usage > 0).sum()),
        "n_items": restoration.n_items,
        "seconds": restoration.seconds,
        "settings": restoration.settings,
    }
    if "rank" in restoration.trace:
        measures["rank"] = restoration.rank
    missing = ~damaged.observed if where is None else ~damaged.observed & where
    if missing.any():
        for name, width in (("coverage", restoration.noise_std), ("coverage_std", 0.0)):
            measures[name] = coverage(restoration.mean, restoration.std, width, truth, missing)
    return measures, restoration


def _bounds(truth: np.ndarray) -> tuple[float, float]:
    """The range of a picture's type; none for other numbers."""
    if np.issubdtype(truth.dtype, np.integer):
        limits = np.iinfo(truth.dtype)
        return float(limits.min), float(limits.max)
    return -math.inf, math.inf
