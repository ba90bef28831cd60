"""The options that inpaint, denoise and learn share: what the model is, and how long the chain."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kruskal.cli import options
from kruskal.cli.options import INPUT, MODEL, RUN

FROM_ARRAY = "from the array"
MaskMeans = Annotated[
    options.MaskIs,
    typer.Option(help="What a true entry of the mask means.", rich_help_panel=INPUT),
]
MaskKeyName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of the array inside the mask file.", rich_help_panel=INPUT),
]
SettingName = Annotated[
    options.Setting,
    typer.Option(
        help="Our defaults, or the paper's patch, prior, rank, number of samples and averages.",
        rich_help_panel=MODEL,
    ),
]
ModelName = Annotated[
    options.Model,
    typer.Option(
        help="Kruskal atoms (kfa), free atoms (bpfa), or one Kruskal tensor for the whole array or, "
        "with --patch, for the stacked patches (mgp-cp).",
        rich_help_panel=MODEL,
    ),
]
AtomsName = Annotated[
    options.AtomModel,
    typer.Option(help="Kruskal atoms (kfa), or free atoms (bpfa).", rich_help_panel=MODEL),
]
Patch = Annotated[
    str | None,
    typer.Option(metavar="8x8", help="Shape of a patch.", show_default=FROM_ARRAY, rich_help_panel=MODEL),
]
Stride = Annotated[
    str | None,
    typer.Option(
        metavar="1|1x1x3",
        help="Step between patches, for all axes or for each.",
        show_default=FROM_ARRAY,
        rich_help_panel=MODEL,
    ),
]
OutOfCore = Annotated[
    bool,
    typer.Option(
        "--out-of-core",
        help="Leave the array on the disk and restore it block by block (zarr and npy).",
        show_default="above 33 million entries",
        rich_help_panel=RUN,
    ),
]
Block = Annotated[
    str | None,
    typer.Option(
        metavar="128x128x64",
        help="Shape of a block, with --out-of-core; memory follows from it.",
        show_default="about a million entries",
        rich_help_panel=RUN,
    ),
]
ChannelsWord = Annotated[
    options.Channels | None,
    typer.Option(
        help="Keep a short last axis (colour) whole in every patch, cut it like others, or take it apart.",
        show_default=FROM_ARRAY,
        rich_help_panel=MODEL,
    ),
]
Atoms = Annotated[
    int | None,
    typer.Option(
        metavar="K", help="Number of atoms, at most.", show_default=FROM_ARRAY, rich_help_panel=MODEL
    ),
]
Rank = Annotated[
    str,
    typer.Option(
        metavar="auto|N",
        help="Largest tensor rank of an atom, or of the tensor (mgp-cp).",
        rich_help_panel=MODEL,
    ),
]
Alpha = Annotated[
    str,
    typer.Option(
        metavar="sample|map|VALUE", help="Shrinkage of the rank (kfa, mgp-cp).", rich_help_panel=MODEL
    ),
]
UsagePrior = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Beta process prior of the usage; a larger B is sparser, the paper has K,1.",
        show_default=FROM_ARRAY,
        rich_help_panel=MODEL,
    ),
]
Sparsity = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="The prior's B per patch instead: 0 is the paper's, larger is sparser.",
        show_default=FROM_ARRAY,
        rich_help_panel=MODEL,
    ),
]
Regions = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Groups of patches with a usage of their own; 1 is the paper's model.",
        show_default="up to 64",
        rich_help_panel=MODEL,
    ),
]
GroupingWord = Annotated[
    options.Grouping | None,
    typer.Option(
        help="Which patches make a region: neighbours, or those that look alike.",
        show_default="likeness for noisy data",
        rich_help_panel=MODEL,
    ),
]
Counts = Annotated[
    bool,
    typer.Option(
        "--counts",
        help="The entries are counts, such as photons, 1 for each, whose noise grows with them. Restored "
        "ones are not whole: files but pictures hold them as float32.",
        rich_help_panel=MODEL,
    ),
]
CodesWord = Annotated[options.Codes, typer.Option(help="How the codes are drawn.", rich_help_panel=MODEL)]
Sweeps = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of Gibbs sweeps.",
        show_default="48 to 300, by data and model",
        rich_help_panel=RUN,
    ),
]
BurnIn = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Sweeps that are not kept.",
        show_default="half of --sweeps, or the paper's 40",
        rich_help_panel=RUN,
    ),
]
Annealing = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Sweeps of the burn-in in which the noise is kept large and sinks slowly.",
        show_default=FROM_ARRAY,
        rich_help_panel=RUN,
    ),
]
StartName = Annotated[options.Start, typer.Option(help="First dictionary.", rich_help_panel=RUN)]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all draws.", rich_help_panel=RUN)]


def as_settings(
    *,
    setting: options.Setting,
    model: options.Model | options.AtomModel,
    patch: str | None,
    stride: str | None,
    channels: options.Channels | None,
    atoms: int | None,
    rank: str,
    alpha: str,
    usage_prior: str | None,
    sparsity: float | None,
    regions: int | None,
    codes: options.Codes,
    sweeps: int | None,
    burn_in: int | None,
    annealing: int | None,
    start: options.Start,
    seed: int,
    threads: int | None,
) -> dict[str, Any]:
    """Understand the words of the user; keyword arguments of `kruskal.inpaint` and `kruskal.learn`."""
    return {
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
        "codes": codes.value,
        "sweeps": options.at_least(sweeps, 1, "--sweeps"),
        "burn_in": options.at_least(burn_in, 0, "--burn-in"),
        "annealing": options.at_least(annealing, 0, "--annealing"),
        "start": start.value,
        "seed": options.at_least(seed, 0, "--seed"),
        "threads": options.at_least(threads, 1, "--threads"),
    }
