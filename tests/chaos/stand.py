"""The cluster that is tried: Storm with a fed WordCount, its services, and eyes on all."""

import os
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from controller.storm import leader_status
from controller.storm.command_record import Command
from deploy.lab import LabError
from deploy.lab.cluster import HOOKS_JAR, Lab, plan_lab
from deploy.lab.ledger import Totals
from deploy.lab.operator import Operator
from kvstore.errors import StoreError
from kvstore.zookeeper import Session
from migration import WireError, wire
from migration.model import Counters, Entry, ExecutorId, NodeAcks, Phase, Plan, Slot, Way
from tests.chaos.services import Services
from tests.chaos.threads import Dumps

TOPOLOGY = "chaos"
RATE_TPS = 200.0
# Has all that moves: bolts that keep nothing and that keep counts, spouts and ackers.
WORKLOAD = "counters"
CONF = {
    "topology.message.timeout.secs": 8,
    # A worker that starts on a busy machine needs more than Storm's 30 s, at first even than its
    # 120 s. An executor that Nimbus assigns elsewhere by then is another fault than the one that is
    # tried.
    "nimbus.task.timeout.secs": 90,
    "nimbus.task.launch.secs": 240,
    "supervisor.worker.start.timeout.secs": 240,
}
READY_LIMIT_S = 300.0
DRAIN_LIMIT_S = 60.0
LOOK_EVERY_S = 0.5
# What is whole for a moment only, between a fault and Storm's notice of it, is not whole.
STEADY_S = 3.0


@dataclass(frozen=True, slots=True)
class Move:
    """A move, and a worker that stands by it. One without a path was not asked for."""

    executor: ExecutorId
    source: Slot
    target: Slot
    bystander: Slot
    path: str = ""
    asked_s: float = 0.0


