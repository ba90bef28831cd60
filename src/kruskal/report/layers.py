"""The atoms of every layer of a deep model, as the pictures they stand for."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kruskal.data import atomic_path
from kruskal.report.canvas import HEADING, MARGIN, drawing_style, new_figure, place_axes, png_bytes
from kruskal.report.tiles import TILE_GAP, mosaic, normalise, plan_mosaic, unfold

_NARROWEST = 900
_BACKGROUND = (0.76, 0.83, 0.91)


def write_layers(folder: str | Path, layers: Sequence[np.ndarray], usage: Sequence[np.ndarray]) -> list[Path]:
    """Write layer1.png, layer2.png, ..; the folder is made if it does not exist.

    Parameters
    ----------
    layers : atoms (K, rows, columns, channels) of every layer in pixels
    usage : (K,) of every layer; the most used come first
    """
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    written = []
    for number, (atoms, used) in enumerate(zip(layers, usage, strict=True), 1):
        written.append(folder / f"layer{number}.png")
        order = np.argsort(-used, kind="stable")
        with atomic_path(written[-1]) as temporary:
            temporary.write_bytes(draw_layer(atoms[order], number))
    return written


def draw_layer(atoms: np.ndarray, number: int) -> bytes:
    """Atoms (K, rows, columns, channels) as tiles, each scaled on its own, grey is zero; a PNG file."""
    colour = atoms.shape[3] == 3
    tiles = [normalise(atom if colour else atom[..., 0]) for atom in atoms]
    height, width = tiles[0].shape[:2]
    plan = plan_mosaic(len(tiles), height, width)
    picture = mosaic([unfold(tile, colour, plan.scale) for tile in tiles[: plan.shown]], plan.columns)
    picture = picture if colour else np.repeat(picture[..., None], 3, axis=2)
    picture = np.where(np.isnan(picture), _BACKGROUND, 0.5 + 0.5 * np.nan_to_num(picture))
    rows, columns = picture.shape[:2]
    subtitle = f"{plan.shown} of {len(atoms)} atoms in pixels, the most used first, each scaled on its own"
    with drawing_style():
        figure = new_figure(
            max(columns + 2 * MARGIN, _NARROWEST),
            rows + HEADING + MARGIN + TILE_GAP,
            f"Layer {number}",
            subtitle,
        )
        axes = place_axes(figure, MARGIN, HEADING, columns, rows)
        axes.imshow(picture, interpolation="nearest", aspect="auto")
        axes.set_axis_off()
        return png_bytes(figure)
