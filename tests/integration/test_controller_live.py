"""The controller against a real ZooKeeper; Storm and the JVMs are played by `Puppets`."""

import contextlib
import json
import logging
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.asking import operator
from controller.cli.main import app
from controller.config import Config, Mode
from controller.core.capacity import Capacity
from controller.core.receivers import Receiver
from controller.errors import ControllerError
from controller.output import quiet, unix_s
from controller.storm.collect import LiveCluster
from controller.storm.command_record import COMMANDS, Command, decode, encode
from controller.storm.leader_status import CycleStatus, read
from controller.storm.live import LiveController
from controller.storm.telemetry import Telemetry
from kvstore.election import Candidate, in_line
from kvstore.errors import StoreError
from kvstore.pulse import Pulse
from kvstore.service import serve
from kvstore.zookeeper import Session
from migration import WireError, wire
from migration.model import (
    AppliedPlan,
    EntryAck,
    EntryState,
    NimbusReport,
    Node,
    NodeAcks,
    NodeLoad,
    Nodes,
    PersistedSlot,
    Phase,
    PinnedExecutor,
    Plan,
    PublishedTopology,
    Slot,
    Timing,
    WorkerAck,
    WorkerLoad,
)
from tests.bench.scale.imitator import SOURCE_STATES, TARGET_STATES
from tests.chaos.faults import expire_session
from tests.integration.test_zookeeper import Proxy
from tests.messages import (
    executor,
    node_acks,
    publication,
    replace,
    worker_ack,
    worker_load,
)
from tests.receiving import receiving

pytestmark = pytest.mark.zookeeper

# With CPU of its own for each worker more moves are worth it than where workers share it.
ALONE = Capacity(fixed_cores=1.0)

NSTORM = Path(sys.executable).with_name("nstorm")
WC = "wc-1"
A1, A2, B1, B2 = Slot("a", 6700), Slot("a", 6701), Slot("b", 6700), Slot("b", 6701)
PLACES = {1: A1, 2: B1, 3: A1, 4: A2, 5: B1, 6: B2, 7: B2}
RATES_TPS = {(1, 2): 1000, (2, 3): 10000, (2, 4): 5000, (5, 6): 2000, (6, 7): 500}


