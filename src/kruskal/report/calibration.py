"""Does the uncertainty mean what it says? Error over predicted spread, held against a Gaussian."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kruskal.report.canvas import ACCENT, SECOND
from kruskal.report.metrics import INTERVAL, coverage
from kruskal.report.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIMIT = 5.0
_MOST_ENTRIES = 1_000_000


def standard_errors(
    result: Result, observed: NDArray[np.bool_], reference: NDArray[Any]
) -> NDArray[np.float64]:
    """Return (reference - mean) / sqrt(std² + noise_std²) at the missing entries, or at all if none is.

    Parameters
    ----------
    result : Result
        A restoration.
    observed : ndarray of bool, the shape of result.mean
        True where the data were given.
    reference : ndarray, the same shape
        The truth; entries that are not finite are left out.

    Returns
    -------
    ndarray, 1-D
        An even selection of at most a million entries; entries without any spread are left out.
    """
    chosen = np.flatnonzero(_judged(observed) & np.isfinite(reference))
    chosen = chosen[:: max(1, chosen.size // _MOST_ENTRIES)]
    spread = np.hypot(np.asarray(result.std).ravel()[chosen].astype(np.float64), float(result.noise_std))
    error = reference.ravel()[chosen].astype(np.float64) - np.asarray(result.mean).ravel()[chosen]
    return error[spread > 0] / spread[spread > 0]


def draw_calibration(
    axes: Axes, result: Result, observed: NDArray[np.bool_], reference: NDArray[Any]
) -> None:
    """Draw the histogram of `standard_errors` with the Gaussian it should follow."""
    errors = standard_errors(result, observed, reference)
    if errors.size == 0:
        axes.set_axis_off()
        return
    edges = np.linspace(-_LIMIT, _LIMIT, 61)
    heights = np.histogram(errors, edges)[0] / (errors.size * np.diff(edges))
    centres = 0.5 * (edges[1:] + edges[:-1])
    gaussian = np.exp(-0.5 * centres**2) / math.sqrt(2 * math.pi)
    axes.stairs(heights, edges, fill=True, color=ACCENT, alpha=0.45, linewidth=0, label="found")
    axes.plot(centres, gaussian, color=SECOND, label="Gaussian, 95.4 %")
    axes.set_xlim(-_LIMIT, _LIMIT)
    axes.set_ylim(0, 1.3 * max(heights.max(), gaussian.max()))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    judged = _judged(observed)
    share = coverage(result.mean, result.std, result.noise_std, reference, judged)
    kind = "all" if observed.all() else "missing"
    axes.set_title(f"{100 * share:.1f} % within {INTERVAL}")
    axes.set_xlabel(f"Error of {kind} entries / sqrt(std² + noise²)")
    axes.legend(loc="upper right", handlelength=1.2)


def _judged(observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the missing entries, or all if none is missing."""
    return np.ones_like(observed) if observed.all() else ~observed
