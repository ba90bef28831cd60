"""Geweke's joint distribution test of the real sampler.

If a sweep leaves p(parameters | data) invariant, then alternating it with a draw of the data given the
parameters leaves the joint prior of both invariant, and averages along such a chain must agree with averages
over independent draws from the prior. Any wrong conditional, any wrong order, shows up in some average.

The chain is made of batches, and every batch begins with an independent draw from the prior. So batches are
in equilibrium from their first sweep if the sampler is right, and they are independent: their means give
honest standard errors, without an autocorrelation time to guess.

What is averaged is not a statistic itself but its rank among draws from the prior, and the distance of the
rank from the middle. The prior of alpha falls only as alpha^2 towards 0, so atoms and data have no moments,
and rare batches with a tiny alpha would rule the averages. How often an exact sampler of order 3 exceeds 4
(batches resampled from a long run): 1.3 % with plain averages over batches of 100 sweeps, 0.5 % over batches
of 25, 0.3 % with ranks as well, which is what normal scores would give (0.4 %).

    python -m tests.gibbs.geweke --sweeps 200000 --case kfa-masked --seed 5

runs a longer test than the test suite does.
"""

import argparse
import os
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from kruskal.engines.threads import ThreadEngine
from kruskal.gibbs.pair_sums import PARTS, add_pairs, data_squares
from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.gibbs.statistics import complete_statistics
from kruskal.gibbs.surrogate import Exact, Sums, added, present_sums
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import BPFA, KFA, Global, online
from kruskal.patches import Items
from tests.gibbs.reference import Priors, simulate
from tests.gibbs.worlds import all_codes, codes_of, dense_codes

PRIORS = Priors()
N_ATOMS = 2
ONE_REGION = (0, 0, 0, 0)
THREE_REGIONS = (2, 0, 2, 1, 0, 2)
BATCH = 25
SWEEPS = int(os.environ.get("KRUSKAL_GEWEKE_SWEEPS", "12000"))
"""Per sampler, in the test suite; those of other models make a part of it."""
"""Sweeps per batch: enough for a wrong conditional to drift, few enough that the many independent beginnings
cover the rare large atoms on which some skewed averages hang (with 100 their z-scores are not normal)."""


SCALARS = ("alpha", "concentration", "code_precision", "noise_precision")


class Setting(NamedTuple):
    """A sampler to test; ``rank`` 0 means BPFA, ``regions`` says where each item lies.

    With ``batches`` a sweep visits so many of them one after the other and remembers the others exactly.
    """

    shape: tuple[int, ...] = (3, 2)
    rank: int = 2
    masked: bool = False
    regions: tuple[int, ...] = ONE_REGION
    options: tuple[tuple[str, Any], ...] = ()
    batches: int = 0

    def model(self):
        """The model with proper priors and everything drawn from the first sweep on."""
        common: dict[str, Any] = {
            "shape": self.shape,
            "n_atoms": N_ATOMS,
            "usage_prior": UsagePrior(*PRIORS.usage),
            "code_prior": GammaPrior(*PRIORS.code),
            "noise_prior": GammaPrior(*PRIORS.noise),
            "concentration_prior": GammaPrior(*PRIORS.concentration),
            "delay": 0,
        } | dict(self.options)
        if self.rank == 0:
            return BPFA(**common)
        return KFA(**common, rank=self.rank, alpha_prior=AlphaPrior(*PRIORS.alpha))

    def observed(self) -> np.ndarray:
        """A fixed mask (N, P): about half of the entries; one item has none and one has all."""
        size = len(self.regions), int(np.prod(self.shape))
        observed = np.ones(size, bool)
        if self.masked:
            observed = np.random.default_rng(0).random(size) < 0.5
            observed[0], observed[1] = True, False
        return observed


