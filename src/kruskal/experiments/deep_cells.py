"""What the experiments with deep models share: a model that several cells use, and how well features do."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from kruskal.experiments.cells import Context
from kruskal.experiments.made_by import made_by
from kruskal.models.kruskal_prior import PAPER_ALPHA


def deep_model(context: Context, name: str, rank: int, fit: dict[str, Any], images: np.ndarray) -> Any:
    """A deep model with these options, fitted to images; kept beside the results for the next cell.

    ``name`` says what is learned from; the file is of no use to other images or versions of the package.
    """
    from kruskal.errors import InputError
    from kruskal.estimators.deep import DeepCFA, DeepCKFA

    path = context.folder / f"{name}-{_digest(images)}-{made_by()}.npz"
    model: DeepCFA = DeepCKFA(**fit, rank=rank, alpha_prior=PAPER_ALPHA) if rank else DeepCFA(**fit)
    if path.exists():
        try:
            kept = type(model).load(path)
        except InputError as error:
            context.progress.note(f"{error}: it is made again")
        else:
            if _options(kept) == _options(model):
                return _with_threads(kept, context.threads)
    model.threads, model.progress = context.threads, context.progress
    model.fit(images)
    model.save(path)
    return model


def pooled_features(
    model: Any, images: np.ndarray, blocks: Sequence[int], threads: int | None
) -> list[np.ndarray]:
    """Features (N, d) of every layer, its maps pooled once more by so many rows and columns of places.

    Unlike `DeepCFA.transform` this takes ``images`` of any size, whatever the atoms were learned from.
    """
    from kruskal.engines.threads import check_threads
    from kruskal.estimators.deep_layers import MapReader, map_batches
    from kruskal.gibbs.conv_features import pool_maps

    readers = [MapReader(layer, model.features, model.map_sweeps) for layer in model.layers_]
    batches = [
        [
            pool_maps(maps, (block, block)).reshape(len(maps), -1)
            for maps, block in zip(found, blocks, strict=True)
        ]
        for _, found in map_batches(readers, model.scales_, images, check_threads(threads))
    ]
    return [np.concatenate(parts) for parts in zip(*batches)]


def pooled_maps(model: Any, images: np.ndarray, layer: int, block: int) -> np.ndarray:
    """Maps (N, rows, columns, K) of a layer (from 1), pooled once more as in `pooled_features`."""
    from kruskal.gibbs.conv_features import pool_maps

    features = model.transform(images, layer)
    grid = model.layers_[layer - 1].model_.layout.grid
    return pool_maps(features.reshape(len(features), *grid, -1), (block, block))


def svm_error(
    train: np.ndarray, labels: np.ndarray, test: np.ndarray, wanted: np.ndarray, svm: dict[str, Any],
    threads: int | None,
) -> float:  # fmt: skip
    """Share of the test items, in percent, that a Bayesian SVM on features (N, d) takes for another class."""
    from kruskal.estimators.svm import BayesianSVM

    fitted = BayesianSVM(**svm, calibration_folds=0, threads=threads).fit(train, labels)
    return 100.0 * (1.0 - fitted.score(test, wanted))


def _digest(images: np.ndarray) -> str:
    """Eight digits that change with the images."""
    digest = hashlib.sha256(f"{images.dtype.str} {images.shape}".encode())
    digest.update(np.ascontiguousarray(images).data)
    return digest.hexdigest()[:8]


def _options(model: Any) -> dict[str, Any]:
    """Those that results depend on, with tuples and lists alike."""
    from kruskal.experiments.store import plain

    found: dict[str, Any] = plain(
        {name: value for name, value in model.get_params().items() if name not in ("threads", "progress")}
    )
    return found


def _with_threads(model: Any, threads: int | None) -> Any:
    from kruskal.engines.threads import check_threads

    model.threads = threads
    for layer in model.layers_:
        layer.threads = check_threads(threads)
    return model
