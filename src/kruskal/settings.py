"""What a run is told: options checked against the array, and sensible values for those not given."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kruskal import defaults
from kruskal.errors import InputError, check_seed, flag, one_of, positive_pair, whole_number
from kruskal.gibbs.local import MOST_ATOMS
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.gibbs.stack import stack_shape
from kruskal.gibbs.start import check_start
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, DELAY, KFA, MGPCPModel, Model
from kruskal.models.kruskal_prior import PROPER_ALPHA
from kruskal.online import EPOCHS, refuse_without_online, resolve_batching
from kruskal.option_checks import (
    check_alpha,
    check_annealing,
    check_length,
    check_order,
    check_rank,
    check_time_budget,
    refuse_for_mgp_cp,
    settle_usage,
)
from kruskal.patches import Grid

MODELS = ("kfa", "bpfa", "mgp-cp")
CODES = ("collapsed", "uncollapsed")
CHANNELS = ("keep", "cut", "apart")
GROUPINGS = ("place", "likeness")
NAMES = ("default", "paper")
_MOST_REGIONS = 4_096
_MANY_TERMS = 512  # K R


@dataclass(frozen=True)
class Settings:
    """All options of a run, resolved; plain values only, so that they can be written down as JSON.

    ``known_atoms`` is "fixed" or "adapted" for a run that starts from a dictionary, else None.
    Of a run that learns online ``sweeps`` and ``burn_in`` are epochs: visits to all ``batches``.
    ``most_noise``, or else ``least_noise``, bounds the noise, in the units of the data; None and 0 are no
    bounds. ``copies`` is the number of channels of an input in which all are the same; one of them, of shape
    ``array_shape``, is restored.
    ``grouping`` says what the ``regions`` are: patches that lie near each other, or that look alike.
    Of ``counts`` the roots are restored, and all that is in units of the data here is in theirs.
    ``alpha_prior`` is None for that of the model.
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
    most_noise: float | None = None
    least_noise: float = 0.0
    copies: int = 0
    grouping: str = "place"
    counts: bool = False
    alpha_prior: tuple[float, float] | None = None

    @property
    def grid(self) -> Grid:
        """The grid of patches."""
        return Grid(self.array_shape, self.patch_shape, self.stride)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the modes of the tensor that MGP-CP decomposes."""
        return stack_shape(self.grid.n_items, self.patch_shape)

    @property
    def delay(self) -> int:
        """Sweeps in which the chain finds its way by simpler rules; none that is kept is among them."""
        return min(DELAY, self.burn_in * self.batches)

    @property
    def warming(self) -> int:
        """Sweeps, or epochs, that are not kept however early the burn-in may end."""
        return max(self.annealing, -(-self.delay // self.batches))

    def regroups(self, complete: bool) -> bool:
        """Whether patches are grouped once more on the way: complete ones are seen well enough before, and
        with hardly a burn-in nothing is seen better by then."""
        lasting = self.burn_in >= DELAY
        return self.grouping == "likeness" and not complete and self.online is None and lasting

    def build_model(self, scale: float = 1.0) -> Model:
        """The model that these settings describe, for data that were divided by ``scale``."""
        shrinkage: dict[str, Any] = {"alpha_mode": self.alpha}
        if not isinstance(self.alpha, str):
            shrinkage = {"alpha_mode": "fixed", "alpha_start": self.alpha}
        elif self.alpha_prior is not None:
            shrinkage["alpha_prior"] = AlphaPrior(*self.alpha_prior)
        if self.model == "mgp-cp":
            whole = self.grid.n_items == 1
            return MGPCPModel(
                item_shape=self.patch_shape[1:] if whole else self.patch_shape, sizes=self.sizes,
                rank=self.rank, delay=self.delay, annealing=self.annealing, **shrinkage,
            )  # fmt: skip
        common: dict[str, Any] = {
            "shape": self.patch_shape,
            "n_atoms": self.n_atoms,
            "usage_prior": UsagePrior(*self.usage_prior),
            "collapsed": self.codes == "collapsed",
            "weighted": self.setting != "paper",
            "fixed_atoms": self.known_atoms == "fixed",
            "delay": self.delay,
            "annealing": self.annealing,
            "most_noise": math.inf if self.most_noise is None else self.most_noise / scale,
            "least_noise": self.least_noise / scale,
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
    annealing: int | None = None,
    start: str = "pca",
    alpha: str | float = "sample",
    codes: str = "collapsed",
    channels: str | None = None,
    usage_prior: tuple[float, float] | None = None,
    sparsity: float | None = None,
    regions: int | None = None,
    grouping: str | None = None,
    until_converged: bool = False,
    time_budget: float | None = None,
    online: str | bool | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    passes: int | None = None,
    seed: int = 0,
    known_atoms: str | None = None,
    brief: bool = False,
    least_noise: float = 0.0,
    look: defaults.Look = defaults.FIRST_LOOK,
) -> Settings:
    """Check every option and fill in those not given; see `kruskal.inpaint` for their meaning.

    ``look`` is what a first look at the data says, ``brief`` that items are visited few times; the rules are
    in `kruskal.defaults`. The setting "paper" puts the paper's values in the place of the rules.
    """
    one_of("setting", setting, NAMES)
    one_of("model", model, MODELS)
    one_of("codes", codes, CODES)
    if channels is not None:
        one_of("channels", channels, CHANNELS)
    paper = setting == "paper"
    seen = look
    if model == "mgp-cp":
        refuse_for_mgp_cp(
            n_atoms=n_atoms, channels=channels, usage_prior=usage_prior, sparsity=sparsity, regions=regions,
            grouping=grouping, codes=None if codes == "collapsed" else codes,
            stride=stride if patch_shape is None else None,
        )  # fmt: skip
        patch_shape = array_shape if patch_shape is None else patch_shape
        n_atoms, usage_prior, regions, grouping = 1, (1.0, 1.0), 1, "place"
    rank_given = not (isinstance(rank, str) and rank == "auto")
    alpha_given = not (isinstance(alpha, str) and alpha == "sample")
    if model == "bpfa" and (rank_given or alpha_given):
        name = "rank" if rank_given else "alpha"
        raise InputError(f"{name} is not for bpfa, whose atoms have no Kruskal terms: leave {name} out")
    if paper:
        look = defaults.FIRST_LOOK  # the paper takes the same patch for all its pictures
    grid = _grid(array_shape, patch_shape, stride, channels, look)
    batching = resolve_batching(online, model, grid.n_items, batch_size, passes)
    brief = brief or batching.online is not None
    noisy_volume = not brief and defaults.is_noisy_volume(array_shape, channels, look)
    if n_atoms is None:
        usual_atoms = defaults.default_atoms(grid, look, noisy_volume)
        n_atoms = defaults.paper_atoms(grid.patch_shape) if paper else usual_atoms
    if batching.online is not None:
        if sweeps is not None:
            raise InputError("sweeps is not for learning online: give epochs instead")
        n_sweeps, n_burn_in = check_length("epochs", EPOCHS if epochs is None else epochs, burn_in)
    else:
        refuse_without_online(epochs=epochs)
        if sweeps is None:
            sweeps, burn_in = _usual_length(model, paper, array_shape, channels, look, burn_in)
        n_sweeps, n_burn_in = check_length("sweeps", sweeps, burn_in)
    if model == "mgp-cp":
        usual_annealing = defaults.term_annealing(seen, n_burn_in)
    elif paper or known_atoms or batching.online or time_budget is not None:
        usual_annealing = 0
    else:
        usual_annealing = defaults.default_annealing(array_shape, channels, look, n_burn_in)
    n_annealing = check_annealing(annealing, usual_annealing, n_burn_in, batching.online is not None)
    if regions is None:
        regions = 1 if paper else defaults.default_regions(grid.n_items, look, noisy_volume)
    if grouping is None:
        grouping = "place" if paper else defaults.default_grouping(look)
    usual = 0.0 if paper else defaults.default_sparsity(array_shape, channels, look, brief)
    usage_prior, sparsity = settle_usage(usage_prior, sparsity, usual, n_atoms, grid.n_items)
    sizes = grid.patch_shape
    if model == "mgp-cp":
        sizes = check_order(stack_shape(grid.n_items, grid.patch_shape), grid.array_shape)
    if not rank_given:
        if model == "mgp-cp":
            rank = defaults.default_terms(sizes, grid.n_items, seen)
        else:
            rank = defaults.paper_rank(sizes) if paper else defaults.default_rank(sizes, look)
    rank = check_rank(rank, sizes) if model != "bpfa" else 0
    n_atoms = whole_number("n_atoms", n_atoms, 1, MOST_ATOMS)
    few = model == "kfa" and not paper and n_atoms * rank < _MANY_TERMS
    return Settings(
        setting=setting,
        model=model,
        array_shape=grid.array_shape,
        patch_shape=grid.patch_shape,
        stride=grid.stride,
        n_atoms=n_atoms,
        rank=rank,
        sweeps=n_sweeps,
        burn_in=n_burn_in,
        start=check_start(start),
        alpha=check_alpha(alpha),
        codes=codes,
        usage_prior=positive_pair("usage_prior", usage_prior),
        sparsity=sparsity,
        regions=whole_number("regions", regions, 1, _MOST_REGIONS),
        until_converged=flag("until_converged", until_converged),
        time_budget=None if time_budget is None else check_time_budget(time_budget),
        seed=check_seed(seed),
        known_atoms=known_atoms,
        annealing=n_annealing,
        grouping=one_of("grouping", grouping, GROUPINGS),
        most_noise=look.most_noise
        if model != "mgp-cp" and known_atoms != "fixed" and not least_noise
        else None,
        least_noise=least_noise,
        alpha_prior=PROPER_ALPHA if few else None,  # the paper's would have the say there, and has no end
        **batching._asdict(),
    )


def _grid(
    array_shape: Sequence[int], patch_shape: Sequence[int] | None, stride: int | Sequence[int] | None,
    channels: str | None, look: defaults.Look,
) -> Grid:  # fmt: skip
    """Where the patches lie."""
    patch = defaults.default_patch_shape(array_shape, channels, look) if patch_shape is None else patch_shape
    grid = Grid.over(array_shape, patch, 1 if stride is None else stride)
    return grid._replace(stride=defaults.default_stride(grid, channels, look)) if stride is None else grid


def _usual_length(
    model: str, paper: bool, array_shape: Sequence[int], channels: str | None, look: defaults.Look,
    burn_in: int | None,
) -> tuple[int, int | None]:  # fmt: skip
    """Sweeps and burn-in when nothing is said of the sweeps."""
    if paper:
        return defaults.PAPER_SWEEPS, defaults.PAPER_BURN_IN if burn_in is None else burn_in
    if model == "mgp-cp":
        return defaults.TERM_SWEEPS, burn_in
    return defaults.default_sweeps(array_shape, channels, look), burn_in
