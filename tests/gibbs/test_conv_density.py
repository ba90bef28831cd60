"""Conditionals of the convolutional models agree with the joint density; a diagonal precision does not."""

import math
from itertools import product

import numpy as np
import pytest

from kruskal.gibbs import precision
from kruskal.gibbs.conv_local import sparse_maps, split_images
from kruskal.gibbs.conv_usage import (
    MapUsage,
    block_kinds,
    cell_shapes,
    refused_by_image,
    refused_counts,
    usage_shapes,
)
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.usage import Usage, UsagePrior, region_conditional, region_log_likelihood
from tests.gibbs import conv_reference as ref
from tests.gibbs.conv_reference import PRIORS, ConvCase, ConvWorld, make_world
from tests.gibbs.reference import log_beta, log_gamma, log_gaussian_vector

EXACT = 1e-9
CLEARLY_WRONG = 0.5  # nats
CASES = [
    ConvCase(masked=masked, pooling=pooling, nonnegative=nonnegative)
    for masked, pooling, nonnegative in product((False, True), ((1, 1), (2, 2)), (False, True))
]
BY_IMAGE = [ConvCase(masked=m, pooling=p, by_image=True) for m in (False, True) for p in ((1, 1), (2, 2))]
KRUSKAL = [ConvCase(rank=rank, masked=masked) for rank, masked in product((1, 3), (False, True))]


def nats(difference: float, old: ConvWorld, new: ConvWorld) -> float:
    return abs(difference - (ref.log_joint(new) - ref.log_joint(old)))


def random_for(case: ConvCase) -> np.random.Generator:
    return np.random.default_rng([5, case.rank, case.masked, case.nonnegative, *case.pooling])


@pytest.mark.parametrize("case", CASES + BY_IMAGE, ids=str)
def test_blocks(case):
    """From every state of a block to every other: off, and on at each cell with another value."""
    world, random = make_world(case), random_for(case)
    for cells in ref.blocks_of(case.layout):
        n, k = random.integers(case.n_images), random.integers(case.n_atoms)
        off = ref.without_block(world, n, k, cells)
        here = ref.log_block_density(off, n, k, cells)
        for _, x, y in cells:
            new = off.with_entry("maps", (n, k, x, y), abs(random.normal()))
            difference = ref.log_block_density(new, n, k, cells) - here
            assert nats(difference, off, new) < EXACT


@pytest.mark.parametrize("case", CASES, ids=str)
def test_slab_and_noise_precision(case):
    """Also for slabs that are cut off at 0, whose density has the same dependence on gamma_s."""
    world = make_world(case)
    on = world.maps[world.maps != 0.0]
    code = precision.precision_conditional(on.size, (on**2).sum(), GammaPrior(*PRIORS.code))
    new = world.changed(code_precision=0.4)
    difference = log_gamma(0.4, *code) - log_gamma(world.code_precision, *code)
    assert nats(difference, world, new) < EXACT
    count, squares = world.observed.sum(), (world.residual() ** 2).sum()
    noise = precision.precision_conditional(count, squares, GammaPrior(*PRIORS.noise))
    new = world.changed(noise_precision=0.7)
    difference = log_gamma(0.7, *noise) - log_gamma(world.noise_precision, *noise)
    assert nats(difference, world, new) < EXACT


