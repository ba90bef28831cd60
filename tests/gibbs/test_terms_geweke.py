"""Geweke's joint distribution test of whole sweeps of MGP-CP, as in `tests.gibbs.geweke`; all moves on."""

import numpy as np
import pytest

from kruskal.engines.threads import StackEngine
from kruskal.gibbs import precision, rows_complete, shrinkage, stack, terms
from kruskal.models import MGPCPModel, Terms
from kruskal.patches import Items
from tests.gibbs import geweke
from tests.gibbs import term_worlds as tw
from tests.gibbs.geweke import BATCH, Ranks, describe

SWEEPS = geweke.SWEEPS // 3
LIMIT = 4.0
SETTINGS = {
    "complete": ((3, 2), False),
    "masked": ((3, 2), True),
    "order-3": ((2, 3, 2), False),
    "order-3-masked": ((2, 3, 2), True),
}
RANK = 2


def observed_of(shape: tuple[int, ...], masked: bool) -> np.ndarray:
    observed = np.ones(shape, bool)
    if masked:
        observed = np.random.default_rng(0).random(shape) < 0.6
        observed[0, 0], observed[1] = True, False
    return observed


def spec_of(shape: tuple[int, ...]) -> str:
    """The Kruskal tensor in the words of einsum."""
    letters = "abc"[: len(shape)]
    return f"r,{','.join(f'{letter}r' for letter in letters)}->{letters}"


def statistics(states: list[Terms], values: list[np.ndarray], shape, observed) -> dict[str, np.ndarray]:
    """Numbers whose ranks are compared, one per draw; data count where they are observed."""
    splits = np.cumsum(shape)[:-1]
    result: dict[str, list[float]] = {}
    for state, x in zip(states, values):
        modes = np.split(state.factors, splits)
        mean, data = np.einsum(spec_of(shape), state.weights, *modes)[observed], x[observed]
        noise = (data - mean) * np.sqrt(state.noise_precision)
        squares = np.stack([(mode**2).sum(axis=0) for mode in modes])
        log_delta, quadratic = state.log_delta, np.exp(np.cumsum(state.log_delta)) * state.weights**2
        log_gamma, log_alpha = np.log(state.noise_precision), np.log(state.alpha)
        strength = np.log(np.abs(state.weights)) + 0.5 * np.log(squares).sum(axis=0)
        size = np.log((data**2).sum())
        found = {
            "log gamma_eps": log_gamma,
            "log alpha": log_alpha,
            "log delta_1": log_delta[0],
            "log delta_R": log_delta[-1],
            "log delta_1 log delta_R": log_delta[0] * log_delta[-1],
            "log alpha log delta": log_alpha * log_delta.mean(),
            "tau_1 lambda_1^2": quadratic[0],
            "tau_R lambda_R^2": quadratic[-1],
            "log lambda_1^2": np.log(state.weights[0] ** 2),
            "log lambda_R^2": np.log(state.weights[-1] ** 2),
            "log omega_1": np.log(state.factor_precision[0]).mean(),
            "log omega_T": np.log(state.factor_precision[-1]).mean(),
            "omega u^2": (state.factor_precision * squares).mean(),
            "log |u_1|^2": np.log(squares[0]).mean(),
            "log |u_T|^2": np.log(squares[-1]).mean(),
            "log strength": strength.mean(),
            "log strength difference": strength[0] - strength[-1],
            "u_1 u_R": float(np.tanh((modes[0][:, 0] * modes[0][:, -1]).sum())),
            "log |x|^2": size,
            "gamma_eps h^2": (noise**2).mean(),
            "h sign(mean)": (noise * np.sign(mean)).mean(),
            "x mean": np.tanh(data * mean).mean(),
            "log gamma_eps log |x|^2": log_gamma * size,
            "log omega_1 log lambda_1^2": np.log(state.factor_precision[0, 0])
            * np.log(state.weights[0] ** 2),
        }
        for name, value in found.items():
            result.setdefault(name, []).append(float(value))
    return {name: np.array(numbers) for name, numbers in result.items()}


