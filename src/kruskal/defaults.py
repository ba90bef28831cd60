"""What a run takes when the user does not say: rules for any array, from a first look at it.

All were chosen on pictures from scikit-image (docs/choices.md); `kruskal.choose` tests them on the data.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kruskal.data import growth_of_differences, noise_bound, rough_noise, signal_directions
from kruskal.patches import Grid
from kruskal.tensor import generic_rank, maximal_rank

_NOISY = 0.025  # 6 grey levels of 256
_NEARLY_ALL, _FEW, _VERY_FEW = 0.65, 0.35, 0.15
_SIDES = {1: (32, 64, 128), 2: (8, 12, 16), 3: (4, 6, 8, 12), 4: (3, 4, 5, 6), 5: (2, 3, 4, 5)}
_OTHER_SIDES = (2, 2, 3)
_MOST_ITEMS, _FEW_ITEMS = 250_000, 50
_MOST_WORK = 20_000_000  # entries over all items
_MOST_NOISY_PICTURE, _MOST_NOISY_VOLUME = (250_000, 32_000_000), (400_000, 80_000_000)  # items, work
_COLOURS = 4
_SPARSE, _SPARSE_COLOURS = 2.0, 64.0
_LOUD = 0.1  # 25 grey levels of 256
_SMOOTH, _SPARSE_SMOOTH = (3.2, 5.5), 16.0  # differences of what is linear grow by 5, of stripes by anything
_SMOOTH_DIRECTIONS = 9.0
_PLAIN, _SPARSE_PLAIN = 3.0, 8.0  # a plane has three directions
_MOST_ENTRIES = 1_024
_ROOM = 4  # patches side by side, so that all places of a patch see the same
_ITEMS_PER_REGION, _REGIONS, _VOLUME_REGIONS = 256, 64, 128
_ATOMS, _MORE_ATOMS, _VOLUME_ATOMS, _ITEMS_PER_ATOM = 256, 512, 1_024, 16
MOST_SWEEPS = 500
TERM_SWEEPS = 300
PAPER_SWEEPS, PAPER_BURN_IN = 150, 40


class Look(NamedTuple):
    """A first look at the data: the share of observed entries; the noise relative to the range, if known;
    how differences in a noisy picture grow with the distance (`kruskal.data.growth_of_differences`); the most
    noise that complete noisy data can hold (`kruskal.data.noise_bound`), in their units; in how many
    directions small patches of such a picture have more than that (`kruskal.data.signal_directions`)."""

    share: float = 1.0
    noise: float | None = None
    growth: float | None = None
    most_noise: float | None = None
    directions: float | None = None

    @classmethod
    def at(cls, values: np.ndarray, observed: np.ndarray, scale: float, least_noise: float = 0.0) -> "Look":
        """Look at an array whose range is about ``scale``, and whose noise is at least ``least_noise``."""
        noise = rough_noise(values, observed)
        noise = max(noise or 0.0, least_noise) if least_noise else noise
        look = cls(float(observed.mean()), None if noise is None else noise / scale)
        picture = values.ndim == 2 and min(values.shape) > 1
        if picture and look.noisy:  # asked of no others
            scaled = values.astype(np.float64) / scale  # float32 may not hold the scale
            look = look._replace(growth=growth_of_differences(scaled, observed))
        if look.noisy and look.share == 1.0:  # covariances of pairs that are both observed are too uncertain
            patch = _pooled_patch(values.shape)
            most = noise_bound(values, patch)
            look = look._replace(most_noise=None if most is None else max(most, least_noise))
            if picture and min(patch) > 1 and look.most_noise is not None:
                look = look._replace(directions=signal_directions(values, patch, look.most_noise))
        return look

    @classmethod
    def at_all(cls, values: Sequence[np.ndarray], masks: Sequence[np.ndarray], scale: float) -> "Look":
        """Look at several arrays: the share of observed entries over all of them, and the median noise."""
        noise = [
            found for array, mask in zip(values, masks) if (found := rough_noise(array, mask)) is not None
        ]
        share = sum(int(mask.sum()) for mask in masks) / sum(mask.size for mask in masks)
        return cls(share, float(np.median(noise)) / scale if noise else None)

    @property
    def noisy(self) -> bool:
        """Whether there is noise that matters."""
        return self.noise is not None and self.noise > _NOISY

    @property
    def nearly_complete(self) -> bool:
        """Whether so much is observed that little has to be guessed."""
        return self.share >= _NEARLY_ALL

    @property
    def smooth(self) -> bool:
        """Whether there is much noise on something smooth, nearly complete: no texture that can be seen."""
        if self.growth is None or not (self.noisy and self.nearly_complete):
            return False
        least, most = _SMOOTH
        textured = self.directions is not None and self.directions > _SMOOTH_DIRECTIONS
        return least < self.growth < most and not textured

    @property
    def plain(self) -> bool:
        """Whether little but noise can be seen in a small patch of a complete noisy picture."""
        return self.noisy and self.directions is not None and self.directions <= _PLAIN

    @property
    def only_represent(self) -> bool:
        """Whether the task is to represent what is there: clean and nearly complete data."""
        return self.nearly_complete and not self.noisy


FIRST_LOOK = Look()


def _pooled_patch(array_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The smallest patch, with one entry along axes that have room for few: their entries are pooled.

    Channels, say, may differ in their noise. The covariance of patches that lie in one channel each is that
    of the mean over the channels, so it bounds their mean noise, of which the model has one; that of patches
    across all channels would bound all by the cleanest.
    """
    pairs = zip(array_shape, patch_ladder(array_shape)[0])
    return tuple(side if size >= _ROOM * side else 1 for size, side in pairs)


