"""Kruskal (CP) algebra and tensor rank: mathematics without randomness."""

from kruskal.tensor.kruskal import compose, decompose, effective_ranks, entry_rows
from kruskal.tensor.rank import expected_rank, generic_rank, maximal_rank

__all__ = [
    "compose",
    "decompose",
    "effective_ranks",
    "entry_rows",
    "expected_rank",
    "generic_rank",
    "maximal_rank",
]
