"""Before, after and how sure, for arrays of order 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kruskal.report.calibration import draw_calibration
from kruskal.report.canvas import ACCENT, INK, QUIET, SECOND, new_figure, place_axes
from kruskal.report.pictures import describe_observed, describe_quality
from kruskal.report.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 1440, 640
_LEFT, _TOP, _BOTTOM = 96, 150, 84


def draw_restored_curve(
    result: Result,
    observed_values: NDArray[Any],
    observed: NDArray[np.bool_],
    reference: NDArray[Any] | None,
) -> Figure:
    """Draw the observed points, the restored curve with its band of two standard deviations and the truth.

    Parameters
    ----------
    result : Result
        A restoration of an array with at most one axis longer than 1.
    observed_values, observed, reference : ndarray, the shape of result.mean
        The data, where they were given, and the truth (or None).

    Returns
    -------
    matplotlib.figure.Figure
    """
    mean, std = np.asarray(result.mean, dtype=float).ravel(), np.asarray(result.std, dtype=float).ravel()
    places = np.arange(mean.size)
    known = np.flatnonzero(observed.ravel())
    subtitle = describe_observed(observed)
    if reference is not None:
        subtitle += describe_quality(np.asarray(result.mean), reference)
    figure = new_figure(_WIDTH, _HEIGHT, "Restoration", subtitle)
    axes = place_axes(figure, _LEFT, _TOP, _WIDTH - _LEFT - 48, _HEIGHT - _TOP - _BOTTOM)
    axes.fill_between(
        places, mean - 2 * std, mean + 2 * std, color=ACCENT, alpha=0.22, linewidth=0, label="± 2 std"
    )
    size = float(np.clip(600 / max(known.size, 1), 1.2, 4))
    axes.plot(
        known, observed_values.ravel()[known], "o", color=QUIET, markersize=size, mew=0, label="observed"
    )
    if reference is not None:
        axes.plot(places, reference.ravel(), color=SECOND, linewidth=0.9, label="reference")
    axes.plot(places, mean, color=ACCENT, label="restored")
    axes.set_xlim(0, max(mean.size - 1, 1))
    axes.set_xlabel("Entry")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, handlelength=1.4)
    return figure


def draw_curve_uncertainty(
    result: Result,
    observed_values: NDArray[Any],
    observed: NDArray[np.bool_],
    reference: NDArray[Any] | None,
) -> Figure:
    """Draw the standard deviation along the curve, and the error or the residual next to it.

    Parameters
    ----------
    result : Result
        A restoration of an array with at most one axis longer than 1.
    observed_values, observed, reference : ndarray, the shape of result.mean
        The data, where they were given, and the truth (or None).

    Returns
    -------
    matplotlib.figure.Figure
    """
    mean, std = np.asarray(result.mean, dtype=float).ravel(), np.asarray(result.std, dtype=float).ravel()
    places = np.arange(mean.size)
    figure = new_figure(
        _WIDTH, _HEIGHT, "Uncertainty", f"Standard deviation of the noise: {result.noise_std:.3g}"
    )
    room = 0 if reference is None else 520
    axes = place_axes(figure, _LEFT, _TOP, _WIDTH - _LEFT - 48 - room, _HEIGHT - _TOP - _BOTTOM)
    if reference is None:
        known = np.flatnonzero(observed.ravel())
        residual = np.abs(observed_values.ravel()[known] - mean[known])
        axes.plot(known, residual, "o", color=QUIET, markersize=2, mew=0, label="|observed − restored|")
    else:
        axes.plot(
            places, np.abs(reference.ravel() - mean), color=QUIET, linewidth=0.8, label="size of the error"
        )
        beside = place_axes(figure, _WIDTH - room + 20, _TOP, room - 68, _HEIGHT - _TOP - _BOTTOM)
        draw_calibration(beside, result, observed, reference)
    axes.plot(places, std, color=ACCENT, label="standard deviation")
    axes.axhline(float(result.noise_std), color=INK, linewidth=0.8, linestyle=(0, (4, 3)), label="noise")
    axes.set_xlim(0, max(mean.size - 1, 1))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Entry")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, handlelength=1.4)
    return figure
