"""What a run is told: options checked against the array, and sensible values for those not given."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kruskal import defaults
from kruskal.errors import InputError, whole_number
from kruskal.gibbs.stack import stack_shape
from kruskal.gibbs.start import check_start
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, KFA, MGPCPModel, Model
from kruskal.online import EPOCHS, refuse_without_online, resolve_batching
from kruskal.patches import Grid
from kruskal.random import check_seed
from kruskal.tensor import maximal_rank

MODELS = ("kfa", "bpfa", "mgp-cp")
CODES = ("collapsed", "uncollapsed")
CHANNELS = ("keep", "cut")
NAMES = ("default", "paper")
_MOST_ATOMS = 65_535  # codes store the atom in 16 bits
_MOST_REGIONS = 4_096


@dataclass(frozen=True)
class Settings:
    """All options of a run, resolved; plain values only, so that they can be written down as JSON.

    ``known_atoms`` is "fixed" or "adapted" for a run that starts from a dictionary, else None.
    Of a run that learns online ``sweeps`` and ``burn_in`` are epochs: visits to all ``batches``.
    """

    setting: str
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
    sparsity: float | None
    regions: int
    until_converged: bool
    time_budget: float | None
    seed: int
    known_atoms: str | None = None
    annealing: int = 0
    online: str | None = None
    batch_size: int = 0
    batches: int = 1
    passes: int = 1

    @property
    def grid(self) -> Grid:
        """The grid of patches."""
        return Grid(self.array_shape, self.patch_shape, self.stride)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the modes of the tensor that MGP-CP decomposes."""
        return stack_shape(self.grid.n_items, self.patch_shape)

    def build_model(self) -> Model:
        """The model that these settings describe."""
        shrinkage: dict[str, Any] = {"alpha_mode": self.alpha}
        if not isinstance(self.alpha, str):
            shrinkage = {"alpha_mode": "fixed", "alpha_start": self.alpha}
        if self.model == "mgp-cp":
            whole = self.grid.n_items == 1
            return MGPCPModel(
                item_shape=self.patch_shape[1:] if whole else self.patch_shape, sizes=self.sizes,
                rank=self.rank, annealing=self.annealing, **shrinkage,
            )  # fmt: skip
        common: dict[str, Any] = {
            "shape": self.patch_shape,
            "n_atoms": self.n_atoms,
            "usage_prior": UsagePrior(*self.usage_prior),
            "collapsed": self.codes == "collapsed",
            "fixed_atoms": self.known_atoms == "fixed",
        }
        if self.model == "bpfa":
            return BPFA(**common)
        return KFA(**common, rank=self.rank, **shrinkage)

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
    setting: str = "default",
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
    sparsity: float | None = None,
    regions: int | None = None,
    until_converged: bool = False,
    time_budget: float | None = None,
    online: str | bool | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    passes: int | None = None,
    seed: int = 0,
    known_atoms: str | None = None,
    look: defaults.Look = defaults.FIRST_LOOK,
) -> Settings:
    """Check every option and fill in those not given; see `kruskal.inpaint` for their meaning.

    ``look`` is what a first look at the data says; the rules are in `kruskal.defaults`. The setting "paper"
    puts the paper's values in the place of the rules.
    """
    _one_of("setting", setting, NAMES)
    _one_of("model", model, MODELS)
    _one_of("codes", codes, CODES)
    if channels is not None:
        _one_of("channels", channels, CHANNELS)
    paper = setting == "paper"
    seen = look
    if model == "mgp-cp":
        refuse_for_mgp_cp(
            n_atoms=n_atoms, channels=channels, usage_prior=usage_prior, sparsity=sparsity, regions=regions,
            codes=None if codes == "collapsed" else codes, stride=stride if patch_shape is None else None,
        )  # fmt: skip
        patch_shape = array_shape if patch_shape is None else patch_shape
        n_atoms, usage_prior, regions = 1, (1.0, 1.0), 1
    if paper:
        look = defaults.FIRST_LOOK  # the paper takes the same patch for all its pictures
    patch = defaults.default_patch_shape(array_shape, channels, look) if patch_shape is None else patch_shape
    grid = Grid.over(array_shape, patch, 1 if stride is None else stride)
    if stride is None:
        grid = grid._replace(stride=defaults.default_stride(grid, channels, look))
    if n_atoms is None:
        n_atoms = defaults.paper_atoms(grid.patch_shape) if paper else defaults.default_atoms(grid, look)
    batching = resolve_batching(online, model, grid.n_items, batch_size, passes)
    if batching.online is None:
        refuse_without_online(epochs=epochs)
    elif sweeps is not None:
        raise InputError("sweeps is not for learning online: give epochs instead")
    if sweeps is None and batching.online is None:
        usual = defaults.default_sweeps(array_shape, channels, look)
        if model == "mgp-cp":
            usual = defaults.TERM_SWEEPS
        sweeps = defaults.PAPER_SWEEPS if paper else usual
        burn_in = defaults.PAPER_BURN_IN if paper and burn_in is None else burn_in
    name, length = ("sweeps", sweeps) if batching.online is None else ("epochs", epochs)
    n_sweeps = whole_number(name, EPOCHS if length is None else length, 1)
    n_burn_in = whole_number("burn_in", n_sweeps // 2 if burn_in is None else burn_in, 0)
    if n_burn_in >= n_sweeps:
        raise InputError(f"burn_in must be smaller than {name}: {n_burn_in} was given with {n_sweeps} {name}")
    if regions is None:
        regions = 1 if paper else defaults.default_regions(grid.n_items, look)
    if usage_prior is not None and sparsity is not None:
        raise InputError("usage_prior and sparsity say the same thing: give one of them")
    if usage_prior is None:
        if sparsity is None:
            sparsity = 0.0 if paper else defaults.default_sparsity(look)
        sparsity = _check_sparsity(sparsity)
        usage_prior = n_atoms, max(1.0, sparsity * grid.n_items)
    sizes = grid.patch_shape
    if model == "mgp-cp":
        sizes = _check_order(stack_shape(grid.n_items, grid.patch_shape), grid.array_shape)
    if rank == "auto":
        if model == "mgp-cp":
            rank = defaults.default_terms(sizes, grid.n_items, seen)
        else:
            rank = defaults.paper_rank(sizes) if paper else defaults.default_rank(sizes, look)
    return Settings(
        setting=setting,
        model=model,
        array_shape=grid.array_shape,
        patch_shape=grid.patch_shape,
        stride=grid.stride,
        n_atoms=whole_number("n_atoms", n_atoms, 1, _MOST_ATOMS),
        rank=_check_rank(rank, sizes) if model != "bpfa" else 0,
        sweeps=n_sweeps,
        burn_in=n_burn_in,
        start=check_start(start),
        alpha=_check_alpha(alpha),
        codes=codes,
        usage_prior=_check_usage_prior(usage_prior),
        sparsity=sparsity,
        regions=whole_number("regions", regions, 1, _MOST_REGIONS),
        until_converged=bool(until_converged),
        time_budget=None if time_budget is None else _check_time_budget(time_budget),
        seed=check_seed(seed),
        known_atoms=known_atoms,
        annealing=defaults.default_annealing(seen, n_burn_in) if model == "mgp-cp" else 0,
        **batching._asdict(),
    )


def refuse_for_mgp_cp(**given: Any) -> None:
    """Refuse options that say something about a dictionary, which MGP-CP does not have."""
    for name, value in given.items():
        if value is not None:
            why = "it decomposes the whole array unless patch_shape is given" if name == "stride" else (
                "it decomposes one tensor and has neither atoms nor sparse codes"
            )  # fmt: skip
            raise InputError(f"{name} is no option of the model mgp-cp: {why}, so leave {name} out")


def _check_order(sizes: tuple[int, ...], array_shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(sizes) < 2:
        shape = "x".join(map(str, array_shape))
        raise InputError(
            f"x must have at least two axes longer than 1 for the model mgp-cp, not the shape {shape}"
        )
    return sizes


def _check_rank(rank: int | str, patch_shape: tuple[int, ...]) -> int:
    most = maximal_rank(patch_shape)
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


def _check_time_budget(seconds: float) -> float:
    try:
        value = float(seconds)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value < math.inf:
        raise InputError(f"time_budget must be a number of seconds above 0, not {seconds!r}")
    return value


def _check_sparsity(sparsity: float) -> float:
    try:
        value = float(sparsity)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 <= value <= 1e12:
        raise InputError(f"sparsity must be a number from 0 to 1e12, not {sparsity!r}")
    return value


def _check_usage_prior(prior: tuple[float, float]) -> tuple[float, float]:
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
