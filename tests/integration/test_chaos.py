"""A sample of the matrix of `make chaos`: four processes, struck in four phases."""

import shutil
from dataclasses import replace

import pytest

from deploy.lab.cluster import RUNS_DIR, sweep
from tests.chaos.run import Result, run_tries
from tests.chaos.stand import CONF
from tests.chaos.tries import CELLS, Try
from tests.clusters import FRUGAL

pytestmark = pytest.mark.cluster
LAB = "chaos-sample"
SAMPLE = (
    "target-killed@SWITCH",
    "leader-killed@DRAIN",
    "source-agent-killed@UNDO",
    "supervisor-stopped@STOP",
)
# Of the limits of `make chaos`: here a cluster only has to come back, on a machine however busy.
PATIENCE = 3.0


def patient(row: Try) -> Try:
    limit_s = PATIENCE * row.expected.within_s
    return replace(row, expected=replace(row.expected, within_s=limit_s))


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """The tries of the sample, made on one cluster."""
    sweep()
    rows = [patient(cell) for cell in CELLS if cell.name in SAMPLE]
    tries = run_tries(rows, seed=1, lab=LAB, conf={**CONF, **FRUGAL})
    found = {result.name: result for result in tries}
    # After a wedged try the folder has another name.
    shutil.rmtree(RUNS_DIR / LAB, ignore_errors=True)
    return found


@pytest.mark.parametrize("name", SAMPLE)
def test_a_fault_in_mid_move_is_survived(results: dict[str, Result], name: str) -> None:
    print(results[name])
    assert results[name].wrong == []
