"""A run that starts from a dictionary: what the dictionary settles, and what contradicts it."""

import operator
from pathlib import Path
from typing import Any

from kruskal.engines.dictionary import Dictionary
from kruskal.errors import InputError, flag


def open_dictionary(dictionary: Any) -> Dictionary | None:
    """A dictionary as it is, or read from the file at a path; None stays None."""
    if dictionary is None or isinstance(dictionary, Dictionary):
        return dictionary
    if isinstance(dictionary, (str, Path)):
        return Dictionary.load(dictionary)
    raise InputError(
        f"dictionary must be a kruskal.Dictionary or the path of one, not an object "
        f"of type {type(dictionary).__name__}"
    )


def settle(
    given: dict[str, Any], dictionary: Dictionary | None, adapt: bool, array_shape: tuple[int, ...]
) -> dict[str, Any]:
    """The options of a run with those that the dictionary settles in place; what contradicts is refused.

    Parameters
    ----------
    given : options of `kruskal.settings.resolve`;  adapt : whether the atoms are learned further
    """
    adapt = flag("adapt", adapt)
    if dictionary is None:
        if adapt:
            raise InputError("adapt needs atoms to start from: give dictionary")
        return given
    if len(dictionary.shape) != len(array_shape) or any(map(operator.gt, dictionary.shape, array_shape)):
        raise InputError(
            f"dictionary has atoms of shape {_words(dictionary.shape)}, "
            f"which do not fit into an array of shape {_words(array_shape)}"
        )
    if given["start"] != "pca":
        raise InputError(f"start {given['start']} contradicts the dictionary, with which the atoms begin")
    settled = {
        "model": dictionary.model, "patch_shape": dictionary.shape, "n_atoms": dictionary.n_atoms,
        "rank": dictionary.rank,
    }  # fmt: skip
    open_values = {"model": "kfa", "patch_shape": None, "n_atoms": None, "rank": "auto"}
    for name, value in settled.items():
        told = tuple(given[name]) if isinstance(given[name], (list, tuple)) else given[name]
        if told not in (value, open_values[name]):
            raise InputError(f"{name} {_words(told)} contradicts the dictionary, which has {_words(value)}")
    if dictionary.model == "bpfa":
        settled["rank"] = "auto"
    return given | settled | {"known_atoms": "adapted" if adapt else "fixed"}


def _words(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
