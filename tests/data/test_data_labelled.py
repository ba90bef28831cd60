"""Labelled pictures from folders, npz and idx files; splits by class."""

import gzip
import struct
from functools import partial

import numpy as np
import pytest
from PIL import Image

from kruskal.data import datasets, labelled_pictures, split_by_class
from kruskal.data.unlabelled import named_pictures
from kruskal.errors import InputError

GREY = np.arange(48, dtype=np.uint8).reshape(6, 8)
COLOUR = np.stack([GREY, 2 * GREY, 255 - GREY], axis=-1)


def folder(root, pictures):
    """Write {"class/name.png": array} below ``root``."""
    for name, values in pictures.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values).save(path)
    return root


def test_folder(tmp_path):
    folder(tmp_path, {"cat/b.png": GREY, "cat/a.bmp": GREY + 1, "ant/z.png": GREY + 2, "ant/y.tif": GREY + 3})
    (tmp_path / "cat" / "notes.txt").write_text("x")
    (tmp_path / "readme.txt").write_text("x")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "BACKGROUND_Google").mkdir()
    found = labelled_pictures(tmp_path)
    assert found.classes == ("ant", "cat")
    assert found.y.tolist() == [0, 0, 1, 1] and found.y.dtype == np.int64
    assert [path.name for path in found.paths] == ["y.tif", "z.png", "a.bmp", "b.png"]
    assert found.X.shape == (4, 6, 8, 1) and found.X.dtype == np.float32
    np.testing.assert_allclose(found.X[:, :, :, 0], [(GREY + k) / 255.0 for k in (3, 2, 1, 0)], rtol=1e-6)


def test_grey_and_colour(tmp_path):
    folder(tmp_path, {"a/1.png": GREY, "b/1.png": COLOUR})
    mixed = labelled_pictures(tmp_path)
    assert mixed.X.shape == (2, 6, 8, 3)
    np.testing.assert_allclose(mixed.X[0], np.repeat(GREY[..., None], 3, axis=2) / 255.0, rtol=1e-6)
    np.testing.assert_allclose(mixed.X[1], COLOUR / 255.0, rtol=1e-6)
    grey = labelled_pictures(tmp_path, colour="grey")
    assert grey.X.shape == (2, 6, 8, 1)
    np.testing.assert_allclose(grey.X[1, ..., 0], COLOUR @ [0.299, 0.587, 0.114] / 255.0, rtol=1e-5)
    only_grey = folder(tmp_path / "grey", {"a/1.png": GREY, "b/1.png": GREY})
    assert labelled_pictures(only_grey, colour="colour").X.shape == (2, 6, 8, 3)


def test_different_sizes_and_depths(tmp_path):
    folder(tmp_path, {"a/1.png": GREY, "b/1.png": np.full((12, 10), 65535, dtype=np.uint16)})
    with pytest.raises(InputError, match=r"1.png' has 12 x 10 pixels and .*1.png' 6 x 8: give size,"):
        labelled_pictures(tmp_path)
    found = labelled_pictures(tmp_path, size=(3, 4))
    assert found.X.shape == (2, 3, 4, 1)
    np.testing.assert_allclose(
        found.X[0, ..., 0], GREY.reshape(3, 2, 4, 2).mean(axis=(1, 3)) / 255.0, atol=1e-6
    )
    np.testing.assert_allclose(found.X[1], 1.0)


