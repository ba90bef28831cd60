"""The kernels that draw maps: against their twin, tile by tile and whole, masked and complete."""

from itertools import product

import numpy as np
import pytest

from kruskal.gibbs.conv_local import Layout, dense_maps, sparse_maps, split_images
from kruskal.gibbs.conv_maps import draw_maps, lag_table, relocate_codes, relocation_model, tile_rows_for
from kruskal.gibbs.conv_synthesis import gather_patches, synthesise
from kruskal.gibbs.conv_usage import block_kinds
from kruskal.gibbs.statistics import sum_in_order
from tests.gibbs import conv_reference as ref
from tests.gibbs.conv_reference import ConvCase, make_world
from tests.gibbs.conv_twins import draw_all_maps, make_shards, model_of, relocate_all

SEED = 11
WHOLE = 99
POOLINGS = ((1, 1), (2, 2), (3, 1))
CASES = [
    ConvCase(masked=masked, pooling=pooling, nonnegative=nonnegative)
    for masked, pooling, nonnegative in product((False, True), POOLINGS, (False, True))
]
CASES += [ConvCase(masked=m, pooling=p, by_image=True) for m, p in product((False, True), ((1, 1), (2, 2)))]


def draw(shards, model, sweep):
    parts = sum_in_order([draw_maps(shard, model, SEED, sweep) for shard in shards])
    n_atoms, (_, _, _, rows, columns, _, _) = len(model.dictionary), model.layout
    maps = np.concatenate([dense_maps(shard.maps, n_atoms, (rows, columns)) for shard in shards])
    return maps, parts


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_agree_with_their_twin(case):
    """Over several sweeps, so that blocks go on and off and cells change."""
    world = make_world(case)
    shards, model = make_shards(world), model_of(world)
    changed = 0
    for sweep in range(1, 5):
        expected = draw_all_maps(world, SEED, sweep)
        maps, parts = draw(shards, model, sweep)
        np.testing.assert_allclose(maps, expected, rtol=1e-7, atol=1e-9)
        changed += ((expected != 0.0) != (world.maps != 0.0)).sum()
        world = world.changed(maps=expected)
        assert parts.squares == pytest.approx((expected**2).sum())
        assert parts.residual_squares == pytest.approx((world.residual() ** 2).sum())
        counts = np.zeros_like(parts.counts)
        for cells in ref.blocks_of(case.layout):
            for g, x, y in cells:
                counts[:, g] += (expected[:, :, x, y] != 0.0).sum(axis=0)
        np.testing.assert_array_equal(parts.counts, counts)
    assert changed > 10


@pytest.mark.parametrize("masked", (False, True))
def test_a_scan_over_some_places_leaves_the_others_alone(masked):
    case = ConvCase(masked=masked, pooling=(1, 2), image_shape=(8, 7, 2), n_images=2)
    world = make_world(case)
    for tile_rows in (1, WHOLE):
        maps, parts = draw(make_shards(world), model_of(world, tile_rows, step=(3, 2)), 1)
        expected = draw_all_maps(world, SEED, 1, (3, 2))
        np.testing.assert_allclose(maps, expected, rtol=1e-7, atol=1e-9)
        assert parts.counts.sum() == (expected != 0.0).sum()
    np.testing.assert_array_equal(expected[:, :, 1], world.maps[:, :, 1])
    assert (expected[:, :, 0] != world.maps[:, :, 0]).any()


