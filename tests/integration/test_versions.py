"""Two versions side by side: served, moved where all understand it, refused where not.

There is no release yet. So what is of before is an earlier commit, which speaks version 1 of the
protocol. Its jar is built, and its agents and controller run from its Python. The rest is today's.
"""

import os
import subprocess
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from signal import SIGTERM
from typing import NamedTuple

import pytest

from controller.core.topology import TopologyView
from controller.storm.collect import LiveCluster
from controller.storm.command_record import REFUSED
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab, sweep
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.operator import Operator, beside, published
from kvstore.zookeeper import Session
from migration import wire
from migration.model import Base, Entry, EntryState, Phase, Slot, Way
from migration.protocol import following
from tests.clusters import CALM

pytestmark = [pytest.mark.cluster, pytest.mark.long]
TOPOLOGY = "versions-test"
RATE_TPS = 300
# Of 2026-11-24, in main.
PREVIOUS = "bdefbadfaa4a38b7e44f151a36142545ae277405"
PACKAGES = ("agent", "controller", "kvstore", "migration")
OLD, NEW = 1, wire.SPEAKS
# No sentence may fail for a slow machine. The version before refuses keys of ours that are newer.
CONF = {
    **{key: value for key, value in CALM.items() if not key.startswith("nstorm.")},
    "topology.message.timeout.secs": 60,
}


class Versions(NamedTuple):
    """The versions of the protocol that a cluster speaks."""

    workers: set[int]
    supervisors: set[int]
    nimbus: set[int]
    agents: set[int]
    controllers: set[int]


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of before, with the jar built; a clone without the history has none."""
    copy = tmp_path_factory.mktemp("previous")
    archive = ["git", "-C", str(REPOSITORY), "archive", PREVIOUS, *PACKAGES]
    found = subprocess.run(archive, capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip(f"commit {PREVIOUS} is not in this clone: type  git fetch --unshallow")
    subprocess.run(["tar", "-x", "-C", str(copy)], input=found.stdout, check=True)
    command = ["mvn", "-q", "-B", "-f", str(copy / "migration/jvm/pom.xml"), "package"]
    subprocess.run([*command, "-Dmaven.test.skip=true"], check=True, timeout=600)
    return copy


@pytest.fixture(scope="module")
def jar_link(tmp_path_factory: pytest.TempPathFactory, previous: Path) -> Path:
    """What storm.yaml names, as docs/operations.md has it."""
    link = tmp_path_factory.mktemp("opt") / HOOKS_JAR.name
    link.symlink_to(previous / "migration/jvm/target/nstorm-agent.jar")  # as it was called then
    return link


@pytest.fixture(scope="module")
def fed(jar_link: Path) -> Iterator[Lab]:
    """A cluster of its own with a fed topology."""
    sweep()
    with plan_lab(f"versions-{os.getpid()}", hooks_jar=jar_link, conf=CONF) as lab:
        lab.submit(TOPOLOGY, rate_tps=RATE_TPS)
        lab.wait_ready(TOPOLOGY)
        yield lab


@pytest.fixture(scope="module")
def operator(fed: Lab, previous: Path) -> Iterator[Operator]:
    """An operator with agents and a controller of before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(previous))
        patch.setenv("PYTHONSAFEPATH", "1")  # else the folder of this process came first
        running = beside(fed, TOPOLOGY)
        found = running.__enter__()
    try:
        yield found
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(scope="module")
def session(fed: Lab) -> Iterator[Session]:
    with Session(fed.storm_zookeeper) as found:
        found.connect()
        yield found


def look(session: Session) -> TopologyView:
    return published(LiveCluster.of_session(session), TOPOLOGY)


def versions(session: Session) -> Versions:
    view = look(session)
    return Versions(
        {ack.speaks for node in view.acks for ack in node.workers},
        {node.supervisor.speaks for node in view.acks if node.supervisor},
        {view.nimbus.speaks} if view.nimbus else set(),
        {node.speaks for node in view.acks},
        {one.speaks for one in LiveCluster.of_session(session).controllers()},
    )


