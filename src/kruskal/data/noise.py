"""A quick look at the noise and the smoothness of an array, for choosing defaults.

The models infer the noise properly.
"""

import math

import numpy as np

_MEDIAN_OF_NORMAL = 0.6744897501960817  # median of |N(0, 1)|
_MOST_ENTRIES = 5_000_000
_FEWEST = 100
_DISTANCES = (2, 4, 8)


def rough_noise(values: np.ndarray, observed: np.ndarray) -> float | None:
    """Noise standard deviation from second differences along the axis where they are smallest.

    x[i-1] - 2 x[i] + x[i+1] has the standard deviation sqrt(6) sigma where the array is smooth; texture makes
    it larger, hence the median and the best axis. Only triples that are observed count.

    Parameters
    ----------
    values : array of any order, in any units;  observed : bool, same shape

    Returns
    -------
    float or None
        None when no axis has at least 100 observed triples.
    """
    step = -(-values.size // _MOST_ENTRIES)
    estimates = []
    for axis in range(values.ndim):
        if values.shape[axis] < 3:
            continue
        x, seen = np.moveaxis(values, axis, -1), np.moveaxis(observed, axis, -1)
        if step > 1 and values.ndim > 1:
            x, seen = x[::step], seen[::step]
        whole = seen[..., :-2] & seen[..., 1:-1] & seen[..., 2:]
        if np.count_nonzero(whole) < _FEWEST:
            continue
        x = np.where(seen, x, 0).astype(np.float64)
        # differences of numbers near the largest float would overflow; a power of two changes no digit
        scale = 2.0 ** (math.frexp(max(x.max(), -x.min()))[1] - 1)
        x /= scale
        difference = (x[..., :-2] - 2.0 * x[..., 1:-1] + x[..., 2:])[whole]
        estimates.append(scale * (float(np.median(np.abs(difference))) / (_MEDIAN_OF_NORMAL * 6.0**0.5)))
    return min(estimates) if estimates else None


def growth_of_differences(values: np.ndarray, observed: np.ndarray) -> float | None:
    """How differences grow with distance: (v_4d - v_d) / (v_2d - v_d), v_d their mean square at distance d.

    White noise is in all three alike and drops out. 5 where the array is linear over such distances, 3 for a
    random walk, about 2.5 for photographs, less for textures. d is 2, or 4 or 8 if nearer differences show no
    more than noise.

    Returns
    -------
    float or None
        None when there are fewer than 100 pairs at a distance, or when noise is all there is.
    """
    for distance in _DISTANCES:
        found = [_mean_square(values, observed, distance * factor) for factor in (1, 2, 4)]
        if any(count < _FEWEST for _, count in found):
            return None
        (near, count), (middle, _), (far, _) = found
        # what noise leaves of a difference of two such means is about 2 / sqrt(count) of them
        if middle - near > 5.0 * near / math.sqrt(count):
            return (far - near) / (middle - near)
    return None


def _mean_square(values: np.ndarray, observed: np.ndarray, distance: int) -> tuple[float, int]:
    """Of the differences at a distance along every axis, where both ends are observed; and their number."""
    total, count = 0.0, 0
    for axis in range(values.ndim):
        x, seen = np.moveaxis(values, axis, -1), np.moveaxis(observed, axis, -1)
        both = seen[..., distance:] & seen[..., :-distance]
        pairs = x[..., distance:][both].astype(np.float64) - x[..., :-distance][both]
        total, count = total + float((pairs**2).sum()), count + len(pairs)
    return total / max(count, 1), count
