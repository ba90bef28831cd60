"""What is read from odd files, and what is refused with one sentence."""

import struct
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest
import scipy.io
import tifffile
import zarr
from PIL import Image

from kruskal.data import read, write
from kruskal.errors import InputError

SUFFIXES = [".png", ".jpg", ".bmp", ".tif", ".npy", ".npz", ".mat", ".nii", ".nii.gz", ".h5"]


def refused(path, *words, **options):
    """Assert that reading fails with one sentence that names the path and holds all the words."""
    with pytest.raises(InputError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    for word in words:
        assert word in message, f"{word!r} not in {message!r}"


def test_missing_file(tmp_path):
    refused(tmp_path / "a.png", "no such file")


@pytest.mark.parametrize("name", ["a.xyz", "plain", "a.gz", "a.tar.gz"])
def test_unknown_suffix(tmp_path, name):
    (tmp_path / name).write_bytes(b"1")
    refused(tmp_path / name, ".png", ".nii.gz")


def test_not_a_path():
    with pytest.raises(InputError, match="path 3"):
        read(3)


def test_suffix_in_capitals(tmp_path):
    write(tmp_path / "A.PNG", np.zeros((3, 4), dtype=np.uint8))
    assert read(tmp_path / "A.PNG").metadata.suffix == ".png"
    write(tmp_path / "A.NII.GZ", np.zeros((3, 4)))
    assert (tmp_path / "A.NII.GZ").read_bytes()[:2] == b"\x1f\x8b"
    assert read(tmp_path / "A.NII.GZ").metadata.family == "nifti"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_folder_instead_of_file(tmp_path, suffix):
    (tmp_path / f"a{suffix}").mkdir()
    refused(tmp_path / f"a{suffix}", "folder")


def test_file_instead_of_zarr_folder(tmp_path):
    (tmp_path / "a.zarr").write_bytes(b"1")
    refused(tmp_path / "a.zarr", "folder")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_garbage(tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_bytes(bytes(range(7, 250)) * 4)
    refused(tmp_path / f"a{suffix}", "cannot read")
    (tmp_path / f"a{suffix}").write_bytes(b"")
    refused(tmp_path / f"a{suffix}", f"it is empty, expected a {suffix} file")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_cut_off(tmp_path, suffix, share):
    picture = suffix in (".png", ".jpg", ".bmp")
    values = (
        np.random.default_rng(0).integers(0, 256, size=(60, 70) if picture else (5, 60, 70)).astype(np.uint8)
    )
    path = tmp_path / f"a{suffix}"
    write(path, values)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    refused(path, "cannot read")


def test_cut_off_pages_of_a_tiff(tmp_path, caplog):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for number in range(4):
            file.write(
                np.full((20, 30), number, np.uint8), photometric="minisblack", metadata=None, contiguous=False
            )
    whole = (tmp_path / "a.tif").read_bytes()
    assert read(tmp_path / "a.tif").values.shape == (4, 20, 30)
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        end_of_second_page = file.pages[1].dataoffsets[0] + 600
    for length in (end_of_second_page, end_of_second_page + 300):
        (tmp_path / "a.tif").write_bytes(whole[:length])
        refused(tmp_path / "a.tif", "cannot read")
    assert caplog.text == ""


def test_empty_zarr_folder(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    refused(tmp_path / "a.zarr", "cannot read")


@pytest.mark.parametrize(
    "values, word",
    [
        (np.zeros((2, 2), dtype=complex), "complex128"),
        (np.array(["a", "b"]), "real numbers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "real numbers"),
        (np.zeros((0, 3)), "empty"),
        (np.array(3.0), "single number"),
        (np.zeros(2, dtype=[("a", "f4")]), "real numbers"),
    ],
)
def test_unusable_arrays(tmp_path, values, word):
    np.save(tmp_path / "a.npy", values)
    refused(tmp_path / "a.npy", word)
    np.savez(tmp_path / "a.npz", values=values)
    refused(tmp_path / "a.npz", word)


def test_object_array_is_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([1, None], dtype=object), allow_pickle=True)
    refused(tmp_path / "a.npy", "it holds Python objects, expected an array of numbers")
    np.savez(tmp_path / "a.npz", values=np.zeros(3), observed=np.array([1, None, 2], dtype=object))
    refused(tmp_path / "a.npz", "it holds Python objects, expected an array of numbers")


@pytest.mark.parametrize("suffix", [".tif", ".npy", ".npz", ".png", ".mat", ".h5"])
def test_a_file_that_was_cut_short_is_called_damaged(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write(path, np.arange(600, dtype=np.uint8).reshape(20, 30))
    path.write_bytes(path.read_bytes()[:7])
    refused(path, "it may be damaged", f"expected a complete {suffix} file")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".png"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"a{suffix}"
    write(path, np.arange(600, dtype=np.uint8).reshape(20, 30))

    def refuse(*_args, **_named):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(InputError, match=r"^cannot read '.*': Permission denied$"):
        read(path)


def test_complex_in_other_formats(tmp_path):
    values = np.ones((3, 4), dtype=complex)
    scipy.io.savemat(tmp_path / "a.mat", {"x": values * 1j})
    refused(tmp_path / "a.mat", "complex128")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = values
    refused(tmp_path / "a.h5", "complex128")
    tifffile.imwrite(tmp_path / "a.tif", values.astype(np.complex64), photometric="minisblack")
    refused(tmp_path / "a.tif", "complex64")
    zarr.save_array(str(tmp_path / "a.zarr"), values)
    refused(tmp_path / "a.zarr", "complex128")


def test_booleans_become_numbers(tmp_path):
    np.save(tmp_path / "a.npy", np.array([True, False]))
    loaded = read(tmp_path / "a.npy")
    np.testing.assert_array_equal(loaded.values, np.array([1, 0], dtype=np.uint8), strict=True)
    assert loaded.metadata.dtype == np.uint8


def test_foreign_byte_order_becomes_native(tmp_path):
    np.save(tmp_path / "a.npy", np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)))
    loaded = read(tmp_path / "a.npy")
    np.testing.assert_array_equal(loaded.values, np.arange(6, dtype=np.int16).reshape(2, 3), strict=True)
    assert loaded.values.dtype.isnative
    assert loaded.values.flags.c_contiguous


def several(tmp_path, suffix):
    arrays = {"first": np.zeros((2, 3)), "second": np.ones((4, 5))}
    path = tmp_path / f"a{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    elif suffix == ".mat":
        scipy.io.savemat(path, arrays)
    elif suffix == ".h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    else:
        group = zarr.open_group(str(path), mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=array)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".h5", ".zarr"])
