"""Groups of items that look alike, so that they share a usage: regions by likeness instead of by place.

Items that look alike use the same atoms, wherever they lie. They are told apart by their leading principal
scores, in which noise is weak beside what items differ in, and grouped by k-means. The groups are a function
of the data and the seed alone, made once before the chain begins; given them the chain is the same exact one.
"""

import numpy as np

from kruskal.gibbs.start import evenly_spread, leading_eigenvectors
from kruskal.patches import Items
from kruskal.random import Stream, generator

_SCORES = 16
_ROUNDS = 25
_CHUNK = 4_096


def group_alike(items: Items, most: int, seed: int) -> Items:
    """The same items in at most ``most`` regions of items that look alike.

    The groups are found among at most 20,000 items, evenly spread; then each item joins the nearest one.
    Missing entries count as the mean of the observed ones of their item.
    """
    chosen = evenly_spread(items.n_items)
    mean, directions = _principal_directions(items, chosen)
    centres = nearest_means(
        np.concatenate([_scores(items, part, mean, directions) for part in _chunks(chosen)]),
        most,
        generator(seed, Stream.LIKENESS, 0),
    )
    region = [
        _nearest(_scores(items, part, mean, directions), centres)
        for part in _chunks(np.arange(items.n_items))
    ]
    # groups that nobody belongs to are left out
    return items._replace(region=np.unique(np.concatenate(region), return_inverse=True)[1].astype(np.uint16))


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


def _principal_directions(items: Items, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (P,) of the chosen items, and the leading directions (P, n) in which they differ."""
    n_entries = len(items.offset)
    total, moment = np.zeros(n_entries), np.zeros((n_entries, n_entries))
    for part in _chunks(chosen):
        values = _gathered(items, part)
        total += values.sum(axis=0)
        moment += values.T @ values
    mean = total / len(chosen)
    covariance = moment / len(chosen) - np.outer(mean, mean)
    return mean, leading_eigenvectors(covariance, min(_SCORES, n_entries))[1]


def _scores(items: Items, chosen: np.ndarray, mean: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return (_gathered(items, chosen) - mean) @ directions


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
