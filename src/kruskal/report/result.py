"""What this room needs to know about a restoration or a dictionary, whoever made it."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Learned(Protocol):
    """A dictionary and how it was learned.

    All attributes are only read here, so a dataclass, a named tuple or a test double will do.
    """

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise, 1/sqrt(gamma_eps), in data units."""

    @property
    def dictionary(self) -> NDArray[Any]:
        """Atoms d_k, shape (n_atoms, *patch_shape)."""

    @property
    def ranks(self) -> NDArray[Any]:
        """Rank of each atom, shape (n_atoms,); -1 where it is not defined."""

    @property
    def usage(self) -> NDArray[Any]:
        """Share of the items that use each atom, shape (n_atoms,); 0 marks an unused atom."""

    @property
    def trace(self) -> dict[str, NDArray[Any]]:
        """One value per sweep for each watched quantity."""

    @property
    def settings(self) -> dict[str, Any]:
        """The options of the run (model, patch_shape, sweeps, burn_in, seed, ...)."""

    @property
    def n_items(self) -> int:
        """Number of items (patches) the model was fitted to."""


class Result(Learned, Protocol):
    """The restored array with everything that was learned on the way."""

    @property
    def mean(self) -> NDArray[Any]:
        """Restored array in data units, any shape."""

    @property
    def std(self) -> NDArray[Any]:
        """Posterior standard deviation of every entry, the shape of `mean`."""


def order_by_usage(result: Learned) -> NDArray[np.intp]:
    """Return the indices of the used atoms, the most used first.

    Parameters
    ----------
    result : Learned
        A restoration or a dictionary.

    Returns
    -------
    ndarray of int, shape (n_atoms_used,)
        Ties keep the order of the dictionary.
    """
    usage = np.asarray(result.usage, dtype=float)
    order = np.argsort(-usage, kind="stable")
    return order[usage[order] > 0]


def used_ranks(result: Learned) -> NDArray[np.intp]:
    """Return the ranks of the used atoms whose rank is defined, the most used first.

    Parameters
    ----------
    result : Learned
        A restoration or a dictionary.

    Returns
    -------
    ndarray of int, at most 1 entry per used atom
    """
    ranks = np.asarray(result.ranks, dtype=np.intp)[order_by_usage(result)]
    return ranks[ranks >= 0]
