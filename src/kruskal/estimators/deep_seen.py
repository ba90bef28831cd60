"""What the decisions of a deep model see besides its top weights: options, checked."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kruskal.errors import InputError, one_of, shown, whole_number

COPIES = ("mean", "apart")


class Seen(NamedTuple):
    """Layers whose weights decisions see, none for the top weights; in how many places along a side; how far
    copies are shifted."""

    layers: list[int]
    places: int
    shift: int


def seen_by(decide_on: Sequence[int] | None, places: int, shift: int) -> Seen:
    """The parameters, checked before, as plain numbers."""
    return Seen([int(layer) for layer in decide_on or ()], int(places), int(shift))


def check_seen(options: dict[str, Any]) -> None:
    """What decisions see besides the top weights, and who can take such decisions."""
    whole_number("places", options["places"], 1)
    shift = whole_number("shift", options["shift"], 0)
    layers = options["decide_on"]
    if one_of("copies", options["copies"], COPIES) == "apart" and shift == 0:
        raise InputError("copies 'apart' needs a shift above 0: without one an image has no copies")
    if layers is not None:
        if not isinstance(layers, list | tuple) or not layers:
            raise InputError(f"decide_on must be a list of layers or None, not {shown(layers)}")
        if len({whole_number("decide_on", layer, 1) for layer in layers}) < len(layers):
            raise InputError(f"decide_on must name every layer once, not {shown(layers)}")
    elif shift:
        raise InputError("shift needs decide_on, the layers whose weights are averaged over shifted copies")
    if layers is not None and (options["svm"] == "trained" or options["method"] == "mcem"):
        raise InputError("decide_on needs method 'gradient' and an svm other than 'trained'")


def refuse_unseen(options: dict[str, Any], shape: tuple[int, int, int]) -> None:
    """Complain about layers that are not there, and about a shift or places beyond images of this shape."""
    depth, shift = len(options["n_atoms"]), int(options["shift"])
    for layer in options["decide_on"] or ():
        whole_number("decide_on", layer, 1, depth)
    whole_number("places", options["places"], 1, min(shape[:2]))
    if shift >= min(shape[:2]):
        raise InputError(
            f"shift is {shift} pixels, expected less than the size of the images, {min(shape[:2])}"
        )
