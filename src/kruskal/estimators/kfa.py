"""KFA and BPFA as estimators in the style of scikit-learn, which need not be installed."""

from typing import Any

from kruskal.engines.dictionary import Dictionary
from kruskal.estimators.factor import FactorEstimator

__all__ = ["BPFA", "KFA"]

_PARAMETERS = """
    n_atoms : number of atoms K (default: 256 or 512, not more than items; of vectors as many as features)
    sweeps, burn_in : length of the chain of `fit`, and how many sweeps at its beginning are not kept
    annealing : the first sweeps of the burn-in of `fit`, in which the noise is kept large and sinks slowly
    start : "pca" or "random"
    codes : "collapsed" or "uncollapsed" draws of the codes in `fit`
    usage_prior : (a_pi, b_pi) of the beta process;  sparsity : the same as b_pi per item, with a_pi = K
    code_chains : number of chains of an item in `transform` and `reconstruct`
    code_sweeps, code_burn_in : their length, and how many sweeps at the beginning of each are not kept
    forgetting : factor from 0 to 1 on what `partial_fit` remembers of the batches before, at each new one;
        below 1 batches of N_b items count as much as N_b / (1 - forgetting) items
    sparse_output : whether `transform` gives a sparse matrix
    tolerance : relative tolerance of ``ranks_``
    seed : everything random follows from it
    threads : number of threads (default: all cores); results do not depend on it
"""
_ATTRIBUTES = """
    dictionary_ : (K, m_1, .., m_T) atoms of the last draw, in scaled units: x is about
        ``learned_.scaling.inverse(codes @ atoms)``
    mean_dictionary_ : the same, averaged over the kept draws. It is smoother and good to look at, but it goes
        with no draw of usage and precisions, and an atom that changed its meaning along the chain is a
        mixture; `transform` uses ``dictionary_``
    usage_ : (K,) mean share of the items that use each atom;  ranks_ : (K,) ranks (-1: not defined)
    noise_std_ : standard deviation of the noise, in the units of the data;  code_std_ : of the codes in use
    trace_ : one value per sweep (per batch of `partial_fit`) of noise_std, code_std, active_per_item,
        atoms_used and (KFA) alpha
    item_shape_ : (m_1, .., m_T);  n_features_in_ : number of entries of an item
    learned_ : all of it, a `kruskal.Dictionary`
"""


class KFA(FactorEstimator):
    __doc__ = f"""Kruskal-factor analysis: sparse codes for atoms that are Kruskal tensors of inferred rank.

    Parameters
    ----------{_PARAMETERS}    rank : most Kruskal terms R of an atom, or "auto"
    alpha : "sample", "map" or a number: how the shrinkage of the ranks is learned

    Attributes
    ----------{_ATTRIBUTES}    weights_ : (K, R) weights of the Kruskal terms
    factors_ : T arrays (K, m_t, R), their mode vectors

    Examples
    --------
    >>> import kruskal, numpy as np
    >>> random = np.random.default_rng(0)
    >>> atoms = [np.outer(random.normal(size=6), random.normal(size=5)) for _ in range(4)]
    >>> items = random.normal(size=(300, 4)) * (random.random((300, 4)) < 0.4) @ np.reshape(atoms, (4, 30))
    >>> items = items.reshape(300, 6, 5) + 0.05 * random.normal(size=(300, 6, 5))
    >>> model = kruskal.KFA(n_atoms=8, rank=2, sweeps=40, seed=0).fit(items)
    >>> model.transform(items).shape
    (300, 8)
    """
    _model = "kfa"

    def __init__(
        self,
        n_atoms: int | None = None,
        rank: int | str = "auto",
        *,
        sweeps: int | None = None,
        burn_in: int | None = None,
        annealing: int | None = None,
        start: str = "pca",
        alpha: str | float = "sample",
        codes: str = "collapsed",
        usage_prior: tuple[float, float] | None = None,
        sparsity: float | None = None,
        code_chains: int = 4,
        code_sweeps: int = 4,
        code_burn_in: int = 2,
        forgetting: float = 1.0,
        sparse_output: bool = False,
        tolerance: float = 0.01,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.rank = rank
        self.sweeps = sweeps
        self.burn_in = burn_in
        self.annealing = annealing
        self.start = start
        self.alpha = alpha
        self.codes = codes
        self.usage_prior = usage_prior
        self.sparsity = sparsity
        self.code_chains = code_chains
        self.code_sweeps = code_sweeps
        self.code_burn_in = code_burn_in
        self.forgetting = forgetting
        self.sparse_output = sparse_output
        self.tolerance = tolerance
        self.seed = seed
        self.threads = threads

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"rank": self.rank, "alpha": self.alpha}

    def _take(self, learned: Dictionary) -> "KFA":
        super()._take(learned)
        self.weights_ = learned.state.weights
        bounds = [sum(learned.shape[:t]) for t in range(1, len(learned.shape))]
        self.factors_ = [
            learned.state.factors[:, first:stop]
            for first, stop in zip([0, *bounds], [*bounds, sum(learned.shape)])
        ]
        return self


class BPFA(FactorEstimator):
    __doc__ = f"""Beta process factor analysis: sparse codes for free Gaussian atoms.

    Parameters
    ----------{_PARAMETERS}
    Attributes
    ----------{_ATTRIBUTES}    """
    _model = "bpfa"

    def __init__(
        self,
        n_atoms: int | None = None,
        *,
        sweeps: int | None = None,
        burn_in: int | None = None,
        annealing: int | None = None,
        start: str = "pca",
        codes: str = "collapsed",
        usage_prior: tuple[float, float] | None = None,
        sparsity: float | None = None,
        code_chains: int = 4,
        code_sweeps: int = 4,
        code_burn_in: int = 2,
        forgetting: float = 1.0,
        sparse_output: bool = False,
        tolerance: float = 0.01,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.sweeps = sweeps
        self.burn_in = burn_in
        self.annealing = annealing
        self.start = start
        self.codes = codes
        self.usage_prior = usage_prior
        self.sparsity = sparsity
        self.code_chains = code_chains
        self.code_sweeps = code_sweeps
        self.code_burn_in = code_burn_in
        self.forgetting = forgetting
        self.sparse_output = sparse_output
        self.tolerance = tolerance
        self.seed = seed
        self.threads = threads
