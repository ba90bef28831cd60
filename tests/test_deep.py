"""Deep CFA and CKFA: sizes, pooling, pruning, features, files, and what is refused."""

import numpy as np
import pytest

import kruskal
from kruskal.errors import InputError
from kruskal.estimators.deep_layers import image_shapes, layer_options
from kruskal.estimators.picture_classifier import PictureClassifier
from kruskal.gibbs.conv_features import bottom_up, correlate, pool_maps, project, unit_atoms
from tests.addresses import watch_addresses

SMALL = {"n_atoms": (4, 5), "atom_sizes": ((4, 4), (2, 2)), "pooling": ((2, 3),), "sweeps": 12, "seed": 2}


def make_pictures(n_images=40, seed=0, size=12):
    """Two classes: short vertical or horizontal strokes at random places, a little noise."""
    random = np.random.default_rng(seed)
    images = 0.05 * random.random((n_images, size, size))
    labels = np.arange(n_images) % 2
    for image, label in zip(images, labels):
        for _ in range(4):
            x, y = random.integers(0, size - 4, 2)
            if label:
                image[x : x + 4, y] += 1.0
            else:
                image[x, y : y + 4] += 1.0
    return images, labels


@pytest.fixture(scope="module")
def fitted():
    images, labels = make_pictures()
    return images, labels, kruskal.DeepCKFA(**SMALL, threads=1).fit(images)


def options(**changes):
    given = {"rank": 1, "sweeps": 1, "noise_precision": 1.0, "nonnegative": True, "usage": "shared"}
    return layer_options(**given, alpha_prior=(3.0, 1.0), **changes)


def test_two_numbers_for_two_layers_are_one_for_each():
    """As they are for DGDN; a pair of numbers is the size of the atoms of any other number of layers."""
    both = options(n_atoms=(4, 5), atom_sizes=(5, 3), pooling=(3, 2))
    assert [layer.atom_size for layer in both] == [(5, 5), (3, 3)]
    assert [layer.pooling for layer in both] == [(3, 3), (2, 2)]
    for depth in (1, 3):
        found = options(n_atoms=depth * (4,), atom_sizes=(5, 3), pooling=1)
        assert {layer.atom_size for layer in found} == {(5, 3)}


def test_sizes_of_the_paper():
    mnist = options(n_atoms=(50, 200), atom_sizes=((8, 8), (6, 6)), pooling=((3, 3),))
    assert image_shapes((28, 28, 1), mnist) == [(7, 7), (2, 2)]
    caltech = options(n_atoms=(64, 125, 128), atom_sizes=((16, 16), (9, 9), (5, 5)), pooling=((4, 4), (2, 2)))
    assert image_shapes((128, 128, 1), caltech) == [(29, 29), (11, 11), (7, 7)]
    with pytest.raises(InputError, match="layer 2 are 6x6, expected at most 5x5"):
        image_shapes((21, 21, 1), mnist)


