"""The estimators CFA and CKFA: what they learn, hand out and refuse."""

import numpy as np
import pytest

import kruskal
from kruskal.engines.progress import Silent
from kruskal.errors import InputError
from tests.addresses import watch_addresses
from tests.gibbs.conv_reference import synthesise

OPTIONS = {"n_atoms": 6, "atom_size": (4, 4), "sweeps": 40, "seed": 3}


def make_images(n_images=24, channels=1, scale=1.0, seed=0):
    """Sparse sums of three separable atoms at random places, with noise of 0.05 times ``scale``."""
    random = np.random.default_rng(seed)
    atoms = np.einsum("kx,ky,kc->kxyc", *(random.normal(size=(3, m)) for m in (4, 4, channels)))
    atoms /= np.sqrt((atoms**2).sum(axis=(1, 2, 3), keepdims=True)) / 2.0
    maps = random.normal(size=(n_images, 3, 11, 11)) * (random.random((n_images, 3, 11, 11)) < 0.02)
    clean = synthesise(maps, atoms[None])
    return scale * clean, scale * (clean + 0.05 * random.normal(size=clean.shape))


@pytest.fixture(scope="module")
def fitted():
    clean, images = make_images(channels=2)
    return clean, images, kruskal.CKFA(**OPTIONS, rank=1).fit(images)


def test_what_a_fit_leaves(fitted):
    _, images, model = fitted
    assert model.dictionary_.shape == (6, 4, 4, 2)
    assert model.n_parameters_ == 6 * 1 * (1 + 4 + 4 + 2)
    assert kruskal.CFA(6, (4, 4), sweeps=1).fit(images).n_parameters_ == 6 * 32
    assert model.usage_.shape == (6,) and model.ranks_.max() == 1
    assert {name: len(values) for name, values in model.trace_.items()} == {
        "noise_std": 40, "active_per_image": 40, "alpha": 40,
    }  # fmt: skip
    assert 0.03 < model.noise_std_ < 0.15


def test_reconstruction_is_nearer_to_the_truth_than_the_images(fitted):
    clean, images, model = fitted
    mean, std = model.reconstruct(images)
    assert mean.shape == std.shape == images.shape
    assert ((mean - clean) ** 2).mean() < 0.85 * ((images - clean) ** 2).mean()
    assert (std >= 0.0).all() and std.max() > 0.0


def test_maps_and_back(fitted):
    """The mean of the images is the image of the mean maps, as atoms are fixed."""
    _, images, model = fitted
    maps = model.transform(images)
    assert maps.shape == (24, 6, 11, 11) and maps.dtype == np.float32
    mean, _ = model.reconstruct(images)
    np.testing.assert_allclose(model.inverse_transform(maps), mean, atol=1e-4)
    sparse = model.transform(images, sparse=True)
    assert sparse.shape == (24, 6 * 121) and sparse.nnz < sparse.shape[0] * sparse.shape[1]
    np.testing.assert_allclose(sparse.toarray().reshape(maps.shape), maps, atol=1e-6)
    np.testing.assert_allclose(model.inverse_transform(sparse), mean, atol=1e-4)


def test_missing_entries_are_filled_in_and_neither_their_values_nor_units_matter():
    """Scaling is by a power of two, so other units change no draw."""
    clean, images = make_images()
    observed = np.random.default_rng(1).random(images.shape) < 0.7
    means = []
    for hidden, unit in ((np.nan, 1.0), (1e9, 256.0)):
        damaged = np.where(observed, unit * images, hidden)
        model = kruskal.CFA(**(OPTIONS | {"sweeps": 200}), noise_std=0.2 * unit)
        mean, std = model.fit_reconstruct(damaged[..., 0], observed[..., 0])
        assert mean.shape == std.shape == (24, 14, 14)
        means.append(mean / unit)
    np.testing.assert_array_equal(means[0], means[1])
    missing = ~observed[..., 0]
    wrong = ((means[0] - clean[..., 0]) ** 2)[missing].mean()
    assert wrong < 0.5 * (clean[..., 0] ** 2)[missing].mean()


@pytest.mark.parametrize("observed", [None, 0.6])
def test_results_do_not_depend_on_the_number_of_threads(observed):
    _, images = make_images()
    mask = None if observed is None else np.random.default_rng(2).random(images.shape) < observed
    options = OPTIONS | {"sweeps": 6, "pooling": (2, 3), "nonnegative": True}
    one, two = (kruskal.CKFA(**options, rank=2, threads=n).fit(images, observed=mask) for n in (1, 2))
    np.testing.assert_array_equal(one.dictionary_, two.dictionary_)
    np.testing.assert_array_equal(one.transform(images, mask), two.transform(images, mask))
    assert (one.transform(images, mask) >= 0.0).all()


