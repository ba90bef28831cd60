"""Top weights of new images: a pass upwards, or the literal model's chains, averaged over several."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kruskal.deep.dense import Dense
from kruskal.deep.inference import infer
from kruskal.deep.objective import Part
from kruskal.deep.places import place_features, shifted_copies
from kruskal.engines.threads import Threads
from kruskal.models.dgdn import DeepModel
from kruskal.models.mcem import MonteCarloEM
from kruskal.random import Stream

VISITS = 20
"""Visits of a chain of the literal model; the second half is averaged."""
_IMAGES_AT_A_TIME = 100


class Found(NamedTuple):
    """mean : (n, d) top weights over the visits;  features, places : those of the last visit."""

    mean: np.ndarray
    features: np.ndarray
    places: list[np.ndarray]


def visit_images(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], images: np.ndarray, threads: int | None
) -> np.ndarray:
    """``function`` of (images, indices), a hundred at a time, on threads; results one below the other."""
    parts = [
        slice(first, min(first + _IMAGES_AT_A_TIME, len(images)))
        for first in range(0, len(images), _IMAGES_AT_A_TIME)
    ]
    with Threads(parts, threads) as engine:
        return np.concatenate(
            engine.map(lambda part: function(images[part], np.arange(part.start, part.stop)))
        )


def top_weights(
    model: DeepModel,
    expectation: MonteCarloEM | None,
    dense: Dense,
    images: np.ndarray,
    chains: int,
    seed: int,
    threads: int | None,
) -> np.ndarray:
    """Top weights (N, d), the mean over the chains; without chance one chain says all."""
    if expectation is None and model.sharpness == np.inf:
        chains = 1

    def mean(part: np.ndarray, items: np.ndarray) -> np.ndarray:
        total = np.zeros((len(part), model.network.n_features), part.dtype)
        for chain in range(chains):
            total += run_chain(model, expectation, dense, part, items, chain, seed).mean
        return total / part.dtype.type(chains)

    return visit_images(mean, images, threads)


def layer_weights(
    model: DeepModel,
    dense: Dense,
    images: np.ndarray,
    layers: Sequence[int],
    places: int,
    shift: int,
    apart: bool,
    chains: int,
    seed: int,
    threads: int | None,
) -> np.ndarray:
    """Weights (N, d) of ``layers`` (from 1) at a few places, in a row, mean over copies and chains.

    See `kruskal.deep.places` for the places and for the copies of an image, shifted by ``shift`` pixels;
    ``apart`` takes no mean over these, (N, copies, d).
    """
    network = model.network
    if model.sharpness == np.inf:
        chains = 1

    def seen(part: np.ndarray, items: np.ndarray, chain: int) -> np.ndarray:
        upward = infer(network, dense, part, items, model.draw(seed, Stream.DEEP_TEST_CELLS, chain))
        maps = [*upward.images[1:], upward.features]
        return np.concatenate(
            [
                place_features(
                    maps[layer - 1].reshape(
                        len(part), *network.layers[layer - 1].grid, network.n_atoms[layer - 1]
                    ),
                    places,
                )
                for layer in layers
            ],
            axis=1,
        )

    def visit(part: np.ndarray, items: np.ndarray) -> np.ndarray:
        copies = shifted_copies(part, network.image_shape[2], shift)
        found = [sum(seen(copy, items, chain) for chain in range(chains)) for copy in copies]
        total = np.stack(found, axis=1) if apart else sum(found)
        return np.asarray(total / part.dtype.type(chains if apart else len(copies) * chains))

    return visit_images(visit, images, threads)


def run_chain(
    model: DeepModel,
    expectation: MonteCarloEM | None,
    dense: Dense,
    images: np.ndarray,
    items: np.ndarray,
    chain: int,
    seed: int,
) -> Found:
    """The codes of images (n, M_x, M_y C) whose indices are ``items``, in one chain."""
    if expectation is None:
        upward = infer(model.network, dense, images, items, model.draw(seed, Stream.DEEP_TEST_CELLS, chain))
        return Found(upward.features, upward.features, upward.places)
    codes = expectation.begin(dense, images, items)
    part = Part(images, items, np.zeros((len(images), 0), images.dtype))
    total = np.zeros_like(codes.features)
    for number in range(VISITS):
        address = chain * VISITS + number
        codes, _ = expectation.visit(dense, codes, part, seed, address, Stream.DEEP_TEST_CELLS, False)
        if number >= VISITS // 2:
            total += codes.features
    return Found(total / images.dtype.type(VISITS - VISITS // 2), codes.features, [codes.places])
