"""Restoring an array that is larger than memory: it is read, learned from and written block by block."""

import math
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.blockwise import BlockwiseRun, Scene
from kruskal.data.lazy import LazyArray, check_lazy_target, contains, missing_chunks_note
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.progress import COMPILING, Progress, check_progress
from kruskal.engines.threads import check_threads
from kruskal.errors import InputError, check_seed, one_of, shown, whole_number
from kruskal.kernel import watch_compilation
from kruskal.patches import Blocks, choose_block
from kruskal.settings import MODELS, resolve
from kruskal.tensor import RANK_TOLERANCE

BATCH_SIZE, FORGETTING = 5_000, 0.9
FEWEST_BATCHES, EPOCHS = 24, 2
SWEEPS = 8


@dataclass(frozen=True, eq=False, repr=False)
class LargeRestoration:
    """What is known after a restoration block by block; the array itself is in a file.

    Attributes
    ----------
    target, std_target : where the restored array is, and the standard deviation of its entries if asked for
    dictionary : the atoms and all that goes with them, a `kruskal.Dictionary`; its trace has one value per
        batch that was learned from
    noise_std : mean over the blocks of the noise that was inferred in each, in the input's units
    n_items, block_shape, n_blocks, epochs : patches of the array, and how it was cut and gone over
    threads, seconds : how it was run;  notes : what there was to say of it
    """

    target: Path
    std_target: Path | None
    dictionary: Dictionary
    noise_std: float
    n_items: int
    block_shape: tuple[int, ...]
    n_blocks: int
    epochs: int
    threads: int
    seconds: float
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line, without the arrays."""
        return f"<LargeRestoration in {str(self.target)!r}: noise_std {self.noise_std:.4g}>"


def inpaint_large(
    source: Any,
    target: str | Path,
    observed: Any = None,
    *,
    std: str | Path | None = None,
    key: str | None = None,
    mask_key: str | None = None,
    mask_is: str = "observed",
    model: str = "kfa",
    patch_shape: Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    n_atoms: int | None = None,
    rank: int | str = "auto",
    start: str = "pca",
    alpha: str | float = "sample",
    codes: str = "collapsed",
    channels: str | None = None,
    usage_prior: tuple[float, float] | None = None,
    sparsity: float | None = None,
    regions: int | None = None,
    grouping: str | None = None,
    block_shape: Sequence[int] | None = None,
    batch_size: int = BATCH_SIZE,
    epochs: int | None = None,
    forgetting: float = FORGETTING,
    sweeps: int = SWEEPS,
    burn_in: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LargeRestoration:
    """Fill in the missing entries of an array that need not fit into memory, and remove its noise.

    The array is cut into blocks, and one of them is in memory at a time. First a dictionary is learned from
    patches of the blocks as from a stream; then the blocks are restored with it one after the other, each
    from all patches that reach into it. docs/large.md says what differs from `kruskal.inpaint`.

    Parameters
    ----------
    source : path of a zarr store or npy file, or anything with a shape, a dtype and slices; NaN is missing
    target : path of the zarr store or npy file to write; it is there when all of it is written
    observed : mask in the same forms as ``source``, of its shape or of that without the last axis
    std : path for the standard deviations of the entries, float32 (float64 of very large or small data)
    key, mask_key : which array of a zarr group is read;  mask_is : "observed" or "missing"
    model, patch_shape, stride, n_atoms, rank, start, alpha, codes, channels, usage_prior, sparsity : as for
        `kruskal.inpaint`; model "kfa" or "bpfa"
    regions, grouping : the same within a block (defaults: up to 64; "likeness" for noisy data)
    block_shape : of the blocks (default: about a million entries, whole chunks); memory follows from it
    batch_size : patches that are learned from at a time: at most so many of a block, chosen at random, and
        of several blocks if they hold fewer
    epochs : how often every block is visited to learn from (default: 2, more if that makes few batches)
    forgetting : factor from 0 to 1 on what is remembered of the visits before
    sweeps, burn_in : sweeps over a block when it is restored, and how many of them (half) are not kept
    seed : everything random follows from it
    threads : number of threads (default: all cores); the result does not depend on it
    progress : told how far the run is, in blocks

    Returns
    -------
    LargeRestoration
    """
    began = time.perf_counter()
    progress = check_progress(progress)
    if one_of("model", model, MODELS) == "mgp-cp":
        raise InputError("model mgp-cp decomposes a whole array, which must be in memory: take kfa or bpfa")
    n_sweeps = whole_number("sweeps", sweeps, 1)
    n_burn_in = whole_number("burn_in", n_sweeps // 2 if burn_in is None else burn_in, 0, n_sweeps - 1)
    if not (isinstance(forgetting, (int, float)) and 0.0 <= forgetting <= 1.0):
        raise InputError(f"forgetting must be a number from 0 to 1, not {shown(forgetting)}")
    seed = check_seed(seed)
    _check_paths(target, std)
    if regions is not None:
        whole_number("regions", regions, 1, 4_096)
    notes: list[str] = []
    scene = _open(source, observed, key, mask_key, mask_is, target, std, notes)
    shape = scene.values.shape
    block = _block_shape(block_shape, scene.values)
    look, scaling, ordinary, far = scene.first_look(block, seed)
    notes += [] if far is None else [far]
    for note in notes:
        progress.note(note)
    settings = resolve(
        shape, model=model, patch_shape=patch_shape, stride=stride, n_atoms=n_atoms, rank=rank, start=start,
        alpha=alpha, codes=codes, channels=channels, usage_prior=usage_prior, sparsity=sparsity, regions=1,
        grouping=grouping, annealing=0, seed=seed, brief=True, look=look,
    )  # fmt: skip
    blocks = Blocks(settings.grid, block)
    size = whole_number("batch_size", batch_size, 1)
    n_batches = max(1, min(blocks.n_blocks, settings.grid.n_items // size))
    n_epochs = max(EPOCHS, math.ceil(FEWEST_BATCHES / n_batches)) if epochs is None else epochs
    run = BlockwiseRun(
        scene=scene, settings=settings, scaling=scaling, ordinary=ordinary, blocks=blocks, look=look,
        regions=regions, batch_size=size, epochs=whole_number("epochs", n_epochs, 1),
        forgetting=float(forgetting), sweeps=n_sweeps, burn_in=n_burn_in, threads=check_threads(threads),
        progress=progress, notes=notes,
    )  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(watch_compilation(partial(progress.note, COMPILING)))
        progress.start((run.epochs + 1) * blocks.n_blocks, unit="block")
        stack.callback(progress.stop)
        learned = run.learn()
        noise = run.restore(learned, target, std)
    return LargeRestoration(
        Path(target), None if std is None else Path(std), learned.dictionary({}, RANK_TOLERANCE), noise,
        settings.grid.n_items, block, blocks.n_blocks, run.epochs, run.threads, time.perf_counter() - began,
        tuple(notes),
    )  # fmt: skip


def _check_paths(target: Any, std: Any) -> None:
    for name, path in (("target", target), ("std", std)):
        if not isinstance(path, (str, os.PathLike)) and (name == "target" or path is not None):
            raise InputError(f"{name} must be the path of a zarr store or npy file, not {shown(path)}")


def _open(
    source: Any, observed: Any, key: str | None, mask_key: str | None, mask_is: str, target: str | Path,
    std: str | Path | None, notes: list[str],
) -> Scene:  # fmt: skip
    """What is read, after a look at what is to be written."""
    scene = Scene.of(source, observed, key, mask_key, mask_is)
    values = scene.values
    check_lazy_target(target, values.shape, values.dtype, "target")
    if std is not None:
        check_lazy_target(std, values.shape, np.float32, "std")
    _refuse_overwriting(target, std, source, observed)
    for array in (values, scene.mask):
        if array is not None and array.missing_chunks:
            notes.append(missing_chunks_note(array.missing_chunks, array.name))
    return scene


def _refuse_overwriting(target: Any, std: Any, *read: Any) -> None:
    taken = [path for path in read if isinstance(path, str | os.PathLike)]
    for name, path in (("target", target), ("std", std)):
        if path is None:
            continue
        for other in taken:
            if contains(path, other):
                raise InputError(f"{name} '{path}' would overwrite '{other}', give another name")
            if contains(other, path):
                raise InputError(f"{name} '{path}' lies inside of '{other}', give another name")
        taken.append(path)


def _block_shape(given: Sequence[int] | None, values: LazyArray) -> tuple[int, ...]:
    if given is None:
        return choose_block(values.shape, values.chunks)
    try:
        sizes = [whole_number("block_shape", size, 1) for size in given]
    except TypeError:
        sizes = []
    if len(sizes) != len(values.shape):
        raise InputError(f"block_shape must have one size per axis ({len(values.shape)}), not {shown(given)}")
    return tuple(min(size, large) for size, large in zip(sizes, values.shape))
