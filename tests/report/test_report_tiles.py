"""Atoms become tiles: signs, places and what finds room."""

import numpy as np
import pytest
from report_example import make_example

from kruskal.report.planes import central_planes, display_limits, long_axes
from kruskal.report.result import order_by_usage
from kruskal.report.tiles import MOST_SLICES, MOST_TILES, mosaic, normalise, plan_mosaic, thin, unfold


def test_most_used_first_and_unused_left_out():
    result = make_example((8, 8), (2, 2), n_atoms=5).result
    result.usage = np.array([0.1, 0.0, 0.7, 0.1, 0.9])
    assert order_by_usage(result).tolist() == [4, 2, 0, 3]


def test_normalise_fixes_sign_and_scale():
    assert normalise(np.array([1.0, -4.0, 2.0])).tolist() == [-0.25, 1.0, -0.5]
    assert normalise(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]


def test_unfold_lays_slices_side_by_side_then_below():
    atom = np.arange(2 * 2 * 3 * 2).reshape(2, 2, 3, 2)
    flat = unfold(atom)
    assert flat.shape == (4, 6)
    for i, j, k, m in np.ndindex(atom.shape):
        assert flat[2 * m + i, 2 * k + j] == atom[i, j, k, m]


def test_unfold_scales_entries_and_leaves_gaps():
    atom = np.arange(8.0).reshape(2, 2, 2)
    flat = unfold(atom, scale=3, gap=2)
    assert flat.shape == (6, 14)
    assert np.isnan(flat[:, 6:8]).all() and not np.isnan(np.delete(flat, [6, 7], axis=1)).any()
    assert (flat[3:, 8:11] == atom[1, 0, 1]).all()


def test_unfold_keeps_colours():
    atom = np.random.default_rng(0).normal(size=(4, 5, 3))
    assert np.array_equal(unfold(atom, colour=True), atom)
    assert unfold(np.zeros((4, 5, 2, 3)), colour=True).shape == (8, 5, 3)


def test_unfold_stacks_flat_slices_downwards():
    assert unfold(np.zeros((5, 50, 4))).shape == (20, 50)


def test_thin_keeps_the_ends():
    atom = np.broadcast_to(np.arange(31), (2, 2, 31))
    thinned = thin(atom, colour=False)
    assert thinned.shape == (2, 2, MOST_SLICES) and thinned[0, 0, 0] == 0 and thinned[0, 0, -1] == 30
    assert thin(np.zeros((40, 40, 3)), colour=True).shape == (40, 40, 3)


@pytest.mark.parametrize("n_tiles", [1, 7, 256, 1000])
@pytest.mark.parametrize("size", [(1, 1), (8, 8), (8, 64), (25, 25), (64, 64), (5, 1500)])
def test_plan_stays_on_the_sheet(n_tiles, size):
    plan = plan_mosaic(n_tiles, *size)
    assert 1 <= plan.shown <= min(n_tiles, MOST_TILES)
    rows = -(-plan.shown // plan.columns)
    assert rows * plan.scale * size[0] <= 1200
    assert plan.columns * plan.scale * size[1] <= max(1440, size[1])


def test_plan_shows_a_usual_dictionary_completely():
    assert plan_mosaic(256, 8, 8).shown == 256


def test_mosaic_reads_like_text():
    tiles = [np.full((2, 3), float(number)) for number in range(5)]
    picture = mosaic(tiles, columns=2, gap=1)
    assert picture.shape == (10, 9)
    assert np.isnan(picture[[0, -1]]).all() and np.isnan(picture[:, [0, -1]]).all()
    picture = picture[1:-1, 1:-1]
    assert picture[0, 0] == 0 and picture[0, 4] == 1 and picture[3, 0] == 2 and picture[6, 0] == 4
    assert np.isnan(picture[6, 4]) and np.isnan(picture[2]).all() and np.isnan(picture[:, 3]).all()


def test_central_planes_cut_through_the_middle():
    array = np.arange(5 * 201 * 61).reshape(5, 201, 61)
    first, second, third = central_planes(array.shape, target=360)
    assert np.array_equal(first.take(array), array[:, :, 30])
    assert np.array_equal(second.take(array), array[:, 100, :])
    assert np.array_equal(third.take(array), array[2].T) and third.label == "[2, :, :].T"
    assert all(plane.width < 3.1 * plane.height for plane in (first, second, third))


def test_a_picture_is_its_own_plane_in_whole_pixels():
    (plane,) = central_planes((256, 128), target=512)
    assert (plane.height, plane.width) == (512, 256)
    (plane,) = central_planes((30, 20, 3), target=512)
    assert plane.take(np.zeros((30, 20, 3))).shape == (30, 20, 3)
    (plane,) = central_planes((30, 20, 4), target=512)
    assert plane.take(np.zeros((30, 20, 4))).shape == (30, 20, 3)
    (plane,) = central_planes((5000, 4000), target=512)
    assert (plane.height, plane.width) == (1024, 819)


def test_axes_of_length_one_do_not_count():
    assert long_axes((1, 40, 1)) == (1,)
    assert long_axes((9, 1, 8, 3)) == (0, 2)
    assert long_axes((9, 1, 3)) == (0, 2)
    (plane,) = central_planes((1, 9, 8), target=512)
    assert plane.label == "[0, :, :]"


def test_display_limits():
    assert display_limits(np.zeros(3), np.zeros(2, np.uint8)) == (0, 255)
    low, high = display_limits(np.append(np.linspace(0, 1, 2001), [np.nan, np.inf]))
    assert low == pytest.approx(0.005, abs=1e-6) and high == pytest.approx(0.995, abs=1e-6)
    low, high = display_limits(np.full(4, 7.0))
    assert low < 7 < high
