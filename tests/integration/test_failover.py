"""Workers of very unequal size die for ever, one by one: Storm replaces the dead one alone."""

import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress

import pytest

from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, sweep
from deploy.lab.layout import LabNode
from deploy.lab.ledger import Ledger, Totals
from deploy.lab.meters import read_meters
from deploy.lab.operator import KILL_METERS, Operator, Placement, beside, kill_meters
from migration.model import ExecutorId, Slot
from tests.clusters import CALM

pytestmark = pytest.mark.cluster
TOPOLOGY = "failover-test"
SIZES = (9, 5, 3, 1)
RATE_TPS = 100
ASSIGNMENT_CHANGED, RELAUNCHED, REBALANCES = KILL_METERS
# Storm's own settings: with the defaults, each of the four deaths would take it over half a minute.
SOON = {
    **CALM,
    "nimbus.monitor.freq.secs": 2,
    "nimbus.task.timeout.secs": 20,
    # So long after a start Nimbus notices no death. Workers that start together on a busy machine
    # have needed more than 60 s.
    "nimbus.task.launch.secs": 150,
    "supervisor.worker.shutdown.sleep.secs": 1,
    # A busy machine holds sentences up for longer than 10 s; none may fail for that alone.
    "topology.message.timeout.secs": 60,
}


@pytest.fixture(scope="module")
def roomy() -> Iterator[Lab]:
    """A cluster with two slots more than the topology uses."""
    sweep()
    with plan_lab(f"failover-{os.getpid()}", slots=3, hooks_jar=HOOKS_JAR, conf=SOON) as lab:
        yield lab


@pytest.fixture(scope="module")
def packed(roomy: Lab) -> Iterator[Lab]:
    """The WordCount on it, its 18 executors moved to 9, 5, 3 and 1 in four workers."""
    roomy.submit(TOPOLOGY, rate_tps=RATE_TPS)
    roomy.wait_ready(TOPOLOGY)
    pids, meters = roomy.worker_pids(), kill_meters(roomy)
    with beside(roomy, TOPOLOGY) as operator:
        pack(roomy, operator)
        assert sorted(map(len, groups(roomy).values())) == sorted(SIZES)
        assert roomy.worker_pids() == pids
        assert kill_meters(roomy) == meters
        ledger = roomy.ledger(TOPOLOGY)
        totals = rest(roomy, ledger)
        assert totals.acked == totals.emitted > 0
        assert (totals.failed, totals.double_acked) == (0, 0)
        ledger.set_rate(RATE_TPS)
        yield roomy


def groups(lab: Lab) -> dict[str, set[tuple[int, int]]]:
    """Give Storm's own assignment: the executors of each slot."""
    found = defaultdict(set)
    for placed in lab.assignment(TOPOLOGY):
        found[placed.slot].add(placed.executor)
    return dict(found)


def pack(lab: Lab, operator: Operator) -> None:
    """Move executors until the workers have the wanted sizes also in Storm's assignment.

    On a busy machine a phase may run into its limit and the move is undone; it is asked for again.
    """
    asked = []
    for _ in range(3):
        for executor, slot in surplus(operator.placement()):
            asked.append(operator.ask(executor, slot))
            operator.follow(asked[-1], lambda now: now.state == "SETTLE")
        lab.wait_until("every move has come to its end", lambda: operator.entries() == 0)
        if surplus(operator.placement()) == []:
            return
    raise AssertionError([operator.look(path) for path in asked])


def surplus(placement: Placement) -> list[tuple[ExecutorId, Slot]]:
    """Choose moves to the wanted sizes; workers with many pinned executors become large."""
    held = Counter(placement.slot_of.values())
    free = Counter(placement.slot_of[executor] for executor in placement.free)
    by_pinned = sorted(held, key=lambda slot: (free[slot] - held[slot], slot))
    size = dict(zip(by_pinned, SIZES, strict=True))
    room = [slot for slot in by_pinned for _ in range(size[slot] - held[slot])]
    moves = []
    for executor in placement.free:
        source = placement.slot_of[executor]
        if held[source] > size[source]:
            held[source] -= 1
            moves.append((executor, room.pop()))
    assert room == []
    return moves


