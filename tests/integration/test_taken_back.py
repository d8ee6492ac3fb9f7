"""A run of moves that makes a live topology slower goes back.

Run it alone: where other work comes or goes while it measures, no change is sure.
"""

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, sweep
from deploy.lab.workloads import judge
from tests.clusters import CALM
from tests.controllers import Running

pytestmark = [pytest.mark.cluster, pytest.mark.long]

NAME = "contends"
# Bolts contend with their source where both are in one JVM, so what crosses less costs more.
CONTENDS = {
    "topology.workers": 2,
    "workload.spouts": 1,
    "workload.splits": 1,
    "workload.sentence.words": 5,
    "workload.zipf.exponent": 1.5,
    "workload.split.local.ns": 6_000_000,
    "workload.count.local.ns": 1_200_000,
}
LIMIT_S = 1200.0


@pytest.fixture(scope="module")
def contending() -> Iterator[tuple[Lab, Running]]:
    """A cluster with a controller in mode auto."""
    sweep()
    # What else the machine does is no CPU of nodes that have their own.
    kind: dict[str, Any] = {"slots": 1, "cores": 2.0, "trimmed": True}
    with plan_lab(f"back-{os.getpid()}", hooks_jar=HOOKS_JAR, conf=CALM, **kind) as lab:
        for node in lab.nodes:
            lab.start_agent(node)
        lab.submit(NAME, CONTENDS, rate_tps=100)
        lab.wait_ready(NAME, limit_s=300)
        controllers = Running(lab)
        controllers.start("auto")
        yield lab, controllers
        controllers.close()


def moves_of(controllers: Running) -> list[dict[str, Any]]:
    done = controllers.ask("history", "-o", "json")
    found: list[dict[str, Any]] = json.loads(done.stdout) if done.returncode == 0 else []
    return found


def test_a_run_that_is_worse_goes_back(contending: tuple[Lab, Running]) -> None:
    lab, controllers = contending
    end_s, moves, back = time.monotonic() + LIMIT_S, list[dict[str, Any]](), list[str]()
    while not back and time.monotonic() < end_s:
        time.sleep(10)
        moves = moves_of(controllers)
        back = [move["executor"] for move in moves if "taken back" in move["effect"]]
    assert back, moves
    effect = next(move["effect"] for move in moves if "taken back" in move["effect"])
    assert effect.startswith("worse, taken back: CPU for each input tuple +"), effect
    where = {move["executor"]: move["source"] for move in reversed(moves)}
    ends = {move["executor"]: move["target"] for move in moves}
    assert {e: ends[e] for e in back} == {e: where[e] for e in back}
    verdict = judge(lab.ledger(NAME))
    assert verdict.ok, verdict
