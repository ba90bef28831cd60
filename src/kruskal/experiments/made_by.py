"""Which code made a result: the version, and a digest of the sources that results depend on."""

import hashlib
from functools import cache
from pathlib import Path

from kruskal import __version__

_NO_INFLUENCE = ("cli", "report", "experiments")


@cache
def made_by() -> str:
    """The version and eight digits that change with the sampler, the defaults and the reading of data."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in _NO_INFLUENCE:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"
