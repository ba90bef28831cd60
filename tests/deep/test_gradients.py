"""The gradient of the objective, against finite differences, and the products it is made of."""

import numpy as np
import pytest

from kruskal.deep import cells, columns
from kruskal.deep.inference import LARGEST, Draw, infer
from kruskal.deep.objective import Terms
from kruskal.deep.synthesis import synthesis_slope, synthesise
from kruskal.random import Stream

from .worlds import Threadless, make


def value(model, parameters, scales, batch, draw):
    """The objective itself, written down once more."""
    dense = model.dense(parameters, scales)
    upward = infer(model.network, dense, batch.images, batch.items, draw)
    f = (upward.features * batch.keep) @ dense.weights.T + dense.bias
    hinge = np.where(batch.signs != 0, np.maximum(0, 1 - batch.signs * f), 0).sum()
    image = synthesise(model.network, dense, upward.features, upward.places).image
    residual = ((batch.images - image) ** 2).sum()
    mean = (model.terms.hinge * hinge + model.terms.generative * residual) / len(batch.images)
    return mean + 0.5 * model.weight_decay * (dense.weights**2).sum()


@pytest.mark.parametrize("world", ["two", "three"])
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("terms", [Terms(0.7, 0.0), Terms(0.0, 0.4), Terms(0.7, 0.4)])
def test_every_parameter(world, rank, terms):
    model, start, batch = make(world, rank, terms=terms)
    sums, gradient = model.gradient(start.parameters, start.scales, batch, Threadless(), LARGEST)
    pieces = model.packing.views(gradient)
    random = np.random.default_rng(1)
    for name, piece in pieces.items():
        step = 1e-6
        for _ in range(3):
            direction = np.zeros_like(start.parameters)
            view = model.packing.views(direction)[name]
            view[...] = random.normal(size=view.shape)
            ends = [
                value(model, start.parameters + sign * step * direction, start.scales, batch, LARGEST)
                for sign in (1, -1)
            ]
            expected = (ends[0] - ends[1]) / (2 * step)
            assert np.vdot(direction, gradient) == pytest.approx(expected, rel=2e-5, abs=2e-7), name
        if name not in ("log_gain", "svm", "svm_bias"):
            assert np.abs(piece).max() > 0, name
    assert (sums.residual > 0) == (terms.generative > 0) and (sums.hinge > 0) == (terms.hinge > 0)


def test_drawn_cells_have_the_same_gradient():
    model, start, batch = make("three", 2, sharpness=3.0)
    draw = model.draw(5, Stream.DEEP_CELLS, 7)
    gradient = model.gradient(start.parameters, start.scales, batch, Threadless(), draw)[1]
    upward = infer(
        model.network, model.dense(start.parameters, start.scales), batch.images, batch.items, draw
    )
    largest = infer(
        model.network, model.dense(start.parameters, start.scales), batch.images, batch.items, LARGEST
    )
    assert (upward.places[0] != largest.places[0]).any()
    direction = np.random.default_rng(2).normal(size=gradient.shape)
    ends = [
        value(model, start.parameters + sign * 1e-7 * direction, start.scales, batch, draw)
        for sign in (1, -1)
    ]
    assert np.vdot(direction, gradient) == pytest.approx((ends[0] - ends[1]) / 2e-7, rel=1e-4)


@pytest.mark.parametrize("world", ["two", "three"])
def test_the_three_products_of_a_layer(world):
    """<place(v, D), h> = <v, correlate_at(h, D)> = <D, accumulate(v, h)>, all as their definition says."""
    model, start, batch = make(world, 0)
    random = np.random.default_rng(3)
    dense = model.dense(start.parameters, start.scales)
    upward = infer(model.network, dense, batch.images, batch.items, LARGEST)
    for layer, layout in enumerate(model.network.layers[:-1]):
        places, dictionary = upward.places[layer], dense.dictionaries[layer]
        values, h = random.normal(size=places.shape), random.normal(size=upward.images[layer].shape)
        maps = np.zeros((len(h), np.prod(layout.map_shape), len(dictionary)))
        np.put_along_axis(maps, places.astype(int), values, axis=1)
        rows = maps.reshape(-1, len(dictionary)) @ dictionary
        image = cells.place(values, places, dictionary, layout)
        assert image == pytest.approx(columns.images_of(rows, layout))
        product = np.vdot(image, h)
        assert np.vdot(values, cells.correlate_at(h, places, dictionary, layout)) == pytest.approx(product)
        assert np.vdot(dictionary, cells.accumulate(values, places, h, layout)) == pytest.approx(product)
        every = columns.correlate(h, dictionary, layout)
        chosen = np.take_along_axis(every, places.astype(int), axis=1)
        assert cells.correlate_at(h, places, dictionary, layout) == pytest.approx(chosen)
        patches = columns.columns_of(h, layout)
        assert every.reshape(len(patches), -1) == pytest.approx(patches @ dictionary.T)
        assert np.vdot(patches, rows) == pytest.approx(product)


