"""How long it takes until something happens: importing the package, and the first sweep with warm caches."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

_IMPORT = "import time; began = time.perf_counter(); import kruskal; print(time.perf_counter() - began)"
_LOAD = "import time; began = time.perf_counter(); import kruskal.restore; print(time.perf_counter() - began)"
_FIRST_SWEEP = """
import time; began = time.perf_counter()
import kruskal, numpy as np
rows, columns = np.mgrid[:32, :32]
x = np.sin(rows / 3.0) + np.cos(columns / 2.0) + 0.02 * np.random.default_rng(0).standard_normal((32, 32))
if {masked}:
    x[np.random.default_rng(1).random(x.shape) < 0.8] = np.nan
kruskal.inpaint(x, patch_shape=(8, 8), n_atoms=16, sweeps=1, burn_in=0, threads=1)
print(time.perf_counter() - began)
"""


def startup(repeats: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Best of several new processes each; the first sweep includes the import and everything it loads."""
    say(f"start-up: {4 * repeats + 2} processes")
    complete, masked = (_FIRST_SWEEP.format(masked=masked) for masked in (False, True))
    for code in (complete, masked):  # fills the cache of compiled kernels
        _seconds(code)
    return {
        "repeats": repeats,
        "import_seconds": _best(_IMPORT, repeats),
        "load_seconds": _best(_LOAD, repeats),
        "first_sweep_seconds": {
            "complete": _best(complete, repeats),
            "masked": _best(masked, repeats),
        },
    }


def _best(code: str, repeats: int) -> float:
    return min(_seconds(code) for _ in range(repeats))


def _seconds(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])
