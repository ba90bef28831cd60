"""Scaling brings data near one and loses nothing on the way back."""

import math
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kruskal.data import Scaling
from kruskal.data.scaling import LARGEST_SAMPLE
from kruskal.errors import InputError

finite = st.floats(allow_nan=False, allow_infinity=False)


def fit(values):
    return Scaling.fit(values, np.ones(np.shape(values), dtype=bool))


def test_picture():
    values = np.arange(256, dtype=np.uint8)
    scaling = fit(values)
    assert scaling == Scaling(0.0, 256.0)
    assert scaling.forward(values).dtype == np.float32
    assert scaling.inverse(scaling.forward(values)).dtype == np.float64
    np.testing.assert_array_equal(scaling.inverse(scaling.forward(values)), values)
    np.testing.assert_array_equal(scaling.inverse_std(np.float32([0.5, 1])), [128, 256])


@pytest.mark.parametrize(
    "low, high, natural",
    [(0, 1, True), (-3, 5, True), (90, 200, True), (100, 201, True), (110, 200, False), (1000, 1010, False)],
)
def test_zero_is_kept_where_it_is_natural(low, high, natural):
    values = np.linspace(low, high, 1001)
    for sign in (1, -1):
        scaling = fit(sign * values)
        if natural:
            assert scaling.offset == 0
            assert 2**-0.5 <= max(abs(low), abs(high)) / scaling.scale <= 2**0.5 * 1.01
        else:
            assert abs(scaling.offset - sign * values.mean()) <= scaling.scale / 512
            assert 2**-0.5 * 0.99 <= (high - low) / scaling.scale <= 2**0.5 * 1.01


def test_outliers_do_not_set_the_scale():
    values = np.concatenate([np.linspace(0, 1, 10_000), [1e6]])
    assert fit(values) == Scaling(0.0, 1.0)


@pytest.mark.parametrize("largest, scale", [(0.70, 0.5), (0.72, 1.0), (1.40, 1.0), (1.43, 2.0)])
def test_scale_is_the_nearest_power_of_two(largest, scale):
    assert fit(np.linspace(0, largest, 100_001)).scale == scale


def test_absurd_outliers_stay_finite():
    values = np.concatenate([np.linspace(0, 1, 10_000), [1e60]])
    scaling = fit(values)
    assert np.isfinite(scaling.forward(values)).all()
    assert 2**29 < scaling.forward(values).max() < 2**31


def test_few_values_among_equal_ones():
    values = np.zeros(100_000)
    values[5] = 200.0
    assert fit(values) == Scaling(0.0, 256.0)


@pytest.mark.parametrize("constant", [0.0, 7.5, -1e300, 1e-300, sys.float_info.max, 5e-324])
def test_constant(constant):
    values = np.full(10, constant)
    scaling = fit(values)
    assert scaling == Scaling(constant, 1.0)
    np.testing.assert_array_equal(scaling.forward(values), np.zeros(10))
    np.testing.assert_array_equal(scaling.inverse(scaling.forward(values)), values)


def test_missing_values_have_no_influence():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    observed = np.array([True, False, True, True])
    expected = Scaling.fit(values, observed)
    for filling in (np.nan, np.inf, 1e300, -1e300):
        values[1] = filling
        assert Scaling.fit(values, observed) == expected
        assert np.isfinite(expected.forward(values)[observed]).all()
    assert np.isnan(expected.forward([np.nan])).all()


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=finite))
def test_any_floats(values):
    scaling = fit(values)
    assert math.isfinite(scaling.offset)
    assert scaling.scale > 0
    assert math.frexp(scaling.scale)[0] == 0.5  # a power of two
    with np.errstate(all="raise", under="ignore"):
        scaled = scaling.forward(values)
        back = scaling.inverse(scaled)
    assert np.abs(scaled).max() <= 2**30 * 1.5
    # float32 keeps 24 bits of the distance from the offset, float64 53 bits of the value
    error = np.abs(back / 4 - values / 4)
    allowed = np.abs(values / 4 - scaling.offset / 4) * 2**-24 + np.abs(values / 4) * 2**-51
    assert (error <= allowed + scaling.scale * 2.0**-140 + sys.float_info.min).all()


@given(
    st.integers(-(2**20), 2**20),
    st.lists(st.integers(0, 2**12), min_size=3, max_size=30),
    st.sampled_from(["int32", "int64", "float64"]),
)
def test_integers_survive_exactly(start, steps, dtype):
    values = start + np.array(steps, dtype=dtype)
    assume(values.min() < values.max())
    scaling = fit(values)
    np.testing.assert_array_equal(scaling.inverse(scaling.forward(values)), values)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int64", "uint64"])
def test_limits_of_integers(dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.max, info.max // 2], dtype=dtype)
    scaling = fit(values)
    assert scaling.offset == 0
    assert np.abs(scaling.forward(values)).max() <= 2
    np.testing.assert_allclose(scaling.inverse(scaling.forward(values)), values.astype(float), rtol=2**-24)


@pytest.mark.parametrize("size", [1e300, 1e-300, sys.float_info.max, sys.float_info.min, 5e-324])
def test_extreme_floats(size):
    values = np.array([-1.0, 1.0, 0.0, 1.0]) * size
    scaling = fit(values)
    assert scaling.offset == 0
    scaled = scaling.forward(values)
    assert np.isfinite(scaled).all()
    np.testing.assert_allclose(scaling.inverse(scaled), values, rtol=2**-23)


def test_offset_next_to_the_largest_float():
    values = np.full(2000, sys.float_info.max)
    values[:3] *= 0.9
    scaling = fit(values)
    assert 0.9 * sys.float_info.max < scaling.offset <= sys.float_info.max
    np.testing.assert_allclose(scaling.inverse(scaling.forward(values)), values, rtol=1e-7)


def test_large_arrays_use_a_fixed_sample():
    values = np.tile(np.linspace(100.0, 104.0, 1024, dtype=np.float32), 2 * LARGEST_SAMPLE // 1024)
    observed = np.ones(values.shape, dtype=bool)
    scaling = Scaling.fit(values, observed)
    assert scaling == Scaling.fit(values, observed)
    assert scaling.scale == 4
    assert abs(scaling.offset - 102) <= 0.02
    observed[:-1000] = False  # too few in the sample: all of them count
    assert abs(Scaling.fit(values, observed).offset - values[-1000:].mean(dtype=float)) <= 4 / 512


def test_wrong_input():
    with pytest.raises(InputError, match="nothing is observed"):
        Scaling.fit([1.0, 2.0], [False, False])
    with pytest.raises(InputError, match="NaN or infinity"):
        Scaling.fit([1.0, np.nan], [True, True])
    with pytest.raises(InputError, match="shape"):
        Scaling.fit([1.0, 2.0], [True])