LITTLE_NOISE = (("most_noise", 0.9),)
"""A noise prior that is cut off: three quarters of it, so most conditionals are cut off as well."""
MUCH_NOISE = (("least_noise", 0.9),)
"""The same from the other side: a quarter of it is cut off."""
SCALAR = (("collapsed", False), ("blocked", False))
SETTINGS = {
    "kfa": Setting(),
    "kfa-masked": Setting(masked=True),
    "bpfa": Setting(rank=0),
    "bpfa-masked": Setting(rank=0, masked=True),
    "kfa-uncollapsed-scalar": Setting(options=SCALAR),
    "kfa-uncollapsed-scalar-masked": Setting(masked=True, options=SCALAR),
    "kfa-order-3": Setting(shape=(2, 2, 2), masked=True),
    "kfa-regions": Setting(regions=THREE_REGIONS),
    "kfa-regions-masked": Setting(masked=True, regions=THREE_REGIONS),
    "bpfa-regions-masked": Setting(rank=0, masked=True, regions=THREE_REGIONS),
    "kfa-little-noise": Setting(options=LITTLE_NOISE),
    "kfa-much-noise": Setting(options=MUCH_NOISE),
}
ONLINE = {
    "kfa-online": Setting(batches=2),
    "kfa-online-masked": Setting(masked=True, batches=2),
    "bpfa-online-regions-masked": Setting(rank=0, masked=True, regions=THREE_REGIONS, batches=3),
}
"""Exact learning in batches."""


# ---------------------------------------------------------------------------------------------- statistics


def statistics(draws: dict[str, np.ndarray], setting: Setting) -> dict[str, np.ndarray]:
    """Numbers whose averages are compared, one per draw.

    Only their order matters, as they are turned into ranks. Data count at observed entries only: the others
    are not part of the chain.
    """
    observed, rank, regions = setting.observed(), setting.rank, np.array(setting.regions)
    codes, atoms, log_odds = draws["codes"], draws["gaussian"], draws["log_odds"]
    usage = expit(log_odds)
    log_code, log_noise = np.log(draws["code_precision"]), np.log(draws["noise_precision"])
    used = codes != 0.0
    clean = (codes @ atoms)[:, observed]
    data = draws["values"][:, observed]
    noise = (data - clean) * np.sqrt(draws["noise_precision"])[:, None]
    size = np.log((data**2).sum(axis=1))
    slab = codes * np.sqrt(draws["code_precision"])[:, None, None]
    lengths = np.log((atoms**2).sum(axis=2))
    share = used.mean(axis=(1, 2))
    # of the items of each region (draws, G, K)
    local = np.stack([used[:, regions == g].mean(axis=1) for g in range(usage.shape[1])], axis=1)
    result = {
        "log gamma_s": log_code,
        "log gamma_eps": log_noise,
        "usage": usage.mean(axis=(1, 2)),
        "usage^2": (usage**2).mean(axis=(1, 2)),
        "log odds": log_odds.mean(axis=(1, 2)),
        "z": share,
        "z^2": share**2,
        "usage z": (usage * local).mean(axis=(1, 2)),
        "log |d|^2": lengths.mean(axis=1),
        "log |d|^2 squared": (lengths**2).mean(axis=1),
        "d d'": np.tanh((atoms[:, 0] * atoms[:, 1]).sum(axis=1) * atoms.shape[2]),
        "log(1 + w^2)": np.log1p(codes**2).mean(axis=(1, 2)),
        "gamma_s w^2": (slab**2).mean(axis=(1, 2)),
        "log |x|^2": size,
        "gamma_eps h^2": (noise**2).mean(axis=1),
        "h sign(Dw)": (noise * np.sign(clean)).mean(axis=1),
        "x Dw": np.tanh(data * clean).mean(axis=1),
        "log gamma_eps log |x|^2": log_noise * size,
        "log gamma_s z": log_code * share,
        "log |d|^2 z": (lengths * used.mean(axis=1)).mean(axis=1),
        "log |d|^2 log gamma_s": lengths.mean(axis=1) * log_code,
    }
    if usage.shape[1] > 1:
        eta, log_h = draws["usage_mean"], np.log(draws["concentration"])
        log_odds_of_eta = np.log(eta) - np.log1p(-eta)
        off = log_odds - log_odds_of_eta[:, None]
        result |= {
            "log h": log_h,
            "logit eta": log_odds_of_eta.mean(axis=1),
            "logit eta squared": (log_odds_of_eta**2).mean(axis=1),
            "eta z": (eta * used.mean(axis=1)).mean(axis=1),
            "log odds of the first": log_odds[:, 0].mean(axis=1),
            "log odds of the last": log_odds[:, -1].mean(axis=1),
            "(log odds - logit eta)^2": (off**2).mean(axis=(1, 2)),
            "log h |log odds - logit eta|": log_h * np.log(np.abs(off)).mean(axis=(1, 2)),
            "logit eta log odds": (log_odds_of_eta[:, None] * log_odds).mean(axis=(1, 2)),
            "usage - eta, z": ((usage - eta[:, None]) * local).mean(axis=(1, 2)),
            "log h z": log_h * np.abs(share - 0.5),
            "sd of usage over regions": usage.std(axis=1).mean(axis=1),
            "sd of z over regions": local.std(axis=1).mean(axis=1),
        }
    if rank > 0:
        weights, factors = draws["weights"], draws["factors"]
        log_alpha, log_delta = np.log(draws["alpha"]), np.log(draws["delta"])
        log_weight = np.log(weights**2)
        prior = np.cumprod(draws["delta"], axis=2) * weights**2
        vectors = factors**2 * draws["sizes"][:, None]
        cosine = np.tanh((factors[..., 0] * factors[..., -1]).sum(axis=2)) if rank > 1 else 0.0 * lengths
        result |= {
            "log alpha": log_alpha,
            "log alpha^2": log_alpha**2,
            "log delta_1": log_delta[..., 0].mean(axis=1),
            "log delta_R": log_delta[..., -1].mean(axis=1),
            "log delta_1 log delta_R": (log_delta[..., 0] * log_delta[..., -1]).mean(axis=1),
            "log alpha log delta": log_alpha * log_delta.mean(axis=(1, 2)),
            "tau_1 lambda_1^2": prior[..., 0].mean(axis=1),
            "tau_R lambda_R^2": prior[..., -1].mean(axis=1),
            "log lambda_1^2": log_weight[..., 0].mean(axis=1),
            "log lambda_R^2": log_weight[..., -1].mean(axis=1),
            "m u^2": vectors.mean(axis=(1, 2, 3)),
            "(m u^2)^2": (vectors**2).mean(axis=(1, 2, 3)),
            "u_1 u_R": cosine.mean(axis=1),
            "log lambda_1^2 z": (log_weight[..., 0] * used.mean(axis=1)).mean(axis=1),
        }
    return result