def z_scores(name: str, n_sweeps: int, seed: int, n_prior: int = 8_000) -> dict[str, float]:
    """For every statistic, the difference of the two averages in units of its standard error."""
    shape, masked = SETTINGS[name]
    observed = observed_of(shape, masked)
    prior = tw.simulate_terms(np.random.default_rng([seed, 2]), shape, RANK, observed, n_prior)
    numbers = statistics([w.state() for w in prior], [w.values for w in prior], shape, observed)
    ranks = Ranks(numbers)
    expected = ranks(numbers)
    model = MGPCPModel(
        item_shape=shape[1:], sizes=shape, rank=RANK, alpha_prior=tw.ALPHA, factor_prior=tw.FACTOR,
        noise_prior=tw.NOISE, delay=0, annealing=0,
    )  # fmt: skip
    random = np.random.default_rng([seed, 1])
    n_batches = n_sweeps // BATCH
    means: dict[str, list[float]] = {}
    items = Items.from_matrix(np.zeros((1, *shape)), observed[None])
    with StackEngine(items, threads=1) as engine:
        for batch, world in enumerate(tw.simulate_terms(random, shape, RANK, observed, n_batches)):
            state, values = world.state(), world.values
            states, data = [], []
            for step in range(BATCH):
                fill(engine, values)
                state, _ = model.sweep(state, engine, seed, batch * BATCH + step + 1)
                states.append(state)
                data.append(values)
                modes = np.split(state.factors, np.cumsum(shape)[:-1])
                noise = random.standard_normal(shape) / np.sqrt(state.noise_precision)
                values = np.einsum(spec_of(shape), state.weights, *modes) + noise
            for key, value in ranks(statistics(states, data, shape, observed)).items():
                means.setdefault(key, []).append(float(value.mean()))
    scores = {}
    for key, found in means.items():
        variance = np.var(found, ddof=1) / n_batches + expected[key].var() / n_prior
        scores[key] = float((np.mean(found) - expected[key].mean()) / np.sqrt(variance))
    return scores


def fill(engine: StackEngine, values: np.ndarray) -> None:
    """Put new data into the parts of an engine; there is one part."""
    (part,) = engine.shards
    part.items.flat[:] = values.ravel()
    for t, mode in enumerate(part.modes):
        order = np.argsort(np.nonzero(engine_mask(part))[t], kind="stable")
        mode.values[:] = values[engine_mask(part)][order]


def engine_mask(part: stack.Part) -> np.ndarray:
    return part.items.observed.reshape(part.items.n_items, *part.items.shape)


@pytest.mark.parametrize("name", SETTINGS)
def test_sweeps_leave_the_joint_distribution_invariant(name):
    scores = z_scores(name, SWEEPS, seed=31)
    print(name, describe(scores))
    assert max(map(abs, scores.values())) < LIMIT, describe(scores)


def without_half_in_delta(monkeypatch):
    right = shrinkage.delta_conditional

    def wrong(log_delta, weights, alpha, i):
        shape, rate = right(log_delta, weights, alpha, i)
        return shape, 1.0 + 2.0 * (rate - 1.0)

    monkeypatch.setattr(shrinkage, "delta_conditional", wrong)


def without_half_in_the_precisions_of_factors(monkeypatch):
    right = precision.precision_conditional

    def wrong(count, squares, prior):
        shape, rate = right(count, squares, prior)
        return shape, rate + 0.5 * squares

    monkeypatch.setattr(terms, "precision_conditional", wrong)


def with_a_wrong_diagonal(monkeypatch):
    right = rows_complete.factorise

    def wrong(matrix):
        matrix[np.diag_indices_from(matrix)] *= 1.3
        right(matrix)

    monkeypatch.setattr(rows_complete, "factorise", wrong)


@pytest.mark.parametrize(
    "mutation",
    [
        without_half_in_delta,
        without_half_in_the_precisions_of_factors,
        with_a_wrong_diagonal,
    ],
)
def test_a_missing_factor_is_caught(mutation, monkeypatch):
    mutation(monkeypatch)
    scores = z_scores("complete", 3000, seed=7, n_prior=5_000)
    print(mutation.__name__, describe(scores))
    assert max(map(abs, scores.values())) > LIMIT, describe(scores)
