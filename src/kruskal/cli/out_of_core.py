"""Restorations block by block, for arrays that are larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kruskal import __version__
from kruskal.cli.checks import check_outputs
from kruskal.cli.errors import named_by_options
from kruskal.cli.job import Job
from kruskal.cli.options import counted, shape_text
from kruskal.cli.summary import json_ready, rank_histogram
from kruskal.data.atomic import full_suffix
from kruskal.data.lazy import LAZY_SUFFIXES, open_lazy
from kruskal.engines.progress import choose
from kruskal.engines.progress_words import duration
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.large import LargeRestoration

LARGE = 2**25
"""Entries above which an array is restored block by block, unless an option needs all of it."""
_PASSED_ON = (
    *("model", "patch_shape", "stride", "n_atoms", "rank", "start", "alpha", "codes", "channels"),
    *("usage_prior", "sparsity", "regions", "grouping", "seed", "threads"),
)
_IF_GIVEN = ("batch_size", "epochs", "sweeps", "burn_in")


def is_wanted(job: Job) -> bool:
    """Whether a job is asked to go block by block, or is so large that it does so by itself."""
    if job.out_of_core:
        return True
    if job.block is not None:
        raise InputError(
            "--block is for arrays that are restored block by block: give --out-of-core as well."
        )
    files = [job.input, job.output, *(path for path in (job.mask, job.std) if path is not None)]
    if not all(full_suffix(path).lower() in LAZY_SUFFIXES for path in files) or _needs_all(job):
        return False
    try:
        return int(np.prod(open_lazy(job.input, "IN", job.key).shape)) > LARGE
    except InputError:  # the usual way finds it again and says so
        return False


def restore(job: Job) -> dict[str, Any]:
    """Restore as the command asks, into files, and return the numbers to tell."""
    for option in _needs_all(job):
        raise InputError(f"{option} needs the whole array in memory: leave it or --out-of-core out.")
    check_outputs(job)
    from kruskal.large import inpaint_large

    options = {name: job.settings[name] for name in _PASSED_ON}
    options |= {name: job.settings[name] for name in _IF_GIVEN if job.settings[name] is not None}
    progress = choose(job.quiet)
    try:
        with named_by_options(job.input):
            found = inpaint_large(
                job.input, job.output, job.mask, std=job.std, key=job.key, mask_key=job.mask_key,
                mask_is=job.mask_is, block_shape=job.block, progress=progress, **options,
            )  # fmt: skip
    finally:
        progress.stop()
    return _summarise(found)


def _needs_all(job: Job) -> list[str]:
    """Options of the job that cannot be had block by block."""
    settings = job.settings
    given = {
        "--checkpoint": job.checkpoint, "--reference": job.reference, "--figures": job.figures,
        "--report": job.report, "--save": job.save, "--dictionary": job.dictionary,
        "--keep-observed": job.keep_observed,
        "--adapt": settings["adapt"], "--counts": settings["counts"],
        "--auto": settings["auto"], "--until-converged": settings["until_converged"],
        "--time-budget": settings["time_budget"] is not None, "--passes": settings["passes"],
        "--annealing": settings["annealing"],
        "--setting paper": settings["setting"] == "paper",
        "--surrogate": isinstance(settings["online"], str),
        "--model mgp-cp": settings["model"] == "mgp-cp",
    }  # fmt: skip
    return [option for option, value in given.items() if value]


def _summarise(found: LargeRestoration) -> dict[str, Any]:
    """The numbers of a restoration, ready for JSON."""
    learned = found.dictionary
    used = learned.usage > 0
    shown = ("model", "patch_shape", "sparsity", "seed")
    return json_ready(
        {
            "noise_std": found.noise_std,
            "seconds": found.seconds,
            "epochs": found.epochs,
            "n_items": found.n_items,
            "n_blocks": found.n_blocks,
            "block_shape": found.block_shape,
            "n_atoms": learned.n_atoms,
            "n_atoms_used": int(used.sum()),
            "rank_histogram": rank_histogram(learned.ranks, used),
            **{name: learned.settings.get(name) for name in shown},
            "rank": learned.rank or None,
            "threads": found.threads,
            "notes": list(found.notes),
            "version": __version__,
        }
    )


def as_text(summary: dict[str, Any]) -> str:
    """The numbers of a restoration, for people."""
    blocks = f"{counted(summary['n_blocks'], 'block')} of {shape_text(summary['block_shape'])}"
    return (
        f"{summary['model']}: {counted(summary['epochs'], 'epoch')} over {blocks} with "
        f"{counted(summary['n_items'], 'patch', 'patches')} of {shape_text(summary['patch_shape'])} "
        f"in {duration(summary['seconds'])}\n"
        f"noise {summary['noise_std']:.4g}, {summary['n_atoms_used']} of {summary['n_atoms']} atoms used"
    )
