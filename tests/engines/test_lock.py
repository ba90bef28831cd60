"""Two runs in one folder, and signals that come while a run is saved."""

import os
import signal

import numpy as np
import pytest

from kruskal.engines import checkpoint
from kruskal.errors import InputError

DATA = (np.zeros((2, 2)), np.ones((2, 2), bool), {})


def test_a_folder_that_is_held_cannot_be_begun(tmp_path):
    """Not a file of it is written before the folder is held."""
    folder = tmp_path / "run"
    folder.mkdir()
    with checkpoint.locked(folder):
        assert checkpoint.in_use(folder)
        with pytest.raises(InputError, match="is in use by another process"):
            checkpoint.begin(folder, *DATA)
        assert os.listdir(folder) == ["lock"]
    assert not checkpoint.in_use(folder)
    checkpoint.begin(folder, *DATA)
    assert sorted(os.listdir(folder)) == ["input.npz", "state.json"]


def test_a_lock_whose_file_is_gone_holds_nothing(tmp_path, monkeypatch):
    """Its holder removed the file after it was opened here: another process may hold a new one."""
    path = tmp_path / "lock"
    real = checkpoint.os.fstat

    def replaced(number):
        found = real(number)
        path.unlink()
        path.touch()
        return found

    monkeypatch.setattr(checkpoint.os, "fstat", replaced)
    with pytest.raises(InputError, match="is in use by another process"), checkpoint.locked(tmp_path):
        pass


def test_signals_wait_until_the_state_is_saved():
    before = signal.getsignal(signal.SIGINT)
    with checkpoint.undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before
