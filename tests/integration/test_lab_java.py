"""Storm and the hooks on a later Java than the machine's."""

import os
from pathlib import Path

import pytest

from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, plan_lab, sweep
from deploy.lab.layout import java, java_home
from deploy.lab.operator import beside
from tests.clusters import CALM

pytestmark = pytest.mark.cluster
TOPOLOGY = "java-test"


def test_a_move_loses_nothing_on_java_25() -> None:
    try:
        program = Path(java(java_home(25))).resolve()
    except LabError as missing:
        pytest.skip(str(missing))
    sweep()
    name = f"java-{os.getpid()}"
    with plan_lab(name, nodes=1, hooks_jar=HOOKS_JAR, conf=CALM, java_version=25) as lab:
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
