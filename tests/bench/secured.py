"""Moves by each way, drains, rolls and fails over where ZooKeeper asks for credentials."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from controller.storm.command_record import Command
from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.operator import Operator
from deploy.lab.workloads import judge
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Slot, Way
from tests.bench.frame import load_average
from tests.bench.roll import HOSTS, LIMIT_S, knows_load, roll_over
from tests.clusters import CALM

# Together they have every way but `renew`.
TOPOLOGIES = {"counters": "counters", "numbers": "numbers"}
WAYS = (Way.LIVE, Way.SPOUT, Way.ACKER, Way.CARRY, Way.DRAIN)
RATE_TPS = 100.0
DRAIN_WITHIN = "120s"
# What else runs on the machine must not keep a host from taking the executors of the other.
CONF = {**CALM, "nstorm.worker.cpu.capacity": 4.0}


def run_secured(
    kind: str, moves: int, *, roll: bool, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Do on a secured cluster of its own what operators do, and account for all tuples.

    Parameters
    ----------
    kind : str
        As in `LabOptions.secure`.
    moves : int
        How many of each way.
    roll : bool
        Whether to drain a host, and then to roll over all while the leading controller is killed.

    Returns
    -------
    dict
        Ready for JSON: what came of the moves of each way, of `nstorm drain` and `nstorm roll`, and
        what the sources have counted.
    """
    topologies = TOPOLOGIES if moves else {"counters": "counters"}
    hosts = HOSTS if roll else 2
    report: dict[str, Any] = {"kind": kind}
    with plan_lab(
        f"bench-secured-{kind}", nodes=hosts, hooks_jar=HOOKS_JAR, conf=CONF, secure=kind
    ) as lab:
        for name, workload in topologies.items():
            conf = {"topology.workers": hosts, "topology.acker.executors": 4}
            lab.submit(name, conf, RATE_TPS, workload)
        lab.start_agents()
        for name in ("controller", "controller-2"):
            lab.start_controller("observe", name)
        for name in topologies:
            lab.wait_ready(name)
        with Session(lab.ensemble, deadline_s=60) as session:
            session.connect()
            operators = [Operator(session, name) for name in topologies]
            for operator in operators:
                lab.wait_until("all workers answer their agents", operator.ready)
            if moves:
                report["moves"] = _move(lab, operators, moves, progress)
                report["numbers"] = _account(lab, "numbers")
                # Its spout stays, for it would count from 0 elsewhere: no host could be emptied.
                lab.kill_topology("numbers")
            if roll:
                lab.wait_until("the load is known", lambda: knows_load(session), LIMIT_S)
                report["drained"] = _drain(lab)
                began_s = time.monotonic()
                roll_over(lab, session, progress)
                report["rolled_s"] = round(time.monotonic() - began_s)
        report["counters"] = _account(lab, "counters")
        return {**report, "load_average": load_average()}


def _account(lab: Lab, name: str) -> dict[str, Any]:
    ledger = lab.ledger(name)
    verdict, totals = str(judge(ledger)), ledger.totals()
    return {"emitted": totals.emitted, "failed": totals.failed, "verdict": verdict}


def _move(
    lab: Lab, operators: list[Operator], moves: int, progress: Callable[[str], None]
) -> dict[str, dict[str, int]]:
    """Move executors of each way in turn, and count what came of it."""
    asked: dict[Way, list[tuple[Operator, str]]] = {way: [] for way in WAYS}
    until_s = time.monotonic() + LIMIT_S * 3
    while any(len(paths) < moves for paths in asked.values()):
        begun = 0
        for way, paths in asked.items():
            chosen = _choose(operators, way, len(paths)) if len(paths) < moves else None
            if chosen is not None:
                operator, executor, to = chosen
                paths.append((operator, operator.ask(executor, to)))
                operator.follow(paths[-1][1], lambda now: now.state == "SETTLE")
                begun += 1
        if time.monotonic() > until_s:
            raise LabError(f"moved { ({way.value: len(paths) for way, paths in asked.items()}) }")
        if not begun:
            time.sleep(0.5)
        progress(", ".join(f"{way.value} {len(paths)}" for way, paths in asked.items()))
    return {way.value: dict(Counter(map(_end, paths))) for way, paths in asked.items()}


def _end(asked: tuple[Operator, str]) -> str:
    operator, path = asked
    command: Command = operator.follow(path, lambda now: now.ended)
    return command.state if command.state == "MOVED" else f"{command.state}: {command.reason}"


def _choose(
    operators: list[Operator], way: Way, turn: int
) -> tuple[Operator, ExecutorId, Slot] | None:
    """Choose an executor that moves by a way and may move now, and a worker on the other node."""
    found: list[tuple[Operator, ExecutorId, Slot]] = []
    for operator in operators:
        placement, ways = operator.placement(), operator.ways()
        may = placement.free if way is Way.LIVE else placement.handed_over
        for executor in may:
            here = placement.slot_of[executor]
            to = next(s for s in placement.slot_of.values() if s.supervisor != here.supervisor)
            if ways.get(executor, Way.LIVE) is way and placement.staying[here] > 1:
                found.append((operator, executor, to))
    return found[turn % len(found)] if found else None


def _drain(lab: Lab) -> int:
    """Empty a host and give it back; return the exit code of the first."""
    conf = str(lab.layout.storm_yaml)
    host = lab.nodes[0].host
    nstorm = [sys.executable, "-m", "controller.cli"]
    done = subprocess.run(
        [*nstorm, "drain", host, "--within", DRAIN_WITHIN, "--conf", conf],
        stdout=sys.stderr,
        check=False,
    )
    subprocess.run([*nstorm, "undrain", host, "--conf", conf], stdout=sys.stderr, check=True)
    return done.returncode
