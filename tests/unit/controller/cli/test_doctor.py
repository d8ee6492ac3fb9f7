"""What `nstorm doctor` finds, and that it finds nothing where all is well."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias, cast
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from controller.cli import doctor
from controller.cli.main import app
from controller.cli.status_document import DecisionStatus, StatusDocument, as_document
from controller.cli.status_view import as_tables
from controller.core.controls import Controls
from controller.core.receivers import NoticeKind, Receiver
from controller.core.topology import TopologyView
from controller.storm.leader_status import LeaderStatus
from kvstore.ensemble import CREATOR, Grant
from kvstore.writer import PlanWriter
from kvstore.zookeeper import Session
from migration.access import TABLE, acl_for
from migration.model import Candidacy, Counters, Node, Plan, Slot
from migration.wire import SPEAKS
from tests.messages import node_acks, publication, replace, worker_ack
from tests.unit.controller.conftest import Nstorm

A, B = Slot("a", 1), Slot("b", 1)


def status_of(
    *workers: Any,
    clocks: dict[str, float] | None = None,
    silent: dict[str, float] | None = None,
    **changes: Any,
) -> StatusDocument:
    """Show a cluster of two nodes in which all is well but for the changes."""
    version = changes.pop("version", metadata.version("nstorm"))
    acks = [
        replace(node_acks(slot.supervisor, [worker], "c"), agent=version)
        for slot, worker in zip(
            (A, B), workers or (worker_ack(A, [1]), worker_ack(B, [2])), strict=False
        )
    ]
    nodes = [Node(n, f"host-{n}", 200.0, (1, 2), 1) for n in "ab"]
    view = TopologyView(publication({1: A, 2: B}, nodes), Plan("c", 1, -1, "wc-1"), tuple(acks))
    leads = [Candidacy("ctl-1:7", version, SPEAKS)]
    document = as_document(
        [view],
        acks,
        LeaderStatus(),
        Controls(),
        controllers=leads,
        left_out={},
        clocks_ahead_s=clocks or {"a": 0.01, "b": -0.01},
        silent_s=silent or {"a": 0.0, "b": 5.0},
    )
    return replace(document, **changes)


HOSTS = {"a": "host-a", "b": "host-b"}


def found(status: StatusDocument) -> list[str]:
    return [what for what, _ in doctor.of_status(status)]


def test_what_is_off_is_found_once() -> None:
    status = status_of(off="a fault")
    assert found(status) == ["nstorm is switched off: a fault"]
    node = status_of()
    agents = (replace(node.agents[0], off="a fault"), *node.agents[1:])
    assert found(replace(node, agents=agents)) == ["the hooks on host-a are off: a fault"]
    everywhere = replace(node, agents=agents, off="a fault")
    assert found(everywhere) == ["nstorm is switched off: a fault"]


def test_what_is_off_is_not_taken_for_unknown_code() -> None:
    status, error = status_of(off="a fault"), "the hooks are off: a fault"
    off = replace(
        status,
        agents=tuple(replace(one, supervisor_error=error) for one in status.agents),
        topologies=tuple(replace(one, nimbus_error=error) for one in status.topologies),
    )
    assert found(off) == ["nstorm is switched off: a fault"]


@pytest.mark.parametrize("file", ["nimbus/PlanExchange", "supervisor/SupervisorReport"])
def test_the_jvms_write_what_is_off_as_doctor_reads_it(file: str) -> None:
    java = Path(__file__).parents[4] / "migration/jvm/src/main/java/nstorm" / f"{file}.java"
    assert f'"{doctor.OFF}" + off' in java.read_text("utf-8")


def test_what_nothing_shows_is_named() -> None:
    status = status_of()
    (topology,) = status.topologies
    a, b = (
        replace(one, meters={"link_bytes_per_s": 0.0} if speed is None else {**speed})
        for one, speed in zip(status.agents, (None, {"link_bytes_per_s": 1.25e8}), strict=True)
    )
    young, old = (
        replace(one, meters=meters)
        for one, meters in zip(topology.workers, ({}, {"heap_live_bytes": 7.0}), strict=True)
    )
    seen = replace(status, agents=(a, b), topologies=(replace(topology, workers=(young, old)),))

    link, heap = doctor.of_unseen({}, seen)

    assert link.startswith("the speed of the link of host-a is not known")
    assert heap.startswith("1 of 2 workers have shown no heap after a collection")
    assert [*doctor.of_unseen({"nstorm.link.capacity.mbit": 100}, seen)] == [heap]
    assert [*doctor.of_unseen({}, status)] == []


@pytest.mark.parametrize(("cores", "said"), [(0.9, False), (0.95, True)])
def test_a_full_thread_between_workers_is_named(cores: float, said: bool) -> None:
    status = status_of()
    (topology,) = status.topologies
    first, *others = topology.workers
    workers = (replace(first, meters={"transfer_cpu_cores": cores}), *others)
    full = replace(status, topologies=(replace(topology, workers=workers),))
    what = "sends to others by one thread that uses 0.95 of a core: that thread binds"
    assert found(full) == [f"worker host-a:1 of wc {what}"] * said
    assert (f"worker host-a:1 {what}" in map(str, as_tables(full))) is said


def test_where_all_is_well_nothing_is_found() -> None:
    assert found(status_of()) == []


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (status_of(controllers=()), "no controller leads"),
        (status_of(journal_problem="disk full"), "the journal is not written: disk full"),
        (
            status_of(silent={"a": 2.0, "b": 70.4}),
            "no report from the agent of host-b for 70 s or more",
        ),
        (status_of(topologies=()), "the hooks in Nimbus publish no topology"),
        (
            status_of(clocks={"a": 0.0, "b": 3.25}),
            "the clock of host-b is +3.2 s from ZooKeeper's",
        ),
        (
            status_of(worker_ack(A, [1]), worker_ack(B, [2], error="plan store: damaged")),
            "worker host-b:1 of wc reports: plan store: damaged",
        ),
        (
            status_of(worker_ack(A, [1], speaks=SPEAKS - 1), worker_ack(B, [2])),
            f"worker host-a:1 of wc speaks version {SPEAKS - 1} of the protocol, "
            f"this nstorm {SPEAKS}",
        ),
        (
            status_of(worker_ack(A, [1], counters=Counters(dropped=1200)), worker_ack(B, [2])),
            "worker host-a:1 of wc dropped 1,200 tuples",
        ),
        (
            status_of(worker_ack(A, [1], storm="2.8.3"), worker_ack(B, [2], storm="3.0.0")),
            "the worker at host-a:1 runs Storm 2.8.3, and the worker at host-b:1 runs Storm 3.0.0: "
            "these do not mix",
        ),
    ],
)
def test_each_fault_is_found(status: StatusDocument, what: str) -> None:
    assert found(status) == [what]


def test_daemons_with_unknown_code_are_found() -> None:
    status = status_of()
    odd = "Storm 2.9.0 has code that these hooks do not know: Slot.handleRunning"
    agents = (replace(status.agents[0], supervisor_error=odd), *status.agents[1:])
    topologies = tuple(replace(one, nimbus_error=odd) for one in status.topologies)
    assert found(replace(status, agents=agents, topologies=topologies)) == [
        f"Nimbus moves nothing: {odd}",
        f"the supervisor of host-a moves nothing: {odd}",
    ]


def test_a_node_without_agent_and_a_jvm_without_hooks_are_found() -> None:
    status = status_of(worker_ack(A, [1]), silent={"a": 1.0})
    assert found(status) == [
        "no report from the agent of host-b",
        "worker host-b:1 of wc has no hooks",
    ]
    agents = [replace(agent, supervisor_hooks=None) for agent in status.agents[:1]]
    status = replace(status, agents=tuple(agents))
    assert "the supervisor of host-a has no hooks" in found(status)


def test_the_command_for_a_topology_with_an_odd_name_can_be_typed() -> None:
    (topology,) = status_of(worker_ack(A, [1])).topologies
    ((_, advice),) = doctor._of_topology(replace(topology, name="-my wc"), HOSTS, {"b"})
    assert "`nstorm adopt -- '-my wc'` restarts" in advice


def test_a_supervisor_that_does_not_run_is_found_and_its_workers_are_not_blamed() -> None:
    status = status_of(worker_ack(A, [1]))
    status = replace(status, hosts={"a": "host-a"}, silent_s={})
    assert found(status) == ["Storm does not list the supervisor b, where wc has workers"]


def test_a_worker_that_may_be_starting_is_noted() -> None:
    status = status_of()
    (topology,) = status.topologies
    workers = (replace(topology.workers[0], starting=True), *topology.workers[1:])
    seen = replace(status, topologies=(replace(topology, workers=workers),))
    (note,) = doctor.of_unseen({"nstorm.link.capacity.mbit": 1}, seen)
    assert note.startswith("a:1 of wc may be starting: if that lasts, worker.log.err there has")


def test_what_storm_would_undo_is_found() -> None:
    status = status_of()
    (wc,) = status.topologies
    status = replace(status, topologies=(replace(wc, undoes="it is isolated"),))
    assert found(status) == [
        "nothing of wc is moved or drained, for Storm would undo it: it is isolated"
    ]


def test_what_no_move_mends_is_found() -> None:
    status = status_of()
    (wc,) = status.topologies
    warned = DecisionStatus(7, "NOTHING_TO_GAIN", "none", ("a:1 has started again",), "")
    status = replace(status, topologies=(replace(wc, decision=warned),))
    assert found(status) == ["wc: host-a:1 has started again"]


def test_another_version_is_named_for_each_who_has_it() -> None:
    mine = metadata.version("nstorm")
    assert found(status_of(version="0.1.9")) == [
        f"controller ctl-1:7 is of version 0.1.9, this command of {mine}",
        f"agent a is of version 0.1.9, this command of {mine}",
        f"agent b is of version 0.1.9, this command of {mine}",
    ]


def test_a_slow_zookeeper_is_found() -> None:
    assert not list(doctor.of_zookeeper(0.004))
    ((slow, _),) = doctor.of_zookeeper(0.25)
    assert slow == "ZooKeeper takes 250 ms for an answer"


def test_a_node_is_asked_for_its_cores_and_its_store(tmp_path: Path) -> None:
    hosts = {"a": "host-a"}
    conf = {"storm.local.hostname": "host-a", "nstorm.store.dir": str(tmp_path)}
    well = {**conf, "supervisor.cpu.capacity": 800}
    with PlanWriter(tmp_path / "plan", b"plan") as writer:
        writer.write(b"{}")
    assert not list(doctor.of_machine(well, hosts, cores=8))
    ((cores, do),) = doctor.of_machine(conf, hosts, cores=8)
    assert cores == "supervisor.cpu.capacity is 400 and this machine has 8 cores"
    assert do.startswith("Set it to 800")
    ((text, _),) = doctor.of_machine(conf | {"supervisor.cpu.capacity": "x"}, hosts, cores=8)
    assert text == "supervisor.cpu.capacity is x and this machine has 8 cores"
    elsewhere = {**well, "nstorm.store.dir": str(tmp_path / "gone")}
    ((store, _),) = doctor.of_machine(elsewhere, hosts, cores=8)
    assert store.startswith("the store of this node cannot be read: ")
    assert not list(doctor.of_machine({**conf, "storm.local.hostname": "else"}, hosts, cores=8))


def test_options_of_this_node_name_a_jar_that_is_there(tmp_path: Path) -> None:
    jar = tmp_path / "nstorm-hooks.jar"

    def problems(options: Any) -> list[str]:
        conf = {"supervisor.childopts": f"-Xmx256m -javaagent:{jar}", "worker.childopts": options}
        return [what for what, _ in doctor._of_jar(conf)]

    gone = f"names {jar}, which is not there: no JVM starts"
    expected = [
        f"{key} of this node {gone}" for key in ("supervisor.childopts", "worker.childopts")
    ]
    assert problems(["-Xmx768m", f"-javaagent:{jar}=quiet"]) == expected
    jar.touch()
    assert problems(f"-javaagent:jmx.jar -javaagent:{jar}") == []
    assert problems("-javaagent:%STORM_HOME%/nstorm-hooks.jar") == []
    (without,) = problems("-Xmx768m -javaagent:jmx.jar")
    assert without == (
        "worker.childopts of this node names no jar of nstorm: what starts has no hooks"
    )
    assert not list(doctor._of_jar({}))


def test_a_machine_is_found_by_its_canonical_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storm publishes that where `storm.local.hostname` is not set."""
    monkeypatch.setattr("socket.getfqdn", lambda: "node1.corp.example.com")
    monkeypatch.setattr("socket.gethostname", lambda: "node1")
    conf = {"supervisor.cpu.capacity": 200, "storm.local.dir": "/nowhere"}
    for name in ("node1.corp.example.com", "node1"):
        what = [what for what, _ in doctor.of_machine(conf, {"a": name}, cores=8)]
        assert what[0] == "supervisor.cpu.capacity is 200 and this machine has 8 cores"
    assert not list(doctor.of_machine(conf, {"a": "node2"}, cores=8))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("nstorm.mod: auto", "nstorm.mod: unknown key, did you mean nstorm.mode?"),
        ("nstorm.worker.poll.ms: 0", "nstorm.worker.poll.ms: must be a whole number"),
        ("nstorm.load.high: 7", "nstorm.load.high: must be a number"),
    ],
)
def test_a_key_that_cannot_be_is_found_without_zookeeper(
    line: str, what: str, tmp_path: Path
) -> None:
    conf = tmp_path / "storm.yaml"
    conf.write_text(f"{line}\n")
    done = CliRunner().invoke(app, ["doctor", "--conf", str(conf), "-o", "json"])
    (one,) = json.loads(done.output)
    assert done.exit_code == 1
    assert one["what"].startswith(f"{conf}: {what}")
    assert one["do"]


