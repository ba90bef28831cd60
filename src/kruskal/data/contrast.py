r"""Local contrast normalisation of pictures (Jarrett, Kavukcuoglu, Ranzato and LeCun 2009).

    v_ijc = x_ijc - sum_{c'pq} w_pq x_{i+p,j+q,c'}                             the neighbourhood's mean off
    y_ijc = v_ijc / max(mean of s over the picture, s_ij),   s_ij^2 = sum_{c'pq} w_pq v_{i+p,j+q,c'}^2

with a Gaussian window w whose sum over neighbourhood and channels is 1. At the border the window is cut off
and its weights are made to sum to 1 again.
"""

from __future__ import annotations

import numpy as np

from kruskal.errors import InputError, shown, whole_number

FLAT = 1e-5
"""A picture whose local deviations are below this part of its largest value is flat: it becomes 0."""


def normalize_contrast(pictures: np.ndarray, window: int = 9, spread: float | None = None) -> np.ndarray:
    """Local contrast normalisation of pictures (N, rows, columns, channels), float32.

    Parameters
    ----------
    pictures : (N, rows, columns, channels) or (N, rows, columns)
        Grey, colour or any number of channels, which share mean and deviation.
    window : int
        Odd number of rows and columns of the neighbourhood.
    spread : float, optional
        Standard deviation of the Gaussian window in pixels; a quarter of the window by default.
    """
    pictures = np.asarray(pictures)
    if pictures.ndim not in (3, 4) or pictures.size == 0:
        raise InputError(
            f"pictures have shape {pictures.shape}, expected (N, rows, columns) or "
            "(N, rows, columns, channels)"
        )
    weights = _weights(window, spread)
    out = np.empty(pictures.shape, dtype=np.float32)
    coverage = _blur(np.ones(pictures.shape[1:3]), weights)
    for n, picture in enumerate(pictures):
        whole = picture.reshape(*picture.shape[:2], -1).astype(np.float64)
        if not np.isfinite(whole).all():
            raise InputError(f"picture {n} has entries that are NaN or infinite, expected finite values")
        centred = whole - (_blur(whole.mean(axis=2), weights) / coverage)[..., None]
        deviation = np.sqrt(_blur((centred**2).mean(axis=2), weights) / coverage)
        typical = float(deviation.mean())
        if typical <= FLAT * float(np.abs(whole).max()):
            out[n] = 0.0
            continue
        out[n] = (centred / np.maximum(deviation, typical)[..., None]).reshape(picture.shape)
    return out


def _weights(window: int, spread: float | None) -> np.ndarray:
    window = whole_number("window", window, 1)
    if window % 2 == 0:
        raise InputError(f"window must be an odd number of pixels, not {window}")
    width = 0.25 * window if spread is None else spread
    if not (isinstance(width, (int, float)) and 0.0 < width < np.inf):
        raise InputError(f"spread must be a number of pixels above 0, not {shown(spread)}")
    offsets = np.arange(window) - window // 2
    weights = np.exp(-0.5 * (offsets / width) ** 2)
    return weights / weights.sum()


def _blur(plane: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Window sums; nothing counts outside of the picture."""
    from scipy.ndimage import correlate1d  # not everybody who reads arrays needs it

    for axis in (0, 1):
        plane = correlate1d(plane, weights, axis=axis, mode="constant")
    return plane
