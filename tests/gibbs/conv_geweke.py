"""Geweke's joint distribution test of the convolutional models; see `tests.gibbs.geweke` for how it works.

    python -m tests.gibbs.conv_geweke --sweeps 100000 --case ckfa-masked --seed 5

runs a longer test than the test suite does.
"""

import argparse
import time
from typing import Any

import numpy as np
from scipy.special import expit

from kruskal.engines.threads import ImageThreads
from kruskal.gibbs.conv_local import dense_maps, sparse_maps
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import CFA, CKFA, ConvGlobal
from tests.gibbs.conv_reference import PRIORS, ConvCase, simulate, synthesise
from tests.gibbs.geweke import BATCH, Ranks, describe

SMALL: dict[str, Any] = {"image_shape": (4, 3, 2), "atom_size": (2, 2), "n_atoms": 2, "n_images": 2}
"""Maps of 3x2 places: atoms overlap, and blocks of 2x2 are partial at the bottom."""
MOVING = SMALL | {"image_shape": (5, 5, 1)}
"""Maps of 4x4 places, in which non-zeros are also moved."""
SEVERAL = SMALL | {"image_shape": (4, 3, 1), "n_images": 3}
"""More images, each with a usage of its own."""
SETTINGS = {
    "cfa": ConvCase(**SMALL),
    "cfa-moving": ConvCase(**MOVING),
    "ckfa-moving-masked": ConvCase(rank=1, masked=True, **MOVING),
    "cfa-masked": ConvCase(masked=True, **SMALL),
    "ckfa": ConvCase(rank=2, **SMALL),
    "ckfa-masked": ConvCase(rank=2, masked=True, **SMALL),
    "cfa-pooling": ConvCase(pooling=(2, 2), **SMALL),
    "ckfa-pooling-masked": ConvCase(rank=1, pooling=(2, 2), masked=True, **SMALL),
    "cfa-positive": ConvCase(nonnegative=True, **MOVING),
    "ckfa-positive-pooling": ConvCase(rank=2, nonnegative=True, pooling=(2, 1), **SMALL),
    "cfa-positive-masked": ConvCase(nonnegative=True, masked=True, pooling=(1, 2), **SMALL),
    "cfa-by-image": ConvCase(by_image=True, **SEVERAL),
    "ckfa-by-image-masked": ConvCase(rank=1, masked=True, by_image=True, **SEVERAL),
    "cfa-by-image-pooling": ConvCase(pooling=(2, 2), nonnegative=True, by_image=True, **SEVERAL),
}
SCALARS = ("concentration", "alpha", "code_precision", "noise_precision")


def model_of(case: ConvCase):
    """The model with proper priors and everything drawn from the first sweep on."""
    common: dict[str, Any] = {
        "image_shape": case.image_shape, "atom_size": case.atom_size, "n_atoms": case.n_atoms,
        "pooling": case.pooling, "nonnegative": case.nonnegative, "usage_prior": UsagePrior(*PRIORS.usage),
        "code_prior": GammaPrior(*PRIORS.code), "noise_prior": GammaPrior(*PRIORS.noise), "delay": 0,
        "usage_by_image": case.by_image, "concentration_prior": GammaPrior(*PRIORS.concentration),
    }  # fmt: skip
    if case.rank == 0:
        return CFA(**common)
    return CKFA(**common, rank=case.rank, alpha_prior=AlphaPrior(*PRIORS.alpha))


def mean_of(values: np.ndarray) -> np.ndarray:
    """One mean per draw."""
    return values.reshape(len(values), -1).mean(axis=1)


