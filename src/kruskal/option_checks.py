"""Checks of single options of a run: what cannot be is refused with one sentence that names the option."""

import math
from typing import Any

from kruskal.errors import InputError, number_or_nan, shown, whole_number
from kruskal.tensor import refuse_impossible_rank


def refuse_for_mgp_cp(**given: Any) -> None:
    """Refuse options that say something about a dictionary, which MGP-CP does not have."""
    for name, value in given.items():
        if value is not None:
            why = "it decomposes the whole array unless patch_shape is given" if name == "stride" else (
                "it decomposes one tensor and has neither atoms nor sparse codes"
            )  # fmt: skip
            raise InputError(f"{name} is no option of the model mgp-cp: {why}, so leave {name} out")


def check_order(sizes: tuple[int, ...], array_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of the modes of a tensor for MGP-CP, at least two."""
    if len(sizes) < 2:
        shape = "x".join(map(str, array_shape))
        raise InputError(
            f"x must have at least two axes longer than 1 for the model mgp-cp, not the shape {shape}"
        )
    return sizes


def check_rank(rank: int | str, patch_shape: tuple[int, ...]) -> int:
    """A rank that a tensor of this shape can have."""
    if isinstance(rank, str):
        raise InputError(f"rank must be 'auto' or a whole number of at least 1, not {shown(rank)}")
    number = whole_number("rank", rank, 1)
    refuse_impossible_rank(number, patch_shape)
    return number


def check_alpha(alpha: str | float) -> str | float:
    """A word, or a positive number."""
    if isinstance(alpha, str) and alpha in ("sample", "map"):
        return alpha
    value = number_or_nan(alpha)
    if not 0.0 < value <= 1e8:
        raise InputError(
            f"alpha must be 'sample', 'map' or a number above 0 and at most 1e8, not {shown(alpha)}"
        )
    return value


def check_length(name: str, length: int, burn_in: int | None) -> tuple[int, int]:
    """Sweeps or epochs, whichever the name says, and how many of them are not kept."""
    number = whole_number(name, length, 1)
    n_burn_in = whole_number("burn_in", number // 2 if burn_in is None else burn_in, 0)
    if n_burn_in >= number:
        raise InputError(f"burn_in must be smaller than {name}: {n_burn_in} was given with {number} {name}")
    return number, n_burn_in


def check_annealing(given: int | None, usual: int, burn_in: int, online: bool) -> int:
    """At most the burn-in, as draws from a chain that is kept warm are none of the model; not online."""
    if given is None:
        return usual
    number = whole_number("annealing", given, 0)
    if number and online:
        raise InputError("annealing is not for learning online: leave it out")
    if number > burn_in:
        raise InputError(f"annealing must be at most burn_in: {number} was given with a burn_in of {burn_in}")
    return number


def check_time_budget(seconds: float) -> float:
    """A positive number of seconds."""
    value = number_or_nan(seconds)
    if not 0.0 < value < math.inf:
        raise InputError(f"time_budget must be a number of seconds above 0, not {shown(seconds)}")
    return value


def check_sparsity(sparsity: float) -> float:
    """A number that is not negative."""
    value = number_or_nan(sparsity)
    if not 0.0 <= value <= 1e12:
        raise InputError(f"sparsity must be a number from 0 to 1e12, not {shown(sparsity)}")
    return value


def settle_usage(
    prior: tuple[float, float] | None, sparsity: float | None, usual: float, n_atoms: int, n_items: int
) -> tuple[tuple[float, float], float | None]:
    """The prior of the usage, and the sparsity that it follows from unless it is given itself."""
    if prior is not None:
        if sparsity is not None:
            raise InputError("usage_prior says it all: leave sparsity out, or give it alone")
        return prior, None
    sparsity = check_sparsity(usual if sparsity is None else sparsity)
    return (n_atoms, max(1.0, sparsity * n_items)), sparsity
