"""Sums over shards: the same additions in the same order, whatever the threads do."""

import time

import pytest

from kruskal.engines.threads import Threads


def balanced(parts: list):
    """The additions that are promised, as nested pairs."""
    while len(parts) > 1:
        parts = [tuple(parts[i : i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n_shards", [1, 2, 3, 6, 7, 16])
def test_total_adds_in_the_order_of_the_shards(n_shards, threads):
    def visit(shard: int, found: int | None) -> int | tuple:
        time.sleep(0.001 * (shard * 7 % 3))  # done in another order than begun
        return shard if found is None else (found, shard)

    with Threads(list(range(n_shards)), threads) as engine:
        for _ in range(3):
            assert engine.total(visit, lambda one, other: (one, other)) == balanced(list(range(n_shards)))
