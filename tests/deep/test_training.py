"""Training: the same for any number of threads, exact resume, nothing lost when it is interrupted."""

import numpy as np
import pytest

import kruskal
from kruskal.engines import training, training_files
from kruskal.engines.training import Training
from kruskal.errors import InputError

from .bars import SIZES, bars

SHORT = {**SIZES, "epochs": 3, "least_steps": 0, "batch_size": 25, "seed": 3, "chains": 1}


def same(one, other):
    """Whether two fits are the same to the last bit."""
    arrays = zip([*one.atoms_, one.coef_, one.intercept_], [*other.atoms_, other.coef_, other.intercept_])
    return all((a == b).all() for a, b in arrays)


@pytest.mark.parametrize("method", ["gradient", "mcem"])
@pytest.mark.parametrize("atoms", ["gaussian", "kruskal"])
def test_threads_do_not_matter(method, atoms):
    X, y = bars(102)  # the last minibatch has fewer images than parts
    options = {**SHORT, "method": method, "atoms": atoms, "generative": 0.02, "cells": "drawn", "rank": 2}
    fits = [kruskal.DGDN(**options, threads=threads).fit(X, y) for threads in (1, 2)]
    assert same(*fits)
    assert (fits[0].decision_function(X) == fits[1].decision_function(X)).all()


