"""A learned dictionary: the state of a chain with all that is needed to use it on other data, in a file.

It is an npz file without any pickle, written aside and renamed:

    format, version           what it is; another version is refused
    dictionary, weights, ..   the fields of `kruskal.models.Global`, the usage reduced to one region
    shape                     of one item
    mean_dictionary, usage, ranks, trace_*, kept, n_items     what was learned on the way
    offset, scale             how the data were scaled
    settings, package         options of the run, and the version of the package that made it
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from kruskal import __version__
from kruskal.data import Scaling, atomic_path
from kruskal.errors import DAMAGE, InputError, path_of
from kruskal.models import FIRST_NOISE_PRECISION, Global

FORMAT = "kruskal dictionary"
VERSION = 1
_SCALARS = ("alpha", "concentration", "code_precision", "noise_precision")


@dataclass(frozen=True, eq=False, repr=False)
class Dictionary:
    """Atoms with everything that is needed to code other data with them.

    Attributes
    ----------
    shape : (m_1, .., m_T) of one item
    state : global state of the last draw, with the usage of one region; all in scaled units
    scaling : how the data were scaled
    mean_dictionary : (K, m_1, .., m_T) average of the atoms over the kept draws, weighted by the number of
        items that use them; zero for atoms that no item used
    ranks : (K,) rank of each atom (-1: not defined)
    usage : (K,) mean share of the items that use each atom over the kept draws
    trace : one value per sweep, as in `kruskal.Restoration`;  kept : number of kept draws
    n_items : number of items it was learned from
    settings : options of the run;  package : version of the package that made it
    """

    shape: tuple[int, ...]
    state: Global
    scaling: Scaling
    mean_dictionary: np.ndarray
    ranks: np.ndarray
    usage: np.ndarray
    trace: dict[str, np.ndarray]
    kept: int
    n_items: int
    settings: dict[str, Any]
    package: str = __version__

    @property
    def model(self) -> str:
        """The model of its atoms: "kfa" or "bpfa"."""
        return "kfa" if self.rank > 0 else "bpfa"

    @property
    def n_atoms(self) -> int:
        """Number of atoms K."""
        return len(self.state.dictionary)

    @property
    def rank(self) -> int:
        """Most Kruskal terms of an atom; 0 for Gaussian atoms."""
        return int(self.state.weights.shape[1])

    @property
    def dictionary(self) -> np.ndarray:
        """(K, m_1, .., m_T) atoms of the last draw, in scaled units."""
        return self.state.dictionary.reshape(-1, *self.shape)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise over the kept draws, in the units of the data."""
        return float(self.trace["noise_std"][-self.kept :].mean())

    def __repr__(self) -> str:
        """One line, without the arrays."""
        atoms = f"{self.n_atoms} atoms of {'x'.join(map(str, self.shape))}"
        return f"<Dictionary of {atoms} by {self.model}: noise_std {self.noise_std:.4g}>"

    def first_state(self, n_regions: int) -> Global:
        """The state in which a chain on other data begins, every region with the same usage.

        The noise belongs to the data: it starts large, as in every run, and the chain gets on better so.
        """
        return self.state._replace(
            log_odds=np.repeat(self.state.log_odds, n_regions, axis=0), noise_precision=FIRST_NOISE_PRECISION
        )

    def save(self, path: str | Path) -> None:
        """Write it to an npz file; the same dictionary gives the same bytes."""
        path = path_of("path", path)
        if path.suffix.lower() != ".npz":
            raise InputError(f"path must end in .npz, not {path.name!r}")
        arrays: dict[str, Any] = {"format": FORMAT, "version": VERSION, "package": self.package}
        arrays |= self.state._asdict() | self.scaling._asdict()
        arrays |= {f"trace_{name}": values for name, values in self.trace.items()}
        for name in ("shape", "mean_dictionary", "ranks", "usage", "kept", "n_items"):
            arrays[name] = getattr(self, name)
        arrays["settings"] = json.dumps(self.settings, default=_plain)
        # opened here, as NumPy appends .npz to a name that ends in .NPZ
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **{name: np.asarray(value) for name, value in arrays.items()})  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> "Dictionary":
        """Read a file of `save`; anything else is refused with one sentence."""
        path = path_of("path", path)
        if not path.is_file():
            raise InputError(f"dictionary file {path} does not exist")
        arrays = _arrays(path)
        if str(arrays.get("format")) != FORMAT:
            raise InputError(f"{path} is no dictionary file of kruskal")
        try:
            version = int(arrays["version"])
            if version != VERSION:
                raise InputError(
                    f"dictionary file {path} has version {version}; this package reads {VERSION}"
                )
            result = cls._from_arrays(arrays)
            result._check()
        except InputError:
            raise
        except DAMAGE as error:
            raise InputError(f"dictionary file {path} is damaged: {_reason(error)}") from error
        return result

    @classmethod
    def _from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Dictionary":
        fields: dict[str, Any] = {name: arrays[name].astype(np.float64) for name in Global._fields}
        fields |= {name: float(fields[name]) for name in _SCALARS}
        return cls(
            shape=tuple(int(size) for size in arrays["shape"]),
            state=Global(**fields),
            scaling=Scaling(float(arrays["offset"]), float(arrays["scale"])),
            mean_dictionary=arrays["mean_dictionary"],
            ranks=arrays["ranks"],
            usage=arrays["usage"],
            trace={name[6:]: values for name, values in arrays.items() if name.startswith("trace_")},
            kept=int(arrays["kept"]),
            n_items=int(arrays["n_items"]),
            settings=dict(json.loads(str(arrays["settings"]))),
            package=str(arrays["package"]),
        )

    def _check(self) -> None:
        """A file whose parts do not fit together is damaged."""
        state, shape = self.state, self.shape
        n_atoms, rank = state.weights.shape
        wanted = {
            "dictionary": (n_atoms, int(np.prod(shape))),
            "factors": (n_atoms, sum(shape) if rank else 0, rank),
            "log_delta": (n_atoms, rank),
            "log_odds": (1, n_atoms),
            "usage_mean": (n_atoms,),
        }
        for name, size in wanted.items():
            found = getattr(state, name).shape
            if found != size:
                raise ValueError(f"{name} has shape {found} instead of {size}")
        others = self.mean_dictionary.shape, self.ranks.shape, self.usage.shape
        if others != ((n_atoms, *shape), (n_atoms,), (n_atoms,)):
            raise ValueError("what belongs to the atoms has another number of atoms or another shape")
        if not all(np.isfinite(part).all() for part in state):
            raise ValueError("it holds numbers that are not finite")
        positive = (state.code_precision, state.noise_precision, state.alpha, self.scaling.scale, self.kept)
        if min(positive) <= 0 or min(shape) < 1 or len(self.trace["noise_std"]) < self.kept:
            raise ValueError("it holds numbers that are not positive")


def is_dictionary(path: str | Path) -> bool:
    """Whether a file says of itself that it is a dictionary."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return "format" in archive.files and str(archive["format"]) == FORMAT
    except DAMAGE:
        return False


def one_region(state: Global, region_sizes: np.ndarray) -> Global:
    """The state with the usage of all regions replaced by its mean over the items, (1, K)."""
    if len(region_sizes) == 1:
        return state
    usage = region_sizes @ expit(state.log_odds) / region_sizes.sum()
    return state._replace(log_odds=logit(np.clip(usage, 1e-12, 1.0 - 1e-12))[None, :])


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an npz file; empty for other files."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                return {}
            if "format" not in archive.files or str(archive["format"]) != FORMAT:
                return {}
            return {name: archive[name] for name in archive.files}
    except PermissionError as error:
        raise InputError(f"dictionary file {path} cannot be read: {_reason(error)}") from error
    except DAMAGE as error:
        with path.open("rb") as file:
            if file.read(2) != b"PK":  # not even the beginning of an npz file
                return {}
        raise InputError(f"dictionary file {path} is damaged: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).strip().rstrip(".") or type(error).__name__


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy as JSON takes them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be kept")
