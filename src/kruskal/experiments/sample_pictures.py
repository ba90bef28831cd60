"""Pictures that come with scikit-image: for choosing defaults, and for judging them.

They are made grey (by scikit-image's `rgb2gray`), reduced by the mean over blocks of 2x2 where both sides
have at least 512 pixels, and cropped around the middle to 256x256. None is downloaded.
"""

import numpy as np

SIDE = 256
HAD_A_SAY = ("camera", "coins", "astronaut", "chelsea", "brick", "coffee")
"""Pictures on which defaults were chosen (docs/choices.md)."""
FRESH = ("grass", "gravel", "moon", "clock", "immunohistochemistry", "stereo_motorcycle")
"""Pictures that no choice was made on."""
PICTURES = (*HAD_A_SAY, *FRESH)


def picture(name: str) -> np.ndarray:
    """A picture of scikit-image by the name of its function, grey, (256, 256) uint8."""
    from skimage import data
    from skimage.color import rgb2gray

    values = getattr(data, name)()
    if isinstance(values, tuple):  # a stereo pair: the left one
        values = values[0]
    values = 255 * rgb2gray(values) if values.ndim == 3 else values.astype(np.float64)
    block = 2 if min(values.shape) >= 2 * SIDE else 1
    rows, columns = (size // block for size in values.shape)
    values = values[: rows * block, : columns * block].reshape(rows, block, columns, block).mean(axis=(1, 3))
    top, left = (rows - SIDE) // 2, (columns - SIDE) // 2
    return np.rint(values[top : top + SIDE, left : left + SIDE]).astype(np.uint8)
