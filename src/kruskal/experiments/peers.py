"""Other programs on the same damaged data: BM3D and BM4D, which are told the noise, biharmonic inpainting."""

import importlib
import importlib.util
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from kruskal.data import corrupt
from kruskal.experiments.cells import json_number

PACKAGES = {"bm3d": "bm3d", "bm4d": "bm4d", "biharmonic": "skimage"}
"""The module that each needs; bm3d and bm4d may not be installed, as their licence is non-commercial."""


def installed_version(peer: str) -> str | None:
    """Version of the package behind a peer, part of the options of its cells; None if it is not installed."""
    module = PACKAGES[peer]
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return version("scikit-image" if module == "skimage" else module)
    except PackageNotFoundError:
        return "unknown"


def not_installed(peer: str) -> str:
    """A sentence for the notes of a table."""
    return f"{peer} is not installed, so its numbers are missing: pip install {peer} (non-commercial licence)"


def run_peer(
    peer: str, truth: np.ndarray, *, keep: float = 1.0, noise: float = 0.0, seed: int = 1
) -> tuple[dict[str, Any], np.ndarray]:
    """One restoration by another program, damaged as in `scoring.restore_and_score`.

    Parameters
    ----------
    peer : "bm3d" or "bm4d" (complete data, told the true ``noise``), "biharmonic" (missing entries)
    truth : uint8 array
    keep, noise, seed : the damage

    Returns
    -------
    measures : psnr over all entries of the estimate clipped to [0, 255], seconds
    estimate : float64 array of the shape of ``truth``, clipped
    """
    damaged = corrupt(truth, keep=keep, noise=noise, seed=seed)
    restore = _program(peer, noise)
    began = time.perf_counter()
    estimate = np.asarray(restore(damaged.values, damaged.observed), dtype=np.float64).reshape(truth.shape)
    seconds = time.perf_counter() - began
    estimate = np.clip(estimate, 0.0, 255.0)

    from kruskal.report import psnr

    return {"psnr": json_number(psnr(estimate, truth)), "seconds": seconds}, estimate


def _program(peer: str, noise: float) -> Callable[[np.ndarray, np.ndarray], Any]:
    """A function of values and observed entries, imported before it is timed."""
    if peer == "biharmonic":
        from skimage.restoration import inpaint_biharmonic

        return lambda values, observed: inpaint_biharmonic(np.where(observed, values, 0.0), ~observed)
    program = getattr(importlib.import_module(peer), peer)
    return lambda values, observed: program(values, noise)
