"""The conditionals of the literal model against its joint density, and the steps of the top weights."""

import math

import numpy as np
import pytest

from kruskal.deep.codes import Given, code_gradient, code_step
from kruskal.deep.dense import Dense
from kruskal.deep.inference import LARGEST, infer
from kruskal.deep.objective import Part
from kruskal.deep.scales import draw_scales
from kruskal.deep.synthesis import synthesise
from kruskal.deep.unpooling import draw_unpooling
from kruskal.models.mcem import Codes, MonteCarloEM
from kruskal.random import Stream

from .worlds import make

GAMMA_EPS, GAMMA_S, COST = 3.0, 0.7, 0.6


def log_joint(model, dense, images, features, places, signs=None, scales=None):
    """log p(x | w, z) p(w) and the pseudo-likelihood of the labels with their scales, up to constants."""
    rest = images - synthesise(model.network, dense, features, places).image
    total = -0.5 * GAMMA_EPS * (rest**2).sum() - 0.5 * GAMMA_S * (features**2).sum()
    if signs is not None:
        f = features @ dense.weights.T + dense.bias
        terms = -((scales + COST * (1 - signs * f)) ** 2) / (2 * scales)
        total += terms[signs != 0].sum()
    return total


@pytest.fixture
def world():
    model, start, batch = make("two", 2)
    dense = model.dense(start.parameters, start.scales)
    upward = infer(model.network, dense, batch.images, batch.items, LARGEST)
    features = upward.features + 0.3 * np.random.default_rng(1).normal(size=upward.features.shape)
    return model, dense, batch, features, upward.places


def block_members(layout, block):
    """Places of the cells of a block."""
    i, j = divmod(block, layout.grid[1])
    return [
        x * layout.map_shape[1] + y
        for x in range(i * layout.pooling[0], min((i + 1) * layout.pooling[0], layout.map_shape[0]))
        for y in range(j * layout.pooling[1], min((j + 1) * layout.pooling[1], layout.map_shape[1]))
    ]


def test_cells_are_drawn_from_the_joint_density(world):
    """The frequencies of the first cell that is visited, which is drawn given all others as they are."""
    model, dense, batch, features, places = world
    layout, n = model.network.layers[0], 20_000
    features, images = 0.05 * features[:1], batch.images[:1]
    down = synthesise(model.network, dense, features, [places[0][:1]])
    many = np.repeat(places[0][:1], n, axis=0)
    draw_unpooling(
        np.repeat(images - down.image, n, axis=0), np.repeat(down.values[0], n, axis=0), many,
        dense.dictionaries[0], layout, GAMMA_EPS, np.arange(n), 5, 1,
    )  # fmt: skip
    members, logs = block_members(layout, 0), []
    for member in members:
        at = places[0][:1].copy()
        at[0, 0, 0] = member
        logs.append(log_joint(model, dense, images, features, [at]))
    expected = np.exp(np.array(logs) - max(logs))
    expected /= expected.sum()
    found = (many[:, 0, 0][:, None] == members).mean(axis=0)
    assert expected.max() < 0.9  # else it would say little
    assert np.abs(found - expected).max() < 4.5 * math.sqrt(0.25 / n)


def test_a_scan_of_the_cells_leaves_the_joint_density_as_it_is():
    """Long-run frequencies of all cells of a tiny model against enumeration: residuals follow the cells."""
    from kruskal.deep.network import build_network
    from kruskal.models.dgdn import DeepModel

    network = build_network((4, 4, 1), (2, 1), ((3, 3), (1, 1)), ((2, 2),))
    model = DeepModel(network=network)
    random = np.random.default_rng(2)
    n = 30_000
    image = random.normal(size=(1, 4, 4))
    dense = Dense.zeros(network, np.dtype(float))
    dense.dictionaries[0][...] = 0.4 * random.normal(size=(2, 9))
    dense.dictionaries[1][...] = 1.0
    features = np.array([[1.0]])
    values = synthesise(network, dense, features, [np.zeros((1, 1, 2), np.int32)]).values[0]
    cells = [0, 1, 2, 3]
    logs = np.array(
        [
            [log_joint(model, dense, image, features, [np.array([[[a, b]]], np.int32)]) for b in cells]
            for a in cells
        ]
    )
    expected = np.exp(logs - logs.max())
    expected /= expected.sum()
    places = random.integers(0, 4, (n, 1, 2)).astype(np.int32)
    made = np.concatenate([synthesise(network, dense, features, [places[i : i + 1]]).image for i in range(n)])
    rests = image - made
    for number in range(1, 9):
        draw_unpooling(
            rests, np.repeat(values, n, axis=0), places, dense.dictionaries[0], network.layers[0],
            GAMMA_EPS, np.arange(n), 4, number,
        )  # fmt: skip
    found = np.zeros((4, 4))
    np.add.at(found, (places[:, 0, 0], places[:, 0, 1]), 1.0 / n)
    assert np.abs(found - expected).max() < 4.5 * math.sqrt(0.25 / n)
    again = image - synthesise(network, dense, features, [places[:1]]).image
    assert rests[:1] == pytest.approx(again)


