"""What a finished restoration says about itself."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from kruskal.cli import summary


def restoration(mean, **changes):
    values = {
        "mean": mean,
        "std": np.ones_like(mean),
        "noise_std": 2.0,
        "dictionary": np.zeros((4, 2, 2)),
        "ranks": np.array([1, 2, 2, 1]),
        "usage": np.array([0.5, 0.1, 0.2, 0.0]),
        "trace": {"alpha": np.array([3.0, 4.5]), "noise_std": np.full(9, 2.0)},
        "pilots": (),
        "notes": ("look here",),
        "kept": 5,
        "settings": {"model": "kfa", "patch_shape": (2, 2), "sweeps": 9, "seed": 3, "rank": 2},
        "n_items": 25,
        "threads": 1,
        "seconds": 65.0,
    }
    return SimpleNamespace(**(values | changes))


@pytest.fixture
def mean():
    return np.linspace(0, 250, 100).reshape(10, 10)


def test_atoms_that_are_not_used_do_not_count(mean):
    found = summary.summarise(restoration(mean), np.ones(mean.shape, bool))
    assert found["n_atoms"] == 4 and found["n_atoms_used"] == 3
    assert found["rank_histogram"] == {"1": 1, "2": 2}
    assert found["alpha"] == 4.5
    assert (found["sweeps"], found["kept"], found["burn_in"], found["pilots"]) == (9, 5, 4, [])
    assert found["notes"] == ["look here"]


def test_pilot_runs_are_told(mean):
    pilots = ({"differs": "", "seconds": 2.0}, {"differs": "rank", "seconds": 3.0})
    found = summary.summarise(restoration(mean, pilots=pilots), np.ones(mean.shape, bool))
    assert "defaults tested in 2 pilot runs of 5 s" in summary.as_text(found)


def test_ranks_that_are_not_defined_are_left_out(mean):
    result = restoration(mean, ranks=np.full(4, -1), trace={"noise_std": np.full(9, 2.0)})
    found = summary.summarise(result, np.ones(mean.shape, bool))
    assert found["rank_histogram"] == {} and found["alpha"] is None


def test_perfect_result_is_valid_json(mean):
    found = summary.summarise(restoration(mean), np.ones(mean.shape, bool), reference=mean)
    assert found["psnr"] is None and found["rrse"] == 0
    json.dumps(found, allow_nan=False)
    assert "PSNR -" in summary.as_text(found)


def test_mean_is_clipped_but_not_rounded_for_an_integer_reference():
    mean = np.array([[-5.0, 260.0], [10.4, 20.0]])
    whole = np.array([[0, 255], [10, 20]], dtype=np.uint8)
    np.testing.assert_array_equal(summary.clipped_like(mean, whole), [[0, 255], [10.4, 20]])
    np.testing.assert_array_equal(summary.clipped_like(mean, whole.astype(float)), mean)


def test_coverage_counts_missing_entries_only(mean):
    observed = np.ones(mean.shape, bool)
    observed[0, :4] = False
    reference = mean.copy()
    reference[0, 0] += 2 * 5**0.5 - 0.01  # just inside two standard deviations of sqrt(1 + 2²)
    reference[0, 1] += 2 * 5**0.5 + 0.01
    reference[5, 5] += 100.0  # observed: does not count
    reference[0, 2] += 2.01  # within the noise, but not within two standard deviations of the mean
    found = summary.summarise(restoration(mean), observed, reference)
    assert found["coverage"] == 0.75 and found["coverage_std"] == 0.25
    assert summary.as_text(found).splitlines()[-1] == (
        "75.0 % of the missing entries lie within mean ± 2·sqrt(std² + noise²), 25.0 % within mean ± 2·std"
    )
    assert {"coverage", "coverage_std"} <= set(summary.scores_of(found))


def test_nothing_is_left_that_json_cannot_hold():
    odd = {
        1: np.float32(2),
        "a": np.array([1.0, np.nan]),
        "b": (np.int64(3), float("inf")),
        "c": np.bool_(True),
    }
    assert summary.json_ready(odd) == {"1": 2.0, "a": [1.0, None], "b": [3, None], "c": True}


def test_text_without_reference(mean):
    lines = summary.as_text(summary.summarise(restoration(mean), np.ones(mean.shape, bool))).splitlines()
    assert lines == ["kfa: 9 sweeps over 25 patches of 2x2 in 1 min 5 s", "noise 2, 3 of 4 atoms used"]


def test_extended_precision_is_valid_json():
    found = summary.json_ready({"x": np.longdouble(2.5), "y": [np.longdouble("inf"), np.float32(0.5)]})
    assert found == {"x": 2.5, "y": [None, 0.5]} and type(found["x"]) is float
    assert summary.json_ready(np.full(2, 1.5, np.longdouble)) == [1.5, 1.5]


@pytest.mark.parametrize("size, dtype", [(1.0, np.float32), (1e302, np.float64), (1e-298, np.float64)])
def test_std_is_written_in_a_precision_that_holds_it(tmp_path, size, dtype):
    from kruskal import data
    from kruskal.cli.job import Job
    from kruskal.cli.outputs import write_outputs

    np.save(tmp_path / "in.npy", np.full((3, 3), size))
    inputs = SimpleNamespace(loaded=data.read(tmp_path / "in.npy"))
    job = Job("inpaint", tmp_path / "in.npy", tmp_path / "out.npy", std=tmp_path / "std.npy")
    write_outputs(job, inputs, restoration(np.full((3, 3), size), std=np.full((3, 3), size / 4)), {})
    written = np.load(tmp_path / "std.npy")
    assert written.dtype == dtype and (written == dtype(size / 4)).all()
