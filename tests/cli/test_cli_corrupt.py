"""corrupt: seeded damage, for experiments."""

import os

import numpy as np
import pytest

from kruskal import data


def test_values_and_observed(cli, picture, tmp_path):
    answer = cli("corrupt", "picture.png", "-o", "out.npz", "--keep", "0.2", "--noise", "10", "--seed", "1")
    assert answer.status == 0 and answer.err == ""
    wanted = data.corrupt(picture, keep=0.2, noise=10, seed=1)
    loaded = data.read(tmp_path / "out.npz")
    np.testing.assert_array_equal(loaded.observed, wanted.observed)
    np.testing.assert_array_equal(loaded.values, wanted.values)
    assert loaded.metadata.dtype == np.uint8
    assert f"{wanted.observed.sum()} of 400 entries kept" in answer.out


def test_same_seed_same_bytes(cli, picture, tmp_path):
    written = []
    for seed in (1, 1, 2):
        assert cli("corrupt", "picture.png", "-o", "out.npz", "--keep", "0.5", "--seed", seed).status == 0
        written.append((tmp_path / "out.npz").read_bytes())
    assert written[0] == written[1] != written[2]


def test_damage_upon_damage_keeps_what_was_missing(cli, damaged, tmp_path):
    assert cli("corrupt", "damaged.npz", "-o", "more.npz", "--keep", "0.5", "--seed", "3").status == 0
    more = data.read(tmp_path / "more.npz")
    assert not (more.observed & ~damaged.observed).any()
    assert 0 < more.observed.sum() < damaged.observed.sum()
    assert more.metadata.dtype == np.uint8


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["picture.png", "-o", "out.npy"], "npz"),
        (["picture.png", "-o", "absent/out.npz"], "absent"),
        (["absent.png", "-o", "out.npz"], "absent.png"),
        (["damaged.npz", "-o", "./damaged.npz"], "would overwrite damaged.npz"),
        (["picture.png", "-o", "pipe.npz"], "--output: cannot write 'pipe.npz': it is a device, a pipe"),
        (["picture.png", "-o", "out.npz", "--keep", "0"], "keep"),
        (["picture.png", "-o", "out.npz", "--keep", "1.5"], "keep"),
        (["picture.png", "-o", "out.npz", "--keep", "nan"], "keep"),
        (["picture.png", "-o", "out.npz", "--noise", "-1"], "noise"),
        (["picture.png", "-o", "out.npz", "--noise", "1e308"], "--noise is 1e+308, with which"),
        (["picture.png", "-o", "out.npz", "--seed", "-1"], "seed"),
        (["picture.png", "-o", "out.npz", "--keep", "1e-9"], "none of the 400 entries"),
    ],
)
def test_bad_requests(refused, damaged, tmp_path, words, part):
    os.mkfifo(tmp_path / "pipe.npz")
    assert part in refused("corrupt", *words)
