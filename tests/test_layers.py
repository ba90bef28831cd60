"""Imports point downwards only (docs/design.md).

data, patches, tensor, random <- gibbs <- deep <- models <- engines
    <- defaults, online, settings, choose, running, restore, learning, estimators <- report, experiments
    <- cli
"""

import ast
from pathlib import Path

import pytest

import kruskal

ROOT = Path(kruskal.__file__).parent
LAYERS = [
    {"kernel", "errors"},
    {"data", "patches", "tensor", "random"},
    {"gibbs"},
    {"deep"},
    {"models"},
    {"engines"},
    {"defaults", "online", "settings", "choose", "restoration", "restore", "reuse", "learning", "estimators"}
    | {"ongoing", "large", "blockwise", "running", "option_checks"},
    {"report", "experiments"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
WITHIN = {
    ("restore", "restoration"),
    ("settings", "defaults"),
    ("settings", "online"),
    ("settings", "option_checks"),
    ("restore", "online"),
    ("restore", "option_checks"),
    ("choose", "defaults"),
    ("choose", "settings"),
    ("restore", "choose"),
    ("restore", "defaults"),
    ("restore", "settings"),
    ("restore", "reuse"),
    ("restore", "running"),
    ("running", "choose"),
    ("running", "restoration"),
    ("running", "settings"),
    ("learning", "defaults"),
    ("learning", "option_checks"),
    ("learning", "settings"),
    ("estimators", "defaults"),
    ("estimators", "learning"),
    ("estimators", "ongoing"),
    ("estimators", "settings"),
    ("blockwise", "defaults"),
    ("blockwise", "ongoing"),
    ("blockwise", "settings"),
    ("large", "blockwise"),
    ("large", "settings"),
    ("ongoing", "learning"),
    ("ongoing", "settings"),
    ("estimators", "restore"),
    ("estimators", "restoration"),
    ("experiments", "report"),
}
"""Imports between parts of one layer that are wanted."""


def imported(path: Path):
    """(line, part) of everything that a module of the package imports from the package, lazily or not."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import, which this test does not follow"
            names = [node.module or ""]
            if node.module == "kruskal":
                names = [f"kruskal.{alias.name}" for alias in node.names if alias.name != "__version__"]
        for name in names:
            if name.split(".")[0] == "kruskal":
                yield node.lineno, name.partition(".")[2].partition(".")[0]


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert part in LEVEL, f"{part} is in no layer: give it one"
    for line, other in imported(path):
        if other == part:
            continue
        assert other in LEVEL, f"{path.name}:{line} imports kruskal.{other}, which is in no layer"
        allowed = LEVEL[other] < LEVEL[part] or (part, other) in WITHIN
        assert allowed, f"{path.name}:{line}: {part} must not import {other}"


def test_the_test_sees_imports():
    """It would be easy to pass by finding nothing."""
    found = {(path.stem, other) for path in MODULES for _, other in imported(path)}
    assert {("base", "gibbs"), ("restore", "engines"), ("checkpoint", "data")} <= found


def test_importing_the_package_is_light():
    """`import kruskal` alone imports nothing heavy."""
    import subprocess
    import sys

    code = "import sys, kruskal; print([m for m in ('numpy', 'numba', 'scipy') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
