"""Deep models in a file: an npz without any pickle, written aside and renamed.

format, version            what it is; another version is refused
model, options             DeepCFA or DeepCKFA, and its parameters as JSON
image_shape, scales        of the images that were learned from, and `DeepCFA.scales_`
layer1_dictionary, ..      the fields of `kruskal.models.ConvGlobal` of every layer, without those of images
layer1_usage, _noise_std, _offset, _scale      what else a layer has learned
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from kruskal.data import Scaling, atomic_path
from kruskal.data.atomic import reason
from kruskal.engines.threads import check_threads
from kruskal.errors import DAMAGE, InputError, path_of
from kruskal.estimators.convolutional import CFA
from kruskal.estimators.deep import DeepCFA, DeepCKFA
from kruskal.estimators.deep_layers import layer_seed, one_layer
from kruskal.gibbs.usage import CONCENTRATION_PRIOR
from kruskal.models import ConvGlobal

FORMAT = "kruskal deep model"
VERSION = 1
MODELS = {"DeepCFA": DeepCFA, "DeepCKFA": DeepCKFA}
_SCALARS = ("alpha", "code_precision", "noise_precision", "concentration")
_KEPT = tuple(name for name in ConvGlobal._fields if name != "image_log_odds")
_NOT_KEPT = ("progress", "threads")


def save_deep(path: str | Path, model: DeepCFA) -> None:
    """Write a fitted model."""
    write_arrays(path, {"format": FORMAT, "version": VERSION} | deep_arrays(model))


def load_deep(path: str | Path) -> DeepCFA:
    """Read a file of `save_deep`; anything else is refused with one sentence."""
    return read_file(path, FORMAT, VERSION, model_from_arrays)


def deep_arrays(model: DeepCFA) -> dict[str, Any]:
    """All that a fitted model consists of, by name."""
    options = {name: value for name, value in model.get_params().items() if name not in _NOT_KEPT}
    arrays: dict[str, Any] = {
        "model": type(model).__name__,
        "options": json.dumps(options, default=_plain),
        "image_shape": model.layers_[0].model_.image_shape,
        "scales": model.scales_,
    }
    for number, layer in enumerate(model.layers_, 1):
        found = {name: getattr(layer.state_, name) for name in _KEPT} | layer.scaling_._asdict()
        found |= {"usage": layer.usage_, "noise_std": layer.noise_std_}
        arrays |= {f"layer{number}_{name}": value for name, value in found.items()}
    return arrays


def model_from_arrays(arrays: dict[str, np.ndarray], threads: int | None = None) -> DeepCFA:
    """The model of `deep_arrays`; one of `kruskal.errors.DAMAGE` if its parts do not fit together."""
    kind = MODELS[str(arrays["model"])]
    model = kind(**json.loads(str(arrays["options"])), threads=threads)
    shape = tuple(int(size) for size in arrays["image_shape"])
    layers = []
    for number, options in enumerate(model._check(), 1):
        # files from before usage by image have none: what a chain begins with
        arrays = {f"layer{number}_concentration": np.array(CONCENTRATION_PRIOR.mean)} | arrays
        part = {name: arrays[f"layer{number}_{name}"] for name in (*_KEPT, *_OTHERS)}
        options = options._replace(n_atoms=len(part["dictionary"]))
        layer = one_layer(options, layer_seed(model.seed, number), threads)
        _put(layer, part, shape)
        layers.append(layer)
        shape = (*layer.model_.layout.grid, layer.n_atoms)
    scales = [float(scale) for scale in arrays["scales"]]
    if len(scales) != len(layers) + 1 or not min(scales) > 0.0:
        raise ValueError("the scales do not belong to the layers")
    model._keep(layers, scales)
    return model


_OTHERS = ("usage", "noise_std", *Scaling._fields)


def _put(layer: CFA, part: dict[str, np.ndarray], image_shape: tuple[int, ...]) -> None:
    """Make a layer what it was after its fit."""
    fields: dict[str, Any] = {name: part[name].astype(np.float64) for name in _KEPT}
    fields |= {name: float(fields[name]) for name in _SCALARS}
    layer.threads = check_threads(layer.threads)
    layer.scaling_ = Scaling(float(part["offset"]), float(part["scale"]))
    layer.model_ = model = layer._build(image_shape)
    layer.state_ = state = ConvGlobal(**fields, image_log_odds=np.zeros((0, layer.n_atoms)))
    layer.memory_ = None
    n_atoms, rank = layer.n_atoms, model.rank
    wanted = {
        "dictionary": (n_atoms, int(np.prod(model.shape))),
        "weights": (n_atoms, rank),
        "factors": (n_atoms, sum(model.shape) if rank else 0, rank),
        "log_delta": (n_atoms, rank),
        "log_odds": (n_atoms, model.layout.n_cells),
    }
    for name, size in wanted.items():
        if getattr(state, name).shape != size:
            raise ValueError(f"{name} has shape {getattr(state, name).shape} instead of {size}")
    if part["usage"].shape != (n_atoms,) or not all(np.isfinite(value).all() for value in state):
        raise ValueError("it holds numbers that are not finite or not of its atoms")
    layer._read_off(part["usage"].astype(np.float64), float(part["noise_std"]))


def write_arrays(path: str | Path, arrays: dict[str, Any]) -> None:
    """An npz file, whole or not at all."""
    path = path_of("path", path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"path must end in .npz, not {path.name!r}")
    # opened here, as NumPy appends .npz to a name that ends in .NPZ
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **{name: np.asarray(value) for name, value in arrays.items()})  # type: ignore[arg-type]


def read_file(path: str | Path, form: str, version: int, build: Any) -> Any:
    """What ``build`` makes of the arrays of an npz file of this format and version."""
    path = path_of("path", path)
    if not path.is_file():
        raise InputError(f"model file {path} does not exist")
    try:
        # opened here, as NumPy leaves a file open that was cut short
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except PermissionError as error:
        raise InputError(f"model file {path} cannot be read: {reason(error)}") from error
    except DAMAGE as error:
        raise InputError(f"{path} is damaged or no file of a {form}") from error
    if str(arrays.get("format")) != form:
        raise InputError(f"{path} is no file of a {form}")
    try:
        if int(arrays["version"]) != version:
            raise InputError(
                f"model file {path} has version {int(arrays['version'])}; this package reads {version}"
            )
        return build(arrays)
    except InputError as error:
        if "this package reads" in str(error):
            raise
        raise InputError(f"model file {path} is damaged: {error}") from error
    except DAMAGE as error:
        raise InputError(f"model file {path} is damaged: {reason(error)}") from error


def _plain(value: Any) -> Any:
    """Arrays and numbers of NumPy as JSON has them."""
    return value.tolist()
