r"""Maps: W_kn[p] = z s of every image, place and atom, given the atoms.

With h the residual, omega the mask and D_k corr h the correlation of atom k with the residual at p,

    c_kn[p] = gamma_eps (D_k^2 corr omega_n)[p],
    l_kn[p] = gamma_eps (D_k corr (omega_n h_n))[p] + c_kn[p] W_kn[p]                              (5.2)

and then as in `kruskal.gibbs.codes`, block by block: see `kruskal.gibbs.conv_blocks`. Images are independent
given the atoms. Within an image blocks and atoms are visited one after the other in a fixed order.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.conv_blocks import log_totals
from kruskal.gibbs.conv_local import ImageShard, Layout, Maps, in_order
from kruskal.gibbs.conv_maps_complete import sweep_complete
from kruskal.gibbs.conv_maps_masked import sweep_masked
from kruskal.gibbs.pairs import padded
from kruskal.random import key_of


class MapModel(NamedTuple):
    """All that an image needs to know to draw its maps; made once per sweep by `map_model`.

    Attributes
    ----------
    dictionary : (K, P) atoms in the data's precision
    columns : (P, K') the same, entry-major, padded with zeros to a multiple of `pairs.LANES` atoms
    table : (K, lags, lags, K') A_k'k of (5.4) from `lag_table`; without lags for masked data
    log_odds : (K, cells) float64 log theta_g / theta_0;  totals : (K,) from `log_totals`
    image_log_odds : (N, K) float64, what is added to both in every image; (1, K) for all images alike
    code_precision, noise_precision : gamma_s, gamma_eps;  nonnegative : whether slabs are cut off at 0
    layout : `Layout.numbers`;  tile_rows : block rows per tile (complete data)
    step : only every so many-th block along x and y is visited, the others stay as they are
    relocate : whether only the places and values of lone non-zeros are drawn, see `relocate_codes`
    """

    dictionary: np.ndarray
    columns: np.ndarray
    table: np.ndarray
    log_odds: np.ndarray
    totals: np.ndarray
    image_log_odds: np.ndarray
    code_precision: float
    noise_precision: float
    nonnegative: bool
    layout: tuple[int, ...]
    tile_rows: int
    step: tuple[int, int]
    relocate: bool = False


class MapDraw(NamedTuple):
    """What one shard reports after drawing its maps: sufficient statistics of the scalar conditionals."""

    counts: np.ndarray  # (K, cells) number of blocks whose non-zero is at each cell
    squares: float  # sum of W^2
    residual_squares: float  # sum over observed entries of (x - D * W)^2


class RelocationDraw(NamedTuple):
    """What one shard reports after moving non-zeros; as in `MapDraw`, without the counts."""

    squares: float
    residual_squares: float


def map_model(
    dictionary, log_odds, code_precision, noise_precision, nonnegative, layout: Layout, dtype, complete,
    tile_rows: int, step: tuple[int, int] = (1, 1), image_log_odds: np.ndarray | None = None,
) -> MapModel:  # fmt: skip
    """Cast the global state once for all images: ``dictionary`` (K, P), ``log_odds`` (K, cells)."""
    if image_log_odds is None:
        image_log_odds = np.zeros((1, len(dictionary)))
    atoms = np.ascontiguousarray(dictionary, dtype=dtype)
    columns = np.zeros((atoms.shape[1], padded(len(atoms))), dtype)
    columns[:, : len(atoms)] = atoms.T
    table = lag_table(atoms, layout, tile_rows) if complete else np.zeros((len(atoms), 0, 0, 0), dtype)
    return MapModel(
        atoms, columns, table, log_odds, log_totals(log_odds, nonnegative), image_log_odds,
        float(code_precision), float(noise_precision), bool(nonnegative), layout.numbers, tile_rows, step,
    )  # fmt: skip


_TILE_PLACES = 32  # fewer make thin matrix products, more make more to propagate
_RELOCATION = 2**31  # added to the number of the sweep, so that other random numbers are used


def tile_rows_for(layout: Layout) -> int:
    """Block rows per tile: one, or more if a row has few places."""
    return min(layout.grid[0], -(-_TILE_PLACES // (layout.pooling[0] * layout.map_shape[1])))


def lag_table(dictionary: np.ndarray, layout: Layout, tile_rows: int) -> np.ndarray:
    """A_k'k[lag] of (5.4) as (K, lags along x, lags along y, K'), for all lags that matter within a tile.

    Along x from -(p_x - 1), as what comes before the block is done, along y symmetric about the middle.
    """
    n_atoms, (m_x, m_y) = len(dictionary), layout.atom_size
    p_x, p_y = layout.pooling
    down = max(p_x - 1, min(m_x - 1, tile_rows * p_x - 1, layout.map_shape[0] - 1))
    reach = max(p_y - 1, min(m_y - 1, layout.map_shape[1] - 1))
    table = np.zeros((n_atoms, p_x + down, 2 * reach + 1, padded(n_atoms)), dictionary.dtype)
    atoms = dictionary.reshape(n_atoms, m_x, m_y, -1).astype(np.float64)
    for x in range(max(1 - p_x, 1 - m_x), min(down, m_x - 1) + 1):
        for y in range(-min(reach, m_y - 1), min(reach, m_y - 1) + 1):
            here = atoms[:, max(0, -x) : m_x - max(0, x), max(0, -y) : m_y - max(0, y)]
            there = atoms[:, max(0, x) : m_x - max(0, -x), max(0, y) : m_y - max(0, -y)]
            product = there.reshape(n_atoms, -1) @ here.reshape(n_atoms, -1).T
            table[:, x + p_x - 1, y + reach, :n_atoms] = product
    return table


def draw_maps(shard: ImageShard, model: MapModel, seed: int, sweep: int) -> MapDraw:
    """Draw the maps of every image of a shard; replaces ``shard.maps``."""
    shard.maps, squares = _redraw(shard, shard.maps, model, seed, sweep)
    return MapDraw(count_cells(shard.maps, model), _sum_squares(shard.maps), squares)


def relocation_model(model: MapModel, layout: Layout, window: tuple[int, int]) -> tuple[MapModel, Layout]:
    """What `relocate_codes` takes to move non-zeros within windows of maps without pooling."""
    windows = layout._replace(pooling=window)
    n_atoms, tile_rows = len(model.dictionary), tile_rows_for(windows)
    table = lag_table(model.dictionary, windows, tile_rows) if model.table.size > 0 else model.table
    moving = model._replace(
        table=table, log_odds=np.zeros((n_atoms, windows.n_cells)), totals=np.full(n_atoms, -np.inf),
        image_log_odds=np.zeros((1, n_atoms)), layout=windows.numbers, tile_rows=tile_rows, step=(1, 1),
        relocate=True,
    )  # fmt: skip
    return moving, windows


def relocate_codes(
    shard: ImageShard, model: MapModel, windows: Layout, seed: int, sweep: int
) -> RelocationDraw:
    """Move non-zeros of maps without pooling to places nearby; replaces ``shard.maps``.

    Maps are cut into windows. Where an atom has exactly one non-zero in a window, its place within the window
    and its value are drawn anew, given that there is one: all places have the same prior, so this is the draw
    of a block that is on. One by one, a non-zero could only go and another come.
    """
    maps, squares = _redraw(shard, in_order(shard.maps, windows), model, seed, sweep + _RELOCATION)
    shard.maps = in_order(maps, windows._replace(pooling=(1, 1)))
    return RelocationDraw(_sum_squares(maps), squares)


def _redraw(shard: ImageShard, old: Maps, model: MapModel, seed: int, sweep: int) -> tuple[Maps, float]:
    """New maps and the sum of squared residuals."""
    n_atoms = len(model.dictionary)
    capacity = len(old.atom) + len(old.atom) // 4 + 32 * shard.n_images + n_atoms
    draw = sweep_complete if shard.complete else sweep_masked
    while True:
        start = np.zeros(shard.n_images + 1, np.int64)
        atom, place = np.empty(capacity, np.uint16), np.empty(capacity, np.uint32)
        value = np.empty(capacity, shard.values.dtype)
        squares = draw(
            shard.values, shard.observed, *old, *model, (*key_of(seed), sweep, shard.first),
            start, atom, place, value,
        )  # fmt: skip
        if squares >= 0.0:
            break
        capacity *= 2  # the buffer was too small; the same random numbers give the same maps again
    filled = int(start[-1])
    return Maps(start, atom[:filled].copy(), place[:filled].copy(), value[:filled].copy()), squares


def _sum_squares(maps: Maps) -> float:
    return float(np.square(maps.value, dtype=np.float64).sum())


def count_by_image(shard: ImageShard, n_atoms: int) -> np.ndarray:
    """(n, K) number of non-zeros of every map of a shard."""
    image = np.repeat(np.arange(shard.n_images), np.diff(shard.maps.start))
    counts = np.bincount(image * n_atoms + shard.maps.atom, minlength=shard.n_images * n_atoms)
    return counts.reshape(shard.n_images, n_atoms)


def count_cells(maps: Maps, model: MapModel) -> np.ndarray:
    """(K, cells) number of blocks whose non-zero is at each cell."""
    n_columns, p_x, p_y = model.layout[4:]
    x, y = np.divmod(maps.place, n_columns)
    cell = (x % p_x) * p_y + y % p_y
    shape = model.log_odds.shape
    return np.bincount(maps.atom * np.int64(shape[1]) + cell, minlength=shape[0] * shape[1]).reshape(shape)