@pytest.mark.parametrize("case", CASES, ids=str)
def test_usage(case):
    """Given the refused draws of partial blocks, theta is a Dirichlet; without them only for whole blocks.

    The refused draws of one kind of block are negative binomial, p(m) = C (1-q)^B prod theta_g^m_g, so the
    joint density times p(m) has no normaliser left.
    """
    world, random = make_world(case), random_for(case)
    kinds = block_kinds(case.layout)
    on = world.maps != 0.0
    counts = np.zeros((case.n_atoms, case.layout.n_cells))
    for cells in ref.blocks_of(case.layout):
        for g, x, y in cells:
            counts[:, g] += on[:, :, x, y].sum(axis=0)
    refused = refused_counts(world.log_odds(), kinds, case.n_images, random)
    n_blocks = case.n_images * case.layout.n_blocks
    shapes = np.hstack(usage_shapes(counts, refused, n_blocks, UsagePrior(*PRIORS.usage))[::-1])
    new = world.changed(theta=random.dirichlet(np.full(case.layout.n_cells + 1, 3.0), size=case.n_atoms))
    difference = ((shapes - 1.0) * (np.log(new.theta) - np.log(world.theta))).sum()

    def log_refused(w: ConvWorld) -> float:
        total = (refused * np.log(w.theta[:, 1:])).sum()
        for kind in kinds:
            present = w.theta[:, 0] + w.theta[:, 1:][:, kind.exists].sum(axis=1)
            total += kind.number * case.n_images * np.log(present).sum()
        return total

    gained = log_refused(new) - log_refused(world)
    assert nats(difference - gained, world, new) < EXACT
    if case.pooling != (1, 1):
        plain = difference - (refused * (np.log(new.theta[:, 1:]) - np.log(world.theta[:, 1:]))).sum()
        assert nats(plain, world, new) > CLEARLY_WRONG


def log_usage_given_refused(world: ConvWorld, counts, cells, sizes) -> float:
    """What `draw_usage_by_image` draws from: eta and h with pi integrated out, then pi and phi."""
    prior, h = UsagePrior(*PRIORS.usage), world.concentration
    total = log_beta(world.eta, *prior.shapes(world.n_atoms)).sum() + log_gamma(h, *PRIORS.concentration)
    total += region_log_likelihood(world.eta, h, counts, sizes).sum()
    unused = sizes.reshape(len(sizes), -1) - counts
    total += log_beta(world.pi, *region_conditional(world.eta, h, counts, unused)).sum()
    return float(total + ((cell_shapes(cells, prior) - 1.0) * np.log(world.phi)).sum())


@pytest.mark.parametrize("case", BY_IMAGE, ids=str)
def test_usage_by_image(case):
    """eta, h, pi and phi all change at once; refused draws count as blocks that are on."""
    world, random = make_world(case), random_for(case)
    kinds, on = block_kinds(case.layout), world.maps != 0.0
    cells = np.zeros((case.n_atoms, case.layout.n_cells))
    for block in ref.blocks_of(case.layout):
        for g, x, y in block:
            cells[:, g] += on[:, :, x, y].sum(axis=0)
    logit = np.log(world.pi) - np.log1p(-world.pi)
    usage = MapUsage(Usage(logit, world.eta, world.concentration), np.log(world.phi))
    refused = refused_by_image(usage, kinds, random)
    np.testing.assert_array_equal(refused.images.sum(axis=0), refused.cells.sum(axis=1))
    counts = on.sum(axis=(2, 3))
    new = world.changed(
        pi=random.uniform(0.1, 0.9, size=world.pi.shape), eta=random.uniform(0.1, 0.9, size=case.n_atoms),
        phi=random.dirichlet(np.full(case.layout.n_cells, 3.0), size=case.n_atoms), concentration=2.5,
    )  # fmt: skip

    def log_refused(w: ConvWorld) -> float:
        total = (refused.images * np.log(w.pi)).sum() + (refused.cells * np.log(w.phi)).sum()
        for kind in kinds:
            present = 1.0 - w.pi * w.phi[:, ~kind.exists].sum(axis=1)
            total += kind.number * np.log(present).sum()
        return float(total)

    def gain(images, cells) -> float:
        sizes = case.layout.n_blocks + images
        arguments = (counts + images, cells, sizes)
        return log_usage_given_refused(new, *arguments) - log_usage_given_refused(world, *arguments)

    right = gain(refused.images, cells + refused.cells) - (log_refused(new) - log_refused(world))
    assert nats(right, world, new) < EXACT
    if case.pooling != (1, 1):
        assert refused.images.sum() > 0
        assert nats(gain(np.zeros_like(refused.images), cells), world, new) > CLEARLY_WRONG


