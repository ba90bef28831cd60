"""The data sets of the paper, where they are installed; and what is said where they are not."""

import gzip
import hashlib
import struct

import numpy as np
import pytest
from PIL import Image

from kruskal.data import datasets
from kruskal.data.catalogue import DATASETS
from kruskal.data.idx import read_idx
from kruskal.errors import InputError


def available(name):
    """Skip the test, with the reason, unless the data set is installed."""
    try:
        return datasets.locate(name)
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "caltech101"])
def test_checksums(name):
    available(name)
    for file, expected in DATASETS[name].files.items():
        assert hashlib.sha256((datasets._data_folder() / file).read_bytes()).hexdigest() == expected


@pytest.mark.parametrize(
    "name, shape, dtype",
    [
        ("barbara256", (256, 256), "uint8"),
        ("barbara512", (512, 512), "uint8"),
        ("castle", (481, 321, 3), "uint8"),
        ("amino", (5, 201, 61), "float64"),
        ("brainweb", (181, 217, 181), "float64"),
    ],
)
def test_arrays(name, shape, dtype):
    available(name)
    loaded = datasets.load(name)
    assert loaded.values.shape == shape
    assert loaded.values.dtype == dtype
    assert loaded.observed is None


def test_barbara_is_a_crop():
    available("barbara256")
    available("barbara512")
    small, large = datasets.load("barbara256").values, datasets.load("barbara512").values
    np.testing.assert_array_equal(small, large[0:256, 256:512])


def test_castle_damaged_mask():
    available("castle_damaged")
    loaded = datasets.load("castle_damaged")
    assert loaded.observed is not None
    np.testing.assert_allclose(100 * loaded.observed.mean(axis=(0, 1)), [20.02, 20.04, 19.94], atol=0.006)
    original = datasets.load("castle").values
    np.testing.assert_array_equal(loaded.values[loaded.observed], original[loaded.observed])
    assert loaded.observed[original == 0].all()  # a black pixel that was kept does not look missing


def test_amino_peak():
    available("amino")
    assert round(float(datasets.load("amino").values.max()), 3) == 938.499


def test_mnist():
    available("mnist")
    digits = datasets.load("mnist")
    assert digits.train_images.shape == (60000, 28, 28)
    assert digits.test_images.shape == (10000, 28, 28)
    assert digits.train_labels.shape == (60000,)
    assert np.bincount(digits.test_labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_caltech():
    available("caltech101")
    pictures = datasets.load("caltech101")
    assert len(pictures) == 8677 and len({label for _, label in pictures}) == 101
    assert pictures == sorted(pictures)
    assert all(path.parent.name == label for path, label in pictures)


def test_unknown_name():
    with pytest.raises(InputError, match=r"'lena' is unknown, expected one of barbara256.*caltech101"):
        datasets.locate("lena")


@pytest.mark.parametrize("name", list(DATASETS))
def test_missing_file(tmp_path, monkeypatch, name):
    monkeypatch.setenv("KRUSKAL_DATA", str(tmp_path))
    with pytest.raises(InputError) as caught:
        datasets.load(name)
    message = str(caught.value)
    assert "KRUSKAL_DATA" in message
    assert DATASETS[name].home in message
    assert str(tmp_path) in message
    assert "is missing" in message


def test_missing_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KRUSKAL_DATA", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"KRUSKAL_DATA is .*none"):
        datasets.locate("amino")


def test_no_data_folder_at_all(tmp_path, monkeypatch):
    monkeypatch.delenv("KRUSKAL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"brainweb/t1_icbm.*set KRUSKAL_DATA.*McGill"):
        datasets.locate("brainweb")


def test_folder_beside_a_parent(tmp_path, monkeypatch):
    monkeypatch.delenv("KRUSKAL_DATA", raising=False)
    (tmp_path / "project" / "deep").mkdir(parents=True)
    file = tmp_path / "shared" / "data" / "amino" / "amino.mat"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    monkeypatch.chdir(tmp_path / "project" / "deep")
    assert datasets.locate("amino") == file


def test_original_caltech_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KRUSKAL_DATA", str(tmp_path))
    for folder in ("BACKGROUND_Google", "ant", "anchor"):
        target = tmp_path / "101_ObjectCategories" / folder
        target.mkdir(parents=True)
        Image.new("RGB", (5, 4)).save(target / "image_0001.jpg")
        (target / "notes.txt").write_text("x")
    pictures = datasets.load("caltech101")
    assert [(path.name, label) for path, label in pictures] == [
        ("image_0001.jpg", "anchor"),
        ("image_0001.jpg", "ant"),
    ]


def test_idx(tmp_path):
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    good = struct.pack(">HBB3I", 0, 8, 3, 2, 3, 4) + values.tobytes()
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(good))
    np.testing.assert_array_equal(read_idx(path), values, strict=True)
    path.write_bytes(good)
    np.testing.assert_array_equal(read_idx(path), values, strict=True)
    bad = [good[:-1], good + b"x", b"\0\1" + good[2:], good[:2] + b"\x0d" + good[3:], good[:7], b""]
    for content in [gzip.compress(one) for one in bad] + [*bad, gzip.compress(good)[:-9]]:
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot read .*a\.gz"):
            read_idx(path)
