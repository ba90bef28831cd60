"""Results in files: what is saved can be loaded, and nothing else."""

import dataclasses
import json
import math

import numpy as np
import pytest

import kruskal

X = np.add.outer(np.sin(np.arange(24.0)), 1e4 + np.cos(np.arange(20.0)))
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.7, X, np.nan)
OPTIONS = {"seed": 1, "threads": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"patch_shape": (4, 4), "n_atoms": 8, "sweeps": 4},
        {"model": "bpfa", "patch_shape": (4, 4), "n_atoms": 8, "online": "exact", "epochs": 3},
        {"model": "mgp-cp", "rank": 3, "sweeps": 4},
        {"model": "mgp-cp", "rank": 3, "sweeps": 4, "patch_shape": (6, 5)},
    ],
)
def test_what_is_saved_can_be_loaded(options, tmp_path):
    result = kruskal.inpaint(HOLES, **OPTIONS, **options)
    result.save(tmp_path / "result.npz")
    found = kruskal.Restoration.load(tmp_path / "result.npz")
    assert found.threads == 0 and math.isnan(found.seconds)
    for field in dataclasses.fields(result):
        mine, theirs = getattr(result, field.name), getattr(found, field.name)
        if field.name in ("mean", "std", "dictionary", "ranks", "usage", "weights"):
            assert (mine is None and theirs is None) or (mine == theirs).all()
        elif field.name == "trace":
            assert list(mine) == list(theirs) and all((mine[name] == theirs[name]).all() for name in mine)
        elif field.name == "factors":
            assert (mine is None and theirs is None) or all((a == b).all() for a, b in zip(mine, theirs))
        elif field.name not in ("threads", "seconds", "pilots"):
            assert mine == theirs, field.name
    assert found.rank == result.rank and found.offset == result.offset
    found.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "result.npz").read_bytes()


def test_pilot_runs_are_kept_but_for_their_time(tmp_path):
    result = dataclasses.replace(
        kruskal.inpaint(HOLES, **OPTIONS, patch_shape=(4, 4), n_atoms=8, sweeps=4),
        pilots=({"differs": "", "rmse": 0.5, "seconds": 1.0},),
    )
    result.save(tmp_path / "result.npz")
    assert kruskal.Restoration.load(tmp_path / "result.npz").pilots == ({"differs": "", "rmse": 0.5},)


def test_other_files_are_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "array.npz", X)  # called array.npz.npy
    (tmp_path / "array.npz.npy").rename(tmp_path / "array.npz")
    np.savez(tmp_path / "other.npz", mean=X, settings=json.dumps({}))
    kruskal.inpaint(HOLES, **OPTIONS, patch_shape=(4, 4), n_atoms=8, sweeps=4).save(tmp_path / "whole.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:900])
    for name in ("array.npz", "other.npz", "cut.npz"):
        with pytest.raises(kruskal.InputError, match="is no result file of kruskal, or it is damaged"):
            kruskal.Restoration.load(tmp_path / name)
    with pytest.raises(kruskal.InputError, match="does not exist"):
        kruskal.Restoration.load(tmp_path / "none.npz")

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(np, "load", forbidden)
    with pytest.raises(kruskal.InputError, match=r"whole\.npz cannot be read: Permission denied"):
        kruskal.Restoration.load(tmp_path / "whole.npz")


def test_upper_case_suffix(tmp_path):
    result = kruskal.inpaint(HOLES, **OPTIONS, patch_shape=(4, 4), n_atoms=8, sweeps=4)
    result.save(tmp_path / "a.npz")
    result.save(tmp_path / "B.NPZ")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["B.NPZ", "a.npz"]
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "B.NPZ").read_bytes()


def test_upper_case_suffix_of_a_model(tmp_path):
    from kruskal.estimators.deep_file import read_file, write_arrays

    write_arrays(tmp_path / "A.NPZ", {"format": "form", "version": 1, "x": np.arange(3)})
    assert [file.name for file in tmp_path.iterdir()] == ["A.NPZ"]
    assert read_file(tmp_path / "A.NPZ", "form", 1, lambda arrays: arrays["x"].tolist()) == [0, 1, 2]
