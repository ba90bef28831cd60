"""Values so far from all others that they may be none: codes for "nothing measured", dead detectors."""

from collections.abc import Callable

import numpy as np

from kruskal.data.scaling import Scaling, sample_of
from kruskal.errors import InputError

FAR = 1e3
"""Times the spread of the others: from here on it is said."""
TOO_FAR = 1e7
"""Times the scale of the data: from here on single precision may not hold such a value beside the others."""
_ALONE = 0.9
"""Part of the way from the others to such a value in which there is nothing."""
_NEARLY_ALL = (5.0, 95.0)


def far_entries(values: np.ndarray, observed: np.ndarray, name: str) -> str | None:
    """A sentence about the smallest or largest observed value if it lies alone and far outside, or None.

    Any number of entries may hold it. Peaks have slopes and tails thin out, so a value that others come near
    is taken for one.

    Raises
    ------
    InputError
        When it is so far out that the sampler may not stand it.
    """
    for extreme in (np.min, np.max):
        value = extreme(values, where=observed, initial=_first(values, observed))
        others = observed & (values != value)
        if not others.any() or not _lies_far(values, others, value, extreme):
            continue
        scaling = Scaling.fit(values, observed)
        with np.errstate(over="ignore"):
            away = abs(float(value) / scaling.scale - scaling.offset / scaling.scale)
        if away > TOO_FAR:
            raise InputError(
                f"{name} holds {value:g}, too far outside of all other entries: mark such entries as missing"
            )
        count = int(np.count_nonzero(observed)) - int(np.count_nonzero(others))
        who = "1 observed entry holds" if count == 1 else f"{count} observed entries hold"
        return (
            f"{who} {value:g}, more than {FAR:,.0f} times the spread of all others away from them: if that "
            "stands for nothing measured, mark it as missing"
        )
    return None


def _lies_far(values: np.ndarray, others: np.ndarray, value: float, extreme: Callable[..., float]) -> bool:
    """Whether ``value``, the ``extreme``, is far from the ``others``, by their spread, and alone there.

    The spread is that between the percentiles 5 and 95, or all of it where these agree.
    """
    sample = np.ldexp(sample_of(values, others), -2)  # differences of the largest floats would be none
    low, high = np.percentile(sample, _NEARLY_ALL)
    spread = float(high - low) or float(sample.max() - sample.min())
    nearest = 0.25 * float(extreme(values, where=others, initial=_first(values, others)))
    edge = float(low if extreme is np.min else high)
    gap = abs(nearest - 0.25 * float(value))
    return spread > 0.0 and gap / FAR > spread and gap >= _ALONE * abs(edge - 0.25 * float(value))


def _first(values: np.ndarray, flags: np.ndarray) -> float:
    return values.flat[int(np.argmax(flags))]
