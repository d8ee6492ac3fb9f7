"""What a host has, and whether the others can carry it."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from controller.core.capacity import Capacity, Spare, room_of, why_not_all
from controller.core.declared import Declared, memory_mb
from controller.core.excluded import NOTHING_EXCLUDED, Excluded, nodes_named
from controller.core.limits import Limits
from controller.core.openable import slots_to_open
from controller.core.topology import TopologyView, hosts_of, unpublished
from controller.core.undrained import left_on
from migration.model import NodeAcks, Slot

_ELSEWHERE = "its workers and free slots on other hosts"


def on_hosts(view: TopologyView, hosts: Collection[str]) -> int:
    """Count the executors that Storm has on hosts, and the moves that have an end there."""
    nodes = nodes_named(view.publication.hosts, hosts)
    executors = view.publication.executors
    placed = {one.executor for one in executors if one.slot and one.slot.supervisor in nodes}
    ends = {
        entry.executor
        for entry in view.plan.entries
        if {entry.source.supervisor, entry.target.supervisor} & nodes
    }
    return len(placed | ends)


def unseen(views: Sequence[TopologyView], acks: Iterable[NodeAcks], host: str) -> str | None:
    """Return why a host may have more than is seen there; None if all of it is seen."""
    hosts = hosts_of(views)
    is_listed = bool(nodes_named(hosts, (host,)))
    for node, worker in unpublished(views, acks):
        # A node that Storm does not list may be of any host of which it lists none.
        if host in (node, hosts.get(node, "" if is_listed else host)):
            return f"{worker.slot} is a worker of {worker.topology}, which Nimbus does not publish"
    if is_listed:
        return None
    for view in views:
        placed = [one.slot.supervisor for one in view.publication.executors if one.slot]
        if lost := sum(supervisor not in hosts for supervisor in placed):
            return (
                f"Storm lists no supervisor of this host, nor that of {lost} executors of "
                f"{view.publication.name}, which may be there"
            )
    return None


def cannot_drain(
    views: Sequence[TopologyView],
    host: str,
    drained: Iterable[str],
    demand: Mapping[tuple[str, str], float],  # by topology and executor
    room_of_worker: Mapping[
        tuple[str, str], float
    ],  # by topology and worker, below the upper limit
    *,
    free: Collection[Slot],
    limits: Limits,
    capacity: Capacity,
    excluded: Excluded = NOTHING_EXCLUDED,
) -> str | None:
    """Give the reason why a host cannot be drained; None if the other hosts can carry it.

    What one topology needs there is no room for the next.
    """
    hosts = {node.host for view in views for node in view.publication.nodes}
    closed = {*drained, host}
    if host not in hosts:
        return f"{host} is no host of the cluster, which has {', '.join(sorted(hosts)) or 'none'}"
    if hosts <= closed:
        return f"{host} is the last host that is not drained"
    unused: dict[str, float] = {}  # of nodes and free slots, after the topologies before
    declared = Declared.of(views)
    for view in views:
        left = left_on(view, closed, excluded)
        going = [executor for executor in left.executors if executor not in left.stays]
        leaving = [str(executor) for executor in going]
        name = view.publication.name
        nodes = nodes_named(view.publication.hosts, closed | excluded.hosts)
        if any((view.id, executor) not in demand for executor in leaving):
            return f"the load of {name} is not known yet: try again in some seconds"
        needs = sum(demand[view.id, executor] for executor in leaving)
        vetoes = view.allowed.vetoes.workers
        others = [
            slot
            for slot in view.observation.slots
            if slot.supervisor not in nodes and str(slot) not in vetoes
        ]
        spares = [one for one in slots_to_open(view, free, capacity) if one.node not in nodes]
        if capacity.is_shared:
            rooms = _rooms_of_nodes(view, others, spares, room_of_worker, limits)
        else:
            rooms = {str(slot): room_of_worker.get((view.id, str(slot)), 0.0) for slot in others}
            rooms |= {one.worker: room_of(0.0, one.capacity, limits) for one in spares}
        rooms = {place: max(unused.get(place, room), 0.0) for place, room in rooms.items()}
        room = sum(rooms.values())
        what = f"{len(leaving)} executors of {name}"
        why_not = why_not_all(needs, room, _ELSEWHERE)
        if why_not is not None:
            return f"{what} {why_not}"
        mb = sum(memory_mb(view, executor) for executor in going)
        nodes_left = {slot.supervisor for slot in others} | {one.node for one in spares}
        spread = declared.spread(what, mb, nodes_left, _ELSEWHERE)
        if isinstance(spread, str):
            return spread
        declared = spread
        if needs:
            # It may go to any of them.
            unused |= {place: one * (1 - needs / room) for place, one in rooms.items()}
    return None


def _rooms_of_nodes(
    view: TopologyView,
    others: Iterable[Slot],
    spares: Iterable[Spare],
    room_of_worker: Mapping[tuple[str, str], float],
    limits: Limits,
) -> dict[str, float]:
    """List what fits on the nodes of some slots; where no worker reports, all of its CPU does."""
    known = {Slot.parse(worker).supervisor: room for (_, worker), room in room_of_worker.items()}
    nodes = {slot.supervisor for slot in others} | {one.node for one in spares}
    return {
        node.id: known.get(node.id, room_of(0.0, node.cpu_capacity / 100, limits))
        for node in view.publication.nodes
        if node.id in nodes
    }
