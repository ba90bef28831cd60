"""What a deep model is told: options checked, images and labels as the engines take them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kruskal.data import Scaling, refuse_huge, refuse_infinite, refuse_tiny
from kruskal.data.masks import refuse_masked
from kruskal.deep.network import Network, build_network
from kruskal.deep.objective import Terms
from kruskal.deep.rmsprop import Schedule
from kruskal.engines.progress import check_progress
from kruskal.errors import (
    InputError,
    check_seed,
    flag,
    not_negative,
    one_of,
    positive_number,
    shown,
    whole_number,
)
from kruskal.estimators.classifier import check_labels, label_array
from kruskal.estimators.deep_seen import check_seen
from kruskal.estimators.image_batches import pair_of_sizes
from kruskal.estimators.items import check_below_one
from kruskal.estimators.svm import BayesianSVM
from kruskal.gibbs.local import MOST_ATOMS
from kruskal.models.dgdn import DeepModel
from kruskal.tensor import refuse_impossible_rank

METHODS = ("gradient", "mcem")
CELLS = ("largest", "drawn")
ATOMS = ("gaussian", "kruskal")
SVMS = ("trained", "em", "stochastic", "gibbs")
RATES = {"gaussian": 5e-3, "kruskal": 1e-2}
NO_LABEL = -1
LARGEST_VALUE = 1e15
"""Of images; their squares are summed in float32."""
_MEDIAN_IMAGES = 1_000
_LIKE_A_PICTURE = (0.1, 2.0)
"""The largest of floats after which whole numbers, divided by the largest of their type, are taken."""
SMALLEST_SHARE = 1e-3
"""Of the range of their type that whole numbers have to use."""


class Images(NamedTuple):
    """Images as the engines take them, and how they were given.

    Attributes
    ----------
    values : (N, M_x, M_y C) float32;  shape : (M_x, M_y, C);  flat, grey : of what was given
    divisor : what whole numbers and flags were divided by, the largest of their type; 0 for floats
    largest : of the floats
    offset : what was subtracted from the values
    """

    values: np.ndarray
    shape: tuple[int, int, int]
    flat: bool
    grey: bool
    divisor: int = 0
    largest: float = 1.0
    offset: float = 0.0

    def offset_to_take(self, generative: bool) -> float:
        """What a model is to subtract from images like these.

        That of `kruskal.data.Scaling`, other than 0 where they lie far from it: their mean would take up the
        atoms, and swing with every step of the training. Where images are made of atoms, too, the median,
        which is what is there without any: white on pictures of black strokes, 0 on those of white ones.
        """
        if generative:
            some = np.linspace(0, len(self.values) - 1, min(_MEDIAN_IMAGES, len(self.values))).astype(int)
            return float(np.median(self.values[some]))
        return Scaling.fit(self.values, np.broadcast_to(True, self.values.shape)).offset

    def centred(self, offset: float) -> "Images":
        """These images less an offset."""
        if offset == 0.0:
            return self
        return self._replace(values=self.values - np.float32(offset), offset=offset)

    def like(self, values: np.ndarray) -> np.ndarray:
        """Other images (n, M_x, M_y C), as the model makes them, in the form in which these were given."""
        if self.offset:
            values = values + values.dtype.type(self.offset)
        if self.flat:
            return values.reshape(len(values), -1)
        return values.reshape(len(values), *(self.shape[:2] if self.grey else self.shape))


def check_images(X: Any, image_shape: Sequence[int] | None, name: str = "X") -> Images:
    """Images (N, M_x, M_y), (N, M_x, M_y, C), or rows (N, d) together with their shape.

    Whole numbers are divided by the largest of their type, so that a picture's are in [0, 1].
    """
    refuse_masked(X, name)
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{name} is not an array: its rows differ in length") from error
    if array.dtype.kind not in "buif":
        raise InputError(f"{name} has entries of type {array.dtype}, expected real numbers")
    flat = array.ndim == 2 and image_shape is not None
    if flat:
        image_shape = _image_shape(image_shape)
        if array.shape[1] != math.prod(image_shape):
            raise InputError(
                f"{name} has {array.shape[1]} numbers per image, expected {math.prod(image_shape)} "
                f"for image_shape {tuple(image_shape)}"
            )
        array = array.reshape(len(array), *image_shape)
    if array.ndim in (3, 4) and len(array) == 0:
        raise InputError(f"{name} holds no images (shape {array.shape}), expected at least one")
    grey = array.ndim == 3
    if array.ndim not in (3, 4) or array.size == 0:
        raise InputError(
            f"{name} has shape {array.shape}, expected images (N, rows, columns) or (N, rows, columns, "
            "channels), or rows of numbers together with image_shape"
        )
    shape = (*array.shape[1:3], 1 if grey else array.shape[3])
    if image_shape is not None and (*_image_shape(image_shape), 1)[:3] != shape:
        raise InputError(
            f"{name} has images of shape {shape}, but image_shape is {image_shape!r}: leave image_shape out, "
            "or give it for images that are rows of numbers"
        )
    divisor, largest = 0, 1.0
    if array.dtype.kind == "f":
        refuse_infinite(array, name)
        refuse_huge(array, name, LARGEST_VALUE)
        values, largest = array.astype(np.float32), float(np.abs(array).max())
    else:
        divisor = 1 if array.dtype == bool else int(np.iinfo(array.dtype).max)
        values = array.astype(np.float32) / np.float32(divisor)
    values = np.ascontiguousarray(values).reshape(len(array), shape[0], -1)
    return Images(values, shape, flat, grey, divisor, largest)


def refuse_small(given: np.ndarray, images: Images, name: str = "X") -> None:
    """Complain about images that are next to zero, whole numbers after they were divided."""
    if given.dtype.kind == "f":
        refuse_tiny(given, name, 1.0 / LARGEST_VALUE)
    elif images.divisor and 0.0 < float(np.abs(images.values).max()) < SMALLEST_SHARE:
        raise InputError(
            f"{name} has whole numbers up to {np.abs(given).max()} of type {given.dtype}, by whose largest "
            "number they are divided, expected a smaller type such as uint8, or floats"
        )


def refuse_others(given: np.ndarray, images: Images, learned: Images, name: str = "X") -> None:
    """Complain about images of another shape or scale than those that are or were learned from."""
    if images.shape != learned.shape:
        raise InputError(f"{name} has images of shape {images.shape}, expected {learned.shape}")
    if not images.divisor:
        return
    if learned.divisor and images.divisor != learned.divisor:
        raise InputError(
            f"{name} is of type {given.dtype}, so it is divided by {images.divisor}, but what was learned "
            f"from was divided by {learned.divisor}: expected the same type, or floats"
        )
    if not learned.divisor:
        refuse_small(given, images, name)
        if not _LIKE_A_PICTURE[0] <= learned.largest <= _LIKE_A_PICTURE[1]:
            raise InputError(
                f"{name} is of type {given.dtype}, so it is divided by {images.divisor}, but what was "
                f"learned from are floats up to {learned.largest:g}: expected floats"
            )


def check_partial_labels(y: Any, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes (Y,), and the index of the class (N,) of every image: -1 where there is no label.

    No label is None, or -1 among whole numbers; no labels at all are no classes.
    """
    if y is None:
        return np.zeros(0), np.full(n_items, NO_LABEL)
    labels, known = labels_and_gaps(y, n_items)
    index = np.full(n_items, NO_LABEL)
    if not known.any():
        return np.zeros(0), index
    found = labels[known].tolist()
    if not known.all() and len(set(found)) == 1:
        raise InputError(
            f"y has one class only ({found[0]!r}) where it has labels (-1 and None are none), expected at "
            "least two classes"
        )
    classes, index[known] = check_labels(found, int(known.sum()))
    return classes, index