class Puppets:
    """Nimbus, two supervisors, four workers and two agents, as the controller sees them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.places, self.start_secs = dict(PLACES), dict.fromkeys(PLACES, 50)
        self.never_ready = False
        self.without_hooks: frozenset[Slot] = frozenset()
        self.held: Plan | None = None
        self.started_s = time.monotonic()
        self.came_s: dict[int, float] = {}  # since the start, by task that has moved
        self._published_s = 0.0
        self._loaded_s = 0.0
        for folder in ("storms", "assignments"):
            session.put(f"/{folder}/{WC}", b"")

    def plan(self) -> Plan | None:
        """Read the plan as JVMs do: garbage, what is older, and what no leader wrote is ignored."""
        stored = self.session.read(wire.plan_path(WC))
        with suppress(WireError):
            found = None if stored is None else wire.decode(Plan, stored.data)
            newer = found is not None and (self.held is None or found.stamp > self.held.stamp)
            if found is not None and newer and self._was_led(found.epoch):
                self.held = found
        return self.held

    def _was_led(self, epoch: int) -> bool:
        stored = self.session.exists(wire.EPOCH)
        return stored is not None and epoch <= stored.version

    def step(self) -> None:
        plan, now_s = self.plan(), time.monotonic()
        if now_s - self._published_s > 0.5:
            self._published_s = now_s
            self._publish()
            self._absorb(plan)
        for node in "ab":
            self.session.put(wire.acks_path(node), wire.encode(self._acks(node, plan)))
        if now_s - self._loaded_s > 0.3:
            self._loaded_s = now_s
            for node in "ab":
                self.session.put(wire.load_path(node), wire.encode(self._load(node)))

    def _publish(self) -> None:
        published = publication(self.places, spouts=[1], start_secs=self.start_secs)
        nodes = tuple(Node(n, f"host-{n}", 200.0, (6700, 6701, 6702), 2) for n in "ab")
        said = NimbusReport(
            round(time.time() * 1000), "0", wire.SPEAKS, "s", (PublishedTopology(WC),)
        )
        self.session.put(wire.topology_path(WC), wire.encode(published))
        self.session.put(wire.NODES, wire.encode(Nodes(nodes)))
        self.session.put(wire.NIMBUS, wire.encode(said))

    def _absorb(self, plan: Plan | None) -> None:
        for entry in plan.entries if plan else ():
            if entry.phase in (Phase.STOP, Phase.SETTLE) and entry.void is None:
                task = entry.executor.start
                if self.places[task] != entry.target:
                    self.came_s[task] = time.monotonic() - self.started_s
                self.places[task] = entry.target
                self.session.put(f"/assignments/{WC}", b"")

    def _acks(self, node: str, plan: Plan | None) -> NodeAcks:
        slots = [s for s in (A1, A2, B1, B2) if s.supervisor == node]
        workers = [self._worker(slot, plan) for slot in slots if slot not in self.without_hooks]
        kept = [PersistedSlot(s.port, WC, tuple(map(executor, self._here(s)))) for s in slots]
        cluster = self.session.read(wire.CLUSTER)
        named = cluster.data.decode() if cluster else ""
        acks = node_acks(node, workers, named, time_ms=round(time.time() * 1000), keeps=kept)
        read = (AppliedPlan(WC, plan.epoch, plan.version),) if plan else ()
        assert acks.supervisor is not None
        own = replace(acks.supervisor, cluster=named, plans=read, time_ms=acks.time_ms)
        return replace(acks, supervisor=own)

    def _here(self, slot: Slot) -> list[int]:
        return [task for task, at in sorted(self.places.items()) if at == slot]

    def _worker(self, slot: Slot, plan: Plan | None) -> WorkerAck:
        return worker_ack(
            slot,
            self._here(slot),
            cluster=plan.cluster if plan else "",
            epoch=plan.epoch if plan else 0,
            version=plan.version if plan else -1,
            entries=tuple(
                EntryAck(e.id, self._state(slot, e), self.places[e.executor.start])
                for e in (plan.entries if plan else ())
            ),
            pinned=(PinnedExecutor(executor(1), "spout"),) if slot == A1 else (),
        )

    def _state(self, slot: Slot, entry: Any) -> EntryState:
        if slot == entry.source:
            return SOURCE_STATES[entry.phase]
        if slot == entry.target:
            if entry.phase is Phase.PREPARE and self.never_ready:
                return EntryState.NONE
            return TARGET_STATES.get(entry.phase, EntryState.ROUTED)
        return EntryState.NONE if entry.phase is Phase.PREPARE else EntryState.ROUTED

    def _load(self, node: str) -> NodeLoad:
        since_s = time.monotonic() - self.started_s
        slots = [s for s in (A1, A2, B1, B2) if s.supervisor == node]
        return NodeLoad(node, 0, tuple(self._worker_load(slot, since_s) for slot in slots))

    def _worker_load(self, slot: Slot, since_s: float) -> WorkerLoad:
        # Counters of a worker that an executor has left stand still; here they go on, which changes
        # nothing for what is tested.
        sent = {edge: tps for edge, tps in RATES_TPS.items() if PLACES[edge[0]] == slot}
        here = self._here(slot)
        load = worker_load(slot, here, since_s, sent, other_cores=0.4 - 0.1 * len(here))
        # The thread of an executor that came has used no CPU before.
        spent = [
            replace(one, cpu_ns=round(1e8 * (since_s - self.came_s.get(task, 0.0))))
            for task, one in zip(here, load.executors, strict=True)
        ]
        return replace(load, executors=tuple(spent))


def new_root(zookeeper: str) -> str:
    """Make the root of a Storm, and give its address."""
    root = f"/storm-{uuid.uuid4().hex[:8]}"
    with Session(zookeeper) as session:
        assert session.connect()
        session.create(root)
    return zookeeper + root


@pytest.fixture
def storm(zookeeper: str) -> str:
    """Address of ZooKeeper with the root of a Storm."""
    return new_root(zookeeper)


def write_conf(path: Path, storm: str) -> Path:
    hosts, _, root = storm.partition("/")
    host, port = hosts.rsplit(":", 1)
    path.write_text(
        f"storm.zookeeper.servers: [{host}]\n"
        f"storm.zookeeper.port: {port}\n"
        f"storm.zookeeper.root: /{root}\n"
        "nstorm.cycle.secs: 0.5\n"
    )
    return path


@pytest.fixture
def conf(storm: str, tmp_path: Path) -> Path:
    return write_conf(tmp_path / "storm.yaml", storm)


@contextmanager
def played(storm: str) -> Iterator[Puppets]:
    """Play a Storm until the end of the block."""
    stop = threading.Event()
    with Session(storm) as session:
        assert session.connect()
        puppets = Puppets(session)

        def play() -> None:
            while not stop.wait(0.03):
                puppets.step()

        thread = threading.Thread(target=play, name="puppets")
        thread.start()
        try:
            yield puppets
        finally:
            stop.set()
            thread.join()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no move be undone because the machine is slow."""
    slow = Timing(prepare_limit_s=600.0, switch_limit_s=600.0)
    monkeypatch.setattr("controller.storm.live.Timing", lambda: slow)


