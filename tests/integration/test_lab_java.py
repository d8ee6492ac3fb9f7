"""Other Javas than the machine's, and other Storms than that of all other tests."""

import os
from itertools import zip_longest
from pathlib import Path

import pytest

from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, plan_lab, sweep
from deploy.lab.home.versions import storm_version, storm_versions
from deploy.lab.layout import java, java_home
from deploy.lab.operator import beside
from tests.clusters import CALM

pytestmark = pytest.mark.cluster
TOPOLOGY = "java-test"
JAVAS = [21, 25]
STORMS = [one.version for one in storm_versions().values() if one.level == "live"]
OTHERS = [one for one in STORMS if one != storm_version().version]


# A cluster takes a minute to start: it has another Java and another Storm, as far as there are. One
# with another Java alone is tried by `make test-long` and by the matrix of a hosted runner.
@pytest.mark.parametrize(
    ("java_version", "storm"),
    [
        pytest.param(java_version, storm, marks=[] if storm else pytest.mark.long)
        for java_version, storm in zip_longest(JAVAS, OTHERS)
    ],
)
def test_a_move_loses_nothing(java_version: int | None, storm: str | None) -> None:
    missing = None
    try:
        program = java(java_home(java_version) if java_version else None)
    except LabError as error:
        missing, java_version, program = error, None, java()
    if storm or not missing:
        move_one(Path(program).resolve(), java_version, storm)
    if missing:
        pytest.skip(str(missing))


def move_one(program: Path, java_version: int | None, storm: str | None) -> None:
    """Move an executor, and look whether all tuples are acked and no worker has restarted."""
    sweep()
    with plan_lab(
        f"java-{os.getpid()}",
        nodes=1,
        hooks_jar=HOOKS_JAR,
        conf=CALM,
        java_version=java_version,
        storm_version=storm,
    ) as lab:
        lab.submit(TOPOLOGY, {"topology.workers": 2}, rate_tps=100)
        lab.wait_ready(TOPOLOGY)
        pids = lab.worker_pids()
        assert {Path(f"/proc/{pid}/exe").resolve() for pid in pids.values()} == {program}
        with beside(lab, TOPOLOGY) as operator:
            placement = operator.placement()
            executor = placement.free[0]
            source = placement.slot_of[executor]
            (target,) = {*placement.slot_of.values()} - {source}
            done = operator.follow(operator.ask(executor, target), lambda now: now.ended)
            assert (done.state, done.reason) == ("MOVED", done.reason)
        totals = lab.ledger(TOPOLOGY).drain()
        assert totals.emitted == totals.acked > 0
        assert (totals.failed, totals.double_acked) == (0, 0)
        assert lab.worker_pids() == pids
