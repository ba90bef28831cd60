"""The most noise that an array can hold, and how much else: from the covariance of its patches.

White noise of standard deviation sigma adds sigma^2 I to the covariance of whatever is under it, so no
eigenvalue of the patches' covariance is below sigma^2. Texture that fills all but a few directions of patch
space, which a model would take for noise, cannot raise the smallest one.
"""

import math
from collections.abc import Sequence

import numpy as np

_MOST_PATCHES, _MOST_ENTRIES = 65_536, 4_194_304  # over all patches that are looked at
_MOST_SIMULATED = 4_194_304  # entries of an array of white noise
_SIMULATIONS = (3, 20)  # fewest and most draws of white noise
_LEAST_KEPT = 0.4  # of the noise variance: below it the sample is too small to say anything
_FLAT, _FLAT_SHARE = 2.0, 4
_SEED = 0x5EED


def noise_bound(values: np.ndarray, patch_shape: Sequence[int]) -> float | None:
    """A standard deviation that white noise in a complete array, alike at all places, cannot exceed.

    The smallest eigenvalue of a sample covariance is too small by chance. It is divided by the smallest one
    that white noise of variance 1 gives at the same places: the least of a few fixed draws, of more where the
    sample is small and chance is large. As white noise has no signal, all its directions compete for being
    the smallest, and the bound errs on the side of more noise.

    Noise that is not white, such as that of an array that was interpolated, has next to nothing in some
    directions, and the others would be taken for signal. White noise makes a floor: there is no bound if the
    smallest quarter of the eigenvalues spreads over a factor of two in variance.

    Parameters
    ----------
    values : array of any order, in any units, nothing missing
    patch_shape : shape of the patches that are looked at; at most 65,536 of them are, at fixed random places.
        Where noise differs along an axis, patches of one entry along it bound the mean of the variances

    Returns
    -------
    float or None
        In the units of ``values``. None when there are too few patches, or those of one entry, when the noise
        makes no floor, or when it is lost in rounding.
    """
    patch_shape = tuple(patch_shape)
    size = math.prod(patch_shape)
    places = _places(values.shape, patch_shape)
    if size == 1 or len(places) <= size:
        return None
    scale = _scale(values)
    found = _spectrum(values, patch_shape, places, scale)
    if not found[0] > size * np.finfo(np.float64).eps * found[-1]:
        return None
    if found[max(size // _FLAT_SHARE, 1) - 1] > _FLAT * found[0]:
        return None
    fewest, most = _SIMULATIONS
    n_draws = min(max(_MOST_ENTRIES // (len(places) * size), fewest), most)
    kept = min(_smallest_of_white(values.shape, patch_shape, places, draw) for draw in range(n_draws))
    if kept < _LEAST_KEPT:
        return None
    return scale * math.sqrt(found[0] / kept)


def signal_directions(values: np.ndarray, patch_shape: Sequence[int], noise: float) -> float:
    """In how many directions of patch space there is more than noise.

    The sum of max(0, 1 - noise^2 / eigenvalue): the degrees of freedom of the best linear estimate of a
    patch. Patches of planes have three.

    Parameters
    ----------
    values, patch_shape : as for `noise_bound`;  noise : standard deviation, in the units of ``values``
    """
    patch_shape, scale = tuple(patch_shape), _scale(values)
    found = _spectrum(values, patch_shape, _places(values.shape, patch_shape), scale)
    beyond = found[found > (noise / scale) ** 2]
    return float((1.0 - (noise / scale) ** 2 / beyond).sum())


def _places(shape: tuple[int, ...], patch_shape: tuple[int, ...]) -> np.ndarray:
    """All places of patches, or a fixed random choice if they are many, in order."""
    n_places = math.prod(large - small + 1 for large, small in zip(shape, patch_shape))
    most = min(_MOST_PATCHES, max(_MOST_ENTRIES // math.prod(patch_shape), 1))
    if n_places <= most:
        return np.arange(n_places)
    return np.unique(np.random.default_rng(_SEED).integers(0, n_places, most))


def _patches(values: np.ndarray, patch_shape: tuple[int, ...], places: np.ndarray) -> np.ndarray:
    """(n, P) the patches at these places, numbered in C order."""
    windows = np.lib.stride_tricks.sliding_window_view(values, patch_shape)
    corners = np.unravel_index(places, windows.shape[: values.ndim])
    return windows[corners].reshape(len(places), -1)


def _scale(values: np.ndarray) -> float:
    """Squares of numbers near the largest float would overflow; a power of two changes no digit."""
    return 2.0 ** (math.frexp(max(float(values.max()), -float(values.min())))[1] - 1)


def _spectrum(
    values: np.ndarray, patch_shape: tuple[int, ...], places: np.ndarray, scale: float
) -> np.ndarray:
    """Eigenvalues of the covariance of the patches at these places, in units of ``scale``, smallest first."""
    return _eigenvalues(_patches(values, patch_shape, places).astype(np.float64) / scale)


def _eigenvalues(patches: np.ndarray) -> np.ndarray:
    """Of their covariance, smallest first."""
    patches -= patches.mean(axis=0)
    return np.linalg.eigvalsh(patches.T @ patches / len(patches))


def _smallest_of_white(
    shape: tuple[int, ...], patch_shape: tuple[int, ...], places: np.ndarray, draw: int
) -> float:
    """The smallest eigenvalue that white noise of variance 1 gives at these places."""
    random = np.random.default_rng([_SEED, draw])
    if math.prod(shape) <= _MOST_SIMULATED:
        patches = _patches(random.standard_normal(shape), patch_shape, places)
    else:  # so few places of so many that patches hardly overlap
        patches = random.standard_normal((len(places), math.prod(patch_shape)))
    return float(_eigenvalues(patches)[0])
