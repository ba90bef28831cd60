"""The model written down a second time, slowly: its prior, one log joint density, and every conditional.

Everything follows docs/model.md in float64 and plain loops; nothing is taken from the package. The
tests compare the package with this file, and this file's conditionals with its log joint density.

Items lie in regions. With one region the usage pi_k has the paper's beta prior; with several each has its own
pi_kg ~ Beta(h eta_k, h (1 - eta_k)), eta_k has that prior and h is Gamma(e_h, f_h).

Gammas are Gamma(shape, rate). Entries of an item are flattened in C order.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, expit, gammaln


class Priors(NamedTuple):
    """Hyper-parameters of (0.4) and (0.5); the defaults are proper and informative."""

    usage: tuple[float, float] = (3.0, 3.0)  # a_pi, b_pi
    noise: tuple[float, float] = (5.0, 5.0)  # c, d
    code: tuple[float, float] = (5.0, 5.0)  # e, f
    alpha: tuple[float, float] = (4.0, 2.0)  # a, b
    concentration: tuple[float, float] = (4.0, 0.5)  # e_h, f_h

    def usage_shapes(self, n_atoms: int) -> tuple[float, float]:
        """Beta(a/K, b(K-1)/K). The second shape would be 0 for K = 1; the package then takes b."""
        a, b = self.usage
        return a / n_atoms, (b * (n_atoms - 1) / n_atoms if n_atoms > 1 else b)


@dataclass
class World:
    """A value for every variable of the model, data included.

    ``rank`` 0 means Gaussian atoms, which are then kept in ``gaussian``; else they follow from the factors.

    Attributes
    ----------
    values, observed : (N, P);  slab : s (N, K);  used : z (N, K) bool
    gaussian : (K, P);  weights : lambda (K, R);  modes : T arrays u (K, m_t, R);  delta : (K, R)
    region : (N,) where each item lies;  usage : pi (G, K)
    usage_mean : eta (K,);  concentration : h; both are part of the model only if G > 1
    """

    shape: tuple[int, ...]
    values: np.ndarray
    observed: np.ndarray
    slab: np.ndarray
    used: np.ndarray
    gaussian: np.ndarray
    weights: np.ndarray
    modes: list[np.ndarray]
    delta: np.ndarray
    alpha: float
    region: np.ndarray
    usage: np.ndarray
    usage_mean: np.ndarray
    concentration: float
    code_precision: float
    noise_precision: float

    @property
    def n_items(self) -> int:
        return len(self.values)

    @property
    def n_atoms(self) -> int:
        return self.usage.shape[1]

    @property
    def n_regions(self) -> int:
        return len(self.usage)

    @property
    def n_entries(self) -> int:
        return math.prod(self.shape)

    @property
    def rank(self) -> int:
        return self.weights.shape[1]

    @property
    def codes(self) -> np.ndarray:
        """w = s z (N, K)."""
        return self.slab * self.used

    @property
    def atoms(self) -> np.ndarray:
        """d (K, P): free for Gaussian atoms, (0.2) for Kruskal atoms."""
        if self.rank == 0:
            return self.gaussian
        return np.array([compose(w, list(modes)) for w, *modes in zip(self.weights, *self.modes)])

    @property
    def tau(self) -> np.ndarray:
        """tau_kr = prod_{i<=r} delta_ki (K, R)."""
        return np.cumprod(self.delta, axis=1)

    def changed(self, **values: Any) -> "World":
        """A copy with other values of some variables."""
        return replace(self, **values)

    def with_entry(self, name: str, index: Any, value: Any) -> "World":
        """A copy in which one entry (or slice) of an array is different."""
        array = getattr(self, name).copy()
        array[index] = value
        return replace(self, **{name: array})

    def with_mode(self, t: int, index: Any, value: Any) -> "World":
        """A copy in which some entries of the mode vectors u^(t) are different."""
        modes = [mode.copy() for mode in self.modes]
        modes[t][index] = value
        return replace(self, modes=modes)


def compose(weights: np.ndarray, modes: list[np.ndarray]) -> np.ndarray:
    """sum_r lambda_r u_r^(1) o .. o u_r^(T), flattened; ``modes`` are T arrays (m_t, R)."""
    total = 0.0
    for r in range(len(weights)):
        term = np.asarray(weights[r])
        for mode in modes:
            term = np.multiply.outer(term, mode[:, r])
        total = total + term
    return np.ravel(total)


# --------------------------------------------------------------------------------------- densities and prior


def log_normal(value, mean, precision):
    return 0.5 * (np.log(precision) - math.log(2.0 * math.pi) - precision * (value - mean) ** 2)


def log_gaussian_vector(value: np.ndarray, linear: np.ndarray, precision: np.ndarray) -> float:
    """log N(value; Q^-1 h, Q^-1) for h ``linear`` and Q ``precision``."""
    off = value - np.linalg.solve(precision, linear)
    log_determinant = np.linalg.slogdet(precision)[1]
    return 0.5 * (log_determinant - len(off) * math.log(2.0 * math.pi) - off @ precision @ off)


def log_gamma(value, shape, rate):
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * np.log(value) - rate * value


def log_beta(value, first, second):
    return (first - 1.0) * np.log(value) + (second - 1.0) * np.log1p(-value) - betaln(first, second)


def log_alpha_prior(alpha, priors: Priors):
    """(0.4), up to its constant."""
    a, b = priors.alpha
    return (alpha - 1.0) * math.log(a) - b * gammaln(alpha)


def log_joint(world: World, priors: Priors, inactive: bool = True) -> float:
    """log p(everything), up to the constant of p(alpha).

    ``inactive`` False integrates out the s_kn with z_kn = 0.
    """
    noise = (world.values - world.codes @ world.atoms)[world.observed]
    slab = world.slab.ravel() if inactive else world.slab[world.used]
    total = log_normal(noise, 0.0, world.noise_precision).sum()
    total += log_normal(slab, 0.0, world.code_precision).sum()
    for n in range(world.n_items):
        usage = world.usage[world.region[n]]
        total += np.where(world.used[n], np.log(usage), np.log1p(-usage)).sum()
    shapes = priors.usage_shapes(world.n_atoms)
    if world.n_regions == 1:
        total += log_beta(world.usage, *shapes).sum()
    else:
        eta, h = world.usage_mean, world.concentration
        total += log_beta(world.usage, h * eta, h * (1.0 - eta)).sum()
        total += log_beta(eta, *shapes).sum() + log_gamma(h, *priors.concentration)
    total += log_gamma(world.noise_precision, *priors.noise) + log_gamma(world.code_precision, *priors.code)
    if world.rank == 0:
        total += log_normal(world.gaussian, 0.0, float(world.n_entries)).sum()
    else:
        for size, mode in zip(world.shape, world.modes):
            total += log_normal(mode, 0.0, float(size)).sum()
        total += log_normal(world.weights, 0.0, world.tau).sum()
        total += log_gamma(world.delta, world.alpha, 1.0).sum()
        total += log_alpha_prior(world.alpha, priors)
    return float(total)


def alpha_grid(log_density, low: float, high: float, size: int = 20_001) -> tuple[np.ndarray, np.ndarray]:
    """Grid over alpha and its distribution function, by the trapezoid rule; takes a vectorised density."""
    alpha = np.linspace(low, high, size)
    height = log_density(alpha)
    height = np.exp(height - height.max())
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (height[1:] + height[:-1]))])
    return alpha, mass / mass[-1]


def log_gamma_variate(random: np.random.Generator, shape: np.ndarray) -> np.ndarray:
    """log g for g ~ Gamma(shape, 1), without underflow: g = g' u^(1/shape), g' ~ Gamma(shape + 1)."""
    return np.log(random.gamma(shape + 1.0)) - random.exponential(size=shape.shape) / shape


def simulate_usage(
    random: np.random.Generator, priors: Priors, n_regions: int, n_atoms: int, n_draws: int
) -> dict[str, Any]:
    """The prior of usage: eta (n, K), h (n,), pi (n, G, K) and its log odds, which do not overflow."""
    shapes = priors.usage_shapes(n_atoms)
    if n_regions == 1:
        usage = random.beta(*shapes, size=(n_draws, 1, n_atoms))
        return {
            "usage": usage, "log_odds": np.log(usage) - np.log1p(-usage),
            "usage_mean": np.full((n_draws, n_atoms), 0.5), "concentration": np.ones(n_draws),
        }  # fmt: skip
    eta = random.beta(*shapes, size=(n_draws, n_atoms))
    h = random.gamma(priors.concentration[0], 1.0 / priors.concentration[1], n_draws)
    first = np.repeat((h[:, None] * eta)[:, None, :], n_regions, axis=1)
    second = np.repeat((h[:, None] * (1.0 - eta))[:, None, :], n_regions, axis=1)
    log_odds = log_gamma_variate(random, first) - log_gamma_variate(random, second)
    return {"usage": expit(log_odds), "log_odds": log_odds, "usage_mean": eta, "concentration": h}


def simulate(
    random: np.random.Generator,
    priors: Priors,
    shape: tuple[int, ...],
    n_atoms: int,
    rank: int,
    observed: np.ndarray,
    n_draws: int,
    region: np.ndarray | None = None,
    most_noise: float = math.inf,
    least_noise: float = 0.0,
) -> dict[str, Any]:
    """``n_draws`` independent draws of all variables from the prior, as arrays with a leading axis.

    ``region`` (N,) says where each item lies; without it all lie in one. The noise prior is cut off at the
    standard deviations ``most_noise`` and ``least_noise``.
    """
    n_items, n_entries = observed.shape
    region = np.zeros(n_items, int) if region is None else region
    draws = simulate_usage(random, priors, int(region.max()) + 1, n_atoms, n_draws)
    draws["used"] = random.random((n_draws, n_items, n_atoms)) < draws["usage"][:, region, :]
    draws["code_precision"] = random.gamma(priors.code[0], 1.0 / priors.code[1], n_draws)
    draws["noise_precision"] = random.gamma(priors.noise[0], 1.0 / priors.noise[1], n_draws)
    least, most = most_noise**-2, 1.0 / max(least_noise**2, 1e-300)
    while (outside := (draws["noise_precision"] < least) | (draws["noise_precision"] > most)).any():
        drawn = random.gamma(priors.noise[0], 1.0 / priors.noise[1], int(outside.sum()))
        draws["noise_precision"][outside] = drawn
    slab = random.standard_normal((n_draws, n_items, n_atoms))
    draws["slab"] = slab / np.sqrt(draws["code_precision"])[:, None, None]
    grid, below = alpha_grid(lambda alpha: log_alpha_prior(alpha, priors), 1e-6, 40.0)
    draws["alpha"] = np.interp(random.random(n_draws), below, grid)
    draws["delta"] = random.standard_gamma(draws["alpha"][:, None, None], size=(n_draws, n_atoms, rank))
    precision = np.cumprod(draws["delta"], axis=2)
    draws["weights"] = random.standard_normal(precision.shape) / np.sqrt(precision)
    draws["modes"] = [random.standard_normal((n_draws, n_atoms, m, rank)) / math.sqrt(m) for m in shape]
    draws["gaussian"] = random.standard_normal((n_draws, n_atoms, n_entries)) / math.sqrt(n_entries)
    if rank > 0:
        atoms = draws["weights"][..., None, :]
        for mode in draws["modes"]:
            atoms = (atoms[..., :, None, :] * mode[..., None, :, :]).reshape(n_draws, n_atoms, -1, rank)
        draws["gaussian"] = atoms.sum(axis=-1)
    noise = random.standard_normal((n_draws, n_items, n_entries))
    clean = (draws["slab"] * draws["used"]) @ draws["gaussian"]
    draws["values"] = clean + noise / np.sqrt(draws["noise_precision"])[:, None, None]
    return draws


def world_of(
    draws: dict[str, Any], i: int, shape: tuple[int, ...], observed: np.ndarray,
    region: np.ndarray | None = None,
) -> World:  # fmt: skip
    """Draw ``i`` of `simulate`."""
    region = np.zeros(len(observed), int) if region is None else region
    return World(
        shape, draws["values"][i], observed, draws["slab"][i], draws["used"][i], draws["gaussian"][i],
        draws["weights"][i], [mode[i] for mode in draws["modes"]], draws["delta"][i],
        float(draws["alpha"][i]), region, draws["usage"][i], draws["usage_mean"][i],
        float(draws["concentration"][i]), float(draws["code_precision"][i]),
        float(draws["noise_precision"][i]),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- conditionals


def residual_without(world: World, k: int) -> np.ndarray:
    """x~ (N, P): the data without what all atoms but k explain."""
    codes = world.codes.copy()
    codes[:, k] = 0.0
    return world.values - codes @ world.atoms


def code_terms(world: World, n: int, k: int) -> tuple[float, float]:
    """(c_kn, l_kn) of (1.10)."""
    atom, rest = world.atoms[k], residual_without(world, k)[n]
    energy = linear = 0.0
    for i in range(world.n_entries):
        if world.observed[n, i]:
            energy += atom[i] ** 2
            linear += atom[i] * rest[i]
    return world.noise_precision * energy, world.noise_precision * linear


def logit_collapsed(usage: float, code_precision: float, c: float, linear: float) -> float:
    """(1.13)."""
    precision = code_precision + c
    log_odds = math.log(usage) - math.log1p(-usage)
    return log_odds + 0.5 * math.log(code_precision / precision) + 0.5 * linear**2 / precision


def logit_uncollapsed(usage: float, slab: float, c: float, linear: float) -> float:
    """(1.11)."""
    return math.log(usage) - math.log1p(-usage) - 0.5 * (slab**2 * c - 2.0 * slab * linear)


def log_bernoulli(used: bool, logit: float) -> float:
    return float(np.log(expit(logit if used else -logit)))


def slab_conditional(code_precision: float, c: float, linear: float) -> tuple[float, float]:
    """Mean and precision of s given z = 1 (1.12)."""
    return linear / (code_precision + c), code_precision + c


def slabs_conditional(world: World, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(Lambda m, Lambda) of the s of all atoms that item n uses, in order; empty if there is none."""
    atoms = world.atoms[world.used[n]]
    precision, linear = world.code_precision * np.eye(len(atoms)), np.zeros(len(atoms))
    for i in range(world.n_entries):
        if world.observed[n, i]:
            precision += world.noise_precision * np.outer(atoms[:, i], atoms[:, i])
            linear += world.noise_precision * world.values[n, i] * atoms[:, i]
    return linear, precision


