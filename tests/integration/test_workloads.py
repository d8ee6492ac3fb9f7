"""Each workload of the lab runs, comes out right, and is seen to be wrong once it has forgotten."""

import os
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.workloads import WORKLOADS, Verdict, judge
from tests.clusters import CALM

pytestmark = [pytest.mark.cluster, pytest.mark.long]

# In test_lab.py, test_moves.py and test_kafka.py; there is a slot for each of the others only.
ELSEWHERE = {"wordcount", "partitions", "connections", "numbers", "kafka"}
# Two of a kind side by side must not mix.
RUNS = {**{name: name for name in WORKLOADS if name not in ELSEWHERE}, "counters-2": "counters"}
CONF = {
    "topology.workers": 1,
    "topology.acker.executors": 1,
    "workload.spouts": 1,
    "workload.splits": 1,
    "workload.counts": 2,
}
OF_ONE = {
    "unacked": {"topology.acker.executors": 0},
    "counters": {"workload.sentence.bytes": 2000},
    "counters-2": {"workload.seed": 2, "workload.spouts": 2},
    "drift": {"workload.lines": 1024, "workload.shift.lines": 128},
    "harmonic": {"workload.lines": 1024, "workload.shift.lines": 128},
    "heap": {"workload.heap.mb": 8},
    "page-views": {"workload.parses": 1, "workload.places": 1, "workload.views": 2},
    "slow-prepare": {"workload.prepare.secs": 3},
}
RATE_TPS = 150
# All of them starting at once would keep other tests waiting on a busy machine.
AT_ONCE = 4
FED_S = 6
FORGETFUL = ("counters", "page-views", "trident")
# It keeps nothing that it has acked.
UNHARMED = "batches"


@pytest.fixture(scope="module")
def fed() -> Iterator[Lab]:
    """A lab of its own on which all workloads run and have been fed for a while."""
    hooks_jar = HOOKS_JAR if HOOKS_JAR.is_file() else None
    with plan_lab(f"workloads-{os.getpid()}", slots=6, hooks_jar=hooks_jar, conf=CALM) as lab:
        for number, (name, workload) in enumerate(RUNS.items()):
            if number >= AT_ONCE:
                lab.wait_ready([*RUNS][number - AT_ONCE])
            lab.submit(name, {**CONF, **OF_ONE.get(name, {})}, RATE_TPS, workload)
        for name in RUNS:
            lab.wait_ready(name)
        time.sleep(FED_S)
        yield lab


def judged(lab: Lab, names: Collection[str], limit_s: float) -> dict[str, Verdict]:
    """Judge topologies at once; afterwards they stay paused."""

    def one(name: str) -> Verdict:
        ledger = lab.ledger(name)
        ledger.set_rate(0)
        return judge(ledger, limit_s)

    with ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


@pytest.fixture(scope="module")
def verdicts(fed: Lab) -> Mapping[str, Verdict]:
    return judged(fed, RUNS, 40.0)


@pytest.mark.parametrize("name", RUNS)
def test_it_comes_out_right(verdicts: Mapping[str, Verdict], name: str) -> None:
    verdict = verdicts[name]
    assert verdict.ok, verdict
    assert verdict.lines > RATE_TPS * FED_S / 2


@pytest.mark.usefixtures("verdicts")
def test_a_killed_worker_has_forgotten_and_the_oracle_tells(fed: Lab) -> None:
    killed = [*FORGETFUL, UNHARMED]
    before = {*fed.worker_pids().values()}
    for name in killed:
        fed.kill_worker(fed.assignment(name)[0].slot)
    fed.wait_until(
        "the workers are back",
        lambda: len({*fed.worker_pids().values()} - before) == len(killed),
    )
    for name in killed:
        fed.wait_ready(name)
    # Bolts are asked for the last time after 9 s: a busy machine has as long again to answer.
    found = judged(fed, killed, 20.0)
    assert found.pop(UNHARMED).ok
    for verdict in found.values():
        print(verdict)
        assert not verdict.ok
        # Silence would also be wrong, but shows nothing about what they have kept.
        assert verdict.answers
        assert any(wrong.what.startswith(("count of", "views")) for wrong in verdict.differences)
        assert not any(wrong.what.startswith("answers") for wrong in verdict.differences)
