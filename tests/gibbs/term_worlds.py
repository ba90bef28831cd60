"""Small worlds of MGP-CP: every variable, the log joint density, and the conditionals in plain loops."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from kruskal.gibbs.precision import GammaPrior
from kruskal.gibbs.shrinkage import AlphaPrior
from kruskal.models import Terms
from kruskal.patches import Items
from tests.gibbs.reference import alpha_grid, log_gamma, log_normal

NOISE = GammaPrior(5.0, 5.0)
FACTOR = GammaPrior(4.0, 3.0)
ALPHA = AlphaPrior(4.0, 2.0)


@dataclass(frozen=True)
class TermWorld:
    """Data (m_1, .., m_T), mask, and a value for every variable; ``modes`` are (m_t, R) each."""

    values: np.ndarray
    observed: np.ndarray
    weights: np.ndarray
    modes: tuple[np.ndarray, ...]
    omega: np.ndarray  # (T, R)
    delta: np.ndarray
    alpha: float
    noise_precision: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def rank(self) -> int:
        return len(self.weights)

    @property
    def tau(self) -> np.ndarray:
        return np.cumprod(self.delta)

    @property
    def factors(self) -> np.ndarray:
        return np.concatenate(self.modes)

    def with_mode(self, t: int, mode: np.ndarray) -> "TermWorld":
        return replace(self, modes=(*self.modes[:t], mode, *self.modes[t + 1 :]))

    def changed(self, **values) -> "TermWorld":
        return replace(self, **values)

    def mean(self) -> np.ndarray:
        """The Kruskal tensor, entry by entry."""
        result = np.empty(self.shape)
        for index in itertools.product(*map(range, self.shape)):
            result[index] = (self.weights * products(self.modes, index)).sum()
        return result

    def items(self) -> Items:
        """The whole array as one item of the package, in double precision."""
        shape = (1, *self.shape)
        return Items.from_matrix(self.values.reshape(shape), self.observed.reshape(shape))

    def state(self) -> Terms:
        """In the package's own type."""
        return Terms(
            self.weights.copy(), self.factors, self.omega.copy(), np.log(self.delta), self.alpha,
            self.noise_precision,
        )  # fmt: skip


def products(modes, index, left_out: int = -1) -> np.ndarray:
    """prod over t != left_out of u^(t)_{i_t}, (R,)."""
    result = np.ones(modes[0].shape[1])
    for t, mode in enumerate(modes):
        if t != left_out:
            result = result * mode[index[t]]
    return result


def simulate_terms(random, shape, rank, observed, n_draws) -> list[TermWorld]:
    """Independent draws from the joint prior of everything; values only matter where observed."""
    grid, below = alpha_grid(
        lambda alpha: (alpha - 1.0) * math.log(ALPHA.a) - ALPHA.b * gammaln(alpha), 1e-6, 40.0
    )
    worlds = []
    for alpha in np.interp(random.random(n_draws), below, grid):
        delta = random.standard_gamma(alpha, rank)
        weights = random.standard_normal(rank) / np.sqrt(np.cumprod(delta))
        omega = random.standard_gamma(FACTOR.shape, (len(shape), rank)) / FACTOR.rate
        modes = tuple(random.standard_normal((m, rank)) / np.sqrt(omega[t]) for t, m in enumerate(shape))
        gamma = random.standard_gamma(NOISE.shape) / NOISE.rate
        letters = "abcd"[: len(shape)]
        spec = ",".join(f"{letter}r" for letter in letters)
        mean = np.einsum(f"r,{spec}->{letters}", weights, *modes)
        values = np.where(observed, mean + random.standard_normal(shape) / math.sqrt(gamma), 0.0)
        worlds.append(TermWorld(values, observed, weights, modes, omega, delta, float(alpha), float(gamma)))
    return worlds


def log_joint(world: TermWorld) -> float:
    """log p(everything), up to the constant of p(alpha)."""
    seen = world.observed
    total = log_normal(world.values[seen], world.mean()[seen], world.noise_precision).sum()
    total += log_normal(world.weights, 0.0, world.tau).sum()
    for mode, omega in zip(world.modes, world.omega):
        total += log_normal(mode, 0.0, np.broadcast_to(omega, mode.shape)).sum()
    total += log_gamma(world.omega, *FACTOR).sum()
    total += log_gamma(world.delta, world.alpha, 1.0).sum()
    total += log_gamma(world.noise_precision, *NOISE)
    return float(total + (world.alpha - 1.0) * math.log(ALPHA.a) - ALPHA.b * gammaln(world.alpha))


def row_conditional(world: TermWorld, t: int, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Precision (R, R) and linear term (R,) of row j of mode t, entry by entry."""
    precision, linear = np.diag(world.omega[t]), np.zeros(world.rank)
    for index in itertools.product(*map(range, world.shape)):
        if index[t] == j and world.observed[index]:
            a = world.weights * products(world.modes, index, t)
            precision = precision + world.noise_precision * np.outer(a, a)
            linear = linear + world.noise_precision * world.values[index] * a
    return precision, linear


def term_sums(world: TermWorld) -> tuple[np.ndarray, np.ndarray]:
    """F^T F and F^T x over the observed entries."""
    square, data = np.zeros((world.rank, world.rank)), np.zeros(world.rank)
    for index in itertools.product(*map(range, world.shape)):
        if world.observed[index]:
            f = products(world.modes, index)
            square, data = square + np.outer(f, f), data + world.values[index] * f
    return square, data


def weight_conditional(world: TermWorld) -> tuple[np.ndarray, np.ndarray]:
    """Precision and linear term of all weights."""
    square, data = term_sums(world)
    return np.diag(world.tau) + world.noise_precision * square, world.noise_precision * data


def log_gaussian(x: np.ndarray, precision: np.ndarray, linear: np.ndarray) -> float:
    """log N(x; Q^-1 h, Q^-1), normalised."""
    off = x - np.linalg.solve(precision, linear)
    return float(0.5 * np.linalg.slogdet(precision / (2.0 * math.pi))[1] - 0.5 * off @ precision @ off)


def draw_gaussian(precision: np.ndarray, linear: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Q^-1 h + L^-T z with Q = L L^T."""
    root = np.linalg.cholesky(precision)
    return np.linalg.solve(precision, linear) + np.linalg.solve(root.T, normals)


SHAPES = {2: (4, 3), 3: (3, 4, 2), 4: (2, 3, 2, 3)}


def make_term_world(order: int, rank: int, masked: bool, seed: int = 0) -> TermWorld:
    """A draw from the prior; masked worlds have a row without any observed entry in the first mode."""
    random = np.random.default_rng([seed, order, rank, masked])
    observed = np.ones(SHAPES[order], bool)
    if masked:
        observed = random.random(SHAPES[order]) < 0.6
        observed[1] = False
        observed[0, 0] = True
    return simulate_terms(random, SHAPES[order], rank, observed, 1)[0]