@pytest.mark.parametrize("labels", [False, True])
def test_the_slope_of_the_top_weights(world, labels):
    model, dense, batch, features, places = world
    random = np.random.default_rng(3)
    scales = random.gamma(2.0, size=batch.signs.shape)
    told = {"signs": batch.signs, "scales": scales} if labels else {}
    given = Given(
        batch.images, places, GAMMA_EPS, GAMMA_S, batch.signs if labels else None,
        1.0 / scales if labels else None, COST,
    )  # fmt: skip
    slope = code_gradient(model.network, dense, features, given)
    for _ in range(3):
        direction = random.normal(size=features.shape)
        ends = [
            log_joint(model, dense, batch.images, features + e * direction, places, **told)
            for e in (1e-5, -1e-5)
        ]
        assert np.vdot(slope, direction) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)
    moved = code_step(model.network, dense, features, given)

    def value(w):
        return log_joint(model, dense, batch.images, w, places, **told)

    assert value(moved) > value(features)
    # each image is at the maximum on its line
    for n in range(len(features)):
        for share in (0.99, 1.01):
            other = moved.copy()
            other[n] = features[n] + share * (moved[n] - features[n])
            assert value(other) <= value(moved) + 1e-9


def test_the_gradient_of_the_literal_model(world):
    """In the dictionaries and beta, against finite differences of the joint density."""
    model, dense, batch, features, places = world
    literal = MonteCarloEM(
        network=model.network, noise_precision=GAMMA_EPS, code_precision=GAMMA_S, cost=COST
    )
    scales = np.random.default_rng(4).gamma(2.0, size=batch.signs.shape)
    part = Part(batch.images, batch.items, batch.signs)
    _, slope = literal.gradient(dense, Codes(features, places[0]), part, 1.0 / scales)
    random = np.random.default_rng(5)
    for name in ("dictionaries", "weights", "bias"):
        arrays = getattr(dense, name)
        arrays = arrays if isinstance(arrays, tuple) else (arrays,)
        slopes = getattr(slope, name)
        slopes = slopes if isinstance(slopes, tuple) else (slopes,)
        for array, one in zip(arrays, slopes):
            direction, kept, ends = random.normal(size=array.shape), array.copy(), []
            for step in (1e-5, -1e-5):
                array[...] = kept + step * direction
                told = {"signs": batch.signs, "scales": scales}
                ends.append(log_joint(model, dense, batch.images, features, places, **told))
            array[...] = kept
            expected = -(ends[0] - ends[1]) / 2e-5
            assert np.vdot(one, direction) == pytest.approx(expected, rel=1e-5, abs=1e-6), name


def test_scales_have_their_conditional():
    """1 / lambda is inverse Gaussian: its mean, and that of lambda, 1/mean + 1."""
    gaps = np.repeat([[0.8, -2.0]], 40_000, axis=0)
    drawn = draw_scales(gaps, COST, np.arange(len(gaps)), 3, 1)
    inverse_mean = COST * np.abs(gaps[0])
    assert drawn.mean(axis=0) == pytest.approx(1.0 / inverse_mean, rel=0.05)
    assert (1.0 / drawn).mean(axis=0) == pytest.approx(inverse_mean + 1.0, rel=0.03)


def test_codes_without_label_do_not_depend_on_it(world):
    model, dense, batch, _, _ = world
    literal = MonteCarloEM(network=model.network, noise_precision=GAMMA_EPS)
    codes = literal.begin(dense, batch.images, batch.items)
    found = []
    for signs in (batch.signs, -batch.signs):
        part = Part(batch.images, batch.items, signs)
        found.append(literal.visit(dense, codes, part, 1, 1, Stream.DEEP_TEST_CELLS, False)[0].features)
    assert (found[0] == found[1]).all()