def test_pooling_leaves_at_most_one_non_zero_per_block():
    _, images = make_images()
    model = kruskal.CFA(**(OPTIONS | {"sweeps": 8}), pooling=(3, 3)).fit(images)
    maps = model.transform(images, sweeps=5, burn_in=4)
    padded = np.zeros((*maps.shape[:2], 12, 12))
    padded[:, :, :11, :11] = maps != 0.0
    blocks = padded.reshape(*maps.shape[:2], 4, 3, 4, 3).sum(axis=(3, 5))
    assert blocks.max() == 1.0


def test_a_fixed_noise_is_kept():
    _, images = make_images(scale=256.0)
    model = kruskal.CFA(**(OPTIONS | {"sweeps": 3}), noise_std=20.0).fit(images)
    np.testing.assert_allclose(model.trace_["noise_std"], 20.0)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n_atoms": 0}, "n_atoms"),
        ({"n_atoms": 70000}, "n_atoms"),
        ({"atom_size": 8.5}, "atom_size"),
        ({"atom_size": (8, 0)}, "atom_size"),
        ({"pooling": (3,)}, "pooling"),
        ({"sweeps": 0}, "sweeps"),
        ({"burn_in": 100}, "burn_in"),
        ({"noise_std": 0.0}, "noise_std"),
        ({"noise_std": "much"}, "noise_std"),
        ({"usage_prior": (1.0, -1.0)}, "usage_prior"),
        ({"start": "zeros"}, "start"),
        ({"seed": -1}, "seed"),
        ({"threads": 0}, "threads"),
        ({"progress": 3}, "progress"),
        ({"nonnegative": "x"}, "nonnegative must be True or False, not 'x'"),
    ],
)
def test_bad_options_are_named(options, words):
    """By `fit`: the constructor only takes them, as scikit-learn expects of estimators."""
    model = kruskal.CFA(**options)
    with pytest.raises(InputError, match=words):
        model.fit(np.random.default_rng(0).random((3, 12, 12)))


def test_bad_images_are_named(fitted):
    _, images, model = fitted
    for bad, words in (
        (np.zeros((4, 4)), "X has shape"),
        (np.zeros((3, 5, 5), complex), "dtype"),
        (np.arange(27.0).reshape(3, 3, 3), "atom_size is 4x4, expected at most 3x3, the size of the images"),
        (np.full((2, 9, 9), np.nan), "nothing of X is observed: all 162 entries are missing"),
        (np.full((2, 9, 9), np.inf), "X is infinite at 162 observed entries"),
    ):
        with pytest.raises(InputError, match=words):
            kruskal.CFA(2, (4, 4), sweeps=1).fit(bad)
    with pytest.raises(InputError, match=r"^observed has shape \(2, 2\), expected \(24, 14, 14, 2\) or"):
        kruskal.CFA(2, (4, 4)).fit(images, observed=np.ones((2, 2)))
    with pytest.raises(
        InputError, match=r"^X has images of shape \(10, 14, 2\), expected \(14, 14, 2\) as in fit"
    ):
        model.transform(images[:, :10])
    with pytest.raises(InputError, match="burn_in"):
        model.transform(images, sweeps=5, burn_in=5)
    with pytest.raises(InputError, match="maps have shape"):
        model.inverse_transform(np.zeros((2, 3, 4)))
    maps = np.zeros((1, model.n_atoms, *model.model_.layout.map_shape))
    with pytest.raises(InputError, match="maps has 1 entries that are NaN or infinity"):
        model.inverse_transform(np.where(np.arange(maps.size).reshape(maps.shape) == 5, np.inf, maps))
    for use in (model.transform, model.reconstruct, kruskal.CFA(2, (4, 4)).partial_fit(images).partial_fit):
        with pytest.raises(InputError, match="X holds values too large beside those that the model"):
            use(1e39 * images)
    with pytest.raises(InputError, match="call fit first"):
        kruskal.CFA().transform(images)
    with pytest.raises(InputError, match="rank"):
        kruskal.CKFA(rank=0).fit(images)


