"""Entries so far from all others that they may be no values at all: codes for "nothing", dead detectors."""

import numpy as np

from kruskal.data.scaling import sample_of
from kruskal.errors import InputError

FAR = 1e3
"""Times the spread: from here on it is said."""
TOO_FAR = 1e7
"""From here on single precision does not hold such an entry and the noise of the others at once."""
_NEARLY_ALL = (5.0, 95.0)


def far_entries(values: np.ndarray, observed: np.ndarray, name: str) -> str | None:
    """A sentence about observed entries that lie far outside of nearly all others, or None.

    The spread is that between the percentiles 5 and 95. Where these agree nothing is said.

    Raises
    ------
    InputError
        When an entry lies further out than the sampler can stand.
    """
    low, high = np.ldexp(np.percentile(np.ldexp(sample_of(values, observed), -2), _NEARLY_ALL), 2)
    quarter = 0.25 * high - 0.25 * low  # of the spread, which may be no float
    if quarter == 0:
        return None
    extremes = [float(f(values, where=observed, initial=edge)) for f, edge in ((np.min, low), (np.max, high))]
    with np.errstate(over="ignore"):
        away = [(0.25 * low - 0.25 * extremes[0]) / quarter, (0.25 * extremes[1] - 0.25 * high) / quarter]
        bounds = low - 4.0 * FAR * quarter, high + 4.0 * FAR * quarter
    furthest = int(np.argmax(away))
    if away[furthest] > TOO_FAR:
        raise InputError(
            f"{name} holds {extremes[furthest]:g}, further from nearly all other entries than "
            f"{TOO_FAR:.0e} times their spread: mark such entries as missing"
        )
    if away[furthest] <= FAR:
        return None
    count = int(np.count_nonzero(observed & ((values < bounds[0]) | (values > bounds[1]))))
    who = "1 observed entry lies" if count == 1 else f"{count} observed entries lie"
    return (
        f"{who} further from nearly all others than {FAR:,.0f} times their spread, such as "
        f"{extremes[furthest]:g}: if that stands for nothing measured, mark it as missing"
    )
