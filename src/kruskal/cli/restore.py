"""The commands inpaint, denoise and resume."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from kruskal.cli import options
from kruskal.cli.options import INPUT, MODEL, OUTPUT, RUN

INPAINT_HELP = """Fill in missing entries (and remove noise) of an array of any order.

Nothing needs to be known: noise level, rank and number of atoms are inferred.

    kruskal inpaint scan.tif -o restored.tif --mask mask.png --std std.tif
"""
FROM_ARRAY = "from the array"
DENOISE_HELP = """Remove noise from an array of any order; the noise level is inferred.

    kruskal denoise noisy.nii.gz -o clean.nii.gz
"""


def restore(
    context: typer.Context,
    input_file: options.InputFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            show_default=False,
            help="Where the restored array goes; its suffix gives the format. Overwritten if it exists.",
            rich_help_panel=OUTPUT,
        ),
    ],
    mask: Annotated[
        Path | None,
        typer.Option(metavar="M", help="File with the mask, of the shape of IN.", rich_help_panel=INPUT),
    ] = None,
    mask_is: Annotated[
        options.MaskIs,
        typer.Option(help="What a true entry of the mask means.", rich_help_panel=INPUT),
    ] = options.MaskIs.observed,
    mask_key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the array inside the mask file.", rich_help_panel=INPUT),
    ] = None,
    key: options.KeyName = None,
    setting: Annotated[
        options.Setting,
        typer.Option(
            help="Our defaults, or the paper's patch, prior, rank and number of samples.",
            rich_help_panel=MODEL,
        ),
    ] = options.Setting.default,
    model: Annotated[
        options.Model,
        typer.Option(help="Kruskal atoms (kfa) or free atoms (bpfa).", rich_help_panel=MODEL),
    ] = options.Model.kfa,
    patch: Annotated[
        str | None,
        typer.Option(metavar="8x8", help="Shape of a patch.", show_default=FROM_ARRAY, rich_help_panel=MODEL),
    ] = None,
    stride: Annotated[
        str | None,
        typer.Option(
            metavar="1|1x1x3",
            help="Step between patches, for all axes or for each.",
            show_default=FROM_ARRAY,
            rich_help_panel=MODEL,
        ),
    ] = None,
    channels: Annotated[
        options.Channels | None,
        typer.Option(
            help="Keep a short last axis (colour) whole in every patch, or cut it.",
            show_default=FROM_ARRAY,
            rich_help_panel=MODEL,
        ),
    ] = None,
    atoms: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Number of atoms, at most.", show_default=FROM_ARRAY, rich_help_panel=MODEL
        ),
    ] = None,
    rank: Annotated[
        str, typer.Option(metavar="auto|N", help="Largest tensor rank of an atom.", rich_help_panel=MODEL)
    ] = "auto",
    alpha: Annotated[
        str,
        typer.Option(
            metavar="sample|map|VALUE", help="Shrinkage of the rank (kfa only).", rich_help_panel=MODEL
        ),
    ] = "sample",
    usage_prior: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Beta process prior of the usage; a larger B is sparser, the paper has K,1.",
            show_default=FROM_ARRAY,
            rich_help_panel=MODEL,
        ),
    ] = None,
    sparsity: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="The prior's B per patch instead: 0 is the paper's, larger is sparser.",
            show_default=FROM_ARRAY,
            rich_help_panel=MODEL,
        ),
    ] = None,
    regions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Regions of the array with a usage of their own; 1 is the paper's model.",
            show_default="up to 64",
            rich_help_panel=MODEL,
        ),
    ] = None,
    auto: Annotated[
        bool | None,
        typer.Option(
            "--auto/--no-auto",
            help="Test patch, sparsity and rank in short pilot runs that predict hidden entries.",
            show_default="when none of the three is given",
            rich_help_panel=MODEL,
        ),
    ] = None,
    codes: Annotated[
        options.Codes, typer.Option(help="How the codes are drawn.", rich_help_panel=MODEL)
    ] = options.Codes.collapsed,
    sweeps: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of Gibbs sweeps.", show_default="60 or 100", rich_help_panel=RUN
        ),
    ] = None,
    burn_in: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Sweeps that are not kept.",
            show_default="half of --sweeps",
            rich_help_panel=RUN,
        ),
    ] = None,
    until_converged: Annotated[
        bool,
        typer.Option(
            "--until-converged",
            help="Stop when more sweeps no longer matter; --sweeps (then 500) and --burn-in are limits.",
            rich_help_panel=RUN,
        ),
    ] = False,
    time_budget: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Stop the sweeps after so many seconds; not repeatable.", rich_help_panel=RUN
        ),
    ] = None,
    online: Annotated[
        bool,
        typer.Option(
            "--online",
            help="Learn from one batch of patches at a time; for large arrays.",
            rich_help_panel=RUN,
        ),
    ] = False,
    surrogate: Annotated[
        options.Surrogate | None,
        typer.Option(
            help="What is remembered of the other batches, with --online: exact sums, the paper's (cdf), or "
            "the paper's replaced at each visit.",
            show_default="exact",
            rich_help_panel=RUN,
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Patches per batch, with --online.",
            show_default="20000, or 5000 for cdf",
            rich_help_panel=RUN,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Visits to every batch, with --online; half of them, or --burn-in, are not kept.",
            show_default="10",
            rich_help_panel=RUN,
        ),
    ] = None,
    passes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Sweeps over a batch at a visit, with --online.",
            show_default="1, or 3 for cdf",
            rich_help_panel=RUN,
        ),
    ] = None,
    start: Annotated[
        options.Start, typer.Option(help="First dictionary.", rich_help_panel=RUN)
    ] = options.Start.pca,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all draws.", rich_help_panel=RUN)] = 0,
    threads: options.Threads = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the state in DIR; 'kruskal resume DIR' goes on after a crash or Ctrl-C.",
            rich_help_panel=RUN,
        ),
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(metavar="S", help="Seconds between two checkpoints.", rich_help_panel=RUN)
    ] = 120.0,
    std: Annotated[
        Path | None,
        typer.Option(
            metavar="STD_OUT",
            help="Where the standard deviation of every entry goes, as float32 in the units of the data.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="CLEAN",
            help="The true array: adds PSNR, SSIM, RRSE and coverage, computed from the unrounded mean, "
            "clipped to the range of CLEAN's type if that is an integer type.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    reference_key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the array inside CLEAN.", rich_help_panel=INPUT),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for pictures: atoms, ranks, traces, before and after, uncertainty.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="All of it in one page.", rich_help_panel=OUTPUT),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="RESULT.npz",
            help="Everything that was learned: mean, std, atoms, traces.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Parse the options of inpaint and denoise and run."""
    settings: dict[str, Any] = {
        "setting": setting.value,
        "model": model.value,
        "patch_shape": None if patch is None else options.parse_shape(patch, "--patch"),
        "stride": None if stride is None else options.parse_stride(stride),
        "channels": None if channels is None else channels.value,
        "n_atoms": options.at_least(atoms, 1, "--atoms"),
        "rank": options.parse_rank(rank),
        "alpha": options.parse_alpha(alpha),
        "usage_prior": None if usage_prior is None else options.parse_pair(usage_prior, "--usage-prior"),
        "sparsity": None if sparsity is None else options.not_negative(sparsity, "--sparsity"),
        "regions": options.at_least(regions, 1, "--regions"),
        "auto": auto,
        "until_converged": until_converged,
        "time_budget": time_budget,
        "online": options.parse_online(online, surrogate),
        "batch_size": options.at_least(batch_size, 1, "--batch-size"),
        "epochs": options.at_least(epochs, 1, "--epochs"),
        "passes": options.at_least(passes, 1, "--passes"),
        "codes": codes.value,
        "sweeps": options.at_least(sweeps, 1, "--sweeps"),
        "burn_in": options.at_least(burn_in, 0, "--burn-in"),
        "start": start.value,
        "seed": options.at_least(seed, 0, "--seed"),
        "threads": options.at_least(threads, 1, "--threads"),
        "checkpoint_seconds": options.not_negative(checkpoint_seconds, "--checkpoint-seconds"),
    }

    from kruskal.cli.job import Job
    from kruskal.cli.run import run

    run(
        Job(
            command=context.info_name or "inpaint",
            input=input_file,
            output=output,
            mask=mask,
            mask_is=mask_is.value,
            key=key,
            mask_key=mask_key,
            reference_key=reference_key,
            std=std,
            reference=reference,
            figures=figures,
            report=report,
            save=save,
            checkpoint=checkpoint,
            json=json,
            quiet=quiet,
            command_line=shlex.join(["kruskal", *context.obj]) if context.obj else "",
            settings=settings,
        )
    )


def resume(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", show_default=False, help="What was given to --checkpoint.")
    ],
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Go on with a run that was interrupted; it ends in the bytes of an uninterrupted one."""
    options.at_least(threads, 1, "--threads")

    from kruskal.cli.run import resume as resume_run

    resume_run(directory, threads=threads, json=json, quiet=quiet)
