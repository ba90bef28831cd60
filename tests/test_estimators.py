"""KFA and BPFA as estimators: scikit-learn's own checks, round trips, and what must have no influence."""

import doctest
import json
import pickle
import subprocess
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import kruskal
from kruskal.engines import coding
from kruskal.engines.dictionary import Dictionary
from kruskal.errors import InputError
from kruskal.estimators.items import read_items

DOCS = Path(__file__).parents[1] / "docs"
SHORT = {"n_atoms": 12, "sweeps": 12, "threads": 1, "seed": 3}


def made_up(n_items=200, shape=(5, 4), seed=0):
    """Items of four rank-one atoms, with little noise, in units of a hundred."""
    random = np.random.default_rng(seed)
    modes = [[random.standard_normal(size) for size in shape] for _ in range(4)]
    atoms = np.array([reduce(np.multiply.outer, vectors).ravel() for vectors in modes])
    weights = random.standard_normal((n_items, 4)) * (random.random((n_items, 4)) < 0.4)
    items = weights @ atoms + 0.03 * random.standard_normal((n_items, atoms.shape[1]))
    return 100.0 * items.reshape(n_items, *shape)


@pytest.fixture(scope="module")
def items():
    return made_up()


@pytest.fixture(scope="module")
def observed(items):
    return np.random.default_rng(1).random(items.shape) < 0.6


@pytest.fixture(scope="module")
def fitted(items, observed):
    return kruskal.KFA(rank=2, **SHORT).fit(items, observed=observed)


@pytest.mark.parametrize("name", ["KFA", "BPFA"])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_wrong(name):
    checks = pytest.importorskip("sklearn.utils.estimator_checks", reason="scikit-learn is not installed")
    estimator = getattr(kruskal, name)(sweeps=6, code_chains=2, code_sweeps=2, code_burn_in=1, threads=1)
    checks.check_estimator(estimator)


def test_a_pipeline_and_a_clone(items):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    model = clone(kruskal.BPFA(**SHORT))
    assert model.get_params() == kruskal.BPFA(**SHORT).get_params()
    codes = make_pipeline(model).fit(items).transform(items)
    np.testing.assert_array_equal(codes, kruskal.BPFA(**SHORT).fit_transform(items))


