"""What KFA and BPFA share as estimators: fit, transform, inverse_transform, reconstruct, save, load."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from kruskal.data import Scaling, observed_entries, refuse_constant
from kruskal.defaults import Look
from kruskal.engines.coding import Coder, chunks
from kruskal.engines.dictionary import Dictionary
from kruskal.engines.progress import Silent
from kruskal.engines.threads import check_threads
from kruskal.errors import InputError, whole_number
from kruskal.estimators.scikit import ScikitEstimator, item_stack, numbers
from kruskal.gibbs.coding import CodingPlan
from kruskal.learning import describe, learn_items, resolve_stack
from kruskal.models import FIRST_NOISE_PRECISION
from kruskal.patches import Items
from kruskal.random import check_seed


class FactorEstimator(ScikitEstimator):
    """A sparse factor model of items; subclasses say what an atom is and have the parameters.

    After `fit` everything that was learned is in ``learned_``, a `kruskal.Dictionary`; the other attributes
    are parts of it.
    """

    _model: str
    learned_: Dictionary
    # parameters of all subclasses
    n_atoms: int | None
    sweeps: int | None
    burn_in: int | None
    start: str
    codes: str
    usage_prior: tuple[float, float] | None
    sparsity: float | None
    code_chains: int
    code_sweeps: int
    code_burn_in: int
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
        observed : bool array of the same shape, True where ``X`` is observed (None: wherever it is not NaN)
        """
        stack = item_stack(X)
        shape = tuple(int(size) for size in stack.shape[1:])
        values, mask = self._read(stack, observed, slice(0, len(stack)), may_be_none=False)
        refuse_constant(values, mask, "X")
        scaling = Scaling.fit(values, mask)
        # entries of vectors need not be in any order: their differences say nothing about noise
        look = Look.at(values, mask, scaling.scale) if len(shape) > 1 else Look(float(mask.mean()))
        settings = resolve_stack(len(stack), shape, look, model=self._model, regions=1, **self._options())
        threads = check_threads(self.threads)
        self._plan()
        self._take(
            learn_items(
                self._items(values, mask, scaling), settings, scaling,
                describe(settings) | {"estimator": self.get_params()}, threads=threads, progress=Silent(),
                tolerance=_tolerance(self.tolerance),
            )
        )  # fmt: skip
        return self

    def fit_transform(self, X: Any, y: Any = None, observed: Any = None) -> Any:
        """`fit`, then `transform` of the same items."""
        return self.fit(X, y, observed).transform(X, observed)

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
        codes = codes if sparse.issparse(codes) else numbers(codes, "codes")
        if codes.ndim != 2 or codes.shape[1] != self.learned_.n_atoms:
            raise InputError(
                f"codes has shape {codes.shape}, expected (items, {self.learned_.n_atoms}): one per atom"
            )
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
        names = ("n_atoms", "sweeps", "burn_in", "start", "codes", "usage_prior", "sparsity", "seed")
        return {name: getattr(self, name) for name in names}

    def _plan(self) -> CodingPlan:
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
        values, mask = self._read(stack, observed, part, may_be_none=True)
        items = self._items(values, mask, self.learned_.scaling)
        if not np.isfinite(items.flat).all():
            raise InputError("X holds values that are too large beside those that the model was fitted to")
        return items

    def _read(
        self, stack: Any, observed: Any, part: slice, may_be_none: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Some items and which of their entries are observed."""
        if observed is not None and len(observed) != len(stack):
            raise InputError(f"observed has {len(observed)} items, expected {len(stack)} like X")
        given = stack[part]
        values = numbers(given)
        masked = np.ma.array(values, mask=np.ma.getmaskarray(given)) if np.ma.isMaskedArray(given) else values
        mask = None if observed is None else observed[part]
        try:
            return values, observed_entries(masked, mask, may_be_none=may_be_none)
        except InputError as error:
            raise InputError(f"X cannot be used: {error}") from error

    def _items(self, values: np.ndarray, observed: np.ndarray, scaling: Scaling) -> Items:
        """Scaled items; what stands at missing entries has no influence."""
        scaled = scaling.forward(np.where(observed, values, 0))
        return Items.from_matrix(scaled, observed)


def _tolerance(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number < 1.0:
        raise InputError(f"tolerance must be a number from 0 to below 1, not {value!r}")
    return number
