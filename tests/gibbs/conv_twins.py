"""Plain twins of the convolutional kernels: the same draws from the same random numbers."""

import math

import numpy as np
from scipy.special import expit, log_ndtr, ndtri, ndtri_exp

from kruskal.gibbs.conv_local import ImageShard, sparse_maps, split_images
from kruskal.gibbs.conv_maps import MapModel, map_model
from kruskal.gibbs.pairs import padded
from kruskal.random import Stream, key_of
from kruskal.random.philox import philox
from tests.gibbs import conv_reference as ref
from tests.gibbs.conv_reference import ConvWorld
from tests.gibbs.twins import gaussian_draw, uniform_52, word_in_row


def block_uniform(k: int, n_atoms: int, block: int, sweep: int, seed: int) -> float:
    """The uniform that decides whether a block is on."""
    word = word_in_row(k, padded(n_atoms), block, sweep, int(Stream.MAP_CODES), seed)
    return (word + 0.5) / 2.0**32


def other_uniform(index: int, block: int, sweep: int, stream: Stream, seed: int) -> float:
    high, low, _, _ = philox(index, block, sweep, int(stream), *key_of(seed))
    return uniform_52(high, low)


def positive_draw(mean: float, deviation: float, u: float) -> float:
    """N(mean, deviation^2) given that it is positive: P(draw > s) = u."""
    x = mean / deviation
    return deviation * (x - float(ndtri_exp(math.log(u) + float(log_ndtr(x)))))


def draw_all_maps(world: ConvWorld, seed: int, sweep: int, step: tuple[int, int] = (1, 1)) -> np.ndarray:
    """New maps of all images of a world: blocks in order, atoms within a block; every ``step``-th block."""
    layout = world.layout
    blocks = ref.blocks_of(layout)
    for n in range(len(world.maps)):
        for b, cells in enumerate(blocks):
            block, n_used = n * len(blocks) + b, 0
            position, last = divmod(b, layout.grid[1]), (layout.grid[0] - 1, layout.grid[1] - 1)
            if any(i % j and i != end for i, j, end in zip(position, step, last)):
                continue
            for k in range(world.n_atoms):
                log_weights, slabs = ref.block_conditional(world, n, k, cells)
                world = ref.without_block(world, n, k, cells)
                total = np.logaddexp.reduce(log_weights)
                if block_uniform(k, world.n_atoms, block, sweep, seed) >= expit(total):
                    continue
                below = np.cumsum(np.exp(log_weights - total))
                i = 0
                if layout.n_cells > 1:
                    u = other_uniform(k, block, sweep, Stream.MAP_CELLS, seed)
                    i = min(int((u >= below).sum()), len(cells) - 1)
                mean, precision = slabs[i]
                u = other_uniform(n_used, block, sweep, Stream.MAP_SLABS, seed)
                deviation = 1.0 / math.sqrt(precision)
                value = mean + deviation * float(ndtri(u))
                if world.case.nonnegative:
                    value = positive_draw(mean, deviation, u)
                world = world.with_entry("maps", (n, k, *cells[i][1:]), value)
                n_used += 1
    return world.maps


def relocate_all(world: ConvWorld, window: tuple[int, int], seed: int, sweep: int) -> np.ndarray:
    """New maps: lone non-zeros of an atom in a window at another place of the window, with another value."""
    sweep += 2**31
    blocks = ref.blocks_of(world.layout._replace(pooling=window))
    for n in range(len(world.maps)):
        for b, cells in enumerate(blocks):
            block, n_used = n * len(blocks) + b, 0
            for k in range(world.n_atoms):
                count = sum(world.maps[n, k, x, y] != 0.0 for _, x, y in cells)
                if count != 1:
                    n_used += count
                    continue
                flat = [(0, x, y) for _, x, y in cells]  # all places have the log odds of the first cell
                log_weights, slabs = ref.block_conditional(world, n, k, flat)
                below = np.cumsum(np.exp(log_weights - np.logaddexp.reduce(log_weights)))
                u = other_uniform(k, block, sweep, Stream.MAP_CELLS, seed)
                i = min(int((u >= below).sum()), len(cells) - 1)
                mean, precision = slabs[i]
                u, deviation = other_uniform(n_used, block, sweep, Stream.MAP_SLABS, seed), precision**-0.5
                value = mean + deviation * float(ndtri(u))
                if world.case.nonnegative:
                    value = positive_draw(mean, deviation, u)
                world = ref.without_block(world, n, k, cells)
                world = world.with_entry("maps", (n, k, *cells[i][1:]), value)
                n_used += 1
    return world.maps


def draw_all_atoms(world: ConvWorld, entry_noise: np.ndarray, weight_noise: np.ndarray) -> ConvWorld:
    """The world after all atoms were drawn in order, each given the newest value of all others."""
    shape = world.layout.atom_shape
    for k in range(world.n_atoms):
        q, p = ref.atom_terms(world, k)
        if world.rank == 0:
            value = np.empty(shape)
            noise = entry_noise[k].reshape(shape)
            matrix = ref.gaussian_atom(q, p)[1].reshape(*shape, *shape)
            for c in range(shape[2]):  # the channels are independent
                size = shape[0] * shape[1]
                linear = p.reshape(shape)[..., c].ravel()
                part = matrix[:, :, c, :, :, c].reshape(size, size)
                value[..., c] = gaussian_draw(linear, part, noise[..., c].ravel()).reshape(shape[:2])
            world = world.with_entry("gaussian", k, value)
            continue
        first = 0
        for t, size in enumerate(shape):
            noise = entry_noise[k, first * world.rank : (first + size) * world.rank]
            value = gaussian_draw(*ref.mode_block(world, k, t, q, p), noise)
            world = world.with_mode(t, k, value.reshape(size, world.rank))
            first += size
        value = gaussian_draw(*ref.weight_block(world, k, q, p), weight_noise[k])
        world = world.with_entry("weights", k, value)
    return world


def make_shards(world: ConvWorld, dtype=np.float64, keep_mask: bool = False) -> list[ImageShard]:
    """The shards of a world's images, with its maps in place; missing values are nonsense before."""
    values = np.where(world.observed, world.values, 1e9).astype(dtype)
    shards = split_images(values, None if world.observed.all() else world.observed)
    for shard in shards:
        part = slice(shard.first, shard.first + shard.n_images)
        shard.maps = sparse_maps(world.maps[part].astype(dtype), world.layout)
        if keep_mask and shard.complete:
            shard.observed = np.ones(shard.values.shape, bool)
    return shards


def model_of(
    world: ConvWorld, tile_rows: int = 1, dtype=np.float64, complete: bool | None = None,
    step: tuple[int, int] = (1, 1),
) -> MapModel:  # fmt: skip
    """What the draw of the maps is told about a world."""
    complete = bool(world.observed.all()) if complete is None else complete
    log_odds, by_image = world.log_odds(), None
    if world.case.by_image:
        log_odds, by_image = np.log(world.phi), np.log(world.pi) - np.log1p(-world.pi)
    return map_model(
        world.atoms.reshape(world.n_atoms, -1), log_odds, world.code_precision, world.noise_precision,
        world.case.nonnegative, world.layout, np.dtype(dtype), complete, tile_rows, step, by_image,
    )  # fmt: skip