@pytest.mark.parametrize("pooling", [(1, 1), (2, 2), (3, 2), (4, 4), (9, 9)])
def test_pooling_keeps_the_sign_of_the_largest(pooling):
    maps = np.random.default_rng(1).normal(size=(2, 9, 7, 3)).astype(np.float32)
    maps[0, :4, :4] = -np.abs(maps[0, :4, :4])
    found = pool_maps(maps.copy(), pooling)
    rows, columns = -(-9 // pooling[0]), -(-7 // pooling[1])
    assert found.shape == (2, rows, columns, 3)
    for n, i, j, k in np.ndindex(found.shape):
        block = maps[n, i * pooling[0] : (i + 1) * pooling[0], j * pooling[1] : (j + 1) * pooling[1], k]
        assert found[n, i, j, k] == block.flat[np.argmax(np.abs(block))]


def test_one_pass_is_the_maximum_of_the_non_negative_correlations():
    random = np.random.default_rng(2)
    images, atoms = random.normal(size=(3, 8, 9, 2)), unit_atoms(random.normal(size=(4, 3, 2, 2)))
    np.testing.assert_allclose((atoms**2).sum(axis=(1, 2, 3)), 1.0)
    maps = correlate(images, atoms)
    assert maps.shape == (3, 6, 8, 4)
    for x, y in ((0, 0), (5, 7), (2, 3)):
        expected = np.einsum("nabc,kabc->nk", images[:, x : x + 3, y : y + 2], atoms)
        np.testing.assert_allclose(maps[:, x, y], expected)
    found = bottom_up(images, atoms, (4, 4), True)
    np.testing.assert_allclose(found[:, 1, 1], np.maximum(maps[:, 4:, 4:].max(axis=(1, 2)), 0.0))
    assert bottom_up(images, atoms, (4, 4), False).min() < 0.0 <= found.min()
    assert not unit_atoms(np.zeros((1, 2, 2, 1))).any()


def test_atoms_of_upper_layers_in_pixels():
    """An atom with a single entry is the atom below at the place of its block."""
    below = np.random.default_rng(3).normal(size=(3, 4, 5, 2))
    atoms = np.zeros((1, 2, 3, 3))
    atoms[0, 1, 2, 1] = 2.0
    made = project(atoms, below, (3, 2))
    assert made.shape == (1, 3 + 4, 4 + 5, 2)
    np.testing.assert_allclose(made[0, 3:, 4:], 2.0 * below[1])
    assert np.count_nonzero(made) == below[1].size


def test_what_a_fit_leaves(fitted):
    images, _, model = fitted
    first, second = model.n_atoms_
    assert model.atoms(1).shape == (first, 4, 4, 1) and model.atoms(2).shape == (second, 2, 2, first)
    assert model.n_parameters_ == first * (1 + 4 + 4 + 1) + second * (1 + 2 + 2 + first)
    assert model.n_features_ == [5 * 3 * first, 4 * 2 * second]
    assert model.pixel_atoms(2).shape == (second, 2 + 4, 3 + 4, 1)
    assert model.transform(images).shape == (40, model.n_features_[1])
    both = model.transform(images, layers=[1, 2])
    assert both.dtype == np.float32
    np.testing.assert_array_equal(both[:, : model.n_features_[0]], model.transform(images, 1))
    for layer in (1, 2):
        assert np.mean(model.transform(images, layer).astype(float) ** 2) == pytest.approx(1.0, rel=1e-4)


def test_free_atoms_count_all_their_entries():
    images, _ = make_pictures()
    model = kruskal.DeepCFA(**SMALL, threads=1).fit(images)
    first, second = model.n_atoms_
    assert model.n_parameters_ == 16 * first + 4 * first * second


def test_little_used_atoms_are_dropped_with_their_channels():
    images, _ = make_pictures()
    common = SMALL | {"n_atoms": (9, 5), "threads": 1}
    whole = kruskal.DeepCKFA(**common, prune=0.0).fit(images)
    pruned = kruskal.DeepCKFA(**common, prune=0.9).fit(images)
    usage = whole.layers_[0].usage_
    kept = usage > 0.9 * usage.mean()
    assert 1 <= kept.sum() < len(usage)
    np.testing.assert_array_equal(pruned.atoms(1), whole.atoms(1)[kept])
    assert pruned.atoms(2).shape[3] == kept.sum()


@pytest.mark.parametrize("features", ["bottom-up", "gibbs"])
def test_threads_and_files_change_nothing(features, tmp_path):
    images, _ = make_pictures(20)
    common = SMALL | {"sweeps": 4, "features": features, "map_sweeps": (4, 2), "n_training": 15}
    found = []
    for threads in (1, 2):
        model = kruskal.DeepCKFA(**common, threads=threads).fit(images)
        found.append(model.transform(images, [1, 2]))
    np.testing.assert_array_equal(*found)
    model.save(tmp_path / "deep.npz")
    again = kruskal.DeepCKFA.load(tmp_path / "deep.npz")
    assert isinstance(again, kruskal.DeepCKFA) and again.n_parameters_ == model.n_parameters_
    np.testing.assert_array_equal(again.transform(images, [1, 2]), found[1])
    np.testing.assert_array_equal(again.pixel_atoms(2), model.pixel_atoms(2))


def test_features_tell_classes_apart(fitted):
    images, labels, model = fitted
    others, wanted = make_pictures(60, seed=5)
    svm = kruskal.BayesianSVM(method="em", calibration_folds=0, threads=1)
    assert svm.fit(model.transform(images), labels).score(model.transform(others), wanted) >= 0.9


def test_batches_are_seams_nobody_sees(fitted, monkeypatch):
    images, _, model = fitted
    whole = model.transform(images)
    monkeypatch.setattr("kruskal.estimators.deep_layers._MOST_IMAGES", 7)
    np.testing.assert_allclose(model.transform(images), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"atom_sizes": ((4, 4),)}, "atom_sizes has 1 entries, expected one for each of 2 layers"),
        ({"atom_sizes": ((4, 4), (3, 3, 3))}, "atom_sizes must be a whole number of at least 1 or a pair"),
        ({"n_atoms": ()}, "n_atoms is empty, expected one entry for each layer"),
        ({"atom_sizes": ()}, "atom_sizes has 0 entries, expected one for each of 2 layers"),
        ({"pooling": ((2, 2), (2, 2), (2, 2))}, "pooling has 3 entries"),
        ({"atom_sizes": ((13, 4), (2, 2))}, "layer 1 are 13x4, expected at most 12x12"),
        ({"features": "sampled"}, "features must be one of bottom-up, gibbs"),
        ({"nonnegative": (True, "no")}, "nonnegative must be True or False, not 'no'"),
        ({"progress": 3}, "progress must be None or have the methods start, note, update and stop"),
        ({"prune": 1.0}, "prune must be a number from 0 to below 1"),
        ({"rank": 0}, "rank must be a whole number"),
        ({"n_atoms": "many"}, "n_atoms must be a whole number of 1 to 65535, not 'many'"),
        ({"noise_precision": -1}, "noise_precision must be a finite number above 0"),
        ({"map_sweeps": (3, 3)}, "map_sweeps must be a whole number of 0 to 2"),
        ({"n_training": 0}, "n_training must be a whole number"),
    ],
)
def test_bad_options(changes, sentence):
    images, _ = make_pictures(6)
    with pytest.raises(InputError, match=sentence):
        kruskal.DeepCKFA(**(SMALL | {"sweeps": 2, "threads": 1} | changes)).fit(images)


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_units_do_not_matter(fitted, unit):
    images, _, model = fitted
    moved = kruskal.DeepCKFA(**SMALL, threads=1).fit(unit * images)
    np.testing.assert_allclose(moved.scales_[0] / unit, model.scales_[0], rtol=1e-6)
    assert moved.n_atoms_ == model.n_atoms_ and np.isfinite(moved.transform(unit * images)).all()
    with pytest.raises(InputError, match="X holds values too large beside those that the model"):
        kruskal.DeepCKFA(**SMALL, threads=1).fit(1e-25 * images).transform(1e10 * images)