def test_whole_numbers_are_divided_by_the_largest_of_their_type(tmp_path):
    for dtype in (np.uint8, np.int8, np.int16, np.uint16, np.int64):
        largest = np.iinfo(dtype).max
        X = np.array([[[0, largest], [largest // 2, -largest if dtype == np.int16 else 1]]], dtype=dtype)
        np.savez(tmp_path / "a.npz", X=np.concatenate([X, X]), y=[0, 1])
        found = labelled_pictures(tmp_path / "a.npz")
        np.testing.assert_allclose(found.X[1, ..., 0], X[0] / largest, rtol=1e-5)
        assert found.given.types == (np.dtype(dtype).name,)
    assert found.given.sizes == {(2, 2)} and found.given.channels == {1}
    assert labelled_pictures(folder(tmp_path / "black", {"a/1.png": GREY, "b/1.png": 0 * GREY})).X.max() > 0


def test_floats_beside_whole_numbers(tmp_path):
    folder(tmp_path, {"a/1.png": GREY, "b/1.tif": (GREY / 47).astype(np.float32)})
    found = labelled_pictures(tmp_path)
    assert found.X[1].max() == 1.0 and found.given.types == ("floats", "uint8")
    folder(tmp_path, {"b/2.tif": GREY.astype(np.float32)})
    (tmp_path / "plain").mkdir()
    for name in ("a/1.png", "b/2.tif"):
        (tmp_path / "plain" / name[2:]).write_bytes((tmp_path / name).read_bytes())
    message = (
        "has pictures of floats up to 47 beside others of uint8, which are divided by .*, expected floats"
    )
    with pytest.raises(InputError, match=message):
        labelled_pictures(tmp_path, skip=("plain",))
    with pytest.raises(InputError, match=message):
        named_pictures(tmp_path / "plain", size=(6, 8), colour="grey")
    folder(tmp_path, {"b/2.tif": np.where(GREY == 5, np.nan, 1).astype(np.float32)})
    with pytest.raises(InputError, match=r"b/2\.tif' has entries that are NaN or infinite"):
        labelled_pictures(tmp_path, skip=("plain",))


def test_broken_and_missing_pictures(tmp_path):
    folder(tmp_path, {"a/1.png": GREY, "b/1.png": GREY})
    whole = (tmp_path / "b" / "1.png").read_bytes()
    for content in (b"", b"not a picture", whole[: len(whole) // 2]):
        (tmp_path / "b" / "2.png").write_bytes(content)
        for options in ({}, {"size": 4, "colour": "grey"}):
            with pytest.raises(InputError, match=r"cannot read .*b/2\.png'"):
                labelled_pictures(tmp_path, **options)
    (tmp_path / "b" / "2.png").unlink()
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match=r"c' holds no pictures, expected files \.png"):
        labelled_pictures(tmp_path)
    with pytest.raises(InputError, match="'b'"):
        labelled_pictures(tmp_path, skip=("a", "c"))
    with pytest.raises(InputError, match="one class only"):
        labelled_pictures(tmp_path, skip=("a", "c"))
    with pytest.raises(InputError, match="has no subfolders, expected one per class"):
        labelled_pictures(tmp_path / "c")
    with pytest.raises(InputError, match="no such file or folder"):
        labelled_pictures(tmp_path / "none")
    with pytest.raises(InputError, match="expected a folder with one subfolder per class"):
        labelled_pictures(tmp_path / "a" / "1.png")


def test_npz(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, size=(5, 6, 4), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["b", "a", "b", "c", "a"]))
    found = labelled_pictures(tmp_path / "a.npz")
    assert found.classes == ("a", "b", "c") and found.y.tolist() == [1, 0, 1, 2, 0]
    np.testing.assert_allclose(found.X, X[..., None] / 255.0, rtol=1e-6)
    assert labelled_pictures(tmp_path / "a.npz", size=2, colour="colour").X.shape == (5, 2, 2, 3)
    floats = np.random.default_rng(0).normal(size=(3, 4, 4, 3))
    np.savez(tmp_path / "b.npz", X=floats, y=np.array([3, 1, 3]))
    found = labelled_pictures(tmp_path / "b.npz", colour="grey")
    assert found.classes == ("1", "3") and found.X.shape == (3, 4, 4, 1)
    np.testing.assert_allclose(found.X[..., 0], floats @ [0.299, 0.587, 0.114], rtol=1e-4, atol=1e-6)


BAD_NPZ = {
    "has no entry 'y'": {"X": GREY[None]},
    r"y has shape \(2,\), expected \(1,\)": {"X": GREY[None], "y": [1, 2]},
    r"X is uint8 of shape \(6, 8\)": {"X": GREY, "y": [1]},
    "one class only": {"X": GREY[None], "y": [1]},
    "y is float64, expected classes": {"X": GREY[None], "y": [0.5]},
    "NaN or infinite": {"X": np.full((2, 3, 3), np.nan), "y": [0, 1]},
    "not an npz file of plain arrays": {"X": np.array([{}]), "y": [0]},
    r"X holds values as large as 1e\+39, expected numbers below": {
        "X": np.full((2, 3, 3), 1e39),
        "y": [0, 1],
    },
    "y is -1 for 2 of 3 pictures, which means no label elsewhere": {
        "X": np.stack(3 * [GREY]),
        "y": [-1, 0, -1],
    },
    r"numbers up to 47 of type int64, by whose.*smaller type such as uint8": {
        "X": np.stack(2 * [GREY]).astype(np.int64),
        "y": [0, 1],
    },
}


@pytest.mark.parametrize("message", BAD_NPZ)
def test_bad_npz(tmp_path, message):
    path = tmp_path / "a.npz"
    np.savez(path, **BAD_NPZ[message])
    with pytest.raises(InputError, match=message):
        labelled_pictures(path)


def idx(values):
    head = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return head + values.tobytes()


def test_idx(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, size=(4, 5, 5), dtype=np.uint8)
    labels = np.array([7, 3, 7, 0], dtype=np.uint8)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(labels))
    for path in (tmp_path, tmp_path / "train-images-idx3-ubyte.gz"):
        found = labelled_pictures(path)
        assert found.classes == ("0", "3", "7") and found.y.tolist() == [2, 1, 2, 0]
        np.testing.assert_allclose(found.X[..., 0], images / 255.0, rtol=1e-6)
    with pytest.raises(InputError, match="no 't10k-images-idx3-ubyte'"):
        labelled_pictures(tmp_path, part="test")
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(images[:3]))
    with pytest.raises(InputError, match=r"t10k-labels-idx1-ubyte' \(or with \.gz\) is missing"):
        labelled_pictures(tmp_path, part="test")
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(labels))
    with pytest.raises(InputError, match=r"y has shape \(4,\), expected \(3,\)"):
        labelled_pictures(tmp_path, part="test")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"size": 0}, "size must be a whole number of 1 to 16384, not 0"),
        ({"size": (8, 10**9)}, "size must be a whole number of 1 to 16384, not 1000000000"),
        ({"size": (3, 4, 5)}, "size must be a whole number or .rows, columns."),
        ({"colour": "red"}, "colour must be one of grey, colour, not 'red'"),
        ({"part": "all"}, "part must be one of train, test, not 'all'"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        labelled_pictures(tmp_path, **options)


def test_mnist():
    try:
        path = datasets.locate("mnist")
    except InputError as error:
        pytest.skip(str(error))
    found = labelled_pictures(path, part="test")
    assert found.X.shape == (10_000, 28, 28, 1)
    assert found.classes == tuple("0123456789") and np.bincount(found.y)[0] == 980


# ------------------------------------------------------------------------------------------------ splits


def test_split_by_class():
    y = np.repeat(["a", "b", "c"], [40, 70, 300])
    train, test = split_by_class(y, 30, seed=4)
    assert np.unique(y[train], return_counts=True)[1].tolist() == [30, 30, 30]
    assert np.unique(y[test], return_counts=True)[1].tolist() == [10, 40, 50]
    assert not set(train) & set(test)
    again = split_by_class(y, 30, seed=4)
    np.testing.assert_array_equal(train, again[0])
    np.testing.assert_array_equal(test, again[1])
    assert not np.array_equal(train, split_by_class(y, 30, seed=5)[0])
    assert len(split_by_class(y, 30, n_test=None)[1]) == 410 - 90


def test_every_item_is_drawn_as_often():
    y = np.zeros(20, dtype=int)
    counts = np.zeros(20)
    for seed in range(400):
        counts[split_by_class(y, 5, seed=seed)[0]] += 1
    assert ((counts - 100) ** 2 / 100).sum() < 45  # chi-squared with 19 degrees of freedom: 1 in 1,000 above


def test_bad_splits():
    with pytest.raises(InputError, match="class a has 3 items, expected more than n_train = 3"):
        split_by_class(["a", "a", "a"], 3)
    with pytest.raises(InputError, match="n_train must be a whole number of at least 1, not 0"):
        split_by_class(["a", "a"], 0)
    with pytest.raises(InputError, match="expected one class for each"):
        split_by_class([[1, 2]], 1)


def test_pictures_to_predict_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"folder '.*' holds no pictures, expected files \.png"):
        named_pictures(tmp_path, size=(4, 4), colour=None)
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match=r"folder '.*/a' holds no pictures"):
        named_pictures(tmp_path, size=(4, 4), colour=None)


def test_how_pictures_to_predict_were_given(tmp_path):
    folder(tmp_path, {"1.png": GREY, "2.png": COLOUR[:4]})
    found = named_pictures(tmp_path, size=(3, 4), colour="grey")
    assert found.X.shape == (2, 3, 4, 1) and found.names == ["1.png", "2.png"] and found.labels is None
    assert found.given.largest == {"uint8": 255.0}
    assert found.given.sizes == {(6, 8), (4, 8)} and found.given.channels == {1, 3}
    X = np.stack([COLOUR, COLOUR]) / 255
    for classes, labels in (({}, None), ({"y": [0, 1]}, ["0", "1"])):
        np.savez(tmp_path / "a.npz", X=X, **classes)
        found = named_pictures(tmp_path / "a.npz", size=(3, 4), colour="grey")
        assert found.given == ({"floats": 1.0}, {(6, 8)}, {3}) and found.labels == labels


def test_an_npz_file_that_was_cut_short(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.zeros((4, 5, 5)), y=np.arange(4) % 2)
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:200])
    for read in (labelled_pictures, partial(named_pictures, size=(5, 5), colour=None)):
        with pytest.raises(InputError, match=r"a\.npz': it is not an npz file of plain arrays"):
            read(tmp_path / "a.npz")
