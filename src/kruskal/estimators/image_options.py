"""Options of the convolutional estimators, checked, with what follows where nothing is said."""

from typing import Any, NamedTuple

from kruskal.engines.progress import Progress, check_progress
from kruskal.engines.threads import check_threads
from kruskal.errors import (
    InputError,
    check_seed,
    flag,
    one_of,
    positive_number,
    positive_pair,
    shown,
    whole_number,
)
from kruskal.estimators.image_batches import pair_of_sizes
from kruskal.gibbs.local import MOST_ATOMS
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.gibbs.start import check_start

USAGES = ("shared", "by_image")


class ImageOptions(NamedTuple):
    """What is asked of a model of images; see `kruskal.CKFA`. Free atoms have no ``rank`` and alpha prior."""

    n_atoms: int
    atom_size: tuple[int, int]
    rank: int | None
    alpha_prior: AlphaPrior | None
    pooling: tuple[int, int]
    nonnegative: bool
    sweeps: int
    burn_in: int
    noise_std: float | None
    usage: str
    usage_prior: tuple[float, float]
    start: str
    seed: int
    threads: int
    progress: Progress


def check_alpha_prior(pair: Any) -> AlphaPrior:
    """(a, b) of the prior of alpha, or an InputError."""
    return AlphaPrior(*positive_pair("alpha_prior", pair))


def image_options(
    *, n_atoms: Any, atom_size: Any, pooling: Any, nonnegative: Any, sweeps: Any, burn_in: Any,
    noise_std: Any, usage: Any, usage_prior: Any, start: Any, seed: Any, threads: Any, progress: Any,
    **of_terms: Any,
) -> ImageOptions:  # fmt: skip
    """The parameters of an estimator, or an InputError that names one; of Kruskal atoms also ``rank`` and
    ``alpha_prior``."""
    n_atoms = whole_number("n_atoms", n_atoms, 1, MOST_ATOMS)
    n_sweeps = whole_number("sweeps", sweeps, 1)
    n_burn_in = n_sweeps // 2 if burn_in is None else whole_number("burn_in", burn_in, 0)
    if n_burn_in >= n_sweeps:
        raise InputError(f"burn_in must be less than sweeps ({n_sweeps}), not {shown(burn_in)}")
    return ImageOptions(
        n_atoms=n_atoms,
        atom_size=pair_of_sizes("atom_size", atom_size),
        rank=whole_number("rank", of_terms["rank"], 1) if of_terms else None,
        alpha_prior=check_alpha_prior(of_terms["alpha_prior"]) if of_terms else None,
        pooling=(1, 1) if pooling is None else pair_of_sizes("pooling", pooling),
        nonnegative=flag("nonnegative", nonnegative),
        sweeps=n_sweeps,
        burn_in=n_burn_in,
        noise_std=None if noise_std is None else positive_number("noise_std", noise_std),
        usage=one_of("usage", usage, USAGES),
        usage_prior=positive_pair("usage_prior", (n_atoms, 1.0) if usage_prior is None else usage_prior),
        start=check_start(start),
        seed=check_seed(seed),
        threads=check_threads(threads),
        progress=check_progress(progress),
    )
