"""Which entries count as observed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kruskal
from kruskal.data import observed_entries
from kruskal.errors import InputError


def test_everything_is_observed_by_default():
    observed = observed_entries(np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(observed, np.ones((2, 3), dtype=bool), strict=True)


def test_nan_is_missing():
    assert observed_entries([1.0, np.nan, 2.0]).tolist() == [True, False, True]


def test_masked_entries_are_missing():
    values = np.ma.masked_array([1.0, np.inf, np.nan, 4.0], mask=[False, True, False, False])
    assert observed_entries(values).tolist() == [True, False, False, True]
    assert observed_entries(np.ma.masked_array([1, 2])).tolist() == [True, True]


@pytest.mark.parametrize("mask", [[True, False, True], [255, 0, 255], [-0.5, 0.0, -0.5]])
def test_meaning_of_a_mask(mask):
    assert observed_entries([1.0, 2.0, 3.0], mask).tolist() == [True, False, True]
    assert observed_entries([1.0, 2.0, 3.0], mask, mask_is="missing").tolist() == [False, True, False]


def test_all_sources_together():
    values = np.ma.masked_array([np.nan, 1, 2, 3, 4.0], mask=[0, 1, 0, 0, 0])
    declared = np.array([True, True, False, True, True])
    mask = [0, 0, 0, 1, 0]
    observed = observed_entries(values, mask, mask_is="missing", declared=declared)
    assert observed.tolist() == [False, False, False, False, True]


@given(
    hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=3, max_side=4)),
    st.sampled_from(["observed", "missing"]),
)
def test_mask_of_pixels_holds_for_all_channels(mask, meaning):
    expected = mask if meaning == "observed" else ~mask
    values = np.zeros((*mask.shape, 3))
    if mask.shape == values.shape or not expected.any():
        return
    observed = observed_entries(values, mask, mask_is=meaning)
    assert observed.shape == values.shape
    for channel in range(3):
        np.testing.assert_array_equal(observed[..., channel], expected)


def test_result_is_a_copy():
    mask = np.array([True, True])
    declared = np.array([True, True])
    observed = observed_entries([1.0, 2.0], mask, declared=declared)
    observed[:] = False
    assert mask.all()
    assert declared.all()


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 3, 4), (6,), (1, 3)])
def test_wrong_shape(shape):
    if shape == (2,):  # the shape without the last axis
        assert observed_entries(np.zeros((2, 3)), np.ones(shape)).all()
        return
    with pytest.raises(InputError, match=r"mask has shape .*expected \(2, 3\) or \(2,\)"):
        observed_entries(np.zeros((2, 3)), np.ones(shape))


def test_wrong_shape_of_a_row_and_of_declared():
    with pytest.raises(InputError, match=r"mask has shape \(4,\), expected \(3,\) like"):
        observed_entries(np.zeros(3), np.ones(4))
    with pytest.raises(InputError, match="declared has shape"):
        observed_entries(np.zeros(3), declared=np.ones(4, dtype=bool))


@pytest.mark.parametrize("mask", [["a", "b"], [1j, 0], [np.nan, 1], 1])
def test_wrong_kind_of_mask(mask):
    with pytest.raises(InputError, match="mask"):
        observed_entries([1.0, 2.0], mask)


def test_wrong_meaning():
    with pytest.raises(InputError, match="mask_is is 'true', expected 'observed' or 'missing'"):
        observed_entries([1.0], [1], mask_is="true")


def test_infinities():
    values = np.zeros((3, 4))
    values[1, 2], values[2, 0] = np.inf, -np.inf
    with pytest.raises(InputError, match=r"2 observed entries, the first at index \(1, 2\)"):
        observed_entries(values)
    assert observed_entries(values, np.isfinite(values)).sum() == 10
    with pytest.raises(InputError, match=r"1 observed entry, the first at index \(2, 0\)"):
        observed_entries(values, values != np.inf)


@pytest.mark.parametrize(
    "values, mask",
    [([np.nan, np.nan], None), ([1.0, 2.0], [0, 0]), (np.ma.masked_all(2), None), ([np.nan, 1], [1, 0])],
)
def test_nothing_observed(values, mask):
    with pytest.raises(InputError, match="nothing of values is observed: all 2 entries are missing"):
        observed_entries(values, mask)


@pytest.mark.parametrize("values", [[1j], ["a"], [], 3.0, [None]])
def test_unusable_values(values):
    with pytest.raises(InputError, match="values"):
        observed_entries(values)


def test_a_meaning_without_a_mask():
    with pytest.raises(
        InputError, match="mask_is is 'missing' without a mask: give mask, or leave mask_is out"
    ):
        observed_entries([1.0], mask_is="missing")


@pytest.mark.parametrize(
    "mask, shades",
    [
        (np.array([[0, 3], [255, 255]], np.uint8), "3, 255"),
        (np.array([[0.0, 0.5], [1.0, 1.0]]), "0.5, 1"),
        (np.array([[1, 2], [1, 2]]), "1, 2"),
    ],
)
def test_a_mask_has_two_numbers(mask, shades):
    """Saved as a jpg, or interpolated, it would call observed what is not."""
    with pytest.raises(InputError, match=rf"m holds {shades} and perhaps more numbers, expected two: 0"):
        observed_entries(np.ones((2, 2)), mask, mask_name="m")


@pytest.mark.parametrize("mask", [[[0, 255], [255, 0]], [[0.0, -1.0], [0.0, 0.0]], [[7, 7], [7, 7]]])
def test_one_number_beside_zero_is_true(mask):
    assert (observed_entries(np.ones((2, 2)), mask) == (np.array(mask) != 0)).all()


def test_a_mask_that_is_masked_itself(tmp_path):
    """What stands under a mask of the mask was taken for an answer."""
    x = np.arange(36.0).reshape(6, 6)
    mask = np.ma.array(np.ones((6, 6), bool), mask=x > 20.0)
    for call in (
        lambda: observed_entries(x, mask),
        lambda: kruskal.inpaint(x, mask),
        lambda: kruskal.inpaint_large(x, tmp_path / "out.npy", mask),
    ):
        with pytest.raises(InputError, match="has 15 masked entries, expected none"):
            call()
    whole = np.ma.array(np.ones((6, 6), bool), mask=False)
    assert observed_entries(x, whole).all()
