"""The command learn: a dictionary from the patches of several files."""

from __future__ import annotations

import json as json_format
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kruskal.cli import model_options, options
from kruskal.cli.options import INPUT, OUTPUT
from kruskal.errors import InputError

if TYPE_CHECKING:
    from kruskal.cli.inputs import Inputs
    from kruskal.engines.dictionary import Dictionary


def learn(
    input_files: Annotated[
        list[Path],
        typer.Argument(metavar="IN...", show_default=False, help="Arrays with the same number of axes."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DICT.npz",
            show_default=False,
            help="Where the dictionary goes. Overwritten if it exists.",
            rich_help_panel=OUTPUT,
        ),
    ],
    mask: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="M", help="File with the mask; once for every IN, in order.", rich_help_panel=INPUT
        ),
    ] = None,
    mask_is: model_options.MaskMeans = options.MaskIs.observed,
    mask_key: model_options.MaskKeyName = None,
    key: options.KeyName = None,
    setting: model_options.SettingName = options.Setting.default,
    model: model_options.AtomsName = options.AtomModel.kfa,
    patch: model_options.Patch = None,
    stride: model_options.Stride = None,
    channels: model_options.ChannelsWord = None,
    atoms: model_options.Atoms = None,
    rank: model_options.Rank = "auto",
    alpha: model_options.Alpha = "sample",
    usage_prior: model_options.UsagePrior = None,
    sparsity: model_options.Sparsity = None,
    regions: model_options.Regions = None,
    codes: model_options.CodesWord = options.Codes.collapsed,
    sweeps: model_options.Sweeps = None,
    burn_in: model_options.BurnIn = None,
    annealing: model_options.Annealing = None,
    start: model_options.StartName = options.Start.pca,
    seed: model_options.Seed = 0,
    threads: options.Threads = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for pictures: atoms, ranks, traces.", rich_help_panel=OUTPUT
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn a dictionary from the patches of several files, for 'kruskal inpaint --dictionary'."""
    options.check_key(mask_key, mask, "--mask-key", "--mask")
    settings = model_options.as_settings(
        setting=setting, model=model, patch=patch, stride=stride, channels=channels, atoms=atoms, rank=rank,
        alpha=alpha, usage_prior=usage_prior, sparsity=sparsity, regions=regions, codes=codes, sweeps=sweeps,
        burn_in=burn_in, annealing=annealing, start=start, seed=seed, threads=threads,
    )  # fmt: skip
    masks = list(mask or [])

    from kruskal.cli.checks import DICTIONARY_FIGURES, check_apart, check_output

    taken = {str(path): path for path in [*input_files, *masks]}
    check_output(output, ".npz", list(taken.values()), figures)
    check_apart(f"--output {output}", output, taken)
    if figures is not None:
        check_apart(f"--figures {figures}", figures, taken, DICTIONARY_FIGURES)
    if masks and len(masks) != len(input_files):
        raise InputError(
            f"--mask must be given once for every IN: {len(masks)} for {len(input_files)} files; "
            "an npz of 'kruskal corrupt' brings its own mask."
        )

    from kruskal.cli.inputs import read_inputs
    from kruskal.cli.job import Job

    read = [
        read_inputs(
            Job("learn", file, output, masks[i] if masks else None, mask_is.value, key=key, mask_key=mask_key)
        )
        for i, file in enumerate(input_files)
    ]
    learned = _learn(input_files, read, settings, quiet)
    learned.save(output)
    written = [output]
    if figures is not None:
        from kruskal.report import write_dictionary_figures

        write_dictionary_figures(figures, learned, colour=_colour(read))
        written.append(figures)
    from kruskal.cli.errors import told_after

    with told_after(written):
        _tell(learned, written, json, quiet)


def _learn(files: list[Path], read: list[Inputs], settings: dict[str, Any], quiet: bool) -> Dictionary:
    """Call the library with a progress display, which is taken down in any case; SIGTERM is a Ctrl-C."""
    from kruskal.cli.errors import interrupted, named_by_options, terminable
    from kruskal.engines.progress import choose
    from kruskal.learning import learn as learn_dictionary

    progress = choose(quiet)
    with ExitStack() as stack:
        stack.callback(progress.stop)
        stack.enter_context(terminable())
        stack.enter_context(named_by_options(" and ".join(map(str, files))))
        try:
            return learn_dictionary(
                [inputs.loaded.values for inputs in read],
                [inputs.observed for inputs in read],
                progress=progress,
                **settings,
            )
        except KeyboardInterrupt as error:
            raise interrupted(error) from None


def _colour(read: list[Inputs]) -> bool:
    return all(inputs.loaded.values.shape[-1] == 3 for inputs in read)


def _tell(learned: Dictionary, written: list[Path], json: bool, quiet: bool) -> None:
    """Print what was learned, as the user wants it."""
    from kruskal.cli.info import describe_dictionary
    from kruskal.cli.summary import json_ready

    if json:
        found = json_ready(describe_dictionary(written[0], learned))
        typer.echo(json_format.dumps(found, allow_nan=False))
    elif not quiet:
        used = int((learned.usage > 0).sum())
        sweeps = options.counted(len(learned.trace["noise_std"]), "sweep")
        patches = options.counted(learned.n_items, "patch", "patches")
        typer.echo(f"{learned.model}: {sweeps} over {patches} of {options.shape_text(learned.shape)}")
        typer.echo(f"noise {learned.noise_std:.4g}, {used} of {learned.n_atoms} atoms used")
        typer.echo(f"written: {', '.join(map(str, written))}")
