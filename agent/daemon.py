"""The agent: one per node, between ZooKeeper and the node's JVMs; may be restarted at any time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field

from agent.config import AgentConfig, AgentError
from agent.machine import MachineMeters
from agent.pull import ADOPT_FILE, Puller
from agent.push import Pusher
from agent.samples import Samples, SampleStores
from agent.switch import Switch
from agent.users import UserPlans
from kvstore.errors import (
    AccessError,
    NotConnectedError,
    SessionLostError,
    StoreError,
    ZooKeeperError,
)
from kvstore.foreign import replace_file
from kvstore.logs import log
from kvstore.pulse import Pulse
from kvstore.service import AFTER_REFUSAL_S, Refusals, serve, without_storm
from kvstore.surprises import Surprises
from kvstore.writer import PlanWriter
from kvstore.zookeeper import Session, Waiting
from migration.model import MOVING, LocalPlan
from migration.wire import CLUSTER, PLAN_KEY

LOOK_EVERY_S = 0.05
# While a move waits for an answer of this node, each turn of the wait lengthens its phase.
LOOK_DURING_A_MOVE_S = 0.01
_TEND_EVERY_S = 1.0
# A supervisor with the hooks names the node within seconds.
_HOOKS_LIMIT_S = 30.0
_AFTER_SURPRISE_S = 1.0


@dataclass(slots=True)
class Shown:
    """The agent as its metrics show it; another thread may read it at any time."""

    samples: Samples = field(default_factory=Samples)
    plans: LocalPlan | None = None


class Agent:
    """The parts of an agent, and the order of their turns; `wake` ends the pause between two."""

    def __init__(
        self,
        config: AgentConfig,
        session: Session,
        writer: PlanWriter,
        wake: threading.Event,
        shown: Shown | None = None,
    ) -> None:
        self._config = config
        self._wake = wake
        self._shown = shown or Shown()
        self._stores = SampleStores(config.store_dir)
        self._switch = Switch(config.store_dir)
        self._puller = Puller(session, writer, config.store_dir, wake)
        self._user_plans = UserPlans(config.store_dir)
        self._users: Mapping[str, str] | None = None
        self._pusher = Pusher(
            session, config.load_s, MachineMeters(link_mbit=config.link_mbit).read
        )
        self._node = config.supervisor
        self._here: frozenset[str] | None = None
        self._tended_s = -_TEND_EVERY_S
        self._synced_s = -config.sync_s
        self._began_s: float | None = None
        self._is_missed = False  # the node, in the log

    def turn(self, now_s: float) -> None:
        """Take one turn: plans down, acks and load up; `now_s` are monotonic seconds.

        A `StoreError` or an `OSError` if a store or ZooKeeper fails.
        """
        away: ZooKeeperError | None = None
        trouble: StoreError | OSError | None = None
        # Plans first: a move may be waiting for one.
        for step in (self._pull, self._hand_out, self._tend):
            try:
                step(now_s)
            except ZooKeeperError as error:  # the metrics of the JVMs go on
                away = error
            except (StoreError, OSError) as error:  # a full disk must not silence the node
                trouble = trouble or error
        self._pusher.led_by(self._puller.epoch)
        is_due = away is None and self._pusher.load_is_due(now_s)
        samples = self._stores.read(with_loads=is_due)
        self._shown.samples, self._shown.plans = samples, self._puller.local
        self._learn(samples)
        if away is not None:
            raise away
        if self._node is None:
            self._miss(now_s)
        else:
            puller = self._puller
            off = self._switch.reason()
            self._pusher.push(samples, self._node, puller.cluster, now_s, puller.lost, off=off)
        if trouble is not None:
            raise trouble

    def _miss(self, now_s: float) -> None:
        """Log it once where no JVM names the node for long: nothing else shows it here."""
        self._began_s = now_s if self._began_s is None else self._began_s
        if not self._is_missed and now_s - self._began_s >= _HOOKS_LIMIT_S:
            self._is_missed = True
            log.warning(
                "no_hooks_here",
                store=str(self._config.store_dir),
                reason="the supervisor of this node does not run, or has no hooks, or another "
                "nstorm.store.dir: name the jar in its supervisor.childopts, and restart it",
            )

    def _tend(self, now_s: float) -> None:
        if now_s - self._tended_s >= _TEND_EVERY_S:
            self._tended_s = now_s
            self._stores.discover()
            self._stores.check_readers()
            self._puller.tend_store()

    def _pull(self, now_s: float) -> None:
        polls = now_s - self._synced_s >= self._config.sync_s
        if not polls and not self._wake.is_set():
            return
        self._wake.clear()
        if polls:
            self._puller.invalidate_all()
            self._synced_s = now_s
        try:
            self._puller.sync(self._node, self._here)
        except ZooKeeperError:
            self._wake.set()  # what could not be read is due at the next turn
            raise
        except (StoreError, OSError):  # a switch must work on a full disk too
            self._switch.follow(self._puller.off)
            raise
        # After the plans: a JVM that is off takes no move that it has not read of before.
        self._switch.follow(self._puller.off)

    def _hand_out(self, now_s: float) -> None:
        del now_s
        if self._puller.local is not None:
            self._user_plans.write(self._puller.local, self._puller.texts, self._users)

    def _learn(self, samples: Samples) -> None:
        """Take from the JVMs which node this is and whose plans it needs."""
        supervisor, here, self._users = samples.node, samples.topologies, samples.users
        if self._config.supervisor is None and supervisor not in (None, self._node):
            log.info("node_known", node=supervisor, before=self._node)
            self._node = supervisor
            self._wake.set()
        if here != self._here:
            self._here = here
            self._wake.set()

    @property
    def waits_for(self) -> str | None:
        """What the agent needs before it can report anything; None if it reports."""
        return "a JVM with the hooks on this node" if self._node is None else None

    @property
    def look_every_s(self) -> float:
        """How long to pause before the next turn if nothing wakes it."""
        plans = self._puller.local.plans if self._puller.local else ()
        moving = any(
            entry.void is None and entry.phase in MOVING for p in plans for entry in p.entries
        )
        return LOOK_DURING_A_MOVE_S if moving else LOOK_EVERY_S

    def close(self) -> None:
        self._stores.close()


def run(config: AgentConfig, stop: threading.Event) -> int:
    """Run the agent of this node until `stop` is set; return the exit code.

    It is 0 if the agent was stopped, and 1 if the store cannot be opened: the service manager then
    starts it again.
    """
    wake, pulse, shown = threading.Event(), Pulse(), Shown()
    try:
        writer = PlanWriter(config.store_dir / "plan", PLAN_KEY)
    except StoreError as error:
        log.error("agent_cannot_start", reason=str(error))
        return 1

    def work(session: Session) -> None:
        with closing(Agent(config, session, writer, wake, shown)) as agent:
            log.info("agent_started", store=str(config.store_dir), **session.facts)
            _loop(agent, wake, stop, pulse)

    with writer, _exposed(config, shown, pulse):
        serve(config.zookeeper, work, stop, on_state=lambda state: wake.set(), pulse=pulse)
    log.info("agent_stopped")
    return 0


def _exposed(config: AgentConfig, shown: Shown, pulse: Pulse) -> AbstractContextManager[None]:
    if config.metrics_at is None:
        return nullcontext()
    # Late: metrics that are not asked for take no memory.
    from agent.telemetry import NodeTelemetry  # noqa: PLC0415
    from kvstore.exposition import exposed  # noqa: PLC0415

    return exposed(config.metrics_at, "agent", NodeTelemetry(shown), pulse)


def _loop(agent: Agent, wake: threading.Event, stop: threading.Event, pulse: Pulse) -> None:
    away, surprises, refusals = False, Surprises(), Refusals()
    while not stop.is_set():
        try:
            agent.turn(time.monotonic())
            pulse.beat(agent.waits_for)
            pulse.worked_at_s = time.time()  # ZooKeeper answers, also where no JVM has reported yet
            if away:
                log.info("zookeeper_back")
            away = False
        except SessionLostError:
            raise
        except NotConnectedError as error:
            if not away:
                log.warning("zookeeper_away", reason=str(error))
            away = True
            pulse.beat("ZooKeeper")
            stop.wait(LOOK_EVERY_S)
        except AccessError as error:
            refusals.report(error)
            pulse.beat(str(error))
            stop.wait(AFTER_REFUSAL_S)
        except Exception as error:
            # A surprise must not end what the JVMs of the node depend on.
            surprises.report("turn_failed", error)
            pulse.beat("a turn without a surprise, see the log")
            stop.wait(_AFTER_SURPRISE_S)
        wake.wait(agent.look_every_s)


def adopt_cluster(config: AgentConfig) -> str:
    """Let this node follow the cluster that ZooKeeper now is of, after it was rebuilt.

    The agent takes the cluster's UUID, which is returned, at its next poll or when it is started.
    An `AgentError` if there is no Storm or no cluster in ZooKeeper, or no answer within one
    attempt.
    """
    stop = threading.Event()
    refused: str | None = None

    def wait(waiting: Waiting) -> None:
        nonlocal refused
        refused = waiting.error if waiting.refused else None
        stop.set()

    with Session(config.zookeeper) as session:
        if not session.connect(on_wait=wait, stop=stop):
            missing = refused or "ZooKeeper does not answer; start it first"
            raise AgentError(f"{missing} ({config.zookeeper})")
        problem = without_storm(session)
        if problem is not None:
            raise AgentError(problem)
        stored = session.read(CLUSTER)
    if stored is None:
        raise AgentError(f"{CLUSTER} is not in ZooKeeper at {config.zookeeper}; start a controller")
    cluster = stored.data.decode().strip()
    # A file, because the running agent alone may write the plan's store.
    config.store_dir.mkdir(parents=True, exist_ok=True)
    replace_file(config.store_dir / ADOPT_FILE, cluster.encode())
    return cluster
