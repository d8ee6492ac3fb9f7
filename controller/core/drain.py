"""Moves executors away from hosts that operators drain, before any policy is asked."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.classify import TOLERANCE_CORES, Limits
from controller.core.decision import Decision, Move, Outcome, Veto
from controller.core.layout import pinned_executors, settled_placement
from controller.core.picture import Picture
from controller.core.topology import TopologyView
from controller.core.veto import last_executors
from controller.core.view.pairs import Pairs
from migration.model import ExecutorId, Node, Slot


@dataclass(frozen=True, slots=True)
class Left:
    """The executors of a topology that are still on a drained host, and why some of them stay."""

    executors: tuple[ExecutorId, ...]
    stays: Mapping[ExecutorId, str]


def drained_nodes(nodes: Iterable[Node], drained: Iterable[str]) -> frozenset[str]:
    """Name the nodes of hosts that are drained."""
    hosts = set(drained)
    return frozenset(node.id for node in nodes if {node.id, node.host} & hosts)


def left_on(view: TopologyView, drained: Iterable[str]) -> Left:
    """List what is still on drained hosts."""
    nodes = drained_nodes(view.publication.nodes, drained)
    placement = settled_placement(view.publication, view.plan)
    here = tuple(sorted(e for e, slot in placement.items() if slot.supervisor in nodes))
    pinned = pinned_executors(view) if here else {}
    return Left(here, {e: pinned[e] for e in here if e in pinned})


def on_hosts(view: TopologyView, hosts: Iterable[str]) -> int:
    """Count the executors that Storm has on hosts, and the moves that have an end there."""
    nodes = drained_nodes(view.publication.nodes, hosts)
    executors = view.publication.executors
    placed = {one.executor for one in executors if one.slot and one.slot.supervisor in nodes}
    ends = {
        entry.executor
        for entry in view.plan.entries
        if {entry.source.supervisor, entry.target.supervisor} & nodes
    }
    return len(placed | ends)


def cannot_drain(
    views: Sequence[TopologyView],
    host: str,
    drained: Iterable[str],
    cpu_cores: Mapping[tuple[str, str], float],  # by topology and executor
    room_cores: Mapping[tuple[str, str], float],  # by topology and worker, below the upper limit
    *,
    to_open: Callable[[TopologyView, Collection[str]], Mapping[Slot, float]],  # `rooms_to_open`
) -> str | None:
    """Say why a host cannot be drained; None if the other hosts can carry it."""
    hosts = {node.host for view in views for node in view.publication.nodes}
    closed = {*drained, host}
    if host not in hosts:
        return f"{host} is no host of the cluster, which has {', '.join(sorted(hosts)) or 'none'}"
    if hosts <= closed:
        return f"{host} is the last host that is not drained"
    for view in views:
        left = left_on(view, closed)
        leaving = [str(executor) for executor in left.executors if executor not in left.stays]
        name, nodes = view.publication.name, drained_nodes(view.publication.nodes, closed)
        if any((view.id, executor) not in cpu_cores for executor in leaving):
            return f"the load of {name} is not known yet: try again in some seconds"
        needs = sum(cpu_cores[view.id, executor] for executor in leaving)
        others = (str(slot) for slot in view.hooked_slots if slot.supervisor not in nodes)
        room = sum(max(room_cores.get((view.id, slot), 0.0), 0.0) for slot in others)
        room += sum(to_open(view, nodes).values())
        if leaving and needs > room:
            return (
                f"{len(leaving)} executors of {name} need {needs:.3g} cores, and its workers and "
                f"free slots on other hosts have {room:.3g} below load.high"
            )
    return None


def rooms_to_open(
    view: TopologyView,
    closed: Collection[str],  # nodes
    *,
    free: Collection[Slot],
    high_frac: float,
    worker_capacity_cores: float | None,
) -> dict[Slot, float]:
    """Tell what could be opened for a topology, and its room below the upper limit, in cores.

    It is one slot of each node where the topology has no worker, and of which the node's CPU still
    has a share.
    """
    shut = {*closed, *(slot.supervisor for slot in view.slots | view.plan.opened_slots())}
    nodes = {node.id: node for node in view.publication.nodes if node.id not in shut}
    found: dict[Slot, float] = {}
    for slot in sorted(free):
        node = nodes.pop(slot.supervisor, None)
        if node is not None:
            share = node.cpu_capacity / 100 / (node.slots_in_use + 1)
            found[slot] = high_frac * (worker_capacity_cores or share)
    return found


def drain_each(
    pictures: Mapping[str, Picture | Veto],
    drained: tuple[str, ...],
    limits: Limits,
    free_moves: int,
    *,
    rests: Collection[tuple[str, ExecutorId]] = (),
    excluded_hosts: Collection[str] = (),
    free: Collection[Slot] = (),
    worker_capacity_cores: float | None = None,
) -> dict[str, Decision]:
    """Decide about the topologies that have executors to move from a drained host.

    What `rests` after a move waits: it may have come back, and would again. Nothing goes to
    `excluded_hosts`. Where no worker has room, one of the `free` slots is opened.
    """
    decisions: dict[str, Decision] = {}
    for topology, made in pictures.items():
        if isinstance(made, Veto) or not drained:
            continue
        resting = {str(executor) for of, executor in rests if of == topology}
        to_open = rooms_to_open(
            made.view,
            drained_nodes(made.view.publication.nodes, (*drained, *excluded_hosts)),
            free=free,
            high_frac=limits.high_frac,
            worker_capacity_cores=worker_capacity_cores,
        )
        decision = _drain(
            made,
            drained,
            limits,
            free_moves,
            resting=resting,
            excluded_hosts=excluded_hosts,
            to_open=to_open,
        )
        if decision is not None:
            decisions[topology] = decision
            free_moves -= len(decision.moves)
    return decisions


def _drain(
    made: Picture,
    drained: tuple[str, ...],
    limits: Limits,
    free_moves: int,
    *,
    resting: Collection[str],
    excluded_hosts: Collection[str],
    to_open: Mapping[Slot, float],
) -> Decision | None:
    cluster, snapshot = made.cluster, made.snapshot
    closed = _workers_on(made, drained)
    waits = {str(entry.executor) for entry in made.view.plan.entries} | set(resting)
    waits |= last_executors(made.view).executors.keys()
    leaving = [
        e
        for e in np.flatnonzero(closed[snapshot.place] & snapshot.is_movable).tolist()
        if snapshot.executors[e] not in waits
    ]
    if not leaving:
        return None
    hosts = f"host{'s' * (len(drained) > 1)} {', '.join(drained)}"
    if free_moves <= 0:
        return Decision(
            Outcome.MOVE_IN_FLIGHT, f"{hosts} drained: executors wait for moves under way"
        )
    workers = made.view.observation.workers
    able = {str(slot) for slot in made.view.hooked_slots if workers[slot].error is None}
    is_open = np.array([name in able for name in cluster.workers])
    is_open &= ~_workers_on(made, (*drained, *excluded_hosts))
    room = np.where(is_open, made.classes.room_cores, -np.inf)
    workers_now, spare = len(room), list(to_open)
    targets = (*cluster.workers, *map(str, spare))
    node_index = {name: n for n, name in enumerate(cluster.nodes)}
    opened_at = np.array([node_index[slot.supervisor] for slot in spare], np.int64)
    node_of = np.concatenate([cluster.node_of, opened_at])
    room = np.concatenate([room, np.array([to_open[slot] for slot in spare])])
    # The largest first: what is small finds room at last, too.
    leaving.sort(key=lambda e: (-snapshot.cpu_cores[e], e))
    moves: list[Move] = []
    pairs = Pairs.of(snapshot.traffic, len(snapshot.executors))
    node = cluster.node_of[snapshot.place]
    for e in leaving:
        # A worker that runs comes before one that has to be started.
        to = int(np.argmax(room[:workers_now]))
        if room[to] + TOLERANCE_CORES < snapshot.cpu_cores[e]:
            to = int(np.argmax(room))
        if len(moves) == free_moves or room[to] + TOLERANCE_CORES < snapshot.cpu_cores[e]:
            continue
        room[to] -= snapshot.cpu_cores[e]
        asc_tps = pairs.asc_tps(snapshot.traffic.tps, node, e, int(node_of[to]))
        node[e] = node_of[to]
        source = cluster.workers[snapshot.place[e]]
        moves.append(Move(snapshot.executors[e], source, targets[to], asc_tps))
    if moves:
        reason = f"{hosts} drained: {len(leaving)} of its executors may leave"
        return Decision(Outcome.WOULD_MOVE, reason, tuple(moves))
    name, cores = snapshot.executors[leaving[-1]], snapshot.cpu_cores[leaving[-1]]
    reason = (
        f"{hosts} drained: {name} needs {cores:.3g} cores, and no worker or free slot elsewhere "
        f"has more than {max(room.max(), 0.0):.3g} below {limits.high_frac:g} of its CPU"
    )
    return Decision(Outcome.NO_LOW_WORKER, reason)


def _workers_on(made: Picture, hosts: Iterable[str]) -> NDArray[np.bool_]:
    """Mark the workers of these hosts, shape (S,)."""
    nodes = drained_nodes(made.view.publication.nodes, hosts)
    return np.array([node in nodes for node in made.cluster.nodes])[made.cluster.node_of]
