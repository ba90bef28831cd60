"""Kruskal (CP) algebra and tensor rank: mathematics without randomness."""

from kruskal.tensor.kruskal import RANK_TOLERANCE, compose, decompose, effective_ranks, entry_rows
from kruskal.tensor.rank import expected_rank, generic_rank, maximal_rank, refuse_impossible_rank

__all__ = [
    "RANK_TOLERANCE",
    "compose",
    "decompose",
    "effective_ranks",
    "entry_rows",
    "expected_rank",
    "generic_rank",
    "maximal_rank",
    "refuse_impossible_rank",
]
