"""Groups of items that look alike."""

import tracemalloc

import numpy as np
import pytest

import kruskal
from kruskal.defaults import Look
from kruskal.gibbs import likeness
from kruskal.gibbs.likeness import k_means
from kruskal.patches import Grid, Items, cut
from kruskal.settings import resolve


def group_alike(items: Items, most: int, seed: int) -> Items:
    """Of items that were given one by one, or lie in a square."""
    side = int(np.sqrt(items.size))
    return likeness.group_alike(items, most, seed, (side, side) if side**2 == items.size else (items.size,))


def three_kinds(n_items: int, noise: float, missing: float = 0.0):
    """Items of three kinds in no order, and the kind of each."""
    random = np.random.default_rng(2)
    kind = random.integers(3, size=n_items)
    ramp = np.arange(12.0).reshape(3, 4)
    kinds = np.stack([np.full((3, 4), 5.0), ramp, 11.0 - ramp])
    values = kinds[kind] + noise * random.standard_normal((n_items, 3, 4))
    observed = random.random(values.shape) >= missing if missing else None
    return Items.from_matrix(values, observed), kind


@pytest.mark.parametrize("n_items", [40, 25_000])  # the second is more than the groups are made from
def test_items_of_a_kind_share_a_region(n_items):
    items, kind = three_kinds(n_items, 0.5)
    region = group_alike(items, 3, seed=1).region
    assert region.dtype == np.uint16 and len(np.unique(region[kind == 0])) == 1
    assert len(np.unique(3 * kind + region)) == len(np.unique(region)) == 3


def test_everything_else_stays():
    items, _ = three_kinds(40, 0.5)
    grouped = group_alike(items, 3, seed=1)
    for name in ("flat", "observed", "origin", "offset", "shape"):
        assert getattr(grouped, name) is getattr(items, name)


def test_regions_are_numbered_without_gaps():
    items, _ = three_kinds(200, 2.0)
    for most in (1, 2, 7, 64):
        region = group_alike(items, most, seed=3).region
        np.testing.assert_array_equal(np.unique(region), np.arange(region.max() + 1))
        assert region.max() < most


def test_items_that_do_not_differ_are_one_region():
    same = Items.from_matrix(np.full((10, 2, 2), 7.0))
    assert group_alike(same, 64, seed=1).n_regions == 1
    one = Items.from_matrix(np.ones((1, 5)))
    assert group_alike(one, 64, seed=1).n_regions == 1


def test_missing_entries_count_as_the_mean_of_the_others():
    """Levels are told apart from few entries; an item without any belongs somewhere too."""
    random = np.random.default_rng(0)
    high = random.random(300) < 0.5
    values = np.where(high, 9.0, 1.0)[:, None] + 0.1 * random.standard_normal((300, 16))
    observed = random.random(values.shape) < 0.2
    observed[0] = False
    items = Items.from_matrix(values, observed)
    region = group_alike(items, 2, seed=1).region
    seen = observed.any(axis=1)
    assert len(np.unique(2 * region[seen] + high[seen])) == 2


def test_centres_are_means_of_what_is_nearest():
    points = np.random.default_rng(5).standard_normal((400, 2))
    centres = k_means(points, 6, np.random.default_rng(1))
    own = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    means = np.stack([points[own == group].mean(axis=0) for group in range(6)])
    np.testing.assert_allclose(centres, means, atol=0.05)  # 25 rounds need not be the last
    spread = ((points - centres[own]) ** 2).sum() / (points**2).sum()
    assert spread < 0.3  # six groups of a plane


