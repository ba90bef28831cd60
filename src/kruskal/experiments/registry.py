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
    "cprank",
    "mri",
    "dct4d",
    "dictionaries",
    "pictures",
    "conv-barbara",
    "caltech101",
    "mnist",
    "mnist-size",
)


def get(name: str) -> Experiment:
    """The experiment of this name: ``EXPERIMENT`` of the module of the same name, with "_" for "-"."""
    if name not in NAMES:
        raise InputError(f"experiment {name!r} is unknown, expected one of {', '.join(NAMES)}")
    experiment: Experiment = import_module(f"kruskal.experiments.{name.replace('-', '_')}").EXPERIMENT
    return experiment