@pytest.mark.parametrize("masked, nonnegative", list(product((False, True), (False, True))))
def test_lone_non_zeros_move_as_their_twin_says(masked, nonnegative):
    case = ConvCase(masked=masked, nonnegative=nonnegative, image_shape=(8, 7, 2), n_images=3)
    world = make_world(case)
    keep = np.random.default_rng(0).random(world.maps.shape) < 0.3
    world = world.changed(maps=world.maps * keep)
    for window in ((2, 2), (3, 4)):
        expected = relocate_all(world, window, SEED, 3)
        shards, model = make_shards(world), model_of(world)
        moving = relocation_model(model, case.layout, window)
        parts = sum_in_order([relocate_codes(s, *moving, SEED, 3) for s in shards])
        maps = np.concatenate([dense_maps(s.maps, case.n_atoms, case.layout.map_shape) for s in shards])
        np.testing.assert_allclose(maps, expected, rtol=1e-7, atol=1e-9)
        moved = (expected != 0.0) != (world.maps != 0.0)
        assert moved.sum() > 5 and (expected != 0.0).sum() == (world.maps != 0.0).sum()
        new = world.changed(maps=expected)
        assert parts.squares == pytest.approx((expected**2).sum())
        assert parts.residual_squares == pytest.approx((new.residual() ** 2).sum())
        again, _ = draw(shards, model, 4)  # the order of the sampler is kept
        np.testing.assert_allclose(again, draw_all_maps(new, SEED, 4), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "pooling, nonnegative, by_image", [*product(POOLINGS, (False, True), (False,)), ((2, 2), False, True)]
)
def test_gram_form_and_residual_form_make_the_same_draws(pooling, nonnegative, by_image):
    """Tiles of whole images, of two rows of blocks and of one; and as if masked, with nothing missing."""
    case = ConvCase(
        pooling=pooling, nonnegative=nonnegative, image_shape=(9, 8, 2), atom_size=(3, 4), n_atoms=5,
        n_images=20, by_image=by_image,
    )  # fmt: skip
    world = make_world(case)
    results = []
    for tile_rows in (1, 2, WHOLE):
        shards, model = make_shards(world), model_of(world, tile_rows)
        results.append([draw(shards, model, sweep) for sweep in (1, 2)][-1])
    shards, model = make_shards(world, keep_mask=True), model_of(world, complete=False)
    results.append([draw(shards, model, sweep) for sweep in (1, 2)][-1])
    for maps, parts in results[1:]:
        np.testing.assert_allclose(maps, results[0][0], rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(parts.counts, results[0][1].counts)
        assert parts.residual_squares == pytest.approx(results[0][1].residual_squares)
    assert (results[0][0] != 0.0).sum() > 50


def test_single_precision_draws_nearly_the_same():
    world = make_world(ConvCase(pooling=(2, 2), image_shape=(9, 8, 2), n_images=20))
    maps = [draw(make_shards(world, dtype), model_of(world, dtype=dtype), 1)[0] for dtype in ("f4", "f8")]
    assert maps[0].dtype == np.float32
    assert (np.abs(maps[0] - maps[1]) > 1e-3).mean() < 0.01


@pytest.mark.parametrize("case", [ConvCase(), ConvCase(masked=True)], ids=str)
def test_a_full_buffer_is_enlarged(case, monkeypatch):
    """Usage near 1: all blocks are on at once, from nothing."""
    world = make_world(case)
    dense = world.changed(
        maps=np.zeros_like(world.maps), theta=np.tile([1e-9, 1.0], (case.n_atoms, 1)), code_precision=1e-3
    )
    big = ConvCase(masked=case.masked, image_shape=(12, 11, 2), n_images=1)
    values = np.random.default_rng(0).normal(size=(1, 12, 11, 2))
    observed = np.ones(values.shape, bool)
    observed[0, 3] = not case.masked
    dense = dense.changed(case=big, values=values, observed=observed, maps=np.zeros((1, 3, 10, 10)))
    maps, _ = draw(make_shards(dense), model_of(dense), 1)
    assert (maps != 0.0).mean() > 0.9


def test_synthesis_and_correlation_are_adjoint():
    random = np.random.default_rng(0)
    layout = Layout((7, 6, 3), (3, 2), (1, 1))
    atoms = random.normal(size=(4, 3 * 2 * 3))
    maps, images = random.normal(size=(2, 4, 5, 5)), random.normal(size=(2, 7, 18))
    shards = split_images(np.zeros((2, 7, 6, 3)), None)
    for shard in shards:
        shard.maps = sparse_maps(maps[shard.first : shard.first + 1], layout)
    made = np.concatenate([synthesise(shard, atoms, layout) for shard in shards])
    np.testing.assert_allclose(
        made.reshape(2, 7, 6, 3), ref.synthesise(maps, atoms.reshape(1, 4, 3, 2, 3)), atol=1e-12
    )
    correlated = np.empty((2, 4, 25))
    for n in range(2):
        patches = np.empty((25, 18))
        gather_patches(images, n, 0, 5, layout.numbers, patches, 0)
        correlated[n] = atoms @ patches.T
    assert (made * images).sum() == pytest.approx((maps.reshape(2, 4, 25) * correlated).sum())


def test_table_of_lags():
    """A_k'k[lag] = sum_j D_k'[j] D_k[j + lag], zero where atoms do not overlap."""
    random = np.random.default_rng(1)
    layout = Layout((9, 9, 2), (3, 2), (2, 4))
    atoms = random.normal(size=(3, 12))
    table = lag_table(atoms, layout, WHOLE)
    reach = (table.shape[2] - 1) // 2
    cube = atoms.reshape(3, 3, 2, 2)
    for k, other, x, y in product(range(3), range(3), range(-1, 3), range(-3, 4)):
        total = 0.0
        for i, j in product(range(3), range(2)):
            if 0 <= i + x < 3 and 0 <= j + y < 2:
                total += (cube[other, i, j] * cube[k, i + x, j + y]).sum()
        assert table[k, x + 1, y + reach, other] == pytest.approx(total, abs=1e-12)
    assert not table[..., 3:].any()


def test_small_maps_are_one_tile():
    assert tile_rows_for(Layout((28, 28, 1), (8, 8), (3, 3))) == 1
    assert tile_rows_for(Layout((7, 7, 36), (6, 6), (1, 1))) == 2
    assert tile_rows_for(Layout((20, 10, 1), (5, 5), (2, 2))) == 3


def test_kinds_of_blocks():
    whole = block_kinds(Layout((28, 28, 1), (8, 8), (3, 3)))
    assert [(kind.number, int(kind.exists.sum())) for kind in whole] == [(49, 9)]
    partial = block_kinds(Layout((12, 11, 1), (2, 2), (3, 4)))  # maps 11 x 10: 3 + 2, 2 + 2
    assert [(kind.number, int(kind.exists.sum())) for kind in partial] == [(6, 12), (3, 6), (2, 8), (1, 4)]
