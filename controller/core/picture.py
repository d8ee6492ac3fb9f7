"""Makes the picture that a decision about one topology looks at, or says why there is none."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from controller.core.classify import Classes, Limits, classify
from controller.core.cluster import Cluster, Floats, Ints, LoadSnapshot, Traffic
from controller.core.decision import Outcome, Veto
from controller.core.metrics import Rates
from controller.core.tasks import TaskMap, component_targets
from controller.core.topology import TopologyView
from migration.model import ExecutorId, Phase, Plan, Publication, Slot

E = TypeVar("E", bound=Hashable)
JvmCpu: TypeAlias = tuple[Mapping[E, float], float, Sequence[int] | Ints]

STALE_LOAD_S = 15.0
# A worker that has just been started needs this long to be heard of; after that it has no hooks.
UNHEARD_S = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A topology that could be measured: its places, load and traffic, and who is high and low."""

    view: TopologyView
    cluster: Cluster
    snapshot: LoadSnapshot
    classes: Classes


def picture_each(
    views: Iterable[TopologyView],
    rates: Mapping[str, Rates],
    unheard_s: Mapping[tuple[str, Slot], float],
    limits: Limits,
    *,
    worker_capacity_cores: float | None,
    now_s: float,
    time_s: float,
) -> tuple[dict[str, Picture | Veto], dict[tuple[str, Slot], float]]:
    """Measure topologies and sort their workers into high and low.

    Gives a veto, STAND_BACK or STALE_METRICS, where a part of a topology is not known, and
    `unheard_s` of now: since when (monotonic) workers that have not named their hooks are missed.
    Without `worker_capacity_cores` a node's CPU is divided by its slots in use. `now_s` is
    monotonic, `time_s` Unix seconds.
    """
    pictures: dict[str, Picture | Veto] = {}
    missed_s: dict[tuple[str, Slot], float] = {}
    for view in views:
        publication, hooked = view.publication, view.hooked_slots
        stopped = _unplaced(view)
        if stopped is not None:
            missed_s |= {key: s for key, s in unheard_s.items() if key[0] == view.id}
            pictures[view.id] = stopped
            continue
        missing = [(view.id, slot) for slot in sorted(publication.slots - set(hooked))]
        missed_s |= {key: unheard_s.get(key, now_s) for key in missing}
        unknown = [
            f"{slot} has not said that it has the hooks"
            for of, slot in missing
            if now_s - missed_s[of, slot] < UNHEARD_S
        ]
        unknown += stale_workers(rates[view.id], hooked, now_s=now_s, limit_s=STALE_LOAD_S)
        if unknown:
            pictures[view.id] = Veto(Outcome.STALE_METRICS, "; ".join(unknown))
            continue
        placement = settled_placement(publication, view.plan)
        slots = publication.slots | frozenset(placement.values())
        cluster = build_cluster(publication, slots, worker_capacity_cores)
        pinned = pinned_executors(view)
        snapshot = build_snapshot(
            cluster, publication, placement, rates[view.id], pinned, time_s=time_s
        )
        classes = classify(cluster, snapshot, limits)
        pictures[view.id] = Picture(view, cluster, snapshot, classes)
    return pictures, missed_s


def _unplaced(view: TopologyView) -> Veto | None:
    publication = view.publication
    if publication.status != "ACTIVE":
        return Veto(Outcome.STAND_BACK, f"the topology is {publication.status}")
    homeless = [str(p.executor) for p in publication.executors if p.slot is None]
    if homeless or not publication.executors:
        named = ", ".join(homeless) or "any executor"
        return Veto(Outcome.STAND_BACK, f"Storm has not assigned {named}")
    known = {node.id for node in publication.nodes}
    lost = sorted(slot for slot in publication.slots if slot.supervisor not in known)
    if lost:
        named = ", ".join(map(str, lost))
        return Veto(Outcome.STAND_BACK, f"Storm has no supervisor for {named}")
    if not view.hooked_slots:
        return Veto(Outcome.STALE_METRICS, "no worker has said that it has the hooks")
    return None


def settled_placement(publication: Publication, plan: Plan | None) -> dict[ExecutorId, Slot]:
    """Tell where each executor that Storm has assigned will be once the moves under way have ended.

    A target is filled from the start of a move, so that the next decision leaves it the room.
    """
    placed = {p.executor: p for p in publication.executors if p.slot is not None}
    placement = {executor: p.slot for executor, p in placed.items() if p.slot is not None}
    for entry in plan.entries if plan else ():
        storm = placed.get(entry.executor)
        if storm and entry.phase is not Phase.UNDO and entry.counts(storm.slot, storm.start_secs):
            placement[entry.executor] = entry.target
    return placement


def pinned_executors(view: TopologyView) -> dict[ExecutorId, str]:
    """Say why executors must stay; the worker that has the object knows best."""
    kind = {component.id: component.kind for component in view.publication.components}
    pinned, hooked = {}, frozenset(view.hooked_slots)
    for placed in view.publication.executors:
        if kind.get(placed.component, "bolt") != "bolt":
            pinned[placed.executor] = kind[placed.component]
        elif placed.slot not in hooked:
            pinned[placed.executor] = "no hooks in its JVM"
    for ack in view.observation.workers.values():
        pinned.update({one.executor: one.reason for one in ack.pinned})
    return pinned