@pytest.fixture
def puppets(storm: str) -> Iterator[Puppets]:
    with played(storm) as puppets:
        yield puppets


@contextmanager
def leading(
    storm: str, name: str, pulse: Any = None, telemetry: Any = None, **settings: Any
) -> Iterator[Session]:
    """Run a controller until the end of the block."""
    stop = threading.Event()
    config = Config(**{"mode": Mode.AUTO, "cycle_s": 0.5, **settings})
    with Session(storm) as session:
        assert session.connect()
        live = LiveController(session, config, name=name, pulse=pulse, telemetry=telemetry)
        thread = threading.Thread(target=live.run, args=(stop,), name=name)
        thread.start()
        try:
            yield session
        finally:
            stop.set()
            thread.join()


def wait_for(what: Callable[[], Any], limit_s: float = 120.0) -> Any:
    until_s = time.monotonic() + limit_s
    while time.monotonic() < until_s:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {limit_s} s: {what}")


def nstorm(*arguments: str, limit_s: float = 300.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NSTORM, *arguments], capture_output=True, text=True, check=False, timeout=limit_s
    )


def last_cycle(session: Session) -> CycleStatus:
    return next(iter(read(session).cycles), CycleStatus())


def asked_for(session: Session, executor: str = "2-2", slot: str = "a:6700") -> None:
    """Let an operator ask for a move: that of a policy would wait for two minutes."""
    wait_for(lambda: last_cycle(session).outcome == "WOULD_MOVE")
    wish = encode(Command(WC, executor, slot, why="for a test"))
    session.create(f"{COMMANDS}/c-", wish, ephemeral=True, sequence=True)


def test_it_makes_the_best_moves_by_itself(storm: str, puppets: Puppets, conf: Path) -> None:
    with leading(storm, "one", cooldown_s=600.0, capacity=ALONE) as session:

        def ended() -> Any:
            found = read(session).ended_moves
            return len(found) >= 3 and found

        wait_for(lambda: last_cycle(session).outcome == "WATCHING")
        first, *_ = wait_for(ended, 300.0)
        assert (first.executor, first.source, first.target) == ("2-2", "b:6700", "a:6700")
        assert first.outcome == "MOVED"
        assert set(first.phase_s) == {"PREPARE", "SWITCH", "DRAIN", "STOP", "SETTLE"}
        assert first.stopped_after_s is not None
        assert first.stopped_after_s > 0
        wait_for(lambda: not (puppets.plan() or Plan("", 0, 0, "")).entries)
        assert puppets.places[2] == A1

        done = nstorm("status", "--conf", str(conf), "-o", "json")
        assert done.returncode == 0, done.stderr
        status = json.loads(done.stdout)
        assert status["controller"] == "one"
        (topology,) = status["topologies"]
        places = {row["executor"]: row["slot"] for row in topology["executors"]}
        assert places["2-2"] == "a:6700"
        assert topology["executors"][0]["pinned"] == "spout"
        assert [row["node"] for row in status["agents"]] == ["a", "b"]
        table = nstorm("status", "--conf", str(conf))
        assert table.returncode == 0, table.stderr
        assert "pinned: spout" in table.stdout
        assert "ended m" in table.stdout
        live = nstorm("top", "--conf", str(conf), "--host", "host-a")
        assert live.returncode == 0, live.stderr
        shown = [line.split()[0] for line in live.stdout.splitlines() if "%" in line]
        workers = [name for name in shown if ":" in name]  # and not of a sentence above
        assert workers == ["host-a:6700"]  # the other one was left by its last executor
        wrong = nstorm("doctor", "--conf", str(conf), "-o", "json")
        assert wrong.returncode == 1, wrong.stderr
        found = [one["what"] for one in json.loads(wrong.stdout)]
        # The agents of the puppets are of version 0, and their clocks are this machine's.
        assert [what.partition(" is of")[0] for what in found] == ["agent a", "agent b"]


