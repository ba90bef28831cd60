"""Every format gives back what was written: values, dtype, shape and metadata."""

import json
import time
from pathlib import Path

import h5py
import nibabel
import numpy as np
import pytest
import scipy.io
import tifffile
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from kruskal.data import Metadata, read, write
from kruskal.errors import InputError

ARRAY_SUFFIXES = [".tif", ".npy", ".npz", ".mat", ".nii", ".nii.gz", ".h5", ".hdf5", ".zarr"]
PICTURE_SUFFIXES = [".png", ".jpg", ".bmp"]


def content(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of all files of a folder."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.fixture
def numbers():
    return np.random.default_rng(0).integers(0, 100, size=(4, 5, 6)) + 0.25


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("suffix", ARRAY_SUFFIXES)
def test_arrays_keep_values_and_dtype(tmp_path, numbers, suffix, dtype):
    values = numbers.astype(dtype)
    path = tmp_path / f"array{suffix}"
    write(path, values, dtype=dtype)
    loaded = read(path)
    np.testing.assert_array_equal(loaded.values, values)
    assert loaded.values.dtype == loaded.metadata.dtype == np.dtype(dtype)
    assert loaded.metadata.shape == (4, 5, 6)
    assert loaded.metadata.suffix == suffix
    assert loaded.observed is None
    assert loaded.values.flags.c_contiguous
    # and once more with the metadata of the file
    again = tmp_path / f"again{suffix}"
    write(again, loaded.values.astype(float), like=loaded.metadata)
    np.testing.assert_array_equal(read(again).values, values)
    assert read(again).values.dtype == np.dtype(dtype)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=5).map(tuple),
    dtype=st.sampled_from(["uint8", "int16", "float32", "float64"]),
    suffix=st.sampled_from([".tif", ".npy", ".npz", ".mat", ".nii", ".h5"]),
)
def test_any_shape(tmp_path, shape, dtype, suffix):
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if values.size == 1:
        values += 1
    path = tmp_path / f"array{suffix}"
    write(path, values, dtype=dtype)
    result = read(path, key="values" if suffix in (".npz", ".mat", ".h5") else None).values
    np.testing.assert_array_equal(result, values, strict=True)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".nii", ".h5", ".zarr"])
def test_one_axis(tmp_path, suffix):
    values = np.linspace(0, 1, 9, dtype=np.float32)
    write(tmp_path / f"a{suffix}", values)
    np.testing.assert_array_equal(read(tmp_path / f"a{suffix}").values, values, strict=True)


@pytest.mark.parametrize("suffix", PICTURE_SUFFIXES)
@pytest.mark.parametrize("shape", [(9, 7), (9, 7, 3)])
def test_pictures(tmp_path, suffix, shape):
    values = np.broadcast_to(np.linspace(20, 220, 9)[(slice(None), *[None] * (len(shape) - 1))], shape)
    path = tmp_path / f"picture{suffix}"
    write(path, values, dtype="uint8")
    loaded = read(path)
    assert loaded.values.dtype == np.uint8
    assert loaded.metadata.family == "picture"
    tolerance = 3 if suffix == ".jpg" else 0
    np.testing.assert_allclose(loaded.values, np.rint(values), atol=tolerance)
    assert loaded.values.shape == shape


def test_deep_grey_png(tmp_path):
    values = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    write(tmp_path / "a.png", values)
    np.testing.assert_array_equal(read(tmp_path / "a.png").values, values, strict=True)


@pytest.mark.parametrize("suffix", [*ARRAY_SUFFIXES, ".png"])
def test_integers_are_rounded_and_clipped(tmp_path, suffix):
    write(tmp_path / f"a{suffix}", [[-7.0, 0.4, 0.6], [254.4, 255.0, 300.0]], dtype="uint8")
    np.testing.assert_array_equal(read(tmp_path / f"a{suffix}").values, [[0, 0, 1], [254, 255, 255]])


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "int8"])
def test_largest_integers(tmp_path, dtype):
    info = np.iinfo(dtype)
    write(tmp_path / "a.npy", np.array([-1e30, 1e30, 3.0]), dtype=dtype)
    assert read(tmp_path / "a.npy").values.tolist() == [info.min, info.max, 3]
    write(tmp_path / "b.npy", np.array([info.max, info.min], dtype=dtype), dtype=dtype)
    assert read(tmp_path / "b.npy").values.tolist() == [info.max, info.min]