@pytest.mark.parametrize("value", [0.0, 5.0, np.uint8(3)])
def test_constant_images_are_refused(value):
    constant = np.full((6, 10, 10), value)
    model = kruskal.CFA(2, (3, 3), sweeps=2)
    for fit in (model.fit, model.fit_reconstruct, model.partial_fit, kruskal.CKFA(2, (3, 3), sweeps=2).fit):
        with pytest.raises(InputError, match=f"^X is constant: all 600 observed entries are {value}, there"):
            fit(constant)
    seen = np.ones(constant.shape, bool)
    seen[0, 0, 0] = False
    constant[0, 0, 0] += 1  # what is missing has no influence
    with pytest.raises(InputError, match="X is constant: all 599 observed entries"):
        model.fit(constant, observed=seen)


def test_batches_teach_what_a_fit_learns():
    """Batch after batch the reconstruction of new images gets better, and nothing depends on the threads."""
    clean, images = make_images(n_images=60, channels=2)
    models = [kruskal.CKFA(**OPTIONS, rank=1, threads=threads) for threads in (1, 2)]
    errors = []
    for first in range(0, 48, 12):
        for model in models:
            model.partial_fit(images[first : first + 12], memory=0.9)
        mean, _ = models[0].reconstruct(images[48:])
        errors.append(((mean - clean[48:]) ** 2).mean())
    assert errors[-1] < errors[0]
    assert errors[-1] < ((images - clean)[48:] ** 2).mean()
    np.testing.assert_array_equal(models[0].dictionary_, models[1].dictionary_)
    assert models[0].memory_.n_images == pytest.approx(12 * (1 + 0.9 + 0.81 + 0.729))
    assert len(models[0].trace_["noise_std"]) == 4
    for memory in (1.5, -0.1, "all"):
        with pytest.raises(InputError, match="memory must be a number from 0 to 1, not"):
            models[0].partial_fit(images, memory=memory)
    assert models[0].partial_fit(images[:5], memory=0).memory_.n_images == 5
    with pytest.raises(InputError, match="missing"):
        models[0].partial_fit(np.where(images > 1.0, np.nan, images))


class CtrlC(Silent):
    """Interrupts a fit after a sweep."""

    def update(self, done, values):
        raise KeyboardInterrupt


def test_a_fit_that_fails_leaves_the_former_one():
    _, images = make_images(4, channels=2)
    model = kruskal.CKFA(4, (4, 4), rank=1, sweeps=2, threads=1).fit(images)
    wanted = model.reconstruct(images).mean
    with pytest.raises(InputError, match="atom_size"):
        model.fit(1000.0 * images[:, :3, :3])
    np.testing.assert_array_equal(model.reconstruct(images).mean, wanted)
    model.progress = CtrlC()
    for fit in (model.fit, model.fit_reconstruct):
        with pytest.raises(KeyboardInterrupt):
            fit(1000.0 * images[:, :9, :9])
        np.testing.assert_array_equal(model.reconstruct(images).mean, wanted)


@pytest.mark.parametrize("kind", [kruskal.CFA, kruskal.CKFA])
def test_parameters_by_name(kind):
    _, images = make_images(4)
    model = kind(4, (4, 4), sweeps=2, threads=1)
    options = model.get_params()
    assert (
        options["n_atoms"] == 4
        and options["burn_in"] is None
        and ("rank" in options) == (kind is kruskal.CKFA)
    )
    assert repr(model) == f"{kind.__name__}(atom_size=(4, 4), n_atoms=4, sweeps=2, threads=1)"
    model.set_params(n_atoms=3, usage_prior=(2.0, 1.0), seed=5)
    again = kind(**model.get_params()).fit(images)
    np.testing.assert_array_equal(model.fit(images).dictionary_, again.dictionary_)
    assert model.dictionary_.shape == (3, 4, 4, 1)
    assert model.set_params(n_atoms=5).transform(images).shape[1] == 3
    with pytest.raises(InputError, match="atoms is no parameter of"):
        model.set_params(atoms=3)
    with pytest.raises(InputError, match="sweeps must be a whole number"):
        model.set_params(sweeps=0).fit(images)


def test_a_second_argument_of_fit_is_no_mask():
    """scikit-learn passes labels there: they are ignored, a mask is refused."""
    images = np.random.default_rng(0).random((4, 8, 8))
    model = kruskal.CFA(2, (3, 3), sweeps=2)
    alone = model.fit(images).dictionary_
    np.testing.assert_array_equal(model.fit(images, np.arange(4)).dictionary_, alone)
    with pytest.raises(InputError, match="observed="):
        model.fit(images, images > 0.5)


