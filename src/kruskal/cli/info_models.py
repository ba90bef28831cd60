"""What info tells of models: files of deep models and picture classifiers, and folders of a training."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kruskal.errors import DAMAGE, InputError

if TYPE_CHECKING:
    from kruskal.estimators.deep import DeepCFA

TRAINING_FILE = "training.json"
_SETTINGS = ("pooling", "sweeps", "usage", "features", "seed")


def describe_model(file: Path) -> dict[str, Any] | None:
    """Describe an npz of ``kruskal classify train`` or of ``DeepCKFA.save``; None for any other npz."""
    form = _format_of(file)
    if form is None:
        return None

    from kruskal.estimators import deep_file, picture_classifier

    if form == deep_file.FORMAT:
        found = {"file": str(file), "format": "deep model of kruskal", "format_version": deep_file.VERSION}
        return found | _described(deep_file.load_deep(file))
    if form == picture_classifier.FORMAT:
        classifier = picture_classifier.PictureClassifier.load(file)
        return {
            "file": str(file),
            "format": "picture classifier of kruskal",
            "format_version": picture_classifier.VERSION,
            "n_classes": len(classifier.classes_),
            "classes": classifier.classes_,
            "feature_layers": ",".join(map(str, classifier.layers or ())),
            "n_features": classifier.coef_.shape[1],
            "contrast": classifier.contrast,
        } | _described(classifier.deep)
    return None


def describe_training(directory: Path) -> dict[str, Any]:
    """Describe the checkpoint folder of a DGDN, which keeps numbers of the model but not its options."""
    import numpy as np

    from kruskal.engines.training import TRACED

    try:
        header = json_format.loads((directory / TRAINING_FILE).read_text(encoding="utf-8"))
        with np.load(directory / header["state"], allow_pickle=False) as archive:
            n_parameters, trace = archive["parameters"].size, archive["trace"]
        found = {
            "file": str(directory),
            "format": "training checkpoint of kruskal",
            "model": "DGDN",
            "format_version": int(header["format"]),
            "steps_done": int(header["done"]),
            "epochs_done": len(trace),
            "n_parameters": n_parameters,
        }
        return found | (dict(zip(TRACED, trace[-1].tolist())) if len(trace) else {})
    except DAMAGE:
        raise InputError(f"{directory / TRAINING_FILE} or the state that it names is damaged.") from None


def _format_of(file: Path) -> str | None:
    """What an npz says that it is."""
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as archive:
            return str(archive["format"]) if "format" in archive.files else None
    except DAMAGE:
        return None  # the reader of arrays says what is wrong with it


def _described(deep: DeepCFA) -> dict[str, Any]:
    """The parts of a fitted deep model."""
    layers = {
        f"layer_{number}": {
            "n_atoms": layer.n_atoms,
            "atom_shape": "x".join(map(str, layer.model_.shape)),
            "rank": layer.model_.rank or None,
            "noise_std": layer.noise_std_,
        }
        for number, layer in enumerate(deep.layers_, 1)
    }
    return {
        "model": type(deep).__name__,
        "picture_shape": list(deep.layers_[0].model_.image_shape),
        "n_layers": len(layers),
        "n_parameters": deep.n_parameters_,
        **layers,
        **{name: getattr(deep, name) for name in _SETTINGS},
    }