def test_floats_are_clipped_not_overflowed(tmp_path):
    write(tmp_path / "a.npy", [1e300, -1e300, np.nan, 1.0], dtype="float32")
    result = read(tmp_path / "a.npy").values
    limit = np.finfo(np.float32).max
    np.testing.assert_array_equal(result, np.array([limit, -limit, np.nan, 1], dtype=np.float32))


def test_default_dtype(tmp_path):
    for values, expected in [([0.5, 2.0], "float32"), ([1e300, 1.0], "float64"), ([1e-300, 0.0], "float64")]:
        write(tmp_path / "a.npy", np.array(values))
        np.testing.assert_array_equal(read(tmp_path / "a.npy").values, np.array(values, dtype=expected))
        assert read(tmp_path / "a.npy").values.dtype == expected
    write(tmp_path / "a.npy", np.array([2**40, 1]))
    assert read(tmp_path / "a.npy").values.tolist() == [2**40, 1]


def test_masked_array_is_written_with_nan(tmp_path):
    write(tmp_path / "a.npy", np.ma.masked_array([1, 2, 3], mask=[False, True, False]))
    np.testing.assert_array_equal(read(tmp_path / "a.npy").values, [1, np.nan, 3])


def test_bytes_do_not_depend_on_the_clock(tmp_path, numbers):
    like = Metadata(
        "hdf5", ".h5", np.dtype("float32"), (4, 5, 6), {"key": "group/data", "attributes": {"a": 1}}
    )
    ome = Metadata(
        "tiff", ".tif", np.dtype("float32"), (4, 5, 6), {"axes": "ZYX", "ome": {"PhysicalSizeX": 0.5}}
    )
    jobs = [(f"a{suffix}", numbers, None) for suffix in ARRAY_SUFFIXES]
    jobs += [(f"a{suffix}", numbers[0], "uint8") for suffix in PICTURE_SUFFIXES]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name, values, dtype in jobs:
            write(tmp_path / folder / name, values, dtype=dtype)
        write(tmp_path / folder / "nested.h5", numbers, like=like)
        write(tmp_path / folder / "nested.zarr", numbers, like=like)
        write(tmp_path / folder / "ome.tif", numbers, like=ome)
        if folder == "one":
            time.sleep(2.1)  # zip files count time in steps of two seconds
    one, two = content(tmp_path / "one"), content(tmp_path / "two")
    assert one.keys() == two.keys()
    assert len(one) > 15
    assert [name for name in one if one[name] != two[name]] == []


def test_png_and_jpg_metadata(tmp_path):
    profile = b"\0" * 16 + b"RGB " + b"\0" * 108
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation
    picture = Image.fromarray(np.zeros((4, 5, 3), dtype=np.uint8))
    picture.save(tmp_path / "a.jpg", dpi=(300, 200), icc_profile=profile, exif=exif)
    metadata = read(tmp_path / "a.jpg").metadata
    assert metadata.extras["dpi"] == (300, 200)
    for name in ("b.jpg", "b.png"):
        write(tmp_path / name, np.full((4, 5, 3), 99.0), like=metadata)
        extras = read(tmp_path / name).metadata.extras
        np.testing.assert_allclose(extras["dpi"], (300, 200), rtol=1e-3)
        assert extras["icc_profile"] == profile
        with Image.open(tmp_path / name) as result:
            assert result.getexif()[0x0112] == 6
    write(tmp_path / "grey.png", np.full((4, 5), 99.0), like=metadata)
    assert "icc_profile" not in read(tmp_path / "grey.png").metadata.extras
    write(tmp_path / "a.bmp", np.full((4, 5), 99.0), like=metadata)
    np.testing.assert_allclose(read(tmp_path / "a.bmp").metadata.extras["dpi"], (300, 200), rtol=1e-2)


def test_resolution_between_png_and_tif(tmp_path):
    Image.fromarray(np.zeros((4, 5), dtype=np.uint8)).save(tmp_path / "a.png", dpi=(254, 254))
    write(tmp_path / "a.tif", np.zeros((4, 5)), like=read(tmp_path / "a.png").metadata)
    extras = read(tmp_path / "a.tif").metadata.extras
    assert extras["resolution_unit"] == "INCH"
    np.testing.assert_allclose(extras["resolution"], (254, 254), rtol=1e-3)
    metric = Metadata(
        "tiff", ".tif", np.dtype("u1"), (4, 5), {"resolution": (100, 50), "resolution_unit": "CENTIMETER"}
    )
    write(tmp_path / "b.png", np.zeros((4, 5)), like=metric)
    np.testing.assert_allclose(read(tmp_path / "b.png").metadata.extras["dpi"], (254, 127), rtol=1e-3)


