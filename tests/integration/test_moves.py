"""Moves and one killed worker on a real cluster: a move loses no tuple and no count."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.main import app
from deploy.lab.cluster import Lab
from deploy.lab.operator import Operator, beside, kill_meters
from deploy.lab.workloads import judge
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Slot, Way
from migration.wire import OFF, OFF_FILE
from tests.bench.movers import AtRandom
from tests.bench.moves import components, run_moves

pytestmark = pytest.mark.cluster
TOPOLOGY = "moves-test"
# A worker writes its ledger five times a second: what it counts after that dies with it.
LEDGER_S = 0.3
# The rate before is of no interest here.
AT_ONCE: Any = {"interleave": False, "block_s": 5.0}


@pytest.mark.parametrize(
    ("workload", "way", "stays"),
    [
        ("batches", Way.DRAIN, ()),
        ("connections", Way.RENEW, ()),
        ("numbers", Way.CARRY, ("spout",)),
        ("trident", Way.ACKER, ("$mastercoord", "$spoutcoord", "spout", "b-")),
    ],
)
def test_what_bolts_keep_is_right_after_moves_at_random(
    lab: Lab, workload: str, way: Way, stays: tuple[str, ...]
) -> None:
    """Counts travel, batches are written where they were filled, and what cannot move does not."""
    name = f"{workload}-test"
    # The third of the workers routes what moves between the other two.
    lab.submit(name, {"topology.workers": 3}, rate_tps=300, workload=workload)
    try:
        lab.wait_ready(name)
        with beside(lab, name) as operator:
            component = components(lab, name)
            lab.wait_until(
                "what the bolts keep is known",
                lambda: not any("not known yet" in reason for reason in operator.reasons()),
            )
            mover = AtRandom(lab, operator, seed=3, pinned=True)
            report = run_moves(lab, mover, name, moves=12, **AT_ONCE)
            print(report)
            ways = operator.ways()
        verdict = judge(lab.ledger(name), 30.0)
    finally:
        lab.kill_topology(name)
    moved = [move["executor"] for move in report["moves"] if move["state"] == "MOVED"]
    refused = [move["executor"] for move in report["moves"] if move["state"] == "REFUSED"]
    assert len(moved) + len(refused) == 12
    assert not any(component[executor].startswith(stays) for executor in moved)
    assert all(component[executor].startswith(stays) for executor in refused)
    assert way in [ways.get(ExecutorId.parse(executor)) for executor in moved]
    assert bool(refused) == bool(stays)
    assert report["failed"] == report["double_acked"] == report["pending"] == 0
    assert report["worker_restarts"] == 0
    assert verdict.ok, verdict


@pytest.fixture(scope="module")
def operator(lab: Lab) -> Iterator[Operator]:
    """Agents and a controller for a fed topology."""
    lab.submit(TOPOLOGY, {"topology.acker.executors": 1}, rate_tps=500)
    lab.wait_ready(TOPOLOGY)
    with beside(lab, TOPOLOGY) as found:
        yield found
    lab.kill_topology(TOPOLOGY)


def test_spouts_that_read_partitions_move_and_so_do_ackers(lab: Lab) -> None:
    """Nothing is read twice or left out, no partition has two readers, no tree stays open."""
    name = "partitions-test"
    # What the counters hold stays with them; nothing else moves here.
    lab.submit(name, {"workload.spouts": 2}, rate_tps=500, workload="partitions")
    lab.wait_ready(name)
    pids, meters = lab.worker_pids(), kill_meters(lab)
    ledger = lab.ledger(name)
    try:
        with beside(lab, name) as operator:
            slots = sorted(set(operator.placement().slot_of.values()))
            handed_over = [e for e in lab.assignment(name) if e.component in ("spout", "__acker")]
            assert len(handed_over) == 4
            began_s = time.time()
            for turn in (1, 2):
                paths = []
                for executor in handed_over:
                    id_ = ExecutorId(*executor.executor)
                    at = operator.placement().slot_of[id_]
                    path = operator.ask(id_, slots[(slots.index(at) + turn) % len(slots)])
                    operator.follow(path, lambda now: now.state == "SETTLE")
                    paths.append(path)
                ended = [operator.follow(path, lambda now: now.ended) for path in paths]
                assert [one.state for one in ended] == ["MOVED"] * 4, [one.reason for one in ended]
            windows = ledger.windows(began_s)
            verdict = judge(ledger)
            assert lab.worker_pids() == pids
            assert kill_meters(lab) == meters
    finally:
        lab.kill_topology(name)
    assert verdict.ok, verdict
    assert sum(window.failed for window in windows) == 0
    opened = [row for row in ledger.rows() if row["row"] == "opened"]
    assert len(opened) == 2 + 2 * 2


def test_thirty_moves_lose_no_tuple_and_restart_no_worker(lab: Lab, operator: Operator) -> None:
    report = run_moves(lab, AtRandom(lab, operator, seed=30), TOPOLOGY, moves=30, **AT_ONCE)
    print(report)
    assert report["asked"] == 30
    assert report["states"] == {"MOVED": 30}
    assert report["failed"] == report["double_acked"] == report["pending"] == 0
    assert report["emitted"] == report["acked"] > 0
    assert report["words_emitted"] == report["words_counted"]
    assert report["worker_restarts"] == 0
    assert report["kill_meters_risen"] == {}


def test_storm_itself_shows_the_executors_where_they_run(lab: Lab, operator: Operator) -> None:
    placement = operator.placement()
    shown = {f"{e.executor[0]}-{e.executor[1]}": e.slot for e in lab.assignment(TOPOLOGY)}
    for executor, slot in placement.slot_of.items():
        assert shown[str(executor)] == str(slot)


def test_a_killed_worker_comes_back_with_the_moved_executors(lab: Lab, operator: Operator) -> None:
    before, pids = operator.placement().slot_of, lab.worker_pids()
    victim = max(pids, key=[str(s) for s in before.values()].count)
    lab.ledger(TOPOLOGY).set_rate(100)
    lab.kill_worker(victim)
    # Until it runs it is not listed at all.
    pid = pids[victim]
    lab.wait_until("the worker is back", lambda: lab.worker_pids().get(victim, pid) != pid)
    lab.wait_ready(TOPOLOGY)
    lab.wait_until("its agent reports it", operator.ready)
    assert operator.placement().slot_of == before
    assert {s for s, pid in lab.worker_pids().items() if pid != pids[s]} == {victim}
    ledger = lab.ledger(TOPOLOGY)
    acked = ledger.totals().acked
    lab.wait_until("sentences are acked", lambda: ledger.totals().acked > acked)


def test_workers_that_are_left_end_and_nobody_loses_a_tuple(lab: Lab, operator: Operator) -> None:
    ledger, placement, pids = lab.ledger(TOPOLOGY), operator.placement(), lab.worker_pids()
    # What a worker that was killed before has lost fails only after Storm's time-out.
    before = ledger.drain(limit_s=120)
    movable = {*placement.free, *placement.handed_over}
    stay = {str(placement.slot_of[e]) for e in set(placement.slot_of) - movable}
    closed = sorted(set(pids) - stay)[:2]
    assert len(closed) == 2, f"{stay} leave no two workers to close"
    kept = set(pids) - set(closed)
    home = min(kept)
    ledger.set_rate(500)
    for slot in closed:
        # A bolt goes last: what dies in STOP has handed everything on.
        order = (*placement.handed_over, *placement.free)
        leaving = [e for e in order if str(placement.slot_of[e]) == slot]
        for executor in leaving:
            path = operator.ask(executor, Slot.parse(home))
            if executor == leaving[-1] and slot == closed[-1]:
                # The last worker is killed while it is about to end.
                operator.follow(path, lambda command: command.state == "STOP")
                time.sleep(LEDGER_S)
                lab.kill_worker(slot)
            assert operator.follow(path, lambda command: command.ended).state == "MOVED"
    lab.wait_until("the workers have ended", lambda: set(lab.worker_pids()) == kept, limit_s=60)
    assert lab.worker_pids() == {slot: pids[slot] for slot in kept}
    totals = ledger.drain(limit_s=120)
    assert totals.failed == before.failed
    assert totals.double_acked == before.double_acked
    assert totals.emitted - before.emitted == totals.acked - before.acked > 0
    words = totals.words_emitted - before.words_emitted
    assert totals.words_counted - before.words_counted == words


def test_switched_off_in_a_move_nothing_restarts_and_on_again_moves_succeed(
    lab: Lab, operator: Operator
) -> None:
    """By now the topology has fewer workers than it asks for, which alone makes Storm restart."""
    ledger, pids, meters = lab.ledger(TOPOLOGY), lab.worker_pids(), kill_meters(lab)
    before = ledger.drain(limit_s=120)
    ledger.set_rate(500)
    for leads in (True, False):
        with Session(lab.ensemble, deadline_s=60) as session:
            session.connect()
            path = a_move(operator)
            operator.follow(path, lambda now: True)
            # The command takes its time to start, and the move ends in less.
            session.put(OFF, b"a fault")
        if not leads:
            lab.kill_daemon("controller")
        said = nstorm(lab, "off", "--reason", "a fault", "--within", "240s")
        assert "all hooks are inert" in said
        assert operator.entries() == 0
        if leads:
            assert operator.look(path).state in ("UNDONE", "MOVED")
        # Two rounds of Nimbus, in which it would place again what is uneven.
        acked = ledger.totals().acked
        time.sleep(25)
        assert ledger.totals().acked > acked
        assert lab.worker_pids() == pids
        assert kill_meters(lab) == meters
        assert "SWITCHED OFF: a fault" in nstorm(lab, "status")
        assert not operator.ready()
        if not leads:
            lab.start_controller("observe")
        nstorm(lab, "on")
        lab.wait_until("all workers answer again", operator.ready)
        assert operator.follow(a_move(operator), lambda now: now.ended).state == "MOVED"
    # The workers that were closed before may have been all of a node's.
    node = lab.node(min(pids).rpartition(":")[0])
    (node.store_dir / OFF_FILE).write_text("by hand")
    lab.wait_until("the node is off", lambda: not operator.ready())
    assert "OFF: by hand" in nstorm(lab, "status")
    (node.store_dir / OFF_FILE).unlink()
    lab.wait_until("all workers answer again", operator.ready)
    totals = ledger.drain(limit_s=120)
    assert totals.failed == before.failed
    assert totals.emitted - before.emitted == totals.acked - before.acked > 0
    assert lab.worker_pids() == pids
    assert kill_meters(lab) == meters


def a_move(operator: Operator) -> str:
    """Ask for a move of a bolt from the fuller of two workers, which stays in use."""
    placement = operator.placement()
    executor = max(placement.free, key=lambda e: placement.staying[placement.slot_of[e]])
    others = {*placement.slot_of.values()} - {placement.slot_of[executor]}
    return operator.ask(executor, min(others))


def nstorm(lab: Lab, *arguments: str) -> str:
    conf = str(lab.layout.storm_yaml)
    done = CliRunner().invoke(app, [*arguments, "--conf", conf])
    assert done.exit_code == 0, done.output
    return done.output
