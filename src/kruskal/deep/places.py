"""What decisions may see of several layers: weights pooled to a few places, and copies of a picture."""

import numpy as np


def place_features(maps: np.ndarray, places: int) -> np.ndarray:
    """The largest and the mean weight of every atom at ``places`` x ``places`` places, (n, 2 places^2 K).

    ``maps`` (n, rows, columns, K) are cut evenly; where that is not possible neighbouring parts overlap by a
    row or column. Maps with fewer rows or columns than places repeat some.
    """
    rows, columns = (_parts(size, places) for size in maps.shape[1:3])
    largest, mean = [], []
    for top, bottom in rows:
        for left, right in columns:
            part = maps[:, top:bottom, left:right]
            largest.append(part.max(axis=(1, 2)))
            mean.append(part.mean(axis=(1, 2)))
    return np.concatenate([*largest, *mean], axis=1)


def shifted_copies(images: np.ndarray, channels: int, shift: int) -> list[np.ndarray]:
    """Images (n, M_x, M_y C), and copies shifted by ``shift`` pixels along the four diagonals.

    What is shifted in is a mirror image of the border. Without a shift there are no copies.
    """
    if shift == 0:
        return [images]
    n_images, rows, width = images.shape
    pixels = images.reshape(n_images, rows, -1, channels)
    columns = pixels.shape[2]
    wide = np.pad(pixels, ((0, 0), (shift, shift), (shift, shift), (0, 0)), mode="reflect")
    corners = ((shift, shift), (0, 0), (0, 2 * shift), (2 * shift, 0), (2 * shift, 2 * shift))
    return [
        np.ascontiguousarray(wide[:, x : x + rows, y : y + columns]).reshape(n_images, rows, width)
        for x, y in corners
    ]


def _parts(size: int, n_parts: int) -> list[tuple[int, int]]:
    """First and last + 1 of the rows or columns of every part."""
    return [(i * size // n_parts, -(-(i + 1) * size // n_parts)) for i in range(n_parts)]