def patch_ladder(array_shape: Sequence[int], channels: str | None = None) -> list[tuple[int, ...]]:
    """Patches of growing size for an array of this shape, smallest first: cubes, short axes whole.

    The last of three or more axes counts as channels when ``channels`` is "keep", or by itself when it has at
    most four entries, another axis has more, and ``channels`` is not "cut"; if that is "apart", patches hold
    one channel. Many channels make the cubes smaller (at most 1,024 entries if possible), a small array makes
    them at most half as long as each axis.
    """
    cut_axes, whole = _split_axes(array_shape, channels)
    return [_patch(cut_axes, whole, side) for side in _SIDES.get(_order(cut_axes), _OTHER_SIDES)]


def default_patch_shape(
    array_shape: Sequence[int], channels: str | None = None, look: Look = FIRST_LOOK
) -> tuple[int, ...]:
    """A small patch for nearly complete pictures, a larger one the less is observed.

    A larger patch holds more observed entries, which is worth most where they are few and clean, or where
    there is noise on something smooth, or on what has little detail. Channels that are kept whole, up to four
    of them, count as if they told of each other.
    """
    ladder, step = patch_ladder(array_shape, channels), 1
    cut_axes, whole = _split_axes(array_shape, channels)
    if look.smooth and len(cut_axes) == 2:
        return ladder[-1]
    if look.plain and len(cut_axes) == 2:
        return ladder[1]
    share = min(1.0, look.share * min(math.prod(whole), _COLOURS))
    if not look.noisy:
        step += (share < _FEW) + (share < _VERY_FEW)
    if share >= _NEARLY_ALL and _order(cut_axes) == 2:
        step = 0
    return ladder[min(step, len(ladder) - 1)]


def channels_word(array_shape: Sequence[int], channels: str | None = None) -> str:
    """ "keep" if patches take the last axis of such an array whole, else "cut"; "apart" if that was said."""
    if channels == "apart":
        return channels
    return "keep" if _split_axes(array_shape, channels)[1] else "cut"


