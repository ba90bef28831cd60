"""The two named settings of every table: the paper's model as it was run there, and what a user gets."""

from collections.abc import Sequence
from typing import Any

from kruskal.errors import one_of

SETTINGS = ("paper", "default")
MODELS = ("kfa", "bpfa")
MGP_CP = "mgp-cp"
CDF = "cdf-kfa"
"""KFA learned online as the paper does."""
_ONLINE = {"online": "cdf", "batch_size": 5_000, "epochs": 10, "burn_in": 5, "passes": 3}


def options_for(
    setting: str,
    model: str,
    *,
    patch_shape: Sequence[int],
    n_atoms: int,
    rank: int,
    stride: int | Sequence[int] = 1,
) -> dict[str, Any]:
    """The options of `kruskal.inpaint` without seed, threads and progress, as plain JSON values.

    "paper" is the paper's model, patch, K, R, stride and number of samples with its flat prior of the usage
    and its plain average of overlapping patches (`kruskal.inpaint` knows this setting by name). The start is
    ours, as the paper's random one needs a longer chain, and the codes of an item are drawn jointly: for both
    models alike.
    "default" gives nothing but the model, and how it is learned online: all that follows is chosen from the
    data. The keyword arguments are what the paper says of the experiment; "default" ignores them.

    Examples
    --------
    >>> options_for("default", "kfa", patch_shape=(8, 8), n_atoms=256, rank=7)
    {'model': 'kfa'}
    """
    one_of("setting", setting, SETTINGS)
    if setting == "default":
        return {"model": "kfa", **_ONLINE} if model == CDF else {"model": model}
    options: dict[str, Any] = {
        "setting": "paper",
        "model": "kfa" if model == CDF else model,
        "patch_shape": list(patch_shape),
        "stride": stride if isinstance(stride, int) else list(stride),
        "n_atoms": n_atoms,
    }
    if model == CDF:
        options |= _ONLINE
    return options if model == "bpfa" else options | {"rank": rank}


def mgp_cp_options(setting: str, **options: Any) -> dict[str, Any]:
    """The options of a Kruskal decomposition: of the whole array, unless ``options`` hold a patch.

    Examples
    --------
    >>> mgp_cp_options("paper", rank=64)
    {'model': 'mgp-cp', 'setting': 'paper', 'rank': 64}
    """
    named = {"setting": "paper"} if setting == "paper" else {}
    return {"model": MGP_CP} | named | options
