"""What is compiled is kept, and a damaged or a missing place for it does no harm."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
SOURCE = """
from controller.core.compiled import compiled

MORE = 0

@compiled
def double(number):
    return 2 * number
"""


def function(path: Path, name: str) -> Any:
    """Import it as a new process would."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def double(path: Path) -> Any:
    return function(path, "double")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "doubled.py"
    path.write_text(SOURCE)
    return path


def test_what_is_compiled_is_kept(source: Path) -> None:
    assert double(source)(21) == 42
    again = double(source)
    assert again(21) == 42
    assert sum(again.machine.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("left", [b"", b"no pickle"])
def test_damaged_files_are_replaced(source: Path, suffix: str, left: bytes) -> None:
    assert double(source)(21) == 42
    (kept,) = source.parent.rglob(f"*{suffix}")
    kept.write_bytes(left)
    assert double(source)(21) == 42
    again = double(source)
    assert again(21) == 42
    assert sum(again.machine.stats.cache_hits.values()) == 1


CALLER = """
from controller.core.compiled import compiled
from doubled import MORE, double

@compiled
def quadruple(number):
    return double(double(number)) + MORE
"""


def test_a_change_of_what_is_called_compiles_again(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = source.with_name("quadrupled.py")
    caller.write_text(CALLER)
    monkeypatch.syspath_prepend(source.parent)
    # Python itself takes a file for the same that has as many bytes in the same second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def quadruple(number: int) -> tuple[int, int]:
        monkeypatch.delitem(sys.modules, "doubled", raising=False)
        importlib.invalidate_caches()
        found = function(caller, "quadruple")
        return found(number), sum(found.machine.stats.cache_hits.values())

    assert [quadruple(3), quadruple(3)] == [(12, 0), (12, 1)]
    source.write_text(SOURCE.replace("2 * number", "5 * number  # by now"))
    assert [quadruple(3), quadruple(3)] == [(75, 0), (75, 1)]
    source.write_text(source.read_text().replace("MORE = 0", "MORE = 1"))
    assert [quadruple(3), quadruple(3)] == [(76, 0), (76, 1)]


def test_a_full_disk_does_no_harm(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    assert double(source)(21) == 42
    assert not list(source.parent.rglob("*.nb*"))
