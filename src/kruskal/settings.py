"""What a run is told: options checked against the array, and sensible values for those not given."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kruskal.errors import InputError, whole_number
from kruskal.gibbs.start import check_start
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, KFA, Model
from kruskal.patches import Grid
from kruskal.random import check_seed
from kruskal.tensor import maximal_rank

MODELS = ("kfa", "bpfa")
CODES = ("collapsed", "uncollapsed")
CHANNELS = ("keep", "cut")
_PATCH_SIDES = {1: 64, 2: 8, 3: 6, 4: 4, 5: 3}
_MOST_ITEMS, _FEW_ITEMS = 250_000, 50
_MOST_ENTRIES = 1_024
_MOST_ATOMS = 65_535  # codes store the atom in 16 bits
_MOST_REGIONS = 4_096
_NOISY = 0.025  # 6 grey levels of 256
_RANK_CLEAN, _RANK_NOISY = 2, 4
_DEFAULT_SWEEPS = 100


@dataclass(frozen=True)
class Settings:
    """All options of a run, resolved; plain values only, so that they can be written down as JSON."""

    model: str
    array_shape: tuple[int, ...]
    patch_shape: tuple[int, ...]
    stride: tuple[int, ...]
    n_atoms: int
    rank: int
    sweeps: int
    burn_in: int
    start: str
    alpha: str | float
    codes: str
    usage_prior: tuple[float, float]
    regions: int
    seed: int

    @property
    def grid(self) -> Grid:
        """The grid of patches."""
        return Grid(self.array_shape, self.patch_shape, self.stride)

    def build_model(self) -> Model:
        """The model that these settings describe."""
        common: dict[str, Any] = {
            "shape": self.patch_shape,
            "n_atoms": self.n_atoms,
            "usage_prior": UsagePrior(*self.usage_prior),
            "collapsed": self.codes == "collapsed",
        }
        if self.model == "bpfa":
            return BPFA(**common)
        if isinstance(self.alpha, str):
            return KFA(**common, rank=self.rank, alpha_mode=self.alpha)
        return KFA(**common, rank=self.rank, alpha_mode="fixed", alpha_start=self.alpha)

    def to_json(self) -> dict[str, Any]:
        """As a dictionary of plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Settings":
        """Back from `to_json`; lists become tuples again."""
        tuples: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**tuples)


