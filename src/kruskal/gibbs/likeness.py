"""Groups of items that look alike, so that they share a usage: regions by likeness instead of by place.

Items that look alike use the same atoms, wherever they lie; even more so if they are neighbours as well. They
are told apart by their leading principal scores, in which noise is weak beside what items differ in, and a
little by their place, and grouped by k-means. The groups are a function of the data and the seed alone, made
once before the chain begins; given them the chain is the same exact one.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.start import evenly_spread, leading_eigenvectors
from kruskal.patches import Items
from kruskal.random import Stream, generator

_SCORES = 16
_PLACE = 0.25  # variance of the places, as a part of that of the scores
_ROUNDS = 25
_CHUNK = 4_096


class Features(NamedTuple):
    """What items are compared by: leading principal scores, and a little where they lie.

    Attributes
    ----------
    array_shape : shape of the array that the items lie in
    mean : (P,) of the items;  directions : (P, n) in which they differ most
    middle, scale : (T,) places less ``middle``, times ``scale``, stand beside the scores
    """

    array_shape: tuple[int, ...]
    mean: np.ndarray
    directions: np.ndarray
    middle: np.ndarray
    scale: np.ndarray

    @classmethod
    def found(cls, items: Items, chosen: np.ndarray, array_shape: tuple[int, ...]) -> "Features":
        """Look at some of the items."""
        mean, variances, directions = _principal_directions(items, chosen)
        place = _places(items, chosen, array_shape)
        spread = place.std(axis=0)
        varied = spread > 0.0
        variance = _PLACE * max(variances.sum(), 0.0) / max(1, np.count_nonzero(varied))  # of each axis
        scale = np.where(varied, np.sqrt(variance) / np.where(varied, spread, 1.0), 0.0)
        return cls(array_shape, mean, directions, place.mean(axis=0), scale)

    def of(self, items: Items, chosen: np.ndarray) -> np.ndarray:
        """(n, d) features of the chosen items."""
        scores = (_gathered(items, chosen) - self.mean) @ self.directions
        return np.hstack([scores, (_places(items, chosen, self.array_shape) - self.middle) * self.scale])


def group_alike(items: Items, most: int, seed: int, array_shape: tuple[int, ...]) -> Items:
    """The same items of an array of this shape in at most ``most`` regions of items that look alike.

    The groups are found among at most 20,000 items, evenly spread; then each item joins the nearest one.
    Missing entries count as the mean of the observed ones of their item.
    """
    chosen = evenly_spread(items.n_items)
    features = Features.found(items, chosen, array_shape)
    points = np.concatenate([features.of(items, part) for part in _chunks(chosen)])
    centres = nearest_means(points, most, generator(seed, Stream.LIKENESS, 0))
    everyone = _chunks(np.arange(items.n_items))
    region = np.concatenate([_nearest(features.of(items, part), centres) for part in everyone])
    # groups that nobody belongs to are left out
    return items._replace(region=np.unique(region, return_inverse=True)[1].astype(np.uint16))


def nearest_means(points: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """k-means of ``points`` (n, d): at most ``most`` centres (m, d).

    The first centres are points drawn with probabilities that grow with the squared distance from those drawn
    before (k-means++), so there are fewer where there are fewer different points.
    """
    centres = points[random.integers(len(points))][None, :]
    gaps = np.sum((points - centres[0]) ** 2, axis=1)
    while len(centres) < most and gaps.sum() > 0.0:
        picked = points[np.searchsorted(np.cumsum(gaps), random.random() * gaps.sum(), side="right")]
        centres = np.concatenate([centres, picked[None, :]])
        gaps = np.minimum(gaps, np.sum((points - picked) ** 2, axis=1))
    for _ in range(_ROUNDS):
        own = _nearest(points, centres)
        sizes = np.bincount(own, minlength=len(centres))
        sums = np.stack([np.bincount(own, column, len(centres)) for column in points.T], axis=1)
        moved = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def _nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """(n,) number of the nearest centre of every point."""
    return (np.sum(centres**2, axis=1) - 2.0 * (points @ centres.T)).argmin(axis=1)


def _principal_directions(items: Items, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean (P,) of the chosen items, and variances (n,) and leading directions (P, n) of what differs."""
    n_entries = len(items.offset)
    total, moment = np.zeros(n_entries), np.zeros((n_entries, n_entries))
    for part in _chunks(chosen):
        values = _gathered(items, part)
        total += values.sum(axis=0)
        moment += values.T @ values
    mean = total / len(chosen)
    covariance = moment / len(chosen) - np.outer(mean, mean)
    return mean, *leading_eigenvectors(covariance, min(_SCORES, n_entries))


def _places(items: Items, chosen: np.ndarray, array_shape: tuple[int, ...]) -> np.ndarray:
    """(n, T) where the chosen items begin."""
    return np.stack(np.unravel_index(items.origin[chosen], array_shape), axis=1).astype(np.float64)


def _gathered(items: Items, chosen: np.ndarray) -> np.ndarray:
    """(n, P) values of the chosen items, the missing ones filled in."""
    place = items.origin[chosen, None] + items.offset
    values = items.flat[place].astype(np.float64)  # zero where missing
    if items.complete:
        return values
    seen = items.observed[place]
    means = values.sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    return np.where(seen, values, means[:, None])


def _chunks(chosen: np.ndarray) -> list[np.ndarray]:
    return np.array_split(chosen, -(-len(chosen) // _CHUNK))
