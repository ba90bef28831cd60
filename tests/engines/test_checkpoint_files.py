"""Damaged files: what is said of a folder that holds some, and that none is left open."""

import errno
import gc
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import kruskal
from kruskal.engines import checkpoint, training_files
from kruskal.errors import InputError
from kruskal.estimators import deep_file

ARRAYS = {"parameters": np.arange(50.0), "trace": np.zeros((2, 5))}
ANEW = r"cannot be read: it is damaged, remove the folder to begin anew$"


@pytest.fixture
def folder(tmp_path):
    """A fit that was saved after seven steps."""
    training_files.save(tmp_path, "digest", 7, ARRAYS)
    return tmp_path


def load(folder, like=ARRAYS):
    return training_files.load(folder, "digest", like)


def is_half_a_file(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def is_flipped(path):
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 255
    path.write_bytes(whole)


DAMAGES = {
    "cut": is_half_a_file,
    "flipped": is_flipped,
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_bytes(b"no archive"),
    "gone": Path.unlink,
    "objects": lambda path: np.savez(path, parameters=np.array([None]), trace=np.zeros((2, 5))),
    "an array": lambda path: path.write_bytes(array_file(path)),
}


def array_file(path):
    np.save(path.with_suffix(".npy"), ARRAYS["parameters"])
    return path.with_suffix(".npy").read_bytes()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_called_so(folder, damage):
    """Without the words of NumPy, who advises to read the file unsafely."""
    DAMAGES[damage](folder / "training-00000007.npz")
    with pytest.raises(InputError, match=ANEW):
        load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "3", '{"format": 1}', "\xff"])
def test_a_damaged_header_is_called_so(folder, text):
    (folder / "training.json").write_text(text, encoding="latin1")
    with pytest.raises(InputError, match=r"it is damaged.*, remove the folder to begin anew$") as told:
        load(folder)
    assert "indices" not in str(told.value) and "line 1" not in str(told.value)


@pytest.mark.parametrize("text", ["[]", "{", '{"format": 5, "settings": 3}'])
def test_so_is_that_of_a_run(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(InputError, match=ANEW):
        checkpoint.load(tmp_path)


def test_so_is_its_array(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps({"format": checkpoint.FORMAT, "settings": {}}))
    (tmp_path / "input.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=ANEW):
        checkpoint.load(tmp_path)
    np.savez(tmp_path / "input.npz", values=np.zeros(3))
    with pytest.raises(InputError, match=ANEW):
        checkpoint.load(tmp_path)


def test_what_was_found_out_by_us_is_told(folder):
    with pytest.raises(InputError, match=r"damaged \(parameters has shape \(50,\) instead of \(9,\)\),"):
        load(folder, ARRAYS | {"parameters": np.zeros(9)})
    with pytest.raises(InputError, match=r"it is damaged \('moving' is missing\), remove the folder"):
        load(folder, ARRAYS | {"moving": np.zeros(9)})


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE])
def test_a_disk_that_fails_is_no_damage(folder, monkeypatch, number):
    """Nobody is to remove a folder that can be read tomorrow."""

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(training_files.np, "load", refuse)
    with pytest.raises(InputError, match=f"cannot be read: {os.strerror(number)}$"):
        load(folder)


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "objects"])
def test_no_damaged_file_is_left_open(folder, tmp_path, damage):
    model = tmp_path / "model.npz"
    deep_file.write_arrays(model, {"format": deep_file.FORMAT} | ARRAYS)
    DAMAGES[damage](folder / "training-00000007.npz")
    DAMAGES[damage](model)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for read in (lambda: load(folder), lambda: kruskal.DeepCKFA.load(model)):
            with pytest.raises(InputError, match="damaged"):
                read()
        gc.collect()
    assert not [one for one in found if one.category is ResourceWarning]
