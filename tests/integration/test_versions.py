"""Jars of two versions side by side: served, moved where all understand it, refused where not.

There is no release yet. So the jar of before is built from an earlier commit, and the later one
from today's source, changed as a later one will be: it speaks version 2 of the protocol, and its
reports have keys that nobody here knows. Agents and controller are today's.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM

import pytest
from messages import replace

from controller.storm.collect import LiveCluster
from deploy.lab.cluster import AGENT_JAR, Lab, plan_lab, sweep
from deploy.lab.operator import Operator, beside, published
from kvstore.zookeeper import Session
from migration import observation, validate, wire
from migration.model import Base, Entry, EntryState, ExecutorId, Phase, Slot
from migration.validate import Refusal, RefusalCode, validate_move

pytestmark = pytest.mark.cluster
TOPOLOGY = "versions-test"
RATE_TPS = 300
SOURCE = AGENT_JAR.parents[1]
# Of 2026-11-24, in main.
PREVIOUS = "bdefbadfaa4a38b7e44f151a36142545ae277405"
LATER = {
    "wire/Protocol.java": ("SPEAKS = 1;", "SPEAKS = 2;"),
    "wire/report/NimbusReport.java": ("Protocol.SPEAKS)", 'Protocol.SPEAKS).put("later", "x")'),
    "wire/report/SupervisorAck.java": ("Protocol.SPEAKS)", 'Protocol.SPEAKS).put("later", "x")'),
    "wire/report/WorkerAck.java": ("Protocol.SPEAKS)", 'Protocol.SPEAKS).put("later", "x")'),
}
CONF = {
    # No sentence may fail for a slow machine.
    "topology.message.timeout.secs": 60,
    # A supervisor that was restarted knows a dead worker by its silence alone, after Storm's 30 s:
    # less would kill the living, whose heartbeats wait while no supervisor listens. It has to
    # notice before Nimbus gives the executors to the other workers.
    "nimbus.task.timeout.secs": 90,
}


def built(source: Path) -> Path:
    command = ["mvn", "-q", "-B", "-f", str(source / "pom.xml"), "-Dmaven.test.skip=true"]
    subprocess.run([*command, "package"], check=True, timeout=600)
    return source / "target" / AGENT_JAR.name


@pytest.fixture(scope="module")
def previous_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of before; a clone without the history has none."""
    repository, copy = SOURCE.parents[1], tmp_path_factory.mktemp("previous")
    archive = ["git", "-C", str(repository), "archive", PREVIOUS, "migration/jvm"]
    found = subprocess.run(archive, capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip(f"commit {PREVIOUS} is not in this clone: type  git fetch --unshallow")
    subprocess.run(["tar", "-x", "-C", str(copy)], input=found.stdout, check=True)
    return built(copy / "migration/jvm")


@pytest.fixture(scope="module")
def later_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of the next version."""
    copy = tmp_path_factory.mktemp("later") / "jvm"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("target"))
    for name, (today, later) in LATER.items():
        path = copy / "src/main/java/nstorm" / name
        text = path.read_text("utf-8")
        assert today in text
        path.write_text(text.replace(today, later), "utf-8")
    return built(copy)


@pytest.fixture(scope="module")
def jar_link(tmp_path_factory: pytest.TempPathFactory, previous_jar: Path) -> Path:
    """What storm.yaml names, as docs/operations.md has it."""
    link = tmp_path_factory.mktemp("opt") / "nstorm-agent.jar"
    link.symlink_to(previous_jar)
    return link


@pytest.fixture(scope="module")
def fed(jar_link: Path) -> Iterator[Lab]:
    """A cluster of its own with a fed topology."""
    sweep()
    with plan_lab(f"versions-{os.getpid()}", agent_jar=jar_link, conf=CONF) as lab:
        lab.submit(TOPOLOGY, rate_tps=RATE_TPS)
        lab.wait_ready(TOPOLOGY)
        yield lab


@pytest.fixture(scope="module")
def operator(fed: Lab) -> Iterator[Operator]:
    with beside(fed, TOPOLOGY) as found:
        yield found


@pytest.fixture(scope="module")
def session(fed: Lab) -> Iterator[Session]:
    with Session(fed.storm_zookeeper) as found:
        found.connect()
        yield found


def versions(session: Session) -> tuple[set[int], set[int], set[int]]:
    """Give the versions that the hooks of workers, of supervisors and of Nimbus speak."""
    view = published(LiveCluster.of_session(session), TOPOLOGY)
    workers = {ack.speaks for node in view.acks for ack in node.workers}
    supervisors = {node.supervisor.speaks for node in view.acks if node.supervisor}
    return workers, supervisors, {view.nimbus.speaks} if view.nimbus else set()


def move_each_way(lab: Lab, operator: Operator, one: Slot, other: Slot) -> None:
    """Move an executor there and back."""
    for source, target in ((one, other), (other, one)):
        placement = operator.placement()
        executor = next(e for e in placement.free if placement.slot_of[e] == source)
        done = operator.follow(operator.ask(executor, target), lambda now: now.ended)
        assert (done.state, done.reason) == ("MOVED", done.reason)
        lab.wait_until("the move has come to its end", lambda: operator.entries() == 0)


def ends(operator: Operator) -> tuple[Slot, Slot]:
    """Two workers on different nodes with something to move."""
    placement = operator.placement()
    slots = sorted({placement.slot_of[executor] for executor in placement.free})
    return slots[0], next(s for s in slots if s.supervisor != slots[0].supervisor)


def failed(lab: Lab) -> int:
    """Wait until nothing is on its way, and tell how many sentences have failed so far."""
    ledger = lab.ledger(TOPOLOGY)
    ledger.set_rate(0)
    lab.wait_until("nothing is on its way", lambda: ledger.in_flight() == 0)
    totals = ledger.totals()
    assert totals.acked > 0
    assert totals.double_acked == 0
    ledger.set_rate(RATE_TPS)
    return totals.failed


def registrations(session: Session) -> dict[str, int]:
    """Give the version of each supervisor's node of Storm's; it counts from 0 once made anew."""
    names = session.children("/supervisors") or []
    found = {name: session.exists(f"/supervisors/{name}") for name in names}
    return {name: stored.version for name, stored in found.items() if stored is not None}


def undisturbed(lab: Lab) -> int:
    """Wait until Storm's own connections to a new worker carry; until then sentences fail.

    Returns
    -------
    int
        How many sentences had failed by then.
    """
    ledger, before = lab.ledger(TOPOLOGY), failed(lab)
    while True:
        acked = ledger.totals().acked
        lab.wait_until(
            "three seconds of sentences are acked",
            lambda acked=acked: ledger.totals().acked >= acked + 3 * RATE_TPS,
        )
        after = failed(lab)
        if after == before:
            return after
        before = after


def test_a_later_worker_beside_everything_of_before(
    fed: Lab, operator: Operator, session: Session, jar_link: Path, later_jar: Path
) -> None:
    assert versions(session) == ({1}, {1}, {1})
    move_each_way(fed, operator, *ends(operator))
    assert failed(fed) == 0
    jar_link.unlink()
    jar_link.symlink_to(later_jar)
    one, other = ends(operator)
    pids = fed.worker_pids()
    fed.ledger(TOPOLOGY).set_rate(0)
    fed.kill_worker(str(other))
    fed.wait_until(
        "the worker is back",
        lambda: fed.worker_pids().get(str(other), pids[str(other)]) != pids[str(other)],
    )
    fed.wait_ready(TOPOLOGY)
    fed.wait_until("both versions answer", lambda: versions(session) == ({1, 2}, {1}, {1}))
    fed.wait_until("all workers answer their agents", operator.ready)
    before = undisturbed(fed)
    move_each_way(fed, operator, one, other)
    assert failed(fed) == before


def test_a_rolling_upgrade_under_load_loses_nothing(
    fed: Lab, operator: Operator, session: Session
) -> None:
    pids, registered, before = fed.worker_pids(), registrations(session), failed(fed)
    assert len(registered) == len(fed.nodes)
    for name in ("nimbus", *(node.host for node in fed.nodes)):
        fed.kill_daemon(name, SIGTERM)
        fed.wait_until(f"{name} has ended", lambda name=name: fed.daemon(name) is None)
        fed.start_daemon(name)
    for node in fed.nodes:
        fed.kill_daemon(f"agent-{node.host}", SIGTERM)
        agent = f"agent-{node.host}"
        fed.wait_until("the agent has ended", lambda agent=agent: fed.daemon(agent) is None)
        fed.start_agent(node)
    # Three workers still have the jar of before; everything else is of the later version.
    fed.wait_until("the others are upgraded", lambda: versions(session) == ({1, 2}, {2}, {2}))

    def registered_anew() -> bool:
        now = registrations(session)
        return all(now.get(name, version) < version for name, version in registered.items())

    # A supervisor's node goes with the session of before, up to 20 s later; until its next sign of
    # life Storm then has no such supervisor, and a move there is refused.
    fed.wait_until("Storm has the supervisors as of their new sessions", registered_anew)
    anew_ms = time.time() * 1000

    def published_anew() -> bool:
        view = published(LiveCluster.of_session(session), TOPOLOGY)
        names = {node.id for node in view.publication.nodes}
        # Nimbus' hooks look at the supervisors each 4.5 s.
        said_ms = view.nimbus.time_ms if view.nimbus else 0
        return names >= registered.keys() and said_ms > anew_ms + 5000

    fed.wait_until("Nimbus has published the supervisors", published_anew)
    fed.wait_until("all workers answer their agents", operator.ready)
    move_each_way(fed, operator, *ends(operator))
    assert fed.worker_pids() == pids
    assert failed(fed) == before


def test_what_one_worker_does_not_understand_is_refused_by_its_name(
    operator: Operator, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a later controller does it, whose moves have a phase of version 2.
    monkeypatch.setattr(validate, "NEEDS_VERSION", 2)
    monkeypatch.setattr(observation, "SPEAKS", 2)
    view = published(LiveCluster.of_session(session), TOPOLOGY)
    one, other = ends(operator)
    placement = operator.placement()
    executor = next(e for e in placement.free if placement.slot_of[e] == one)
    acks = [replace(node, speaks=2) for node in view.acks]  # agents of the later version
    refusal = validate_move(view.publication, view.plan, acks, executor, other, move_id="m0")
    assert isinstance(refusal, Refusal)
    assert refusal.code is RefusalCode.NOT_UNDERSTOOD
    assert "the worker at" in refusal.reason
    assert "speaks version 1 of the protocol, and a move needs 2" in refusal.reason


def test_an_entry_in_an_unknown_phase_changes_nothing(
    fed: Lab, operator: Operator, session: Session
) -> None:
    view = published(LiveCluster.of_session(session), TOPOLOGY)
    one, other = ends(operator)
    placement = operator.placement()
    executor = next(e for e in placement.free if placement.slot_of[e] == one)
    path, pids, before = wire.plan_path(view.id), fed.worker_pids(), failed(fed)
    placed = view.publication.find(executor)
    assert placed is not None
    assert placed.start_secs is not None
    entry = Entry("later", executor, one, other, Phase.UNDO, Base(one, placed.start_secs))
    written = view.plan.followed_by((entry,), view.plan.epoch)
    text = wire.encode(written).replace(b'"phase":"UNDO"', b'"phase":"CARRY","state":{"bytes":7}')
    session.set(path, text, view.plan.version)

    def states() -> set[EntryState]:
        now = published(LiveCluster.of_session(session), TOPOLOGY)
        found = [ack.find("later") for node in now.acks for ack in node.workers]
        return {entry.state if entry else EntryState.NONE for entry in found}

    fed.wait_until("all workers say so", lambda: states() == {EntryState.NOT_UNDERSTOOD})
    now = published(LiveCluster.of_session(session), TOPOLOGY)
    assert now.stand_back is not None
    assert "a later version of nstorm has written the plan" in now.stand_back
    assert failed(fed) == before
    assert operator.placement().slot_of[ExecutorId(executor.start, executor.end)] in (one, other)
    assert fed.worker_pids() == pids
    # The later controller ends its move.
    session.set(path, wire.encode(written.followed_by((), written.epoch)), written.version)
    fed.wait_until("moves may begin again", operator.ready)
    move_each_way(fed, operator, one, other)
    assert failed(fed) == before
