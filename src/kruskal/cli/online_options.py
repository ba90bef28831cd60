"""The options of learning online: from one batch of patches at a time."""

from __future__ import annotations

from typing import Annotated

import typer

from kruskal.cli import options
from kruskal.cli.options import RUN

Online = Annotated[
    bool,
    typer.Option(
        "--online",
        help="Learn from one batch of patches at a time; for large arrays.",
        rich_help_panel=RUN,
    ),
]
SurrogateName = Annotated[
    options.Surrogate | None,
    typer.Option(
        help="What is remembered of the other batches, with --online: exact sums, the paper's (cdf), or "
        "the paper's replaced at each visit.",
        show_default="exact",
        rich_help_panel=RUN,
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Patches per batch, with --online or --out-of-core.",
        show_default="20000, or 5000 for cdf and out of core",
        rich_help_panel=RUN,
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Visits to every batch, with --online (half of them, or --burn-in, are not kept), or to every "
        "block, with --out-of-core.",
        show_default="10, or 2 and more out of core",
        rich_help_panel=RUN,
    ),
]
Passes = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Sweeps over a batch at a visit, with --online.",
        show_default="1, or 3 for cdf",
        rich_help_panel=RUN,
    ),
]