def test_bad_images_and_files(fitted, tmp_path):
    images, _, model = fitted
    broken = images.copy()
    broken[0, 0, 0] = np.nan
    with pytest.raises(InputError, match="X has 1 missing entries"):
        model.transform(broken)
    with pytest.raises(InputError, match=r"images of shape \(11, 12, 1\), expected \(12, 12, 1\)"):
        model.transform(images[:, 1:])
    with pytest.raises(InputError, match="layers must be a whole number of 1 to 2"):
        model.transform(images, 3)
    with pytest.raises(InputError, match="not fitted"):
        kruskal.DeepCKFA().transform(images)
    for value in (0.0, 5.0):
        with pytest.raises(InputError, match=f"^X is constant: all 432 observed entries are {value}"):
            kruskal.DeepCKFA(**SMALL).fit(np.full((3, 12, 12), value))
    some = np.concatenate([np.zeros((40, 12, 12)), np.ones((1, 12, 12))])
    with pytest.raises(InputError, match=r"^the choice of n_training \(1\) images of X is constant: all 144"):
        kruskal.DeepCFA(**SMALL, n_training=1).fit(some)
    with pytest.raises(InputError, match="y has the shape of X and would be ignored: there is no mask"):
        kruskal.DeepCKFA(**SMALL).fit(images, images > 0.5)
    for use in (kruskal.DeepCKFA(**SMALL).fit, model.transform):
        with pytest.raises(InputError, match=r"X holds values as large as .*, expected numbers below 3e\+38"):
            use(1e39 * (1.0 + images))
    with pytest.raises(InputError, match="X holds no value larger than"):
        kruskal.DeepCKFA(**SMALL).fit(1e-40 * images)
    for atoms in (model.atoms, model.pixel_atoms):
        with pytest.raises(InputError, match="layer must be a whole number of 1 to 2, not 3"):
            atoms(3)
    path = tmp_path / "deep.npz"
    with pytest.raises(InputError, match=r"must end in \.npz"):
        model.save(tmp_path / "deep.txt")
    with pytest.raises(InputError, match="does not exist"):
        kruskal.DeepCKFA.load(path)
    model.save(path)
    with pytest.raises(InputError, match=r"deep\.npz holds a DeepCKFA, which DeepCFA cannot use"):
        kruskal.DeepCFA.load(path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **(arrays | {"version": 99}))
    with pytest.raises(InputError, match="has version 99; this package reads 1"):
        kruskal.DeepCKFA.load(path)
    np.savez(path, **(arrays | {"layer2_dictionary": arrays["layer2_dictionary"][:, 1:]}))
    with pytest.raises(InputError, match="damaged: dictionary has shape"):
        kruskal.DeepCKFA.load(path)
    path.write_bytes(b"PK not a zip")
    with pytest.raises(InputError, match="no file of a kruskal deep model"):
        kruskal.DeepCKFA.load(path)


