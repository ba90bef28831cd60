"""What is remembered of batches gives the draws that all images together would give."""

import numpy as np

from kruskal.gibbs.conv_maps import draw_maps
from kruskal.gibbs.conv_memory import explained, memory_of
from kruskal.gibbs.conv_statistics import lag_statistics
from kruskal.gibbs.statistics import sum_in_order
from tests.gibbs import conv_reference as ref
from tests.gibbs.conv_reference import ConvCase, make_world
from tests.gibbs.conv_twins import make_shards, model_of


def lags_of(shards, atoms, layout):
    """Of all shards: every one adds to what was found in those before."""
    found = None
    for shard in shards:
        found = lag_statistics(shard, found, dictionary=atoms, layout=layout, first=0, size=len(atoms))
    return found


def test_explained_is_the_correlation_of_maps_with_what_they_make():
    world = make_world(ConvCase(pooling=(2, 2)))
    atoms, layout = world.atoms.reshape(world.n_atoms, -1), world.layout
    lags = lags_of(make_shards(world), atoms, layout)
    made = ref.synthesise(world.maps, world.atoms[None])
    for k, row in enumerate(explained(lags.pairs, atoms, layout.atom_shape)):
        np.testing.assert_allclose(row, ref.design(world, k).T @ made[world.observed], atol=1e-9)


def test_two_batches_are_as_good_as_one_for_atoms_that_have_changed():
    """Sums of two batches, made with the atoms of then, give the statistics of both for the atoms of now."""
    world = make_world(ConvCase(n_images=6))
    layout, shape, n_atoms = world.layout, world.layout.atom_shape, world.n_atoms
    then = world.atoms.reshape(n_atoms, -1)
    now = then + np.random.default_rng(0).normal(size=then.shape)
    shards = make_shards(world)
    memories = []
    for part in (shards[:2], shards[2:]):
        drawn = sum_in_order([draw_maps(shard, model_of(world), 1, 1) for shard in part])
        lags = lags_of(part, then, layout)
        memories.append(memory_of(lags, drawn, then, shape, len(part), len(part) * shards[0].values.size))
    together = memories[0].plus(memories[1]).lags(now, shape)
    expected = lags_of(shards, now, layout)
    np.testing.assert_allclose(together.pairs, expected.pairs, atol=1e-12)
    np.testing.assert_allclose(together.correlations, expected.correlations, atol=1e-9)
    half = memories[0].faded(0.5)
    assert half.n_images == 1.0 and half.squares == 0.5 * memories[0].squares
