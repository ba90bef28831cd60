"""Learning a dictionary from arrays, for use on other data."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kruskal.data import Scaling, far_entries, observed_entries, real_array, refuse_constant
from kruskal.defaults import Look, channels_word, default_patch_shape
from kruskal.engines.chain import Chain, Progressed
from kruskal.engines.dictionary import Dictionary, one_region
from kruskal.engines.progress import COMPILING, Progress, check_progress
from kruskal.engines.threads import ThreadEngine, check_threads
from kruskal.errors import InputError, one_of
from kruskal.kernel import watch_compilation
from kruskal.patches import Grid, Items, cut_together, lay_together, together_shape
from kruskal.settings import CHANNELS, MODELS, Settings, resolve
from kruskal.tensor import RANK_TOLERANCE


def learn(
    arrays: Any,
    observed: Any = None,
    *,
    setting: str = "default",
    model: str = "kfa",
    patch_shape: Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    channels: str | None = None,
    n_atoms: int | None = None,
    rank: int | str = "auto",
    sweeps: int | None = None,
    burn_in: int | None = None,
    annealing: int | None = None,
    start: str = "pca",
    alpha: str | float = "sample",
    codes: str = "collapsed",
    usage_prior: tuple[float, float] | None = None,
    sparsity: float | None = None,
    regions: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Dictionary:
    """Learn one dictionary from the patches of several arrays.

    Parameters
    ----------
    arrays : sequence of arrays with the same number of axes, or one array; NaN and masked entries are missing
    observed : a bool array (or None) for each of them, True where an entry is observed; without the last axis
        it holds for all along it
    patch_shape, stride, channels : as for `kruskal.inpaint`, the same for all arrays
    setting, model, n_atoms, rank, sweeps, burn_in, annealing, start, alpha, codes, usage_prior, sparsity,
    seed, threads, progress : as for `kruskal.inpaint`
    regions : runs of consecutive patches, each with a usage of its own

    Returns
    -------
    kruskal.Dictionary

    Examples
    --------
    >>> import kruskal, numpy as np
    >>> x = np.add.outer(np.sin(np.arange(30.0)), np.cos(np.arange(20.0)))
    >>> learned = kruskal.learn([x, x.T], patch_shape=(6, 6), n_atoms=8, sweeps=10, seed=0)
    >>> learned.dictionary.shape, learned.n_items
    ((8, 6, 6), 750)
    """
    values, masks = _checked(arrays, observed)
    shapes = [array.shape for array in values]
    _refuse_other_channels(shapes, channels)
    together = lay_together(values)
    seen = lay_together(masks)
    refuse_constant(together, seen, *(("arrays", "are") if len(values) > 1 else ("arrays[0]", "is")))
    scaling = Scaling.fit(together, seen)
    look = Look.at_all(values, masks, scaling.scale)
    smallest = [min(sizes) for sizes in zip(*shapes)]
    if channels is not None:
        one_of("channels", channels, CHANNELS)
    channels = channels_word(smallest, channels)
    progress = check_progress(progress)
    far = far_entries(together, seen, "arrays" if len(values) > 1 else "arrays[0]")
    if far is not None:
        progress.note(far)
    if patch_shape is None:
        patch_shape = default_patch_shape(smallest, channels, look)
        for forced in _forced(patch_shape, shapes, channels, look):
            progress.note(forced)
    layout = resolve(
        together.shape, setting=setting, patch_shape=patch_shape, stride=stride, channels=channels, look=look
    )
    grids = [Grid.over(shape, layout.patch_shape, layout.stride) for shape in shapes]
    n_items = sum(grid.n_items for grid in grids)
    settings = resolve_stack(
        n_items, layout.patch_shape, look, channels=channels, setting=setting, model=model, n_atoms=n_atoms,
        rank=rank, sweeps=sweeps, burn_in=burn_in, annealing=annealing, start=start, alpha=alpha, codes=codes,
        usage_prior=usage_prior, sparsity=sparsity, regions=regions, seed=seed,
    )  # fmt: skip
    complete = all(mask.all() for mask in masks)
    scaled = scaling.forward(np.where(seen, together, 0))
    region = settings.grid.regions(settings.regions)
    items = cut_together(scaled, None if complete else seen, grids, region)
    described = describe(settings) | {"array_shapes": shapes, "stride": layout.stride}
    return learn_items(items, settings, scaling, described, threads=check_threads(threads), progress=progress)


def resolve_stack(n_items: int, shape: Sequence[int], look: Look, **options: Any) -> Settings:
    """Settings for a stack of items: an array of shape (N m_1, m_2, .., m_T), cut between the items.

    Their noise is not bounded: what a dictionary for other data leaves aside counts as noise.
    """
    if one_of("model", options.get("model", "kfa"), MODELS) == "mgp-cp":
        raise InputError("model mgp-cp has no dictionary to learn, expected kfa or bpfa")
    shape = tuple(shape)
    look = look._replace(most_noise=None)
    size = (n_items * shape[0], *shape[1:])
    return resolve(size, patch_shape=shape, stride=shape, look=look, grouping="place", **options)


def describe(settings: Settings) -> dict[str, Any]:
    """What settings of a stack say of themselves in a file."""
    none_of_it = ("array_shape", "stride", "until_converged", "time_budget", "known_atoms")
    return {name: value for name, value in settings.to_json().items() if name not in none_of_it}


def learn_items(
    items: Items,
    settings: Settings,
    scaling: Scaling,
    described: dict[str, Any],
    *,
    threads: int,
    progress: Progress,
    tolerance: float = RANK_TOLERANCE,
) -> Dictionary:
    """Run the chain that ``settings`` describe on items, and read off the dictionary.

    ``described`` is what the dictionary says of its settings; ``tolerance`` is for the ranks.
    """
    with ExitStack() as stack:
        stack.enter_context(watch_compilation(partial(progress.note, COMPILING)))
        engine = stack.enter_context(ThreadEngine(items, threads))
        model = settings.build_model()
        chain = Chain.begin(model, engine, items, settings.start, settings.seed)
        average = _Average.zero(settings.n_atoms, math.prod(items.shape))
        progress.start(settings.sweeps)
        stack.callback(progress.stop)
        while chain.done < settings.sweeps:
            chain.advance(keep=False)
            if chain.done > settings.burn_in:
                average = average.with_draw(chain.now)
            shown = {name: float(values[-1]) for name, values in chain.trace().items()}
            shown["noise_std"] *= scaling.scale
            progress.update(chain.done, shown)
        trace, state = chain.trace(), chain.now.state
        if settings.model == "bpfa":
            del trace["alpha"]
        trace["noise_std"] = scaling.inverse_std(trace["noise_std"])
        return Dictionary(
            shape=items.shape,
            state=one_region(state, engine.region_sizes),
            scaling=scaling,
            mean_dictionary=average.atoms().reshape(-1, *items.shape),
            ranks=model.ranks(state, tolerance),
            usage=average.users / (average.draws * items.n_items),
            trace=trace,
            kept=average.draws,
            n_items=items.n_items,
            settings=described,
        )


@dataclass(frozen=True)
class _Average:
    """Sums over the kept draws: how many items use an atom, and the atom times that number.

    A draw of an atom counts as much as there are items that it rests on; one that no item uses is a draw from
    the prior and does not count. Along a chain atoms keep their places; should one come back with the other
    sign, it is turned to agree with the sum so far.
    """

    draws: int
    users: np.ndarray  # (K,)
    total: np.ndarray  # (K, P)

    @classmethod
    def zero(cls, n_atoms: int, n_entries: int) -> "_Average":
        return cls(0, np.zeros(n_atoms), np.zeros((n_atoms, n_entries)))

    def with_draw(self, now: Progressed) -> "_Average":
        users = sum(np.bincount(codes.atom, minlength=len(self.users)) for codes in now.codes)
        atoms = now.state.dictionary
        sign = np.where((atoms * self.total).sum(axis=1) < 0.0, -1.0, 1.0)
        return _Average(self.draws + 1, self.users + users, self.total + (sign * users)[:, None] * atoms)

    def atoms(self) -> np.ndarray:
        return self.total / np.maximum(self.users, 1.0)[:, None]


def _checked(arrays: Any, observed: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The arrays and their masks, all checked."""
    if isinstance(arrays, np.ndarray):
        arrays, observed = [arrays], [observed] if isinstance(observed, np.ndarray) else observed
    arrays = _listed("arrays", arrays)
    if not arrays:
        raise InputError("arrays must hold at least one array")
    given = [None] * len(arrays) if observed is None else _listed("observed", observed)
    if len(given) != len(arrays):
        raise InputError(f"observed must hold one mask per array: {len(given)} for {len(arrays)} arrays")
    values, masks = [], []
    for number, (array, mask) in enumerate(zip(arrays, given)):
        name = f"arrays[{number}]"
        values.append(real_array(array, name))
        masks.append(observed_entries(array, mask, name=name, mask_name=f"observed[{number}]"))
    together_shape([array.shape for array in values])
    return values, masks