def statistics(draws: dict[str, Any], case: ConvCase) -> dict[str, np.ndarray]:
    """Numbers whose ranks are compared, one per draw; data count at observed entries only."""
    observed = case.observed()
    maps, atoms, theta = draws["maps"], draws["gaussian"], draws["theta"]
    log_code, log_noise = np.log(draws["code_precision"]), np.log(draws["noise_precision"])
    used = maps != 0.0
    clean = synthesise(maps, atoms[:, None])[:, observed]
    data = draws["values"][:, observed]
    noise = (data - clean) * np.sqrt(draws["noise_precision"])[:, None]
    size = np.log((data**2).sum(axis=1))
    slab = maps * np.sqrt(draws["code_precision"])[:, None, None, None, None]
    lengths = np.log((atoms**2).sum(axis=(2, 3, 4)))
    share = used.mean(axis=(1, 2, 3, 4))
    by_atom = used.mean(axis=(1, 3, 4))
    on = 1.0 - theta[..., 0]
    by_theta = used.mean(axis=(3, 4)) if case.by_image else by_atom
    result = {
        "log gamma_s": log_code,
        "log gamma_eps": log_noise,
        "on": mean_of(on),
        "on^2": mean_of(on**2),
        "theta of the first cell": mean_of(theta[..., 1]),
        "theta of the last cell": mean_of(theta[..., -1]),
        "z": share,
        "z of the last place": used[..., -1, -1].mean(axis=(1, 2)),
        "on z": mean_of(on * by_theta),
        "z z of neighbours": (used[..., 1:, :] & used[..., :-1, :]).mean(axis=(1, 2, 3, 4)),
        "w w of neighbours": np.tanh((slab[..., 1:, :] * slab[..., :-1, :]).sum(axis=(1, 2, 3, 4))),
        "log |d|^2": lengths.mean(axis=1),
        "log |d|^2 squared": (lengths**2).mean(axis=1),
        "d d'": np.tanh((atoms[:, 0] * atoms[:, 1]).sum(axis=(1, 2, 3)) * atoms[0, 0].size),
        "d d shifted": np.tanh(8.0 * (atoms[:, :, 1:] * atoms[:, :, :-1]).sum(axis=(1, 2, 3, 4))),
        "log(1 + w^2)": np.log1p(maps**2).mean(axis=(1, 2, 3, 4)),
        "gamma_s w^2": (slab**2).mean(axis=(1, 2, 3, 4)),
        "gamma_s |w|": np.abs(slab).mean(axis=(1, 2, 3, 4)),
        "log |x|^2": size,
        "gamma_eps h^2": (noise**2).mean(axis=1),
        "h sign(D * W)": (noise * np.sign(clean)).mean(axis=1),
        "x D * W": np.tanh(data * clean).mean(axis=1),
        "log gamma_eps log |x|^2": log_noise * size,
        "log gamma_s z": log_code * share,
        "log |d|^2 z": (lengths * by_atom).mean(axis=1),
        "log |d|^2 log gamma_s": lengths.mean(axis=1) * log_code,
    }
    if case.by_image:
        eta, log_h = draws["eta"], np.log(draws["concentration"])
        scatter = mean_of((on - eta[:, None]) ** 2)
        result |= {
            "eta": mean_of(eta),
            "eta^2": mean_of(eta**2),
            "log h": log_h,
            "(on - eta)^2": scatter,
            "log h (on - eta)^2": log_h * scatter,
            "eta on": mean_of(eta[:, None] * on),
            "(on - eta) (z - eta)": mean_of((on - eta[:, None]) * (by_theta - eta[:, None])),
            "on on of two images": mean_of(on[:, 0] * on[:, 1]),
            "z z of two images": mean_of(by_theta[:, 0] * by_theta[:, 1]),
            "log h z z of two images": log_h * mean_of(by_theta[:, 0] * by_theta[:, 1]),
            "log h z^2": log_h * mean_of(by_theta**2),
        }
    if case.rank > 0:
        weights, log_alpha, log_delta = draws["weights"], np.log(draws["alpha"]), np.log(draws["delta"])
        prior = np.cumprod(draws["delta"], axis=2) * weights**2
        result |= {
            "log alpha": log_alpha,
            "log delta_1": log_delta[..., 0].mean(axis=1),
            "log delta_R": log_delta[..., -1].mean(axis=1),
            "log alpha log delta": log_alpha * log_delta.mean(axis=(1, 2)),
            "tau_1 lambda_1^2": prior[..., 0].mean(axis=1),
            "tau_R lambda_R^2": prior[..., -1].mean(axis=1),
        }
        for name, mode in zip("xyc", draws["modes"]):
            squares = (mode**2).sum(axis=2) * mode.shape[2]
            result[f"|u_{name}|^2"] = squares.mean(axis=(1, 2))
            result[f"log |u_{name}|^2 of the last"] = np.log(squares[..., -1]).mean(axis=1)
            result[f"u_{name} u_{name} of neighbours"] = np.tanh(
                (mode[:, :, 1:] * mode[:, :, :-1]).sum(axis=(1, 2, 3)) * mode.shape[2]
            )
    return result


def first_state(case: ConvCase, draws: dict[str, Any], i: int) -> ConvGlobal:
    """The global state of one draw from the prior."""
    factors = np.concatenate([mode[i] for mode in draws["modes"]], axis=1)
    usage: dict[str, Any] = {"image_log_odds": np.zeros((0, case.n_atoms))}
    if case.by_image:
        eta, pi = draws["eta"][i], draws["pi"][i]
        log_eta = np.log(eta) - np.log1p(-eta)
        usage["log_odds"] = log_eta[:, None] + np.log(draws["phi"][i])
        usage["image_log_odds"] = np.log(pi) - np.log1p(-pi)
    else:
        usage["log_odds"] = np.log(draws["theta"][i, :, 1:]) - np.log(draws["theta"][i, :, :1])
    return ConvGlobal(
        dictionary=draws["gaussian"][i].reshape(case.n_atoms, -1).copy(), weights=draws["weights"][i].copy(),
        factors=factors if case.rank else np.zeros((case.n_atoms, 0, 0)), log_delta=np.log(draws["delta"][i]),
        alpha=float(draws["alpha"][i]),
        code_precision=float(draws["code_precision"][i]), noise_precision=float(draws["noise_precision"][i]),
        concentration=float(draws["concentration"][i]), **usage,
    )  # fmt: skip