def test_a_key_over_the_file_that_cannot_be_is_not_blamed_on_the_file(
    tmp_path: Path, nstorm: Nstorm
) -> None:
    conf = tmp_path / "storm.yaml"
    conf.write_text("nstorm.mode: auto\n")
    done = nstorm("doctor", "-c", "nstorm.mod=auto", "--conf", str(conf), "-o", "json")
    (one,) = json.loads(done.out)
    assert one["what"].startswith(f"{conf} with -c: nstorm.mod: unknown key")
    assert one["do"].startswith("Correct it there;")


def test_every_key_that_cannot_be_is_found_not_only_the_first() -> None:
    conf = {
        "nstorm.mod": "auto",
        "nstorm.journl.days": 3,
        "nstorm.load.high": 7,
        "nstorm.policy": "best",
        "nstorm.agent.metrics.port": "http",
        "storm.zookeeper.root": "/storm",
    }
    found = [what for what, _ in doctor.of_storm_yaml(conf)]
    assert [what.partition(":")[0] for what in found] == [
        "nstorm.mod",
        "nstorm.journl.days",
        "nstorm.policy",
        "nstorm.load.high",
        "nstorm.agent.metrics.port",
    ]
    ((low, _),) = doctor.of_storm_yaml({"nstorm.load.high": 0.5, "nstorm.load.low": 0.6})
    assert low.startswith("nstorm.load.low: must be at most nstorm.load.high")
    ((never, _),) = doctor.of_storm_yaml({"nstorm.windows": ["0 0 31 2 * UTC"]})
    assert never.startswith("nstorm.windows: '0 0 31 2 * UTC'")
    assert not [*doctor.of_storm_yaml({"nstorm.load.high": 0.9, "nstorm.worker.poll.ms": 50})]


