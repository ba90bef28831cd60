"""Where a convolutional chain begins: random patches of the images, as items for `kruskal.gibbs.start`."""

import numpy as np

from kruskal.gibbs.conv_local import ImageShard, Layout
from kruskal.patches import Items

_MOST_PATCHES = 20_000


def patch_items(shards: list[ImageShard], layout: Layout, random: np.random.Generator) -> Items:
    """Patches of the size of an atom at random places of random images: views, or copies of a part."""
    n_images = sum(shard.n_images for shard in shards)
    chosen = np.arange(n_images)
    if n_images > _MOST_PATCHES:
        chosen = np.sort(random.choice(n_images, _MOST_PATCHES, replace=False))
    values = _gather(shards, chosen, "values")
    observed = np.zeros(0, bool) if shards[0].complete else _gather(shards, chosen, "observed").reshape(-1)
    rows, columns = layout.map_shape
    total = len(chosen) * rows * columns
    place = np.arange(total) if total <= _MOST_PATCHES else random.integers(0, total, _MOST_PATCHES)
    image, x, y = np.unravel_index(place, (len(chosen), rows, columns))
    width, channels = values.shape[2], layout.image_shape[2]
    origin = (image * values.shape[1] + x) * width + y * channels
    run = layout.atom_size[1] * channels
    offset = (np.arange(layout.atom_size[0])[:, None] * width + np.arange(run)[None, :]).reshape(-1)
    return Items(
        values.reshape(-1), observed, origin.astype(np.int64), offset.astype(np.int64), layout.atom_shape,
        np.zeros(len(origin), np.uint16),
    )  # fmt: skip


def _gather(shards: list[ImageShard], chosen: np.ndarray, name: str) -> np.ndarray:
    """The images ``chosen`` (increasing) of all shards."""
    parts = []
    for shard in shards:
        here = chosen[(chosen >= shard.first) & (chosen < shard.first + shard.n_images)]
        parts.append(getattr(shard, name)[here - shard.first])
    return np.concatenate(parts)
