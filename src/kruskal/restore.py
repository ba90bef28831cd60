"""Restoring an array: what most people call."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import Scaling, atomic_path, observed_entries, rough_noise
from kruskal.engines import checkpoint as checkpoints
from kruskal.engines.chain import Chain
from kruskal.engines.progress import Progress, Silent
from kruskal.engines.threads import ThreadEngine, check_threads
from kruskal.errors import InputError
from kruskal.kernel import watch_compilation
from kruskal.patches import cut
from kruskal.settings import Settings, resolve

RANK_TOLERANCE = 0.01
_COMPILING = "compiling the kernels: the first run of an installation does this once, for about half a minute"


@dataclass(frozen=True)
class Restoration:
    """A restored array and what was learned on the way.

    Attributes
    ----------
    mean, std : arrays of the input's shape, in its units. ``std`` is the uncertainty of an entry: its spread
        over the kept draws and, in part, over the overlapping items; it does not include the noise.
    noise_std : inferred standard deviation of the noise, in the input's units
    dictionary : (K, m_1, .., m_T) atoms of the last draw, in scaled units
    ranks : (K,) rank of each atom at a relative tolerance of 1 % (-1: not defined, BPFA of order not 2)
    usage : (K,) mean share of the items that use each atom over the kept draws; 0 marks an unused atom
    trace : one value per sweep: noise_std (input's units), code_std, active_per_item, atoms_used, alpha
    settings : all options of the run, resolved
    n_items : number of patches;  threads, seconds : how it was run
    """

    mean: np.ndarray
    std: np.ndarray
    noise_std: float
    dictionary: np.ndarray
    ranks: np.ndarray
    usage: np.ndarray
    trace: dict[str, np.ndarray]
    settings: dict[str, Any]
    n_items: int
    threads: int = field(compare=False)
    seconds: float = field(compare=False)

    def save(self, path: str | Path) -> None:
        """Write everything but the timing to an npz file; the same run gives the same bytes."""
        path = Path(path)
        if path.suffix.lower() != ".npz":
            raise InputError(f"path must end in .npz, not {path.name!r}")
        arrays = {f"trace_{name}": values for name, values in self.trace.items()}
        for name in ("mean", "std", "noise_std", "dictionary", "ranks", "usage", "n_items"):
            arrays[name] = np.asarray(getattr(self, name))
        arrays["settings"] = np.asarray(json.dumps(self.settings))
        with atomic_path(path) as temporary:
            np.savez(temporary, **arrays)  # type: ignore[arg-type]


def inpaint(
    x: Any,
    observed: Any = None,
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
    seed: int = 0,
    threads: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 120.0,
    progress: Progress | None = None,
) -> Restoration:
    """Fill in the missing entries of an array and remove its noise.

    Parameters
    ----------
    x : array of any order; NaN and masked entries are missing
    observed : bool array of the same shape, True where ``x`` is observed (None: wherever it is not NaN)
    model : "kfa" or "bpfa"
    patch_shape : shape of the items (default: from the order and size of the array)
    stride : distance of neighbouring patches, one number or one per axis (default: 1, more for large arrays)
    n_atoms : size of the dictionary
    rank : most Kruskal terms of an atom, or "auto"
    sweeps, burn_in : length of the chain, and how many sweeps at its beginning are not kept
    start : "pca" or "random"
    alpha : "sample", "map" or a number: how the shrinkage of the ranks is learned
    codes : "collapsed" or "uncollapsed" draws of the codes
    channels : "keep" takes the last axis whole into every patch, "cut" cuts it like the others
    usage_prior : (a_pi, b_pi) of the beta process; larger b_pi is sparser (default K, N / 8; paper K, 1)
    seed : everything random follows from it; the result does not depend on ``threads``
    checkpoint : folder for the state of the run, written every ``checkpoint_seconds``; see `resume`
    progress : told how far the run is

    Returns
    -------
    Restoration

    Examples
    --------
    >>> import kruskal, numpy as np
    >>> x = np.add.outer(np.sin(np.arange(30.0)), np.cos(np.arange(30.0)))
    >>> x[np.random.default_rng(0).random(x.shape) < 0.5] = np.nan
    >>> result = kruskal.inpaint(x, patch_shape=(6, 6), n_atoms=16, sweeps=20, seed=0)
    >>> bool(np.isfinite(result.mean).all())
    True
    """
    values = _numeric(x)
    mask = observed_entries(x if isinstance(x, np.ma.MaskedArray) else values, observed)
    _refuse_constant(values[mask])
    scaling = Scaling.fit(values, mask)
    noise = rough_noise(values, mask)
    settings = resolve(
        values.shape, model=model, patch_shape=patch_shape, stride=stride, n_atoms=n_atoms, rank=rank,
        sweeps=sweeps, burn_in=burn_in, start=start, alpha=alpha, codes=codes, channels=channels,
        usage_prior=usage_prior, seed=seed, noise=None if noise is None else noise / scaling.scale,
    )  # fmt: skip
    threads = check_threads(threads)
    if not checkpoint_seconds >= 0:
        raise InputError(f"checkpoint_seconds must not be negative: {checkpoint_seconds!r} was given")
    directory = None if checkpoint is None else Path(checkpoint)
    if directory is not None:
        header = settings.to_json() | {"checkpoint_seconds": float(checkpoint_seconds)}
        checkpoints.begin(directory, values, mask, header)
    return _run(values, mask, settings, threads, progress, directory, checkpoint_seconds)


def denoise(x: Any, **options: Any) -> Restoration:
    """Remove the noise of an array; `inpaint` by the name that fits complete data, with the same options."""
    return inpaint(x, **options)


def resume(
    directory: str | Path, *, threads: int | None = None, progress: Progress | None = None
) -> Restoration:
    """Go on with a run that was given ``checkpoint=directory``; it ends as an uninterrupted run would."""
    directory = Path(directory)
    threads = check_threads(threads)
    saved = checkpoints.load(directory)
    options = dict(saved.settings)
    seconds = options.pop("checkpoint_seconds")
    settings = Settings.from_json(options)
    mask = np.ones(saved.values.shape, bool) if saved.observed is None else saved.observed
    return _run(saved.values, mask, settings, threads, progress, directory, seconds, saved.header)


def _numeric(x: Any) -> np.ndarray:
    """The array without its mask, if it holds real numbers."""
    values = np.ma.getdata(x) if isinstance(x, np.ma.MaskedArray) else np.asarray(x)
    if values.dtype.kind not in "buif":
        raise InputError(f"x must hold real numbers, not {values.dtype}")
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"x must have at least one axis and one entry, not shape {values.shape}")
    return values


def _refuse_constant(seen: np.ndarray) -> None:
    if (seen == seen[0]).all():
        raise InputError(
            f"x is constant: all {seen.size} observed entries are {seen[0]}, there is nothing to learn"
        )


def _run(
    values: np.ndarray,
    observed: np.ndarray,
    settings: Settings,
    threads: int,
    progress: Progress | None,
    directory: Path | None,
    checkpoint_seconds: float,
    header: dict[str, Any] | None = None,
) -> Restoration:
    """Make the sweeps that are not made yet, and read off the result."""
    began = time.perf_counter()
    progress = progress or Silent()
    scaling = Scaling.fit(values, observed)
    items = cut(scaling.forward(np.where(observed, values, 0)), observed, settings.grid)
    kept_settings = settings.to_json() | {"checkpoint_seconds": float(checkpoint_seconds)}
    with watch_compilation(partial(progress.note, _COMPILING)), ThreadEngine(items, threads) as engine:
        chain = Chain.begin(
            settings.build_model(), engine, items, settings.start, settings.seed, settings.burn_in
        )
        if header is not None and directory is not None:
            checkpoints.restore(directory, header, chain)
        progress.start(settings.sweeps, chain.done)
        try:
            _sweep_to_the_end(
                chain, settings.sweeps, scaling, progress, directory, checkpoint_seconds, kept_settings
            )
        finally:
            progress.stop()
        return _read_off(chain, scaling, settings, threads, time.perf_counter() - began)


def _sweep_to_the_end(
    chain: Chain, sweeps: int, scaling: Scaling, progress: Progress, directory: Path | None, every: float,
    settings: dict[str, Any],
) -> None:  # fmt: skip
    saved_at = time.monotonic()
    try:
        while chain.done < sweeps:
            chain.advance()
            shown = {name: values[-1] for name, values in chain.trace.items()}
            shown["noise_std"] *= scaling.scale
            progress.update(chain.done, shown)
            if directory is not None and time.monotonic() - saved_at >= every:
                checkpoints.save(directory, chain, settings)
                saved_at = time.monotonic()
    except KeyboardInterrupt:
        if directory is not None:
            checkpoints.save(directory, chain, settings)
        raise
    if directory is not None:
        checkpoints.save(directory, chain, settings)


def _read_off(
    chain: Chain, scaling: Scaling, settings: Settings, threads: int, seconds: float
) -> Restoration:
    shape = settings.array_shape
    trace = {name: np.asarray(values) for name, values in chain.trace.items()}
    if settings.model == "bpfa":
        del trace["alpha"]
    trace["noise_std"] = scaling.inverse_std(trace["noise_std"])
    return Restoration(
        mean=scaling.inverse(chain.moments.mean).reshape(shape),
        std=scaling.inverse_std(np.sqrt(chain.moments.variance())).reshape(shape),
        noise_std=float(trace["noise_std"][settings.burn_in :].mean()),
        dictionary=chain.state.dictionary.reshape(-1, *settings.patch_shape),
        ranks=chain.model.ranks(chain.state, RANK_TOLERANCE),
        usage=chain.usage / (chain.moments.draws * chain.engine.n_items),
        trace=trace,
        settings=settings.to_json(),
        n_items=chain.engine.n_items,
        threads=threads,
        seconds=seconds,
    )
