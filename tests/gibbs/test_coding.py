"""Coding of new items: equal to its plain twin, and right by enumeration of all z of a small item."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit, ndtri

from kruskal.gibbs.coding import CodingPlan, code_shard
from kruskal.gibbs.local import split
from kruskal.gibbs.pairs import padded
from kruskal.random import Stream, key_of
from kruskal.random.philox import philox
from tests.gibbs import reference as ref
from tests.gibbs.reference import World
from tests.gibbs.test_codes import code_world
from tests.gibbs.twins import gaussian_draw, uniform_52
from tests.gibbs.worlds import dense_codes, make_items, make_shards, model_of

MASK = 2**64 - 1


def fingerprint(values: np.ndarray, observed: np.ndarray) -> tuple[int, int]:
    """The two words that address the random numbers of an item."""
    state = 0x9E3779B97F4A7C15
    for place in np.flatnonzero(observed):
        bits = int(np.float32(values[place] + 0.0).view(np.uint32))
        state ^= (int(place) << 32) ^ bits
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    state ^= state >> 31
    return state & 0xFFFFFFFF, state >> 32


def twin(world: World, n: int, plan: CodingPlan) -> tuple[np.ndarray, np.ndarray]:
    """Mean of w (K,) and variance of the entries (P,) of item n, by plain formulas."""
    item, high = fingerprint(world.values[n], world.observed[n])
    key_0, key_1 = key_of(plan.seed)
    key = key_0 ^ np.uint64(high), key_1
    atoms, usage = world.atoms, world.usage[0]
    data, design = world.values[n][world.observed[n]], atoms[:, world.observed[n]]
    width = padded(len(atoms))
    codes, means, seconds = np.zeros(len(atoms)), [], []
    for step in range(plan.chains * plan.sweeps):
        sweep, joint = step % plan.sweeps, []
        if sweep == 0:
            codes[:] = 0.0
        noise = world.noise_precision
        if sweep < plan.burn_in and plan.first_noise_precision < noise:
            ratio = world.noise_precision / plan.first_noise_precision
            noise = plan.first_noise_precision * ratio ** (sweep / plan.burn_in)
        gram = noise * design @ design.T
        for k in range(len(atoms)):
            codes[k] = 0.0
            rest = data - codes @ design
            c, linear = gram[k, k], noise * float(design[k] @ rest)
            mean, precision = ref.slab_conditional(world.code_precision, c, linear)
            probability = expit(ref.logit_collapsed(usage[k], world.code_precision, c, linear))
            block, counter = divmod(k, width // 4)
            word = int(philox(counter, step, item, int(Stream.CODING), *key)[block])
            if (word + 0.5) / 2.0**32 < probability:
                words = philox(len(joint), item, step, int(Stream.CODING_SLABS), *key)
                codes[k] = mean + ndtri(uniform_52(words[0], words[1])) / math.sqrt(precision)
                joint.append(float(ndtri(uniform_52(words[2], words[3]))))
        active = np.flatnonzero(codes)
        precision = world.code_precision * np.eye(len(active)) + gram[np.ix_(active, active)]
        linear = noise * design[active] @ data
        codes[active] = gaussian_draw(linear, precision, np.array(joint))
        if sweep >= plan.burn_in:
            mean, second = np.zeros(len(atoms)), np.zeros((len(atoms), len(atoms)))
            mean[active] = np.linalg.solve(precision, linear)
            second[np.ix_(active, active)] = np.linalg.inv(precision)
            means.append(mean)
            seconds.append(second + np.outer(mean, mean))
    mean = np.mean(means, axis=0)
    covariance = np.mean(seconds, axis=0) - np.outer(mean, mean)
    return mean, np.einsum("ai,ab,bi->i", atoms, covariance, atoms)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("odds", ["rare", "mixed", "common"])
@pytest.mark.parametrize("n_atoms, shape", [(1, (3, 2)), (5, (1,)), (33, (5, 3)), (70, (8, 2))])
def test_kernel_codes_as_the_twin(n_atoms, shape, odds, masked):
    world = code_world(n_atoms, shape, 6, odds, masked)
    (shard,) = make_shards(world)
    plan = CodingPlan(2, 10, 3, 5, first_noise_precision=0.4)  # more than the words that are made ahead
    found = code_shard(shard, model_of(world), plan, with_variance=True)
    mean, variance = zip(*(twin(world, n, plan) for n in range(world.n_items)))
    np.testing.assert_allclose(dense_codes(found.codes, n_atoms), mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-7, atol=1e-9)
    without = code_shard(shard, model_of(world), plan)
    np.testing.assert_array_equal(without.codes.value, found.codes.value)
    assert without.variance.size == 0


def exact_posterior(world: World, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean of w and variance of the entries of item n, by a sum over all 2^K sets of atoms in use."""
    atoms, usage = world.atoms, world.usage[0]
    data, design = world.values[n][world.observed[n]], atoms[:, world.observed[n]]
    weights, means, seconds = [], [], []
    for z in itertools.product([False, True], repeat=len(atoms)):
        active = np.flatnonzero(z)
        precision = world.code_precision * np.eye(len(active))
        precision += world.noise_precision * design[active] @ design[active].T
        linear = world.noise_precision * design[active] @ data
        mean, second = np.zeros(len(atoms)), np.zeros((len(atoms), len(atoms)))
        mean[active] = np.linalg.solve(precision, linear)
        second[np.ix_(active, active)] = np.linalg.inv(precision)
        log_evidence = 0.5 * linear @ mean[active] - 0.5 * np.linalg.slogdet(precision)[1]
        log_evidence += 0.5 * len(active) * math.log(world.code_precision)
        log_prior = np.where(z, np.log(usage), np.log1p(-usage)).sum()
        weights.append(log_evidence + log_prior)
        means.append(mean)
        seconds.append(second + np.outer(mean, mean))
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    mean = np.tensordot(weight, means, 1)
    covariance = np.tensordot(weight, seconds, 1) - np.outer(mean, mean)
    return mean, np.einsum("ai,ab,bi->i", atoms, covariance, atoms)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_means_and_variances_are_those_of_the_posterior(masked):
    """32 seeds of two chains of 1,000 sweeps give the Monte Carlo error of their average."""
    random = np.random.default_rng(4)
    world = code_world(6, (3, 2), 5, "mixed", masked, noise_precision=4.0)
    atoms = random.standard_normal((6, 6)) / math.sqrt(6)
    atoms[1] = atoms[0] + 0.2 * atoms[1]  # similar atoms take turns
    world = world.changed(gaussian=atoms, usage=np.array([[0.3, 0.3, 0.2, 0.5, 0.1, 0.4]]))
    (shard,) = make_shards(world)
    model = model_of(world)
    found = [
        code_shard(shard, model, CodingPlan(2, 1000, 20, seed, 1.0), with_variance=True) for seed in range(32)
    ]
    means = np.array([dense_codes(coded.codes, 6) for coded in found])
    variances = np.array([coded.variance for coded in found])
    exact_mean, exact_variance = zip(*(exact_posterior(world, n) for n in range(world.n_items)))
    for drawn, exact in ((means, exact_mean), (variances, exact_variance)):
        error = drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn))
        z = (drawn.mean(axis=0) - exact) / np.maximum(error, 1e-9)
        assert np.abs(z[error > 1e-9]).max() < 4.5
        np.testing.assert_allclose(
            drawn.mean(axis=0)[error <= 1e-9], np.array(exact)[error <= 1e-9], atol=1e-6
        )


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_an_item_is_coded_alike_wherever_it_lies(masked):
    world = code_world(40, (4, 4), 60, "mixed", masked)
    order = np.random.default_rng(0).permutation(60)[:37]
    plan = CodingPlan(3, 4, 2, 9, 0.5)

    def coded(values, observed):
        (shard,) = split(make_items(values, observed, (4, 4), keep_mask=masked))
        return dense_codes(code_shard(shard, model_of(world), plan).codes, 40)

    together = coded(world.values, world.observed)
    np.testing.assert_array_equal(coded(world.values[order], world.observed[order]), together[order])


def test_complete_items_are_coded_as_items_with_nothing_missing():
    world = code_world(40, (4, 4), 30, "mixed")
    plan = CodingPlan(3, 4, 2, 9, 0.5)
    results = []
    for keep_mask in (False, True):
        (shard,) = make_shards(world, keep_mask=keep_mask)
        found = code_shard(shard, model_of(world, keep_mask=keep_mask), plan, with_variance=True)
        results.append((dense_codes(found.codes, 40), found.variance))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
def test_many_atoms_in_use_at_once(masked):
    """More than there is room for at first, of slots and of codes."""
    world = code_world(150, (12, 8), 3, "common", masked)
    (shard,) = make_shards(world)
    plan = CodingPlan(1, 3, 1, 2, 9.0)
    found = code_shard(shard, model_of(world), plan, with_variance=True)
    n = 0
    mean, variance = twin(world, n, plan)
    assert (mean != 0).sum() > 64
    np.testing.assert_allclose(dense_codes(found.codes, 150)[n], mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.variance[n], variance, rtol=1e-6, atol=1e-8)