def test_a_batch_after_a_fit_has_random_numbers_of_its_own():
    """Whatever the parameter says by then."""
    images = np.random.default_rng(0).random((4, 8, 8))
    long, short = (kruskal.CFA(2, (3, 3), sweeps=6).fit(images) for _ in range(2))
    short.set_params(sweeps=1)
    for model in (long, short):
        model.partial_fit(images, passes=2)
    np.testing.assert_array_equal(long.dictionary_, short.dictionary_)


@pytest.mark.parametrize("usage", ["shared", "by_image"])
def test_maps_of_images_have_random_numbers_of_their_own(usage, monkeypatch):
    """None of them was used in the fit that learned the atoms."""
    images = np.random.default_rng(0).random((6, 10, 10))
    used = watch_addresses(monkeypatch)
    model = kruskal.CKFA(3, (3, 3), rank=1, sweeps=6, usage=usage, seed=3, threads=1).fit(images)
    n_fit = len(used)
    model.transform(images, sweeps=6, burn_in=3)
    assert len(set(used)) == len(used) > n_fit > 0


def test_scikit_learn_clones_them():
    clone = pytest.importorskip("sklearn.base").clone
    model = kruskal.CKFA(4, (4, 4), rank=1, pooling=(2, 2), usage_prior=(2.0, 1.0))
    assert clone(model).get_params() == model.get_params()


def test_an_interrupted_batch_changes_nothing(monkeypatch):
    _, images = make_images(4)
    model = kruskal.CFA(4, (4, 4), sweeps=2, threads=1)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kruskal.estimators.image_learning.sweep_batch", interrupted)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(images)
    assert vars(model) == before


def test_a_rank_that_is_not_possible():
    with pytest.raises(
        InputError, match="rank 4 is not possible: no tensor of shape 3x3x1 has a rank above 3"
    ):
        kruskal.CKFA(2, (3, 3), rank=4, sweeps=1).fit(np.random.default_rng(0).random((3, 8, 8)))


@pytest.mark.parametrize("prior", [3, (1, 2, 3), (1,), "ab"])
def test_a_usage_prior_that_is_not_two_numbers(prior):
    with pytest.raises(InputError, match="usage_prior"):
        kruskal.CFA(usage_prior=prior).fit(np.zeros((2, 9, 9)))


def test_usage_that_is_not_a_word():
    with pytest.raises(InputError, match="usage must be one of shared, by_image"):
        kruskal.CFA(usage=np.array(["shared", "by_image"])).fit(np.zeros((2, 9, 9)))


def test_a_usage_prior_so_small_that_shares_vanish():
    images = np.random.default_rng(1).standard_normal((6, 11, 11))
    model = kruskal.CFA(32, (3, 3), pooling=(2, 2), sweeps=12, usage_prior=(0.1, 1)).fit(images)
    assert np.isfinite(model.dictionary_).all()


@pytest.mark.parametrize("size, same", [(3, (3, 3)), (np.int64(2), (2, 2))])
def test_one_number_is_both_sides(size, same):
    """Of atoms and of blocks."""
    images = np.random.default_rng(0).random((3, 8, 8))
    one = kruskal.CFA(n_atoms=2, atom_size=size, pooling=size, sweeps=2, seed=1).fit(images)
    two = kruskal.CFA(n_atoms=2, atom_size=same, pooling=same, sweeps=2, seed=1).fit(images)
    np.testing.assert_array_equal(one.dictionary_, two.dictionary_)
    for bad in (0, 2.5, "3", (3,), None):
        with pytest.raises(InputError, match="atom_size must be a whole number of at least 1 or a pair"):
            kruskal.CFA(n_atoms=2, atom_size=bad, sweeps=2).fit(images)


def test_a_batch_that_is_no_array_is_said_to_be_none():
    model = kruskal.CFA(2, (3, 3), sweeps=2)
    with pytest.raises(InputError, match=r"^X is None, expected real numbers"):
        model.partial_fit(None)
    with pytest.raises(InputError, match=r"^X is not an array: its rows differ in length"):
        model.partial_fit([[1], [2, 3]])
    images = np.random.default_rng(0).random((4, 8, 8))
    with pytest.raises(InputError, match="y has the shape of X and would be ignored: there is no mask"):
        model.partial_fit(images, images > 0.5)