def test_several_arrays_demand_a_key(tmp_path, suffix):
    path = several(tmp_path, suffix)
    refused(path, "key", "first (2x3)", "second (4x5)")
    refused(path, "'third'", "first", "second", key="third")
    np.testing.assert_array_equal(read(path, key="second").values, np.ones((4, 5)))


@pytest.mark.parametrize("suffix", [".png", ".npy", ".nii"])
def test_key_for_a_format_without_keys(tmp_path, suffix):
    write(tmp_path / f"a{suffix}", np.zeros((3, 4), dtype=np.uint8))
    refused(tmp_path / f"a{suffix}", "key 'x'", key="x")


def test_no_array_at_all(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("empty")
    refused(tmp_path / "a.h5", "no array")


def test_tiff_with_two_series(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(np.zeros((20, 30), np.uint8), photometric="minisblack")
        file.write(np.ones((7, 9), np.uint16), photometric="minisblack")
    refused(tmp_path / "a.tif", "key", "0 (20x30)", "1 (7x9)")
    np.testing.assert_array_equal(
        read(tmp_path / "a.tif", key="1").values, np.ones((7, 9), np.uint16), strict=True
    )
    refused(tmp_path / "a.tif", "'2'", key="2")


def test_observed_of_wrong_shape(tmp_path):
    np.savez(tmp_path / "a.npz", values=np.zeros((2, 3)), observed=np.ones((3, 2), dtype=bool))
    refused(tmp_path / "a.npz", "observed", "(3, 2)", "(2, 3)")


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("channels", [2, 4])
def test_alpha_channel(tmp_path, suffix, channels):
    values = np.random.default_rng(0).integers(0, 256, size=(5, 6, channels)).astype(np.uint8)
    values[..., -1] = 255
    path = tmp_path / f"a{suffix}"
    Image.fromarray(values, mode="RGBA" if channels == 4 else "LA").save(path)
    expected = values[..., :3] if channels == 4 else values[..., 0]
    np.testing.assert_array_equal(read(path).values, expected, strict=True)
    values[2, 3, -1] = 254
    Image.fromarray(values, mode="RGBA" if channels == 4 else "LA").save(path)
    refused(path, "alpha", "opaque")


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif"])
def test_palette(tmp_path, suffix):
    grey = np.arange(30, dtype=np.uint8).reshape(5, 6)
    colour = np.stack([grey, 2 * grey, 255 - grey], axis=-1)
    path = tmp_path / f"a{suffix}"
    indexed = Image.fromarray(grey, mode="P")
    indexed.putpalette(colour.reshape(-1, 3).tobytes())
    indexed.save(path)
    np.testing.assert_array_equal(read(path).values, colour, strict=True)
    indexed.putpalette(np.repeat(7 * np.arange(30, dtype=np.uint8), 3).tobytes())
    indexed.save(path)
    np.testing.assert_array_equal(read(path).values, 7 * grey, strict=True)


def test_transparent_colours_of_a_png(tmp_path):
    picture = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4))
    picture.save(tmp_path / "a.png", transparency=200)
    assert read(tmp_path / "a.png").values.shape == (3, 4)
    picture.save(tmp_path / "a.png", transparency=5)
    refused(tmp_path / "a.png", "alpha")


