"""When draws are kept and when a run ends."""

import math

import numpy as np
import pytest

import kruskal
from kruskal.engines.chain import TRACED, Progressed, estimate_shift, next_check
from kruskal.engines.progress import Silent
from kruskal.engines.stopping import SETTLED, Stopping
from kruskal.patches import RunningMoments

X = np.add.outer(np.sin(np.arange(24.0)), np.cos(np.arange(24.0)))
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.7, X, np.nan)
SMALL = {"patch_shape": (4, 4), "n_atoms": 8, "seed": 1, "threads": 1}


def progressed(done=0, draws=0, noise=(), shift=math.inf):
    trace = np.ones((len(noise), len(TRACED)))
    trace[:, TRACED.index("noise_std")] = noise
    moments = RunningMoments(draws, *(np.zeros(1) for _ in range(4)))
    return Progressed(done, None, (), moments, np.zeros(1), trace, 0, np.zeros(0), shift)


def test_a_plain_run():
    plan = Stopping(10, 4)
    assert [plan.keeps(progressed(done), 1e9) for done in range(6)] == [False] * 4 + [True] * 2
    assert [plan.ended(progressed(done, max(0, done - 4)), 1e9) for done in (0, 9, 10)] == [
        False,
        False,
        True,
    ]


def test_burn_in_ends_when_the_trace_is_level():
    plan = Stopping(100, 50, until_converged=True)
    falling, level = np.geomspace(10.0, 1.0, 12), np.full(12, 2.0)
    assert not plan.keeps(progressed(12, noise=falling), 0.0)
    assert plan.keeps(progressed(12, noise=level), 0.0)
    assert not plan.keeps(progressed(9, noise=level[:9]), 0.0)  # too short to tell
    assert plan.keeps(progressed(12, draws=1, noise=falling), 0.0)  # once begun, all are kept
    assert not Stopping(100, 50).keeps(progressed(12, noise=level), 0.0)
    annealed = Stopping(100, 50, until_converged=True, warming=13)
    assert not annealed.keeps(progressed(12, noise=level), 0.0)
    ramp = np.concatenate([falling, [1.0], level])  # what is annealed says nothing
    assert not annealed.keeps(progressed(22, noise=ramp[:22]), 0.0)
    assert annealed.keeps(progressed(25, noise=ramp), 0.0)
    assert not Stopping(100, 50, time_budget=1.0, warming=13).keeps(progressed(12), 9.0)


def test_a_run_ends_when_the_estimate_has_settled():
    plan = Stopping(100, 50, until_converged=True)
    assert plan.ended(progressed(30, draws=15, shift=0.9 * SETTLED), 0.0)
    assert not plan.ended(progressed(30, draws=15, shift=1.1 * SETTLED), 0.0)
    assert not plan.ended(progressed(30, draws=0, shift=0.0), 0.0)
    assert not Stopping(100, 50).ended(progressed(30, draws=15, shift=0.0), 0.0)


def test_a_time_budget():
    plan = Stopping(1000, 500, time_budget=10.0)
    assert not plan.keeps(progressed(20), 4.9) and plan.keeps(progressed(20), 5.0)
    assert not plan.ended(progressed(20, draws=3), 9.0)
    assert plan.ended(progressed(20, draws=3), 9.6)  # another sweep of half a second would not fit
    assert not plan.ended(progressed(20, draws=0), 99.0)  # there is always a result


def test_shift_is_in_units_of_the_std():
    assert estimate_shift(np.array([1.0, 3.0]), np.array([1.0, 1.0]), np.array([4.0, 4.0])) == pytest.approx(
        math.sqrt(2.0) / 4.0
    )
    assert estimate_shift(np.ones(2), np.zeros(2), np.zeros(2)) == 0.0
    assert [next_check(draws) for draws in (0, 5, 10, 15)] == [10, 10, 15, 23]


def test_until_converged_stops_early_and_can_be_resumed(tmp_path):
    whole = kruskal.inpaint(HOLES, until_converged=True, sweeps=400, **SMALL)
    sweeps = len(whole.trace["noise_std"])
    assert whole.kept >= 15 and sweeps < 400

    class Stop:
        def start(self, total, done=0):
            pass

        def note(self, text):
            pass

        def update(self, done, values):
            if done == sweeps - 3:
                raise KeyboardInterrupt

        def stop(self):
            pass

    with pytest.raises(KeyboardInterrupt):
        kruskal.inpaint(
            HOLES, until_converged=True, sweeps=400, checkpoint=tmp_path / "c", progress=Stop(), **SMALL
        )
    again = kruskal.resume(tmp_path / "c", threads=1)
    assert len(again.trace["noise_std"]) == sweeps and again.kept == whole.kept
    np.testing.assert_array_equal(again.mean, whole.mean)


def test_time_budget_ends_a_run():
    result = kruskal.inpaint(HOLES, sweeps=100_000, time_budget=1.0, **SMALL)
    assert 1 <= result.kept < len(result.trace["noise_std"]) < 100_000


def test_a_run_that_ended_by_its_budget_stays_ended(tmp_path):
    first = kruskal.inpaint(HOLES, sweeps=100_000, time_budget=0.5, checkpoint=tmp_path / "c", **SMALL)
    again = kruskal.resume(tmp_path / "c", threads=1)
    np.testing.assert_array_equal(first.mean, again.mean)
    assert again.kept == first.kept


def test_a_run_says_that_it_converged_and_not_that_time_was_up():
    class Told(Silent):
        def __init__(self):
            self.notes = []

        def note(self, text):
            self.notes.append(text)

    told = Told()
    result = kruskal.inpaint(HOLES, **SMALL, until_converged=True, progress=told)
    sweeps = len(result.trace["noise_std"])
    assert sweeps < result.settings["burn_in"]  # or the other note could not come
    converged = f"converged in sweep {sweeps}, the first {sweeps - result.kept} of which are not kept"
    assert [note for note in told.notes if "compil" not in note] == [converged]