def kill_until_reassigned(lab: Lab, slot: str) -> int:
    """Kill a worker and whatever Storm starts in its slot; return how many that were."""
    kills = 0

    def reassigned() -> bool:
        nonlocal kills
        if slot not in groups(lab):
            return True
        pid = lab.worker_pids().get(slot)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        return False

    lab.wait_until(f"the executors of {slot} are assigned elsewhere", reassigned, 300)
    return kills


def risen(node: LabNode, before: Counter[str]) -> Counter[str]:
    """Give what the kill meters of one supervisor have risen by."""
    return Counter({name: supervisor_meters(node)[name] - before[name] for name in KILL_METERS})


def supervisor_meters(node: LabNode) -> Counter[str]:
    return read_meters([node.root / "meters"])


@pytest.mark.parametrize("size", (max(SIZES), min(SIZES)))
def test_the_dead_worker_alone_is_replaced(packed: Lab, size: int) -> None:
    before, pids = groups(packed), packed.worker_pids()
    assert {*pids} == {*before}
    assert sorted(map(len, before.values())) == sorted(SIZES)
    (dead,) = [slot for slot, executors in before.items() if len(executors) == size]
    own = packed.node(dead.rpartition(":")[0])
    (other,) = [node for node in packed.nodes if node is not own]
    own_meters, other_meters = supervisor_meters(own), supervisor_meters(other)
    rebalances = kill_meters(packed)[REBALANCES]

    kills = kill_until_reassigned(packed, dead)
    assert kills >= 2, "Storm started the worker again at its old place"
    after = groups(packed)
    (new,) = after.keys() - before.keys()
    assert new in (set(own.slots) - before.keys() or other.slots), "its own host comes first"
    assert after == {new if slot == dead else slot: e for slot, e in before.items()}

    packed.wait_until("the new worker runs alone", lambda: {*packed.worker_pids()} == {*after})
    packed.wait_ready(TOPOLOGY)
    del pids[dead]
    assert {slot: pid for slot, pid in packed.worker_pids().items() if slot != new} == pids
    ledger = packed.ledger(TOPOLOGY)
    acked = ledger.totals().acked
    packed.wait_until("sentences are acked", lambda: ledger.totals().acked > acked + RATE_TPS)
    assert groups(packed) == after
    assert risen(other, other_meters) == Counter()
    # Only the slot of the dead worker: each kill is a relaunch, and once its assignment went.
    rose = risen(own, own_meters)
    assert 1 <= rose[RELAUNCHED] <= kills
    assert rose[ASSIGNMENT_CHANGED] <= 1
    assert kill_meters(packed)[REBALANCES] == rebalances


def rest(lab: Lab, ledger: Ledger) -> Totals:
    """Pause the spouts and wait until those that live have heard of every sentence."""
    ledger.set_rate(0)
    lab.wait_until("nothing is in flight", lambda: ledger.in_flight() == 0, 300)
    return ledger.drain(0)


def test_afterwards_no_tuple_is_lost(packed: Lab) -> None:
    ledger = packed.ledger(TOPOLOGY)
    before = rest(packed, ledger)
    ledger.set_rate(10 * RATE_TPS)
    packed.wait_until(
        "sentences flow", lambda: ledger.totals().acked > before.acked + 20 * RATE_TPS
    )
    after = rest(packed, ledger)
    emitted = after.emitted - before.emitted
    assert after.acked - before.acked == emitted > 20 * RATE_TPS
    assert after.words_emitted - before.words_emitted == 5 * emitted
    assert after.words_counted - before.words_counted == 5 * emitted
    assert (after.failed, after.double_acked) == (before.failed, 0)
