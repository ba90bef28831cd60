"""Options of learning online, checked, and values for those not given."""

import math
from typing import Any, NamedTuple

from kruskal.errors import InputError, shown, whole_number
from kruskal.gibbs.pair_sums import pair_bytes
from kruskal.models.online import KINDS, PASSES

ONLINE_MODELS = ("kfa", "bpfa")
EPOCHS = 10
"""Epochs, of which half are burn-in: the paper's."""
BATCH_SIZES = {"cdf": 5_000, "exact": 20_000, "incremental": 20_000}
"""Items per batch. The first is the paper's; a visit costs the others more, whatever the batch."""
_MOST_BYTES = 2**30  # for sums over pairs of atoms, of which a visit makes a copy


class Batching(NamedTuple):
    """How a run learns online: what is remembered, items per batch, number of batches, sweeps per visit."""

    online: str | None = None
    batch_size: int = 0
    batches: int = 1
    passes: int = 1


def resolve_batching(
    online: Any, model: str, n_items: int, batch_size: int | None, passes: int | None
) -> Batching:
    """Check the options against the number of items; a batch never holds more than there are."""
    if online is None or online is False:
        refuse_without_online(batch_size=batch_size, passes=passes)
        return Batching()
    kind = "exact" if online is True else online
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"online must be one of {', '.join(KINDS)}, True or None, not {shown(online)}")
    if model not in ONLINE_MODELS:
        raise InputError(f"online is possible with model {' or '.join(ONLINE_MODELS)}, not with {model!r}")
    size = whole_number("batch_size", BATCH_SIZES[kind] if batch_size is None else batch_size, 1)
    size = min(size, n_items)
    n_passes = whole_number("passes", PASSES[kind] if passes is None else passes, 1)
    return Batching(kind, size, math.ceil(n_items / size), n_passes)


def refuse_without_online(**options: Any) -> None:
    """Complain about the first option that is given although learning is not online."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name} is for learning online: give online as well, or leave it out")


def check_memory(online: str | None, n_atoms: int, n_entries: int, complete: bool) -> None:
    """Refuse sums over pairs of atoms that would not fit into memory; complete data need far less."""
    needed = pair_bytes(n_atoms, n_entries)
    if online == "exact" and not complete and needed > _MOST_BYTES:
        raise InputError(
            f"online 'exact' would keep {needed / 2**30:.1f} GiB for {n_atoms} atoms of {n_entries} entries, "
            f"more than {_MOST_BYTES / 2**30:.0f} GiB: take fewer atoms, a smaller patch, or 'incremental'"
        )