@pytest.mark.parametrize("method", ["gradient", "mcem"])
def test_an_interrupted_fit_goes_on_to_the_same_end(method, tmp_path, monkeypatch):
    X, y = bars(110)
    X_other, y_other = bars(40, seed=9)
    options = {**SHORT, "method": method, "generative": 0.02, "cells": "drawn", "threads": 2}
    validation = (X_other, y_other) if method == "gradient" else None
    whole = kruskal.DGDN(**options).fit(X, y, validation)

    begun = []
    step = training.rmsprop.step

    def interrupted(*arguments):
        begun.append(1)
        if len(begun) == 8:  # in the middle of the second epoch
            raise KeyboardInterrupt
        return step(*arguments)

    folder = tmp_path / "run"
    options |= {"checkpoint": folder, "checkpoint_seconds": 1e9}
    monkeypatch.setattr(training.rmsprop, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kruskal.DGDN(**options).fit(X, y, validation)
    monkeypatch.undo()
    assert sorted(path.name for path in folder.iterdir()) == ["training-00000007.npz", "training.json"]

    monkeypatch.setattr(training.rmsprop, "step", lambda *arguments: begun.append(1) or step(*arguments))
    resumed = kruskal.DGDN(**options).fit(X, y, validation)
    assert len(begun) == 8 + 15 - 7
    assert same(whole, resumed)
    for name, values in whole.trace_.items():
        assert (values == resumed.trace_[name]).all(), name
    again = kruskal.DGDN(**options).fit(X, y, validation)  # ended: nothing is done
    assert len(begun) == 8 + 15 - 7 and same(whole, again)

    with pytest.raises(InputError, match="other data or settings"):
        kruskal.DGDN(**(options | {"seed": 4})).fit(X, y, validation)
    with pytest.raises(InputError, match="other data or settings"):
        kruskal.DGDN(**options).fit(X[:100], y[:100], validation)


def test_damaged_checkpoints_are_refused(tmp_path):
    X, y = bars(60)
    folder = tmp_path / "run"
    kruskal.DGDN(**SHORT, checkpoint=folder).fit(X, y)
    state = next(folder.glob("*.npz"))
    with np.load(state) as archive:
        arrays = dict(archive)
    without = {name: array for name, array in arrays.items() if name != "parameters"}
    for damage in (without, arrays | {"parameters": arrays["parameters"][:-1]}, b"no archive", b""):
        if isinstance(damage, bytes):
            state.write_bytes(damage)
        else:
            np.savez(state, **damage)
        with pytest.raises(InputError, match="cannot be read"):
            kruskal.DGDN(**SHORT, checkpoint=folder).fit(X, y)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        kruskal.DGDN(**SHORT, checkpoint=tmp_path / "other").fit(X, y)
    with pytest.raises(InputError, match="does not exist"):
        kruskal.DGDN(**SHORT, checkpoint=tmp_path / "no" / "run").fit(X, y)


def test_a_checkpoint_that_cannot_be_written_does_not_cost_the_fit(tmp_path, monkeypatch):
    def full(*_):
        raise InputError("the disk is full")

    X, y = bars(60)
    monkeypatch.setattr(training_files, "save", full)
    fitted = kruskal.DGDN(**SHORT, checkpoint=tmp_path / "run").fit(X, y)
    assert same(fitted, kruskal.DGDN(**SHORT).fit(X, y))


def test_every_image_is_seen_once_in_an_epoch(monkeypatch):
    seen = []
    gradient = training.DeepModel.gradient

    def watched(self, parameters, scales, batch, engine, draw):
        seen.append((batch.items, draw.number))
        return gradient(self, parameters, scales, batch, engine, draw)

    monkeypatch.setattr(training.DeepModel, "gradient", watched)
    X, y = bars(110)
    kruskal.DGDN(**SHORT).fit(X, y)
    assert [number for _, number in seen] == list(range(1, 16))
    for epoch in range(3):
        items = np.concatenate([items for items, _ in seen[5 * epoch : 5 * epoch + 5]])
        assert (np.sort(items) == np.arange(110)).all()
    assert (seen[0][0] != seen[5][0]).any()


def test_progress_tells_of_the_epochs():
    class Listener:
        def __init__(self):
            self.said = []

        def start(self, total, done=0, unit="sweep"):
            self.said.append((total, done, unit))

        def note(self, text):
            pass

        def update(self, done, values):
            self.said.append(dict(values))

        def stop(self):
            self.said.append("end")

    X, y = bars(100)
    listener = Listener()
    options = {**SHORT, "batch_size": 5, "generative": 0.1}
    kruskal.DGDN(**options, progress=listener).fit(X, y, validation=bars(30, seed=2))
    assert listener.said[0] == (60, 0, "step") and listener.said[-1] == "end"
    assert set(listener.said[-2]) == {"hinge", "residual", "training_error", "validation_error"}


def test_rmsprop_is_what_it_says():
    from kruskal.deep import rmsprop

    schedule = rmsprop.Schedule(0.1, 10, warm_up=4, averaging=0.5)
    assert schedule.rate_at(2) == pytest.approx(0.05 * 0.5 * (1 + np.cos(0.1 * np.pi)))
    assert schedule.rate_at(10) == pytest.approx(0.1 * 0.5 * (1 + np.cos(0.9 * np.pi)))
    assert rmsprop.Schedule(0.1, 1, warm_up=0).rate_at(1) == 0.1  # the only step is one
    theta, g = np.array([1.0, -2.0]), np.array([0.5, 0.25])
    first = rmsprop.step(rmsprop.begin(theta), g, 1, schedule)
    assert first.squares == pytest.approx(0.01 * g**2)
    assert first.parameters == pytest.approx(theta - schedule.rate_at(1) * 10.0)
    assert first.average == pytest.approx(theta + 0.9 * (first.parameters - theta))
    assert (theta == [1.0, -2.0]).all()


def test_steps_are_pure(monkeypatch):
    """A step that fails leaves the state as it was, so that it can be made again."""
    kept = []
    advance = Training.advance

    def twice(self):
        before = self.now
        arrays = {name: array.copy() for name, array in before.arrays().items()}
        advance(self)
        first, self.now = self.now, before
        after = before.arrays()
        assert all(np.array_equal(after[name], array, equal_nan=True) for name, array in arrays.items())
        advance(self)
        kept.append((first.moving.parameters == self.now.moving.parameters).all())

    monkeypatch.setattr(Training, "advance", twice)
    X, y = bars(50)
    kruskal.KruskalDGDN(**SHORT).fit(X, y)
    assert len(kept) == 6 and all(kept)