@pytest.mark.parametrize("dtype", ["uint16", "float64"])
def test_tiff_stack_metadata(tmp_path, dtype):
    values = np.arange(120, dtype=dtype).reshape(4, 5, 6)
    tifffile.imwrite(
        tmp_path / "a.tif",
        values,
        photometric="minisblack",
        metadata={"axes": "ZYX", "spacing": 0.5, "unit": "um"},
        resolution=(300.5, 150.25),
        resolutionunit="CENTIMETER",
    )
    first = read(tmp_path / "a.tif")
    np.testing.assert_array_equal(first.values, values, strict=True)
    write(tmp_path / "b.tif", first.values + 0.0, like=first.metadata)
    second = read(tmp_path / "b.tif")
    assert second.metadata.extras == first.metadata.extras
    assert second.metadata.extras["axes"] == "ZYX"
    assert second.metadata.extras["spacing"] == 0.5
    assert second.metadata.extras["resolution_unit"] == "CENTIMETER"
    np.testing.assert_allclose(second.metadata.extras["resolution"], (300.5, 150.25))


def test_imagej_stays_imagej(tmp_path):
    values = np.arange(2 * 3 * 4 * 5, dtype=np.uint16).reshape(2, 3, 4, 5)
    settings = {"axes": "TZYX", "spacing": 0.7, "unit": "um", "finterval": 2.0}
    tifffile.imwrite(tmp_path / "a.tif", values, imagej=True, metadata=settings, resolution=(2.5, 2.5))
    first = read(tmp_path / "a.tif")
    write(tmp_path / "b.tif", first.values / 1.0, like=first.metadata)
    second = read(tmp_path / "b.tif")
    np.testing.assert_array_equal(second.values, values, strict=True)
    assert second.metadata.extras == first.metadata.extras
    assert second.metadata.extras["imagej"] is True
    assert second.metadata.extras["spacing"] == 0.7
    # float64 is unknown to ImageJ: a plain TIFF keeps what it can
    write(tmp_path / "c.tif", first.values / 1.0, like=first.metadata, dtype="float64")
    third = read(tmp_path / "c.tif")
    assert "imagej" not in third.metadata.extras
    assert third.metadata.extras["spacing"] == 0.7
    assert third.metadata.extras["axes"] == "TZYX"


def test_ome_keeps_voxel_size(tmp_path):
    values = np.arange(60, dtype=np.uint16).reshape(3, 4, 5)
    sizes = {
        "PhysicalSizeX": 0.25,
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeZ": 2.0,
        "PhysicalSizeZUnit": "µm",
    }
    tifffile.imwrite(tmp_path / "a.ome.tif", values, ome=True, metadata={"axes": "ZYX", **sizes})
    first = read(tmp_path / "a.ome.tif")
    assert first.metadata.extras["ome"] == sizes
    write(tmp_path / "b.ome.tif", first.values / 1.0, like=first.metadata)
    assert read(tmp_path / "b.ome.tif").metadata.extras == first.metadata.extras
    np.testing.assert_array_equal(read(tmp_path / "b.ome.tif").values, values, strict=True)


@pytest.mark.parametrize("shape, axes", [((4, 5, 3), "YXS"), ((2, 4, 5, 3), "ZYXS"), ((3, 4, 5), "SYX")])
def test_colour_tiff_stays_colour(tmp_path, shape, axes):
    values = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    planar = "separate" if axes == "SYX" else "contig"
    tifffile.imwrite(
        tmp_path / "a.tif", values, photometric="rgb", planarconfig=planar, metadata={"axes": axes}
    )
    first = read(tmp_path / "a.tif")
    write(tmp_path / "b.tif", first.values / 1.0, like=first.metadata)
    np.testing.assert_array_equal(read(tmp_path / "b.tif").values, values, strict=True)
    with tifffile.TiffFile(tmp_path / "b.tif") as file:
        assert file.pages[0].photometric.name == "RGB"
        assert file.series[0].axes == axes
        assert file.pages[0].planarconfig.name == planar.upper()


