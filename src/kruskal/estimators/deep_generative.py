"""DGDN and KruskalDGDN: the supervised deep generative model as a classifier."""

import inspect
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import refuse_constant
from kruskal.deep.completion import Beliefs
from kruskal.deep.pictures import fit_top_prior
from kruskal.engines.progress import Progress
from kruskal.engines.tasks import blas_on_one_thread
from kruskal.engines.threads import check_threads
from kruskal.engines.training_run import DIVERGED
from kruskal.errors import InputError, not_negative
from kruskal.estimators.deep_decisions import Decisions
from kruskal.estimators.deep_fit import fit_deep
from kruskal.estimators.deep_pictures import Pictures
from kruskal.estimators.deep_seen import refuse_unseen, seen_by
from kruskal.estimators.deep_settings import (
    Images,
    build_model,
    check_images,
    check_options,
    check_partial_labels,
    check_validation,
    refuse_small,
)
from kruskal.estimators.deep_start import given_start
from kruskal.estimators.scikit import unchanged_on_failure
from kruskal.gibbs.precision import LARGEST

_PRIOR_IMAGES = 10_000
_MANY_FEATURES = 2_000  # of more the covariance would take long; they are told from fewer images
_PRIOR_NUMBERS = 2**22
_SEEN_ALIVE = 100  # training images of which one has to have a top weight
_DEAD = (
    "the training ended with all top weights 0, so that all images look the same to the model, expected "
    "another seed, a smaller learning_rate, or more atoms"
)