# ---------------------------------------------------------------------------------------------- simulation


def prior_draws(setting: Setting, random: np.random.Generator, n_draws: int) -> dict[str, Any]:
    """Independent draws from the prior, with the arrays that `statistics` and the chain need."""
    observed = setting.observed()
    regions = np.array(setting.regions)
    draws = simulate(
        random, PRIORS, setting.shape, N_ATOMS, setting.rank, observed, n_draws, regions,
        dict(setting.options).get("most_noise", np.inf), dict(setting.options).get("least_noise", 0.0),
    )  # fmt: skip
    draws["codes"] = draws["slab"] * draws["used"]
    draws["factors"] = np.concatenate(draws["modes"], axis=2)
    draws["sizes"] = np.repeat(setting.shape, setting.shape)
    return draws


def first_state(setting: Setting, draws: dict[str, Any], i: int) -> Global:
    """The global state of one draw from the prior."""
    n_rows = sum(setting.shape) if setting.rank else 0
    return Global(
        dictionary=draws["gaussian"][i].copy(),
        weights=draws["weights"][i].copy(),
        factors=draws["factors"][i][:, :n_rows].copy(),
        log_delta=np.log(draws["delta"][i]),
        alpha=float(draws["alpha"][i]),
        log_odds=draws["log_odds"][i].copy(),
        usage_mean=draws["usage_mean"][i].copy(),
        concentration=float(draws["concentration"][i]),
        code_precision=float(draws["code_precision"][i]),
        noise_precision=float(draws["noise_precision"][i]),
    )


