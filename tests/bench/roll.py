"""Renews all workers and supervisors, host after host, by `nstorm roll` and by Storm's means."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from controller.storm.collect import DRAINED, LiveCluster
from controller.storm.status import read
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.layout import LabNode
from deploy.lab.workloads import judge
from kvstore.zookeeper import Session
from tests.bench.state import CONTROL_S, RATE_TPS, REBALANCE_S, felt

TOPOLOGY = "roll"
HOSTS = 3
LIMIT_S = 180.0


def run_roll(progress: Callable[[str], None]) -> dict[str, Any]:
    """Roll one cluster by each of the ways; both feed `counters` at the same rate meanwhile.

    Returns
    -------
    dict
        Ready for JSON: for each way what the sources felt, what was lost, and how long it took.
    """
    return {"nstorm": _by_nstorm(progress), "storm": _by_storm(progress)}


def _by_nstorm(progress: Callable[[str], None]) -> dict[str, Any]:
    """Let `nstorm roll` do it; the leading controller is killed while the second host empties."""
    with _loaded(HOOKS_JAR) as lab, Session(lab.storm_zookeeper) as session:
        session.connect()
        lab.start_agents()
        for name in ("controller", "controller-2"):
            lab.start_controller("auto", name)
        hosts = sorted(node.host for node in lab.nodes)
        lab.wait_until("the load is known", lambda: _knows_load(session), LIMIT_S)

        def roll() -> None:
            with tempfile.TemporaryDirectory() as folder:
                mark = f'"{folder}/{{host}}"'
                waits = f"touch {mark}; while [ -e {mark} ]; do sleep 0.2; done"
                conf = str(lab.layout.nimbus_dir / "conf" / "storm.yaml")
                command = [sys.executable, "-m", "controller.cli", "roll", "--run", waits]
                process = subprocess.Popen(
                    [*command, "--conf", conf], stdout=subprocess.PIPE, text=True
                )
                leader = None
                while process.poll() is None:
                    for empty in Path(folder).iterdir():
                        progress(f"{empty.name} is empty, its supervisor is renewed")
                        lab.kill_daemon(empty.name)
                        lab.start_daemon(empty.name)
                        empty.unlink()
                    if leader is None and session.read(f"{DRAINED}/{hosts[1]}") is not None:
                        leader = LiveCluster.of_session(session).controllers()[0].name
                        progress(f"{hosts[1]} empties, the leading controller {leader} is killed")
                        os.kill(int(leader.rpartition(":")[2]), signal.SIGKILL)
                    time.sleep(0.2)
                said, _ = process.communicate()
                progress(said)
                assert process.returncode == 0, said

        return _measured(lab, roll)


def _by_storm(progress: Callable[[str], None]) -> dict[str, Any]:
    with _loaded(None) as lab:

        def roll() -> None:
            for node in lab.nodes:
                progress(f"{node.host}: its supervisor is stopped")
                _renew(lab, node)
            lab.rebalance(TOPOLOGY)

        return _measured(lab, roll)


def _renew(lab: Lab, node: LabNode) -> None:
    """Do what a stock Storm leaves: stop a supervisor, rebalance without it, end its workers."""

    def is_away() -> bool:
        return all(node.supervisor_id not in str(one.slot) for one in lab.assignment(TOPOLOGY))

    lab.kill_daemon(node.host)
    lab.wait_until("Nimbus misses it", lambda: node.host not in lab.supervisors(), LIMIT_S)
    lab.rebalance(TOPOLOGY)
    lab.wait_until("its executors are elsewhere", is_away, LIMIT_S)
    for slot in lab.worker_pids():
        if slot.startswith(node.supervisor_id):
            lab.kill_worker(slot)
    lab.start_daemon(node.host)
    lab.wait_until("it is back", lambda: node.host in lab.supervisors(), LIMIT_S)


@contextmanager
def _loaded(hooks_jar: Path | None) -> Iterator[Lab]:
    with plan_lab("bench-roll", nodes=HOSTS, hooks_jar=hooks_jar) as lab:
        lab.submit(TOPOLOGY, {"topology.workers": HOSTS}, RATE_TPS, "counters")
        lab.wait_ready(TOPOLOGY)
        time.sleep(CONTROL_S)
        yield lab


def _knows_load(session: Session) -> bool:
    cycles = (read(session) or {}).get("cycles", ())
    return any(cycle.get("executors") for cycle in cycles)


def _pids(lab: Lab) -> set[int]:
    """Name the processes of Storm on the hosts."""
    daemons = [lab.daemon(node.host) for node in lab.nodes]
    return {*lab.worker_pids().values(), *(one.pid for one in daemons if one is not None)}


def _measured(lab: Lab, roll: Callable[[], None]) -> dict[str, Any]:
    ledger, before = lab.ledger(TOPOLOGY), _pids(lab)
    began_s = time.time()
    time.sleep(CONTROL_S)
    control = felt(ledger, began_s)
    began_s = time.time()
    roll()
    took_s = time.time() - began_s
    # What Storm starts anew at the end, and the message timeout of what was in flight.
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
        "load_average": round(os.getloadavg()[0], 1),
    }
