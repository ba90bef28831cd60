"""Run the command line inside this process, on small arrays."""

import numpy as np
import pytest
from cli_tools import Answer, listing

from kruskal import data
from kruskal.cli import main


@pytest.fixture
def cli(capfd, tmp_path, monkeypatch):
    """Run a command in an empty folder; paths may be relative to it."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        capfd.readouterr()
        status = main([str(word) for word in words])
        return Answer(status, *capfd.readouterr())

    return run


@pytest.fixture
def picture(tmp_path):
    """A smooth picture with texture, 20x20 uint8, as picture.png."""
    rows, columns = np.mgrid[:20, :20]
    values = 120 + 60 * np.sin(rows / 4) + 40 * np.cos(columns / 2)
    array = np.rint(values).astype(np.uint8)
    data.write(tmp_path / "picture.png", array, dtype="uint8")
    return array


@pytest.fixture
def damaged(tmp_path, picture):
    """Half of the picture with noise, as damaged.npz; values and observed."""
    result = data.corrupt(picture, keep=0.5, noise=3, seed=1)
    data.write_corrupted(
        tmp_path / "damaged.npz", result.values, result.observed, data.read(tmp_path / "picture.png").metadata
    )
    return result


@pytest.fixture
def refused(cli, tmp_path):
    """Run a command that must be refused: one sentence, status 2, nothing new on the disk."""

    def run(*words, status=2):
        before = listing(tmp_path)
        answer = cli(*words)
        lines = [line for line in answer.err.splitlines() if not line.startswith("kruskal: sweep")]
        assert answer.status == status, answer
        assert answer.out == ""
        assert len(lines) == 1, answer.err
        assert lines[0].startswith("kruskal: ")
        assert lines[0].endswith((".", ")"))
        assert listing(tmp_path) == before
        return lines[0].removeprefix("kruskal: ")

    return run
