"""The commands inpaint, denoise and resume."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kruskal.cli import model_options, online_options, options
from kruskal.cli.options import INPUT, MODEL, OUTPUT, RUN
from kruskal.errors import InputError

INPAINT_HELP = """Fill in missing entries (and remove noise) of an array of any order.

Nothing needs to be known: noise level, rank and number of atoms are inferred.

    kruskal inpaint scan.tif -o restored.tif --mask mask.png --std std.tif
"""
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
        typer.Option(
            metavar="M",
            help="File with the mask, of the shape of IN or without its last axis (colours).",
            rich_help_panel=INPUT,
        ),
    ] = None,
    mask_is: model_options.MaskMeans = options.MaskIs.observed,
    mask_key: model_options.MaskKeyName = None,
    key: options.KeyName = None,
    setting: model_options.SettingName = options.Setting.default,
    model: model_options.ModelName = options.Model.kfa,
    patch: model_options.Patch = None,
    stride: model_options.Stride = None,
    channels: model_options.ChannelsWord = None,
    atoms: model_options.Atoms = None,
    rank: model_options.Rank = "auto",
    alpha: model_options.Alpha = "sample",
    usage_prior: model_options.UsagePrior = None,
    sparsity: model_options.Sparsity = None,
    regions: model_options.Regions = None,
    grouping: model_options.GroupingWord = None,
    counts: model_options.Counts = False,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            metavar="DICT.npz",
            help="Start from the atoms of 'kruskal learn', and keep them as they are.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    adapt: Annotated[
        bool,
        typer.Option("--adapt", help="Learn the atoms of the dictionary further.", rich_help_panel=MODEL),
    ] = False,
    auto: Annotated[
        bool | None,
        typer.Option(
            "--auto/--no-auto",
            help="Test patch, sparsity and rank in short pilot runs that predict hidden entries.",
            show_default="when none of the three is given",
            rich_help_panel=MODEL,
        ),
    ] = None,
    codes: model_options.CodesWord = options.Codes.collapsed,
    sweeps: model_options.Sweeps = None,
    burn_in: model_options.BurnIn = None,
    annealing: model_options.Annealing = None,
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
            metavar="S",
            help="Stop after so many seconds of sweeps, of which at least five are made; not repeatable.",
            rich_help_panel=RUN,
        ),
    ] = None,
    online: online_options.Online = False,
    surrogate: online_options.SurrogateName = None,
    batch_size: online_options.BatchSize = None,
    epochs: online_options.Epochs = None,
    passes: online_options.Passes = None,
    out_of_core: model_options.OutOfCore = False,
    block: model_options.Block = None,
    start: model_options.StartName = options.Start.pca,
    seed: model_options.Seed = 0,
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
        float | None,
        typer.Option(
            metavar="S",
            help="Seconds between two checkpoints.",
            show_default="120",
            rich_help_panel=RUN,
        ),
    ] = None,
    keep_observed: Annotated[
        bool,
        typer.Option(
            "--keep-observed",
            help="Leave observed entries as they are and only fill the gaps; for data without noise.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    std: Annotated[
        Path | None,
        typer.Option(
            metavar="STD_OUT",
            help="Where the standard deviation of every entry goes, in the units of the data.",
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
    options.check_key(mask_key, mask, "--mask-key", "--mask")
    options.check_key(reference_key, reference, "--reference-key", "--reference")
    if checkpoint_seconds is not None and checkpoint is None:
        raise InputError(
            f"--checkpoint-seconds is {checkpoint_seconds:g} without a folder: give --checkpoint, or leave "
            "--checkpoint-seconds out."
        )
    if keep_observed and context.info_name == "denoise":
        raise InputError("--keep-observed leaves denoise nothing to do; it is for inpaint.")
    settings = model_options.as_settings(
        setting=setting, model=model, patch=patch, stride=stride, channels=channels, atoms=atoms, rank=rank,
        alpha=alpha, usage_prior=usage_prior, sparsity=sparsity, regions=regions, codes=codes, sweeps=sweeps,
        burn_in=burn_in, annealing=annealing, start=start, seed=seed, threads=threads,
    )  # fmt: skip
    settings |= {
        "grouping": None if grouping is None else grouping.value,
        "counts": counts,
        "adapt": adapt,
        "auto": auto,
        "until_converged": until_converged,
        "time_budget": time_budget,
        "online": options.parse_online(online, surrogate),
        "batch_size": options.at_least(batch_size, 1, "--batch-size"),
        "epochs": options.at_least(epochs, 1, "--epochs"),
        "passes": options.at_least(passes, 1, "--passes"),
        "checkpoint_seconds": options.not_negative(
            120.0 if checkpoint_seconds is None else checkpoint_seconds, "--checkpoint-seconds"
        ),
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
            dictionary=dictionary,
            figures=figures,
            report=report,
            save=save,
            checkpoint=checkpoint,
            keep_observed=keep_observed,
            out_of_core=out_of_core,
            block=None if block is None else options.parse_shape(block, "--block"),
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