@pytest.mark.parametrize("suffix, options", [(".png", {}), (".tif", {}), (".tif", {"compression": "group4"})])
def test_one_bit_pictures(tmp_path, suffix, options):
    bits = np.random.default_rng(1).random((9, 11)) < 0.5
    Image.fromarray(bits).save(tmp_path / f"a{suffix}", **options)
    np.testing.assert_array_equal(read(tmp_path / f"a{suffix}").values, bits * np.uint8(255), strict=True)


def test_colours_for_printing_are_refused(tmp_path):
    Image.new("CMYK", (4, 5)).save(tmp_path / "a.jpg")
    refused(tmp_path / "a.jpg", "CMYK")


def test_animation_is_refused(tmp_path):
    frames = [Image.new("L", (4, 5), shade) for shade in (0, 100)]
    frames[0].save(tmp_path / "a.png", save_all=True, append_images=frames[1:])
    refused(tmp_path / "a.png", "2 frames")


def test_deep_colour_png_is_refused_not_truncated(tmp_path):
    def chunk(name, content):
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    rows = b"".join(b"\0" + bytes(2 * 6) for _ in range(3))
    header = struct.pack(">IIBBBBB", 2, 3, 16, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    refused(tmp_path / "a.png", "16-bit colour")


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_compressed_tiff(tmp_path, dtype):
    values = np.arange(600, dtype=dtype).reshape(20, 30)
    Image.fromarray(values).save(tmp_path / "a.tif", compression="tiff_lzw")
    np.testing.assert_array_equal(read(tmp_path / "a.tif").values, values, strict=True)


def test_compressed_tiff_stack(tmp_path):
    values = np.arange(3 * 20 * 30).astype(np.uint8).reshape(3, 20, 30)
    first, *others = (Image.fromarray(page) for page in values)
    first.save(tmp_path / "a.tif", compression="tiff_lzw", save_all=True, append_images=others)
    np.testing.assert_array_equal(read(tmp_path / "a.tif").values, values, strict=True)


def test_import_is_light():
    code = (
        "import sys, kruskal.data; "
        "heavy = {'PIL', 'imageio', 'tifffile', 'nibabel', 'h5py', 'zarr', 'scipy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
