"""The kernels that draw convolutional atoms and their statistics, against brute force."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from kruskal.gibbs.atoms import AtomNoise
from kruskal.gibbs.conv_atoms import ConvAtoms, _fill_toeplitz, draw_atom_masked, draw_atoms_lags
from kruskal.gibbs.conv_local import Layout
from kruskal.gibbs.conv_statistics import lag_block_size, lag_reach, lag_statistics, masked_statistics
from kruskal.gibbs.statistics import sum_in_order
from tests.gibbs import conv_reference as ref
from tests.gibbs.conv_reference import ConvCase, make_world
from tests.gibbs.conv_twins import draw_all_atoms, make_shards

SHAPES = {"wide": {}, "tight": {"image_shape": (4, 3, 2), "atom_size": (3, 3)}}
"""Maps of 3x3 places, and of 2x1, smaller than the reach of an atom."""


def atoms_of(world) -> ConvAtoms:
    factors = np.concatenate(world.modes, axis=1) if world.rank else np.zeros((world.n_atoms, 0, 0))
    return ConvAtoms(
        world.atoms.reshape(world.n_atoms, -1).copy(), world.weights.copy(), factors,
        np.cumsum(np.log(world.delta), axis=1), world.layout.atom_shape,
    )  # fmt: skip


def noise_for(atoms: ConvAtoms) -> AtomNoise:
    random = np.random.default_rng(3)
    rank = atoms.weights.shape[1]
    size = atoms.factors[0].size if rank else atoms.dictionary.shape[1]
    entries = random.normal(size=(len(atoms.dictionary), size))
    return AtomNoise(entries, random.normal(size=atoms.weights.shape))


def lags(world, atoms, first, size):
    visit = partial(lag_statistics, dictionary=atoms.dictionary, layout=world.layout, first=first, size=size)
    return sum_in_order([visit(shard) for shard in make_shards(world)])


@pytest.mark.parametrize("pooling, shape", list(product(((1, 1), (2, 2)), SHAPES)))
def test_toeplitz_precision_is_that_of_brute_force(pooling, shape):
    world = make_world(ConvCase(pooling=pooling, **SHAPES[shape]))
    statistics = lags(world, atoms_of(world), 0, world.n_atoms)
    m_x, m_y, channels = world.layout.atom_shape
    for k in range(world.n_atoms):
        q, p = ref.atom_terms(world, k)
        toeplitz = np.zeros((1, m_x * m_y, m_x * m_y))
        _fill_toeplitz(statistics.pairs[k, k], m_x, m_y, world.noise_precision, toeplitz)
        full = np.einsum("ij,cd->icjd", toeplitz[0], np.eye(channels)).reshape(q.shape)
        np.testing.assert_allclose(full, q, atol=1e-9)
        linear = world.noise_precision * statistics.correlations[k] + full @ world.atoms[k].ravel()
        np.testing.assert_allclose(linear, p, atol=1e-9)


def test_masked_statistics_are_those_of_brute_force():
    world = make_world(ConvCase(masked=True))
    channels = world.layout.image_shape[2]
    for k in range(world.n_atoms):
        q, p = ref.atom_terms(world, k)
        atoms = atoms_of(world).dictionary
        statistics = sum_in_order([masked_statistics(s, atoms, world.layout, k) for s in make_shards(world)])
        size = statistics.products.shape[1]
        full = np.zeros((size, channels, size, channels))
        for c in range(channels):
            full[:, c, :, c] = world.noise_precision * statistics.products[c]
        np.testing.assert_allclose(full.reshape(q.shape), q, atol=1e-9)
        linear = world.noise_precision * statistics.correlations + q @ world.atoms[k].ravel()
        np.testing.assert_allclose(linear, p, atol=1e-9)


@pytest.mark.parametrize("rank, size, shape", list(product((0, 1, 3), (3, 2, 1), SHAPES)))
def test_complete_draws_agree_with_their_twin(rank, size, shape):
    """From one visit for all atoms, and in blocks."""
    world = make_world(ConvCase(rank=rank, **SHAPES[shape]))
    atoms = atoms_of(world)
    noise = noise_for(atoms)
    expected = draw_all_atoms(world, *noise)
    for first in range(0, world.n_atoms, size):
        width = min(size, world.n_atoms - first)
        draw_atoms_lags(atoms, first, lags(world, atoms, first, width), world.noise_precision, noise)
    np.testing.assert_allclose(atoms.dictionary, expected.atoms.reshape(world.n_atoms, -1), atol=1e-9)
    if rank:
        np.testing.assert_allclose(atoms.factors, np.concatenate(expected.modes, axis=1), atol=1e-9)
        np.testing.assert_allclose(atoms.weights, expected.weights, atol=1e-9)


@pytest.mark.parametrize("rank", (0, 1, 3))
def test_masked_draws_agree_with_their_twin(rank):
    world = make_world(ConvCase(rank=rank, masked=True))
    atoms = atoms_of(world)
    noise = noise_for(atoms)
    expected = draw_all_atoms(world, *noise)
    for k in range(world.n_atoms):
        visits = [masked_statistics(s, atoms.dictionary, world.layout, k) for s in make_shards(world)]
        draw_atom_masked(atoms, k, sum_in_order(visits), world.noise_precision, noise)
    np.testing.assert_allclose(atoms.dictionary, expected.atoms.reshape(world.n_atoms, -1), atol=1e-9)


def test_blocks_of_atoms_fit_into_memory():
    mnist = Layout((28, 28, 1), (8, 8), (3, 3))
    assert lag_block_size(mnist, 30, 16) == 30
    assert 1 <= lag_block_size(Layout((128, 128, 1), (16, 16), (4, 4)), 64, 16) < 64
    assert lag_reach(Layout((7, 7, 36), (6, 6), (1, 1))) == (1, 1)