def test_inverted_tiff_stays_inverted(tmp_path):
    values = np.arange(20, dtype=np.uint8).reshape(4, 5)
    tifffile.imwrite(tmp_path / "a.tif", values, photometric="miniswhite")
    write(tmp_path / "b.tif", values, like=read(tmp_path / "a.tif").metadata)
    with tifffile.TiffFile(tmp_path / "b.tif") as file:
        assert file.pages[0].photometric.name == "MINISWHITE"
    np.testing.assert_array_equal(read(tmp_path / "b.tif").values, values)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
@pytest.mark.parametrize("kind", [nibabel.Nifti1Image, nibabel.Nifti2Image])
def test_nifti_header(tmp_path, suffix, kind):
    affine = np.array([[0, -2, 0, 10], [1.5, 0, 0, -20], [0, 0, 3, 30], [0, 0, 0, 1.0]])
    values = np.arange(4 * 5 * 6 * 2, dtype=np.int16).reshape(4, 5, 6, 2)
    image = kind(values, affine)
    image.header.set_xyzt_units("mm", "sec")
    image.header.set_zooms((1.5, 2, 3, 2.5))
    image.header["descrip"] = b"a scan"
    image.set_qform(affine, code=1)
    image.set_sform(affine, code=3)
    image.to_filename(tmp_path / f"a{suffix}")
    first = read(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(first.values, values, strict=True)
    np.testing.assert_allclose(first.metadata.extras["affine"], affine)
    assert first.metadata.extras["zooms"] == (1.5, 2, 3, 2.5)
    assert first.metadata.extras["units"] == ("mm", "sec")
    write(tmp_path / f"b{suffix}", values + 0.25, like=first.metadata, dtype="float32")
    second = nibabel.load(tmp_path / f"b{suffix}")
    assert type(second) is kind
    np.testing.assert_allclose(second.affine, affine)
    np.testing.assert_array_equal(
        np.asanyarray(second.dataobj), values.astype(np.float32) + 0.25, strict=True
    )
    assert second.header.get_zooms() == (1.5, 2, 3, 2.5)
    assert second.header.get_xyzt_units() == ("mm", "sec")
    assert (int(second.header["qform_code"]), int(second.header["sform_code"])) == (1, 3)
    assert bytes(second.header["descrip"]).startswith(b"a scan")


def test_nifti_with_slope_and_other_byte_order(tmp_path):
    header = nibabel.Nifti1Header(endianness=">")
    image = nibabel.Nifti1Image(np.array([[0, 1], [2, 5]], dtype=np.int16), np.diag([2, 2, 2, 1.0]), header)
    image.header.set_slope_inter(0.5, 0)
    image.to_filename(tmp_path / "a.nii")
    first = read(tmp_path / "a.nii")
    np.testing.assert_allclose(first.values, [[0, 0.5], [1, 2.5]])
    assert first.metadata.dtype == np.float64
    write(tmp_path / "b.nii", first.values + 0.1, like=first.metadata)
    np.testing.assert_allclose(read(tmp_path / "b.nii").values, first.values + 0.1, rtol=1e-12)
    np.testing.assert_allclose(read(tmp_path / "b.nii").metadata.extras["affine"], np.diag([2, 2, 2, 1.0]))


def test_hdf5_key_chunks_and_attributes(tmp_path, numbers):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("scan/volume", data=numbers, chunks=(2, 5, 3))
        dataset.attrs.update({"unit": "mm", "spacing": [1.0, 2.0, 3.0], "count": 4})
        file["note"] = "text"
        file["number"] = 3.0
    first = read(tmp_path / "a.h5")
    assert first.metadata.extras["key"] == "scan/volume"
    write(tmp_path / "b.h5", first.values, like=first.metadata)
    with h5py.File(tmp_path / "b.h5") as file:
        dataset = file["scan/volume"]
        np.testing.assert_array_equal(dataset[()], numbers)
        assert dataset.chunks == (2, 5, 3)
        assert dataset.attrs["unit"] == "mm"
        assert dataset.attrs["spacing"].tolist() == [1, 2, 3]
        assert dataset.attrs["count"] == 4
    np.testing.assert_array_equal(read(tmp_path / "a.h5", key="/scan/volume").values, numbers)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_array(tmp_path, numbers, version):
    array = zarr.open_array(
        str(tmp_path / "a.zarr"), mode="w", shape=(4, 5, 6), chunks=(2, 5, 4), dtype="f4", zarr_format=version
    )
    array[...] = numbers
    array.attrs["unit"] = "mm"
    first = read(tmp_path / "a.zarr")
    np.testing.assert_array_equal(first.values, numbers.astype("f4"), strict=True)
    for _ in range(2):  # the second time replaces the store
        write(tmp_path / "b.zarr", first.values * 2.0, like=first.metadata)
    second = zarr.open(str(tmp_path / "b.zarr"), mode="r")
    np.testing.assert_array_equal(second[...], numbers.astype("f4") * 2, strict=True)
    assert second.chunks == (2, 5, 4)
    assert dict(second.attrs) == {"unit": "mm"}
    assert second.metadata.zarr_format == version
    assert sorted(child.name for child in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]


def test_zarr_shards_become_chunks(tmp_path, numbers):
    """A shard is one file: the result has as many files as the source, not one per inner chunk."""
    array = zarr.create_array(
        str(tmp_path / "a.zarr"), shape=(4, 5, 6), chunks=(1, 1, 1), shards=(4, 5, 3), dtype="f4"
    )
    array[...] = numbers
    first = read(tmp_path / "a.zarr")
    write(tmp_path / "b.zarr", first.values, like=first.metadata)
    np.testing.assert_array_equal(read(tmp_path / "b.zarr").values, numbers.astype("f4"), strict=True)
    assert len(content(tmp_path / "b.zarr")) == len(content(tmp_path / "a.zarr")) == 3


def test_zarr_group(tmp_path, numbers):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_group("deep").create_array("volume", data=numbers)
    first = read(tmp_path / "a.zarr")
    assert first.metadata.extras["key"] == "deep/volume"
    write(tmp_path / "b.zarr", first.values, like=first.metadata)
    second = zarr.open(str(tmp_path / "b.zarr"), mode="r")
    np.testing.assert_array_equal(second["deep"]["volume"][...], numbers)
    np.testing.assert_array_equal(read(tmp_path / "b.zarr", key="deep/volume").values, numbers)


def test_mat_key_and_class(tmp_path, numbers):
    scipy.io.savemat(
        tmp_path / "a.mat", {"scan": numbers, "n": 3.0, "name": "text", "cells": np.array([1, "a"], object)}
    )
    first = read(tmp_path / "a.mat")
    assert first.metadata.extras["key"] == "scan"
    assert first.metadata.dtype == np.float64
    write(tmp_path / "b.mat", first.values, like=first.metadata)
    np.testing.assert_array_equal(scipy.io.loadmat(tmp_path / "b.mat")["scan"], numbers)
    assert b"20" not in (tmp_path / "b.mat").read_bytes()[:116]  # no year
    like = Metadata("hdf5", ".h5", np.dtype("f8"), (4, 5, 6), {"key": "group/2 wrong name"})
    write(tmp_path / "c.mat", numbers, like=like)
    assert read(tmp_path / "c.mat").metadata.extras["key"] == "values"


def test_mat_version_73(tmp_path, numbers):
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["scan"] = numbers.T  # MATLAB stores columns first
        file["scan"].attrs["MATLAB_class"] = np.bytes_("double")
        file["text"] = np.array([[104, 105]], dtype=np.uint16)
        file["text"].attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/a"] = numbers
    loaded = read(tmp_path / "a.mat")
    np.testing.assert_array_equal(loaded.values, numbers, strict=True)
    assert loaded.metadata.extras["key"] == "scan"
    with h5py.File(tmp_path / "a.mat", "a") as file:
        file["other"] = np.zeros((2, 3))
    with pytest.raises(InputError, match=r"other \(3x2\), scan \(4x5x6\)"):
        read(tmp_path / "a.mat")


def test_npz_key(tmp_path, numbers):
    np.savez(tmp_path / "a.npz", scan=numbers, title=np.array("text"))
    first = read(tmp_path / "a.npz")
    assert first.metadata.extras["key"] == "scan"
    write(tmp_path / "b.npz", first.values, like=first.metadata)
    with np.load(tmp_path / "b.npz") as file:
        assert file.files == ["scan"]
        np.testing.assert_array_equal(file["scan"], numbers)


def test_metadata_description_is_json(tmp_path, numbers):
    for suffix in ARRAY_SUFFIXES:
        write(tmp_path / f"a{suffix}", numbers)
        description = json.loads(json.dumps(read(tmp_path / f"a{suffix}").metadata.describe()))
        assert description["shape"] == [4, 5, 6]
        assert description["dtype"] == "float32"
        assert description["suffix"] == suffix