class Whole:
    """Plain sweeps over all items."""

    def __init__(self, setting: Setting, items: Items, seed: int) -> None:
        self.model, self.items, self.seed = setting.model(), items, seed
        self.engine = ThreadEngine(items, threads=1)
        self.number = 0

    def put_codes(self, weights: np.ndarray) -> None:
        """Replace the codes by w (N, K)."""
        self.engine.put_codes([codes_of(weights)])

    def sweep(self, state: Global) -> Global:
        """The next sweep, over the data that are now in the items."""
        self.number += 1
        return self.model.sweep(state, self.engine, self.seed, self.number)[0]

    def codes(self) -> np.ndarray:
        """Present w (N, K)."""
        return all_codes(self.engine.shards, N_ATOMS)


class InBatches(Whole):
    """A visit to each of several batches of items, in a new order each time, with exact memory."""

    def __init__(self, setting: Setting, items: Items, seed: int) -> None:
        super().__init__(setting, items, seed)
        self.parts = np.array_split(np.random.default_rng(seed).permutation(items.n_items), setting.batches)

    def put_codes(self, weights: np.ndarray) -> None:
        self.kept = [codes_of(weights[part]) for part in self.parts]

    def hold(self, batch: int) -> None:
        """Let the engine hold a batch with its present codes."""
        items = self.items.take(self.parts[batch])
        address = sum(map(len, self.parts[:batch]))
        self.engine.hold(items, self.items.n_regions, address, self.kept[batch])

    def sweep(self, state: Global) -> Global:
        memory = self.remembered(state)
        for batch in np.random.default_rng([self.seed, self.number]).permutation(len(self.parts)):
            self.number += 1
            self.hold(batch)
            state, memory, _ = online.visit(
                self.model, state, memory, self.engine, batch, True, True, self.seed, self.number, 1
            )
            (shard,) = self.engine.shards
            self.kept[batch] = shard.codes
        return state

    def remembered(self, state: Global) -> Exact:
        """The memory of all batches from scratch, as the data are new."""
        n_regions = self.items.n_regions
        memory = Exact.nothing(n_regions, *state.dictionary.shape, self.items.complete)
        sums, squares = memory.sums, 0.0
        for batch in range(len(self.parts)):
            self.hold(batch)
            (shard,) = self.engine.shards
            counts, code_squares = present_sums(shard, n_regions, N_ATOMS)
            observed = self.engine.n_observed
            sums = added(sums, Sums(self.engine.region_sizes, observed, counts, code_squares, 0.0))
            squares += data_squares(shard)
            if self.items.complete:
                for total, part in zip(memory.pairs, complete_statistics(shard, n_atoms=N_ATOMS)):
                    total += part
            else:
                self.engine.fold(partial(add_pairs, statistics=memory.pairs, sign=1.0), PARTS)
        return memory._replace(sums=sums, data_squares=squares)

    def codes(self) -> np.ndarray:
        weights = np.zeros((self.items.n_items, N_ATOMS))
        for part, codes in zip(self.parts, self.kept):
            weights[part] = dense_codes(codes, N_ATOMS)
        return weights