def test_refused_draws_have_their_mean():
    case = ConvCase(pooling=(2, 2), image_shape=(5, 4, 1), atom_size=(3, 2))  # maps 3x3: three partial kinds
    theta = np.array([[0.3, 0.1, 0.2, 0.3, 0.1]])
    log_odds = np.log(theta[:, 1:] / theta[:, :1])
    kinds = block_kinds(case.layout)
    random = np.random.default_rng(0)
    draws = np.array([refused_counts(log_odds, kinds, 50, random)[0] for _ in range(400)])
    expected = np.zeros(4)
    for kind in kinds:
        lacking = np.where(kind.exists, 0.0, theta[0, 1:])
        expected += 50 * kind.number * lacking / (1.0 - lacking.sum())
    assert sum(kind.number for kind in kinds) == 4
    error = draws.std(axis=0) / math.sqrt(len(draws))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - expected), 4.0 * error + 1e-12)
    shares = Usage(np.full((50, 1), math.log(0.7 / 0.3)), np.array([0.5]), 1.0)
    by_image = MapUsage(shares, np.log(theta[:, 1:] / 0.7))
    draws = np.array([refused_by_image(by_image, kinds, random).cells[0] for _ in range(400)])
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - expected), 4.0 * error + 1e-12)


@pytest.mark.parametrize("masked", (False, True))
def test_gaussian_atoms_and_the_diagonal_that_is_wrong(masked):
    case = ConvCase(masked=masked)
    world, random = make_world(case), random_for(case)
    wrong = []
    for k in range(case.n_atoms):
        q, p = ref.atom_terms(world, k)
        old = world.gaussian[k].ravel()
        value = old + random.normal(size=old.size)
        new = world.with_entry("gaussian", k, value.reshape(world.gaussian[k].shape))

        def gain(matrix, p=p, old=old, value=value):
            terms = ref.gaussian_atom(matrix, p)
            return log_gaussian_vector(value, *terms) - log_gaussian_vector(old, *terms)

        assert nats(gain(q), world, new) < EXACT
        wrong.append(nats(gain(np.diag(np.diag(q))), world, new))  # E14: BPFA's diagonal
    assert max(wrong) > CLEARLY_WRONG


@pytest.mark.parametrize("case", KRUSKAL, ids=str)
def test_kruskal_atoms(case):
    world, random = make_world(case), random_for(case)
    for k in range(case.n_atoms):
        q, p = ref.atom_terms(world, k)
        for t in range(3):
            terms = ref.mode_block(world, k, t, q, p)
            value = random.normal(size=world.modes[t][k].shape)
            new = world.with_mode(t, k, value)
            difference = log_gaussian_vector(value.ravel(), *terms)
            difference -= log_gaussian_vector(world.modes[t][k].ravel(), *terms)
            assert nats(difference, world, new) < EXACT
        terms = ref.weight_block(world, k, q, p)
        new = world.with_entry("weights", k, random.normal(size=case.rank))
        difference = log_gaussian_vector(new.weights[k], *terms)
        difference -= log_gaussian_vector(world.weights[k], *terms)
        assert nats(difference, world, new) < EXACT


def test_sparse_maps_are_in_the_order_of_the_sampler():
    case = ConvCase(pooling=(2, 2))
    world = make_world(case)
    maps = sparse_maps(world.maps, case.layout)
    (shard, *_) = split_images(world.values, None)
    assert shard.complete
    block_of = {(x, y): b for b, cells in enumerate(ref.blocks_of(case.layout)) for _, x, y in cells}
    for n in range(case.n_images):
        part = slice(maps.start[n], maps.start[n + 1])
        places = [divmod(int(place), case.layout.map_shape[1]) for place in maps.place[part]]
        keys = [(block_of[place], int(k)) for place, k in zip(places, maps.atom[part])]
        assert keys == sorted(keys) and len(set(keys)) == len(keys)
