"""Asks the leading controller for moves, as an operator would, and follows them to their ends."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from controller.core.topology import TopologyView
from controller.storm.collect import LiveCluster
from controller.storm.command_record import COMMANDS, WAITING, Command, decode, encode, find
from deploy.lab import LabError
from deploy.lab.cluster import Lab
from kvstore.zookeeper import Session
from migration.model import ExecutorId, Slot, Way

# Storm counts here what a move must not make it do.
KILL_METERS = (
    "supervisor:num-workers-killed-assignment-changed",
    "supervisor:num-worker-transitions-into-kill-and-relaunch",
    "nimbus:num-rebalance-calls",
)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where executors are, by the plan laid over Storm's assignment.

    Attributes
    ----------
    free : tuple of ExecutorId
        Those that move live and have no entry in the plan, by task.
    staying : Counter of Slot
        How many executors a worker keeps whatever becomes of the moves under way.
    handed_over : tuple of ExecutorId
        Those that move by another way than live and have no entry.
    pinned : tuple of ExecutorId
        Those that no way moves; a wish for one is refused.
    """

    slot_of: dict[ExecutorId, Slot]
    free: tuple[ExecutorId, ...]
    staying: Counter[Slot]
    handed_over: tuple[ExecutorId, ...] = ()
    pinned: tuple[ExecutorId, ...] = ()


_READY_LIMIT_S = 60.0


class Operator:
    """An operator who moves executors by hand."""

    def __init__(self, session: Session, topology: str) -> None:
        self._session = session
        self._topology = topology
        self._view = LiveCluster.of_session(session)

    def ready(self) -> bool:
        """Check whether every worker of the topology can follow plans, and its agent reports it."""
        view = self._found()
        if view is None or view.stand_back is not None:
            return False
        observation = view.observation
        # An agent that has not read the cluster's record by the first leader does not count. Nor
        # does a worker whose agent has not written any plan yet.
        followed = all(worker.error is None for worker in observation.workers.values())
        return followed and view.publication.slots <= {*observation.hooked}

    def placement(self) -> Placement:
        """Look where executors are."""
        view = published(self._view, self._topology)
        slot_of = places(view)
        acks = [ack for node in view.acks for ack in node.workers if ack.topology == view.id]
        not_live = {pin.executor for ack in acks for pin in ack.pinned}
        by_ways = {one.executor for ack in acks for one in ack.ways}
        idle = set(slot_of) - {entry.executor for entry in view.plan.entries}
        return Placement(
            slot_of,
            free=tuple(sorted(idle - not_live)),
            staying=view.observation.staying,
            handed_over=tuple(sorted(idle & by_ways)),
            pinned=tuple(sorted(idle & not_live - by_ways)),
        )

    def ways(self) -> dict[ExecutorId, Way]:
        """List the executors that move by another way than `live`, with their way."""
        view = published(self._view, self._topology)
        acks = [ack for node in view.acks for ack in node.workers if ack.topology == view.id]
        return {one.executor: one.way for ack in acks for one in ack.ways}

    def reasons(self) -> set[str]:
        """Give the reasons why executors stay."""
        return {*published(self._view, self._topology).allowed.pinned.values()}

    def entries(self) -> int:
        """Count the entries of the plan."""
        view = self._found()
        return 0 if view is None else len(view.plan.entries)

    def _found(self) -> TopologyView | None:
        return find(self._view.topologies(), self._topology)

    def ask(self, executor: ExecutorId, slot: Slot) -> str:
        """Ask for a move, once all workers answer or `_READY_LIMIT_S` is over.

        Returns
        -------
        str
            The path to follow it by; it vanishes with this operator's session.
        """
        # A busy machine's agent can report too late for a moment, and a move is refused then.
        deadline = time.monotonic() + _READY_LIMIT_S
        while not self.ready() and time.monotonic() < deadline:
            time.sleep(0.1)
        wish = Command(self._topology, str(executor), str(slot))
        return self._session.create(f"{COMMANDS}/c-", encode(wish), ephemeral=True, sequence=True)

    def look(self, path: str) -> Command:
        """See what has become of a wish."""
        stored = self._session.read(path)
        command = None if stored is None else decode(stored.data)
        if command is None:
            raise LabError(f"the command {path} has vanished from ZooKeeper")
        return command

    def follow(
        self, path: str, until: Callable[[Command], bool], limit_s: float = 300.0
    ) -> Command:
        """Wait until a wish has come far enough.

        Parameters
        ----------
        until : callable
            Whether it has; an ended one always has.
        """
        deadline = time.monotonic() + limit_s
        while True:
            command = self.look(path)
            if command.ended or (command.state != WAITING and until(command)):
                return command
            if time.monotonic() > deadline:
                raise LabError(f"the move {command} has not ended within {limit_s:.0f} s")
            time.sleep(0.05)


def published(cluster: LiveCluster, topology: str) -> TopologyView:
    """Find a topology that must be there.

    Parameters
    ----------
    topology : str
        Its id or its name.

    Raises
    ------
    LabError
        If the hooks in Nimbus publish no such topology.
    """
    view = find(cluster.topologies(), topology)
    if view is None:
        raise LabError(f"no topology {topology!r} is published by the hooks in Nimbus")
    return view


def places(view: TopologyView) -> dict[ExecutorId, Slot]:
    """Find where executors are, by the plan laid over Storm's assignment."""
    slot_of = {
        placed.executor: placed.slot
        for placed in view.publication.executors
        if placed.slot is not None
    }
    return slot_of | {entry.executor: entry.owner for entry in view.plan.entries}


@contextmanager
def beside(lab: Lab, topology: str, mode: str = "observe") -> Iterator[Operator]:
    """Run agents and a controller for a lab, and give an operator who talks to it.

    Parameters
    ----------
    mode : str
        The controller's; in "observe" only the operator moves anything.
    """
    for node in lab.nodes:
        if lab.daemon(f"agent-{node.host}") is None:
            lab.start_agent(node)
    lab.start_controller(mode)
    try:
        # On a busy machine ZooKeeper has left a question open for more than the usual 5 s.
        with Session(lab.ensemble, deadline_s=60) as session:
            session.connect()
            operator = Operator(session, topology)
            lab.wait_until("all workers answer their agents", operator.ready)
            yield operator
    finally:
        lab.stop_controller()


def kill_meters(lab: Lab) -> Counter[str]:
    """Read those of Storm's own meters that must not rise across a move."""
    meters = lab.storm_meters()
    return Counter({name: meters[name] for name in KILL_METERS})
