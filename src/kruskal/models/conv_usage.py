"""Usage by image in the state of a convolutional model: read, put back, and drawn for other images."""

from functools import partial

import numpy as np
from scipy.special import expit

from kruskal.gibbs.conv_maps import count_by_image
from kruskal.gibbs.conv_usage import BlockKind, MapUsage, draw_usage_of_images
from kruskal.gibbs.usage import Usage
from kruskal.models.conv_state import ConvGlobal, ImageEngine
from kruskal.random import Stream, generator


def usage_of(state: ConvGlobal) -> MapUsage:
    """eta, h, pi and phi of a state."""
    mean = np.logaddexp.reduce(state.log_odds, axis=1)
    eta = np.clip(expit(mean), 1e-300, 1.0 - 1e-16)
    return MapUsage(Usage(state.image_log_odds, eta, state.concentration), state.log_odds - mean[:, None])


def with_usage(state: ConvGlobal, usage: MapUsage) -> ConvGlobal:
    """The state with another usage."""
    images = usage.images
    mean = np.log(images.mean) - np.log1p(-images.mean)
    return state._replace(
        log_odds=mean[:, None] + usage.log_cells, image_log_odds=images.log_odds,
        concentration=images.concentration,
    )  # fmt: skip


def for_images(state: ConvGlobal, n_images: int) -> ConvGlobal:
    """The state for other images, of whose usage nothing is known but the mean."""
    mean = np.logaddexp.reduce(state.log_odds, axis=1)
    return state._replace(image_log_odds=np.tile(mean, (n_images, 1)))


def count_images(engine: ImageEngine, n_atoms: int) -> np.ndarray:
    """(N, K) number of non-zeros of every map."""
    return np.concatenate(engine.map(partial(count_by_image, n_atoms=n_atoms)))


def draw_new_usage(
    state: ConvGlobal, engine: ImageEngine, kinds: list[BlockKind], seed: int, number: int
) -> ConvGlobal:
    """The usage of images given their maps and all that is shared."""
    counts = count_images(engine, len(state.log_odds))
    drawn = draw_usage_of_images(usage_of(state), counts, kinds, generator(seed, Stream.USAGE, number))
    return state._replace(image_log_odds=drawn)