@pytest.mark.parametrize(
    ("silent_s", "said"),
    [({}, "nothing found"), ({"a": None}, "- no report from the agent of host-a")],
)
def test_the_exit_code_tells_whether_something_was_found(
    silent_s: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = status_of(silent_s=silent_s)

    @contextmanager
    def connected(conf: Path) -> Iterator[Session]:
        yield Session("nowhere:1")

    class View:
        @staticmethod
        def of_session(session: Session) -> Mock:
            return Mock(topologies=list)

    monkeypatch.setattr(doctor, "connected", connected)
    monkeypatch.setattr(doctor, "LiveCluster", View)
    monkeypatch.setattr(doctor, "_latency_s", lambda session: 0.002)
    monkeypatch.setattr(doctor, "look", lambda session, view: status)
    conf = tmp_path / "storm.yaml"
    conf.write_text("storm.local.dir: /var/storm\n")
    done = CliRunner().invoke(app, ["doctor", "--conf", str(conf)])
    assert done.exit_code == (said != "nothing found")
    assert said in done.output
    assert ("nothing found" in done.output) == (said == "nothing found")
    assert "note: with `nstorm off`: all hooks would be inert at once" in done.output
    assert "note: the identity at ZooKeeper is none: whoever reaches ZooKeeper" in done.output


def test_a_trial_notice_shows_which_receivers_take_it(tmp_path: Path) -> None:
    got = tmp_path / "got"
    keeps = Receiver(mail=("tee", str(got)), kinds=(NoticeKind.GUARD,))
    absent = Receiver(slack=str(tmp_path / "slack.url"))
    ((what, do),) = doctor.of_receivers([keeps, absent], "zk1:2181/storm", 0.0)
    assert what == (
        f"{absent.slack} has not taken a trial notice: {absent.slack}: cannot be read: "
        "No such file or directory"
    )
    assert "user of the controller" in do
    assert "Subject: nstorm at zk1:2181/storm: guard" in got.read_text()
    assert "a trial of `nstorm doctor --notify`" in got.read_text()
    ((what, _),) = doctor.of_receivers([], "zk1:2181/storm", 0.0)
    assert what == "nobody gets notices"


Grants: TypeAlias = tuple[Grant, ...]


class Tree:
    """A session with a ZooKeeper whose nodes have these rights."""

    is_open = False

    def __init__(self, acl: Callable[[str], Sequence[Grant]], nodes: Mapping[str, Grants]) -> None:
        self.wanted, self._nodes = acl, nodes

    def children(self, path: str) -> list[str]:
        below = (node.partition(f"{path}/")[2] for node in self._nodes)
        return [name for name in below if name and "/" not in name]

    def grants(self, path: str) -> Grants:
        return self._nodes[path]


ALL, STORM = "crwda", Grant("digest", "storm:hash", "crwda")
MALLORY = Grant("digest", "mallory:hash", ALL)
EVERY_ADDRESS = Grant("ip", "0.0.0.0/1", ALL)


@pytest.mark.parametrize(
    ("wrong", "who"),
    [
        ((), ""),
        ((Grant("world", "anyone", ALL),), "everybody may use /nstorm/plans in"),
        ((EVERY_ADDRESS,), "ip:0.0.0.0/1 may use /nstorm/plans in"),
        ((MALLORY,), "digest:mallory:hash may use /nstorm/plans in"),
        ((Grant("x509", "CN=another host", ALL),), ""),
    ],
)
def test_with_one_identity_nobody_else_may_use_a_node(wrong: Grants, who: str) -> None:
    nodes = {"/nstorm": (STORM,), "/nstorm/plans": (STORM, *wrong), "/nstorm/acks": (STORM,)}
    found = list(doctor.of_access(cast(Session, Tree(lambda path: CREATOR, nodes))))
    assert [what.startswith(who) for what, _ in found] == [True] * bool(who)


def test_an_address_is_no_identity_of_nimbus_at_the_root_either() -> None:
    tree = Tree(lambda path: CREATOR, {"/nstorm": (STORM, EVERY_ADDRESS)})
    ((what, _),) = doctor.of_access(cast(Session, tree))
    assert what == "ip:0.0.0.0/1 may use /nstorm in ZooKeeper"


def test_each_role_has_its_rights_and_no_more() -> None:
    roles = [["sasl:storm"], ["sasl:c"], ["sasl:agent"], ["sasl:ada", "sasl:bob"], ["sasl:reader"]]
    acl = acl_for(roles)
    nodes = {path: acl(path) for path in TABLE if "<" not in path}
    command = "/nstorm/commands/c-1"
    made = [Grant("sasl", "ada", "rw") if one.scheme == "auth" else one for one in acl(command)]
    nodes |= {command: tuple(made), "/nstorm/plans/wc-1-1": acl("/nstorm/plans/wc-1-1")}
    assert list(doctor.of_access(cast(Session, Tree(acl, nodes)))) == []
    nodes["/nstorm/plans"] += (Grant("sasl", "agent", "w"),)
    nodes[command] += (Grant("sasl", "agent", "rw"),)
    ((what, _),) = doctor.of_access(cast(Session, Tree(acl, nodes)))
    assert what == f"sasl:agent may use {command}, /nstorm/plans in ZooKeeper"
