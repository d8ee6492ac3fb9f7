"""A lab of nodes: links and CPU have bounds, one Nimbus follows another, and nothing stays."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from msgspec import UNSET

from agent.machine import MachineMeters
from controller.storm.collect import LiveCluster
from deploy.lab.cluster import RUNS_DIR, Lab, attach, sweep, unswept
from deploy.lab.network import Network, plan_network, token
from deploy.lab.operator import Operator, beside
from kvstore.election import in_line
from kvstore.zookeeper import Session
from migration.model import Meters
from tests.transfer import transfer

pytestmark = pytest.mark.cluster
TOPOLOGY = "nodes-test"
NAME = f"nodes-{os.getpid()}"
RUN_DIR = RUNS_DIR / NAME
LINK_BPS = 20_000_000
SENT_BYTES = 2_500_000
REPORTED_S = 60.0
OWNER = """
import sys, time
from deploy.lab.cluster import HOOKS_JAR, plan_lab
from tests.clusters import CALM
# Of two Nimbuses the other leads once the session of the first is over; Storm waits 20 s for that.
conf = {**CALM, "storm.zookeeper.session.timeout": 10_000, "topology.message.timeout.secs": 60}
with plan_lab(sys.argv[1], slots=1, hooks_jar=HOOKS_JAR, conf=conf, cores=1.0, link="20mbit",
              nimbuses=2, trimmed=True) as lab:
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def owner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that owns a lab of two nodes, which is up."""
    planned, cannot_show = plan_network(RUN_DIR, 2, 1, 1.0, "20mbit")
    if planned is None or None in (planned.link_bps, planned.cores):
        pytest.skip("; ".join(cannot_show))
    sweep()
    process = subprocess.Popen([sys.executable, "-c", OWNER, NAME], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
    finally:
        process.terminate()
        process.communicate()
        shutil.rmtree(RUN_DIR, ignore_errors=True)


@pytest.fixture(scope="module")
def nodes(owner: subprocess.Popen[bytes]) -> Iterator[Lab]:
    """The lab of the owner, who will be killed."""
    lab = attach(NAME)
    yield lab
    lab.down()


@pytest.fixture(scope="module")
def operator(nodes: Lab) -> Iterator[Operator]:
    """An operator who moves executors of a WordCount there."""
    nodes.submit(TOPOLOGY, {"topology.workers": 2}, rate_tps=100)
    nodes.wait_ready(TOPOLOGY)
    with beside(nodes, TOPOLOGY) as found:
        yield found


def network_of(lab: Lab) -> Network:
    assert lab.layout.options.network is not None
    return lab.layout.options.network


@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 2), (2, 0)])
def test_the_link_bounds_each_direction(nodes: Lab, source: int, target: int) -> None:
    network = network_of(nodes)
    hosts = (network.bridge_host, *network.node_hosts)
    free_s = 8 * SENT_BYTES / LINK_BPS
    # The bucket lets some through at once; what stands above has other work of the machine in it.
    took_s, _ = transfer(network, hosts[source], hosts[target], SENT_BYTES)
    assert 0.9 * free_s < took_s < 10 * free_s


def test_supervisor_agent_and_worker_share_the_nodes_cpu(nodes: Lab, operator: Operator) -> None:
    network = network_of(nodes)
    workers = nodes.worker_pids()
    assert len(workers) == 2
    for node in nodes.nodes:
        group = Path(network.cgroups or "", network.name(node.host))
        assert (group / "cpu.cfs_quota_us").read_text() == "100000\n"
        pids = {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
        daemons = [nodes.daemon(name) for name in (node.host, f"agent-{node.host}")]
        (worker,) = [pid for slot, pid in workers.items() if slot in node.slots]
        assert pids >= {worker, *(daemon.pid for daemon in daemons if daemon)}
        assert None not in daemons
        space = Path("/run/netns", network.name(node.host)).stat()
        assert Path(f"/proc/{worker}/ns/net").stat().st_ino == space.st_ino


def test_each_agent_reports_the_cpu_of_its_node_alone(nodes: Lab, operator: Operator) -> None:
    with Session(nodes.ensemble) as session:
        session.connect()

        def reported() -> list[Meters]:
            loads = LiveCluster.of_session(session).loads()
            return [load.meters for load in loads if load.meters is not UNSET]

        nodes.wait_until("both agents have reported", lambda: len(reported()) == 2, REPORTED_S)
        found = reported()
    assert [meters["machine_cores"] for meters in found] == [1.0, 1.0]
    # The machine has run for longer.
    used_ns = sum(meters["machine_cpu_ns"] for meters in found)
    assert 0 < used_ns < MachineMeters().read(os.getpid())["machine_cpu_ns"]


def move(lab: Lab, operator: Operator) -> None:
    """Move an executor to the other node."""
    placement = operator.placement()
    executor = placement.free[0]
    source = placement.slot_of[executor]
    target = next(s for s in {*placement.slot_of.values()} if s.supervisor != source.supervisor)
    done = operator.follow(operator.ask(executor, target), lambda now: now.ended)
    assert (done.state, done.reason) == ("MOVED", done.reason)
    lab.wait_until("the move has come to its end", lambda: operator.entries() == 0)


def test_a_move_between_nodes_loses_nothing(nodes: Lab, operator: Operator) -> None:
    move(nodes, operator)
    totals = nodes.ledger(TOPOLOGY).drain()
    assert totals.emitted == totals.acked > 0
    assert (totals.failed, totals.double_acked) == (0, 0)
    nodes.ledger(TOPOLOGY).set_rate(100)


def leader(lab: Lab) -> str | None:
    """Name the Nimbus that leads."""
    with Session(lab.storm_zookeeper) as session:
        session.connect()
        # The node that was made first has the lock; its name ends in a number of ten digits.
        waiting = in_line(session.children("/leader-lock") or [])
        first = session.read(f"/leader-lock/{waiting[0]}") if waiting else None
    hosts = {nimbus.host: nimbus.name for nimbus in lab.layout.nimbuses}
    return hosts[first.data.decode().partition(":")[0]] if first else None


def has_two_copies(lab: Lab) -> bool:
    """Check whether each Nimbus has what was submitted: one that lacks a part never leads."""
    with Session(lab.storm_zookeeper) as session:
        session.connect()
        blobs = session.children("/blobstore") or []
        copies = [session.children(f"/blobstore/{blob}") or [] for blob in blobs]
    return bool(blobs) and all(len(of_one) == 2 for of_one in copies)


def test_another_nimbus_leads_after_the_first_has_died(nodes: Lab, operator: Operator) -> None:
    pids = nodes.worker_pids()
    first = leader(nodes)
    assert first is not None
    nodes.wait_until(
        "the other Nimbus has copied what was submitted", lambda: has_two_copies(nodes)
    )
    nodes.kill_daemon(first)
    other = ({"nimbus", "nimbus-2"} - {first}).pop()
    nodes.wait_until("the other Nimbus leads", lambda: leader(nodes) == other)
    assert [*nodes.topologies().values()] == ["ACTIVE"]
    move(nodes, operator)
    assert nodes.worker_pids() == pids


def kept(run_dir: Path) -> list[str]:
    """List what a lab has of this machine: processes, devices, namespaces, cgroups."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        command = " ".join(process.info["cmdline"] or [])
        if f"{run_dir}/" in command and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(f"process {process.pid}")
    for folder in ("/run/netns", "/sys/class/net", "/sys/fs/cgroup/cpu"):
        found += [str(path) for path in Path(folder).glob(f"{token(run_dir)}*")]
    return found


def test_nothing_stays_of_nodes_whose_owner_was_killed(
    nodes: Lab, owner: subprocess.Popen[bytes]
) -> None:
    with unswept():
        owner.kill()
        owner.wait()
        left = kept(RUN_DIR)
    assert len([line for line in left if line.startswith("/run/netns")]) == 3
    assert len([line for line in left if line.startswith("/sys/class/net")]) == 4
    assert len([line for line in left if line.startswith("/sys/fs/cgroup")]) == 2
    assert any(line.startswith("process") for line in left)
    sweep()
    assert kept(RUN_DIR) == []