class Stand:
    """Looks at the cluster and asks for moves; what it finds is never a cached answer."""

    def __init__(self, lab: Lab, services: Services, dumps: Dumps, clocks: Path) -> None:
        self.lab = lab
        self.clocks = clocks  # a folder with how far the clocks of services are ahead, by process
        self.services = services
        self.ledger = lab.ledger(TOPOLOGY)
        # By slot as before the fault: to look them up costs longer than a phase lasts.
        self.pids: dict[str, int] = {}
        self.workers_seen: set[tuple[str, int]] = set()
        # Of what moves; each try seeds it, so that it does not depend on the tries before.
        self.chosen = random.Random()
        self._dumps = dumps
        self._connected: tuple[Session, Operator] | None = None

    @property
    def session(self) -> Session:
        """A session that is not lost."""
        return self._connect()[0]

    @property
    def operator(self) -> Operator:
        """An operator who moves executors by hand; he knows how long the nodes have been silent."""
        return self._connect()[1]

    def _connect(self) -> tuple[Session, Operator]:
        if self._connected is not None and self._connected[0].lost:
            self.disconnect()
        if self._connected is None:
            session = Session(self.lab.storm_zookeeper)
            session.connect()
            self._connected = (session, Operator(session, TOPOLOGY))
        return self._connected

    def disconnect(self) -> None:
        """End the session; the next question opens another."""
        connected, self._connected = self._connected, None
        if connected is not None:
            connected[0].close()

    def submit(self) -> None:
        """Submit the WordCount and wait until it is fed and may be moved."""
        # They have the ledger of their JVM, and would stop first: here two copies are to be struck.
        conf = {"nstorm.move": {"split": "live"}}
        self.lab.submit(TOPOLOGY, conf, rate_tps=RATE_TPS, workload=WORKLOAD)
        self.lab.wait_ready(TOPOLOGY)
        self.ledger = self.lab.ledger(TOPOLOGY)
        self.wait("all workers answer their agents", self._may_move)

    def _may_move(self) -> bool:
        # Asked again each time: the session, and the operator with it, may be another by then.
        return self.operator.ready()

    def wait(self, what: str, done: Callable[[], bool], limit_s: float = READY_LIMIT_S) -> None:
        """Wait for something, across the times in which ZooKeeper or Nimbus does not answer."""

        def done_if_known() -> bool:
            try:
                return done()
            except (LabError, StoreError):
                return False

        self.lab.wait_until(what, done_if_known, limit_s)

    def note_workers(self) -> dict[str, int]:
        """Remember the workers that run now, and give them."""
        pids = self.lab.worker_pids()
        self.workers_seen.update(pids.items())
        return pids

    def plan_of(self, topology: str) -> Plan | None:
        """Read the plan of a topology by its id; empty if there is none, None if it is garbage."""
        stored = self.session.read(wire.plan_path(topology))
        if stored is None:
            return Plan("", 0, -1, topology)
        try:
            return wire.decode(Plan, stored.data)
        except WireError:
            return None

    def _movable(self, way: Way) -> list[ExecutorId]:
        """Give the executors that move by a way."""
        if way is Way.LIVE:
            return [*self.operator.placement().free]
        return sorted(one for one, its in self.operator.ways().items() if its is way)

    def choose(self, way: Way = Way.LIVE, *, opens: bool = False) -> Move:
        """Choose an executor that moves by a way, never a worker's last, and a worker elsewhere.

        Where a slot is to be opened, a worker's last goes first: so slots do not run out. One is
        also opened where all is gathered on one node.
        """
        self.wait("a move may begin", lambda: self._may_move() and self.operator.entries() == 0)
        self.wait(f"executors move by the way {way}", lambda: bool(self._movable(way)))
        placement, movable = self.operator.placement(), self._movable(way)
        held = Counter(placement.slot_of.values())
        opens = opens or len({slot.supervisor for slot in held}) < 2
        slots = sorted(held, key=self.place)
        shuffled = self.chosen.sample(movable, len(movable))
        if opens:
            shuffled.sort(key=lambda e: held[placement.slot_of[e]] > 1)
            slots = sorted(self._all_slots() - held.keys(), key=self.place)
        executor = next(e for e in shuffled if opens or held[placement.slot_of[e]] > 1)
        source = placement.slot_of[executor]
        target = self.chosen.choice(
            [s for s in slots if opens or s.supervisor != source.supervisor]
        )
        others = sorted(held.keys() - {source, target}, key=self.place)
        bystander = self.chosen.choice(others or [source])
        return Move(executor, source, target, bystander)

    def _all_slots(self) -> set[Slot]:
        return {Slot(n.supervisor_id, port) for n in self.lab.nodes for port in n.ports}

    def ask(self, way: Way = Way.LIVE, *, opens: bool = False) -> Move:
        """Ask for a move."""
        move, asked_s = self.choose(way, opens=opens), time.time()
        path = self.operator.ask(move.executor, move.target)
        return replace(move, path=path, asked_s=asked_s)

    def place(self, slot: Slot) -> str:
        """Name a slot by its host and its rank there; supervisors' ids and ports are random."""
        node = self.lab.node(slot.supervisor)
        return f"{node.host}#{node.ports.index(slot.port)}"

    def entry(self, topology: str, move: Move) -> Entry | None:
        """Find a move in the plan."""
        plan = self.plan_of(topology)
        found = plan.entries if plan else ()
        return next((entry for entry in found if entry.executor == move.executor), None)

    def told(self, move: Move) -> Command | None:
        """Read the answer to the operator; None if his session is gone, and the wish with it."""
        try:
            return self.operator.look(move.path)
        except (LabError, StoreError):
            return None

    def outcome(self, move: Move, limit_s: float = 15.0) -> str:
        """Find how a move ended: by what was reported, else by where the executor is."""
        deadline = time.monotonic() + limit_s
        while True:
            told = self.told(move)
            if told is not None and told.ended:
                return told.state
            for row in leader_status.read(self.session).ended_moves:
                if row.executor == str(move.executor) and row.ended_s > move.asked_s:
                    return row.outcome
            if told is None or time.monotonic() > deadline:
                return self._by_place(move)
            time.sleep(LOOK_EVERY_S)

    def _by_place(self, move: Move) -> str:
        task = move.executor.start
        placed = {e.executor[0]: e.slot for e in self.lab.assignment(TOPOLOGY)}.get(task)
        ends = {str(move.source): "AT_SOURCE", str(move.target): "AT_TARGET"}
        return ends.get(str(placed), "ELSEWHERE")

    def flaw(self) -> str | None:
        """Name what is not whole: plan empty, a live copy of each executor where Nimbus has it."""
        self.note_workers()
        missing = self.services.missing()
        if missing:
            return f"{', '.join(missing)} does not run"
        if not listens(self.lab.layout.nimbus_port):
            return "Nimbus does not listen"
        try:
            return self._flaw()
        except (LabError, StoreError) as error:
            return str(error)

    def _flaw(self) -> str | None:
        topology = self.lab.topology_id(TOPOLOGY)
        state = self.lab.topologies()[topology]
        if state != "ACTIVE":
            return f"the topology is {state}"
        plan = self.plan_of(topology)
        if plan is None:
            return "the plan holds garbage"
        if plan.entries:
            return "under way: " + ", ".join(f"{e.executor} {e.phase}" for e in plan.entries)
        for folder in (wire.PLANS, wire.TOPOLOGIES):
            gone = set(self.session.children(folder) or []) - {topology}
            if gone:
                return f"{folder} still has {sorted(gone)}"
        assigned = self.lab.assignment(TOPOLOGY)
        wanted = {ExecutorId(*placed.executor): placed.slot for placed in assigned}
        return misplaced(wanted, self.copies())

    def copies(self) -> dict[str, Counter[ExecutorId]]:
        """Count the live copies of each executor in each worker, by thread dumps."""
        pids = self.lab.worker_pids()
        return {slot: self._dumps.executors(pid) for slot, pid in pids.items()}

    def wait_whole(self, limit_s: float, began_s: float | None = None) -> tuple[float | None, str]:
        """Wait until all is whole and stays so; give the seconds until then, or what is not.

        Limit and seconds count from a time of the monotonic clock, or else from now.
        """
        began_s = time.monotonic() if began_s is None else began_s
        since_s: float | None = None
        flaw: str | None = "not looked at yet"
        while time.monotonic() < began_s + limit_s or (flaw is None):
            flaw = self.flaw()
            now_s = time.monotonic()
            since_s = None if flaw else since_s if since_s is not None else now_s
            if since_s is not None and now_s - since_s >= STEADY_S:
                return round(since_s - began_s, 1), ""
            time.sleep(LOOK_EVERY_S)
        return None, str(flaw)

    def rest(self) -> Totals:
        """Pause the spouts until those that live have heard of every sentence; count."""
        self.ledger.set_rate(0)
        time.sleep(1.0)
        self.lab.wait_until(
            "nothing is in flight", lambda: self.ledger.in_flight() == 0, DRAIN_LIMIT_S
        )
        return self.ledger.drain(0)

    def counters(self) -> dict[str, Counters]:
        """Read what the workers log on late tuples, by incarnation."""
        found = {}
        for node in self.session.children(wire.ACKS) or []:
            stored = self.session.read(wire.acks_path(node))
            if stored is not None:
                acks = wire.decode(NodeAcks, stored.data)
                found.update({worker.incarnation: worker.counters for worker in acks.workers})
        return found


