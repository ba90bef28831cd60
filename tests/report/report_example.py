"""A small made-up restoration of any shape; it only has to look like one."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class MadeUpResult:
    """What `kruskal.restore` returns, as far as the report looks at it."""

    mean: np.ndarray
    std: np.ndarray
    noise_std: float
    dictionary: np.ndarray
    ranks: np.ndarray
    usage: np.ndarray
    n_items: int = 50
    notes: tuple[str, ...] = ()
    trace: dict[str, np.ndarray] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class Example:
    """A restoration with the data it came from and the truth."""

    result: MadeUpResult
    observed_values: np.ndarray
    observed: np.ndarray
    reference: np.ndarray


def make_example(
    shape: tuple[int, ...], patch_shape: tuple[int, ...], n_atoms: int = 12, seed: int = 0
) -> Example:
    """Return an example with 40 % observed entries, noise 2 and a quarter of the atoms unused."""
    generator = np.random.default_rng(seed)
    reference = 100 + 20 * generator.normal(size=shape)
    observed = generator.random(shape) < 0.4
    observed.flat[0] = True
    noisy = reference + 2 * generator.normal(size=shape)
    std = 1 + generator.random(shape)
    usage = generator.permutation(np.linspace(0.9, 0.1, n_atoms))
    usage[generator.permutation(n_atoms)[: n_atoms // 4]] = 0
    sweeps = np.arange(10)
    result = MadeUpResult(
        mean=reference + std * generator.normal(size=shape),
        std=std,
        noise_std=2.0,
        dictionary=generator.normal(size=(n_atoms, *patch_shape)),
        ranks=generator.integers(1, 4, n_atoms),
        usage=usage,
        trace={
            "alpha": 3 + 1e4 * np.exp(-sweeps),
            "noise_std": 2 + 1 / (1 + sweeps),
            "atoms_used": np.full(10, 9),
        },
        settings={
            "model": "kfa",
            "patch_shape": patch_shape,
            "rank": 4,
            "sweeps": 10,
            "burn_in": 4,
            "usage_prior": (64.0, 7.5),
        },
    )
    return Example(result, np.where(observed, noisy, np.nan), observed, reference)


EXAMPLES = {
    1: ((40,), (8,)),
    2: ((16, 16), (4, 4)),
    3: ((12, 10, 9), (3, 4, 3)),
    4: ((6, 5, 7, 4), (2, 3, 2, 2)),
    5: ((4, 5, 4, 3, 2), (2, 2, 2, 2, 2)),
}
