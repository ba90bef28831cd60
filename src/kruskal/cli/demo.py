"""The command demo: a colour picture with four fifths of its values removed, and what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kruskal.cli import options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIDE = 256
KEEP = 0.2
SEED = 0
# chosen to finish well within two minutes on two cores, compilation included
SETTINGS: dict[str, Any] = {
    "patch_shape": (8, 8, 3),
    "stride": 1,
    "n_atoms": 128,
    "sweeps": 60,
    "seed": SEED,
}


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the pictures and the report.")] = Path(
        "kruskal-demo"
    ),
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Remove 80 % of a colour picture, restore it, write pictures and a report (about a minute).

    Every colour of every pixel is removed on its own, with probability 0.8.
    """
    options.at_least(threads, 1, "--threads")

    from kruskal import data, restore
    from kruskal.cli.checks import check_new_folder
    from kruskal.engines.progress import choose
    from kruskal.engines.progress_words import duration
    from kruskal.report import psnr, write_figures, write_report

    check_new_folder(out, f"--out {out}")
    picture = demo_picture()
    damaged = data.corrupt(picture, keep=KEEP, seed=SEED)
    progress = choose(quiet)
    try:
        restoration = restore.inpaint(
            damaged.values, damaged.observed, threads=threads, progress=progress, **SETTINGS
        )
    finally:
        progress.stop()

    from kruskal.cli.summary import scores_of, summarise

    summary = summarise(restoration, damaged.observed, picture)
    out.mkdir(exist_ok=True)
    files = {
        "original.png": picture,
        "damaged.png": picture * damaged.observed,
        "restored.png": restoration.mean,
    }
    for name, values in files.items():
        data.write(out / name, values, dtype="uint8")
    figures = write_figures(
        out, restoration, observed_values=damaged.values, observed=damaged.observed, reference=picture
    )
    write_report(
        out / "report.html",
        restoration,
        scores_of(summary),
        figures,
        title="A picture restored from a fifth of its values",
        command="kruskal demo",
        seconds=restoration.seconds,
    )
    if not quiet:
        typer.echo(f"{100 * KEEP:.0f} % of the values kept, restored in {duration(restoration.seconds)}")
        for name, filled in baselines(damaged.values, damaged.observed).items():
            typer.echo(f"PSNR {psnr(filled, picture):5.2f} dB  {name}")
        typer.echo(f"PSNR {summary['psnr']:5.2f} dB  kruskal inpaint")
        typer.echo(f"look at {out / 'restoration.png'} and {out / 'report.html'}")


def demo_picture() -> NDArray[np.uint8]:
    """Return scikit-image's astronaut, which comes with its wheel, at half its size; (256, 256, 3)."""
    import numpy as np
    from skimage.data import astronaut

    whole = astronaut()
    block = whole.shape[0] // SIDE
    small = whole.reshape(SIDE, block, SIDE, block, 3).mean(axis=(1, 3))
    return np.rint(small).astype(np.uint8)


def baselines(values: NDArray[Any], observed: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Fill the missing entries in two simple ways, every channel on its own.

    Parameters
    ----------
    values : ndarray, shape (rows, columns, channels)
        The picture; what stands at missing entries has no influence.
    observed : ndarray of bool, same shape
        True where an entry was kept.

    Returns
    -------
    dict of str to ndarray
        The filled pictures by the name of the method.
    """
    import numpy as np
    from scipy.interpolate import griddata

    mean, linear = values.copy(), values.copy()
    everywhere = np.indices(values.shape[:2]).reshape(2, -1).T
    for channel in range(values.shape[2]):
        kept = observed[..., channel]
        known = values[..., channel][kept]
        mean[..., channel][~kept] = known.mean()
        filled = griddata(np.argwhere(kept), known, everywhere, method="linear").reshape(kept.shape)
        outside = np.isnan(filled)  # of the hull of the kept pixels
        linear[..., channel] = np.where(outside, known.mean(), filled)
    return {"mean of the kept values": mean, "linear interpolation": linear}
