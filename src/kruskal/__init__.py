"""Bayesian tensor dictionary learning: KFA, BPFA, MGP-CP, convolutional models, blind restoration of arrays.

    >>> import kruskal
    >>> kruskal.generic_rank((8, 8, 8))
    24

Names are imported when they are first used, so that ``import kruskal`` is fast.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BPFA": "kruskal.estimators.kfa",
    "BayesianSVM": "kruskal.estimators.svm",
    "CFA": "kruskal.estimators.convolutional",
    "CKFA": "kruskal.estimators.convolutional",
    "DGDN": "kruskal.estimators.deep_generative",
    "DeepCFA": "kruskal.estimators.deep",
    "DeepCKFA": "kruskal.estimators.deep",
    "Dictionary": "kruskal.engines.dictionary",
    "InputError": "kruskal.errors",
    "KFA": "kruskal.estimators.kfa",
    "KruskalDGDN": "kruskal.estimators.deep_generative",
    "MGPCP": "kruskal.estimators.mgp_cp",
    "Reconstruction": "kruskal.estimators.image_batches",
    "Restoration": "kruskal.restoration",
    "denoise": "kruskal.restore",
    "expected_rank": "kruskal.tensor",
    "generic_rank": "kruskal.tensor",
    "inpaint": "kruskal.restore",
    "inpaint_large": "kruskal.large",
    "learn": "kruskal.learning",
    "resume": "kruskal.restore",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'kruskal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME} - {"Any", "import_module"})