class DGDN(Pictures, Decisions):
    r"""Deep generative deconvolutional network, supervised by a Bayesian support vector machine.

    An image is a sum of atoms placed at sparse places; their weights, pooled, are the image of the next
    layer, up to the top weights, on which linear decisions are taken. Top weights come from one pass upwards
    without the label, the same in training and at test time (6.16); the hinge loss of the decisions and the
    squared residual of the pass downwards (6.17) are followed back through it to the atoms.

    Parameters
    ----------
    atoms : {"gaussian", "kruskal"};  rank : Kruskal terms R of an atom
    n_atoms : K per layer;  atom_sizes : a number or pair per layer;  pooling : the same, but for the last
        layer; blocks at the border may be partial
    image_shape : (rows, columns) or (rows, columns, channels) of images that are given as rows of numbers
    method : ``gradient``, or ``mcem``: the paper's literal Monte Carlo EM, where top weights are unknowns
        that see the label (two layers; for comparison). It has its own objective: ``generative``, ``hinge``,
        ``cells``, ``sharpness``, ``dropout`` and ``weight_decay`` do not matter then
    generative : kappa, the weight of the squared residual; with 0 the model classifies only
    hinge : nu = 2C, the weight of the hinge loss
    cells : ``largest``, or ``drawn`` with sharpness tau (6.15), in training and at test time; the draw of an
        image depends on its place in X
    sharpness : tau
    epochs, least_steps, batch_size : passes over the images, as many more as needed for so many steps
    learning_rate : eta; None: 0.01 for Kruskal, 0.005 for Gaussian atoms
    warm_up, averaging : see `kruskal.deep.rmsprop`
    dropout : of top weights, in training;  weight_decay : of beta
    pretrain : begin with atoms from Gibbs sampling layer by layer, ``pretrain_sweeps`` sweeps on
        ``pretrain_images`` images; else with random ones
    svm : ``trained`` keeps the decisions of the training; ``em``, ``stochastic`` or ``gibbs`` fits
        `kruskal.BayesianSVM` to the top weights, with ``svm_options``
    chains : at test time, where cells are drawn
    start : a fitted `kruskal.DeepCFA` or `kruskal.DeepCKFA`, or the path of its file, whose atoms training
        begins with, biases being 0; ``n_atoms``, ``atom_sizes`` and ``pooling`` are its. The size of images
        may be another; signs of its maps, its Gibbs features and the pooling of its last layer are not taken
        over. ``epochs`` may then be 0: only the support vector machine learns from labels
    decide_on : numbers of the layers whose weights a fitted ``svm`` sees, each reduced to ``places`` x
        ``places`` places, where the largest and the mean weight of an atom count; None: the top weights
    shift : these weights are means over an image and four copies, shifted by so many pixels along the
        diagonals, in training the machine and at test time
    copies : ``mean``, or ``apart``: the machine is trained on the weights of every copy as an item of its own
        (decisions are linear, so those at test time are means over the copies in any case)
    seed : int;  threads : int or None (all cores); results do not depend on it
    checkpoint : folder or None; a fit of the same data and options goes on from there, with the same result
    checkpoint_seconds : time between two checkpoints;  progress : listener or None

    Attributes
    ----------
    classes_ : (Y,)
    atoms_ : list of (K, m_x, m_y, C), the atoms of each layer
    coef_ : (Y, d);  intercept_ : (Y,), the decisions of the training
    svm_ : the fitted `kruskal.BayesianSVM`, unless ``svm`` is ``trained``
    temperature_ : t of `kruskal.models.temperature`, which makes decisions probabilities
    trace_ : per epoch: hinge, residual, training_error, validation_error; those of ``mcem`` but the last are
        of top weights that have seen the label
    n_dictionary_parameters_ : numbers that the atoms are made of;  seconds_ : of the training
    """

    def __init__(
        self,
        *,
        atoms: str = "gaussian",
        rank: int = 1,
        n_atoms: Any = (36, 152),
        atom_sizes: Any = (8, 6),
        pooling: Any = (3,),
        image_shape: Any = None,
        method: str = "gradient",
        generative: float = 0.0,
        hinge: float = 1.0,
        cells: str = "largest",
        sharpness: float = 16.0,
        epochs: int = 10,
        least_steps: int = 1000,
        batch_size: int = 100,
        learning_rate: float | None = None,
        warm_up: int = 100,
        averaging: float = 0.999,
        dropout: float = 0.3,
        weight_decay: float = 1e-4,
        pretrain: bool = False,
        pretrain_images: int = 300,
        pretrain_sweeps: int = 30,
        svm: str = "trained",
        svm_options: dict[str, Any] | None = None,
        chains: int = 5,
        start: Any = None,
        decide_on: Any = None,
        places: int = 3,
        shift: int = 0,
        copies: str = "mean",
        seed: int = 0,
        threads: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 60.0,
        progress: Progress | None = None,
    ) -> None:
        self.atoms = atoms
        self.rank = rank
        self.n_atoms = n_atoms
        self.atom_sizes = atom_sizes
        self.pooling = pooling
        self.image_shape = image_shape
        self.method = method
        self.generative = generative
        self.hinge = hinge
        self.cells = cells
        self.sharpness = sharpness
        self.epochs = epochs
        self.least_steps = least_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.warm_up = warm_up
        self.averaging = averaging
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.pretrain = pretrain
        self.pretrain_images = pretrain_images
        self.pretrain_sweeps = pretrain_sweeps
        self.svm = svm
        self.svm_options = svm_options
        self.chains = chains
        self.start = start
        self.decide_on = decide_on
        self.places = places
        self.shift = shift
        self.copies = copies
        self.seed = seed
        self.threads = threads
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.progress = progress

    def fit(self, X: Any, y: Any = None, validation: tuple[Any, Any] | None = None) -> "DGDN":
        """Fit to images X and labels y.

        Parameters
        ----------
        X : (N, rows, columns), (N, rows, columns, channels), or (N, d) with ``image_shape``
        y : (N,) labels; None, or -1 among numbers, where there is none: such images contribute their squared
            residual only. None at all: no images have labels.
        validation : other images and all their labels, for the trace and the scale of the probabilities
        """
        options = self._options()
        check_options(options)
        threads = check_threads(self.threads)
        given = given_start(options)
        images = check_images(X, self.image_shape)
        classes, labels = check_partial_labels(y, len(images.values))
        refuse_constant(np.asarray(X), None, "X")
        refuse_small(np.asarray(X), images)
        if given is not None:
            given = given.for_images(images)
            options |= given.sizes
        generative = options["method"] == "mcem" or not_negative("generative", self.generative) > 0.0
        offset = images.offset_to_take(generative) if given is None or generative else given.offset
        images = images.centred(offset)
        if given is not None:
            given = given.after(offset)
        other = check_validation(validation, images, classes, self.image_shape)
        if self.decide_on is not None:
            build_model(options, images.shape, len(classes))  # sizes that are impossible are told first
            refuse_unseen(options, images.shape)
        fitted = fit_deep(options, images, labels, len(classes), other, threads, given)
        with unchanged_on_failure(self):
            self.classes_, self._fitted = classes, fitted
            self._seen = seen_by(self.decide_on, self.places, self.shift)
            self._given = images._replace(values=images.values[:0].copy())
            self._keep(images, labels, other)
        return self

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SIGNATURE.parameters if name != "self"}

    def __sklearn_clone__(self) -> "DGDN":
        """An estimator with the same parameters, for scikit-learn; ``start`` stays fitted."""
        options = self.get_params(deep=False)
        return type(self)(
            **{name: options[name] if name == "start" else deepcopy(options[name]) for name in options}
        )

    def _keep(self, images: Images, labels: np.ndarray, other: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Read off what the fit found."""
        fitted, dense = self._fitted, self._fitted.dense
        self.trace_, self.seconds_ = fitted.trace, fitted.seconds
        self.n_dictionary_parameters_ = fitted.model.n_dictionary_parameters
        layers = zip(dense.dictionaries, fitted.model.network.layers)
        self.atoms_ = [atoms.reshape(-1, *layout.atom_shape).copy() for atoms, layout in layers]
        self.coef_, self.intercept_ = dense.weights.copy(), dense.bias.copy()
        for name in ("svm_", "temperature_"):
            self.__dict__.pop(name, None)
        some = np.linspace(0, len(images.values) - 1, min(_SEEN_ALIVE, len(images.values))).astype(int)
        if not self._top_weights(images.values[some]).any():
            raise InputError(_DEAD)
        if self._is_generative():  # a model that only classifies has no use for it
            self._beliefs = self._believe(images.values)
        if len(self.classes_):
            self._decide_by(images, labels, other)

    def _believe(self, images: np.ndarray) -> Beliefs:
        """What images and their top weights are like, from as many of them as memory and time allow."""
        n_features, size = self._fitted.model.network.n_features, images[0].size
        most = _PRIOR_IMAGES if n_features <= _MANY_FEATURES else max(2, _PRIOR_NUMBERS // n_features)
        some = np.linspace(0, len(images) - 1, min(most, len(images))).astype(int)
        features = self._top_weights(images[some])
        if not np.isfinite(features).all():
            raise InputError(DIVERGED)
        with blas_on_one_thread():
            prior = fit_top_prior(features)
        noise = 1.0
        if "residual" in self._fitted.trace:
            noise = size / max(float(self._fitted.trace["residual"][-1]), size / LARGEST)
        return Beliefs(prior, images.mean(axis=0), noise)


class KruskalDGDN(DGDN):
    """`DGDN` whose atoms are Kruskal tensors of rank ``rank`` in every layer; all other options are its."""

    def __init__(self, *, rank: int = 1, **options: Any) -> None:
        if "atoms" in options:
            raise InputError(
                "atoms is no parameter of KruskalDGDN, whose atoms are Kruskal tensors: use DGDN"
            )
        super().__init__(atoms="kruskal", rank=rank, **options)


_SIGNATURE = inspect.signature(DGDN.__init__)
KruskalDGDN.__init__.__signature__ = _SIGNATURE.replace(  # type: ignore[attr-defined]
    parameters=[one for one in _SIGNATURE.parameters.values() if one.name != "atoms"]
)
