"""The convolutional model written down a second time, slowly: prior, log joint density, conditionals.

Follows docs/model.md in float64 and plain loops; of the package only `Layout` is used, which holds sizes.
Maps without pooling have blocks of one cell.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr

from kruskal.gibbs.conv_local import Layout
from tests.gibbs.reference import (
    Priors,
    alpha_grid,
    compose,
    log_alpha_prior,
    log_beta,
    log_gamma,
    log_normal,
)

PRIORS = Priors()


class ConvCase(NamedTuple):
    """What a world looks like; ``rank`` 0 means Gaussian atoms."""

    rank: int = 0
    masked: bool = False
    pooling: tuple[int, int] = (1, 1)
    nonnegative: bool = False
    image_shape: tuple[int, int, int] = (5, 4, 2)
    atom_size: tuple[int, int] = (3, 2)
    n_atoms: int = 3
    n_images: int = 3
    by_image: bool = False

    def __str__(self) -> str:
        kind = f"rank{self.rank}" if self.rank else "gaussian"
        pooled = f"-pool{self.pooling[0]}x{self.pooling[1]}" if self.pooling != (1, 1) else ""
        sign = "-positive" if self.nonnegative else ""
        usage = "-by_image" if self.by_image else ""
        return f"{kind}{pooled}{sign}{usage}-{'masked' if self.masked else 'complete'}"

    @property
    def layout(self) -> Layout:
        return Layout(self.image_shape, self.atom_size, self.pooling)

    def observed(self) -> np.ndarray:
        """A fixed mask, about half of the entries; the last image has none, the first has all."""
        observed = np.ones((self.n_images, *self.image_shape), bool)
        if self.masked:
            observed = np.random.default_rng(0).random(observed.shape) < 0.5
            observed[0], observed[-1] = True, False
        return observed


@dataclass
class ConvWorld:
    """A value for every variable of the model, images included.

    Attributes
    ----------
    values, observed : (N, M_x, M_y, C);  maps : W (N, K, map rows, map columns)
    gaussian : (K, m_x, m_y, C);  weights : (K, R);  modes : three arrays (K, m_t, R);  delta : (K, R)
    theta : (K, cells + 1), off first; nothing with usage by image, which has instead
    pi : (N, K);  phi : (K, cells);  eta : (K,);  concentration : h
    """

    case: ConvCase
    values: np.ndarray
    observed: np.ndarray
    maps: np.ndarray
    gaussian: np.ndarray
    weights: np.ndarray
    modes: list[np.ndarray]
    delta: np.ndarray
    alpha: float
    theta: np.ndarray
    code_precision: float
    noise_precision: float
    pi: np.ndarray
    phi: np.ndarray
    eta: np.ndarray
    concentration: float

    @property
    def layout(self) -> Layout:
        return self.case.layout

    @property
    def n_atoms(self) -> int:
        return self.maps.shape[1]

    @property
    def rank(self) -> int:
        return self.weights.shape[1]

    def theta_of(self, n: int) -> np.ndarray:
        """(K, cells + 1) of image n."""
        if not self.case.by_image:
            return self.theta
        pi = self.pi[n][:, None]
        return np.hstack([1.0 - pi, pi * self.phi])

    def log_odds(self, n: int = 0) -> np.ndarray:
        """(K, cells) of image n."""
        theta = self.theta_of(n)
        return np.log(theta[:, 1:]) - np.log(theta[:, :1])

    @property
    def tau(self) -> np.ndarray:
        return np.cumprod(self.delta, axis=1)

    @property
    def atoms(self) -> np.ndarray:
        """(K, m_x, m_y, C)."""
        if self.rank == 0:
            return self.gaussian
        atoms = [compose(w, list(modes)) for w, *modes in zip(self.weights, *self.modes)]
        return np.reshape(atoms, (-1, *self.layout.atom_shape))

    def changed(self, **values: Any) -> "ConvWorld":
        return replace(self, **values)

    def with_entry(self, name: str, index: Any, value: Any) -> "ConvWorld":
        array = getattr(self, name).copy()
        array[index] = value
        return replace(self, **{name: array})

    def with_mode(self, t: int, k: int, value: np.ndarray) -> "ConvWorld":
        modes = [mode.copy() for mode in self.modes]
        modes[t][k] = value
        return replace(self, modes=modes)

    def residual(self) -> np.ndarray:
        return np.where(self.observed, self.values - synthesise(self.maps, self.atoms), 0.0)


def synthesise(maps: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """D * W (.., M_x, M_y, C) of maps (.., K, rows, columns) and atoms (.., K, m_x, m_y, C)."""
    m_x, m_y, channels = atoms.shape[-3:]
    rows, columns = maps.shape[-2:]
    out = np.zeros((*maps.shape[:-3], rows + m_x - 1, columns + m_y - 1, channels))
    for x in range(rows):
        for y in range(columns):
            w = maps[..., x, y][..., None, None, None]
            out[..., x : x + m_x, y : y + m_y, :] += (w * atoms).sum(axis=-4)
    return out


def blocks_of(layout: Layout) -> list[list[tuple[int, int, int]]]:
    """For every block in order, its cells (g, x, y) that exist."""
    result = []
    for b_x in range(layout.grid[0]):
        for b_y in range(layout.grid[1]):
            cells = []
            for g in range(layout.n_cells):
                x = b_x * layout.pooling[0] + g // layout.pooling[1]
                y = b_y * layout.pooling[1] + g % layout.pooling[1]
                if x < layout.map_shape[0] and y < layout.map_shape[1]:
                    cells.append((g, x, y))
            result.append(cells)
    return result


def log_slab(value, precision: float, nonnegative: bool):
    return log_normal(value, 0.0, precision) + (math.log(2.0) if nonnegative else 0.0)


def dirichlet_shapes(case: ConvCase, priors: Priors = PRIORS) -> np.ndarray:
    """(cells + 1,) of the prior of theta_k."""
    used, unused = priors.usage_shapes(case.n_atoms)
    cells = case.layout.n_cells
    return np.array([unused, *[used / cells] * cells])


def log_usage_prior(world: ConvWorld, priors: Priors) -> float:
    """Of theta, or of pi, phi, eta and h."""
    shapes, h = dirichlet_shapes(world.case, priors), world.concentration
    if not world.case.by_image:
        return log_dirichlet(world.theta, shapes)
    total = log_beta(world.eta, *priors.usage_shapes(world.n_atoms)).sum()
    total += log_beta(world.pi, h * world.eta, h * (1.0 - world.eta)).sum()
    return float(total) + log_dirichlet(world.phi, shapes[1:]) + float(log_gamma(h, *priors.concentration))


def log_dirichlet(shares: np.ndarray, shapes: np.ndarray) -> float:
    """Of all rows of ``shares``, one density."""
    constant = gammaln(shapes.sum()) - gammaln(shapes).sum()
    return float(((shapes - 1.0) * np.log(shares)).sum() + len(shares) * constant)


def log_joint(world: ConvWorld, priors: Priors = PRIORS) -> float:
    """log p(everything), up to the constant of p(alpha); slabs of what is off do not exist."""
    total = log_normal(world.residual()[world.observed], 0.0, world.noise_precision).sum()
    on = world.maps != 0.0
    if world.case.nonnegative and (world.maps < 0.0).any():
        return -math.inf
    total += np.sum(log_slab(world.maps[on], world.code_precision, world.case.nonnegative))
    for cells in blocks_of(world.layout):
        exists = [0, *(1 + g for g, _, _ in cells)]
        for n in range(len(world.maps)):
            theta = world.theta_of(n)
            for k in range(world.n_atoms):
                normaliser = math.log(theta[k, exists].sum())
                used = [g for g, x, y in cells if on[n, k, x, y]]
                if len(used) > 1:
                    return -math.inf
                total += math.log(theta[k, 1 + used[0] if used else 0]) - normaliser
    total += log_usage_prior(world, priors)
    total += log_gamma(world.noise_precision, *priors.noise) + log_gamma(world.code_precision, *priors.code)
    if world.rank == 0:
        total += log_normal(world.gaussian, 0.0, float(world.gaussian[0].size)).sum()
    else:
        for size, mode in zip(world.layout.atom_shape, world.modes):
            total += log_normal(mode, 0.0, float(size)).sum()
        total += log_normal(world.weights, 0.0, world.tau).sum()
        total += log_gamma(world.delta, world.alpha, 1.0).sum() + log_alpha_prior(world.alpha, priors)
    return float(total)


def simulate(
    random: np.random.Generator, case: ConvCase, n_draws: int, priors: Priors = PRIORS
) -> dict[str, Any]:
    """``n_draws`` independent draws of all variables from the prior, as arrays with a leading axis."""
    layout, n_atoms, rank = case.layout, case.n_atoms, case.rank
    draws = simulate_usage(random, case, n_draws, priors)
    draws["code_precision"] = random.gamma(priors.code[0], 1.0 / priors.code[1], n_draws)
    draws["noise_precision"] = random.gamma(priors.noise[0], 1.0 / priors.noise[1], n_draws)
    maps = np.zeros((n_draws, case.n_images, n_atoms, *layout.map_shape))
    for cells in blocks_of(layout):
        share = draws["theta"][..., [0, *(1 + g for g, _, _ in cells)]]
        below = np.cumsum(share / share.sum(axis=-1, keepdims=True), axis=-1)
        u = random.random((n_draws, case.n_images, n_atoms))
        state = (u[..., None] > (below if case.by_image else below[:, None])).sum(axis=3)
        for i, (_, x, y) in enumerate(cells):
            maps[..., x, y] = state == i + 1
    slab = random.standard_normal(maps.shape)
    slab = np.abs(slab) if case.nonnegative else slab
    draws["maps"] = maps * slab / np.sqrt(draws["code_precision"])[:, None, None, None, None]
    grid, below = alpha_grid(lambda alpha: log_alpha_prior(alpha, priors), 1e-6, 40.0)
    draws["alpha"] = np.interp(random.random(n_draws), below, grid)
    draws["delta"] = random.standard_gamma(draws["alpha"][:, None, None], size=(n_draws, n_atoms, rank))
    precision = np.cumprod(draws["delta"], axis=2)
    draws["weights"] = random.standard_normal(precision.shape) / np.sqrt(precision)
    shape = layout.atom_shape
    draws["modes"] = [random.standard_normal((n_draws, n_atoms, m, rank)) / math.sqrt(m) for m in shape]
    size = math.prod(shape)
    draws["gaussian"] = random.standard_normal((n_draws, n_atoms, *shape)) / math.sqrt(size)
    if rank > 0:
        u_x, u_y, u_c = draws["modes"]
        draws["gaussian"] = np.einsum("nkr,nkxr,nkyr,nkcr->nkxyc", draws["weights"], u_x, u_y, u_c)
    clean = synthesise(draws["maps"], draws["gaussian"][:, None])
    noise = random.standard_normal(clean.shape)
    draws["values"] = clean + noise / np.sqrt(draws["noise_precision"])[:, None, None, None, None]
    return draws


def simulate_usage(
    random: np.random.Generator, case: ConvCase, n_draws: int, priors: Priors
) -> dict[str, Any]:
    """theta (n, K, cells + 1), or with usage by image (n, N, K, cells + 1) and what makes it up."""
    layout, n_atoms, shapes = case.layout, case.n_atoms, dirichlet_shapes(case, priors)
    size = (n_draws, n_atoms, layout.n_cells + 1)
    gammas = random.standard_gamma(shapes, size=size)
    theta = np.maximum(gammas / gammas.sum(axis=2, keepdims=True), 1e-300)
    draws: dict[str, Any] = {
        "theta": theta, "pi": np.zeros((n_draws, 0)), "phi": np.zeros((n_draws, 0)),
        "eta": np.zeros((n_draws, 0)), "concentration": np.ones(n_draws),
    }  # fmt: skip
    if case.by_image:
        on = np.clip(1.0 - theta[..., 0], 1e-12, 1.0 - 1e-12)
        phi = np.maximum(theta[..., 1:] / theta[..., 1:].sum(axis=2, keepdims=True), 1e-300)
        h = random.gamma(priors.concentration[0], 1.0 / priors.concentration[1], n_draws)
        shapes = h[:, None, None] * np.stack([on, 1.0 - on])[:, :, None]
        pi = random.beta(*shapes, size=(n_draws, case.n_images, n_atoms))
        pi = np.clip(pi, 1e-300, 1.0 - 1e-15)
        draws |= {"eta": on, "phi": phi, "concentration": h, "pi": pi}
        draws["theta"] = np.concatenate([1.0 - pi[..., None], pi[..., None] * phi[:, None]], axis=3)
    return draws


def world_of(draws: dict[str, Any], i: int, case: ConvCase) -> ConvWorld:
    """Draw ``i`` of `simulate`."""
    return ConvWorld(
        case, draws["values"][i], case.observed(), draws["maps"][i], draws["gaussian"][i],
        draws["weights"][i], [mode[i] for mode in draws["modes"]], draws["delta"][i],
        float(draws["alpha"][i]), draws["theta"][i],
        float(draws["code_precision"][i]), float(draws["noise_precision"][i]),
        draws["pi"][i], draws["phi"][i], draws["eta"][i], float(draws["concentration"][i]),
    )  # fmt: skip


def make_world(case: ConvCase, seed: int = 0) -> ConvWorld:
    """Large atoms, many of them on and overlapping, so that the data matter; the middle atom is off."""
    random = np.random.default_rng([seed, case.rank, case.masked, case.nonnegative, *case.pooling])
    world = world_of(simulate(random, case, 1), 0, case)
    maps = np.zeros(world.maps.shape)
    for cells in blocks_of(case.layout):
        for n in range(case.n_images):
            for k in range(case.n_atoms):
                if k != 1 and random.random() < 0.5:
                    _, x, y = cells[random.integers(len(cells))]
                    sign = 1 if case.nonnegative else random.choice([-1, 1])
                    maps[n, k, x, y] = sign * random.uniform(0.3, 1.5)

    def away_from_zero(shape):
        return random.choice([-1.0, 1.0], size=shape) * random.uniform(0.5, 1.5, size=shape)

    theta = random.dirichlet(np.full(case.layout.n_cells + 1, 3.0), size=case.n_atoms)
    if case.by_image:
        world = world.changed(
            pi=random.uniform(0.1, 0.9, size=(case.n_images, case.n_atoms)), concentration=6.0,
            eta=random.uniform(0.2, 0.8, size=case.n_atoms), phi=theta[:, 1:] / theta[:, 1:].sum(1)[:, None],
        )  # fmt: skip
    world = world.changed(
        maps=maps, gaussian=away_from_zero(world.gaussian.shape), weights=away_from_zero(world.weights.shape),
        modes=[away_from_zero(mode.shape) for mode in world.modes], theta=theta,
        delta=random.uniform(0.5, 2.0, size=world.delta.shape), code_precision=1.3, noise_precision=2.0,
    )  # fmt: skip
    noise = 0.5 * random.standard_normal(world.values.shape)
    return world.changed(values=synthesise(maps, world.atoms[None]) + noise)


# ------------------------------------------------------------------------------------------- conditionals


def place_terms(world: ConvWorld, rest: np.ndarray, n: int, k: int, x: int, y: int) -> tuple[float, float]:
    """(c, l) of (5.2) given the residual ``rest`` of image n without this place."""
    m_x, m_y = world.layout.atom_size
    atom, seen = world.atoms[k], world.observed[n, x : x + m_x, y : y + m_y]
    here = rest[x : x + m_x, y : y + m_y]
    energy = (atom[seen] ** 2).sum()
    return world.noise_precision * energy, world.noise_precision * (atom * here)[seen].sum()


def without_block(world: ConvWorld, n: int, k: int, cells) -> ConvWorld:
    maps = world.maps.copy()
    for _, x, y in cells:
        maps[n, k, x, y] = 0.0
    return world.changed(maps=maps)


def block_conditional(world: ConvWorld, n: int, k: int, cells):
    """(5.10): log weights of the cells relative to off, and mean and precision of s at each cell."""
    rest = without_block(world, n, k, cells).residual()[n]
    log_weights, slabs = [], []
    for g, x, y in cells:
        c, linear = place_terms(world, rest, n, k, x, y)
        precision = world.code_precision + c
        gain = 0.5 * math.log(world.code_precision / precision) + 0.5 * linear**2 / precision
        if world.case.nonnegative:
            gain += math.log(2.0) + float(log_ndtr(linear / math.sqrt(precision)))
        log_weights.append(world.log_odds(n)[k, g] + gain)
        slabs.append((linear / precision, precision))
    return np.array(log_weights), slabs


def log_block_density(world: ConvWorld, n: int, k: int, cells) -> float:
    """log conditional density of the state of a block of the world: its cell and its value."""
    log_weights, slabs = block_conditional(world, n, k, cells)
    total = np.logaddexp.reduce([0.0, *log_weights])
    for i, (_, x, y) in enumerate(cells):
        value = world.maps[n, k, x, y]
        if value != 0.0:
            mean, precision = slabs[i]
            density = float(log_normal(value, mean, precision))
            if world.case.nonnegative:
                density -= float(log_ndtr(mean * math.sqrt(precision)))
            return float(log_weights[i] - total + density)
    return float(-total)


def design(world: ConvWorld, k: int) -> np.ndarray:
    """(observed entries, P): what the entries of atom k do to the images, column by column."""
    size = math.prod(world.layout.atom_shape)
    columns = []
    for i in range(size):
        atoms = np.zeros((1, *world.layout.atom_shape))
        atoms.reshape(-1)[i] = 1.0
        columns.append(synthesise(world.maps[:, k : k + 1], atoms[None])[world.observed])
    return np.stack(columns, axis=1)


def atom_terms(world: ConvWorld, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(Q_k, p_k) of (5.6) by brute force, (P, P) and (P,)."""
    columns = design(world, k)
    without = world.residual()[world.observed] + columns @ world.atoms[k].ravel()
    return world.noise_precision * columns.T @ columns, world.noise_precision * columns.T @ without


def gaussian_atom(q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(linear, precision) of a CFA atom."""
    return p, len(p) * np.eye(len(p)) + q


def mode_block(
    world: ConvWorld, k: int, t: int, q: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(linear, precision) of all u^(t) of atom k, in the order (row, term)."""
    modes = [mode[k] for mode in world.modes]
    size = modes[t].size
    columns = np.empty((len(p), size))
    for i in range(size):
        unit = np.zeros_like(modes[t])
        unit.reshape(-1)[i] = 1.0
        columns[:, i] = compose(world.weights[k], [*modes[:t], unit, *modes[t + 1 :]])
    prior = world.layout.atom_shape[t] * np.eye(size)
    return columns.T @ p, prior + columns.T @ q @ columns


def weight_block(world: ConvWorld, k: int, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(linear, precision) of the weights of atom k (5.9)."""
    modes = [mode[k] for mode in world.modes]
    columns = np.stack([compose(unit, modes) for unit in np.eye(world.rank)], axis=1)
    return columns.T @ p, np.diag(world.tau[k]) + columns.T @ q @ columns