def move(lab: Lab, operator: Operator, source: Slot, target: Slot) -> None:
    placement = operator.placement()
    executor = next(e for e in placement.free if placement.slot_of[e] == source)
    done = operator.follow(operator.ask(executor, target), lambda now: now.ended)
    assert (done.state, done.reason) == ("MOVED", done.reason)
    lab.wait_until("the move has come to its end", lambda: operator.entries() == 0)


def move_each_way(lab: Lab, operator: Operator, one: Slot, other: Slot) -> None:
    """Move an executor there and one back."""
    move(lab, operator, one, other)
    move(lab, operator, other, one)


def ends(
    operator: Operator,
    among: Collection[Slot] | None = None,
    first: Collection[Slot] | None = None,
) -> tuple[Slot, Slot]:
    """Two workers on different nodes with something to move."""
    placement = operator.placement()
    found = {placement.slot_of[executor] for executor in placement.free}
    slots = sorted(found if among is None else found.intersection(among))
    one = next(slot for slot in slots if first is None or slot in first)
    return one, next(s for s in slots if s.supervisor != one.supervisor)


def failed(lab: Lab) -> int:
    """Wait until nothing is on its way, and count how many sentences have failed so far."""
    ledger = lab.ledger(TOPOLOGY)
    ledger.set_rate(0)
    lab.wait_until("nothing is on its way", lambda: ledger.in_flight() == 0)
    totals = ledger.totals()
    assert totals.acked > 0
    assert totals.double_acked == 0
    ledger.set_rate(RATE_TPS)
    return totals.failed


def registrations(session: Session) -> dict[str, int]:
    """Give the version of each supervisor's node of Storm's; it counts from 0 once made again."""
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
            lambda acked=acked: ledger.totals().acked >= acked + 3 * RATE_TPS,  # type: ignore[misc]
        )
        after = failed(lab)
        if after == before:
            return after
        before = after


def wait_for_end(lab: Lab, name: str) -> None:
    lab.wait_until(f"{name} has ended", lambda: lab.daemon(name) is None)


def restart(lab: Lab, *names: str) -> None:
    for name in names:
        lab.kill_daemon(name, SIGTERM)
        wait_for_end(lab, name)
        lab.start_daemon(name)


def test_jvms_of_today_beside_agents_and_controller_of_before(
    fed: Lab, operator: Operator, session: Session, jar_link: Path
) -> None:
    before = Versions({OLD}, {OLD}, {OLD}, {OLD}, {OLD})
    fed.wait_until("all of before have said so", lambda: versions(session) == before)
    jar_link.unlink()
    jar_link.symlink_to(HOOKS_JAR)
    # The new worker will have a spout, whose way the others do not understand.
    executors = look(session).publication.executors
    spouts = {one.slot for one in executors if one.component == "spout" and one.slot}
    other, one = ends(operator, first=spouts)
    pids = fed.worker_pids()
    fed.ledger(TOPOLOGY).set_rate(0)
    fed.kill_worker(str(other))
    fed.wait_until(
        "the worker is back",
        lambda: fed.worker_pids().get(str(other), pids[str(other)]) != pids[str(other)],
    )
    fed.wait_ready(TOPOLOGY)
    failed_before = undisturbed(fed)
    pids, registered = fed.worker_pids(), registrations(session)
    assert len(registered) == len(fed.nodes)
    restart(fed, "nimbus", *(node.host for node in fed.nodes))
    upgraded = Versions({OLD, NEW}, {NEW}, {NEW}, {OLD}, {OLD})
    fed.wait_until("Storm's daemons are upgraded", lambda: versions(session) == upgraded)
    wait_registered(fed, session, registered)
    fed.wait_until("all workers answer their agents", operator.ready)
    move_each_way(fed, operator, one, other)
    assert fed.worker_pids() == pids
    assert failed(fed) == failed_before


