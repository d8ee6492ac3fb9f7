"""Makes the picture that a decision about one topology looks at, or finds why there is none."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from controller.core.capacity import Capacity
from controller.core.cluster import Cluster, Floats, LoadSnapshot
from controller.core.decision import Outcome, Veto
from controller.core.declared import Declared
from controller.core.figures import HopFigures, Peak
from controller.core.fit import SURE, Fit, beside_each_other, outside_cores
from controller.core.hops import AS_IN_THE_LAB
from controller.core.layout import Layout, layout_of, opened_by
from controller.core.limits import Limits
from controller.core.links import Links
from controller.core.links import beside_each_other as links_beside_each_other
from controller.core.meters import Columns, NodeRates
from controller.core.metrics import Rates
from controller.core.peaks import Peaks, peak_of
from controller.core.spaces import levels_of
from controller.core.topology import UNHEARD_S, TopologyView
from migration.model import Node, Slot

STALE_LOAD_S = 15.0
# Of the nodes' meters: what a link can carry in one direction, what was sent, and received.
LINK_COLUMNS = ("link_bytes_per_s", "net_sent_bytes_per_s", "net_received_bytes_per_s")
# Of the nodes' meters: what all processes use, and the cores that there are for them.
CPU_COLUMNS = ("machine_cpu_cores", "machine_cores")
# Topologies of these use next to nothing.
RESTING = ("INACTIVE", "KILLED")


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A topology that could be measured: its places, load and traffic, and who is high and low."""

    view: TopologyView
    layout: Layout
    snapshot: LoadSnapshot
    fit: Fit
    of_workers: Columns = field(default_factory=dict)  # what their meters show, (W,) each
    of_nodes: Columns = field(default_factory=dict)  # (N,) each
    of_executors: Columns = field(default_factory=dict)  # (E,) each
    peak: Peak = field(default_factory=Peak)
    hops: HopFigures = AS_IN_THE_LAB

    @property
    def cluster(self) -> Cluster:
        return self.layout.cluster


def picture_each(
    views: Sequence[TopologyView],
    rates: Mapping[str, Rates],
    layouts: Mapping[str, Layout],
    unheard_s: Mapping[tuple[str, Slot], float],
    limits: Limits,
    *,
    nodes: NodeRates,
    peaks: Mapping[str, Peaks],
    capacity: Capacity,
    hops: Mapping[str, HopFigures],
    now_s: float,
    time_s: float,
) -> tuple[dict[str, Picture | Veto], dict[tuple[str, Slot], float]]:
    """Measure topologies and sort their workers into high and low.

    Gives a veto, STAND_BACK or STALE_METRICS, where a part of a topology is not known. Also gives
    `unheard_s` of now: since when (monotonic) workers that have not named their hooks are missed.
    `layouts` are those of earlier pictures, `peaks` are by name, and `hops` what is known of hops.
    `now_s` is monotonic, `time_s` Unix seconds.
    """
    pictures: dict[str, Picture | Veto] = {}
    missed_s: dict[tuple[str, Slot], float] = {}
    measured: dict[str, Picture] = {}
    opened, declared = opened_by(views), Declared.of(views)
    by_nodes: dict[tuple[str, ...], Columns] = {}  # most topologies have all nodes
    for view in views:
        hooked = view.observation.hooked
        stopped = _unknown(view)
        if stopped is not None:
            missed_s |= {key: s for key, s in unheard_s.items() if key[0] == view.id}
            pictures[view.id] = stopped
            continue
        missing = [(view.id, slot) for slot in sorted(view.publication.slots - set(hooked))]
        missed_s |= {key: unheard_s.get(key, now_s) for key in missing}
        waited = [slot for _, slot in missing if now_s - missed_s[view.id, slot] < UNHEARD_S]
        unknown = [view.observation.unheard(slot) for slot in waited]
        unknown += stale_workers(rates[view.id], hooked, now_s=now_s, limit_s=STALE_LOAD_S)
        if unknown:
            pictures[view.id] = Veto(Outcome.STALE_METRICS, "; ".join(unknown))
            continue
        layout = layout_of(view, capacity, layouts.get(view.id), opened)
        layout = layout.fitted(rates[view.id]).beside(declared)
        snapshot = layout.snapshot(rates[view.id], time_s=time_s)
        peak = peak_of(peaks, snapshot)
        snapshot = snapshot.peaking(peak.times)
        fit = Fit.of(layout.cluster, snapshot, limits)
        named = layout.cluster.nodes
        if named not in by_nodes:
            by_nodes[named] = nodes.of(named, now_s - STALE_LOAD_S)
        of_executors = layout.executor_meters(rates[view.id])
        meters = layout.meters(rates[view.id]), by_nodes[named], of_executors
        on_hops = hops.get(view.id, AS_IN_THE_LAB)
        measured[view.id] = Picture(view, layout, snapshot, fit, *meters, peak, on_hops)
    if not capacity.is_shared:  # each worker has CPU of its own
        return pictures | measured, missed_s
    outside = outside_of(views, {name: rates[name] for name in measured}, nodes, now_s)
    return pictures | _beside_each_other(measured, views, capacity, outside), missed_s


