"""Bring data of any size near one, and back without loss."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from kruskal.errors import InputError

LARGEST_SAMPLE = 2**20
PERCENTILES = (0.1, 99.9)
# No scaled value exceeds 2**30, so that float32 arithmetic survives even absurd outliers.
OUTLIER_EXPONENT = 30
# The offset is a multiple of scale / 2**8, so that integers are shifted without rounding.
OFFSET_EXPONENT = 8
# Powers of two that are normal float64 numbers.
SMALLEST_EXPONENT, LARGEST_EXPONENT = -1022, 1023
LARGE = 2.0**890


class Scaling(NamedTuple):
    """The map y = (x - offset) / scale from data x to working values y.

    Attributes
    ----------
    offset : float
        What becomes zero.
    scale : float
        What becomes one, a power of two: the division is exact in floating point.
    """

    offset: float
    scale: float

    @classmethod
    def fit(cls, values: Any, observed: Any) -> Scaling:
        """Choose offset and scale from the observed values.

        Parameters
        ----------
        values : array_like
            Real numbers of any dtype, also next to the limits of float64.
        observed : array_like of bool
            True is observed; the other values have no influence. Same shape as `values`.

        Returns
        -------
        Scaling
            With low and high the 0.1 and 99.9 percentiles of the observed values (the extremes if these
            agree): if zero is at most one width, high - low, away from [low, high], it is natural for the
            data and stays zero, and scale is the power of two nearest to max(|low|, |high|). Otherwise offset
            is the mean, rounded to a multiple of scale / 256, and scale the power of two nearest to
            high - low. Constant data: offset is the constant, scale 1.

        Notes
        -----
        More than about a million values are represented by a fixed random sample.
        """
        data, flags = np.asarray(values), np.asarray(observed, dtype=bool)
        if flags.shape != data.shape:
            raise InputError(f"observed has shape {flags.shape}, expected {data.shape} like values")
        if not flags.any():
            raise InputError("nothing is observed, there is no scale to find")
        first = data.flat[int(np.argmax(flags))]
        lowest = float(np.min(data, where=flags, initial=first))
        highest = float(np.max(data, where=flags, initial=first))
        if not (math.isfinite(lowest) and math.isfinite(highest)):
            raise InputError("values holds NaN or infinity at observed entries, expected finite values")
        if lowest == highest:
            return cls(lowest, 1.0)

        # What follows is in units of 2**exponent: all values lie in [-1, 1] and nothing overflows.
        exponent = math.frexp(max(abs(lowest), abs(highest)))[1]
        sample = np.ldexp(sample_of(data, flags), -exponent)
        lowest, highest = math.ldexp(lowest, -exponent), math.ldexp(highest, -exponent)
        low, high = (float(value) for value in np.percentile(sample, PERCENTILES))
        if low == high:
            low, high = lowest, highest
        width = high - low
        if low - width <= 0 <= high + width:
            offset, size = 0.0, max(abs(low), abs(high))
        else:
            offset, size = float(np.mean(sample)), width
        reach = max(abs(lowest - offset), abs(highest - offset))
        power = _nearest_power(max(size, math.ldexp(reach, -OUTLIER_EXPONENT)))
        scale = math.ldexp(1.0, min(max(exponent + power, SMALLEST_EXPONENT), LARGEST_EXPONENT))
        return cls(_rounded_offset(offset, power, exponent), scale)

    def forward(self, x: Any) -> np.ndarray:
        """Scale data to working values, float32; NaN stays NaN."""
        with np.errstate(over="ignore", invalid="ignore"):  # values at missing entries may be anything
            y = np.asarray(x, dtype=np.float64) / self.scale
            if self.offset:
                y -= self.offset / self.scale
            return y.astype(np.float32)

    def inverse(self, y: Any) -> np.ndarray:
        """Scale working values back to data, float64."""
        return self._stretched(y, self.offset)

    def inverse_std(self, s: Any) -> np.ndarray:
        """Scale standard deviations of working values back to the units of the data, float64."""
        return self._stretched(s, 0.0)

    def _stretched(self, y: Any, offset: float) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        if max(self.scale, abs(offset)) < LARGE:
            return y * self.scale + offset
        # Next to the largest float64, a rounding error must not become an infinity.
        with np.errstate(over="ignore"):
            x = y * self.scale + offset
        largest = np.finfo(np.float64).max
        return np.where(np.isfinite(y), np.clip(x, -largest, largest), x)


def sample_of(data: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """The observed values, or a fixed random choice among them if there are very many, as float64."""
    if data.size > LARGEST_SAMPLE:
        # Random rather than every n-th entry: a stride could fall into step with the rows of the array.
        places = np.random.Generator(np.random.Philox(0)).integers(0, data.size, LARGEST_SAMPLE)
        places = places[flags.reshape(-1)[places]]
        if places.size >= LARGEST_SAMPLE // 64:
            return data.reshape(-1)[places].astype(np.float64)
    return data[flags].astype(np.float64)


def _nearest_power(size: float) -> int:
    """The exponent of the power of two nearest to `size` on a logarithmic scale."""
    fraction, exponent = math.frexp(size)
    return exponent if fraction >= math.sqrt(0.5) else exponent - 1


def _rounded_offset(offset: float, power: int, exponent: int) -> float:
    step = math.ldexp(1.0, power - OFFSET_EXPONENT)
    rounded = round(offset / step) * step
    # Next to the largest float64, rounding up would leave its range.
    return math.ldexp(rounded if abs(rounded) < 1 else offset, exponent)
