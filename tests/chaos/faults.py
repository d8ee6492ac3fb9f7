"""The faults by name. Each is one step; what ends it is another."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.handlers.threading import KazooTimeoutError  # type: ignore[import-untyped]
from kazoo.protocol.states import KazooState  # type: ignore[import-untyped]
from msgspec import structs

from controller.storm.command_record import Command
from deploy.lab import LabError
from kvstore.election import in_line
from kvstore.errors import ConflictError
from kvstore.zookeeper import Session
from migration import wire
from migration.model import Candidacy, Phase, Slot, Way
from migration.protocol import following
from tests.chaos.services import agent_of
from tests.chaos.stand import TOPOLOGY, Move, Stand, listens, phases_from

POLL_S = 0.008
CATCH_LIMIT_S = 60.0
# On a busy machine most moves pass a phase unseen.
CATCHES = 30
THEFTS = 6
BACK_LIMIT_S = 60.0
PLAIN_LIMIT_S = 120.0
EXPIRY_LIMIT_S = 10.0
# When the session of a supervisor that was killed expires, its znode goes, though the next one has
# written there since. Nimbus knows of none until that one's next heartbeat, after 5 s.
KNOWN_AGAIN_LIMIT_S = 15.0


def leaders_word(session: Session, path: str) -> bytes | None:
    """Return what the head of the queue reports of itself, None if the queue is empty."""
    for node in in_line(session.children(path) or []):
        stored = session.read(f"{path}/{node}")
        if stored is not None:
            return stored.data
    return None


def expire_session(session: Session) -> None:
    """Let ZooKeeper end a session of this process, as if its holder had been away for too long.

    A second connection to the same session closes it, as kazoo's own tests do. The holder connects
    again at once and may throw that one out before it has closed anything, so it is tried again.
    """
    holder: Any = session._client
    ended = threading.Event()
    holder.add_listener(lambda state: ended.set() if state == KazooState.LOST else None)
    for _ in range(THEFTS):
        thief = KazooClient(hosts=session.hosts.partition("/")[0], client_id=holder.client_id)
        with suppress(KazooTimeoutError):
            thief.start(timeout=60)
        thief.stop()
        thief.close()
        if ended.wait(EXPIRY_LIMIT_S):
            return
    raise LabError(f"a session was closed {THEFTS} times, and its holder still has it")


class Faults:
    """Does harm to a stand, and counts what of it must come back by that.

    A process is named by its slot, if it is a worker, and else as the lab names it.
    """

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        self._lab = stand.lab
        self.topology = stand.lab.topology_id(TOPOLOGY)
        self.workers_killed = 0
        self.services_killed = 0
        self._held = self._struck = ""
        self.complaints: list[str] = []

    def when(self, phase: Phase, way: Way = Way.LIVE) -> Move:
        """Ask for moves until one is caught in a phase; the leader stands still until `let_on`.

        A phase may last less than a tenth of a second, and only the leader ends it.
        """
        self._held = self.leader()
        for _ in range(CATCHES):
            move = self._stand.ask(way, opens=phase is Phase.OPEN)
            # A move is undone within seconds only after a fault, and that would be another one.
            if self._catch(move, Phase.PREPARE if phase is Phase.UNDO else phase):
                self._lab.kill_daemon(self._held, signal.SIGSTOP)
                if phase is Phase.UNDO:
                    self._undo()
                entry = self._stand.entry(self.topology, move)
                if entry is not None and entry.phase is phase:
                    return move
                self.let_on()
            self._stand.wait(
                "the move that was too fast ends", lambda: self._stand.operator.entries() == 0
            )
        raise LabError(f"{CATCHES} moves, and none was seen in {phase}: the machine is too busy")

    def let_on(self) -> None:
        """Let the leader go on, unless it is what was struck."""
        if self._held not in ("", self._struck):
            self._lab.kill_daemon(self._held, signal.SIGCONT)

    def _undo(self) -> None:
        """Write UNDO in place of PREPARE, as a leader does when that has lasted too long."""
        plan = self._stand.plan_of(self.topology)
        if plan is None:
            return
        entries = tuple(
            structs.replace(entry, phase=Phase.UNDO) if entry.phase is Phase.PREPARE else entry
            for entry in plan.entries
        )
        after, path = following(plan, entries, plan.epoch), wire.plan_path(plan.topology)
        fence = (wire.EPOCH, plan.epoch)
        with suppress(ConflictError):
            self._stand.session.put_checked(path, wire.encode(after), plan.version, fence)

    def _catch(self, move: Move, phase: Phase) -> bool:
        deadline = time.monotonic() + CATCH_LIMIT_S
        while time.monotonic() < deadline:
            entry = self._stand.entry(self.topology, move)
            if entry is not None and entry.phase == phase:
                return True
            late = entry is not None and entry.phase in phases_from(phase)
            told: Command | None = self._stand.told(move) if entry is None else None
            if late or (told is not None and told.ended):
                return False
            time.sleep(POLL_S)
        raise LabError(f"the move of {move.executor} did not reach {phase} in {CATCH_LIMIT_S} s")

    def plain_move(self) -> Move:
        """Move something while nothing else happens."""
        until_s = time.monotonic() + KNOWN_AGAIN_LIMIT_S
        while True:
            move = self._stand.ask()
            told = self._stand.operator.follow(move.path, lambda now: False, PLAIN_LIMIT_S)
            if told.state == "MOVED":
                return move
            if "no supervisor offers" not in told.reason or time.monotonic() > until_s:
                raise LabError(f"a plain move ended {told.state}: {told.reason}")
            time.sleep(1)

    def agent(self, slot: Slot) -> str:
        """Name the agent of a slot's node."""
        return agent_of(self.supervisor(slot))

    def supervisor(self, slot: Slot) -> str:
        """Name the supervisor of a slot."""
        return self._lab.node(slot.supervisor).host

    def leader(self) -> str:
        """Name the controller that leads; the other one stands by."""
        said = leaders_word(self._stand.session, wire.LEADER)
        if said is None:
            raise LabError("no controller leads")
        name = wire.decode(Candidacy, said).name
        return self._stand.services.name_of(int(name.rpartition(":")[2]))

    def kill(self, process: str) -> None:
        """Kill -9 a process. Storm starts a worker again; others stay down until `start_again`."""
        self._struck = process
        if process in self._stand.pids:
            os.kill(self._stand.pids[process], signal.SIGKILL)
            self.workers_killed += 1
        else:
            self._kill_service(process)

    def kill_opening(self, slot: Slot) -> None:
        """Kill -9 the worker that is started in a slot, as soon as it is there."""
        self._stand.wait("a worker is started", lambda: str(slot) in self._stand.note_workers())
        self._struck = str(slot)
        self._stand.pids = self._stand.note_workers()
        os.kill(self._stand.pids[self._struck], signal.SIGKILL)

    def _kill_service(self, name: str) -> None:
        self._stand.services.keep_down(name)
        self._lab.kill_daemon(name)
        self.services_killed += 1

    def start_again(self) -> None:
        """Start what `kill` has killed."""
        if self._struck not in self._stand.pids:
            self._stand.services.let_up(self._struck)

    def stop(self, process: str) -> None:
        """SIGSTOP a process."""
        self._struck = process
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT what `stop` has stopped, if it is still there."""
        with suppress(ProcessLookupError, LabError):
            self._signal(signal.SIGCONT)

    def _signal(self, sig: signal.Signals) -> None:
        if self._struck in self._stand.pids:
            os.kill(self._stand.pids[self._struck], sig)
        else:
            self._lab.kill_daemon(self._struck, sig)

    def set_clock(self, service: str, ahead_s: float) -> None:
        """Set the wall clock of a service of ours; its JVMs have another one then."""
        self._clock = self._stand.clocks / str(self._stand.services.pid_of(service))
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(str(ahead_s), "ascii")
        fresh.rename(self._clock)

    def set_clock_right(self) -> None:
        """Set the clock that was set wrong."""
        self._clock.unlink()

    def truncate(self, path: Path) -> None:
        """Cut a file to nothing."""
        os.truncate(path, 0)

    def plan_store(self, slot: Slot) -> Path:
        """Give the file of a node's local plan."""
        return self._lab.node(slot.supervisor).store_dir / "plan" / "data.mdb"

    def sample_store(self, slot: Slot) -> Path:
        """Give the file where a worker leaves its acks and its load."""
        folder = f"{slot.port}-{self._stand.pids[str(slot)]}"
        return self._lab.node(slot.supervisor).store_dir / "w" / folder / "data.mdb"

    def delete_plan(self) -> None:
        """Delete the plan in ZooKeeper."""
        self._stand.session.delete(wire.plan_path(self.topology))

    def garble_plan(self) -> None:
        """Write garbage over the plan in ZooKeeper."""
        self._stand.session.set(wire.plan_path(self.topology), b"garbage{")

    def rebalance(self, workers: int | None = None, counts: int | None = None) -> None:
        """Let the user rebalance, as many workers and executors of the count bolt as he likes."""
        self._lab.rebalance(TOPOLOGY, workers, {"count": counts} if counts else None)

    def deactivate(self) -> None:
        """Let the spouts rest."""
        self._lab.deactivate(TOPOLOGY)

    def activate(self) -> None:
        """Let the spouts emit again."""
        self._lab.activate(TOPOLOGY)

    def kill_topology(self) -> None:
        """Kill the topology and wait for the end of its workers."""
        self.let_on()  # it takes longer than a session lasts
        self._lab.kill_topology(TOPOLOGY)

    def submit(self) -> None:
        """Submit it again."""
        self._stand.submit()

    def rebuild_zookeeper(self) -> None:
        """Lose all that ZooKeeper holds, with Storm down; adopt the new cluster and submit."""
        self.plain_move()
        services = self._stand.services
        self.kill_topology()
        self._stand.disconnect()
        for name in services.daemons:
            self._kill_service(name)
        shutil.rmtree(self._lab.layout.run_dir / "zookeeper" / "data" / "version-2")
        services.let_up("zookeeper")
        self._stand.wait("ZooKeeper listens", lambda: listens(self._lab.layout.zookeeper_port))
        for name in services.daemons:
            services.let_up(name)
        hosts = {node.host for node in self._lab.nodes}
        self._stand.wait("supervisors register", lambda: {*self._lab.supervisors()} == hosts)
        self._await_services()
        self._adopt()
        self._stand.submit()

    def _await_services(self) -> None:
        """Wait until agents and controllers are back, or report what is missing and restart it."""
        try:
            self._stand.wait("the services are back", self._services_speak, BACK_LIMIT_S)
        except LabError:
            self.complaints.append(
                f"agents and controllers not back {BACK_LIMIT_S:.0f} s after the new ZooKeeper"
            )
            for name in self._stand.services.ours:
                self._lab.kill_daemon(name)
                self.services_killed += 1
            self._stand.wait("the restarted services speak", self._services_speak)

    def _services_speak(self) -> bool:
        """Check whether there is a leader and every agent has reported something since."""
        session = self._stand.session
        led = session.read(wire.CLUSTER) is not None
        return led and len(session.children(wire.ACKS) or []) == len(self._lab.nodes)

    def _adopt(self) -> None:
        for node in self._lab.nodes:
            conf = str(node.conf_dir / "storm.yaml")
            command = [sys.executable, "-m", "agent", "adopt-cluster"]
            subprocess.run([*command, "--conf", conf], check=True, capture_output=True)