def labels_and_gaps(y: Any, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels (N,) as an array, and which of them are there (N,)."""
    masked = np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else False
    labels = label_array(y.data if isinstance(y, np.ma.MaskedArray) else y)
    if labels.ndim != 1 or len(labels) != n_items:
        raise InputError(f"y has shape {labels.shape}, expected one label for each image, shape ({n_items},)")
    if labels.dtype.kind != "O":
        known = labels != NO_LABEL if labels.dtype.kind in "if" else np.ones(n_items, bool)
        return labels, known & ~np.asarray(masked)
    known = np.array([label is not None and not _is_minus_one(label) for label in labels], dtype=bool)
    known &= ~np.asarray(masked)
    if len({isinstance(label, str) for label in labels[known]}) > 1:
        raise InputError("y mixes strings with other labels, expected all numbers or all strings")
    return labels, known


def check_validation(
    validation: Any, images: Images, classes: np.ndarray, image_shape: Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Images (n, M_x, M_y C), centred as ``images``, and the index of their class (n,), or None."""
    if validation is None:
        return None
    try:
        X, y = validation
    except (TypeError, ValueError):
        raise InputError("validation must be a pair of images and labels") from None
    others, labels = check_images(X, image_shape, "validation"), label_array(y, "validation")
    refuse_others(np.asarray(X), others, images, "validation")
    if len(classes) == 0:
        raise InputError("validation has labels, but y has none: there is nothing to validate")
    try:
        index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = index.shape == (len(others.values),) and np.array_equal(classes[index], labels)
    except TypeError:  # labels that cannot be ordered, such as None
        known = False
    if not known:
        raise InputError("validation has labels that are not among those of y, or not one for each image")
    return others.centred(images.offset).values, index


def _image_shape(image_shape: Any) -> tuple[int, ...]:
    try:
        shape = tuple(whole_number("image_shape", size, 1) for size in image_shape)
    except (TypeError, InputError):
        shape = ()
    if len(shape) not in (2, 3):
        raise InputError(
            f"image_shape must be (rows, columns) or (rows, columns, channels), not {shown(image_shape)}"
        )
    return shape


def _is_minus_one(label: Any) -> bool:
    return isinstance(label, (int, float, np.number)) and label == NO_LABEL


def build_model(options: dict[str, Any], shape: tuple[int, int, int], n_classes: int) -> DeepModel:
    """The model that the options of an estimator describe."""
    one_of("atoms", options["atoms"], ATOMS)
    one_of("cells", options["cells"], CELLS)
    network = _network(options, shape, n_classes)
    rank = whole_number("rank", options["rank"], 1) if options["atoms"] == "kruskal" else 0
    for number, layout in enumerate(network.layers, 1):
        refuse_impossible_rank(rank, layout.atom_shape, f" of layer {number}")
    sharpness = positive_number("sharpness", options["sharpness"])
    generative = not_negative("generative", options["generative"])
    if options["method"] == "gradient" and n_classes == 0 and generative == 0.0:
        raise InputError("generative is 0 and y has no labels, expected labels or generative above 0")
    return DeepModel(
        network=network,
        rank=rank,
        terms=Terms(positive_number("hinge", options["hinge"]), generative),
        weight_decay=not_negative("weight_decay", options["weight_decay"]),
        dropout=check_below_one("dropout", options["dropout"]),
        sharpness=sharpness if options["cells"] == "drawn" else math.inf,
    )


def build_schedule(options: dict[str, Any], n_images: int) -> tuple[Schedule, int]:
    """The schedule of the optimiser, and the size of a minibatch."""
    batch_size = whole_number("batch_size", options["batch_size"], 1)
    epochs = int(options["epochs"])
    least = whole_number("least_steps", options["least_steps"], 0)
    steps_per_epoch = -(-n_images // batch_size)
    total = steps_per_epoch * max(epochs, -(-least // steps_per_epoch)) if epochs else 0
    rate = options["learning_rate"]
    return Schedule(
        rate=RATES[options["atoms"]] if rate is None else positive_number("learning_rate", rate),
        total=total,
        warm_up=whole_number("warm_up", options["warm_up"], 0),
        averaging=check_below_one("averaging", options["averaging"]),
    ), batch_size


def check_options(options: dict[str, Any]) -> None:
    """Whatever can be checked before the data are seen."""
    one_of("method", options["method"], METHODS)
    one_of("svm", options["svm"], SVMS)
    one_of("atoms", options["atoms"], tuple(RATES))
    whole_number("rank", options["rank"], 1)
    whole_number("epochs", options["epochs"], 1 if options["start"] is None else 0)
    whole_number("chains", options["chains"], 1)
    flag("pretrain", options["pretrain"])
    whole_number("pretrain_images", options["pretrain_images"], 1)
    whole_number("pretrain_sweeps", options["pretrain_sweeps"], 1)
    check_seen(options)
    own = options["svm_options"]
    if not isinstance(own, dict | None) or not all(isinstance(name, str) for name in own or ()):
        raise InputError(f"svm_options must be a dictionary of options by name, or None, not {shown(own)}")
    if options["svm"] != "trained":
        support_vector_machine(options).check_parameters()
    elif own:
        raise InputError(
            f"svm_options is {shown(own)}, but svm is 'trained': no machine is fitted, expected svm "
            f"{', '.join(map(repr, SVMS[1:]))}, or no svm_options"
        )
    check_seed(options["seed"])
    check_progress(options["progress"])
    positive_number("checkpoint_seconds", options["checkpoint_seconds"])
    folder = options["checkpoint"]
    if folder is not None and (not isinstance(folder, (str, Path)) or not str(folder)):
        raise InputError(
            f"checkpoint must be the path of a folder or None, not {shown(options['checkpoint'])}"
        )


def support_vector_machine(options: dict[str, Any]) -> BayesianSVM:
    """The one that is fitted after the training, with the user's ``svm_options``."""
    own = {"method": options["svm"], "seed": options["seed"], "threads": options["threads"]}
    given = options["svm_options"] or {}
    if given.get("method", options["svm"]) != options["svm"]:
        raise InputError(
            f"svm is {options['svm']!r}, but svm_options has the method {shown(given['method'])}: "
            "expected it to be named once, by svm"
        )
    return BayesianSVM().set_params(**(own | given))


def _network(options: dict[str, Any], shape: tuple[int, int, int], n_classes: int) -> Network:
    try:
        n_atoms = [whole_number("n_atoms", number, 1, MOST_ATOMS) for number in options["n_atoms"]]
        sizes = [pair_of_sizes("atom_sizes", size) for size in options["atom_sizes"]]
        poolings = [pair_of_sizes("pooling", size) for size in options["pooling"]]
    except TypeError as error:
        raise InputError("n_atoms, atom_sizes and pooling must be lists with one entry per layer") from error
    if options["method"] == "mcem" and len(n_atoms) != 2:
        raise InputError(f"method 'mcem' is for 2 layers, but n_atoms has {len(n_atoms)}")
    return build_network(shape, n_atoms, sizes, poolings, n_classes)
