"""The commands classify train and classify predict."""

from __future__ import annotations

import csv
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kruskal.cli import options
from kruskal.cli.classify_options import (
    Colour,
    Features,
    Model,
    Part,
    Usage,
    accuracy,
    chosen_layers,
    chosen_part,
    described,
    kruskal_rank,
    made_alike,
    numbers,
    picture_size,
    shapes,
    split,
    tell,
)
from kruskal.cli.errors import named_by_options, told_after
from kruskal.cli.options import INPUT, MODEL, OUTPUT, RUN

if TYPE_CHECKING:
    from kruskal.data import LabelledPictures
    from kruskal.estimators.picture_classifier import PictureClassifier

app = typer.Typer(
    help="Learn classes of pictures, and tell the classes of others.", invoke_without_command=True
)


Pictures = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        show_default=False,
        help="Folder with one subfolder of pictures per class, npz with X and y, or folder of MNIST's files.",
    ),
]


@app.callback()
def _classify(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("train")
def train(
    pictures: Pictures,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL.npz", show_default=False, help="Where the model goes."),
    ],
    size: Annotated[
        str | None, typer.Option(metavar="28|28x28", help="Resize all pictures.", rich_help_panel=INPUT)
    ] = None,
    colour: Annotated[
        Colour | None, typer.Option(help="Make all pictures grey or colour.", rich_help_panel=INPUT)
    ] = None,
    contrast: Annotated[
        bool, typer.Option("--contrast", help="Normalise the local contrast.", rich_help_panel=INPUT)
    ] = False,
    per_class: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default="all",
            help="Pictures of each class to learn from; up to 50 of the others are a test.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    model: Annotated[
        Model, typer.Option(help="Kruskal atoms or free ones.", rich_help_panel=MODEL)
    ] = Model.ckfa,
    atoms: Annotated[
        str, typer.Option(metavar="K,K,..", help="Atoms of every layer, at most.", rich_help_panel=MODEL)
    ] = "50,200",
    atom_size: Annotated[
        str,
        typer.Option(metavar="8x8,6x6,..", help="Size of the atoms of every layer.", rich_help_panel=MODEL),
    ] = "8x8,6x6",
    pooling: Annotated[
        str,
        typer.Option(
            metavar="3x3,..",
            help="Blocks after every layer; after the last one if it has an entry.",
            rich_help_panel=MODEL,
        ),
    ] = "3x3",
    rank: Annotated[
        int | None,
        typer.Option(metavar="R", show_default="1", help="Terms of a Kruskal atom.", rich_help_panel=MODEL),
    ] = None,
    usage: Annotated[
        Usage,
        typer.Option(help="All pictures use the atoms alike, or each in its own way.", rich_help_panel=MODEL),
    ] = Usage.shared,
    features: Annotated[
        Features, typer.Option(help="One pass, or Gibbs averages.", rich_help_panel=MODEL)
    ] = Features.bottom_up,
    feature_layers: Annotated[
        str | None,
        typer.Option(metavar="1,2", show_default="all", help="Layers to classify by.", rich_help_panel=MODEL),
    ] = None,
    cost: Annotated[
        float, typer.Option(metavar="C", help="Weight of the errors of the SVM.", rich_help_panel=MODEL)
    ] = 0.03,
    sweeps: Annotated[int, typer.Option(metavar="N", help="Sweeps per layer.", rich_help_panel=RUN)] = 30,
    learn_from: Annotated[
        int,
        typer.Option(metavar="N", help="Pictures that atoms are learned from, at most.", rich_help_panel=RUN),
    ] = 2000,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.", rich_help_panel=RUN)] = 0,
    threads: options.Threads = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for pictures of the atoms of every layer.", rich_help_panel=OUTPUT
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn a deep model of pictures without their classes, and then the classes on its features."""
    layers: dict[str, Any] = {
        "n_atoms": numbers(atoms, "--atoms"),
        "atom_sizes": shapes(atom_size, "--atom-size"),
        "pooling": shapes(pooling, "--pooling") if pooling.strip() else (),
        "sweeps": sweeps, "usage": usage.value, "features": features.value, "n_training": learn_from,
        "seed": seed, "threads": threads, **kruskal_rank(rank, model),
    }  # fmt: skip
    chosen = chosen_layers(feature_layers, len(layers["n_atoms"]))

    from kruskal.cli.checks import check_apart, check_output

    check_output(output, ".npz", [pictures], figures)
    if figures is not None:  # atoms among the pictures would be learned from the next time
        check_apart(f"--figures {figures}", figures, {str(pictures): pictures}, ())

    from kruskal.data import labelled_pictures

    shape, tint = picture_size(size), None if colour is None else colour.value
    with named_by_options(pictures):
        labelled = labelled_pictures(pictures, size=shape, colour=tint)
    used, rest = split(labelled, per_class, seed)
    with named_by_options(pictures):
        classifier = _train(labelled, used, layers, chosen, contrast, cost, quiet, threads)
    classifier.save(output)
    written = [output]
    if figures is not None:
        _draw(classifier, figures)
        written.append(figures)
    with told_after(written):
        tell(described(classifier, labelled, used, rest, written), json, quiet)


@app.command("predict")
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL.npz", show_default=False, help="What train wrote.")],
    pictures: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            show_default=False,
            help="As for train, or a plain folder of pictures, or an npz with X.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="LABELS.csv", show_default=False, help="Where the classes go."
        ),
    ],
    part: Annotated[
        Part | None,
        typer.Option(show_default="test", help="Which of MNIST's files.", rich_help_panel=INPUT),
    ] = None,
    threads: options.Threads = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Tell the classes of pictures: a csv file with the name, the class and its decision."""
    from kruskal.cli.checks import check_output

    check_output(output, ".csv", [model, pictures])
    chosen = chosen_part(part, pictures)

    from kruskal.data.atomic import atomic_path
    from kruskal.data.unlabelled import named_pictures
    from kruskal.estimators.picture_classifier import PictureClassifier

    classifier = PictureClassifier.load(model, threads)
    rows, columns, channels = classifier.image_shape
    colour = {1: "grey", 3: "colour"}.get(channels)
    with named_by_options(pictures):
        found = named_pictures(pictures, size=(rows, columns), colour=colour, part=chosen)
        notes = [
            *made_alike(found.given, classifier.image_shape),
            *classifier.doubts(found.X, found.given.types),
        ]
        decided = classifier.decide(found.X)
    best = decided.argmax(axis=1)
    predicted = classifier.classes_[best].tolist()
    with atomic_path(output) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["picture", "class", "decision"])
        for n, name in enumerate(found.names):
            writer.writerow([name, predicted[n], f"{decided[n, best[n]]:.6g}"])
    told: dict[str, Any] = {"pictures": len(predicted), "written": [str(output)]}
    if found.labels is not None:
        share, more = accuracy(predicted, found.labels, classifier.classes_.tolist())
        told, notes = told | share, notes + more
    with told_after([output]):
        tell(told | ({"note": "; ".join(notes)} if notes else {}), json, quiet)