def test_scikit_learn_is_not_needed():
    code = (
        "import sys; sys.modules['sklearn'] = None; import numpy as np, kruskal\n"
        "x = np.random.default_rng(0).normal(size=(30, 4))\n"
        "print(kruskal.BPFA(n_atoms=3, sweeps=2, threads=1).fit(x).transform(x).shape)\n"
        "try: kruskal.KFA().transform(x)\n"
        "except kruskal.InputError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "(30, 3)\nthis KFA is not fitted yet: call fit first\n"


def test_importing_the_estimators_does_not_import_scikit_learn():
    code = "import sys, kruskal; kruskal.KFA; print('sklearn' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_what_is_learned(items, fitted):
    assert fitted.dictionary_.shape == fitted.mean_dictionary_.shape == (12, 5, 4)
    assert fitted.weights_.shape == (12, 2)
    assert [factor.shape for factor in fitted.factors_] == [(12, 5, 2), (12, 4, 2)]
    composed = np.einsum("kr,kir,kjr->kij", fitted.weights_, *fitted.factors_)
    np.testing.assert_allclose(composed, fitted.dictionary_, atol=1e-12)
    assert fitted.usage_.shape == fitted.ranks_.shape == (12,) and fitted.ranks_.max() <= 2
    assert len(fitted.trace_["noise_std"]) == 12 and fitted.item_shape_ == (5, 4)
    assert fitted.n_features_in_ == 20 and fitted.noise_std_ < 30.0 and fitted.code_std_ > 0.0
    used = fitted.usage_ > 0.05
    both = (fitted.dictionary_ * fitted.mean_dictionary_).sum(axis=(1, 2))[used]
    norms = [
        np.linalg.norm(atoms[used], axis=(1, 2)) for atoms in (fitted.dictionary_, fitted.mean_dictionary_)
    ]
    assert (both > 0.9 * norms[0] * norms[1]).all()  # atoms keep their places along the chain


@pytest.mark.parametrize("shape", [(7,), (5, 4), (3, 2, 4)])
@pytest.mark.parametrize("name", ["KFA", "BPFA"])
def test_items_of_any_order_come_back(name, shape):
    items = made_up(300, shape, seed=5)
    model = getattr(kruskal, name)(n_atoms=8, sweeps=40, threads=1, seed=0).fit(items[:200])
    back = model.inverse_transform(model.transform(items[200:]))
    assert back.shape == items[200:].shape
    assert np.sqrt(np.mean((back - items[200:]) ** 2)) < 0.2 * items.std()


def test_missing_entries_are_filled_in_and_their_std_is_honest():
    items = made_up(1500, (6, 5), seed=2)
    observed = np.random.default_rng(3).random(items.shape) < 0.5
    model = kruskal.KFA(n_atoms=8, rank=2, sweeps=40, threads=1, code_chains=8).fit(
        items[:900], observed=observed[:900]
    )
    mean, std = model.reconstruct(items[900:], observed[900:])
    missing = ~observed[900:]
    error = (mean - items[900:])[missing]
    assert np.sqrt(np.mean(error**2)) < 0.15 * items.std()
    total = np.sqrt(std**2 + model.noise_std_**2)[missing]
    within = np.mean(np.abs(error) <= 2.0 * total)
    assert 0.88 < within < 0.995
    np.testing.assert_allclose(mean, model.inverse_transform(model.transform(items[900:], observed[900:])))


def test_nan_a_mask_and_a_masked_array_say_the_same(items, observed, fitted):
    holes = np.where(observed, items, np.nan)
    masked = np.ma.array(items, mask=~observed)
    expected = fitted.transform(items, observed)
    np.testing.assert_array_equal(fitted.transform(holes), expected)
    np.testing.assert_array_equal(fitted.transform(masked), expected)
    for other in (holes, masked):
        again = kruskal.KFA(rank=2, **SHORT).fit(other)
        np.testing.assert_array_equal(again.dictionary_, fitted.dictionary_)


def test_values_at_missing_entries_have_no_influence(items, observed, fitted):
    junk = np.where(observed, items, 1e30 * np.random.default_rng(0).standard_normal(items.shape))
    again = kruskal.KFA(rank=2, **SHORT).fit(junk, observed=observed)
    np.testing.assert_array_equal(again.dictionary_, fitted.dictionary_)
    np.testing.assert_array_equal(fitted.transform(junk, observed), fitted.transform(items, observed))
    np.testing.assert_array_equal(fitted.reconstruct(junk, observed), fitted.reconstruct(items, observed))


def test_the_number_of_threads_and_of_chunks_has_no_influence(monkeypatch):
    items = made_up(2100)
    items[np.random.default_rng(1).random(items.shape) < 0.4] = np.nan
    models = [kruskal.KFA(n_atoms=12, sweeps=5, threads=threads).fit(items) for threads in (1, 2)]
    np.testing.assert_array_equal(models[0].dictionary_, models[1].dictionary_)
    codes = models[0].transform(items)
    np.testing.assert_array_equal(models[1].transform(items), codes)
    monkeypatch.setattr(coding, "CHUNK_ITEMS", 500)
    np.testing.assert_array_equal(models[1].transform(items), codes)
    np.testing.assert_array_equal(models[1].transform(items[777:780]), codes[777:780])


def test_chunks_are_all_that_is_read_of_a_lazy_array(items, fitted, monkeypatch):
    monkeypatch.setattr(coding, "CHUNK_ITEMS", 64)

    class Lazy:
        shape, dtype, largest = items.shape, items.dtype, 0

        def __len__(self):
            return len(items)

        def __getitem__(self, part):
            Lazy.largest = max(Lazy.largest, part.stop - part.start)
            return items[part]

    np.testing.assert_array_equal(fitted.transform(Lazy()), fitted.transform(items))
    assert Lazy.largest == 64


def test_sparse_codes(items, observed, fitted):
    dense = fitted.transform(items, observed)
    wants_sparse = kruskal.KFA(rank=2, **SHORT, sparse_output=True)._take(fitted.learned_)
    codes = wants_sparse.transform(items, observed)
    assert sparse.issparse(codes) and codes.format == "csr" and codes.has_sorted_indices
    np.testing.assert_array_equal(codes.toarray(), dense)
    np.testing.assert_allclose(fitted.inverse_transform(codes), fitted.inverse_transform(dense))


def test_an_item_without_observed_entries_has_no_codes(items, fitted):
    nothing = np.zeros(items.shape, bool)
    assert not fitted.transform(items, nothing).any()
    mean, std = fitted.reconstruct(items, nothing)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


def test_arrays_among_the_parameters_are_kept_as_numbers(items, tmp_path):
    model = kruskal.KFA(**SHORT, usage_prior=np.array([12.0, 5.0])).fit(items)
    model.save(tmp_path / "model.npz")
    assert kruskal.KFA.load(tmp_path / "model.npz").usage_prior == (12.0, 5.0)


@pytest.mark.parametrize("name", ["KFA", "BPFA"])
def test_save_and_load(name, items, observed, tmp_path):
    model = getattr(kruskal, name)(**SHORT | {"seed": np.int64(3)}, usage_prior=(12, 5.0))
    model.fit(items, observed=observed).save(tmp_path / "model.npz")
    again = getattr(kruskal, name).load(tmp_path / "model.npz")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(items, observed), model.transform(items, observed))
    assert set(vars(again)) == set(vars(model))
    other = {"KFA": kruskal.BPFA, "BPFA": kruskal.KFA}[name]
    with pytest.raises(
        InputError, match=f"holds a dictionary of {name.lower()}, which {other.__name__} cannot"
    ):
        other.load(tmp_path / "model.npz")


