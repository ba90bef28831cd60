"""Pictures of a fitted deep model: reconstructed, completed, sampled, and those of its atoms."""

from typing import Any

import numpy as np

from kruskal.data import observed_entries, real_array
from kruskal.deep.completion import Beliefs, complete_images
from kruskal.deep.pictures import draw_top_weights, pixel_atoms, uniform_cells
from kruskal.deep.synthesis import synthesise
from kruskal.engines.deep_features import run_chain, visit_images
from kruskal.errors import InputError, check_seed, one_of, whole_number
from kruskal.estimators.deep_fit import Fitted
from kruskal.estimators.deep_settings import Images, check_images, refuse_others
from kruskal.estimators.scikit import ScikitEstimator
from kruskal.random import Stream, generator

PRIORS = ("joint", "independent")


class Pictures(ScikitEstimator):
    """The generative side of `kruskal.DGDN`."""

    image_shape: Any
    seed: int
    threads: int | None
    _fitted: Fitted
    _given: Images
    _beliefs: Beliefs

    def reconstruct(self, X: Any) -> np.ndarray:
        """What the pass downwards makes of the pass upwards, in the form of X.

        Whole numbers come back divided by the largest of their type, so that pictures are about in [0, 1].
        """
        self._need_generative("reconstruct")
        images, fitted = self._check(X), self._fitted
        network, dense = fitted.model.network, fitted.dense

        def visit(part: np.ndarray, items: np.ndarray) -> np.ndarray:
            found = run_chain(fitted.model, fitted.expectation, dense, part, items, 0, check_seed(self.seed))
            return synthesise(network, dense, found.features, found.places).image

        return images.like(visit_images(visit, images.values, self.threads))

    def inpaint(self, X: Any, observed: Any = None, rounds: int = 2, steps: int = 20) -> np.ndarray:
        """X with the entries where ``observed`` is False, or that are NaN, filled in.

        See `kruskal.deep.completion` for how. ``observed`` has the shape of X, or holds for all channels.
        Whole numbers come back divided by the largest of their type, as the model sees them.

        Top weights are improved in ``rounds`` rounds of ``steps`` steps, the cells are chosen anew in each.
        """
        self._need_generative("inpaint")
        mask = observed_entries(X, observed, may_be_none=True, stacked=True, name="X", mask_name="observed")
        values = real_array(X, "X")
        if np.asarray(X).dtype == bool:
            values = values.astype(np.float32)  # as elsewhere, not whole numbers up to 255
        images = self._check(np.where(mask, values, np.zeros((), values.dtype)))
        mask = mask.reshape(images.values.shape)
        rounds, steps = whole_number("rounds", rounds, 1), whole_number("steps", steps, 1)
        fitted = self._fitted

        def visit(part: np.ndarray, items: np.ndarray) -> np.ndarray:
            return complete_images(
                fitted.model.network, fitted.dense, part, mask[items], self._beliefs, rounds, steps
            )

        filled = images.like(visit_images(visit, images.values, self.threads))
        return np.where(mask.reshape(filled.shape), values / (images.divisor or 1), filled)

    def sample(self, n_samples: int = 1, prior: str = "joint", seed: int | None = None) -> np.ndarray:
        """New images: top weights as those of the training images, every cell of a block equally likely.

        ``joint`` top weights have the mean and covariance of the training images', ``independent`` ones each
        their share of zeros and their mean and spread. Without a ``seed`` it is that of the model.
        """
        one_of("prior", prior, PRIORS)
        self._need_generative("sample")
        fitted = self._fitted
        random = generator(check_seed(self.seed if seed is None else seed), Stream.DEEP_SAMPLES, 0)
        n_samples = whole_number("n_samples", n_samples, 1)
        features = draw_top_weights(self._beliefs.prior, prior, n_samples, fitted.expectation is None, random)
        places = uniform_cells(fitted.model.network, n_samples, random)
        image = synthesise(fitted.model.network, fitted.dense, features.astype(np.float32), places).image
        return self._given.like(image)

    def pixel_atoms(self, layer: int) -> np.ndarray:
        """Atoms of layer 1, 2, .. as pictures (K, height, width, C)."""
        self.refuse_unfitted()
        network = self._fitted.model.network
        layer = whole_number("layer", layer, 1, network.n_layers)
        return pixel_atoms(network, self._fitted.dense, layer - 1)

    def _check(self, X: Any) -> Images:
        self.refuse_unfitted()
        images = check_images(X, self.image_shape)
        refuse_others(np.asarray(X), images, self._given)
        return images.centred(self._given.offset)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "_fitted")

    def _is_generative(self) -> bool:
        return self._fitted.model.terms.generative > 0.0 or self._fitted.expectation is not None

    def _need_generative(self, what: str) -> None:
        self.refuse_unfitted()
        if not self._is_generative():
            raise InputError(f"{what} needs a model with generative above 0, not 0: this one only classifies")
