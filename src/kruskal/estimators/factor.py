"""What KFA and BPFA share as estimators: learning, coding, files."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from kruskal.data import Scaling, refuse_constant, refuse_infinite
from kruskal.data.masks import refuse_masked
from kruskal.defaults import Look, channels_word, default_vector_atoms
from kruskal.engines.coding import Coder, chunks
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.progress import Silent
from kruskal.engines.threads import check_threads
from kruskal.errors import InputError, check_seed, flag, whole_number
from kruskal.estimators.items import (
    check_below_one,
    check_share,
    finite_items,
    read_items,
    scaled_items,
    warn_of_far,
)
from kruskal.estimators.scikit import Transformer, item_stack, numbers, refuse_mask
from kruskal.gibbs.coding import CodingPlan
from kruskal.learning import describe, learn_items, resolve_stack
from kruskal.models import FIRST_NOISE_PRECISION
from kruskal.ongoing import Ongoing
from kruskal.patches import Items
from kruskal.settings import Settings


class FactorEstimator(Transformer):
    """A sparse factor model of items; subclasses say what an atom is and have the parameters.

    After `fit` everything that was learned is in ``learned_``, a `kruskal.Dictionary`; the other attributes
    are parts of it.
    """

    _model: str
    learned_: Dictionary
    ongoing_: Ongoing
    # parameters of all subclasses
    n_atoms: int | None
    sweeps: int | None
    burn_in: int | None
    annealing: int | None
    start: str
    codes: str
    usage_prior: tuple[float, float] | None
    sparsity: float | None
    code_chains: int
    code_sweeps: int
    code_burn_in: int
    forgetting: float
    sparse_output: bool
    tolerance: float
    seed: int
    threads: int | None

    def fit(self, X: Any, y: Any = None, observed: Any = None) -> Self:
        """Learn a dictionary from items by Gibbs sampling.

        Parameters
        ----------
        X : (N, m_1, .., m_T) items, or (N, features); NaN and masked entries are missing
        y : ignored
        observed : bool array like ``X`` or without its last axis, True is observed (None: where X is not NaN)
        """
        stack = item_stack(X)
        values, mask = read_items(stack, observed, slice(0, len(stack)), may_be_none=False)
        refuse_mask(y, stack.shape)
        refuse_constant(values, mask, "X")
        warn_of_far(values, mask)
        scaling = Scaling.fit(values, mask)
        settings = self._settings(values, mask, scaling, self._options())
        threads = check_threads(self.threads)
        self._plan()
        learned = learn_items(
            scaled_items(values, mask, scaling), settings, scaling,
            describe(settings) | {"estimator": self.get_params()}, threads=threads, progress=Silent(),
            tolerance=check_below_one("tolerance", self.tolerance),
        )  # fmt: skip
        vars(self).pop("ongoing_", None)  # a stream that came before is over
        return self._take(learned)

    def partial_fit(self, X: Any, y: Any = None, observed: Any = None) -> Self:
        """Learn from one more batch of a stream; its items are remembered as sums only.

        The first batch settles scaling, number of atoms, rank and priors. After `fit` or `load` a stream
        begins with the atoms that are there, as a start: nothing is remembered of what they were learned
        from. What was learned last is what `transform` uses. A batch that cannot be used changes nothing.

        Parameters
        ----------
        X, y, observed : as for `fit`; any number of items, of the same shape in all batches
        """
        stack = self._stack(X) if self.__sklearn_is_fitted__() else item_stack(X)
        values, mask = read_items(stack, observed, slice(0, len(stack)), may_be_none=False)
        refuse_mask(y, stack.shape)
        ongoing = self._ongoing(values, mask)
        items = finite_items(values, mask, ongoing.scaling)
        threads, tolerance = check_threads(self.threads), check_below_one("tolerance", self.tolerance)
        self._plan()
        after = ongoing.after(items, check_share("forgetting", self.forgetting), threads)
        self._take(after.dictionary({"estimator": self.get_params()}, tolerance))
        self.ongoing_ = after
        return self

    def _ongoing(self, values: np.ndarray, observed: np.ndarray) -> Ongoing:
        """The stream so far, or its beginning."""
        if hasattr(self, "ongoing_"):
            return self.ongoing_
        if self.annealing is not None:
            whole_number("annealing", self.annealing, 0)
        # a stream has no burn-in, and sees its items once
        options = self._options() | {"annealing": 0, "brief": True}
        if self.__sklearn_is_fitted__():
            known = self.learned_
            settled = {"n_atoms": known.n_atoms} | ({"rank": known.rank} if known.rank else {})
            settings = self._settings(values, observed, known.scaling, options | settled)
            return Ongoing.beginning(settings, known.scaling, known.first_state(1))
        refuse_constant(values, observed, "X")
        warn_of_far(values, observed)
        scaling = Scaling.fit(values, observed)
        return Ongoing.beginning(self._settings(values, observed, scaling, options), scaling)

    def _settings(
        self, values: np.ndarray, observed: np.ndarray, scaling: Scaling, options: dict[str, Any]
    ) -> Settings:
        """The parameters, checked and resolved for these items."""
        shape = tuple(int(size) for size in values.shape[1:])
        if len(shape) > 1:
            look = Look.at(values, observed, scaling.scale)
        else:  # entries need not be in any order: their differences say nothing about noise
            look = Look(float(observed.mean()))
            if options["n_atoms"] is None:
                options = options | {"n_atoms": default_vector_atoms(len(values), *shape)}
        known = {"model": self._model, "regions": 1, "channels": channels_word(shape)}
        return resolve_stack(len(values), shape, look, **known, **options)

    def transform(self, X: Any, observed: Any = None) -> Any:
        """Posterior means of the codes of items, given the atoms, the usage and the precisions.

        Items are read in chunks, so ``X`` may be anything that can be sliced, and of any size. The codes of
        an item depend on nothing but the item, the seed and what was learned.

        Parameters
        ----------
        X, observed : as for `fit`; items of the same shape

        Returns
        -------
        (N, K) float64 array, or a `scipy.sparse.csr_array` with ``sparse_output=True``
        """
        stack, coder = self._stack(X), self._coder()
        result = None if self.sparse_output else np.empty((len(stack), self.learned_.n_atoms))
        parts = []
        for part in chunks(len(stack)):
            codes = coder.codes(self._chunk(stack, observed, part))
            if result is None:
                parts.append(codes)
            else:
                result[part] = codes.toarray()
        return sparse.vstack(parts, format="csr") if result is None else result

    def inverse_transform(self, codes: Any) -> np.ndarray:
        """The items (N, m_1, .., m_T) that codes (N, K) stand for, in the units of the data."""
        self.refuse_unfitted()
        refuse_masked(codes, "codes")
        codes = codes if sparse.issparse(codes) else numbers(codes, "codes")
        if codes.ndim != 2 or codes.shape[1] != self.learned_.n_atoms:
            raise InputError(
                f"codes has shape {codes.shape}, expected (items, {self.learned_.n_atoms}): one per atom"
            )
        refuse_infinite(codes.data if sparse.issparse(codes) else codes, "codes")
        items = codes @ self.learned_.state.dictionary
        return self.learned_.scaling.inverse(items).reshape(-1, *self.learned_.shape)

    def reconstruct(self, X: Any, observed: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and standard deviation of items without noise, in the units of the data.

        The standard deviation is that of an entry when atoms, usage and precisions are taken as known.

        Returns
        -------
        mean, std : (N, m_1, .., m_T)
        """
        stack, coder, scaling = self._stack(X), self._coder(), self.learned_.scaling
        mean, std = (np.empty((len(stack), *self.learned_.shape)) for _ in range(2))
        for part in chunks(len(stack)):
            average, variance = coder.moments(self._chunk(stack, observed, part))
            mean[part] = scaling.inverse(average).reshape(-1, *self.learned_.shape)
            std[part] = scaling.inverse_std(np.sqrt(variance)).reshape(-1, *self.learned_.shape)
        return mean, std

    def save(self, path: str | Path) -> None:
        """Write what was learned and the parameters to a dictionary file (npz)."""
        self.refuse_unfitted()
        self.learned_.save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A fitted estimator from a file of `save`, or from any other dictionary file of its model."""
        learned = Dictionary.load(path)
        if learned.model != cls._model:
            raise InputError(f"{path} holds a dictionary of {learned.model}, which {cls.__name__} cannot use")
        saved = learned.settings.get("estimator", {})
        known = {name: saved[name] for name in cls._parameter_names() if name in saved}
        if isinstance(known.get("usage_prior"), list):  # JSON has no tuples
            known["usage_prior"] = tuple(known["usage_prior"])
        return cls(**known)._take(learned)

    def _take(self, learned: Dictionary) -> Self:
        """Keep what was learned, and its parts under the names that users expect."""
        self.learned_ = learned
        self.item_shape_ = learned.shape
        self.n_features_in_ = learned.state.dictionary.shape[1]
        self.dictionary_, self.mean_dictionary_ = learned.dictionary, learned.mean_dictionary
        self.usage_, self.ranks_, self.trace_ = learned.usage, learned.ranks, learned.trace
        self.noise_std_ = learned.noise_std
        self.code_std_ = learned.state.code_precision**-0.5
        return self

    def _options(self) -> dict[str, Any]:
        """Parameters of `kruskal.settings.resolve`, which checks them."""
        names = ("n_atoms", "sweeps", "burn_in", "annealing", "start", "codes", "sparsity", "seed")
        return {name: getattr(self, name) for name in (*names, "usage_prior")}

    def _plan(self) -> CodingPlan:
        flag("sparse_output", self.sparse_output)
        chains = whole_number("code_chains", self.code_chains, 1)
        sweeps = whole_number("code_sweeps", self.code_sweeps, 1)
        burn_in = whole_number("code_burn_in", self.code_burn_in, 0)
        if burn_in >= sweeps:
            raise InputError(f"code_burn_in must be smaller than code_sweeps: {burn_in} with {sweeps} sweeps")
        return CodingPlan(chains, sweeps, burn_in, check_seed(self.seed), FIRST_NOISE_PRECISION)

    def _coder(self) -> Coder:
        return Coder(self.learned_.state, self._plan(), check_threads(self.threads))

    def _stack(self, X: Any) -> Any:
        """New items, of the shape that was learned from."""
        self.refuse_unfitted()
        stack, shape = item_stack(X), self.learned_.shape
        if tuple(stack.shape[1:]) != shape:
            if len(shape) == len(stack.shape) - 1 == 1:  # the words of scikit-learn
                raise InputError(
                    f"X has {stack.shape[1]} features, but {type(self).__name__} is expecting {shape[0]} "
                    "features as input"
                )
            raise InputError(f"X has items of shape {tuple(stack.shape[1:])}, expected {shape} as in fit")
        return stack

    def _chunk(self, stack: Any, observed: Any, part: slice) -> Items:
        values, mask = read_items(stack, observed, part, may_be_none=True)
        return finite_items(values, mask, self.learned_.scaling)
