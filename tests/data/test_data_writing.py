"""Writing is whole or not at all, and what cannot be written is refused early."""

import os
import resource
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from kruskal.data import Metadata, atomic_path, check_writable, read, write
from kruskal.data.formats import hdf5, npy, zarr_store
from kruskal.data.lazy import written_in_boxes
from kruskal.errors import InputError

SUFFIXES = [".png", ".jpg", ".bmp", ".tif", ".npy", ".npz", ".mat", ".nii", ".nii.gz", ".h5", ".zarr"]


def listing(folder):
    return sorted(child.name for child in folder.iterdir())


@contextmanager
def small_disk(limit):
    """Let the operating system refuse every file that grows above `limit` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_full_disk(tmp_path, suffix):
    values = np.random.default_rng(0).integers(0, 256, size=(150, 150)).astype(np.uint8)
    path = tmp_path / f"a{suffix}"
    with small_disk(2048), pytest.raises(InputError) as caught:
        write(path, values)
    assert listing(tmp_path) == []
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "full" in str(caught.value) or "File too large" in str(caught.value)


@pytest.mark.parametrize("suffix", [".npy", ".h5", ".zarr"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, RuntimeError, ZeroDivisionError])
def test_failure_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch, suffix, error):
    path = tmp_path / f"a{suffix}"
    write(path, np.ones((4, 5)))
    module = {".npy": npy, ".h5": hdf5, ".zarr": zarr_store}[suffix]
    complete = module.write

    def interrupted(*arguments):
        complete(*arguments)
        raise error("in the middle")

    monkeypatch.setattr(module, "write", interrupted)
    expected = InputError if error in (OSError, RuntimeError) else error
    with pytest.raises(expected, match="in the middle"):
        write(path, np.zeros((4, 5)))
    assert listing(tmp_path) == [path.name]
    np.testing.assert_array_equal(read(path).values, np.ones((4, 5)))


@pytest.mark.parametrize("name", ["a.json", "a.nii.gz", "b", "a.b.png"])
def test_atomic_path(tmp_path, name):
    path = tmp_path / name
    with atomic_path(path) as temporary:
        assert temporary.parent == tmp_path
        assert temporary != path
        assert temporary.name.endswith(".nii.gz" if name == "a.nii.gz" else path.suffix)
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert listing(tmp_path) == [name]


def test_atomic_path_replaces_folders(tmp_path):
    for text in ("old", "new"):
        with atomic_path(tmp_path / "a.zarr") as temporary:
            (temporary / "deep").mkdir(parents=True)
            (temporary / "deep" / text).write_text(text)
    assert listing(tmp_path) == ["a.zarr"]
    assert listing(tmp_path / "a.zarr" / "deep") == ["new"]


def test_atomic_path_puts_the_old_folder_back(tmp_path, monkeypatch):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "old").write_text("old")
    replace = os.replace

    def refuse_the_new_one(source, target):
        if (source / "new").exists():
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse_the_new_one)
    with pytest.raises(InputError, match="No space left"), atomic_path(tmp_path / "a.zarr") as temporary:
        temporary.mkdir()
        (temporary / "new").write_text("new")
    assert listing(tmp_path) == ["a.zarr"]
    assert listing(tmp_path / "a.zarr") == ["old"]


def test_atomic_path_removes_on_failure(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic_path(tmp_path / "a.json") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert listing(tmp_path) == []


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_pipes_and_links_to_them_stay(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"link{suffix}").symlink_to(tmp_path / f"pipe{suffix}")
    for path in (tmp_path / f"pipe{suffix}", tmp_path / f"link{suffix}"):
        for call in (check_writable, lambda path: write(path, np.arange(3))):
            with pytest.raises(InputError, match="a device, a pipe or a socket"):
                call(path)
        with pytest.raises(InputError, match="a device"), atomic_path(path):
            raise AssertionError("nothing must be computed")
        assert path.is_fifo()
    assert len(listing(tmp_path)) == 2


def test_atomic_path_follows_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.npy").write_bytes(b"old")
    (tmp_path / "link.npy").symlink_to(tmp_path / "real" / "a.npy")
    write(tmp_path / "link.npy", np.arange(3))
    assert (tmp_path / "link.npy").is_symlink()
    assert read(tmp_path / "real" / "a.npy").values.tolist() == [0, 1, 2]


def test_body_that_writes_nothing(tmp_path):
    with pytest.raises(InputError, match=r"a\.json"), atomic_path(tmp_path / "a.json"):
        pass


def refused(path, *words, **options):
    for attempt in (
        lambda: check_writable(path, **options),
        lambda: write(path, np.zeros(options.get("shape") or (4, 5)), dtype=options.get("dtype", "uint8")),
    ):
        with pytest.raises(InputError) as caught:
            attempt()
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_folder(tmp_path, suffix):
    refused(tmp_path / "none" / f"a{suffix}", "does not exist")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that accepts no files")
def test_folder_that_accepts_no_files():
    refused("/proc/self/a.npy", "does not accept files")


def test_unknown_suffix(tmp_path):
    refused(tmp_path / "a.xyz", "'.xyz'", ".png", ".zarr")
    refused(tmp_path / "a", "no suffix")


def test_folder_without_a_suffix(tmp_path):
    refused(tmp_path, "it is a folder", ".png", ".zarr")


def test_folder_in_the_way(tmp_path):
    (tmp_path / "a.npy").mkdir()
    refused(tmp_path / "a.npy", "folder")


def test_file_in_the_way_of_zarr(tmp_path):
    (tmp_path / "a.zarr").write_text("x")
    refused(tmp_path / "a.zarr", "file of that name")


def test_other_folders_are_never_replaced_by_zarr(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "thesis.tex").write_text("x")
    refused(tmp_path / "a.zarr", "not a zarr store")
    assert listing(tmp_path / "a.zarr") == ["thesis.tex"]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("separator", [".", "/"])
def test_only_a_store_of_one_array_is_replaced(tmp_path, zarr_format, separator):
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr 3 is not installed")
    if zarr_format == 2:
        encoding = {"name": "v2", "separator": separator}
    else:
        encoding = {"name": "default", "separator": separator}
    path = tmp_path / "a.zarr"
    options = {"shape": (4, 5), "chunks": (2, 2), "dtype": "f4"}

    def grouped(*names):
        group = zarr.open_group(str(path), mode="a", zarr_format=zarr_format)
        group.attrs["unit"] = "mm"
        for name in names:
            array = group.create_array(name, chunk_key_encoding=encoding, **options)
            array[...] = 1.0
            array.attrs["name"] = name

    grouped("deep/0")
    write(path, np.zeros((4, 5)))  # of a group with one array, and then of an array
    write(path, np.ones((3, 5)))
    assert read(path).values.shape == (3, 5)
    (path / "notes.txt").write_text("x")
    refused(path, "notes.txt", "not of zarr and would be lost")
    (path / "notes.txt").unlink()
    write(path, np.zeros((4, 5)))
    shutil.rmtree(path)
    grouped("0", "deep/c")
    refused(path, "the store holds 2 arrays")
    with pytest.raises(InputError, match="2 arrays"), written_in_boxes(path, (4, 5), "float32", {}):
        raise AssertionError("nothing must be computed")
    assert read(path, key="0").values.shape == (4, 5)


@pytest.mark.parametrize(
    "name, shape",
    [
        ("a.png", (3,)),
        ("a.png", (3, 4, 5)),
        ("a.jpg", (2, 3, 4, 3)),
        ("a.bmp", (3, 4, 2)),
        ("a.jpg", (1, 70000)),
        ("a.tif", (9,)),
        ("a.nii", (1,) * 8),
    ],
)
def test_shape_that_does_not_fit(tmp_path, name, shape):
    refused(tmp_path / name, "cannot write", shape=shape)
    assert listing(tmp_path) == []


def test_mat_of_more_than_two_gigabytes(tmp_path):
    with pytest.raises(InputError, match="2 GiB"):
        check_writable(tmp_path / "a.mat", (1024, 1024, 1024), "float32")
    check_writable(tmp_path / "a.mat", (1024, 1024, 1024), "uint8")


@pytest.mark.parametrize("name, shape, dtype", [("a.jpg", (4, 5), "uint16"), ("a.png", (4, 5, 3), "uint16")])
def test_deep_pictures_that_do_not_fit(tmp_path, name, shape, dtype):
    refused(tmp_path / name, "uint16", ".tif", shape=shape, dtype=dtype)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_check_writable_accepts_and_leaves_nothing(tmp_path, suffix):
    check_writable(tmp_path / f"a{suffix}")
    check_writable(tmp_path / f"a{suffix}", (4, 5), "uint8")
    assert listing(tmp_path) == []


def test_floats_in_pictures(tmp_path):
    path = tmp_path / "a.png"
    with pytest.raises(InputError, match="float32"):
        check_writable(path, (2, 2), "float32")
    like = Metadata("npy", ".npy", np.dtype("float32"), (2, 2))
    write(path, [[0.0, 99.6], [255.0, 3.0]], like=like)
    assert read(path).values.tolist() == [[0, 100], [255, 3]]
    for bad in ([[0.0, 256.0]], [[-1.0, 20.0]], [[np.nan, 20.0]], [[0.2, 1.0]]):
        with pytest.raises(InputError, match="0 to 255"):
            write(path, bad, like=like)
    write(path, [[-3.0, 300.0]], like=like, dtype="uint8")  # an explicit dtype clips
    assert read(path).values.tolist() == [[0, 255]]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_integer_for_nan(tmp_path, bad):
    with pytest.raises(InputError, match="1 of 3 values are NaN or infinite"):
        write(tmp_path / "a.npy", [1.0, bad, 2.0], dtype="int16")
    assert listing(tmp_path) == []


@pytest.mark.parametrize("dtype", ["complex64", "U3", "no such dtype", "bool"])
def test_wrong_dtype(tmp_path, dtype):
    with pytest.raises(InputError, match="dtype"):
        write(tmp_path / "a.npy", [1.0], dtype=dtype)


@pytest.mark.parametrize("values", [[1j], ["a"], [], 3.0, [[1.0], [1.0, 2.0]]])
def test_wrong_values(tmp_path, values):
    with pytest.raises(InputError, match="values"):
        write(tmp_path / "a.npy", values)


def test_one_colour_channel_is_grey(tmp_path):
    write(tmp_path / "a.png", np.full((4, 5, 1), 9, dtype=np.uint8))
    np.testing.assert_array_equal(read(tmp_path / "a.png").values, np.full((4, 5), 9, np.uint8), strict=True)


def test_half_precision_where_it_is_unknown(tmp_path):
    for suffix, expected in [
        (".nii", "float32"),
        (".mat", "float32"),
        (".tif", "float16"),
        (".h5", "float16"),
    ]:
        write(tmp_path / f"a{suffix}", [[0.5, 1e9]], dtype="float16")
        result = read(tmp_path / f"a{suffix}").values
        assert result.dtype == expected
        assert result[0, 1] == (1e9 if expected == "float32" else np.finfo(np.float16).max)
