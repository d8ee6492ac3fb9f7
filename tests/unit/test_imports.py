"""Imports point down only."""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PRODUCT = ("agent", "controller", "kvstore", "migration")
# Those run from a checkout only.
PACKAGES = (*PRODUCT, "deploy", "tests/bench", "tests/papers")

# Longest prefix wins. What a module may import of ours, apart from its own package.
ALLOWED: dict[str, frozenset[str]] = {
    "kvstore": frozenset(),
    "migration": frozenset({"kvstore.endpoint", "kvstore.ensemble", "kvstore.printable"}),
    "agent": frozenset({"kvstore", "migration"}),
    "controller": frozenset(),
    "controller.core": frozenset(
        {
            "migration.meters",
            "migration.model",
            "migration.observation",
            "migration.protocol",
            "migration.settings",
            "migration.table",
        }
    ),
    "controller.errors": frozenset(),
    "controller.output": frozenset({"controller", "kvstore.logs"}),
    "controller.console": frozenset({"kvstore.printable"}),
    "controller.journal_place": frozenset({"migration"}),
    "controller.strict": frozenset({"controller.errors"}),
    "controller.snapshot": frozenset(
        {
            "controller.core",
            "controller.errors",
            "controller.policies",
            "controller.strict",
            "migration.model",
        }
    ),
    "controller.windows": frozenset({"migration"}),
    "controller.config": frozenset(
        {
            "controller.policies",
            "controller.core",
            "controller.errors",
            "controller.journal_place",
            "controller.strict",
            "controller.windows",
            "kvstore.ensemble",
            "migration",
        }
    ),
    "controller.policies": frozenset(
        {
            "controller.core",
            "controller.errors",
            "migration.extras",
            "migration.model",
            "migration.settings",
        }
    ),
    "controller.hold": frozenset({"controller.config", "controller.core", "controller.windows"}),
    "controller.report": frozenset(
        {"controller.config", "controller.core", "controller.policies", "migration.model"}
    ),
    "controller.cycle": frozenset(
        {
            "controller.config",
            "controller.core",
            "controller.hold",
            "controller.policies",
            "controller.report",
            "migration.model",
        }
    ),
    "controller.searching": frozenset({"controller.core", "kvstore.logs"}),
    "controller.walk": frozenset(
        {"controller.config", "controller.core", "controller.policies", "migration.model"}
    ),
    "controller.journal": frozenset(
        {
            "controller.config",
            "controller.core",
            "controller.errors",
            "controller.cycle",
            "controller.report",
            "kvstore.logs",
            "migration",
        }
    ),
    "controller.replay": frozenset(
        {
            "controller.policies",
            "controller.config",
            "controller.core",
            "controller.errors",
            "controller.journal",
            "controller.cycle",
            "controller.report",
            "controller.console",
            "controller.output",
            "migration",
        }
    ),
    "controller.pipeline": frozenset(
        {
            "controller.config",
            "controller.console",
            "controller.core",
            "controller.errors",
            "controller.journal",
            "controller.replay",
            "migration.extras",
            "migration.model",
        }
    ),
    "controller.tune": frozenset(
        {
            "controller.pipeline",
            "controller.config",
            "controller.core",
            "controller.errors",
            "controller.journal",
            "controller.console",
            "controller.output",
            "controller.replay",
            "migration",
        }
    ),
    "controller.ingest": frozenset(
        {
            "controller.config",
            "controller.core",
            "controller.cycle",
            "controller.errors",
            "controller.journal",
            "controller.output",
            "controller.report",
            "migration",
        }
    ),
    "controller.html": frozenset(),
    "controller.weeks": frozenset(
        {
            "controller.config",
            "controller.console",
            "controller.core",
            "controller.errors",
            "controller.html",
            "controller.journal",
            "controller.output",
            "controller.pipeline",
            "controller.tune",
            "migration.model",
        }
    ),
    "controller.storm": frozenset(
        {
            "controller.policies",
            "controller.config",
            "controller.core",
            "controller.errors",
            "controller.journal",
            "controller.cycle",
            "controller.report",
            "controller.searching",
            "controller.walk",
            "kvstore",
            "migration",
        }
    ),
    "controller.assess": frozenset(
        {
            "controller.config",
            "controller.core",
            "controller.errors",
            "controller.html",
            "controller.walk",
        }
    ),
    "controller.page": frozenset(
        {
            "controller.cli.status_document",
            "controller.core.figures",
            "controller.errors",
            "kvstore.errors",
            "migration",
        }
    ),
    "controller.cli": frozenset({"agent", "controller", "kvstore", "migration"}),
    "deploy": frozenset({"agent", "controller", "kvstore", "migration"}),
    "tests.bench": frozenset(
        {"agent", "controller", "deploy", "kvstore", "migration", "tests.clusters"}
    ),
    "tests.papers": frozenset(
        {"controller", "deploy.sim", "kvstore", "migration", "tests.snapshots"}
    ),
}
OURS = frozenset({*PRODUCT, "deploy", "tests"})
PURE = frozenset({"controller.core", "controller.policies"})
PURE_LIBRARIES = frozenset(
    {
        "abc",
        "collections",
        "contextlib",
        "contextvars",
        "dataclasses",
        "datetime",
        "enum",
        "functools",
        "hashlib",
        "heapq",
        "importlib",
        "itertools",
        "math",
    }
    | {"msgspec", "networkx", "numpy", "re", "types", "typing", "zlib"}
)


def sources(package: Path) -> Iterator[Path]:
    """List the files of a package, and do not look where Maven may build at the same time."""
    for folder, below, names in os.walk(package):
        below[:] = set(below) - {"jvm"}
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in PACKAGES:
        for path in sorted(sources(ROOT / package)):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append((name, path))
    return found


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield f"{node.module}"


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def layer(name: str) -> str:
    return max((layer for layer in ALLOWED if within(name, layer)), key=len)


@pytest.mark.parametrize(("name", "path"), modules(), ids=[name for name, _ in modules()])
def test_imports_point_down(name: str, path: Path) -> None:
    own = layer(name)
    for target in imported(path):
        if target.partition(".")[0] in OURS and not within(target, own):
            allowed = any(within(target, prefix) for prefix in ALLOWED[own])
            assert allowed, f"{name} imports {target}"


@pytest.mark.parametrize(("name", "path"), [m for m in modules() if layer(m[0]) in PURE], ids=str)
def test_the_core_is_pure(name: str, path: Path) -> None:
    """No clock, no random numbers, no logging, no input or output."""
    for target in imported(path):
        library = target.partition(".")[0]
        assert library in PURE_LIBRARIES or library in OURS, f"{name} imports {target}"


def test_a_class_name_stands_for_one_thing() -> None:
    found: dict[str, list[str]] = {}
    for name, path in modules():
        if path.relative_to(ROOT).parts[0] in PRODUCT:
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(name)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
