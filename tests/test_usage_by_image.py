"""CFA and CKFA with usage by image: what is learned of every image, other images, deep models, refusals."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import betabinom

import kruskal
from kruskal.engines.threads import ImageThreads
from kruskal.errors import InputError
from kruskal.gibbs.usage import UsagePrior
from kruskal.models import CFA
from kruskal.models.conv_usage import count_images

OPTIONS = {"n_atoms": 4, "atom_size": (3, 3), "sweeps": 30, "seed": 1, "usage": "by_image"}


def make_images(n_images=24, seed=0):
    """Even images have vertical strokes, odd ones horizontal; a little noise."""
    random = np.random.default_rng(seed)
    images = 0.05 * random.normal(size=(n_images, 12, 12))
    for n, image in enumerate(images):
        for _ in range(5):
            x, y = random.integers(0, 10, 2)
            image[(slice(x, x + 3), y) if n % 2 else (x, slice(y, y + 3))] += 1.0
    return images


@pytest.fixture(scope="module")
def fitted():
    images = make_images()
    return images, kruskal.CFA(**OPTIONS, nonnegative=True, threads=1).fit(images)


def test_images_that_show_other_things_use_other_atoms(fitted):
    images, model = fitted
    usage = expit(model.state_.image_log_odds)
    assert usage.shape == (24, 4) and model.state_.concentration > 0.0
    even, odd = usage[0::2].mean(axis=0), usage[1::2].mean(axis=0)
    assert even[even.argmax()] > 2.0 * odd[even.argmax()]
    assert odd[odd.argmax()] > 2.0 * even[odd.argmax()]
    shared = kruskal.CFA(**(OPTIONS | {"usage": "shared"}), threads=1).fit(images)
    assert shared.state_.image_log_odds.shape == (0, 4)


@pytest.mark.parametrize("n_images", [1, 7])
def test_maps_of_other_images(fitted, n_images):
    _, model = fitted
    images = make_images(n_images, seed=5)
    maps = model.transform(images)
    assert maps.shape == (n_images, 4, 10, 10) and np.isfinite(maps).all()
    mean, _ = model.reconstruct(images)
    assert ((mean - images) ** 2).mean() < 0.3 * (images**2).mean()
    assert len(model.state_.image_log_odds) == 24  # what was learned stays


@pytest.mark.parametrize("pooling", [(1, 1), (3, 3)])
def test_an_image_of_which_nothing_is_seen_has_the_usage_of_the_prior(pooling):
    """Given eta and h, pi is a beta, also with partial blocks; without pooling counts are beta-binomial."""
    model = CFA(
        image_shape=(9, 9, 1), atom_size=(2, 2), n_atoms=2, usage_prior=UsagePrior(2.0, 2.0), pooling=pooling,
        usage_by_image=True, noise_precision=1.0, scan=0,
    )  # fmt: skip
    n_images, eta, h = 1500, np.array([0.2, 0.5]), 3.0
    state = model.initial(np.ones((2, 4)))
    cells = model.layout.n_cells
    log_odds = np.tile((np.log(eta) - np.log1p(-eta) - np.log(cells))[:, None], (1, cells))
    state = model.for_images(state._replace(log_odds=log_odds, concentration=h), n_images)
    nothing = np.zeros((n_images, 9, 9, 1))
    with ImageThreads(nothing, np.zeros(nothing.shape, bool), 1) as engine:
        for number in range(1, 41):
            state = model.sweep_images(state, engine, 3, number)
        counts = count_images(engine, 2)
    pi = expit(state.image_log_odds)
    for k in range(2):
        expected = h * eta[k], h * (1.0 - eta[k])
        variance = eta[k] * (1.0 - eta[k]) / (h + 1.0)
        assert pi[:, k].mean() == pytest.approx(eta[k], abs=4.0 * np.sqrt(variance / n_images))
        assert pi[:, k].var() == pytest.approx(variance, rel=0.15)
        if pooling == (1, 1):
            exact = betabinom(64, *expected)
            assert counts[:, k].mean() == pytest.approx(exact.mean(), abs=4.0 * exact.std() / n_images**0.5)
            assert counts[:, k].std() == pytest.approx(exact.std(), rel=0.1)


@pytest.mark.parametrize("rank, pooling", [(0, None), (2, (2, 3))])
def test_results_do_not_depend_on_the_number_of_threads(rank, pooling):
    images = make_images()
    options = OPTIONS | {"sweeps": 8, "pooling": pooling}
    kind = kruskal.CKFA if rank else kruskal.CFA
    more = {"rank": rank} if rank else {}
    one, two = (kind(**options, **more, threads=threads).fit(images) for threads in (1, 2))
    np.testing.assert_array_equal(one.dictionary_, two.dictionary_)
    np.testing.assert_array_equal(one.transform(images), two.transform(images))


def test_one_image_and_missing_entries():
    images = make_images(2)
    observed = np.random.default_rng(0).random(images.shape) < 0.7
    alone = kruskal.CFA(**(OPTIONS | {"sweeps": 8})).fit(images[:1])
    assert alone.state_.image_log_odds.shape == (1, 4)
    mean, _ = kruskal.CFA(**OPTIONS).fit_reconstruct(images, observed)
    assert np.isfinite(mean).all()


def test_batches_cannot_learn_it(fitted):
    images, model = fitted
    with pytest.raises(InputError, match="usage is by_image, which partial_fit cannot learn"):
        model.partial_fit(images)
    with pytest.raises(InputError, match="usage must be one of shared, by_image, not 'each'"):
        kruskal.CFA(usage="each").fit(images)


def test_deep_models_and_their_files(tmp_path):
    images = make_images()
    options = {"sweeps": 8, "features": "gibbs", "usage": ("by_image", "shared"), "threads": 1}
    model = kruskal.DeepCKFA((4, 3), ((3, 3), (2, 2)), ((2, 2),), **options).fit(images)
    assert [layer.model_.usage_by_image for layer in model.layers_] == [True, False]
    features = model.transform(images)
    model.save(tmp_path / "deep.npz")
    again = kruskal.DeepCKFA.load(tmp_path / "deep.npz")
    assert again.layers_[0].usage == "by_image"
    np.testing.assert_array_equal(again.transform(images), features)
    with np.load(tmp_path / "deep.npz") as archive:
        assert not any("image_log_odds" in name for name in archive.files)
        older = {name: archive[name] for name in archive.files if "concentration" not in name}
    np.savez(tmp_path / "older.npz", **older)
    layer = kruskal.DeepCKFA.load(tmp_path / "older.npz").layers_[1]
    first = layer.model_.initial(layer.state_.dictionary)
    assert layer.usage == "shared" and layer.state_.concentration == first.concentration == 20.0
    with pytest.raises(InputError, match="usage must be one of"):
        kruskal.DeepCFA(usage="each").fit(images)