def wait_registered(lab: Lab, session: Session, registered: dict[str, int]) -> None:
    """Wait until Storm and its publication have the supervisors that were restarted.

    A supervisor's node goes with the session of before, up to 20 s later. Until its next heartbeat
    Storm then has no such supervisor, and a move there is refused.
    """

    def registered_anew() -> bool:
        now = registrations(session)
        return all(now.get(name, version) < version for name, version in registered.items())

    lab.wait_until("Storm has the supervisors as of their new sessions", registered_anew)
    anew_ms = time.time() * 1000

    def published_anew() -> bool:
        view = look(session)
        names = {node.id for node in view.publication.nodes}
        # Nimbus' hooks look at the supervisors each 4.5 s.
        said_ms = view.nimbus.time_ms if view.nimbus else 0
        return names >= registered.keys() and said_ms > anew_ms + 5000

    lab.wait_until("Nimbus has published the supervisors", published_anew)


def test_workers_of_before_beside_everything_of_today(
    fed: Lab, operator: Operator, session: Session
) -> None:
    pids, before = fed.worker_pids(), failed(fed)
    for node in fed.nodes:
        agent = f"agent-{node.host}"
        fed.kill_daemon(agent, SIGTERM)
        wait_for_end(fed, agent)
        fed.start_agent(node)
    fed.stop_controller()
    fed.start_controller("observe")
    # Three workers still have the jar of before: a rolling upgrade is complete but for them.
    upgraded = Versions({OLD, NEW}, {NEW}, {NEW}, {NEW}, {NEW})
    fed.wait_until("the others are upgraded", lambda: versions(session) == upgraded)
    fed.wait_until("all workers answer their agents", operator.ready)
    slots = {ack.slot for node in look(session).acks for ack in node.workers if ack.speaks == OLD}
    one, other = ends(operator, slots)
    move_each_way(fed, operator, one, other)
    assert fed.worker_pids() == pids
    assert failed(fed) == before


def test_what_one_worker_does_not_understand_is_refused_by_its_name(
    operator: Operator, session: Session
) -> None:
    view = look(session)
    (new,) = (ack for node in view.acks for ack in node.workers if ack.speaks == NEW)
    slots = sorted(view.observation.slots)
    old = next(slot for slot in slots if slot.supervisor != new.slot.supervisor)
    spout = next(one.executor for one in new.ways if one.way is Way.SPOUT)
    asked = operator.follow(operator.ask(spout, old), lambda now: now.ended)
    assert (asked.state, operator.entries()) == (REFUSED, 0)
    assert "the worker at" in asked.reason
    assert "speaks version 1 of the protocol, and a move of way spout needs 2" in asked.reason


def test_an_entry_in_an_unknown_phase_changes_nothing(
    fed: Lab, operator: Operator, session: Session
) -> None:
    view = look(session)
    one, other = ends(operator)
    placement = operator.placement()
    executor = next(e for e in placement.free if placement.slot_of[e] == one)
    path, pids, before = wire.plan_path(view.id), fed.worker_pids(), failed(fed)
    placed = view.publication.find(executor)
    assert placed is not None
    assert placed.start_secs is not None
    entry = Entry("later", executor, one, other, Phase.UNDO, Base(one, placed.start_secs))
    written = following(view.plan, (entry,), view.plan.epoch)
    text = wire.encode(written).replace(b'"phase":"UNDO"', b'"phase":"LEAP","state":{"bytes":7}')
    session.set(path, text, view.plan.version)

    def states() -> set[EntryState]:
        now = look(session)
        found = [ack.find("later") for node in now.acks for ack in node.workers]
        return {entry.state if entry else EntryState.NONE for entry in found}

    fed.wait_until("all workers say so", lambda: states() == {EntryState.NOT_UNDERSTOOD})
    now = look(session)
    assert now.stand_back is not None
    assert "a later version of nstorm has written the plan" in now.stand_back
    assert failed(fed) == before
    assert operator.placement().slot_of[executor] in (one, other)
    assert fed.worker_pids() == pids
    # The later controller ends its move.
    session.set(path, wire.encode(following(written, (), written.epoch)), written.version)
    fed.wait_until("moves may begin again", operator.ready)
    move(fed, operator, one, other)
    assert failed(fed) == before
