"""Restoring an array: what most people call."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.choose import Pilot, choose, worth_a_pilot
from kruskal.data import (
    NOISE_OF_ROOTS,
    SMALLEST_NORMAL,
    Scaling,
    far_entries,
    noise_grows,
    observed_entries,
    refuse_constant,
    refuse_tiny,
    roots_of_counts,
)
from kruskal.defaults import MOST_SWEEPS, Look, all_channels_alike
from kruskal.engines import checkpoint as checkpoints
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.progress import Progress, Silent, check_progress
from kruskal.engines.threads import check_threads
from kruskal.errors import InputError, flag, number_or_nan, one_of, path_of, shown
from kruskal.online import check_memory
from kruskal.option_checks import refuse_for_mgp_cp
from kruskal.restoration import Restoration
from kruskal.reuse import open_dictionary, settle
from kruskal.running import Run
from kruskal.settings import MODELS, Settings, resolve

_GROWS = (
    "the noise grows with the values: if they are counts, such as photons, say so (counts=True, --counts)"
)


def inpaint(
    x: Any,
    observed: Any = None,
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
    dictionary: Dictionary | str | Path | None = None,
    adapt: bool = False,
    auto: bool | None = None,
    until_converged: bool = False,
    time_budget: float | None = None,
    counts: bool = False,
    online: str | bool | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    passes: int | None = None,
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
    observed : bool array of the same shape, or of that without the last axis and then for all along it (the
        channels of a pixel), True where ``x`` is observed (None: wherever it is not NaN)
    setting : "default", or "paper": the paper's model with its patch, prior, rank, number of samples and
        plain average of overlapping patches
    model : "kfa" or "bpfa", dictionaries of patches, or "mgp-cp": one Kruskal tensor for the whole array or,
        with ``patch_shape``, for all patches stacked. It has no atoms and no sparse codes: n_atoms, codes,
        channels, usage_prior, sparsity, regions, grouping and auto are refused
    patch_shape : shape of the items (default: from the order and size of the array and the share observed;
        for "mgp-cp" the whole array)
    stride : distance of neighbouring patches, one number or one per axis (default: 1, more for large arrays)
    n_atoms : size of the dictionary
    rank : most Kruskal terms of an atom or, for "mgp-cp", of the tensor; or "auto"
    sweeps, burn_in : length of the chain, and how many sweeps at its beginning are not kept
    annealing : the first sweeps of the burn-in, in which the noise is kept large and sinks slowly: strong
        structure is found first, and what atoms mix comes apart (default: up to 50 for clean incomplete
        arrays of two or more axes without a time budget, 30 for "mgp-cp", else none); not online
    start : "pca" or "random"
    alpha : "sample", "map" or a number: how the shrinkage of the ranks is learned
    codes : "collapsed" or "uncollapsed" draws of the codes
    channels : "keep" takes the last axis whole into every patch, "cut" cuts it like the others, "apart" takes
        one of its entries, for channels that share their noise (default: "keep" for two to four channels; if
        all are the same, as of a grey picture saved in colour, one is restored and repeated)
    usage_prior : (a_pi, b_pi) of the beta process; a larger b_pi is sparser, the paper has (K, 1)
    sparsity : the same as b_pi per item, with a_pi = K (default: 0 for clean and nearly complete data, which
        is the paper's prior, 2 for clean data with much missing, 64 if in colour, 1/8 for noisy data,
        more when the noise is loud, 16 for noise on a smooth grey picture, 8 on one with little detail)
    regions : the patches are divided into at most this many regions, each with a usage of its own (default:
        up to 64); 1 is the paper's model
    grouping : which patches make a region: those in a block of the array ("place"; so many blocks as the next
        smaller power of two), or those that look alike ("likeness": k-means of their leading principal
        scores and, counting less and not in volumes, their places; incomplete ones are grouped once more
        half-way through the burn-in, as they look in what is restored by then, but not online, and not if
        that is shorter than five sweeps). Default:
        "likeness" for noisy data; it says nothing where there is one region
    dictionary : start from these atoms, of `kruskal.learn` or the file of one; they settle patch, model,
        number of atoms and rank. They stay as they are, and only codes, usage and precisions are drawn
    adapt : learn the atoms of the dictionary further
    auto : test the defaults of patch, sparsity and rank in short pilot runs that predict hidden entries, and
        take others where these are surely better; None does so when none of the three is given and there
        is neither a dictionary nor a time budget. Clean and nearly complete data, and fewer than 4,000
        observed entries, have none
    until_converged : end burn-in when the trace is level, and the run when more draws no longer move the
        estimate; ``sweeps`` (default then 500) and ``burn_in`` are upper limits
    time_budget : end the sweeps after so many seconds, pilot runs and compilation not counted, but finish the
        first five sweeps and the annealing (by default only "mgp-cp" has any then); a resumed run has them
        anew. It cannot be repeated exactly
    counts : the entries are counts, such as photons, 1 for each: their noise grows with them. Their roots,
        whose noise does not, are restored, and told as counts again. Not for "mgp-cp", nor with a dictionary
    online : learn from one batch of patches at a time, and remember of the others "exact" sums (the same as
        True), the paper's surrogates ("cdf"), or surrogates that are replaced at each visit
        ("incremental"); docs/model.md says what each guarantees
    batch_size : patches per batch (default: 20,000; the paper's 5,000 for "cdf"); more than there are
        patches means all of them
    epochs : how often every batch is visited, in the place of ``sweeps``; ``burn_in`` then counts epochs
        (default: 10, 5 of them burn-in)
    passes : sweeps over a batch at a visit (default: 1; the paper's 3 for "cdf")
    seed : everything random follows from it
    threads : number of threads (default: all cores); the result does not depend on it
    checkpoint : folder for the state of the run; `resume` goes on from it
    checkpoint_seconds : how often it is written
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
    mask = observed_entries(
        x if isinstance(x, np.ma.MaskedArray) else values, observed, name="x", mask_name="observed"
    )
    refuse_constant(values, mask, "x")
    refuse_tiny(values, "x", SMALLEST_NORMAL, mask)
    far = far_entries(values, mask, "x")
    if flag("counts", counts):
        _refuse_counts(model, dictionary)
        values = roots_of_counts(values, mask)
    scale = Scaling.fit(values, mask).scale
    copies = 0
    free_patch = channels is None and patch_shape is None and stride is None and dictionary is None
    if one_of("model", model, MODELS) != "mgp-cp" and free_patch and all_channels_alike(values, mask):
        copies, values, mask = values.shape[-1], values[..., 0].copy(), mask[..., 0].copy()
    least_noise = NOISE_OF_ROOTS if counts else 0.0
    look = Look.at(values, mask, scale, least_noise)
    if (
        flag("until_converged", until_converged)
        and sweeps is None
        and epochs is None
        and setting == "default"
    ):
        sweeps, epochs = (None, MOST_SWEEPS) if online else (MOST_SWEEPS, None)
    known = open_dictionary(dictionary)
    options = {
        "setting": setting, "model": model, "patch_shape": patch_shape, "stride": stride, "n_atoms": n_atoms,
        "rank": rank, "sweeps": sweeps, "burn_in": burn_in, "annealing": annealing, "start": start,
        "alpha": alpha, "codes": codes, "channels": channels, "usage_prior": usage_prior,
        "sparsity": sparsity, "regions": regions, "grouping": grouping, "until_converged": until_converged,
        "time_budget": time_budget, "online": online, "batch_size": batch_size, "epochs": epochs,
        "passes": passes, "seed": seed, "look": look, "least_noise": least_noise,
    }  # fmt: skip
    resolved = partial(_resolve, settle(options, known, adapt, values.shape))
    settings = resolved(values.shape)
    pilots: list[Pilot] = []
    threads, progress = check_threads(threads), check_progress(progress)
    notes = [] if far is None else [far]
    if not counts and look.noisy and model != "mgp-cp" and noise_grows(values, mask):
        notes.append(_GROWS)
    for note in notes:
        progress.note(note)
    free = _free(options)
    if _wants_pilots(auto, options, free, known) and worth_a_pilot(mask, look):
        estimate = partial(_estimate, threads=threads)
        better, pilots = choose(
            values, mask, resolved, estimate, free, channels, settings.seed, progress.note
        )
        settings = resolved(values.shape, **better)
    elif auto:
        progress.note("no pilot runs: these data are clean and nearly complete, or too few are observed")
    settings = replace(settings, copies=copies, counts=bool(counts))
    check_memory(settings.online, settings.n_atoms, math.prod(settings.patch_shape), bool(mask.all()))
    if settings.online and batch_size is not None and batch_size > settings.batch_size:
        progress.note(f"one batch holds all {settings.batch_size} patches, not {batch_size} as asked for")
    directory = None if checkpoint is None else path_of("checkpoint", checkpoint, "folder")
    seconds = _seconds("checkpoint_seconds", checkpoint_seconds)
    run = Run(settings, tuple(pilots), threads, progress, directory, seconds, known, notes)
    if run.directory is None:
        return run.restore(values, mask)
    with checkpoints.begun(run.directory, values, mask, run.header(), known):
        return run.restore(values, mask)


def denoise(x: Any, **options: Any) -> Restoration:
    """Remove the noise of an array; `inpaint` by the name that fits complete data, with the same options."""
    return inpaint(x, **options)


def resume(
    directory: str | Path, *, threads: int | None = None, progress: Progress | None = None
) -> Restoration:
    """Go on with a run that was given ``checkpoint=directory``; it ends as an uninterrupted run would."""
    directory = path_of("directory", directory, "folder")
    threads, progress = check_threads(threads), check_progress(progress)
    with checkpoints.held(directory):  # before its state is read: another process may be at work on it
        saved = checkpoints.load(directory)
        try:
            seconds = _seconds("checkpoint_seconds", saved.settings.pop("checkpoint_seconds"))
            pilots = tuple(Pilot.from_json(pilot) for pilot in saved.settings.pop("pilots"))
            notes = [str(note) for note in saved.settings.pop("notes")]
            settings = Settings.from_json(saved.settings)
        except (TypeError, KeyError) as error:
            raise InputError(
                f"checkpoint folder {directory} cannot be read: its settings are damaged"
            ) from error
        run = Run(settings, pilots, threads, progress, directory, seconds, saved.dictionary, notes)
        return run.restore(saved.values, saved.observed, saved.header)


def _refuse_counts(model: str, dictionary: Any) -> None:
    """Counts are restored as roots, which other things than atoms of their own know nothing of."""
    if model == "mgp-cp":
        raise InputError("counts is no option of the model mgp-cp: its terms make up the array itself")
    if dictionary is not None:
        raise InputError("counts is not for runs from a dictionary, whose atoms are in other units")


def _free(options: dict[str, Any]) -> set[str]:
    """Which of patch, rank and sparsity are not given, so that pilot runs may choose them."""
    given = {
        "patch_shape": options["patch_shape"] is not None,
        "rank": options["rank"] != "auto",
        "sparsity": options["usage_prior"] is not None or options["sparsity"] is not None,
    }
    return {name for name, is_given in given.items() if not is_given}


def _wants_pilots(
    auto: bool | None, options: dict[str, Any], free: set[str], known: Dictionary | None
) -> bool:
    """Whether pilot runs are asked for, or make sense by themselves (``auto`` None)."""
    auto = auto if auto is None else flag("auto", auto)
    if options["model"] == "mgp-cp":
        refuse_for_mgp_cp(auto=auto or None)
        return False
    if auto is None:
        plain = options["setting"] == "default" and options["time_budget"] is None
        return plain and len(free) == 3 and known is None
    if auto and known is not None:
        raise InputError("auto tests patch, sparsity and rank, but a dictionary settles them: leave it out")
    return bool(auto and free)


def _resolve(given: dict[str, Any], shape: tuple[int, ...], **options: Any) -> Settings:
    """Settings for an array of this shape with the user's options and, before them, others."""
    return resolve(shape, **(given | options))


def _estimate(values: np.ndarray, observed: np.ndarray, settings: Settings, threads: int) -> np.ndarray:
    """The restored array of a run that nobody watches."""
    return Run(settings, (), threads, Silent(), None, math.inf).restore(values, observed).mean


def _seconds(name: str, value: Any) -> float:
    seconds = number_or_nan(value)
    if not seconds >= 0.0:
        raise InputError(f"{name} must be a number of at least 0, not {shown(value)}")
    return seconds


def _numeric(x: Any) -> np.ndarray:
    """The array without its mask, if it holds real numbers."""
    try:
        values = np.ma.getdata(x) if isinstance(x, np.ma.MaskedArray) else np.asarray(x)
    except ValueError as error:
        raise InputError("x must be an array: the lists given have different lengths") from error
    if values.dtype.kind not in "buif":
        given = values.dtype if values.ndim else shown(x)
        raise InputError(f"x must hold real numbers, not {given}")
    if values.ndim == 0 or values.size == 0:
        raise InputError(f"x must have at least one axis and one entry, not shape {values.shape}")
    return values