def misplaced(wanted: dict[ExecutorId, str], copies: dict[str, Counter[ExecutorId]]) -> str | None:
    """Name an executor that has not exactly one live copy where it is wanted; None if all have."""
    if not wanted:
        return "Storm has assigned nothing"
    # Each other worker has to have answered, or its executors live nowhere.
    idle = copies.keys() - set(wanted.values())
    if idle:
        return f"workers run at {', '.join(sorted(idle))}, where Nimbus has nothing"
    live: dict[ExecutorId, list[str]] = {executor: [] for executor in wanted}
    for slot, found in copies.items():
        for executor, count in found.items():
            live.setdefault(executor, []).extend([slot] * count)
    for executor, slots in sorted(live.items()):
        if slots != [wanted.get(executor)]:
            where = ", ".join(slots) or "nowhere"
            return f"{executor} lives {where}; Nimbus has it at {wanted.get(executor)}"
    return None


def listens(port: int) -> bool:
    """Check whether a process listens on a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def phases_from(phase: Phase) -> frozenset[Phase]:
    """Give a phase and those that follow it on the way forward."""
    order = (
        *(Phase.OPEN, Phase.PREPARE, Phase.QUIET, Phase.SWITCH, Phase.DRAIN),
        *(Phase.CARRY, Phase.STOP, Phase.SETTLE),
    )
    return frozenset(order[order.index(phase) :])


@contextmanager
def _clocks() -> Iterator[Path]:
    """Let the clocks of Python processes that are started here be set."""
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "NSTORM_CHAOS_CLOCKS")}
    with TemporaryDirectory(prefix="nstorm-clocks-") as folder:
        os.environ["NSTORM_CHAOS_CLOCKS"] = folder
        paths = (str(Path(__file__).parent / "clock"), before["PYTHONPATH"])
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextmanager
def standing(name: str, mode: str, conf: Mapping[str, Any] = CONF) -> Iterator[Stand]:
    """Have a cluster with services and a fed WordCount; nothing of it is left afterwards."""
    with (
        Dumps() as dumps,
        _clocks() as clocks,
        plan_lab(name, slots=3, hooks_jar=HOOKS_JAR, conf=conf) as lab,
        Services(lab, mode) as services,
    ):
        stand = Stand(lab, services, dumps, clocks)
        try:
            stand.submit()
            yield stand
        finally:
            stand.disconnect()