def test_a_dictionary_of_learn_becomes_an_estimator(tmp_path):
    x = np.add.outer(np.sin(np.arange(30.0)), np.cos(np.arange(20.0)))
    kruskal.learn(x, patch_shape=(5, 5), n_atoms=6, sweeps=4, threads=1).save(tmp_path / "d.npz")
    model = kruskal.KFA.load(tmp_path / "d.npz")
    patches = np.lib.stride_tricks.sliding_window_view(x, (5, 5)).reshape(-1, 5, 5)
    assert model.transform(patches).shape == (416, 6)


def test_parameters():
    model = kruskal.KFA(n_atoms=5)
    assert repr(model) == "KFA(n_atoms=5)"
    assert repr(pickle.loads(pickle.dumps(model))) == "KFA(n_atoms=5)"
    assert repr(kruskal.DeepCFA([50, 200], pooling=np.array([[2, 2]]))) == "DeepCFA(pooling=array([[2, 2]]))"
    assert repr(kruskal.DeepCFA(np.int64(5), atom_sizes=[[8, 8], (6, 6)])) == "DeepCFA(n_atoms=np.int64(5))"
    assert model.set_params(rank=3, seed=1) is model and (model.rank, model.seed) == (3, 1)
    with pytest.raises(InputError, match="wrong is no parameter of KFA, which has alpha, annealing, burn_in"):
        model.set_params(wrong=1)


@pytest.mark.parametrize(
    "params, sentence",
    [
        ({"n_atoms": 0}, "n_atoms must be a whole number of 1 to 65535, not 0"),
        ({"rank": 5}, "rank 5 is not possible: no tensor of shape 5x4 has a rank above 4"),
        ({"sweeps": 4, "burn_in": 4}, "burn_in must be smaller than sweeps: 4 was given with 4 sweeps"),
        ({"start": "middle"}, "start must be one of pca, random, not 'middle'"),
        ({"sparse_output": "no"}, "sparse_output must be True or False, not 'no'"),
        ({"alpha": True}, "alpha must be 'sample', 'map' or a number above 0 and at most 1e8, not True"),
        ({"sparsity": True}, "sparsity must be a number from 0 to 1e12, not True"),
        ({"alpha": -1}, "alpha must be 'sample', 'map' or a number above 0 and at most 1e8, not -1"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"threads": 0}, "threads must be a whole number of at least 1, not 0"),
        ({"tolerance": 2}, "tolerance must be a number from 0 to below 1, not 2"),
        ({"code_chains": 0}, "code_chains must be a whole number of at least 1, not 0"),
        ({"code_sweeps": 3, "code_burn_in": 3}, "code_burn_in must be smaller than code_sweeps: 3 with 3"),
        ({"usage_prior": (1, 1), "sparsity": 1.0}, "usage_prior says it all: leave sparsity out"),
    ],
)
def test_bad_parameters(items, params, sentence):
    with pytest.raises(InputError, match=sentence):
        kruskal.KFA(**SHORT | params).fit(items)


