"""The experiments by name; each is imported when it is asked for."""

from importlib import import_module

from kruskal.errors import InputError
from kruskal.experiments.experiment import Experiment

NAMES = (
    "barbara",
    "datasize",
    "complexity",
    "castle",
    "amino",
    "mri",
    "dct4d",
    "dictionaries",
    "pictures",
    "mnist",
    "mnist-size",
)


def get(name: str) -> Experiment:
    """The experiment of this name, which is ``EXPERIMENT`` of the module of the same name (- is _ there)."""
    if name not in NAMES:
        raise InputError(f"experiment {name!r} is unknown, expected one of {', '.join(NAMES)}")
    experiment: Experiment = import_module(f"kruskal.experiments.{name.replace('-', '_')}").EXPERIMENT
    return experiment
