"""Pilot runs: what is hidden, which candidates there are, when one takes over."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

import kruskal
from kruskal import choose as pilots
from kruskal.defaults import Look, default_patch_shape, default_sparsity, default_sweeps, patch_ladder
from kruskal.settings import resolve
from tests.test_restore import Notes

PICTURE = np.add.outer(np.sin(np.arange(96.0) / 3.0), np.cos(np.arange(96.0) / 4.0))
OBSERVED = np.random.default_rng(0).random(PICTURE.shape) < 0.5
FREE = {"patch_shape", "sparsity", "rank"}
LOOK = Look(0.5, 0.0)


def chosen(errors, free=FREE, look=LOOK, model="kfa"):
    """Options and pilots when a candidate misses hidden entries by what ``errors`` says of its settings."""
    asked = []

    def restore(values, observed, settings):
        asked.append((values, observed, settings))
        noise = np.random.default_rng(1).normal(size=values.shape)
        return values + errors(settings) * noise

    def settings_for(shape, **options):
        return resolve(shape, **({"look": look, "seed": 5, "model": model} | options))

    options, made = pilots.choose(
        PICTURE, OBSERVED, settings_for, restore, free, None, 5, lambda sentence: None
    )
    return options, made, asked


def test_without_a_difference_the_rules_hold():
    options, made, _ = chosen(lambda settings: 1.0)
    assert options == {}
    assert [pilot.differs for pilot in made] == ["", "patch_shape", "patch_shape", "sparsity", "rank"]
    assert all(pilot.lead == 0.0 for pilot in made)


def test_a_surely_better_candidate_takes_over_in_what_it_differs():
    options, _, _ = chosen(lambda settings: 0.5 if settings.patch_shape == (8, 8) else 1.0)
    assert options == {"patch_shape": (8, 8)}
    options, _, _ = chosen(lambda settings: 0.5 if settings.rank == 4 else 1.0)
    assert options == {"rank": 4}
    options, _, _ = chosen(lambda settings: 0.5 if settings.sparsity == 0.125 else 1.0)
    assert options == {"sparsity": 0.125}


def test_of_two_better_patches_the_best_is_taken():
    wide = {(8, 8): 0.6, (12, 12): 1.0, (16, 16): 0.5}
    options, _, _ = chosen(lambda settings: wide[settings.patch_shape])
    assert options == {"patch_shape": (16, 16)}


def test_a_worse_candidate_is_not_taken():
    options, made, _ = chosen(lambda settings: 1.0 if settings.patch_shape == (12, 12) else 2.0)
    assert options == {} and all(pilot.lead < -3 for pilot in made if pilot.differs == "patch_shape")


def test_a_sure_but_tiny_gain_does_not_change_the_rules():
    options, made, _ = chosen(lambda settings: 0.99 if settings.rank == 4 else 1.0)
    assert options == {} and made[-1].lead > 2.5


def test_a_few_large_errors_do_not_hide_what_is_better():
    """Squared errors with such tails differ by about one standard error, absolute ones by many."""

    def restore(values, observed, settings):
        errors = np.random.default_rng(1).standard_t(1.5, size=values.shape)
        return values + errors * (0.7 if settings.rank == 4 else 1.0)

    def settings_for(shape, **options):
        return resolve(shape, **({"look": LOOK, "seed": 5} | options))

    options, _ = pilots.choose(
        PICTURE, OBSERVED, settings_for, restore, {"rank"}, None, 5, lambda sentence: None
    )
    assert options == {"rank": 4}


def test_only_what_is_free_is_tried():
    _, made, _ = chosen(lambda settings: 1.0, free={"rank"})
    assert [pilot.differs for pilot in made] == ["", "rank"]
    _, made, _ = chosen(lambda settings: 1.0, model="bpfa")
    assert "rank" not in {pilot.differs for pilot in made}


def test_hidden_entries_are_observed_and_the_same_for_all():
    _, _, asked = chosen(lambda settings: 1.0)
    masks = [observed for _, observed, _ in asked]
    assert all((mask == masks[0]).all() for mask in masks)
    hidden = OBSERVED & ~masks[0]
    assert not (masks[0] & ~OBSERVED).any()
    assert hidden.sum() == int(pilots.HIDDEN_SHARE * OBSERVED.sum())


def test_pilots_are_short_and_small():
    shape = (3000, 2000)
    base = resolve(shape, look=LOOK)
    part = pilots._part(np.ones(shape, bool), base)
    assert all(piece.stop - piece.start >= 4 * side for piece, side in zip(part, base.patch_shape))
    sizes = tuple(piece.stop - piece.start for piece in part)
    short = pilots._short(partial(resolve, look=LOOK), shape, sizes, {})
    assert short.sweeps == 24 and short.grid.n_items * np.prod(short.patch_shape) <= pilots._WORK
    assert pilots._part(np.ones((60, 60), bool), resolve((60, 60), look=LOOK)) == (slice(0, 60), slice(0, 60))


@pytest.mark.parametrize(
    "shape, share, patch",
    [
        ((100, 100), 0.1, (16, 16)),
        ((5, 201, 61), 0.3, (5, 8, 8)),
        ((5, 201, 61), 0.1, (5, 12, 12)),
        ((60, 60, 60), 0.1, (10, 10, 10)),  # at most 1,024 entries
        ((100, 100, 3), 0.1, (16, 16, 3)),  # what is seen of one colour helps with the others
        ((100, 100, 3), 0.2, (12, 12, 3)),
        ((100, 100, 3), 0.3, (8, 8, 3)),
    ],
)
def test_the_less_is_observed_the_larger_the_patch(shape, share, patch):
    assert default_patch_shape(shape, None, Look(share, 0.0)) == patch


@pytest.mark.parametrize(
    "shape, look, worth",
    [
        ((200, 200), Look(0.5, 0.0), True),
        ((200, 200), Look(1.0, 0.1), True),
        ((200, 200), Look(1.0, 0.0), False),  # nothing to predict
        ((30, 30), Look(1.0, 0.1), False),  # too few entries to tell
    ],
)
def test_when_pilots_are_worth_it(shape, look, worth):
    assert pilots.worth_a_pilot(np.ones(shape, bool), look) == worth


def test_a_pilot_survives_json_and_speaks():
    pilot = pilots.Pilot("rank", (8, 8), 2.0, 4, 1.25, -0.5, 3.0)
    assert pilots.Pilot.from_json(pilot.to_json() | {"patch_shape": [8, 8]}) == pilot
    assert "patch 8x8, rank 4, sparsity 2" in pilot.sentence()
    assert "0.5 standard errors worse" in pilot.sentence()


def test_ladders_climb():
    for shape in ((300,), (100, 100), (64, 64, 3), (40, 40, 40), (9, 9, 9, 9), (6,) * 5, (3,) * 6, (7, 2)):
        ladder = patch_ladder(shape)
        sizes = [int(np.prod(patch)) for patch in ladder]
        assert len(ladder) >= 3 and sizes == sorted(sizes)
        assert all(1 <= side <= size for patch in ladder for side, size in zip(patch, shape))


def test_inpaint_makes_pilots_and_says_so(tmp_path):
    """On its own when nothing is given; not when something is; the same bytes for any number of threads."""
    notes = Notes()
    x = np.where(np.random.default_rng(0).random((96, 96)) < 0.6, PICTURE, np.nan)
    options = {"n_atoms": 8, "sweeps": 4, "seed": 1}
    first = kruskal.inpaint(x, threads=1, progress=notes, **options)
    assert len(first.pilots) >= 3 and sum("pilot run" in note for note in notes.notes) == len(first.pilots)
    second = kruskal.inpaint(x, threads=2, **options)
    np.testing.assert_array_equal(first.mean, second.mean)
    assert kruskal.inpaint(x, patch_shape=(8, 8), **options).pilots == ()
    assert kruskal.inpaint(x, auto=False, **options).pilots == ()
    some = kruskal.inpaint(x, patch_shape=(8, 8), auto=True, **options)
    assert {pilot["differs"] for pilot in some.pilots} == {"", "sparsity", "rank"}
    first.save(tmp_path / "a.npz")
    second.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_the_part_lies_where_the_data_are():
    """The middle of the array may be empty: the pilots then go elsewhere."""
    observed = np.zeros((512, 512), bool)
    observed[:90, :90] = True
    base = resolve(observed.shape, look=LOOK, stride=1)
    part = pilots._part(observed, base)
    assert observed[part].sum() > 0.9 * observed.sum()
    scattered = np.zeros((3000, 3000), bool)
    scattered[[0, -1], [0, -1]] = True  # too few to hide any

    def settings_for(shape, **options):
        return resolve(shape, **({"look": LOOK} | options))

    def never(*_):
        raise AssertionError

    assert pilots.choose(np.zeros((3000, 3000)), scattered, settings_for, never, FREE, None, 5, print) == (
        {},
        [],
    )


@pytest.mark.parametrize("shape", [(1,), (2,), (97,), (1, 5), (40, 23), (2, 1, 3), (9, 14, 8), (5, 1, 6, 7)])
def test_the_part_is_around_the_medians_of_what_is_observed(shape, monkeypatch):
    monkeypatch.setattr(pilots, "_WORK", 1)  # every axis is cut to four patches
    random = np.random.default_rng(shape)
    base = resolve(shape, patch_shape=(1,) * len(shape), stride=1, n_atoms=2)
    for share in (0.02, 0.3, 0.5, 1.0):
        for _ in range(20):
            observed = random.random(shape) < share * random.random(shape[-1])
            observed[tuple(random.integers(shape))] = True
            part = pilots._part(observed, base)
            for here, n, places in zip(part, shape, np.nonzero(observed)):
                size = min(n, 4)
                start = min(max(int(np.median(places)) - size // 2, 0), n - size)
                assert (here.start, here.stop) == (start, start + size)


def test_the_part_is_found_in_little_memory():
    observed = np.ones((100, 100, 100), bool)
    base = resolve(observed.shape, patch_shape=(4, 4, 4), n_atoms=8)
    tracemalloc.start()
    part = pilots._part(observed, base)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert observed[part].size < observed.size and peak < observed.nbytes


def test_candidates_that_do_not_fit_what_is_given_are_left_out():
    def settings_for(shape, **options):
        return resolve(shape, **({"look": LOOK, "rank": 10} | options))

    _, made = pilots.choose(
        PICTURE,
        OBSERVED,
        settings_for,
        lambda values, *_: values,
        {"patch_shape", "sparsity"},
        None,
        5,
        print,
    )
    assert [pilot.patch_shape for pilot in made if pilot.differs == "patch_shape"] == [(16, 16)]


def test_pilots_have_no_budget_and_do_not_stop_early():
    def settings_for(shape, **options):
        return resolve(shape, **({"look": LOOK, "until_converged": True, "time_budget": 1.0} | options))

    short = pilots._short(settings_for, (60, 60), (60, 60), {})
    assert (short.until_converged, short.time_budget) == (False, None)


@pytest.mark.parametrize(
    "shape, patch, look, stride",
    [
        ((481, 321, 3), (12, 12, 3), Look(0.2, 0.0), (1, 1, 1)),
        ((481, 321, 3), (8, 8, 3), Look(0.5, 0.0), (1, 1, 1)),
        ((481, 321, 3), (8, 8, 3), Look(1.0, 0.0), (2, 2, 1)),
        ((481, 321, 3), (8, 8, 3), Look(1.0, 0.1), (1, 1, 1)),
        ((75, 75, 75), (6, 6, 6), Look(1.0, 0.2), (1, 1, 1)),
        ((75, 75, 75), (6, 6, 6), Look(1.0, 0.0), (2, 2, 2)),
        ((75, 75, 75), (8, 8, 8), Look(0.2, 0.0), (3, 3, 3)),
        ((1000, 1000), (8, 8), Look(1.0, 0.0), (2, 2)),
    ],
)
def test_the_stride_bounds_the_work(shape, patch, look, stride):
    assert resolve(shape, patch_shape=patch, look=look).stride == stride


def test_the_louder_the_noise_the_sparser():
    quiet, loud, louder = (default_sparsity((60, 60), None, Look(1.0, noise)) for noise in (0.05, 0.2, 0.3))
    assert quiet == 0.125 and quiet < loud < louder
    assert loud == pytest.approx(1.0)
    assert default_sweeps((60, 60, 60), None, Look(1.0, 0.2)) < default_sweeps((60, 60, 60), None, Look())


@pytest.mark.parametrize(
    "shape, channels, sparse",
    [
        ((60, 60, 3), None, True),
        ((60, 60), None, False),
        ((60, 60, 3), "cut", False),
        ((60, 60, 9), "keep", False),
    ],
)
def test_incomplete_pictures_in_colour_are_sparser_and_take_longer(shape, channels, sparse):
    look = Look(0.2, 0.0)
    assert (default_sparsity(shape, channels, look) > 10) == sparse
    assert default_sparsity(shape, channels, Look()) == 0.0
    assert default_sparsity(shape, channels, Look(0.2, 0.05)) == 0.125
    if sparse:
        assert default_sweeps(shape, channels, look) > default_sweeps(shape[:2], channels, look)


def test_a_pilot_run_does_not_judge_a_very_sparse_chain():
    grey, colour = resolve((60, 60), look=Look(0.2, 0.0)), resolve((60, 60, 3), look=Look(0.2, 0.0))
    kinds = [
        {kind for kind, _ in pilots._candidates(base, {"sparsity", "rank"}, [])} for base in (grey, colour)
    ]
    assert kinds == [{"", "sparsity", "rank"}, {"", "rank"}]