def _forced(
    patch_shape: tuple[int, ...], shapes: list[tuple[int, ...]], channels: str, look: Look
) -> Iterator[str]:
    """What to say of arrays so small that all the others have smaller patches than they would alone."""
    distinct = list(dict.fromkeys(shapes))
    if len(distinct) == 1:
        return
    shortest = [
        [shape for shape in distinct if shape[axis] == min(sizes)]
        for axis, sizes in enumerate(zip(*distinct))
    ]
    for shape in dict.fromkeys(found[0] for found in shortest if len(found) == 1):
        others = [other for other in distinct if other != shape]
        alone = default_patch_shape([min(sizes) for sizes in zip(*others)], channels, look)
        if math.prod(alone) > math.prod(patch_shape):
            yield (
                f"patches have the shape {patch_shape} because an array of shape {shape} is so small, the "
                f"others alone would have {alone}: leave it out, or give the patch (patch_shape=, --patch)"
            )


def _listed(name: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        kind = type(values).__name__
        raise InputError(
            f"{name} must be an array or a list of arrays, not an object of type {kind}"
        ) from None


def _refuse_other_channels(shapes: list[tuple[int, ...]], channels: str | None) -> None:
    last = [shape[-1] for shape in shapes]
    if len(shapes[0]) >= 3 and channels != "cut" and len(set(last)) > 1 and min(last) <= 4:
        raise InputError(
            f"arrays with different numbers of channels ({min(last)} and {max(last)}) have no common patch; "
            "convert them, or cut the last axis like the others with channels='cut'"
        )