class Ranks:
    """Turns statistics into ranks (0 to 1) among draws from the prior, and their spread |2 rank - 1|.

    Ranks come in ascending order, whatever that of the values: sorted values are found far faster.
    """

    def __init__(self, prior: dict[str, np.ndarray]) -> None:
        self.ordered = {name: np.sort(values) for name, values in prior.items()}

    def __call__(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        result = {}
        for name, ordered in self.ordered.items():
            sought = np.sort(values[name])
            below = np.searchsorted(ordered, sought, side="left")
            up_to = np.searchsorted(ordered, sought, side="right")
            rank = (below + up_to) / (2.0 * len(ordered))  # ties share their rank
            result[name], result[f"spread of {name}"] = rank, np.abs(2.0 * rank - 1.0)
        return result


def chain_means(setting: Setting, n_sweeps: int, seed: int, ranks: Ranks) -> dict[str, np.ndarray]:
    """Mean ranks of the statistics over each batch of a successive-conditional simulation."""
    n_batches = max(2, n_sweeps // BATCH)
    observed, n_items = setting.observed(), len(setting.regions)
    n_regions = max(setting.regions) + 1
    random = np.random.default_rng([seed, 1])
    draws = prior_draws(setting, random, n_batches)
    items = Items.from_matrix(np.zeros((n_items, *setting.shape)), observed.reshape(n_items, *setting.shape))
    items = items._replace(region=np.array(setting.regions, np.uint16))
    kept = {
        "codes": np.empty((BATCH, n_items, N_ATOMS)),
        "gaussian": np.empty((BATCH, N_ATOMS, observed.shape[1])),
        "values": np.empty((BATCH, *observed.shape)),
        "log_odds": np.empty((BATCH, n_regions, N_ATOMS)),
        "usage_mean": np.empty((BATCH, N_ATOMS)),
        "weights": np.empty((BATCH, N_ATOMS, setting.rank)),
        "factors": np.empty((BATCH, N_ATOMS, sum(setting.shape), setting.rank)),
        "delta": np.empty((BATCH, N_ATOMS, setting.rank)),
        **{name: np.empty(BATCH) for name in SCALARS},
    }
    means: dict[str, list[float]] = {}
    sampler = (InBatches if setting.batches else Whole)(setting, items, seed)
    with sampler.engine:
        for batch in range(n_batches):
            state = first_state(setting, draws, batch)
            sampler.put_codes(draws["codes"][batch])
            values = draws["values"][batch]
            noise = random.standard_normal((BATCH, *observed.shape))
            for step in range(BATCH):
                items.flat[:] = np.where(observed, values, 0.0).ravel()
                state = sampler.sweep(state)
                kept["codes"][step] = codes = sampler.codes()
                kept["gaussian"][step], kept["values"][step] = state.dictionary, values
                kept["weights"][step] = state.weights
                kept["log_odds"][step], kept["usage_mean"][step] = state.log_odds, state.usage_mean
                if setting.rank:
                    kept["factors"][step], kept["delta"][step] = state.factors, np.exp(state.log_delta)
                for name in SCALARS:
                    kept[name][step] = getattr(state, name)
                values = codes @ state.dictionary + noise[step] / np.sqrt(state.noise_precision)
            kept["sizes"] = draws["sizes"]
            for name, value in ranks(statistics(kept, setting)).items():
                means.setdefault(name, []).append(float(value.mean()))
    return {name: np.array(values) for name, values in means.items()}


def z_scores(setting: Setting, n_sweeps: int, seed: int, n_prior: int = 100_000) -> dict[str, float]:
    """For every statistic, the difference of the two averages in units of its standard error."""
    draws = prior_draws(setting, np.random.default_rng([seed, 2]), n_prior)
    prior = statistics(draws, setting)
    ranks = Ranks(prior)
    expected = ranks(prior)
    scores = {}
    for name, means in chain_means(setting, n_sweeps, seed, ranks).items():
        variance = means.var(ddof=1) / len(means) + expected[name].var() / n_prior
        scores[name] = float((means.mean() - expected[name].mean()) / np.sqrt(variance))
    return scores


def describe(scores: dict[str, float], n_worst: int = 6) -> str:
    """The largest scores, for people."""
    worst = sorted(scores, key=lambda name: -abs(scores[name]))[:n_worst]
    listed = ", ".join(f"{name}: {scores[name]:+.2f}" for name in worst)
    return f"max |z| = {abs(scores[worst[0]]):.2f} of {len(scores)} statistics ({listed})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Geweke's joint distribution test, longer than in the tests")
    parser.add_argument("--case", choices=[*SETTINGS, *ONLINE, "all"], default="all")
    parser.add_argument("--sweeps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    settings = SETTINGS | ONLINE
    for name in settings if arguments.case == "all" else [arguments.case]:
        began = time.perf_counter()
        scores = z_scores(settings[name], arguments.sweeps, arguments.seed, n_prior=400_000)
        print(f"{name}: {describe(scores)}; {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