def resolve(
    array_shape: Sequence[int],
    *,
    model: str = "kfa",
    patch_shape: Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    n_atoms: int | None = None,
    rank: int | str = "auto",
    sweeps: int | None = None,
    burn_in: int | None = None,
    start: str = "pca",
    alpha: str | float = "sample",
    codes: str = "collapsed",
    channels: str | None = None,
    usage_prior: tuple[float, float] | None = None,
    regions: int | None = None,
    seed: int = 0,
    noise: float | None = None,
) -> Settings:
    """Check every option and fill in those not given; see `kruskal.inpaint` for their meaning.

    ``noise`` is a rough noise level relative to the range of the data, if known. Noisy data get a sparse
    prior of the usage and atoms of higher rank, clean data the paper's flat prior and atoms of low rank:
    chosen on pictures from scikit-image (docs/results.md).
    """
    noisy = noise is not None and noise > _NOISY
    _one_of("model", model, MODELS)
    _one_of("codes", codes, CODES)
    if channels is not None:
        _one_of("channels", channels, CHANNELS)
    patch = default_patch_shape(array_shape, channels) if patch_shape is None else patch_shape
    grid = Grid.over(array_shape, patch, 1 if stride is None else stride)
    if stride is None:
        grid = grid._replace(stride=_default_stride(grid))
    n_entries = math.prod(grid.patch_shape)
    if n_atoms is None:
        n_atoms = min(256 if n_entries <= 160 else 512, max(grid.n_items, 2))
    n_sweeps = whole_number("sweeps", _DEFAULT_SWEEPS if sweeps is None else sweeps, 1)
    n_burn_in = whole_number("burn_in", n_sweeps // 2 if burn_in is None else burn_in, 0)
    if n_burn_in >= n_sweeps:
        raise InputError(f"burn_in must be smaller than sweeps: {n_burn_in} was given with {n_sweeps} sweeps")
    return Settings(
        model=model,
        array_shape=grid.array_shape,
        patch_shape=grid.patch_shape,
        stride=grid.stride,
        n_atoms=whole_number("n_atoms", n_atoms, 1, _MOST_ATOMS),
        rank=_check_rank(rank, grid.patch_shape, noisy) if model == "kfa" else 0,
        sweeps=n_sweeps,
        burn_in=n_burn_in,
        start=check_start(start),
        alpha=_check_alpha(alpha),
        codes=codes,
        usage_prior=_check_usage_prior(usage_prior, n_atoms, grid.n_items, noisy),
        regions=whole_number(
            "regions", _default_regions(grid.n_items) if regions is None else regions, 1, _MOST_REGIONS
        ),
        seed=check_seed(seed),
    )


def default_patch_shape(array_shape: Sequence[int], channels: str | None = None) -> tuple[int, ...]:
    """A patch for an array of this shape: a cube of about 60 to 260 entries, short axes and channels whole.

    The last of three or more axes counts as channels when ``channels`` is "keep", or by itself when it has at
    most four entries, another axis has more, and ``channels`` is not "cut". Many channels make the cube
    smaller (at most 1,024 entries if possible), a small array makes it at most half as long as each axis.
    """
    kept = len(array_shape) >= 3 and (
        channels == "keep" or (channels is None and array_shape[-1] <= 4 < max(array_shape[:-1]))
    )
    cut_axes = array_shape[:-1] if kept else array_shape
    whole = array_shape[-1:] if kept else ()
    side = _PATCH_SIDES.get(max(sum(size > 1 for size in cut_axes), 1), 2)

    def patch() -> tuple[int, ...]:
        return (*(min(side, size) for size in cut_axes), *whole)

    while math.prod(patch()) > _MOST_ENTRIES and side > 2:
        side -= 1
    if Grid(tuple(array_shape), patch(), (1,) * len(array_shape)).n_items >= _FEW_ITEMS:
        return patch()
    return (*(min(side, (size + 1) // 2) for size in cut_axes), *whole)


def _default_stride(grid: Grid) -> tuple[int, ...]:
    """The smallest common stride that keeps the number of items manageable; never more than half a patch."""
    for step in range(1, max(grid.patch_shape) + 1):
        stride = tuple(max(1, min(step, size // 2)) for size in grid.patch_shape)
        if grid._replace(stride=stride).n_items <= _MOST_ITEMS:
            break
    return stride


def _default_regions(n_items: int) -> int:
    """Regions that have a usage of their own: 64, fewer when they would hold less than 256 items."""
    return max(1, min(64, n_items // 256))


def _check_rank(rank: int | str, patch_shape: tuple[int, ...], noisy: bool) -> int:
    most = maximal_rank(patch_shape)
    if rank == "auto":
        return min(_RANK_NOISY if noisy else _RANK_CLEAN, most)
    if isinstance(rank, str):
        raise InputError(f"rank must be 'auto' or a whole number of at least 1, not {rank!r}")
    number = whole_number("rank", rank, 1)
    if number > most:
        shape = "x".join(map(str, patch_shape))
        raise InputError(f"rank {number} is not possible: no tensor of shape {shape} has a rank above {most}")
    return number


def _check_alpha(alpha: str | float) -> str | float:
    if isinstance(alpha, str) and alpha in ("sample", "map"):
        return alpha
    try:
        value = float(alpha)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value <= 1e8:
        raise InputError(f"alpha must be 'sample', 'map' or a number above 0 and at most 1e8, not {alpha!r}")
    return value


def _check_usage_prior(
    prior: tuple[float, float] | None, n_atoms: int, n_items: int, noisy: bool
) -> tuple[float, float]:
    if prior is None:
        return float(n_atoms), max(1.0, n_items / 8.0) if noisy else 1.0
    try:
        a, b = (float(value) for value in prior)
    except (TypeError, ValueError):
        a = b = math.nan
    if not (0.0 < a < math.inf and 0.0 < b < math.inf):
        raise InputError(f"usage_prior must be two positive numbers (a, b), not {prior!r}")
    return a, b


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
