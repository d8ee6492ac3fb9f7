"""Every scenario in tests/golden/scenarios still gives what its file says."""

from pathlib import Path

import pytest

from deploy.sim.report import simulate_all, text
from deploy.sim.scenario import parse, split

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_scenario(file: Path) -> None:
    given = file.read_text()
    report = simulate_all(parse(given))
    assert report.holds
    assert text(report) == split(given)[1], f"review: python -m deploy simulate {file} --rewrite"
