"""Which flat parts of an array of any order are shown, and how large."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kruskal.report.comparison import is_colour

_LARGEST_ELONGATION = 3
_HIGH = 1.5


@dataclass(frozen=True)
class Plane:
    """Two whole axes of an array, all others held at their middle."""

    index: tuple[slice | int, ...]
    """Takes the plane out of the array; a colour axis stays last."""
    height: int
    """Size on paper, in pixels."""
    width: int
    label: str
    """The plane as one would type it."""
    turned: bool = False
    """Whether rows and columns are swapped, because a wide picture takes less room than a high one."""

    def take(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return this plane of an array, shape (rows, columns) or (rows, columns, 3)."""
        picture = array[self.index]
        return picture.swapaxes(0, 1) if self.turned else picture


def long_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes with more than one entry, without a colour axis."""
    axes = tuple(axis for axis, length in enumerate(shape) if length > 1)
    return axes[:-1] if has_colour(shape) else axes


def has_colour(shape: tuple[int, ...]) -> bool:
    """Tell whether an array is shown in colour: `is_colour`, and a picture is left without that axis."""
    return is_colour(shape) and sum(length > 1 for length in shape[:-1]) >= 2


def central_planes(shape: tuple[int, ...], target: int) -> list[Plane]:
    """Choose the planes that show an array of order 2 or more.

    A picture is its own and only plane. Of higher orders the three longest axes are shown, two at a time,
    through the middle of the array; planes that would stand much higher than wide are laid on their side.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array, with at least two `long_axes`.
    target : int
        Wished length of the longest axis on paper, in pixels.

    Returns
    -------
    list of Plane
        One plane or three.
    """
    axes = long_axes(shape)
    axes = tuple(sorted(sorted(axes, key=lambda axis: -shape[axis])[:3]))
    pixels = _axis_pixels({axis: shape[axis] for axis in axes}, target)
    pairs = [(first, second) for first in axes for second in axes if first < second]
    planes = []
    for first, second in pairs:
        index: list[slice | int] = [length // 2 for length in shape]
        index[first] = index[second] = slice(None)
        if has_colour(shape):
            index[-1] = slice(0, 3)
        texts = [":" if isinstance(part, slice) else str(part) for part in index]
        label = "[" + ", ".join(texts) + "]"
        height, width = pixels[first], pixels[second]
        if len(pairs) > 1 and height > _HIGH * width:
            planes.append(Plane(tuple(index), width, height, label + ".T", turned=True))
        else:
            planes.append(Plane(tuple(index), height, width, label))
    return planes


def _axis_pixels(lengths: dict[int, int], target: int) -> dict[int, int]:
    """Give every axis its pixels: whole pixels per entry if possible, and no axis vanishingly short."""
    longest = max(lengths.values())
    if longest <= 2 * target:
        scale = float(max(1, round(target / longest)))
    else:
        scale = 2 * target / longest
    shortest = scale * longest / _LARGEST_ELONGATION
    return {axis: round(max(scale * length, shortest)) for axis, length in lengths.items()}


def display_limits(*arrays: NDArray[Any]) -> tuple[float, float]:
    """Return the values shown as black and white: nearly all finite entries lie between them.

    Parameters
    ----------
    *arrays : ndarray
        Arrays that are shown on the same scale; if one is uint8, the limits are 0 and 255.

    Returns
    -------
    low, high : float
        low < high, always.
    """
    if any(array.dtype == np.uint8 for array in arrays):
        return 0.0, 255.0
    values = np.concatenate([array[np.isfinite(array)].astype(np.float64).ravel() for array in arrays])
    if values.size == 0:
        return 0.0, 1.0
    low, high = (float(limit) for limit in np.percentile(values, (0.5, 99.5)))
    if high > low:
        return low, high
    return low - max(abs(low), 1.0), high + max(abs(high), 1.0)
