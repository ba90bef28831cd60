"""Plain twins of the kernels: the same draws from the same random numbers, by the formulas of `reference`.

The package's `philox` is used for the random words, as it has known answers of its own (tests/random).
"""

import math

import numpy as np
from scipy.special import expit, ndtri

from kruskal.gibbs.pairs import SLABS_AHEAD, padded
from kruskal.random import Stream, key_of
from kruskal.random.philox import philox
from tests.gibbs import reference as ref
from tests.gibbs.reference import World


def word_in_row(j: int, width: int, item: int, sweep: int, stream: int, seed: int) -> int:
    """Word j of a row of `fill_words`: word q of counter c, where j = q width / 4 + c."""
    block, counter = divmod(j, width // 4)
    return int(philox(counter, item, sweep, stream, *key_of(seed))[block])


def uniform_52(high: int, low: int) -> float:
    return ((int(high) << 20) + (int(low) >> 12) + 0.5) / 2.0**52


def pair_uniform(k: int, n_atoms: int, item: int, sweep: int, seed: int) -> float:
    """The uniform that decides on z of (item, atom k) in the collapsed draw."""
    word = word_in_row(k // 2, padded(n_atoms) // 2, item, sweep, int(Stream.CODES), seed)
    first = (word >> (16 * (k % 2))) & 0xFFFF
    rest = int(philox(k, item, sweep, int(Stream.REFINED), *key_of(seed))[0])
    return (first + (rest + 0.5) / 2.0**32) / 2.0**16


def slab_normal(j: int, item: int, sweep: int, seed: int) -> float:
    """The standard normal of the j-th atom that comes into use of an item in the collapsed draw."""
    if j < SLABS_AHEAD:
        high, low = (
            word_in_row(i, 2 * SLABS_AHEAD, item, sweep, int(Stream.SLABS), seed)
            for i in (j, SLABS_AHEAD + j)
        )
    else:
        high, low, _, _ = philox(j, item, sweep, int(Stream.SLABS), *key_of(seed))
    return float(ndtri(uniform_52(high, low)))


def draw_item(
    values, observed, atoms, usage, code_precision, noise_precision, old, seed, sweep, item, collapsed=True
) -> np.ndarray:  # fmt: skip
    """New w (K,) of one item, atom by atom; ``values``, ``observed`` (P,), ``atoms`` (K, P), ``old`` (K,).

    Collapsed: Metropolis steps of z, and values of those that stay in use stay.
    """
    codes = old.astype(float)
    n_atoms = len(atoms)
    data, design = values[observed], atoms[:, observed]
    n_new = 0
    for k in range(n_atoms):
        before, codes[k] = codes[k], 0.0
        rest = data - codes @ design
        c = noise_precision * float(design[k] @ design[k])
        linear = noise_precision * float(design[k] @ rest)
        mean, precision = ref.slab_conditional(code_precision, c, linear)
        if collapsed:
            log_odds = ref.logit_collapsed(usage[k], code_precision, c, linear)
            change = log_odds if before == 0.0 else -log_odds
            if pair_uniform(k, n_atoms, item, sweep, seed) >= math.exp(min(change, 0.0)):
                codes[k] = before
                continue
            used = before == 0.0
            deviate = slab_normal(n_new, item, sweep, seed) if used else 0.0
            n_new += used
        else:
            words = philox(k, item, sweep, int(Stream.CODES), *key_of(seed))
            more = philox(k, item, sweep, int(Stream.PRIOR_SLABS), *key_of(seed))
            prior = float(ndtri(uniform_52(more[2], more[3]))) / math.sqrt(code_precision)
            slab = before if before != 0.0 else prior
            probability = expit(ref.logit_uncollapsed(usage[k], slab, c, linear))
            used = uniform_52(words[0], words[1]) < probability
            deviate = float(ndtri(uniform_52(words[2], words[3])))
        if used:
            codes[k] = mean + deviate / math.sqrt(precision)
    return codes


def draw_all_codes(world: World, seed: int, sweep: int, collapsed: bool = True) -> np.ndarray:
    """New w (N, K) of all items of a world."""
    atoms, old = world.atoms, world.codes
    return np.array(
        [
            draw_item(
                world.values[n], world.observed[n], atoms, world.usage[world.region[n]], world.code_precision,
                world.noise_precision, old[n], seed, sweep, n, collapsed,
            )
            for n in range(world.n_items)
        ]
    )  # fmt: skip


def joint_slab_normal(a: int, item: int, sweep: int, seed: int) -> float:
    """The standard normal of the a-th atom that an item uses, in the joint draw of their slabs."""
    page, j = divmod(a, SLABS_AHEAD)
    counter, block = page * SLABS_AHEAD // 2 + j % (SLABS_AHEAD // 2), j // (SLABS_AHEAD // 2)
    words = philox(counter, item, sweep, int(Stream.JOINT_SLABS), *key_of(seed))
    return float(ndtri(uniform_52(words[block], words[block + 2])))


def draw_all_slabs(world: World, seed: int, sweep: int) -> np.ndarray:
    """New w (N, K) of all items of a world: the atoms in use stay, their values are drawn jointly."""
    codes = np.zeros(world.used.shape)
    for n in range(world.n_items):
        active = np.nonzero(world.used[n])[0]
        noise = np.array([joint_slab_normal(a, n, sweep, seed) for a in range(len(active))])
        codes[n, active] = gaussian_draw(*ref.slabs_conditional(world, n), noise)
    return codes


def expected_item(world: World, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance (P,) of the entries of item n without noise, given which atoms it uses."""
    active = np.nonzero(world.used[n])[0]
    linear, precision = ref.slabs_conditional(world, n)
    atoms, covariance = world.atoms[active], np.linalg.inv(precision)
    return atoms.T @ (covariance @ linear), np.einsum("ai,ab,bi->i", atoms, covariance, atoms)


def gaussian_draw(linear: np.ndarray, precision: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """N(Q^-1 h, Q^-1) from standard normals: Q^-1 h + L^-T noise with Q = L L^T."""
    factor = np.linalg.cholesky(precision)
    return np.linalg.solve(precision, linear) + np.linalg.solve(factor.T, noise)


def draw_all_atoms(
    world: World,
    entry_noise: np.ndarray,
    weight_noise: np.ndarray,
    blocked: bool,
    fixed_weights: bool = False,
) -> World:
    """The world after all atoms were drawn in order, each given the newest value of all others.

    ``entry_noise`` (K, P) for Gaussian and (K, sum m_t, R) for Kruskal atoms, ``weight_noise`` (K, R).
    """
    for k in range(world.n_atoms):
        q, p = ref.atom_terms(world, k)
        if world.rank == 0:
            mean, precision = ref.gaussian_atom(q, p)
            world = world.with_entry("gaussian", k, mean + entry_noise[k] / np.sqrt(precision))
        elif blocked:
            world = _blocked_atom(world, k, q, p, entry_noise[k], weight_noise[k], fixed_weights)
        else:
            world = _scalar_atom(world, k, q, p, entry_noise[k], weight_noise[k], fixed_weights)
    return world


def _blocked_atom(world, k, q, p, noise, weight_noise, fixed_weights):
    offset = 0
    for t, size in enumerate(world.shape):
        modes = [mode[k] for mode in world.modes]
        rows = [ref.factor_row(world.weights[k], modes, q, p, t, j) for j in range(size)]
        world = world.with_mode(t, k, [gaussian_draw(*rows[j], noise[offset + j]) for j in range(size)])
        offset += size
    if fixed_weights:
        return world
    modes = [mode[k] for mode in world.modes]
    block = ref.weight_block(world.weights[k], modes, world.tau[k], q, p)
    return world.with_entry("weights", k, gaussian_draw(*block, weight_noise))


def _scalar_atom(world, k, q, p, noise, weight_noise, fixed_weights):
    offset = 0
    for t, size in enumerate(world.shape):
        for r in range(world.rank):
            modes = [mode[k] for mode in world.modes]
            column = np.empty(size)
            for j in range(size):
                mean, precision = ref.factor_entry(world.weights[k], modes, q, p, t, j, r)
                column[j] = mean + noise[offset + j, r] / math.sqrt(precision)
            world = world.with_mode(t, (k, slice(None), r), column)
        offset += size
    for r in range(0 if fixed_weights else world.rank):
        modes = [mode[k] for mode in world.modes]
        mean, precision = ref.weight_entry(world.weights[k], modes, world.tau[k], q, p, r)
        world = world.with_entry("weights", (k, r), mean + weight_noise[r] / math.sqrt(precision))
    return world
