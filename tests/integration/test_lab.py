"""The lab is a real Storm cluster: topologies run, workers come back, nothing stays behind."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from deploy.lab import LabError
from deploy.lab.cluster import RUNS_DIR, Lab, attach, plan_lab, sweep, unswept
from deploy.lab.ledger import latency_ms, throughput_tps
from deploy.lab.processes import start_ticks

pytestmark = pytest.mark.cluster
RELAUNCHED = "supervisor:num-worker-transitions-into-kill-and-relaunch"
REASSIGNED = "supervisor:num-workers-killed-assignment-changed"


@pytest.fixture(scope="module")
def wordcount(lab: Lab) -> Iterator[str]:
    """The name of a topology that runs, fed with 300 sentences a second."""
    lab.submit("lab-test", rate_tps=300)
    lab.wait_ready("lab-test")
    yield "lab-test"
    lab.kill_topology("lab-test")


def processes_naming(run_dir: str) -> list[str]:
    """Find processes by their command lines alone, unlike `Lab.down` does."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = " ".join(process.info["cmdline"] or [])
        if run_dir in command and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(f"{process.pid} {command}")
    return found


def test_every_sentence_is_acked_and_every_word_counted(lab: Lab, wordcount: str) -> None:
    ledger = lab.ledger(wordcount)
    # Cold JVMs on a busy machine fall behind at first; then the acks follow the rate asked for.
    lab.wait_until(
        "300 acks a second",
        lambda: 270 < throughput_tps(ledger.windows(time.time() - 6)) < 330,
    )
    windows = ledger.windows(time.time() - 6)
    assert 4 <= len(windows) <= 6
    assert 0 < latency_ms(windows, 0.5) <= latency_ms(windows, 0.99)
    totals = ledger.drain()
    assert totals.emitted == totals.acked > 1000
    assert (totals.pending, totals.failed, totals.double_acked) == (0, 0, 0)
    assert totals.words_counted == totals.words_emitted == 5 * totals.emitted
    ledger.set_rate(300)


def test_storm_spreads_the_executors_evenly(lab: Lab, wordcount: str) -> None:
    placed = lab.assignment(wordcount)
    components = [executor.component for executor in placed]
    assert components.count("spout") == 2
    assert components.count("split") == 6
    assert components.count("count") == 8
    assert components.count("__acker") == 2
    slots = [executor.slot for executor in placed]
    assert {*slots} == {slot for node in lab.nodes for slot in node.slots}
    assert {*slots} == {*lab.worker_pids()}
    assert max(map(slots.count, slots)) - min(map(slots.count, slots)) <= 1


def test_killed_worker_comes_back_and_the_meter_shows_it(lab: Lab, wordcount: str) -> None:
    before, meters = lab.worker_pids(), lab.storm_meters()
    victim = sorted(before)[0]
    assert lab.kill_worker(victim) == before[victim]
    pid = before[victim]  # until it runs it is not listed at all
    lab.wait_until("the worker is back", lambda: lab.worker_pids().get(victim, pid) != pid)
    lab.wait_ready(wordcount)
    after = lab.worker_pids()
    assert {slot for slot in before if after.get(slot) != before[slot]} == {victim}
    lab.wait_until(
        "the meter rises", lambda: lab.storm_meters()[RELAUNCHED] == meters[RELAUNCHED] + 1, 20
    )


def test_rebalance_restarts_workers_and_the_meters_show_it(lab: Lab, wordcount: str) -> None:
    before, meters = lab.worker_pids(), lab.storm_meters()
    lab.rebalance(wordcount, workers=3)
    lab.wait_until(
        "three slots are assigned",
        lambda: len({executor.slot for executor in lab.assignment(wordcount)}) == 3,
    )
    lab.wait_until("three workers run", lambda: len(lab.worker_pids()) == 3)
    lab.wait_ready(wordcount)
    assert [*lab.worker_pids().values()] != [*before.values()]

    def risen() -> bool:
        now = lab.storm_meters()
        calls = "nimbus:num-rebalance-calls"
        return now[calls] == meters[calls] + 1 and now[REASSIGNED] > meters[REASSIGNED]

    lab.wait_until("the meters rise", risen, 20)


def test_supervisor_id_and_conf_of_a_node(lab: Lab) -> None:
    node = lab.nodes[0]
    assert lab.node(node.supervisor_id) is lab.node(node.host) is node
    assert (node.conf_dir / "storm.yaml").read_text().count(str(node.store_dir)) == 1
    assert "Starting Supervisor" in lab.storm_log(node.host)
    with pytest.raises(LabError, match=r"no node '127\.0\.0\.9'"):
        lab.node("127.0.0.9")


OWNER = """
import signal, sys, time
from deploy.lab.cluster import plan_lab
# Ignored where the tests themselves run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
lab = plan_lab(sys.argv[1], nodes=1)
if sys.argv[2] == "starting":
    start_zookeeper = lab.start_zookeeper
    lab.start_zookeeper = lambda: (start_zookeeper(), print("reached", flush=True))
with lab:
    if sys.argv[2] == "working":
        lab.submit("wc", {"topology.workers": 1})
        lab.wait_until("a worker runs", lambda: lab.worker_pids())
    print("reached", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("sig", "stage"),
    [(signal.SIGINT, "starting"), (signal.SIGTERM, "up"), (signal.SIGKILL, "working")],
)
def test_nothing_stays_however_the_owner_ends(sig: signal.Signals, stage: str) -> None:
    name = f"owner-{os.getpid()}"
    run_dir = f"{RUNS_DIR / name}/"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, name, stage], stdout=subprocess.PIPE)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"reached\n"
        with unswept():
            owner.send_signal(sig)
            owner.wait(60)
            left = processes_naming(run_dir)
    finally:
        owner.terminate()
        owner.communicate()
    if sig == signal.SIGKILL:
        assert any("daemon.worker.Worker" in line for line in left)
        sweep()
    assert processes_naming(run_dir) == []
    with pytest.raises(LabError, match="no lab in"):
        attach(name)
    shutil.rmtree(run_dir)


def test_stale_record_never_kills_somebody_else() -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    lab = plan_lab(f"stale-{os.getpid()}", nodes=0)
    try:
        lab.prepare()
        child = f'{{"name": "nimbus", "pid": {bystander.pid}, "start_ticks": 1}}'
        (lab.layout.run_dir / "processes.json").write_text(f"[{child}]")
        assert lab.daemon("nimbus") is None
        lab.down()
        assert start_ticks(bystander.pid) is not None
    finally:
        bystander.kill()
        bystander.wait()
        shutil.rmtree(lab.layout.run_dir)


def test_container_zookeeper_answers(container_zookeeper: str) -> None:
    assert container_zookeeper.rpartition(":")[2].isdigit()
