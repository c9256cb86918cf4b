"""The structure of the package: what docs/explanation/architecture.md says of it holds."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "focuscrawl"
MOST_LAYERS = 7


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return all modules of the package that one imports, lazily and for types, too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = (f"{node.module}.{each.name}" for each in node.names)
            found.update(name if name in MODULES else node.module for name in names)
    return frozenset(found & MODULES.keys() - {module})


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter({module: imports_of(module) for module in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' -> '.join(error.args[1])}")


def test_no_two_modules_share_a_name() -> None:
    names = Counter(path.stem for path in MODULES.values())
    shared = {name for name, count in names.items() if count > 1}
    assert shared <= {"__init__", "__main__"}


@pytest.mark.parametrize(
    "package", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
)
def test_a_package_has_few_layers(package: str) -> None:
    inside = {
        module: path
        for module, path in MODULES.items()
        if module.startswith(f"focuscrawl.{package}.") and path.stem != "__init__"
    }

    @cache
    def layer_of(module: str) -> int:
        below = imports_of(module) & inside.keys()
        return 1 + max((layer_of(each) for each in below), default=0)

    layers = {module: layer_of(module) for module in inside}
    assert max(layers.values(), default=0) <= MOST_LAYERS, layers


def test_every_file_of_the_architecture_page_is_there() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("## Where to change what") : text.index("## Contract")]
    rows = table.count("\n| ") - 1
    files = re.findall(r"`([\w/]+(?:\.py|/))`", table)
    assert rows >= 25
    assert len(files) >= rows
    assert [file for file in files if not (PACKAGE / file).exists()] == []