@pytest.mark.parametrize(
    "x, observed, sentence",
    [
        (np.zeros(5), None, r"X has shape \(5,\), expected \(items, entries\)"),
        (np.zeros((0, 5)), None, r"X holds 0 sample\(s\)"),
        (np.ones((4, 5)), None, "X is constant: all 20 observed entries are 1.0"),
        (np.full((4, 5), np.nan), None, "nothing of X is observed: all 20 entries are missing"),
        (np.full((4, 5), np.inf), None, r"^X is infinite at 20 observed entries"),
        (np.full((4, 5), "a"), None, "X has dtype <U1, expected real numbers"),
        (np.eye(4), np.ones((3, 4)), r"^observed has shape \(3, 4\), expected \(4, 4\) like X"),
        (np.eye(4), np.ones((4, 3)), r"^observed has shape \(4, 3\), expected \(4, 4\)"),
        (sparse.eye_array(4), None, "X is a sparse matrix, expected a dense array"),
        ([[1.0, 2.0], [3.0]], None, "X is not an array: its rows differ in length"),
        (np.array([[{}, 1.0]]), None, "X is not an array of numbers: .* must be a string or a real number"),
        (np.eye(4), True, "observed is a single number, expected an array"),
        (np.eye(4), np.full((4, 4), "a"), "observed has dtype <U1, expected real numbers"),
        (np.eye(4), np.full((4, 4), np.nan), "observed holds NaN, expected booleans"),
    ],
)
def test_bad_items(x, observed, sentence):
    with pytest.raises(InputError, match=sentence):
        kruskal.BPFA(**SHORT).fit(x, observed=observed)


def test_bad_new_items(items, fitted):
    with pytest.raises(InputError, match=r"X has items of shape \(4, 4\), expected \(5, 4\) as in fit"):
        fitted.transform(items[:, :4])
    with pytest.raises(InputError, match=r"X has items of shape \(20,\), expected \(5, 4\) as in fit"):
        fitted.reconstruct(items.reshape(200, 20))
    with pytest.raises(InputError, match="too large beside those that the model was fitted to: "):
        fitted.transform(1e60 * items)
    with pytest.raises(InputError, match=r"codes has shape \(2, 3\), expected \(items, 12\): one per atom"):
        fitted.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(InputError, match="codes has 12 entries that are NaN or infinity"):
        fitted.inverse_transform(np.full((1, 12), np.nan))
    with pytest.raises(InputError, match="codes has 1 masked entries, expected none"):
        fitted.inverse_transform(np.ma.array(np.zeros((1, 12)), mask=np.arange(12) == 3))
    with pytest.raises(InputError, match=r"X\[5:8\] is infinite at 60 observed entries"):  # of a chunk
        read_items(np.full(items.shape, np.inf), None, slice(5, 8), may_be_none=True)
    with pytest.raises(InputError, match="this BPFA is not fitted"):
        kruskal.BPFA().save("nowhere.npz")
    with pytest.raises(InputError, match="path must be the path of a file, not 3"):
        kruskal.KFA.load(3)
    with pytest.raises(InputError, match="path must be the path of a file, not None"):
        fitted.save(None)


def test_the_error_of_what_is_not_fitted_can_be_sent_to_another_process():
    exceptions = pytest.importorskip("sklearn.exceptions")
    with pytest.raises(InputError) as raised:
        kruskal.KFA().inverse_transform([[1.0]])
    again = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(again, InputError) and isinstance(again, exceptions.NotFittedError)
    assert str(again) == str(raised.value) == "this KFA is not fitted yet: call fit first"


def test_the_settings_in_the_file_are_plain(fitted):
    told = json.loads(json.dumps(fitted.learned_.settings))
    assert told["model"] == "kfa" and told["patch_shape"] == [5, 4] and told["estimator"]["rank"] == 2
    assert isinstance(fitted.learned_, Dictionary)


def test_the_page_about_estimators_is_true():
    failed, tried = doctest.testfile(str(DOCS / "estimators.md"), module_relative=False)
    assert tried > 20 and failed == 0


def test_the_examples_of_the_classes():
    from kruskal import KFA, learning

    globs = {"KFA": KFA.__doc__, "learn": learning.learn.__doc__}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for name, text in globs.items():
        runner.run(parser.get_doctest(text, {}, name, None, None))
    assert runner.summarize().failed == 0 and runner.tries > 8


@pytest.mark.parametrize("estimator", [kruskal.KFA, kruskal.BPFA])
@pytest.mark.parametrize("n_causes, noise", [(0, 1.0), (3, 1.0), (5, 0.2)])
def test_the_noise_of_tables_is_found(estimator, n_causes, noise):
    """Also that of pure noise: with more atoms than features it was taken for signal."""
    random = np.random.default_rng(1)
    causes = random.standard_normal((n_causes, 12))
    truth = (random.standard_normal((500, n_causes)) * (random.random((500, n_causes)) < 0.5)) @ causes
    x = truth + noise * random.standard_normal(truth.shape)
    model = estimator(seed=0, threads=1).fit(x[:400])
    assert model.dictionary_.shape == (12, 12)
    assert model.noise_std_ == pytest.approx(noise, rel=0.12)
    if n_causes:
        mean, std = model.reconstruct(x[400:])
        assert np.mean(np.abs(mean - truth[400:]) <= 2.0 * std) > 0.85
