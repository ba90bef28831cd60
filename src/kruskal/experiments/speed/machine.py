"""What a measurement ran on; neither the name of the machine nor any path."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from kruskal.engines.threads import check_threads

_PACKAGES = ("kruskal", "numpy", "scipy", "numba", "llvmlite", "scikit-learn", "bm3d", "bm4d")


def machine() -> dict[str, Any]:
    """Processor, memory, how busy it is, system and the versions of everything that matters to speed."""
    import numpy as np

    np.ones((2, 2)) @ np.ones((2, 2))  # BLAS is only listed once it is loaded
    blas = {
        f"{library['internal_api']} {library.get('version')} {library.get('architecture', '')}".strip()
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return {
        "cpu": _after_colon("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": check_threads(None),
        "memory_bytes": 1024 * int((_after_colon("/proc/meminfo", "MemTotal") or "0").split()[0]),
        "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": ", ".join(sorted(blas)) or "unknown",
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _after_colon(file: str, name: str) -> str | None:
    """The first value of a name in a file of lines ``name : value``."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
