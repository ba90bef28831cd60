"""How far a restored array is from the truth.

Every measure leaves out the entries whose reference is not finite, so a partly known truth (NaN elsewhere)
can be used as it is.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kruskal.errors import InputError
from kruskal.report.comparison import checked, checked_peak, difference, is_colour, is_finite

_LARGEST_WINDOW = 7
_SMALLEST_WINDOW = 3


def psnr(
    estimate: ArrayLike, reference: ArrayLike, peak: float | None = None, where: ArrayLike | None = None
) -> float:
    """Peak signal-to-noise ratio, 20 log10(peak / RMSE), in decibels.

    Parameters
    ----------
    estimate, reference : array_like, same shape
        The restored and the true array.
    peak : float, optional
        The largest possible value; by default `default_peak(reference)`, taken over the whole reference.
    where : array_like of bool, same shape, optional
        The entries to compare; all by default.

    Returns
    -------
    float
        Infinite when the compared entries are identical.
    """
    estimate, reference, chosen = checked(estimate, reference, where)
    peak = checked_peak(peak, reference)
    error = np.sqrt(np.mean(difference(estimate, reference, chosen) ** 2))
    if error == 0:
        return math.inf
    return 20 * math.log10(peak / float(error)) if peak > 0 else -math.inf


def rrse(estimate: ArrayLike, reference: ArrayLike, where: ArrayLike | None = None) -> float:
    """Relative root squared error, ||estimate - reference|| / ||reference|| in the Frobenius norm.

    Parameters
    ----------
    estimate, reference : array_like, same shape
        The restored and the true array.
    where : array_like of bool, same shape, optional
        The entries to compare; all by default.

    Returns
    -------
    float
        0 when the compared entries are identical; infinite when only the reference is all zero.
    """
    estimate, reference, chosen = checked(estimate, reference, where)
    error = float(np.linalg.norm(difference(estimate, reference, chosen)))
    size = float(np.linalg.norm(reference[chosen].astype(np.float64)))
    if error == 0:
        return 0.0
    return error / size if size > 0 else math.inf


def ssim(
    estimate: ArrayLike, reference: ArrayLike, peak: float | None = None, where: ArrayLike | None = None
) -> float | None:
    """Mean structural similarity, of an array of any order.

    The last axis is taken for colour when the order is at least 3 and its length 3 or 4. The window has 7
    entries along every other axis, fewer (5 or 3) when an axis is shorter. Windows that reach over the edge
    are left out, as in scikit-image, which does the work. Axes of length 1 do not count.

    Parameters
    ----------
    estimate, reference : array_like, same shape
        The restored and the true array.
    peak : float, optional
        The range of the data; by default `default_peak(reference)`.
    where : array_like of bool, same shape, optional
        The entries whose windows are averaged; all by default.

    Returns
    -------
    float or None
        None when an axis is shorter than 3, the reference is not finite everywhere or has no range, or no
        chosen entry has a whole window.
    """
    estimate, reference, chosen = checked(estimate, reference, where)
    similarity = _similarity_map(estimate, reference, checked_peak(peak, reference))
    return None if similarity is None else _mean_similarity(similarity, chosen)


INTERVAL = "mean ± 2·sqrt(std² + noise²)"
"""What `coverage` counts by default; the reference has no noise, so this band is wider than ± 2·std."""
INTERVAL_STD = "mean ± 2·std"


def coverage(
    mean: ArrayLike,
    std: ArrayLike,
    noise_std: float,
    reference: ArrayLike,
    where: ArrayLike | None = None,
    width: float = 2.0,
) -> float:
    """Share of the entries whose true value lies within mean ± width·sqrt(std² + noise_std²).

    Parameters
    ----------
    mean, std, reference : array_like, same shape
        The restored array, its standard deviation and the true array.
    noise_std : float
        Standard deviation of the noise; 0 asks for std alone.
    where : array_like of bool, same shape, optional
        The entries to count (usually the missing ones); all by default.
    width : float
        Half width of the band in standard deviations; a Gaussian has 95.4 % within 2.

    Returns
    -------
    float
        Between 0 and 1.
    """
    mean, reference, chosen = checked(mean, reference, where)
    std = np.asarray(std)
    if std.shape != mean.shape:
        raise InputError(f"std has the shape {std.shape}, but mean has {mean.shape}.")
    spread = np.sqrt(std[chosen].astype(np.float64) ** 2 + float(noise_std) ** 2)
    return float(np.mean(np.abs(difference(mean, reference, chosen)) <= width * spread))


def scores(
    estimate: ArrayLike, reference: ArrayLike, observed: ArrayLike, peak: float | None = None
) -> dict[str, float | None]:
    """All measures over all entries, over the observed and over the missing ones.

    Parameters
    ----------
    estimate, reference : array_like, same shape
        The restored and the true array.
    observed : array_like of bool, same shape
        True where the data were given.
    peak : float, optional
        The largest possible value; by default `default_peak(reference)`.

    Returns
    -------
    dict
        The keys psnr, rrse and ssim (all entries) and the same with _observed and _missing. The values are
        plain floats that JSON can hold: a set without entries, and an infinite value (PSNR of identical
        arrays), give None.
    """
    estimate, reference, known = checked(estimate, reference, None)
    observed = np.asarray(observed, dtype=bool)
    if observed.shape != reference.shape:
        raise InputError(f"observed has the shape {observed.shape}, but the reference {reference.shape}.")
    similarity = _similarity_map(estimate, reference, checked_peak(peak, reference))
    found: dict[str, float | None] = {}
    for suffix, chosen in (("", known), ("_observed", known & observed), ("_missing", known & ~observed)):
        some = bool(chosen.any())
        found["psnr" + suffix] = _json_safe(psnr(estimate, reference, peak, chosen)) if some else None
        found["rrse" + suffix] = _json_safe(rrse(estimate, reference, chosen)) if some else None
        found["ssim" + suffix] = None if similarity is None else _mean_similarity(similarity, chosen)
    return found


def _similarity_map(
    estimate: NDArray[Any], reference: NDArray[Any], peak: float
) -> NDArray[np.float64] | None:
    """Return the local similarity, NaN where the window reaches over the edge, or None if there is no window.

    Parameters
    ----------
    estimate, reference : ndarray, same shape
        The restored and the true array.
    peak : float
        The range of the data.

    Returns
    -------
    ndarray, the shape of the reference, or None
    """
    shape = reference.shape
    reference, estimate = reference.squeeze(), estimate.squeeze()
    colour = is_colour(reference.shape)
    sides = reference.shape[:-1] if colour else reference.shape
    shortest = min(sides, default=0)
    window = min(_LARGEST_WINDOW, shortest if shortest % 2 else shortest - 1)
    finite = is_finite(reference).all() and is_finite(estimate).all()
    if window < _SMALLEST_WINDOW or peak <= 0 or not finite:
        return None

    from skimage.metrics import structural_similarity

    _, similarity = structural_similarity(
        reference.astype(np.float64),
        estimate.astype(np.float64),
        win_size=window,
        data_range=peak,
        channel_axis=-1 if colour else None,
        full=True,
    )
    margin = window // 2
    inside = tuple(slice(margin, side - margin) for side in sides)
    cropped = np.full(reference.shape, np.nan)
    cropped[inside] = similarity[inside]
    return cropped.reshape(shape)


def _mean_similarity(similarity: NDArray[np.float64], chosen: NDArray[np.bool_]) -> float | None:
    values = similarity[chosen & ~np.isnan(similarity)]
    return float(values.mean()) if values.size else None


def _json_safe(value: float) -> float | None:
    return value if math.isfinite(value) else None
