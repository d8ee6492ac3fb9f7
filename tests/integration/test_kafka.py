"""Storm's own Kafka connectors move with a real broker: `make kafka` builds what this needs."""

import os
from collections.abc import Iterator

import pytest

from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.layout import KAFKA_JAR
from deploy.lab.operator import beside
from deploy.lab.workloads import judge
from migration.model import ExecutorId, Way
from tests.bench.movers import AtRandom
from tests.bench.moves import components, run_moves
from tests.clusters import CALM

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not KAFKA_JAR.exists(), reason="not built: type  make kafka"),
]
NAME = "kafka-test"
# By their classes, of which nothing is declared.
WAYS = {"kafka-bolt": Way.RENEW, "kafka-spout": Way.SPOUT, "offsets": Way.CARRY}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with plan_lab(f"kafka-{os.getpid()}", hooks_jar=HOOKS_JAR, conf=CALM, kafka=True) as lab:
        yield lab


def test_each_offset_is_read_once_and_in_order_through_moves(lab: Lab) -> None:
    lab.submit(NAME, {"topology.workers": 3}, rate_tps=300, workload="kafka")
    lab.wait_ready(NAME)
    with beside(lab, NAME) as operator:
        lab.wait_until(
            "what the bolts keep is known",
            lambda: not any("not known yet" in reason for reason in operator.reasons()),
        )
        component = components(lab, NAME)
        mover = AtRandom(lab, operator, seed=5, pinned=True)
        report = run_moves(lab, mover, NAME, moves=20, interleave=False, block_s=5.0)
        print(report)
        ways = operator.ways()
    verdict = judge(lab.ledger(NAME), 60.0)
    assert verdict.ok, verdict
    assert report["states"] == {"MOVED": 20}
    assert report["failed"] == report["double_acked"] == report["pending"] == 0
    moved = {component[move["executor"]] for move in report["moves"]}
    assert moved >= WAYS.keys()
    for executor, name in component.items():
        if name in WAYS:
            assert ways.get(ExecutorId.parse(executor)) == WAYS[name]
