"""MGP-CP as an object that is fitted: the Kruskal decomposition of one array with an inferred rank."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kruskal.data import real_array
from kruskal.errors import InputError
from kruskal.estimators.scikit import ScikitEstimator, refuse_mask
from kruskal.restoration import Restoration
from kruskal.restore import inpaint

_ARRAY = re.compile(r"^x\b|(?<=\bof )x\b|(?<=\blike )x\b")


class MGPCP(ScikitEstimator):
    """Bayesian Kruskal (CP) decomposition of an array of any order with missing entries and noise.

    Parameters
    ----------
    rank : most terms, or "auto"; how many the data need is inferred
    alpha : "sample", "map" or a number: the shrinkage of the weights
    sweeps, burn_in : length of the chain, and how many sweeps at its beginning are not kept
    annealing : the first sweeps of the burn-in, in which the noise is kept large and sinks slowly
        (default: 30, or none for clean complete data)
    start : "pca" or "random"
    seed, threads : as in `kruskal.inpaint`, which does the work

    Attributes
    ----------
    mean_, std_ : posterior mean and standard deviation of every entry
    weights_ : (rank_,) weights of the terms of the last draw, the strongest first
    factors_ : list of (m_t, rank_) for every axis longer than one, columns of unit norm
    rank_ : number of terms: 1 % of the strongest at least, and stronger than noise alone can be
    noise_std_ : standard deviation of the noise
    offset_ : what the terms leave out, other than 0 only for data far from zero
    restoration_ : `kruskal.Restoration`, with the trace

    Examples
    --------
    >>> import kruskal, numpy as np
    >>> random = np.random.default_rng(0)
    >>> x = np.einsum("ir,jr,kr->ijk", *(random.normal(size=(n, 2)) for n in (9, 8, 7)))
    >>> x += 0.01 * random.normal(size=x.shape)
    >>> kruskal.MGPCP(rank=5, sweeps=100).fit(x, observed=random.random(x.shape) < 0.5).rank_
    2
    """

    mean_: np.ndarray
    std_: np.ndarray
    weights_: np.ndarray
    factors_: list[np.ndarray]
    rank_: int
    noise_std_: float
    offset_: float
    restoration_: Restoration

    def __init__(
        self, rank: int | str = "auto", *, alpha: str | float = "sample", sweeps: int | None = None,
        burn_in: int | None = None, annealing: int | None = None, start: str = "pca", seed: int = 0,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        self.rank = rank
        self.alpha = alpha
        self.sweeps = sweeps
        self.burn_in = burn_in
        self.annealing = annealing
        self.start = start
        self.seed = seed
        self.threads = threads

    def fit(self, X: Any, y: Any = None, observed: Any = None) -> "MGPCP":
        """Decompose ``X``; ``observed`` is True where it is known (None: wherever it is not NaN).

        ``y`` is ignored.
        """
        refuse_mask(y, real_array(X, "X").shape)
        with _called_as_in_fit():
            found = inpaint(
                X, observed, model="mgp-cp", rank=self.rank, alpha=self.alpha, sweeps=self.sweeps,
                burn_in=self.burn_in, annealing=self.annealing, start=self.start, seed=self.seed,
                threads=self.threads,
            )  # fmt: skip
        assert found.weights is not None and found.factors is not None and found.rank is not None
        counted = found.rank
        self.restoration_ = found
        self.mean_, self.std_, self.noise_std_ = found.mean, found.std, found.noise_std
        self.weights_ = found.weights[:counted]
        self.factors_ = [factor[:, :counted] for factor in found.factors]
        self.rank_, self.offset_ = found.rank, found.offset
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "restoration_")


@contextmanager
def _called_as_in_fit() -> Iterator[None]:
    """Let mistakes that `inpaint` finds inside the block speak of X, which is its argument x."""
    try:
        yield
    except InputError as error:
        raise InputError(_ARRAY.sub("X", str(error))) from error
