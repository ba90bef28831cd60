"""Small random worlds for the tests, and their counterparts in the package's own types."""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from kruskal.gibbs.atoms import AtomState
from kruskal.gibbs.codes import CodeModel, code_model
from kruskal.gibbs.local import Codes, Shard, split
from kruskal.patches import Items
from kruskal.tensor import entry_rows
from tests.gibbs.reference import Priors, World, simulate, world_of

PRIORS = Priors()
REGIONS = 3
SHAPES = {1: (4,), 2: (3, 2), 3: (2, 3, 2), 4: (2, 2, 3, 2)}


class Case(NamedTuple):
    """What a world looks like; ``rank`` 0 means Gaussian atoms."""

    shape: tuple[int, ...]
    rank: int
    n_atoms: int
    masked: bool

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape))
        kind = f"rank{self.rank}" if self.rank else "gaussian"
        return f"{size}-{kind}-{self.n_atoms}atoms-{'masked' if self.masked else 'complete'}"


def cases(ranks: tuple[int, ...]) -> list[Case]:
    """Orders 1 to 4, masked and complete, with the given ranks, with several atoms and with one."""
    result = []
    for order, rank, masked in product(SHAPES, ranks, (False, True)):
        result.append(Case(SHAPES[order], rank, 3, masked))
    for rank, masked in product(ranks, (False, True)):
        result.append(Case(SHAPES[2], rank, 1, masked))
    return result


def make_world(case: Case, n_items: int = 6, seed: int = 0, n_regions: int = 1) -> World:
    """A draw from the prior; with three atoms, one (the middle one) has no users, item 0 uses the others.

    In masked worlds the last item has no observed entry and entry 0 is observed nowhere. Of several regions
    the first has one item, the others take turns.
    """
    random = np.random.default_rng([seed, len(case.shape), case.rank, case.n_atoms, case.masked])
    observed = np.ones((n_items, int(np.prod(case.shape))), bool)
    if case.masked:
        observed = random.random(observed.shape) < 0.6
        observed[-1] = False
        observed[:, 0] = False
        observed[0, -2:] = True
    region = np.zeros(n_items, int)
    if n_regions > 1:
        region[:-1] = 1 + np.arange(n_items - 1) % (n_regions - 1)
    draws = simulate(random, PRIORS, case.shape, case.n_atoms, case.rank, observed, 1, region)
    world = world_of(draws, 0, case.shape, observed, region)
    used = world.used.copy()
    used[0] = True
    used[1, 0] = False
    if case.n_atoms == 3:
        used[:, 1] = False
    return world.changed(used=used)


def make_strong_world(case: Case, n_regions: int = 1) -> World:
    """The same with large atoms and codes and little noise, so that the data matter for every conditional."""
    world = make_world(case, n_regions=n_regions)
    random = np.random.default_rng([7, *case.shape, case.rank, case.n_atoms, case.masked])

    def away_from_zero(shape):
        return random.choice([-1.0, 1.0], size=shape) * random.uniform(1.0, 2.0, size=shape)

    world = world.changed(
        gaussian=away_from_zero(world.gaussian.shape),
        weights=away_from_zero(world.weights.shape),
        modes=[away_from_zero(mode.shape) for mode in world.modes],
        slab=away_from_zero(world.slab.shape),
        usage=random.uniform(0.2, 0.8, size=world.usage.shape),
        code_precision=1.3,
        noise_precision=4.0,
    )
    noise = 0.5 * random.standard_normal(world.values.shape)
    return world.changed(values=world.codes @ world.atoms + noise)


def codes_of(weights: np.ndarray, dtype=np.float64) -> Codes:
    """Sparse codes of dense w (N, K)."""
    item, atom = np.nonzero(weights)
    start = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=len(weights)))]).astype(np.int64)
    return Codes(start, atom.astype(np.uint16), weights[item, atom].astype(dtype))


def dense_codes(codes: Codes, n_atoms: int) -> np.ndarray:
    """w (N, K) of sparse codes."""
    weights = np.zeros((len(codes.start) - 1, n_atoms))
    for n in range(len(weights)):
        for c in range(codes.start[n], codes.start[n + 1]):
            weights[n, codes.atom[c]] = codes.value[c]
    return weights


def all_codes(shards: list[Shard], n_atoms: int) -> np.ndarray:
    """w (N, K) of all shards."""
    return np.concatenate([dense_codes(shard.codes, n_atoms) for shard in shards])


def make_items(values: np.ndarray, observed: np.ndarray, shape, keep_mask: bool = False) -> Items:
    """Items of (N, P) values; ``keep_mask`` keeps a mask even if it is true everywhere."""
    items = Items.from_matrix(values.reshape(-1, *shape), observed.reshape(-1, *shape))
    return items._replace(observed=observed.ravel().copy()) if keep_mask else items


def make_shards(world: World, dtype=np.float64, keep_mask: bool = False) -> list[Shard]:
    """The shards of a world's data, with its codes in place."""
    items = make_items(world.values.astype(dtype), world.observed, world.shape, keep_mask)
    items = items._replace(region=world.region.astype(np.uint16))
    shards = split(items)
    for shard in shards:
        shard.codes = codes_of(world.codes[shard.first : shard.first + shard.n_items], dtype)
    return shards


def model_of(world: World, dtype=np.float64, keep_mask: bool = False) -> CodeModel:
    """What the code draw is told about a world."""
    complete = bool(world.observed.all()) and not keep_mask
    log_odds = logit(world.usage)
    return code_model(
        world.atoms, log_odds, world.code_precision, world.noise_precision, np.dtype(dtype), complete
    )


def atom_state(world: World) -> AtomState:
    """The atoms of a world as the package holds them."""
    factors = np.concatenate(world.modes, axis=1) if world.rank else np.zeros((world.n_atoms, 0, 0))
    return AtomState(
        world.atoms.copy(), world.weights.copy(), factors, np.cumsum(np.log(world.delta), axis=1),
        entry_rows(world.shape), np.array(world.shape, dtype=np.int64),
    )  # fmt: skip