def stale_workers(
    rates: Rates, slots: Iterable[Slot], *, now_s: float, limit_s: float
) -> tuple[str, ...]:
    """Say of which of these workers the load is not known well enough to decide, a text each.

    `now_s` is by the clock of `observe`; no report older than `limit_s` counts.
    """
    found = []
    for slot in sorted(slots):
        worker = rates.get(slot)
        if worker is None:
            found.append(f"{slot} has not reported")
        elif now_s - worker.seen_s > limit_s:
            found.append(f"{slot} reported {now_s - worker.seen_s:.0f} s ago")
        elif not worker.known:
            found.append(f"{slot} has reported only once")
    return tuple(found)


def build_cluster(publication: Publication, slots: Iterable[Slot], cores: float | None) -> Cluster:
    """List the slots that a topology uses, or is about to use, with their capacity.

    Each has `cores`; None divides a node's CPU by its slots in use.
    """
    nodes = {node.id: node for node in publication.nodes}

    def capacity(slot: Slot) -> float:
        node = nodes[slot.supervisor]
        return node.cpu_capacity / 100 / max(node.slots_in_use, 1)

    known = [slot for slot in slots if slot.supervisor in nodes]
    return Cluster.build(nodes, [(str(s), s.supervisor, cores or capacity(s)) for s in known])


def build_snapshot(
    cluster: Cluster,
    publication: Publication,
    placement: Mapping[ExecutorId, Slot],
    rates: Rates,
    pinned: Mapping[ExecutorId, str],
    *,
    time_s: float,
) -> LoadSnapshot:
    """Put together what a policy reads, one row an executor of the placement.

    Every slot of the placement is a worker of the cluster; `pinned` says why executors must stay.
    """
    # The natural order of "start-end" is the order of the ids.
    executors = sorted(placement)
    component = {placed.executor: placed.component for placed in publication.executors}
    component_of = tuple(component[e] for e in executors)
    tasks = TaskMap.of(executors, component_of, component_targets(publication))
    traffic = _between_executors(tasks, [w.sent for w in rates.values()])
    worker = {name: i for i, name in enumerate(cluster.workers)}
    queue = {
        (slot, executor): waiting
        for slot, worker_rates in rates.items()
        for executor, waiting in worker_rates.queues.items()
    }
    return LoadSnapshot(
        topology=publication.topology,
        time_s=time_s,
        components=publication.components,
        edges=publication.edges,
        executors=tuple(map(str, executors)),
        component_of=component_of,
        place=np.array([worker[str(placement[e])] for e in executors], dtype=np.int64),
        cpu_cores=_cpu_cores(executors, placement, rates, traffic),
        queue=np.array([queue.get((placement[e], e), 0) for e in executors], dtype=np.float64),
        pinned=tuple(pinned.get(e) for e in executors),
        traffic=traffic,
    )


def _cpu_cores(
    executors: list[ExecutorId],
    placement: Mapping[ExecutorId, Slot],
    rates: Rates,
    traffic: Traffic,
) -> Floats:
    count = len(executors)
    handled_tps = np.zeros(count)
    handled_tps += np.bincount(traffic.source, traffic.tps, count)
    handled_tps += np.bincount(traffic.target, traffic.tps, count)
    here: dict[Slot, list[int]] = {}
    for row, executor in enumerate(executors):
        here.setdefault(placement[executor], []).append(row)
    jvms = [(w.cpu_cores, w.process_cores, here.get(slot, [])) for slot, w in rates.items()]
    return whole_cpu_cores({e: row for row, e in enumerate(executors)}, jvms, handled_tps)


def whole_cpu_cores(
    index: Mapping[E, int], jvms: Sequence[JvmCpu[E]], handled_tps: Floats
) -> Floats:
    """Add each executor's share, by tuples, of its JVM's other CPU (network, GC) to its own.

    `index` has the row of each executor; `jvms` the CPU of the threads of each executor, and of the
    whole JVM, in cores, and the rows of the executors that are placed there; `handled_tps`, shape
    (E,), the tuples that each executor sent and got.
    """
    # A copy that is leaving still runs elsewhere: own CPU counts wherever it was used.
    own = [0.0] * len(handled_tps)
    for cpu_cores, _, _ in jvms:
        for executor, used in cpu_cores.items():
            row = index.get(executor)
            if row is not None:
                own[row] += used
    cores = np.array(own)
    for cpu_cores, process_cores, here in jvms:
        other = max(process_cores - sum(cpu_cores.values()), 0.0)
        rows = np.asarray(here, dtype=np.int64)
        handled = handled_tps[rows] if handled_tps[rows].any() else np.ones(len(rows))
        cores[rows] += other * handled / handled.sum()
    return cores


def _between_executors(tasks: TaskMap, sent: list[Traffic]) -> Traffic:
    source = np.concatenate([t.source for t in sent] or [np.zeros(0, dtype=np.int64)])
    target = np.concatenate([t.target for t in sent] or [np.zeros(0, dtype=np.int64)])
    tps = np.concatenate([t.tps for t in sent] or [np.zeros(0)])
    rows, source, target, share = tasks.between(source, target)
    return Traffic.build(source, target, tps[rows] * share)
