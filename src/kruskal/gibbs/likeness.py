"""Groups of items that look alike, so that they share a usage: regions by likeness instead of by place.

Items that look alike use the same atoms, wherever they lie; even more so if they are neighbours as well. They
are told apart by their leading principal scores, in which noise is weak beside what items differ in, and in
signals and pictures a little by their place, and grouped by k-means. The groups are made before the chain
begins, of the data and the seed alone, or once in the burn-in, of what is restored by then; given them the
chain is the same exact one.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.start import evenly_spread, leading_eigenvectors
from kruskal.patches import Items
from kruskal.random import Stream, generator

_SCORES = 16
_PLACE = 0.25  # variance of the places, as a part of that of the scores
_MOST_AXES = 2  # along which places count: in volumes likeness says more without them
_ROUNDS = 25
_WILD = 0.005  # share of the items at either end
_ENTRIES = 2**20  # that are worked on at a time


class Features(NamedTuple):
    """What items are compared by: leading principal scores, and a little where they lie.

    Attributes
    ----------
    array_shape : shape of the array that the items lie in
    mean : (P,) of the items;  directions : (P, n) in which they differ most
    least, most : (n,) scores beyond these count as these, or a few wild items would have most groups
    middle, scale : (T,) places less ``middle``, times ``scale``, stand beside the scores
    """

    array_shape: tuple[int, ...]
    mean: np.ndarray
    directions: np.ndarray
    least: np.ndarray
    most: np.ndarray
    middle: np.ndarray
    scale: np.ndarray

    @classmethod
    def found(cls, items: Items, chosen: np.ndarray, array_shape: tuple[int, ...]) -> "Features":
        """Look at some of the items."""
        mean, directions = _principal_directions(items, chosen)
        scores = np.concatenate(
            [(_gathered(items, part) - mean) @ directions for part in _chunks(items, chosen)]
        )
        least, most = np.quantile(scores, [_WILD, 1.0 - _WILD], axis=0)
        place = _places(items, chosen, array_shape)
        spread = place.std(axis=0)
        varied = spread > 0.0
        if np.count_nonzero(varied) > _MOST_AXES:
            varied[:] = False
        variance = _PLACE * np.clip(scores, least, most).var(axis=0).sum()  # of all axes together
        scale = np.where(varied, np.sqrt(variance / max(1, np.count_nonzero(varied))), 0.0)
        scale /= np.where(varied, spread, 1.0)
        return cls(array_shape, mean, directions, least, most, place.mean(axis=0), scale)

    def of(self, items: Items, chosen: np.ndarray) -> np.ndarray:
        """(n, d) features of the chosen items."""
        scores = (_gathered(items, chosen) - self.mean) @ self.directions
        place = _places(items, chosen, self.array_shape)
        return np.hstack([np.clip(scores, self.least, self.most), (place - self.middle) * self.scale])


def group_alike(items: Items, most: int, seed: int, array_shape: tuple[int, ...], number: int = 0) -> Items:
    """The same items of an array of this shape in at most ``most`` regions of items that look alike.

    The groups are found among at most 20,000 items, evenly spread; then each item joins the nearest one.
    Missing entries count as the mean of the observed ones of their item, or 0 if it has none. ``number``
    tells apart the times that this is done.
    """
    if most == 1 or items.n_items == 1:
        return items._replace(region=np.zeros(items.n_items, np.uint16))
    chosen = evenly_spread(items.n_items)
    features = Features.found(items, chosen, array_shape)
    points = np.concatenate([features.of(items, part) for part in _chunks(items, chosen)])
    centres = k_means(points, most, generator(seed, Stream.LIKENESS, number))
    everyone = _chunks(items, np.arange(items.n_items))
    region = np.concatenate([_nearest(features.of(items, part), centres) for part in everyone])
    # groups that nobody belongs to are left out
    return items._replace(region=np.unique(region, return_inverse=True)[1].astype(np.uint16))


def k_means(points: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """At most ``most`` centres (m, d) of ``points`` (n, d).

    The first centres are points drawn with probabilities that grow with the squared distance from those drawn
    before (k-means++), so there are fewer where there are fewer different points.
    """
    centres = points[random.integers(len(points))][None, :]
    gaps = np.sum((points - centres[0]) ** 2, axis=1)
    while len(centres) < most and gaps.any():
        reach = np.cumsum(gaps)
        at = np.searchsorted(reach, random.random() * reach[-1], side="right")
        picked = points[min(at, len(points) - 1)]
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
    squares = np.sum(centres**2, axis=1)
    step = max(1, _ENTRIES // len(centres))
    parts = [points[first : first + step] for first in range(0, len(points), step)]
    return np.concatenate([(squares - 2.0 * (part @ centres.T)).argmin(axis=1) for part in parts])


def _principal_directions(items: Items, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (P,) of the chosen items, and the leading directions (P, n) in which they differ."""
    n_entries = len(items.offset)
    total, moment = np.zeros(n_entries), np.zeros((n_entries, n_entries))
    for part in _chunks(items, chosen):
        values = _gathered(items, part)
        total += values.sum(axis=0)
        moment += values.T @ values
    mean = total / len(chosen)
    covariance = moment / len(chosen) - np.outer(mean, mean)
    return mean, leading_eigenvectors(covariance, min(_SCORES, n_entries))[1]


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


def _chunks(items: Items, chosen: np.ndarray) -> list[np.ndarray]:
    """The chosen items, as many at a time as have so many entries together."""
    step = max(1, _ENTRIES // len(items.offset))
    return [chosen[first : first + step] for first in range(0, len(chosen), step)]