def empty_batch(case: ConvCase) -> dict[str, Any]:
    shape, layout = case.layout.atom_shape, case.layout
    return {
        "maps": np.empty((BATCH, case.n_images, case.n_atoms, *layout.map_shape)),
        "gaussian": np.empty((BATCH, case.n_atoms, *shape)),
        "values": np.empty((BATCH, case.n_images, *case.image_shape)),
        "theta": np.empty((BATCH, *[case.n_images] * case.by_image, case.n_atoms, layout.n_cells + 1)),
        "eta": np.empty((BATCH, case.n_atoms)),
        "weights": np.empty((BATCH, case.n_atoms, case.rank)),
        "modes": [np.empty((BATCH, case.n_atoms, m, case.rank)) for m in shape],
        "delta": np.empty((BATCH, case.n_atoms, case.rank)),
        **{name: np.empty(BATCH) for name in SCALARS},
    }


def keep(kept: dict[str, Any], step: int, case: ConvCase, state: ConvGlobal, values, maps) -> None:
    """Write one state of the chain into a batch."""
    kept["maps"][step], kept["values"][step] = maps, values
    kept["gaussian"][step] = state.dictionary.reshape(case.n_atoms, *case.layout.atom_shape)
    odds = np.exp(np.hstack([np.zeros((case.n_atoms, 1)), state.log_odds]))
    theta = odds / odds.sum(axis=1, keepdims=True)
    if case.by_image:
        pi = expit(state.image_log_odds)[..., None]
        phi = theta[:, 1:] / theta[:, 1:].sum(axis=1, keepdims=True)
        kept["eta"][step] = 1.0 - theta[:, 0]
        theta = np.concatenate([1.0 - pi, pi * phi], axis=2)
    kept["theta"][step] = theta
    kept["weights"][step], kept["delta"][step] = state.weights, np.exp(state.log_delta)
    first = 0
    for mode, size in zip(kept["modes"], case.layout.atom_shape):
        if case.rank:
            mode[step] = state.factors[:, first : first + size]
        first += size
    for name in SCALARS:
        kept[name][step] = getattr(state, name)


def chain_means(case: ConvCase, n_sweeps: int, seed: int, ranks: Ranks) -> dict[str, np.ndarray]:
    """Mean ranks of the statistics over each batch of a successive-conditional simulation."""
    n_batches = max(2, n_sweeps // BATCH)
    random = np.random.default_rng([seed, 1])
    draws = simulate(random, case, n_batches)
    model, observed = model_of(case), case.observed()
    kept = empty_batch(case)
    means: dict[str, list[float]] = {}
    number = 0
    with ImageThreads(np.zeros(observed.shape), observed, threads=1) as engine:
        for batch in range(n_batches):
            state, values = first_state(case, draws, batch), draws["values"][batch]
            for n, shard in enumerate(engine.shards):
                shard.maps = sparse_maps(draws["maps"][batch][n : n + 1], case.layout)
            noise = random.standard_normal((BATCH, *observed.shape))
            for step in range(BATCH):
                seen = np.where(observed, values, 0.0)
                for n, shard in enumerate(engine.shards):
                    shard.values[:] = seen[n].reshape(shard.values.shape)
                number += 1
                state, _ = model.sweep(state, engine, seed, number)
                maps = np.concatenate(
                    [dense_maps(shard.maps, case.n_atoms, case.layout.map_shape) for shard in engine.shards]
                )
                keep(kept, step, case, state, values, maps)
                clean = synthesise(maps, kept["gaussian"][step][None])
                values = clean + noise[step] / np.sqrt(state.noise_precision)
            for name, value in ranks(statistics(kept, case)).items():
                means.setdefault(name, []).append(float(value.mean()))
    return {name: np.array(values) for name, values in means.items()}


def z_scores(case: ConvCase, n_sweeps: int, seed: int, n_prior: int = 50_000) -> dict[str, float]:
    """For every statistic, the difference of the two averages in units of its standard error."""
    prior = statistics(simulate(np.random.default_rng([seed, 2]), case, n_prior), case)
    ranks = Ranks(prior)
    expected = ranks(prior)
    scores = {}
    for name, means in chain_means(case, n_sweeps, seed, ranks).items():
        variance = means.var(ddof=1) / len(means) + expected[name].var() / n_prior
        scores[name] = float((means.mean() - expected[name].mean()) / np.sqrt(max(variance, 1e-300)))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description="Geweke's test of convolutional models, longer than usual")
    parser.add_argument("--case", choices=[*SETTINGS, "all"], default="all")
    parser.add_argument("--sweeps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name in SETTINGS if arguments.case == "all" else [arguments.case]:
        began = time.perf_counter()
        scores = z_scores(SETTINGS[name], arguments.sweeps, arguments.seed, n_prior=200_000)
        print(f"{name}: {describe(scores)}; {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