@pytest.mark.parametrize("kind", [kruskal.CFA, kruskal.CKFA])
def test_images_come_back_in_the_shape_that_was_learned_from(kind):
    images = make_images(6)[1]
    model, stream = (kind(**OPTIONS | {"sweeps": 2}) for _ in range(2))
    for learn in (model.fit, model.fit_reconstruct):
        for given in (images[..., 0], images):
            learn(given)
            assert model.inverse_transform(model.transform(given)).shape == given.shape
    for given in (images[..., 0], images):  # the first batch settles it
        maps = stream.partial_fit(given).transform(given)
        assert stream.inverse_transform(maps).shape == images[..., 0].shape


def test_fit_and_transform_in_one():
    images = make_images(6)[1]
    images[0, :3] = np.nan
    seen = np.random.default_rng(0).random(images.shape) < 0.8
    model = kruskal.CKFA(**OPTIONS | {"sweeps": 2})
    found = model.fit_transform(images, observed=seen)
    np.testing.assert_array_equal(found, model.fit(images, observed=seen).transform(images, seen))
    np.testing.assert_array_equal(found, model.fit_transform(images, None, seen))


@pytest.mark.parametrize("n_atoms", [8, 32])
def test_ranks_do_not_collapse_in_long_chains(n_atoms):
    """With the paper's prior alpha grows to its end in these chains, and every atom is left with one term."""
    random = np.random.default_rng(0)
    atoms = np.einsum("krx,kry->kxy", random.normal(size=(3, 3, 5)), random.normal(size=(3, 3, 5)))[..., None]
    maps = random.normal(size=(20, 3, 20, 20)) * (random.random((20, 3, 20, 20)) < 0.01)
    images = synthesise(maps, atoms[None])
    images += 0.05 * images.std() * random.normal(size=images.shape)
    options = {"rank": 3, "sweeps": 150, "seed": 0, "threads": 1}
    model = kruskal.CKFA(n_atoms, (5, 5), **options).fit(images)
    assert model.trace_["alpha"].max() < 50.0
    assert (model.ranks_[np.argsort(-model.usage_)[:3]] == 3).all()


@pytest.mark.parametrize(
    "kept", [[True], np.ones(3, bool), np.array([0, 1]), np.zeros(6, bool), None, np.ones((6, 1), bool)]
)
def test_atoms_to_keep_are_checked(fitted, kept):
    _, images, model = fitted
    wanted = model.transform(images)
    with pytest.raises(InputError, match="kept must hold 6 flags"):
        model.keep_atoms(kept)
    np.testing.assert_array_equal(model.transform(images), wanted)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"rank": None}, "rank must be a whole number of at least 1, not None"),
        ({"alpha_prior": (0.0, 1.0)}, "alpha_prior must be two positive numbers"),
        ({"alpha_prior": 3.0}, "alpha_prior must be two positive numbers"),
    ],
)
def test_options_of_the_terms_are_checked(options, said):
    with pytest.raises(InputError, match=said):
        kruskal.CKFA(**OPTIONS, **options).fit(make_images(2)[1])


def test_a_mask_of_one_image_is_none_of_all():
    images = make_images(14)[1]  # as many as there are rows
    one = np.random.default_rng(0).random(images.shape[1:3]) < 0.7
    with pytest.raises(InputError, match=r"observed has shape \(14, 14\), expected \(14, 14, 14\) like X"):
        kruskal.CFA(**OPTIONS).fit(images[..., 0], observed=one)
    with pytest.raises(InputError, match=r"observed has shape \(14, 14\), expected \(14, 14, 14\) like X"):
        kruskal.BPFA(n_atoms=4, sweeps=2).fit(images[..., 0], observed=one)


def test_missing_pixels_are_predicted_with_known_atoms():
    """Maps that begin with the learned noise stay where the first sweep put them: hardly better than 0."""
    errors, held = [], []
    for seed in range(3):
        clean, images = make_images(40, seed=seed)
        model = kruskal.CFA(6, (4, 4), sweeps=150, seed=1).fit(images)
        seen = np.random.default_rng(5).random(images.shape) < 0.7
        found = model.reconstruct(images, seen)
        error = (found.mean - clean)[~seen]
        errors.append(np.sqrt(np.mean(error**2)) / clean.std())
        held.append(np.mean(np.abs(error) <= 2.0 * found.std[~seen] + 1e-9))
    assert np.mean(errors) < 0.5 and np.mean(held) > 0.85


def test_an_image_without_data_is_read(fitted):
    _, images, model = fitted
    nothing = np.full_like(images[:1], np.nan)
    assert model.transform(nothing).shape == (1, 6, *model.model_.layout.map_shape)
    with pytest.raises(InputError, match="nothing of X is observed"):
        kruskal.CFA(6, (4, 4), sweeps=2).fit(nothing)