def test_groups_follow_from_the_seed_alone():
    items, _ = three_kinds(500, 3.0)
    one, again, other = (group_alike(items, 16, seed).region for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_many_entries_and_nothing_that_differs():
    """More entries than are decomposed as a whole, one item, items without any observed entry."""
    assert group_alike(Items.from_matrix(np.ones((3, 1600))), 4, seed=1).n_regions == 1
    nothing = Items.from_matrix(np.ones((3, 1600)), np.zeros((3, 1600), bool))
    assert group_alike(nothing, 4, seed=1).n_regions == 1
    whole = np.random.default_rng(0).standard_normal((40, 40))
    options = {"patch_shape": (40, 40), "n_atoms": 4, "sweeps": 2, "threads": 1}
    assert np.isfinite(kruskal.denoise(whole, **options).mean).all()


def test_a_hot_pixel_does_not_use_up_the_regions():
    random = np.random.default_rng(3)
    picture = random.standard_normal((80, 80))
    picture[40, 40] = 500.0
    items = cut(picture, None, Grid((80, 80), (4, 4), (1, 1)))
    sizes = np.bincount(group_alike(items, 8, seed=1).region)
    assert np.sort(sizes)[-6:].min() > 300  # of 5,929


def test_memory_does_not_grow_with_the_number_of_groups():
    points = np.random.default_rng(1).standard_normal((3_000, 2))
    tracemalloc.start()
    k_means(points, 1_500, np.random.default_rng(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 8 * 2**20  # all distances at once would be 36 MB, twice


def test_overlapping_patches():
    picture = np.zeros((40, 40))
    picture[:, 20:] = 10.0
    region = group_alike(cut(picture, None, Grid((40, 40), (4, 4), (1, 1))), 2, seed=1).region
    region = region.reshape(37, 37)
    assert (region == region[0]).all() and region[0, 0] != region[0, -1]


def test_places_count_a_fourth_of_what_the_looks_do():
    """Both axes along which items lie side by side alike, the others not at all; nor any of a volume."""
    picture = np.random.default_rng(1).standard_normal((8, 90, 3))
    items = cut(picture, None, Grid((8, 90, 3), (2, 3, 3), (1, 1, 1)))
    everyone = np.arange(items.n_items)
    features = likeness.Features.found(items, everyone, (8, 90, 3)).of(items, everyone)
    variance = features.var(axis=0)
    assert features.shape == (items.n_items, 16 + 3)
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(variance[16:], variance[:16].sum() / 8.0 * np.array([1.0, 1.0, 0.0]))
    volume = np.random.default_rng(2).standard_normal((9, 8, 7))
    items = cut(volume, None, Grid(volume.shape, (3, 3, 3), (1, 1, 1)))
    assert not likeness.Features.found(items, np.arange(items.n_items), volume.shape).scale.any()
    equal = Items.from_matrix(np.ones((5, 2)))
    assert not likeness.Features.found(equal, np.arange(5), (10,)).scale.any()


def noisy_picture():
    random = np.random.default_rng(4)
    truth = np.where(random.random((6, 6)) < 0.5, 40.0, 200.0).repeat(6, axis=0).repeat(6, axis=1)
    return truth, truth + 20.0 * random.standard_normal(truth.shape)


QUICK = {"patch_shape": (5, 5), "n_atoms": 12, "sweeps": 12, "regions": 8, "seed": 2, "grouping": "likeness"}


def test_a_run_does_not_depend_on_threads_and_goes_on_from_a_checkpoint(tmp_path):
    _, noisy = noisy_picture()
    one = kruskal.denoise(noisy, threads=1, checkpoint=tmp_path / "run", **QUICK)
    two = kruskal.denoise(noisy, threads=2, **QUICK)
    np.testing.assert_array_equal(one.mean, two.mean)
    assert one.settings["grouping"] == "likeness"
    np.testing.assert_array_equal(kruskal.resume(tmp_path / "run").mean, one.mean)
    by_place = kruskal.denoise(noisy, threads=1, **QUICK | {"grouping": "place"})
    assert not np.array_equal(one.mean, by_place.mean)


@pytest.mark.parametrize(
    "options", [{"online": True, "sweeps": None, "epochs": 3}, {"model": "bpfa"}], ids=str
)
def test_other_ways_to_learn_know_the_groups(options):
    truth, noisy = noisy_picture()
    restored = kruskal.denoise(noisy, threads=1, **QUICK | options)
    assert np.mean((restored.mean - truth) ** 2) < 0.5 * np.mean((noisy - truth) ** 2)


def test_incomplete_data_may_be_grouped_too():
    _, noisy = noisy_picture()
    seen = np.random.default_rng(1).random(noisy.shape) < 0.6
    restored = kruskal.inpaint(noisy, seen, threads=1, **QUICK)
    assert np.isfinite(restored.mean).all()


def test_noisy_data_are_grouped_by_likeness():
    for share in (0.3, 1.0):
        assert resolve((64, 64), look=Look(share, 0.1)).grouping == "likeness"
    for options in (
        {"look": Look(1.0, 0.01)},
        {"look": Look(0.5, 0.01)},
        {"look": Look(1.0, 0.1), "setting": "paper"},
        {"look": Look(1.0, 0.1), "model": "mgp-cp"},
        {"look": Look(1.0, 0.1), "grouping": "place"},
    ):
        assert resolve((64, 64), **options).grouping == "place"
    with pytest.raises(kruskal.InputError, match="grouping is no option of the model mgp-cp"):
        resolve((64, 64), model="mgp-cp", grouping="likeness")


def test_what_learns_from_many_arrays_groups_by_place():
    """And says so."""
    noise = 50.0 * np.random.default_rng(1).standard_normal((20, 20))
    learned = kruskal.learn([noise], patch_shape=(4, 4), n_atoms=4, sweeps=2, threads=1)
    assert learned.settings["grouping"] == "place"


def test_groups_out_of_core(tmp_path):
    """Of the patches of every block, with the same numbers on any number of threads."""
    _, noisy = noisy_picture()
    np.save(tmp_path / "in.npy", noisy)
    options = {
        "patch_shape": (5, 5),
        "n_atoms": 8,
        "block_shape": (20, 20),
        "sweeps": 4,
        "regions": 4,
        "seed": 1,
    }
    found = []
    for threads, grouping in ((1, "likeness"), (2, "likeness"), (1, "place")):
        target = tmp_path / f"out{len(found)}.npy"
        kruskal.inpaint_large(tmp_path / "in.npy", target, threads=threads, grouping=grouping, **options)
        found.append(np.load(target))
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