def test_completion_solves_its_linear_system():
    """Conjugate gradients against a direct solution of (6.18), with the synthesis as a matrix."""
    from kruskal.deep.completion import Beliefs, solve
    from kruskal.deep.pictures import fit_top_prior

    model, start, batch = make("two", 1)
    dense = model.dense(start.parameters, start.scales)
    upward = infer(model.network, dense, batch.images, batch.items, LARGEST)
    random = np.random.default_rng(6)
    size = model.network.n_features
    prior = fit_top_prior(random.normal(size=(40, size)) @ random.normal(size=(size, size)) / size)
    beliefs = Beliefs(prior, np.zeros(batch.images.shape[1:]), 5.0)
    observed = random.random(batch.images.shape) > 0.4
    found = solve(
        model.network, dense, batch.images, observed, upward.places, beliefs,
        np.zeros((len(batch.images), size)), 4 * size,
    )  # fmt: skip
    for n in range(len(batch.images)):
        places = [upward.places[0][[n] * size]]
        synthesis = synthesise(model.network, dense, np.eye(size), places).image.reshape(size, -1).T
        seen = synthesis[observed[n].ravel()]
        target = (batch.images[n].ravel() - synthesis @ prior.mean)[observed[n].ravel()]
        precision = np.eye(size) + 5.0 * prior.root.T @ seen.T @ seen @ prior.root
        expected = np.linalg.solve(precision, 5.0 * prior.root.T @ seen.T @ target)
        assert found[n] == pytest.approx(expected, abs=1e-6)


def gibbs_features(network, dense, images, places, gamma_eps, gamma_s, random):
    """Top weights drawn jointly given the cells: with the synthesis written as a matrix, N(Q^-1 h, Q^-1)."""
    drawn = []
    for n, image in enumerate(images):
        size = network.n_features
        synthesis = synthesise(network, dense, np.eye(size), [places[[n] * size]]).image.reshape(size, -1).T
        precision = gamma_s * np.eye(size) + gamma_eps * synthesis.T @ synthesis
        factor = np.linalg.cholesky(precision)
        mean = np.linalg.solve(precision, gamma_eps * synthesis.T @ image.ravel())
        drawn.append(mean + np.linalg.solve(factor.T, random.standard_normal(size)))
    return np.array(drawn)


def test_full_gibbs_and_the_literal_method_agree():
    """Given the dictionaries, little noise and no labels: the same mean image, near the true one."""
    from kruskal.deep.network import build_network

    network = build_network((7, 7, 1), (2, 2), ((3, 3), (2, 2)), ((2, 2),))
    random = np.random.default_rng(7)
    dense = Dense.zeros(network, np.dtype(float))
    for atoms in dense.dictionaries:
        atoms[...] = random.normal(size=atoms.shape)
    gamma_eps, gamma_s, n = 100.0, 1.0, 6
    truth = random.normal(size=(n, network.n_features))
    _, places, _, _ = infer(network, dense, random.random((n, 7, 7)), np.arange(n), LARGEST)
    clean = synthesise(network, dense, truth, places).image
    images = clean + gamma_eps**-0.5 * random.normal(size=clean.shape)
    part = Part(images, np.arange(n), np.zeros((n, 0)))
    literal = MonteCarloEM(
        network=network, noise_precision=gamma_eps, code_precision=gamma_s, rounds=1, code_steps=5
    )
    codes = gibbs = Codes(truth.copy(), places[0].copy())
    sums, kept = np.zeros((2, *images.shape)), 0
    for number in range(300):
        codes, _ = literal.visit(dense, codes, part, 1, number, Stream.DEEP_UNPOOLING, False)
        down = synthesise(network, dense, gibbs.features, [gibbs.places])
        cells = gibbs.places.copy()
        draw_unpooling(
            images - down.image, down.values[0], cells, dense.dictionaries[0], network.layers[0],
            gamma_eps, part.items, 2, number,
        )  # fmt: skip
        gibbs = Codes(gibbs_features(network, dense, images, cells, gamma_eps, gamma_s, random), cells)
        if number >= 50:
            kept += 1
            for place, one in enumerate((codes, gibbs)):
                sums[place] += synthesise(network, dense, one.features, [one.places]).image
    mean, mean_gibbs = sums / kept
    noise = ((images - clean) ** 2).mean()
    assert ((mean - mean_gibbs) ** 2).mean() < 0.1 * noise
    assert ((mean_gibbs - clean) ** 2).mean() < noise and ((mean - clean) ** 2).mean() < noise
