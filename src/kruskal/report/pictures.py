"""Before, after and how sure: the restored array and its uncertainty as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kruskal.report.calibration import draw_calibration
from kruskal.report.canvas import place_axes
from kruskal.report.metrics import psnr
from kruskal.report.planes import Plane, central_planes, display_limits
from kruskal.report.result import Result
from kruskal.report.sheet import Column, Scale, draw_sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MISSING_COLOUR = (0.38, 0.50, 0.66)
_CALIBRATION_ROOM = 560


def draw_restoration(
    result: Result,
    observed_values: NDArray[Any],
    observed: NDArray[np.bool_],
    reference: NDArray[Any] | None,
) -> Figure:
    """Draw what was given, what was restored and, when it is known, the truth, on one grey scale.

    Parameters
    ----------
    result : Result
        A restoration of an array with at least two axes longer than 1.
    observed_values : ndarray, the shape of result.mean
        The data; what stands at missing entries is not shown.
    observed : ndarray of bool, the same shape
        True where the data were given; missing entries are blue, single missing colours black.
    reference : ndarray, the same shape, or None
        The truth.

    Returns
    -------
    matplotlib.figure.Figure
    """
    mean = np.asarray(result.mean)
    planes = _planes(mean.shape)
    shown = [plane.take(mean) for plane in planes]
    truth = [] if reference is None else [plane.take(reference) for plane in planes]
    kind = [observed_values[:0]] if observed_values.dtype == np.uint8 else []
    limits = display_limits(*shown, *truth, *kind)

    given = []
    for plane in planes:
        picture = _as_colours(plane.take(observed_values), limits)
        given.append(_mark_missing(picture, plane.take(observed)))
    columns = [
        Column("Observed", given),
        Column("Restored", [_as_colours(picture, limits) for picture in shown]),
    ]
    subtitle = describe_observed(observed)
    if reference is not None:
        columns.append(Column("Reference", [_as_colours(picture, limits) for picture in truth]))
        subtitle += describe_quality(mean, reference)
    return draw_sheet("Restoration", subtitle, planes, columns).figure


def draw_uncertainty(
    result: Result,
    observed_values: NDArray[Any],
    observed: NDArray[np.bool_],
    reference: NDArray[Any] | None,
) -> Figure:
    """Draw the standard deviation of every entry and what it can be held against.

    With a reference: the size of the error on the same scale, and the distribution of error over predicted
    spread. Without: the residual at the observed entries, which should look like noise and nothing else.

    Parameters
    ----------
    result : Result
        A restoration of an array with at least two axes longer than 1.
    observed_values : ndarray, the shape of result.mean
        The data.
    observed : ndarray of bool, the same shape
        True where the data were given.
    reference : ndarray, the same shape, or None
        The truth.

    Returns
    -------
    matplotlib.figure.Figure
    """
    mean = np.asarray(result.mean)
    planes = _planes(mean.shape)
    std = [_one_channel(plane.take(np.asarray(result.std))) for plane in planes]
    subtitle = f"Standard deviation of the noise: {result.noise_std:.3g}"
    if reference is None:
        residuals = []
        for plane in planes:
            values = plane.take(observed_values).astype(np.float64) - plane.take(mean)
            residuals.append(_one_channel(np.where(plane.take(observed), values, np.nan)))
        largest = 3 * float(result.noise_std) or 1.0
        columns = [
            Column("Standard deviation", std, Scale("magma", 0, _high(std))),
            Column("Observed − restored", residuals, Scale("RdBu_r", -largest, largest)),
        ]
        return draw_sheet("Uncertainty", subtitle, planes, columns).figure

    errors = [
        _one_channel(np.abs(plane.take(reference).astype(np.float64) - plane.take(mean))) for plane in planes
    ]
    scale = Scale("magma", 0, max(_high(std), _high(errors)))
    columns = [Column("Standard deviation", std, scale), Column("Size of the error", errors, scale)]
    sheet = draw_sheet("Uncertainty", subtitle, planes, columns, _CALIBRATION_ROOM)
    height = min(max(planes[0].height, 300), 420)
    axes = place_axes(sheet.figure, sheet.right + 90, sheet.top, _CALIBRATION_ROOM - 150, height)
    draw_calibration(axes, result, observed, reference)
    return sheet.figure


def describe_observed(observed: NDArray[np.bool_]) -> str:
    """Return one sentence on how much was given."""
    if observed.all():
        return f"All {observed.size:,} entries observed"
    return f"{100 * observed.mean():.3g} % of {observed.size:,} entries observed"


def describe_quality(mean: NDArray[Any], reference: NDArray[Any]) -> str:
    """Return the PSNR over all entries as the end of a sentence, or nothing without a finite reference.

    The mean is clipped to the range of an integer reference, as it is when it is written to a file.
    """
    if not np.isfinite(reference).any():
        return ""
    if reference.dtype.kind in "iu":
        limits = np.iinfo(reference.dtype)
        mean = np.clip(mean, limits.min, limits.max)
    return f"; restored with {psnr(mean, reference):.2f} dB"


def _planes(shape: tuple[int, ...]) -> list[Plane]:
    planes = central_planes(shape, target=512)
    return planes if len(planes) == 1 else central_planes(shape, target=360)


def _as_colours(values: NDArray[Any], limits: tuple[float, float]) -> NDArray[np.float64]:
    """Map values, shape (height, width) or (height, width, 3), to colours in [0, 1]; NaN is black."""
    low, high = limits
    values = np.nan_to_num(values.astype(np.float64), nan=low, posinf=high, neginf=low)
    shares = np.clip((values - low) / (high - low), 0, 1)
    return shares if shares.ndim == 3 else np.repeat(shares[..., np.newaxis], 3, axis=2)


def _mark_missing(picture: NDArray[np.float64], observed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Paint the missing pixels blue, or, when single colours of a pixel are missing, make these black."""
    if observed.ndim == 2:
        observed = observed[..., np.newaxis]
    whole_pixels = np.array_equal(observed.any(axis=2), observed.all(axis=2))
    return np.where(observed, picture, _MISSING_COLOUR if whole_pixels else 0.0)


def _one_channel(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return one number per pixel: the root mean square over the colours, with the sign of their mean."""
    if values.ndim == 2:
        return values.astype(np.float64)
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=2), 1)
    filled = np.where(known, values, 0.0).astype(np.float64)
    size = np.sqrt((filled**2).sum(axis=2) / count)
    signed = np.where(filled.sum(axis=2) < 0, -size, size)
    return np.where(known.any(axis=2), signed, np.nan)


def _high(pictures: list[NDArray[Any]]) -> float:
    """Return a value that nearly all entries stay below."""
    values = np.concatenate([picture[np.isfinite(picture)].ravel() for picture in pictures])
    high = float(np.percentile(values, 99.5)) if values.size else 0.0
    return high if high > 0 else 1.0