@pytest.mark.parametrize("features", ["bottom-up", "gibbs"])
def test_every_layer_has_random_numbers_of_its_own(features, monkeypatch):
    """Nor are maps read with those that atoms were learned with; the first layer has those of a CKFA."""
    images, _ = make_pictures(16)
    monkeypatch.setattr("kruskal.estimators.deep_layers._MOST_IMAGES", 8)  # two batches
    used = watch_addresses(monkeypatch)
    sizes = {"n_atoms": (3, 4, 3), "atom_sizes": ((4, 4), (2, 2), (2, 2)), "pooling": 1, "threads": 1}
    sizes |= {"sweeps": 4, "map_sweeps": (4, 2), "seed": 2}
    model = kruskal.DeepCKFA(**sizes, features=features).fit(images)
    assert len(set(used)) == len(used) > 0
    assert model.layers_[0].seed == 2 and len({layer.seed for layer in model.layers_}) == 3


def test_layers_as_an_array(fitted):
    images, _, model = fitted
    wanted = model.transform(images, [1, 2])
    np.testing.assert_array_equal(model.transform(images, layers=np.array([1, 2])), wanted)
    np.testing.assert_array_equal(model.transform(images, np.int64(2)), model.transform(images))
    for layers in (np.array([3]), np.array([1.5]), np.array([[1, 2]]), np.array([], int)):
        with pytest.raises(InputError, match=r"^layers"):
            model.transform(images, layers)


def test_a_classifier_whose_fit_fails_is_the_former_one():
    images, labels = make_pictures(12)
    pictures = images[..., None]
    deep = kruskal.DeepCKFA(**(SMALL | {"sweeps": 2}), threads=1)
    model = PictureClassifier(deep, kruskal.BayesianSVM(calibration_folds=0, threads=1)).fit(pictures, labels)
    wanted = model.decide(pictures)
    with pytest.raises(InputError, match="y has one class only"):
        model.fit(pictures[:, ::-1], np.zeros(12, int))
    np.testing.assert_array_equal(model.decide(pictures), wanted)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"n_atoms": (3, 70_000)}, "n_atoms must be a whole number of 1 to 65535, not 70000"),
        (
            {"atom_sizes": ((3, 3), (1, 1)), "rank": (3, 2)},
            "rank 2 of layer 2 is not possible: no tensor of shape 1x1x4 has a rank above 1",
        ),
    ],
)
def test_no_layer_is_learned_if_a_later_one_cannot_be(changes, sentence, monkeypatch):
    monkeypatch.setattr("kruskal.estimators.deep.learn_layer", None)
    with pytest.raises(InputError, match=sentence):
        kruskal.DeepCKFA(**SMALL | changes).fit(make_pictures()[0])


def test_fit_transform_is_fit_and_then_transform(fitted):
    images, _, model = fitted
    assert (kruskal.DeepCKFA(**SMALL, threads=1).fit_transform(images) == model.transform(images)).all()