def _train(
    labelled: LabelledPictures, used: list[int], layers: dict[str, Any], chosen: list[int], contrast: bool,
    cost: float, quiet: bool, threads: int | None,
) -> PictureClassifier:  # fmt: skip
    """Call the library with a progress display, which is taken down in any case; SIGTERM is a Ctrl-C."""
    import numpy as np

    from kruskal.cli.errors import interrupted, terminable
    from kruskal.engines.progress import choose
    from kruskal.estimators.deep import DeepCFA, DeepCKFA
    from kruskal.estimators.picture_classifier import PictureClassifier
    from kruskal.estimators.svm import BayesianSVM

    progress = choose(quiet)
    with ExitStack() as stack:
        stack.callback(progress.stop)
        stack.enter_context(terminable())
        deep = (DeepCKFA if "rank" in layers else DeepCFA)(**layers, progress=progress)
        svm = BayesianSVM(C=cost, calibration_folds=0, threads=threads)
        names = np.array(labelled.classes)[labelled.y[used]]
        try:
            classifier = PictureClassifier(deep, svm, layers=chosen, contrast=contrast)
            return classifier.fit(labelled.X[used], names, labelled.given.types)
        except KeyboardInterrupt as error:
            raise interrupted(error) from None


def _draw(classifier: PictureClassifier, figures: Path) -> None:
    """Pictures of the atoms of every layer."""
    from kruskal.report.layers import write_layers

    deep = classifier.deep
    atoms_of = [deep.pixel_atoms(number) for number in range(1, len(deep.layers_) + 1)]
    write_layers(figures, atoms_of, [layer.usage_ for layer in deep.layers_])
