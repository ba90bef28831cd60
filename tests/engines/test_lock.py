"""Two runs in one folder, and signals that come while a run is saved."""

import errno
import os
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from kruskal.engines import checkpoint, lock
from kruskal.errors import InputError

DATA = (np.zeros((2, 2)), np.ones((2, 2), bool), {})


@contextmanager
def held_elsewhere(folder):
    """A folder that another thread holds."""
    holds, enough = threading.Event(), threading.Event()

    def hold():
        with lock.locked(folder):
            holds.set()
            enough.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert holds.wait(60)
        yield
    finally:
        enough.set()
        thread.join()


def test_a_folder_is_held_by_one(tmp_path):
    """By whoever came first, who may hold it again; what killed runs left is removed by a holder only."""
    (tmp_path / ".kruskal-1").touch()
    with held_elsewhere(tmp_path):
        (tmp_path / ".kruskal-2").touch()
        assert lock.in_use(tmp_path)
        with pytest.raises(InputError, match="in use by another process"), lock.locked(tmp_path):
            pass
        assert sorted(os.listdir(tmp_path)) == [".kruskal-2", "lock"]
    with lock.locked(tmp_path), lock.locked(tmp_path / "." / "x" / ".."):
        assert not lock.in_use(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_held_cannot_be_begun(tmp_path):
    """Not a file of it is written before the folder is held."""
    folder = tmp_path / "run"
    folder.mkdir()
    with held_elsewhere(folder):
        assert lock.in_use(folder)
        with pytest.raises(InputError, match="is in use by another process"):
            checkpoint.begun(folder, *DATA).__enter__()
        assert os.listdir(folder) == ["lock"]
    assert not lock.in_use(folder)
    with checkpoint.begun(folder, *DATA):
        assert (folder / "lock").exists()
    assert sorted(os.listdir(folder)) == ["input.npz", "state.json"]


def test_a_lock_whose_file_is_gone_holds_nothing(tmp_path, monkeypatch):
    """Its holder removed the file after it was opened here: another process may hold a new one."""
    path = tmp_path / "lock"
    real = lock.os.fstat

    def replaced(number):
        found = real(number)
        path.unlink()
        path.touch()
        return found

    monkeypatch.setattr(lock.os, "fstat", replaced)
    with pytest.raises(InputError, match="is in use by another process"), lock.locked(tmp_path):
        pass


def test_a_short_look_at_the_lock_refuses_nobody(tmp_path, monkeypatch):
    """Another process looks whether the folder is in use, and lets go at once."""
    refusals = [BlockingIOError, BlockingIOError]
    real = lock.fcntl.flock

    def flock(*arguments):
        if refusals:
            raise refusals.pop()
        real(*arguments)

    monkeypatch.setattr(lock.fcntl, "flock", flock)
    with lock.locked(tmp_path):
        assert not refusals and (tmp_path / "lock").exists()
    assert not lock.in_use(tmp_path) and os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "number, sentence", [(errno.ENOSYS, None), (errno.ENOLCK, None), (errno.EIO, "cannot be locked")]
)
def test_a_disk_without_locks(tmp_path, monkeypatch, number, sentence):
    """Then a run goes on without, but not when the disk fails."""

    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock.fcntl, "flock", flock)
    if sentence is None:
        with lock.locked(tmp_path):
            pass
    else:
        with pytest.raises(InputError, match=sentence), lock.locked(tmp_path):
            pass


def test_a_forked_process_holds_nothing(tmp_path):
    """And takes no lock away from the process that it came from."""
    with lock.locked(tmp_path):
        child = os.fork()
        if child == 0:  # no assertion here: its failure would go on with the tests in two processes
            refused = lock.in_use(tmp_path)
            os._exit(0 if refused else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert (tmp_path / "lock").exists()


@pytest.mark.usefixtures("interruptible")
def test_signals_wait_until_the_state_is_saved():
    before = signal.getsignal(signal.SIGINT)
    with lock.undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before
    saved = False
    with pytest.raises(KeyboardInterrupt), lock.undisturbed(afterwards=True):
        os.kill(os.getpid(), signal.SIGINT)
        saved = True
    assert saved and signal.getsignal(signal.SIGINT) is before
