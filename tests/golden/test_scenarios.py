"""Every scenario in tests/golden/scenarios still gives what its file has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core import _multiarray_umath as numpy_core  # type: ignore[attr-defined]

from deploy.sim.report import simulate_all, text
from deploy.sim.scenario import parse, split

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
# Two minutes each: two of the same kind as `random_moves_of_2_to_8`, and one up to 16 nodes.
LONG = ("random_moves", "random_moves_of_16", "scaling")


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=[pytest.mark.long] if file.stem in LONG else [])
        for file in FILES
    ],
)
def test_scenario(file: Path) -> None:
    given = file.read_text()
    report = simulate_all(parse(given))
    assert report.holds
    assert text(report) == split(given)[1], f"review: python -m deploy simulate {file} --rewrite"


def test_a_run_is_the_same_on_a_lesser_processor() -> None:
    """Its logarithms differ in their last digits, which once became other decisions."""
    has = numpy_core.__cpu_features__
    ours = [name for name in numpy_core.__cpu_dispatch__ if has[name]]
    if not ours:
        pytest.skip("numpy uses nothing of this processor that a lesser one has not")
    (file,) = (file for file in FILES if file.stem == "random_moves_of_2_to_8")
    done = subprocess.run(
        [sys.executable, "-m", "deploy", "simulate", str(file)],
        env=os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(ours)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.rstrip() == split(file.read_text())[1].rstrip()
