"""Other Javas than the machine's, and other Storms than that of all other tests."""

import os
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
STORMS = [one.version for one in storm_versions().values() if one.level == "live"]


@pytest.mark.parametrize("version", [21, 25])
def test_a_move_loses_nothing_on_a_later_java(version: int) -> None:
    try:
        program = Path(java(java_home(version))).resolve()
    except LabError as missing:
        pytest.skip(str(missing))
    move_one(program, java_version=version)


@pytest.mark.parametrize("version", [one for one in STORMS if one != storm_version().version])
def test_a_move_loses_nothing_on_another_storm(version: str) -> None:
    move_one(Path(java()).resolve(), storm=version)


def move_one(program: Path, java_version: int | None = None, storm: str | None = None) -> None:
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