def outside_of(
    views: Collection[TopologyView], rates: Mapping[str, Rates], nodes: NodeRates, now_s: float
) -> dict[str, float]:
    """Compute, by node, the CPU that is not left and that no worker of these topologies uses."""
    known = {node.id: node for view in views for node in view.publication.node_of.values()}
    columns, unknown = nodes.of(tuple(known), now_s - STALE_LOAD_S), np.full(len(known), np.nan)
    of_workers = chain.from_iterable(one.of_nodes for one in rates.values())
    busy, cores = (columns.get(name, unknown) for name in CPU_COLUMNS)
    return outside_cores(list(known.values()), of_workers, busy, cores)


def unmeasured_nodes(views: Iterable[TopologyView], measured: Collection[str]) -> list[Node]:
    """List the node of each worker of topologies whose load is not known."""
    return [
        view.publication.node_of[slot.supervisor]
        for view in views
        if view.id not in measured and view.publication.status not in RESTING
        for slot in view.publication.slots
        if slot.supervisor in view.publication.node_of
    ]


def _beside_each_other(
    measured: Mapping[str, Picture],
    views: Iterable[TopologyView],
    capacity: Capacity,
    outside: Mapping[str, float],  # cores, by node
) -> dict[str, Picture]:
    """Note in pictures what others use of each node, and of its link."""
    found = {}
    own = {name: made.fit for name, made in measured.items()}
    fits = beside_each_other(own, unmeasured_nodes(views, own), outside)
    clusters = _links_beside_each_other(measured, fits, capacity)
    for name, made in measured.items():
        spaces = levels_of(made.of_workers, len(made.cluster.workers))
        hops = made.hops
        cluster = replace(
            clusters[name], spaces=spaces, hop_times=hops.times, hop_doubt=SURE * hops.doubt
        )
        layout = replace(made.layout, cluster=cluster)
        fit = replace(fits[name], cluster=cluster)
        found[name] = replace(made, layout=layout, fit=fit)
    return found


def _links_beside_each_other(
    measured: Mapping[str, Picture], fits: Mapping[str, Fit], capacity: Capacity
) -> dict[str, Cluster]:
    links, most, carried = {}, {}, {}
    for name, made in measured.items():
        unknown = np.full(len(made.cluster.nodes), np.nan)
        shown = [made.of_nodes.get(column, unknown) for column in LINK_COLUMNS]
        most[name] = _link_limit(shown[0], capacity)
        carried[name] = np.stack(shown[1:])
        links[name] = Links(fits[name].cluster, made.snapshot)
    return links_beside_each_other(links, most, carried)


def _link_limit(speed: Floats, capacity: Capacity) -> Floats:
    """Give what links carry in one direction: the speed of interfaces, or less if that is set."""
    fixed = capacity.link_bytes_s
    return speed if fixed is None else np.fmin(speed, fixed)


def full_links(nodes: NodeRates, capacity: Capacity, most: float, now_s: float) -> frozenset[str]:
    """List the nodes that send, or get, more than this share of what their link can carry."""
    columns = nodes.of(nodes.nodes, now_s - STALE_LOAD_S)
    unknown = np.full(len(nodes.nodes), np.nan)
    speed, sent, received = (columns.get(name, unknown) for name in LINK_COLUMNS)
    is_full = np.fmax(sent, received) / _link_limit(speed, capacity) > most
    return frozenset(nodes.nodes[n] for n in np.flatnonzero(is_full))


def _unknown(view: TopologyView) -> Veto | None:
    stopped = view.allowed.inactive or unplaced(view)
    if stopped is not None:
        return stopped
    if (off := view.observation.switched_off) is not None:
        return Veto(Outcome.STAND_BACK, off)
    if not view.observation.hooked:
        return Veto(Outcome.STALE_METRICS, "no worker has reported that it has the hooks")
    return None


def unplaced(view: TopologyView) -> Veto | None:
    """Return why a topology cannot be laid out; None if it can."""
    publication = view.publication
    homeless = [str(p.executor) for p in publication.executors if p.slot is None]
    if homeless or not publication.executors:
        named = ", ".join(homeless) or "any executor"
        return Veto(Outcome.STAND_BACK, f"Storm has not assigned {named}")
    used = view.observation.slots | {entry.target for entry in view.plan.entries}
    lost = sorted(slot for slot in used if slot.supervisor not in publication.hosts)
    if lost:
        named = ", ".join(map(str, lost))
        return Veto(Outcome.STAND_BACK, f"Storm has no supervisor for {named}")
    return None


def stale_workers(
    rates: Rates, slots: Iterable[Slot], *, now_s: float, limit_s: float
) -> tuple[str, ...]:
    """Name the workers whose load is not known well enough to decide, a text each.

    `now_s` is by the clock of `observe`; no report older than `limit_s` counts.
    """
    worker, found = {slot: w for w, slot in enumerate(rates.slots)}, []
    if (rates.known & (now_s - rates.seen_s <= limit_s)).all() and worker.keys() >= set(slots):
        return ()
    for slot in sorted(slots):
        w = worker.get(slot)
        if w is None:
            found.append(f"{slot} has not reported")
        elif now_s - rates.seen_s[w] > limit_s:
            found.append(f"{slot} reported {now_s - rates.seen_s[w]:.0f} s ago")
        elif not rates.known[w]:
            found.append(f"{slot} has reported only once")
    return tuple(found)