def test_synthesis_and_its_slope_are_adjoint():
    model, start, batch = make("three", 2)
    dense = model.dense(start.parameters, start.scales)
    upward = infer(model.network, dense, batch.images, batch.items, LARGEST)
    random = np.random.default_rng(4)
    features, h = random.normal(size=upward.features.shape), random.normal(size=batch.images.shape)
    image = synthesise(model.network, dense, features, upward.places).image
    slope = synthesis_slope(model.network, dense, upward.places, h)
    assert np.vdot(image, h) == pytest.approx(np.vdot(features, slope))


def test_one_layer_needs_no_cells():
    from kruskal.deep.network import build_network
    from kruskal.models.dgdn import DeepModel

    network = build_network((6, 5, 2), (3,), ((3, 2),), (), n_classes=2)
    model = DeepModel(network=network, terms=Terms(1.0, 0.2))
    images = np.random.default_rng(0).random((4, 6, 10))
    start = model.start(images, 0)
    upward = infer(network, model.dense(*start), images, np.arange(4), LARGEST)
    assert upward.features.shape == (4, network.n_features) and upward.places == []


def test_cells_are_the_largest_of_their_blocks():
    layout = make("three", 0)[0].network.layers[0]
    maps = np.random.default_rng(5).normal(size=(2, np.prod(layout.map_shape), 3))
    places, values = cells.largest_cells(maps, layout)
    rows, n_columns = layout.map_shape
    for block in range(layout.n_blocks):
        i, j = divmod(block, layout.grid[1])
        members = [
            x * n_columns + y
            for x in range(i * 3, min(i * 3 + 3, rows))
            for y in range(j * 2, min(j * 2 + 2, n_columns))
        ]
        expected = maps[:, members].max(axis=1)
        assert (values[:, block] == expected).all()
        assert (np.take_along_axis(maps, places[:, [block]].astype(int), axis=1)[:, 0] == expected).all()


def test_drawn_cells_have_their_probabilities():
    """Frequencies of every cell of every block, partial ones included, for one map seen as many images."""
    layout = make("three", 0)[0].network.layers[0]
    n, tau = 20_000, 1.7
    one = np.random.default_rng(6).normal(size=(1, np.prod(layout.map_shape), 3))
    one[:, :2, 0] = -1.0  # cells that do not fit at all
    maps = np.repeat(one, n, axis=0)
    places, values = cells.drawn_cells(maps, layout, tau, np.arange(n), 3, Stream.DEEP_CELLS, 0, 1)
    assert (np.take_along_axis(maps, places.astype(int), axis=1) == values).all()
    weights = np.exp(0.5 * tau * np.maximum(one[0], 0) ** 2)
    rows, n_columns = layout.map_shape
    x, y = np.divmod(np.arange(rows * n_columns), n_columns)
    block_of = (x // 3) * layout.grid[1] + y // 2
    for block in range(layout.n_blocks):
        members = np.flatnonzero(block_of == block)
        for k in range(3):
            expected = weights[members, k] / weights[members, k].sum()
            found = (places[:, block, k][:, None] == members).mean(axis=0)
            assert found.sum() == pytest.approx(1.0)
            assert np.abs(found - expected).max() < 4.5 * np.sqrt(0.25 / n)


def test_cells_depend_on_image_number_layer_and_seed_only():
    layout = make("two", 0)[0].network.layers[0]
    maps = np.random.default_rng(7).normal(size=(6, np.prod(layout.map_shape), 3))
    address = {"seed": 3, "stream": Stream.DEEP_CELLS, "layer": 0, "number": 1}
    places = cells.drawn_cells(maps, layout, 1.0, np.arange(6), **address)[0]
    part = cells.drawn_cells(maps[4:], layout, 1.0, np.array([4, 5]), **address)[0]
    assert (places[4:] == part).all()
    for change in ({"seed": 4}, {"layer": 1}, {"number": 2}, {"stream": Stream.DEEP_TEST_CELLS}):
        assert (cells.drawn_cells(maps, layout, 1.0, np.arange(6), **(address | change))[0] != places).any()


def test_infinite_sharpness_is_a_draw_without_chance():
    model, start, batch = make("two", 1)
    dense = model.dense(start.parameters, start.scales)
    sharp = infer(model.network, dense, batch.images, batch.items, Draw(1e9, 1, Stream.DEEP_CELLS, 1))
    plain = infer(model.network, dense, batch.images, batch.items, LARGEST)
    assert sharp.features == pytest.approx(plain.features)
