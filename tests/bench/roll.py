"""Renews all workers and supervisors, host after host, by `nstorm roll` and by Storm's means."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.leader_status import read
from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.layout import LabNode
from deploy.lab.workloads import judge
from kvstore.zookeeper import Session
from tests.bench.frame import load_average
from tests.bench.state import CONTROL_S, RATE_TPS, REBALANCE_S, felt

TOPOLOGY = "roll"
HOSTS = 3
LIMIT_S = 180.0
ROLL_LIMIT_S = 1_200.0
# By Storm's own means: how long spouts rest before each `rebalance`; 30 s is Storm's default.
WAIT_S = {"storm": 30, "storm-w0": 0}


def run_roll(way: str, progress: Callable[[str], None]) -> dict[str, Any]:
    """Renew every worker and supervisor of a cluster of its own that counts words.

    Returns
    -------
    dict
        Ready for JSON: what the sources felt, what was lost, and how long it took. By Storm's
        means that ends with the last `rebalance`, not with the restarts which that causes.
    """
    stock = way in WAIT_S
    with plan_lab(f"bench-roll-{way}", nodes=HOSTS, hooks_jar=None if stock else HOOKS_JAR) as lab:
        lab.submit(TOPOLOGY, {"topology.workers": HOSTS}, RATE_TPS, "counters")
        lab.wait_ready(TOPOLOGY)
        if stock:
            return {"way": way, **_measured(lab, lambda: _by_storm(lab, WAIT_S[way], progress))}
        with Session(lab.storm_zookeeper) as session:
            session.connect()
            lab.start_agents()
            for name in ("controller", "controller-2"):
                lab.start_controller("auto", name)
            lab.wait_until("the load is known", lambda: knows_load(session), LIMIT_S)
            return {"way": way, **_measured(lab, lambda: roll_over(lab, session, progress))}


def roll_over(lab: Lab, session: Session, progress: Callable[[str], None]) -> None:
    """Let `nstorm roll` do it; the leading controller is killed while the second host empties."""
    conf = str(lab.layout.storm_yaml)
    second = f"{DRAINED}/{sorted(node.host for node in lab.nodes)[1]}"
    until_s, led = time.monotonic() + ROLL_LIMIT_S, None
    with tempfile.TemporaryDirectory() as folder:
        mark = f'"{folder}/$NSTORM_HOST"'
        waits = f"touch {mark}; while [ -e {mark} ]; do sleep 0.2; done"
        command = [sys.executable, "-m", "controller.cli", "roll", "--run", waits, "--conf", conf]
        process = subprocess.Popen(command, stdout=sys.stderr)
        try:
            while process.poll() is None:
                if time.monotonic() > until_s:
                    raise LabError(f"the roll has not ended within {ROLL_LIMIT_S:.0f} s")
                for empty in Path(folder).iterdir():
                    lab.kill_daemon(empty.name)
                    lab.start_daemon(empty.name)
                    empty.unlink()
                if led is None and session.read(second) is not None:
                    led = LiveCluster.of_session(session).controllers()[0].name
                    progress(f"the leading controller, {led}, is killed")
                    os.kill(int(led.rpartition(":")[2]), signal.SIGKILL)
                time.sleep(0.2)
        finally:
            process.kill()
            process.wait()
    if process.returncode or led is None:
        raise LabError(f"nstorm roll ended with {process.returncode}, led by {led}")


def _by_storm(lab: Lab, wait_secs: int, progress: Callable[[str], None]) -> None:
    for node in lab.nodes:
        progress(f"{node.host}: its supervisor is stopped")
        _renew(lab, node, wait_secs)
    lab.rebalance(TOPOLOGY, wait_secs=wait_secs)


def _renew(lab: Lab, node: LabNode, wait_secs: int) -> None:
    """Stop a supervisor, rebalance without it, end its workers once they have no executors."""

    def is_away() -> bool:
        slots = [str(one.slot) for one in lab.assignment(TOPOLOGY)]
        return bool(slots) and not any(slot.startswith(node.supervisor_id) for slot in slots)

    lab.kill_daemon(node.host)
    lab.wait_until("Nimbus misses it", lambda: node.host not in lab.supervisors(), LIMIT_S)
    lab.rebalance(TOPOLOGY, wait_secs=wait_secs)
    lab.wait_until("its executors are elsewhere", is_away, LIMIT_S)
    for slot in lab.worker_pids():
        if slot.startswith(node.supervisor_id):
            lab.kill_worker(slot)
    lab.start_daemon(node.host)
    lab.wait_until("it is back", lambda: node.host in lab.supervisors(), LIMIT_S)


def knows_load(session: Session) -> bool:
    return any(cycle.executors for cycle in read(session).cycles)


def _pids(lab: Lab) -> set[int]:
    """Name the processes of Storm on the hosts."""
    daemons = [lab.daemon(node.host) for node in lab.nodes]
    return {*lab.worker_pids().values(), *(one.pid for one in daemons if one is not None)}


def _measured(lab: Lab, roll: Callable[[], None]) -> dict[str, Any]:
    ledger, before = lab.ledger(TOPOLOGY), _pids(lab)
    time.sleep(CONTROL_S)  # until the workers have compiled
    began_s = time.time()
    time.sleep(CONTROL_S)
    control = felt(ledger, began_s)
    began_s = time.time()
    roll()
    took_s = time.time() - began_s
    # What Storm restarts at the end, and the message timeout of what was in flight.
    time.sleep(REBALANCE_S)
    return {
        "took_s": round(took_s),
        "processes": len(before),
        "not_renewed": len(before & _pids(lab)),
        "before": control,
        "rolling": felt(ledger, began_s),
        "counts": str(judge(ledger)),
        "failed": ledger.totals().failed,
        "emitted": ledger.totals().emitted,
        "load_average": load_average(),
    }