def all_channels_alike(values: np.ndarray, observed: np.ndarray) -> bool:
    """Whether an array has two to four channels that are all the same: a grey picture saved in colour."""
    if not _split_axes(values.shape, None)[1] or values.shape[-1] == 1:
        return False
    same = np.where(observed, values, 0)
    return bool((same == same[..., :1]).all() and (observed == observed[..., :1]).all())


def _split_axes(array_shape: Sequence[int], channels: str | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes that are cut, and what patches hold of the others: all, or one entry."""
    shape = tuple(array_shape)
    if len(shape) >= 3 and channels == "apart":
        return shape[:-1], (1,)
    if len(shape) >= 3 and (
        channels == "keep" or (channels is None and shape[-1] <= _COLOURS < max(shape[:-1]))
    ):
        return shape[:-1], shape[-1:]
    return shape, ()


def _order(cut_axes: tuple[int, ...]) -> int:
    return max(sum(size > 1 for size in cut_axes), 1)


def _patch(cut_axes: tuple[int, ...], whole: tuple[int, ...], side: int) -> tuple[int, ...]:
    def cube(axes: Sequence[int]) -> tuple[int, ...]:
        return (*(min(side, size) for size in axes), *whole)

    while math.prod(cube(cut_axes)) > _MOST_ENTRIES and side > 2:
        side -= 1
    shape = (*cut_axes, *whole)
    if Grid(shape, cube(cut_axes), (1,) * len(shape)).n_items >= _FEW_ITEMS:
        return cube(cut_axes)
    return cube([(size + 1) // 2 for size in cut_axes])


def default_stride(grid: Grid, channels: str | None, look: Look) -> tuple[int, ...]:
    """The smallest common stride that keeps the work manageable; never more than half a patch.

    Of pictures only observed entries count as work, of volumes all do. Noisy data are worth more of it: the
    more patches cover an entry, the more noise is averaged out, and the fewer codes a patch needs.
    """
    entries, most_items, most_work = math.prod(grid.patch_shape), _MOST_ITEMS, _MOST_WORK
    picture = _order(_split_axes(grid.array_shape, channels)[0]) <= 2
    if picture:
        entries = max(1, round(entries * look.share))
    if look.noisy:
        most_items, most_work = _MOST_NOISY_PICTURE if picture else _MOST_NOISY_VOLUME
    most = min(most_items, max(most_work // entries, 1))
    for step in range(1, max(grid.patch_shape) + 1):
        stride = tuple(max(1, min(step, size // 2)) for size in grid.patch_shape)
        if grid._replace(stride=stride).n_items <= most:
            break
    return stride


def is_noisy_volume(array_shape: Sequence[int], channels: str | None, look: Look) -> bool:
    """Whether this is a complete noisy array of three or more axes that are cut."""
    return look.noisy and look.share == 1.0 and _order(_split_axes(array_shape, channels)[0]) > 2


def default_atoms(grid: Grid, look: Look, noisy_volume: bool = False) -> int:
    """256 atoms, 512 for large patches and to represent clean data, never more than items.

    Up to 1,024 for noisy volumes, whose edges lie in all directions.
    """
    few = math.prod(grid.patch_shape) <= _ATOMS and not look.only_represent
    usual = min(_ATOMS if few else _MORE_ATOMS, max(grid.n_items, 2))
    return max(usual, min(_VOLUME_ATOMS, grid.n_items // _ITEMS_PER_ATOM)) if noisy_volume else usual


def default_vector_atoms(n_items: int, n_features: int) -> int:
    """As many atoms as features, never more than items: for vectors, whose noise no first look can tell.

    The usage prior is then flat, and with more atoms than that every item is followed, noise and all.
    """
    return max(2, min(n_features, n_items, _MORE_ATOMS))


def default_rank(patch_shape: tuple[int, ...], look: Look) -> int:
    """Noisy data get atoms of higher rank: they can be learned from many noisy copies."""
    return min(4 if look.noisy else 2, maximal_rank(patch_shape))


def paper_atoms(patch_shape: tuple[int, ...]) -> int:
    """256 for the paper's grey pictures, 512 for colour and volumes."""
    return 256 if math.prod(patch_shape) <= 64 else 512


def paper_rank(patch_shape: tuple[int, ...]) -> int:
    """R = generic rank - 1, as the paper has it for pictures."""
    return max(1, generic_rank(patch_shape) - 1)


def default_terms(sizes: Sequence[int], n_items: int, look: Look) -> int:
    """Most terms of a Kruskal decomposition of a tensor with modes of these sizes; the data use fewer.

    The generic rank of the shape, but at most 64 for stacked patches and 32 for a whole array, and of
    incomplete data at most as many as have two observed entries for every free number.
    """
    most = min(generic_rank(sizes), 32 if n_items == 1 else 64)
    if look.share < 1.0:
        free = 1 + sum(size - 1 for size in sizes)
        most = min(most, int(look.share * math.prod(sizes)) // (2 * free))
    return max(1, most)


def term_annealing(look: Look, burn_in: int) -> int:
    """Sweeps at the beginning of MGP-CP whose noise is kept large; none for clean data to be represented."""
    return 0 if look.only_represent else min(30, burn_in)


def default_annealing(array_shape: Sequence[int], channels: str | None, look: Look, burn_in: int) -> int:
    """The same for a dictionary: of clean incomplete arrays but signals, whose codes would else overfit."""
    signal = _order(_split_axes(array_shape, channels)[0]) == 1
    return 0 if signal or look.noisy or look.nearly_complete else min(50, 5 * burn_in // 6)


def default_sparsity(
    array_shape: Sequence[int], channels: str | None, look: Look, brief: bool = False
) -> float:
    """b_pi of the usage prior per item; 0, the paper's flat prior, where clean data are to be represented.

    An eighth for noisy data, and more when the noise is so loud that atoms would be found in it, or when what
    is under it is smooth or has little detail and needs few atoms. Much more for incomplete pictures in
    colour, whose atoms would else follow every observed entry; but such chains settle slowly, so not for
    those that are ``brief``.
    """
    if (look.smooth or look.plain) and not brief:
        return _SPARSE_SMOOTH if look.smooth else _SPARSE_PLAIN
    if look.noise is not None and look.noisy:
        return 0.125 * max(1.0, min(look.noise, 1.0) / _LOUD) ** 3  # noise above the range: other units
    if look.only_represent:
        return 0.0
    return _SPARSE_COLOURS if _in_colour(array_shape, channels) and not brief else _SPARSE


def default_sweeps(array_shape: Sequence[int], channels: str | None, look: Look) -> int:
    """48 for clean incomplete grey pictures and 50 for noisy volumes, where more do no better; else 100."""
    picture = _order(_split_axes(array_shape, channels)[0]) <= 2
    if look.noisy and not picture:
        return 50
    grey = picture and not _in_colour(array_shape, channels)
    return 48 if grey and not (look.noisy or look.only_represent) else 100


def _in_colour(array_shape: Sequence[int], channels: str | None) -> bool:
    """Whether this is a picture with two to four channels, which patches take whole."""
    cut_axes, whole = _split_axes(array_shape, channels)
    return _order(cut_axes) <= 2 and 1 < math.prod(whole) <= _COLOURS


def default_regions(n_items: int, look: Look, noisy_volume: bool = False) -> int:
    """Regions that have a usage of their own: 64, fewer when they would hold less than 256 items.

    128 of noisy volumes. One where clean data are to be represented: every item has enough data to choose its
    atoms itself.
    """
    if look.only_represent:
        return 1
    return max(1, min(_VOLUME_REGIONS if noisy_volume else _REGIONS, n_items // _ITEMS_PER_REGION))


def default_grouping(look: Look) -> str:
    """Regions are of patches that look alike in noisy data, of neighbours in others."""
    return "likeness" if look.noisy else "place"