def test_a_new_leader_waits_for_the_second_report_and_not_for_its_next_cycle(
    storm: str, puppets: Puppets
) -> None:
    with leading(storm, "one", mode=Mode.ADVISE, cycle_s=3600.0) as session:
        wait_for(lambda: last_cycle(session).outcome == "WOULD_MOVE")
        assert last_cycle(session).tick > 1


def test_a_move_is_noticed_and_a_receiver_that_hangs_holds_no_cycle_up(
    storm: str, puppets: Puppets, tmp_path: Path
) -> None:
    with receiving() as server, receiving(silent=threading.Event()) as slow:
        receivers = []
        for name, one in (("server", server), ("slow", slow)):
            (tmp_path / name).write_text(one.url)
            receivers.append(Receiver(webhook=str(tmp_path / name)))
        noticing = {"mode": Mode.ADVISE, "receivers": tuple(receivers)}
        with leading(storm, "one", capacity=ALONE, **noticing) as session:
            asked_for(puppets.session)
            assert server.came.acquire(timeout=120) and slow.came.acquire(timeout=120)
            tick = last_cycle(session).tick
            wait_for(lambda: last_cycle(session).tick > tick + 3)
    message = json.loads(server.bodies[0])
    assert message["cluster"] == storm
    first = message["notices"][0]
    assert (first["kind"], first["topology"]) == ("move", "wc-1")
    assert first["text"] == "2-2 has moved from host-b:6700 to host-a:6700: for a test"


