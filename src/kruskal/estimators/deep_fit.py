"""The fit of a deep model: where it begins, and its training to the end."""

import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.deep.dense import Dense
from kruskal.engines.deep_features import top_weights
from kruskal.engines.mcem_training import MonteCarloTraining
from kruskal.engines.pretraining import pretrain
from kruskal.engines.progress import COMPILING, check_progress
from kruskal.engines.training import TRACED, Data, Training, part_threads
from kruskal.engines.training_files import digest_of
from kruskal.engines.training_run import Keeping, held, train
from kruskal.errors import InputError
from kruskal.estimators.deep_settings import Images, build_model, build_schedule
from kruskal.estimators.deep_start import Given
from kruskal.kernel import watch_compilation
from kruskal.models.dgdn import DeepModel, Start
from kruskal.models.mcem import MonteCarloEM
from kruskal.random import Stream, generator

_START_IMAGES = 100
"""Images from which the scales of the start are set: the first that are not all the same number."""
_NO_INFLUENCE = (
    "checkpoint", "checkpoint_seconds", "progress", "threads", "chains", "svm", "svm_options", "decide_on",
    "places", "shift", "copies", "start",
)  # fmt: skip
"""Options on which the training does not depend; the atoms of a start are looked at themselves."""


class Fitted(NamedTuple):
    """A trained model.

    Attributes
    ----------
    model : what was trained;  expectation : of the literal method, else None
    parameters : theta, averaged;  scales : constants of the layers
    trace : one value per epoch, by name;  seconds : of this process
    """

    model: DeepModel
    expectation: MonteCarloEM | None
    parameters: np.ndarray
    scales: tuple[float, ...]
    trace: dict[str, np.ndarray]
    seconds: float

    @property
    def dense(self) -> Dense:
        """The parameters as the passes take them."""
        return self.model.dense(self.parameters, self.scales)


def fit_deep(
    options: dict[str, Any],
    images: Images,
    labels: np.ndarray,
    n_classes: int,
    validation: tuple[np.ndarray, np.ndarray] | None,
    threads: int,
    given: Given | None = None,
) -> Fitted:
    """Train as the options of an estimator say.

    Parameters
    ----------
    options : all arguments of the estimator, checked but for those that depend on the data
    images, labels : (N,) index of the class, -1 for none;  n_classes : Y
    validation : other images (n, M_x, M_y C) and their classes, or None
    given : the atoms to begin with, or None
    """
    began = time.perf_counter()
    model = build_model(options, images.shape, n_classes)
    schedule, batch_size = build_schedule(options, len(images.values))
    seed, progress = int(options["seed"]), check_progress(options["progress"])
    signs = np.where(np.arange(n_classes) == labels[:, None], 1, -1).astype(np.float32)
    signs[labels < 0] = 0
    data = Data(images.values, signs)
    expectation = None
    if options["method"] == "mcem":
        expectation = MonteCarloEM(network=model.network)
    keeping = _keeping(options, images.values, labels, validation, given)
    with (
        held(keeping),
        watch_compilation(partial(progress.note, COMPILING)),
        part_threads(threads) as engine,
    ):
        start = _start(options, model, images.values, seed, threads, given)
        validate = None
        if validation is not None and n_classes:
            validate = partial(_error, model, expectation, *validation, seed, threads)
        common = (start, data, schedule, batch_size, seed, engine, validate)
        steps: Training | MonteCarloTraining = (
            Training(model, *common)
            if expectation is None
            else MonteCarloTraining(model, expectation, *common)
        )
        train(steps, schedule.total, keeping, progress)
    trace = {name: column for name, column in zip(TRACED, steps.now.trace.T) if not np.isnan(column).all()}
    seconds = time.perf_counter() - began
    return Fitted(model, expectation, steps.now.moving.average, start.scales, trace, seconds)


def _start(
    options: dict[str, Any],
    model: DeepModel,
    images: np.ndarray,
    seed: int,
    threads: int,
    given: Given | None,
) -> Start:
    """A random start, given atoms, or those of the layers' Gibbs samplers on some of the images."""
    varied = (n for n, image in enumerate(images) if (image != image.flat[0]).any())
    first = images[list(islice(varied, _START_IMAGES)) or slice(_START_IMAGES)]
    if given is not None:
        return model.start_from(first, seed, given.layers, bias=0.0)
    if not options["pretrain"]:
        return model.start(first, seed)
    random = generator(seed, Stream.DEEP_PRETRAINING, 2**32)
    number = min(int(options["pretrain_images"]), len(images))
    chosen = np.sort(random.choice(len(images), number, replace=False))
    atoms = pretrain(
        model.network, model.rank, images[chosen], int(options["pretrain_sweeps"]), seed, threads
    )
    return model.start_from(first, seed, atoms)


def _error(
    model: DeepModel,
    expectation: MonteCarloEM | None,
    images: np.ndarray,
    labels: np.ndarray,
    seed: int,
    threads: int,
    dense: Dense,
) -> float:
    """The share of images whose class is not found, with one chain."""
    features = top_weights(model, expectation, dense, images, 1, seed, threads)
    return float(np.mean((features @ dense.weights.T + dense.bias).argmax(axis=1) != labels))


def _keeping(
    options: dict[str, Any],
    images: np.ndarray,
    labels: np.ndarray,
    validation: tuple[np.ndarray, np.ndarray] | None,
    given: Given | None,
) -> Keeping:
    if options["checkpoint"] is None:
        return Keeping()
    directory = Path(options["checkpoint"])
    if not directory.parent.is_dir():
        raise InputError(f"checkpoint folder {directory} cannot be made: {directory.parent} does not exist")
    settings = {name: value for name, value in options.items() if name not in _NO_INFLUENCE}
    layers = [] if given is None else given.layers
    begun = [part for layer in layers for part in (layer.atoms, np.array(layer.offset))]
    digest = digest_of(settings, images, labels, *(validation or ()), *begun)
    return Keeping(directory, float(options["checkpoint_seconds"]), digest)
