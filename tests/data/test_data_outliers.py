"""Entries far outside of all others: told, or refused where arithmetic would not survive them."""

import numpy as np
import pytest

import kruskal
from kruskal.data import far_entries
from kruskal.errors import InputError


def usual(scale=1.0):
    return scale * np.random.default_rng(0).standard_normal((30, 40))


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1.0, 1e290])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_is_told(scale, sign):
    x, seen = usual(scale), np.ones((30, 40), bool)
    assert far_entries(x, seen, "x") is None
    x[3, 4] = sign * 50.0 * scale  # a spike is no code for nothing
    assert far_entries(x, seen, "x") is None
    x[3, 4] = x[7, 1] = sign * 1e5 * scale
    told = far_entries(x, seen, "x")
    assert told.startswith("2 observed entries lie further") and "such as " in told
    x[3, 4] = sign * 1e9 * scale
    with pytest.raises(InputError, match=r"^x holds .*mark such entries as missing"):
        far_entries(x, seen, "x")
    seen[3, 4] = seen[7, 1] = False
    assert far_entries(x, seen, "x") is None


def test_whole_numbers_constants_and_the_largest_floats():
    counts = np.random.default_rng(0).integers(0, 200, (30, 40)).astype(np.uint16)
    seen = np.ones(counts.shape, bool)
    assert far_entries(counts, seen, "x") is None
    nearly = np.zeros((30, 40))
    nearly[0, 0] = 1e9  # nothing is known of a spread
    assert far_entries(nearly, seen, "x") is None
    x = usual()
    x[0, 0], x[0, 1] = np.nan, np.finfo(float).max
    seen[0, 0] = False
    with pytest.raises(InputError, match=r"x holds 1\.797"):
        far_entries(x, seen, "x")


def test_a_run_says_it_and_refuses():
    x, options = usual(), {"patch_shape": (6, 6), "n_atoms": 8, "sweeps": 4, "auto": False, "threads": 1}
    x[5, 5] = -9999.0
    assert "1 observed entry lies further" in kruskal.denoise(x, **options).notes[0]
    x[5, 5] = 1e20
    with pytest.raises(InputError, match="x holds 1e"):
        kruskal.denoise(x, **options)
    x[5, 5] = np.nan
    assert not any("further" in note for note in kruskal.inpaint(x, **options).notes)
