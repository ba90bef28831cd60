"""The compiled kernels' cache and the word when something is compiled."""

import shutil
import subprocess
import sys
from pathlib import Path

from numba import njit

import kruskal
from kruskal.kernel import watch_compilation

PROGRAM = """
import kruskal.random.philox as p
p.uniform_32(p.philox(1, 2, 3, 4, 5, 6)[0])
print(sum(p.philox.stats.cache_hits.values()), sum(p.philox.stats.cache_misses.values()))
"""


def hits_and_misses(source):
    """Of the first call of a kernel, in a process of its own that imports the package from ``source``."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=source,
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


def test_a_change_in_another_file_of_kernels_makes_the_cache_stale(tmp_path):
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(kruskal.__file__).parent, tmp_path / "kruskal", ignore=skip)
    assert hits_and_misses(tmp_path) == (0, 1)
    assert hits_and_misses(tmp_path) == (1, 0)
    with (tmp_path / "kruskal" / "gibbs" / "pairs.py").open("a") as file:
        file.write("# changed\n")
    assert hits_and_misses(tmp_path) == (0, 1)


def test_compilation_is_noticed_once():
    said = []
    with watch_compilation(lambda: said.append("compiling")) as compilation:
        assert said == [] and compilation.seconds == 0.0
        plus_one = njit(lambda x: x + 1)  # not cached, so compiled in any case
        assert plus_one(1) == 2 and plus_one(1.0) == 2.0
        assert said == ["compiling"]
        seconds = compilation.seconds
        assert plus_one(2) == 3 and 0.0 < seconds == compilation.seconds
    njit(lambda x: x + 2)(1)
    assert said == ["compiling"]
