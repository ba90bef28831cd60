"""The result of a restoration."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import atomic_path, observed_entries
from kruskal.data.atomic import reason
from kruskal.errors import DAMAGE, InputError, path_of


@dataclass(frozen=True, eq=False, repr=False)
class Restoration:
    """A restored array and what was learned on the way.

    Attributes
    ----------
    mean, std : arrays of the input's shape, in its units. ``std`` is the uncertainty of an entry: its spread
        over the kept draws and, with a weight of 0.45, over the overlapping items; without the noise. In
        holes the weight is up to 1, and further than half a patch from any observed entry ``std`` is at least
        the standard deviation of the observed entries (of counts: as roots, which are what is restored).
    noise_std : inferred standard deviation of the noise, in the input's units; of counts, whose noise is the
        root of their mean, the root mean square
    dictionary : (K, m_1, .., m_T) atoms of the last draw, in scaled units
    ranks : (K,) rank of each atom at a relative tolerance of 1 % (-1: not defined, BPFA of order not 2)
    usage : (K,) mean share of the items that use each atom over the kept draws; 0 marks an unused atom
    trace : one value per sweep: noise_std (input's units; of counts those of their roots), code_std,
        active_per_item, atoms_used, alpha; of a run that learns online one per visit to a batch, of its items
    settings : all options of the run, resolved
    pilots : the pilot runs that chose some of them, each a dictionary; empty if there were none
    kept : number of draws in the averages; the sweeps before them were burn-in
    n_items : number of patches (1: the whole array);  threads, seconds : how it was run
    weights, factors : of the last draw of MGP-CP, None for other models: (R,) and (m_t, R) for every mode of
        the tensor, with columns of unit norm, the strongest term first; weights in the input's units. Of
        stacked patches the first mode numbers the patches. Together they make up the array less ``offset``
    offset : what was subtracted from the data, other than 0 only for data far from zero
    notes : sentences on what is doubtful, such as entries far from all observed ones; files do not keep them

    Of MGP-CP, the atoms are the terms of one item (of a slice, if the whole array is decomposed), their usage
    is the share of the kept draws in which a term counts, and the trace holds noise_std, rank and alpha.
    """

    mean: np.ndarray
    std: np.ndarray
    noise_std: float
    dictionary: np.ndarray
    ranks: np.ndarray
    usage: np.ndarray
    trace: dict[str, np.ndarray]
    settings: dict[str, Any]
    pilots: tuple[dict[str, Any], ...]
    kept: int
    n_items: int
    threads: int
    seconds: float
    weights: np.ndarray | None = None
    factors: tuple[np.ndarray, ...] | None = None
    offset: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def rank(self) -> int | None:
        """The rank that MGP-CP inferred: the most frequent one of the kept draws; None for other models."""
        if "rank" not in self.trace:
            return None
        return int(np.bincount(self.trace["rank"][-self.kept :].astype(np.int64)).argmax())

    def with_observed(self, x: Any, observed: Any = None) -> "Restoration":
        """The same with the observed entries of ``x`` as they are, and a ``std`` of 0 there.

        For data without noise, of which only the gaps are to be filled. Give what was given to
        `kruskal.inpaint`; numbers beyond double precision are rounded to it.
        """
        mask = observed_entries(x, observed, name="x", mask_name="observed")
        if mask.shape != self.mean.shape:
            raise InputError(f"x must have the shape {self.mean.shape} of the result, not {mask.shape}")
        values = np.where(mask, np.ma.getdata(x), self.mean).astype(self.mean.dtype)
        return replace(self, mean=values, std=np.where(mask, 0.0, self.std).astype(self.std.dtype))

    def __repr__(self) -> str:
        """One line, without the arrays."""
        shape = "x".join(map(str, self.mean.shape))
        return f"<Restoration of {shape} by {self.settings['model']}: noise_std {self.noise_std:.4g}>"

    def save(self, path: str | Path) -> None:
        """Write everything but the timing to an npz file; the same run gives the same bytes."""
        path = path_of("path", path)
        if path.suffix.lower() != ".npz":
            raise InputError(f"path must end in .npz, not {path.name!r}")
        arrays = {f"trace_{name}": values for name, values in self.trace.items()}
        for name in ("mean", "std", "noise_std", "dictionary", "ranks", "usage", "kept", "n_items"):
            arrays[name] = np.asarray(getattr(self, name))
        if self.weights is not None and self.factors is not None:
            arrays |= {"weights": self.weights, "offset": np.asarray(self.offset)}
            arrays |= {f"factors_{t}": factor for t, factor in enumerate(self.factors)}
        arrays["settings"] = np.asarray(json.dumps(self.settings))
        pilots = [{k: v for k, v in pilot.items() if k != "seconds"} for pilot in self.pilots]
        arrays["pilots"] = np.asarray(json.dumps(pilots))
        # opened here, as NumPy appends .npz to a name that ends in .NPZ
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> "Restoration":
        """Read a file of `save`; it tells nothing of the timing: ``threads`` is 0 and ``seconds`` NaN."""
        path = path_of("path", path)
        if not path.is_file():
            raise InputError(f"result file {path} does not exist")
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls._from_arrays({name: archive[name] for name in archive.files})
        except PermissionError as error:
            raise InputError(f"result file {path} cannot be read: {reason(error)}") from error
        except DAMAGE as error:
            raise InputError(f"{path} is no result file of kruskal, or it is damaged") from error

    @classmethod
    def _from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Restoration":
        numbered = [name for name in arrays if name.startswith("factors_")]
        settings = json.loads(str(arrays["settings"]))
        return cls(
            mean=arrays["mean"],
            std=arrays["std"],
            noise_std=float(arrays["noise_std"]),
            dictionary=arrays["dictionary"],
            ranks=arrays["ranks"],
            usage=arrays["usage"],
            trace={name[6:]: values for name, values in arrays.items() if name.startswith("trace_")},
            settings={name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()},
            pilots=tuple(json.loads(str(arrays["pilots"]))),
            kept=int(arrays["kept"]),
            n_items=int(arrays["n_items"]),
            threads=0,
            seconds=math.nan,
            weights=arrays.get("weights"),
            factors=tuple(arrays[f"factors_{t}"] for t in range(len(numbered))) or None,
            offset=float(arrays.get("offset", 0.0)),
        )
