"""Bayesian tensor dictionary learning: KFA, BPFA and blind restoration of arrays of any order.

    >>> import kruskal
    >>> kruskal.generic_rank((8, 8, 8))
    24

Names are imported when they are first used, so that ``import kruskal`` is fast.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BPFA": "kruskal.models",
    "BayesianSVM": "kruskal.svm",
    "DGDN": "kruskal.deep_generative",
    "InputError": "kruskal.errors",
    "KFA": "kruskal.models",
    "KruskalDGDN": "kruskal.deep_generative",
    "Restoration": "kruskal.restoration",
    "denoise": "kruskal.restore",
    "expected_rank": "kruskal.tensor",
    "generic_rank": "kruskal.tensor",
    "inpaint": "kruskal.restore",
    "resume": "kruskal.restore",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'kruskal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
