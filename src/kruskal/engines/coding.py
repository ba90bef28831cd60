"""Codes of new items for a fixed global state, chunk by chunk: memory depends on the chunk."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from kruskal.engines.threads import ThreadEngine
from kruskal.gibbs.codes import CodeModel, code_model
from kruskal.gibbs.coding import CodingPlan, code_shard
from kruskal.models import Global
from kruskal.patches import Items

CHUNK_ITEMS = 16 * 1024
"""Items of a chunk: as many as fill all shards."""


class Coder:
    """Codes items with the atoms, the usage and the precisions of ``state``, which has one region."""

    def __init__(self, state: Global, plan: CodingPlan, threads: int) -> None:
        self.state, self.plan, self.threads = state, plan, threads
        self._models: dict[bool, CodeModel] = {}

    def codes(self, items: Items) -> csr_array:
        """(N, K) posterior means of the codes."""
        with ThreadEngine(items, self.threads) as engine:
            parts = engine.map(partial(code_shard, model=self._model(items), plan=self.plan))
        return self._matrix([part.codes for part in parts])

    def moments(self, items: Items) -> tuple[np.ndarray, np.ndarray]:
        """(N, P) posterior means and variances of the items without noise."""
        with ThreadEngine(items, self.threads) as engine:
            code = partial(code_shard, model=self._model(items), plan=self.plan, with_variance=True)
            parts = engine.map(code)
        mean = self._matrix([part.codes for part in parts]) @ self.state.dictionary
        return mean, np.concatenate([part.variance for part in parts])

    def _model(self, items: Items) -> CodeModel:
        state, complete = self.state, items.complete
        if complete not in self._models:
            self._models[complete] = code_model(
                state.dictionary, state.log_odds, state.code_precision, state.noise_precision,
                items.flat.dtype, complete,
            )  # fmt: skip
        return self._models[complete]

    def _matrix(self, parts: list) -> csr_array:
        """The codes of all shards as one sparse matrix."""
        counts = np.concatenate([np.diff(part.start) for part in parts])
        start = np.concatenate([[0], np.cumsum(counts)])
        atom = np.concatenate([part.atom for part in parts]).astype(np.int32)
        value = np.concatenate([part.value for part in parts]).astype(np.float64)
        return csr_array((value, atom, start), shape=(len(counts), len(self.state.dictionary)))


def chunks(n_items: int) -> Iterator[slice]:
    """Where the chunks of a stack of items lie."""
    for first in range(0, n_items, CHUNK_ITEMS):
        yield slice(first, min(first + CHUNK_ITEMS, n_items))
