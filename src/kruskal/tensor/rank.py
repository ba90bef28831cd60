"""Expected, generic and maximal tensor rank of a shape."""

import math
from collections.abc import Sequence

from kruskal.errors import InputError, shown, whole_number


def _sizes(shape: Sequence[int]) -> list[int]:
    """Mode sizes without ones, sorted; InputError unless all are whole numbers of at least 1."""
    try:
        sizes = [whole_number("shape", size, 1) for size in shape]
    except (TypeError, InputError) as error:
        raise InputError(f"shape must hold whole numbers of at least 1, not {shown(shape)}") from error
    return sorted(size for size in sizes if size > 1)


def expected_rank(shape: Sequence[int]) -> int:
    """The rank at which parameter counting says that Kruskal tensors fill the space of this shape.

    Unbalanced shapes (the largest mode exceeds what the others can span, matrices included) have
    ``min(m_T, prod of the others)``; the others ``ceil(prod m / (1 + sum(m - 1)))``.

    >>> expected_rank((8, 8)), expected_rank((8, 8, 8)), expected_rank((5, 5, 5, 5))
    (8, 24, 37)
    """
    sizes = _sizes(shape)
    if len(sizes) <= 1:
        return 1
    others = math.prod(sizes[:-1])
    if sizes[-1] >= 1 + others - sum(m - 1 for m in sizes[:-1]):
        return min(sizes[-1], others)
    return -(-math.prod(sizes) // (1 + sum(m - 1 for m in sizes)))


def generic_rank(shape: Sequence[int]) -> int:
    """The rank of almost every complex tensor of this shape; over the reals the smallest typical rank.

    It is the expected rank, plus one for 3 x n x n with n odd (Strassen 1983). No other exception is known
    (conjecture of Abo, Ottaviani and Peterson; checked by Terracini's lemma for all small shapes).

    >>> generic_rank((3, 3, 3)), generic_rank((7, 7, 3))
    (5, 11)
    """
    sizes = _sizes(shape)
    strassen = len(sizes) == 3 and sizes[0] == 3 and sizes[1] == sizes[2] and sizes[1] % 2 == 1
    return expected_rank(sizes) + int(strassen)


def maximal_rank(shape: Sequence[int]) -> int:
    """An upper bound on the rank of any tensor of this shape: the product of all modes but the largest."""
    return max(1, math.prod(_sizes(shape)[:-1]))


def refuse_impossible_rank(rank: int, shape: Sequence[int], where: str = "") -> None:
    """Refuse a rank that no tensor of this shape has; ``where`` says which rank is meant."""
    most = maximal_rank(shape)
    if rank > most:
        size = "x".join(map(str, shape))
        raise InputError(
            f"rank {rank}{where} is not possible: no tensor of shape {size} has a rank above {most}"
        )