def atom_terms(world: World, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(q_k, p_k), both (P,), of (1.1) and (1.2)."""
    code, rest = world.codes[:, k], residual_without(world, k)
    q, p = np.zeros(world.n_entries), np.zeros(world.n_entries)
    for n in range(world.n_items):
        if world.used[n, k]:
            q += world.observed[n] * code[n] ** 2
            p += np.where(world.observed[n], code[n] * rest[n], 0.0)
    return world.noise_precision * q, world.noise_precision * p


def gaussian_atom(q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and precisions (P,) of a BPFA atom."""
    precision = len(q) + q
    return p / precision, precision


def entries_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Index (i_1, .., i_T) of every entry, in C order."""
    return list(np.ndindex(*shape))


def others(weights: np.ndarray, modes: list[np.ndarray], index: tuple[int, ...], t: int | None) -> np.ndarray:
    """(R,) weights times the factors of entry ``index`` in all modes but ``t``; all modes for None."""
    a = np.array(weights, dtype=float)
    for mode, i in enumerate(index):
        if mode != t:
            a = a * modes[mode][i]
    return a


def factor_row(weights, modes, q, p, t: int, j: int) -> tuple[np.ndarray, np.ndarray]:
    """(h_j, Q_j) of row j of mode t, all terms at once (1.4); ``weights`` (R,), ``modes`` T x (m_t, R)."""
    shape = tuple(len(mode) for mode in modes)
    precision, linear = shape[t] * np.eye(len(weights)), np.zeros(len(weights))
    for i, index in enumerate(entries_of(shape)):
        if index[t] == j:
            a = others(weights, modes, index, t)
            precision += q[i] * np.outer(a, a)
            linear += p[i] * a
    return linear, precision


def factor_entry(weights, modes, q, p, t: int, j: int, r: int) -> tuple[float, float]:
    """Mean and precision of u_jr of mode t, one at a time (1.3)."""
    shape = tuple(len(mode) for mode in modes)
    atom = compose(weights, modes)
    precision, linear = float(shape[t]), 0.0
    for i, index in enumerate(entries_of(shape)):
        if index[t] == j:
            a = others(weights, modes, index, t)[r]
            b = atom[i] - a * modes[t][j, r]
            precision += q[i] * a**2
            linear += (p[i] - q[i] * b) * a
    return linear / precision, precision


def weight_block(weights, modes, tau, q, p) -> tuple[np.ndarray, np.ndarray]:
    """(F^T p, Lambda) of all weights of an atom (1.6)."""
    shape = tuple(len(mode) for mode in modes)
    ones = np.ones(len(weights))
    f = np.array([others(ones, modes, index, None) for index in entries_of(shape)])
    return f.T @ p, np.diag(tau) + f.T @ np.diag(q) @ f


def weight_entry(weights, modes, tau, q, p, r: int) -> tuple[float, float]:
    """Mean and precision of lambda_r, one at a time (1.5)."""
    shape = tuple(len(mode) for mode in modes)
    atom, ones = compose(weights, modes), np.ones(len(weights))
    precision, linear = tau[r], 0.0
    for i, index in enumerate(entries_of(shape)):
        f = others(ones, modes, index, None)[r]
        g = atom[i] - weights[r] * f
        precision += q[i] * f**2
        linear += (p[i] - q[i] * g) * f
    return linear / precision, precision


def delta_conditional(delta: np.ndarray, weights: np.ndarray, alpha: float, i: int) -> tuple[float, float]:
    """Shape and rate of level i (from 0) of one atom's delta (R,) (1.7)."""
    rank, rate = len(delta), 1.0
    for r in range(i, rank):
        rest = math.prod(delta[j] for j in range(r + 1) if j != i)
        rate += 0.5 * rest * weights[r] ** 2
    return alpha + 0.5 * (rank - i), rate


def log_alpha_conditional(alpha, delta: np.ndarray, priors: Priors):
    """(1.8)."""
    a, b = priors.alpha
    return (alpha - 1.0) * (math.log(a) + np.log(delta).sum()) - (b + delta.size) * gammaln(alpha)


def usage_conditional(world: World, k: int, priors: Priors) -> tuple[float, float]:
    """Shapes of the beta conditional of pi_k in the one region that there is (1.14)."""
    assert world.n_regions == 1
    first, second = priors.usage_shapes(world.n_atoms)
    count = sum(bool(world.used[n, k]) for n in range(world.n_items))
    return first + count, second + world.n_items - count


def region_counts(world: World, g: int, k: int) -> tuple[int, int]:
    """How many items of region g use atom k, and how many do not."""
    used = [bool(world.used[n, k]) for n in range(world.n_items) if world.region[n] == g]
    return sum(used), len(used) - sum(used)


def region_usage_conditional(world: World, g: int, k: int) -> tuple[float, float]:
    """Shapes of the beta conditional of pi_kg, given eta and h."""
    used, unused = region_counts(world, g, k)
    eta, h = world.usage_mean[k], world.concentration
    return h * eta + used, h * (1.0 - eta) + unused


def log_region_marginal(world: World, k: int) -> float:
    """log p(z_k | eta_k, h) with pi_k integrated out, as a product of ratios of beta functions."""
    eta, h = world.usage_mean[k], world.concentration
    total = 0.0
    for g in range(world.n_regions):
        total += betaln(*region_usage_conditional(world, g, k)) - betaln(h * eta, h * (1.0 - eta))
    return float(total)


def noise_conditional(world: World, priors: Priors) -> tuple[float, float]:
    """Shape and rate of gamma_eps (1.15)."""
    rest = (world.values - world.codes @ world.atoms)[world.observed]
    return priors.noise[0] + 0.5 * len(rest), priors.noise[1] + 0.5 * float(rest @ rest)


def code_precision_conditional(world: World, priors: Priors, inactive: bool) -> tuple[float, float]:
    """Shape and rate of gamma_s: (1.16) with all s, (1.16') with those of z = 0 integrated out."""
    slab = world.slab.ravel() if inactive else world.slab[world.used]
    return priors.code[0] + 0.5 * len(slab), priors.code[1] + 0.5 * float(slab @ slab)
