"""The command corrupt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kruskal.cli import options
from kruskal.cli.errors import named_by_options, told_after


def corrupt(
    input_file: options.InputFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.npz", show_default=False, help="Where it goes.")
    ],
    keep: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the entries that stay, above 0 and at most 1.")
    ] = 1.0,
    noise: Annotated[
        float, typer.Option(metavar="STD", help="Standard deviation of the noise, in the units of the data.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draws.")] = 0,
    key: options.KeyName = None,
) -> None:
    """Remove entries and add noise, for experiments; writes values and observed into one npz."""
    import numpy as np

    from kruskal import data
    from kruskal.cli.checks import check_output

    check_output(output, ".npz", [input_file])
    with named_by_options(input_file):
        loaded = data.read(input_file, key=key)
    values, declared = loaded.values, loaded.observed
    if declared is not None:
        values = np.ma.array(values, mask=~declared)
    with named_by_options(input_file):
        damaged = data.corrupt(values, keep=keep, noise=noise, seed=seed)
    data.write_corrupted(output, damaged.values, damaged.observed, like=loaded.metadata)
    with told_after([output]):
        typer.echo(
            f"{output}: {damaged.observed.sum()} of {damaged.observed.size} entries kept "
            f"({100 * damaged.observed.mean():.2f} %), noise {noise:g}, seed {seed}"
        )