def test_a_target_that_is_never_ready_ends_in_an_undo(
    storm: str, puppets: Puppets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.storm.live.Timing", lambda: Timing(prepare_limit_s=0.3))
    puppets.never_ready = True
    with leading(storm, "one", mode=Mode.ADVISE) as session:
        asked_for(puppets.session)
        told = wait_for(lambda: read(session).ended_moves)
        assert told[0].outcome == "UNDONE"
        assert told[0].stopped_after_s is None
        assert "ready in time: the copy of " in told[0].reason
    assert puppets.places == PLACES


def test_another_leader_finishes_the_move(storm: str, puppets: Puppets) -> None:
    puppets.never_ready = True
    with leading(storm, "one", mode=Mode.ADVISE):
        asked_for(puppets.session)
        plan = wait_for(lambda: (p := puppets.plan()) and p.entries and p)
        assert plan.epoch == 1
    assert puppets.plan() == plan
    puppets.never_ready = False
    with leading(storm, "two", mode=Mode.ADVISE) as session:
        told = wait_for(lambda: read(session).ended_moves)
        assert told[0].outcome == "MOVED"
        after = puppets.plan()
        assert after is not None
        assert after.epoch == 2


def test_a_leader_whose_session_expires_finishes_the_move_in_another(
    storm: str, puppets: Puppets
) -> None:
    puppets.never_ready = True
    stop = threading.Event()
    sessions: list[Session] = []

    def lead(session: Session) -> None:
        sessions.append(session)
        LiveController(session, Config(mode=Mode.ADVISE, cycle_s=0.5), name="one").run(stop)

    thread = threading.Thread(target=serve, args=(storm, lead, stop), name="one")
    thread.start()
    try:
        asked_for(puppets.session)
        plan = wait_for(lambda: (p := puppets.plan()) and p.entries and p)
        expire_session(sessions[0])
        wait_for(lambda: len(sessions) == 2)
        assert sessions[0].lost
        assert (held := puppets.plan()) and held.entries == plan.entries
        puppets.never_ready = False
        told = wait_for(lambda: read(puppets.session).ended_moves)
        assert (told[0].executor, told[0].outcome) == (str(plan.entries[0].executor), "MOVED")
        after = puppets.plan()
        assert after is not None
        assert (plan.epoch, after.epoch) == (1, 2)
    finally:
        stop.set()
        thread.join()


def test_the_second_controller_waits(storm: str, puppets: Puppets) -> None:
    with leading(storm, "one", mode=Mode.ADVISE) as session:
        wait_for(lambda: read(session).controller)
        with leading(storm, "two", mode=Mode.ADVISE):
            time.sleep(1.5)
            assert read(session).controller == "one"
            stored = session.read(wire.EPOCH)
            assert stored is not None
            assert stored.version == 1


def test_who_leads_no_more_shows_it_before_its_next_cycle(storm: str, puppets: Puppets) -> None:
    pulse = Pulse({})
    telemetry = Telemetry(Config(), pulse)

    def shown() -> dict[str, float]:
        return {s.name: s.value for f in telemetry.collect() for s in f.samples}

    hosts, _, root = storm.partition("/")
    with contextlib.closing(Proxy(hosts)) as line:
        given = {"pulse": pulse, "telemetry": telemetry, "mode": Mode.ADVISE, "cycle_s": 3600.0}
        with leading(f"{line.address}/{root}", "one", **given):
            wait_for(lambda: shown().get("nstorm_headroom_ratio"))
            line.cut()
            wait_for(lambda: not shown()["nstorm_leads"])
            assert "nstorm_headroom_ratio" not in shown()
            line.mend()
            wait_for(lambda: shown()["nstorm_leads"])
            other = Candidate(puppets.session, wire.LEADER, b"")
            assert not other.leads()
            (head,) = in_line(puppets.session.children(wire.LEADER) or [])[:1]
            puppets.session.delete(f"{wire.LEADER}/{head}")
            wait_for(lambda: not shown()["nstorm_leads"])


def test_move_of_an_operator(storm: str, puppets: Puppets, conf: Path) -> None:
    with leading(storm, "one", mode=Mode.ADVISE) as session:
        wait_for(lambda: last_cycle(session).outcome == "WOULD_MOVE")
        where = ["--conf", str(conf)]
        done = nstorm("move", "wc", "7-7", "host-a:6701", "--wait", "-o", "json", *where)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["state"] == "MOVED"
        assert "SWITCH" in done.stderr or "DRAIN" in done.stderr or "SETTLE" in done.stderr
        assert puppets.places[7] == A2
        refused = nstorm("move", "wc", "1-1", "a:6701", *where)
        assert refused.returncode == 2
        cluster, *_, why = refused.stderr.splitlines()
        assert cluster == f"cluster {storm}"
        assert "must stay: spout" in why
        for executor_id, slot, words in [
            ("2-2", "a:6709", "no supervisor offers a slot a:6709"),
            ("9-9", "a:6701", "has no executor 9-9"),
            ("two", "a:6701", "not a task range"),
            ("2-2", "a", "not <supervisor-id>:<port>"),
        ]:
            assert words in ask(session, "wc", executor_id, slot).reason
        assert "no topology gone" in ask(session, "gone", "2-2", "a:6701").reason


def test_a_move_is_waited_for_while_zookeeper_is_away(
    storm: str, puppets: Puppets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.storm.live.Timing", lambda: Timing(prepare_limit_s=600.0))
    puppets.never_ready = True
    hosts, _, root = storm.partition("/")
    with contextlib.closing(Proxy(hosts)) as line, leading(storm, "one", mode=Mode.ADVISE):
        conf = write_conf(tmp_path / "storm.yaml", f"{line.address}/{root}")
        log = tmp_path / "log"
        with log.open("wb") as sink:
            words = ["move", "wc", "7-7", "a:6701", "--wait", "--conf", str(conf)]
            asking = subprocess.Popen([NSTORM, *words], stdout=sink, stderr=sink)
        try:
            wait_for(lambda: "PREPARE" in log.read_text(), 60.0)
            line.cut()
            wait_for(lambda: "away" in log.read_text() or asking.poll() is not None)
            line.mend()
            puppets.never_ready = False
            assert asking.wait(60.0) == 0, log.read_text()
        finally:
            asking.kill()
            asking.wait()
    assert "7-7 MOVED" in log.read_text()


def ask(session: Session, topology: str, executor: str, slot: str) -> Command:
    """Queue a command and wait for its end."""
    wish = encode(Command(topology, executor, slot))
    path = session.create(f"{COMMANDS}/c-", wish, ephemeral=True, sequence=True)

    def ended() -> Command | None:
        stored = session.read(path)
        command = decode(stored.data) if stored else None
        return command if command and command.ended else None

    answer: Command = wait_for(ended)
    assert answer.state == "REFUSED"
    return answer


def test_pause_and_resume(storm: str, puppets: Puppets, conf: Path) -> None:
    assert nstorm("pause", "--reason", "upgrade", "--conf", str(conf)).returncode == 0

    def outcome() -> str:
        return last_cycle(session).outcome

    with leading(storm, "one", mode=Mode.ADVISE) as session:
        wait_for(lambda: outcome() == "PAUSED")
        assert nstorm("resume", "--conf", str(conf)).returncode == 0
        wait_for(lambda: outcome() == "WOULD_MOVE")


def typed(conf: Path, *words: str, code: int = 0) -> str:
    """Type a command in this process; give what it prints, or the sentence it refuses by."""
    with quiet(logging.CRITICAL):  # the controller of the test writes to the same output
        result = CliRunner().invoke(app, [*words, "--conf", str(conf)])
    refused = isinstance(result.exception, (ControllerError, StoreError))
    assert (2 if refused else result.exit_code) == code, (words, result.output, result.exception)
    said = str(result.exception) if refused else result.stdout
    assert not refused or "\n" not in said
    return said


def test_modes_proposals_plans_and_history(storm: str, puppets: Puppets, conf: Path) -> None:
    def cycle() -> CycleStatus:
        return last_cycle(puppets.session)

    def look(*words: str) -> Any:
        return json.loads(typed(conf, *words, "-o", "json"))

    with leading(storm, "one", mode=Mode.ADVISE, cooldown_s=600.0, capacity=ALONE):
        wait_for(lambda: cycle().outcome == "WOULD_MOVE")
        (plan,) = look("plan", "wc")
        moves = [tuple(move) for step in plan["steps"] for move in step["moves"]]
        assert moves[0] == ("2-2", "b:6700", "a:6700")
        assert plan["inter_node_frac"][1] < plan["inter_node_frac"][0]
        assert "what to do: Look at the whole way" in typed(conf, "explain")
        (found,) = look("explain", "2-2")
        assert found["candidates"][0]["worker"] == "a:6700"
        assert "no executor, worker or host 9-9" in typed(conf, "explain", "9-9", code=2)
        assert "no topology gone" in typed(conf, "mode", "gone", "auto", code=2)
        assert typed(conf, "mode", "wc", "approve") == (
            "wc: approve\nwc is in mode approve by nstorm mode\n"
        )
        first = wait_for(lambda: cycle().outcome == "AWAITING_APPROVAL" and cycle())
        assert "no proposal p-000000" in typed(conf, "approve", "p-000000", code=2)
        assert "2-2" in look("reject", first.proposal)["executors"]
        wait_for(lambda: cycle().proposal not in ("", first.proposal))
        # What was rejected may be approved all the same, while it is still possible.
        assert puppets.plan() is None
        approval = ["approve", first.proposal, "--conf", str(conf)]
        # Refused for as long as a late report or publication lets nothing be decided.
        wait_for(lambda: CliRunner().invoke(app, approval).exit_code == 0)
        wait_for(lambda: puppets.places[2] == A1)
        (move, *_) = wait_for(lambda: [m for m in look("history") if m["outcome"] == "MOVED"])
        assert move["executor"] == "2-2"
        assert move["asked_by"] == f"unproved: {operator()}, who approved {first.proposal}"
        assert 0 < move["before"]["inter_node_frac"] <= 1
        stale = "2-2 is at host-a:6700 now"
        wait_for(lambda: stale in typed(conf, "approve", first.proposal, code=2))
    # Another leader knows all of it.
    puppets.never_ready = True
    with leading(storm, "two", mode=Mode.ADVISE, cooldown_s=600.0):
        wait_for(lambda: cycle().mode == "approve")
        assert look("show", move["id"])[0]["reason"] == move["reason"]
        assert "settle" in typed(conf, "show", move["id"]).lower()
        for words, said in (
            (["undo", "2"], "only 1 can be undone"),
            (["show", "m99"], "no move m99 is among"),
            (["cancel", "m99"], "no move m99 is under way"),
            (["cancel", move["id"]], f"no move {move['id']} is under way"),
            (["approve", "p-000000"], "no proposal p-000000 waits"),
            (["reject", "p-000000"], "no proposal p-000000 waits"),
            (["freeze", "--until", "2020-01-01"], "is past"),
        ):
            assert said in typed(conf, *words, code=2)
        typed(conf, "move", "wc", "7-7", "a:6701")
        said = typed(conf, "pause", "--topology", "wc", "--for", "30m", "--reason", "release")
        assert said.startswith("paused wc: release, until ")
        assert "still moving: 7-7 of wc-1 in PREPARE" in said
        assert "PREPARE" in typed(conf, "cancel", look("history")[-1]["id"])
        assert puppets.places[7] == B2
        puppets.never_ready = False
        wait_for(lambda: cycle().outcome == "PAUSED")
        assert typed(conf, "resume", "--topology", "wc") == "resumed wc\n"
        typed(conf, "undo")
        wait_for(lambda: puppets.places[2] == B1)
        assert "only 0 can be undone" in wait_for(
            lambda: look("history")[-1]["outcome"] == "MOVED" and typed(conf, "undo", code=2)
        )
        typed(conf, "freeze", "--until", "2999-01-01", "--reason", "year's end")
        assert "frozen: year's end" in typed(conf, "move", "wc", "2-2", "a:6700", code=2)
        assert look("resume") == {"topology": "", "still_paused": [], "freeze": None}
        assert typed(conf, "mode", "wc", "default") == (
            "wc: default\nwc is in mode advise by nstorm.mode\n"
        )


def test_what_operators_set_is_told_to_programs_too(
    storm: str, puppets: Puppets, conf: Path
) -> None:
    def said(*words: str) -> Any:
        return json.loads(typed(conf, *words, "-o", "json"))

    with leading(storm, "one", mode=Mode.ADVISE):
        wait_for(lambda: read(puppets.session).cycles)
        now = {"topology": "wc", "mode": "observe", "by": "nstorm mode", "guards": []}
        assert said("mode", "observe") == {"topology": "", "mode": "observe", "now": [now]}
        paused = {"reason": "release", "until_s": None}
        for words, name in (((), ""), (("--topology", "wc"), "wc")):
            told = said("pause", "--reason", "release", *words)
            assert told == {"topology": name, **paused, "moving": []}
        frozen = said("freeze", "--until", "2999-01-01")
        assert frozen == {
            "topology": "",
            "reason": "frozen",
            "until_s": unix_s("--until", "2999-01-01", 0.0),
            "moving": [],
        }
        still = said("resume", "--topology", "wc")["still_paused"]
        assert still == [{"topology": "", **paused}]
        assert said("resume") == {"topology": "", "still_paused": [], "freeze": None}
        wait_for(lambda: last_cycle(puppets.session).executors)
        there = sum(slot.supervisor == "b" for slot in puppets.places.values())
        drained = said("drain", "host-b")
        assert (drained["host"], drained["of"]) == ("host-b", there)
        assert said("undrain", "host-b") == {"host": "host-b"}


def test_a_leader_that_finds_garbage_for_a_plan_writes_it_anew(
    storm: str, puppets: Puppets
) -> None:
    puppets.session.put(wire.plan_path(WC), b"not a plan")
    with leading(storm, "one", mode=Mode.ADVISE) as session:
        asked_for(puppets.session)
        wait_for(lambda: read(session).ended_moves)


@pytest.mark.parametrize("lost", [b"garbage", None], ids=["garbled", "deleted"])
def test_a_plan_that_is_lost_in_mid_move_is_written_anew(
    storm: str, puppets: Puppets, lost: bytes | None
) -> None:
    puppets.never_ready = True
    path = wire.plan_path(WC)
    with leading(storm, "one", mode=Mode.ADVISE) as session:
        asked_for(puppets.session)
        wait_for(lambda: puppets.held is not None and puppets.held.entries)
        held = puppets.held
        assert held is not None
        if lost is None:
            session.delete(path)
        else:
            session.set(path, lost)
        anew = wait_for(lambda: puppets.held if puppets.held != held else None)
        assert anew.entries == held.entries
        assert anew.stamp > held.stamp
        puppets.never_ready = False
        ended = wait_for(lambda: read(session).ended_moves)
        assert ended[0].outcome == "MOVED"


def test_zookeeper_away_counts_down_and_says_where(tmp_path: Path) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text("storm.zookeeper.servers: [127.0.0.1]\nstorm.zookeeper.port: 1\n")
    process = subprocess.Popen(
        [NSTORM, "controller", "--conf", str(path)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines = list(islice(process.stderr, 2))
    process.terminate()
    assert process.wait(60) == 0
    process.stderr.close()
    assert all("127.0.0.1:1" in line and "retry_in_s" in line for line in lines), lines


HOSTILE_PLANS = 10_000
# Of CPU, which other work on the machine does not change; and until a look counts as held up.
REFUSED_S, HELD_UP_S = 1.0, 30.0
ESCAPE = "\x1b[2J"


def attack(session: Session) -> None:
    """Write what nobody should, as whoever reaches an open ZooKeeper can."""
    plan = session.read(wire.plan_path(WC))
    assert plan is not None
    late = Plan("c", 2**62, plan.version + 1, WC)
    session.set(wire.plan_path(WC), wire.encode(late))
    option, odd = "-oProxyCommand=x", f"a{ESCAPE}b"
    for name in (option, "ghost"):
        acks = wire.encode(node_acks("ghost", [], "c")).replace(b"ghost", odd.encode())
        session.put(wire.acks_path(name), acks)
        session.put(wire.load_path(name), b"[" * 100_000)
        session.put(f"{COMMANDS}/{name}", encode(Command(odd, option, odd)))
    session.put(f"{wire.ROOT}/drained/{option}", b"x")
    session.put(f"{wire.ROOT}/roll", b'{"run":"touch x","hosts":["-oProxyCommand=x"]}')
    session.put(f"{wire.LEADER}/x-0000000000", b"{}")
    for first in range(0, HOSTILE_PLANS, 500):
        many = session._client.transaction()
        for number in range(first, first + 500):
            many.create(f"{wire.PLANS}/t-{number}", wire.encode(replace(late, topology="t")))
        many.commit()


def test_hostile_values_hold_up_no_look_and_no_move(
    storm: str, puppets: Puppets, caplog: pytest.LogCaptureFixture
) -> None:
    with leading(storm, "one", mode=Mode.OBSERVE) as session:
        wait_for(lambda: last_cycle(session).executors)

        def moves(task: int, to: Slot) -> Command:
            wish = encode(Command("wc", f"{task}-{task}", str(to)))
            path = session.create(f"{COMMANDS}/c-", wish, ephemeral=True, sequence=True)

            def done() -> Command | None:
                stored = session.read(path)
                found = decode(stored.data) if stored else None
                return found if found and found.ended else None

            return wait_for(done)  # type: ignore[no-any-return]

        assert moves(2, A1).state == "MOVED"
        attack(session)
        view = LiveCluster.of_session(session)
        view.topologies()  # this reads what an honest look reads, for the first time
        began_s, waited_s = time.thread_time(), time.monotonic()
        view = LiveCluster.of_session(session)
        (found,) = view.topologies()
        assert not view.has_moves()
        assert len(view.orphans()) <= 100
        took_s, waited_s = time.thread_time() - began_s, time.monotonic() - waited_s
        assert found.id == WC
        assert took_s < REFUSED_S
        assert waited_s < HELD_UP_S
        assert moves(5, A1).state == "MOVED"
        assert {acks.node for acks in view.acks()} == {"a", "b"}
        stored = session.read(wire.plan_path(WC))
        assert stored is not None
        assert wire.decode(Plan, stored.data).epoch < 2**62
        left = len(session.children(wire.PLANS) or ())
        wait_for(lambda: len(session.children(wire.PLANS) or ()) < left - 100)
    assert ESCAPE not in caplog.text
