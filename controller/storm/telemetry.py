"""The controller's metrics for Prometheus: of itself, and of what Storm cannot know.

Counters count what this process did since its start. The series of a topology end with it.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from controller.config import Config
from controller.core.cluster import numbered
from controller.core.controls import EVERYWHERE
from controller.core.decision import Outcome
from controller.core.distance import inter_node_bytes_per_s
from controller.core.figures import Effect, SpoutFigures, Verdict
from controller.core.headroom import headroom
from controller.core.meters import MS_PER_S, known_rows
from controller.core.picture import Picture
from controller.core.resources import RESOURCES
from controller.core.runs import GOING_BACK, KEPT, TAKEN_BACK, Watch
from controller.core.topology import hosts_of
from controller.cycle import CycleInput, Memory
from controller.report import TopologyReport
from controller.storm.move_record import MoveRecord
from controller.storm.status import nodes_of
from controller.storm.totals import TupleTotals
from kvstore.exposition import Families
from kvstore.logs import log
from kvstore.pulse import Pulse
from migration.meters import OF_NODE, OF_WORKER
from migration.model import Phase, Slot, topology_name
from migration.protocol import MoveOutcome

# Seconds; the limits of the phases are among them.
_PHASES = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60)
_CYCLES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_OF_WORKER = "topology host port"
_GAUGES = {
    "leads": ("1 while this controller leads and does its work.", ""),
    "epoch": ("The number of this controller's time as leader; 0 while another leads.", ""),
    "paused": ("1 while an operator has paused the controller.", ""),
    "cycle_timestamp_seconds": ("When the last cycle began.", ""),
    "inter_node_ratio": ("Share of the tuples that go from node to node.", "topology"),
    "inter_node_bytes_per_second": (
        "Bytes that go from node to node, by the sizes of tuples that workers looked at.",
        "topology",
    ),
    "traffic_tuples_per_second": ("Tuples from executor to executor.", "topology"),
    "headroom_ratio": ("By what factor the input may still grow.", "topology resource"),
    "acked_tuples_per_second": ("Tuples that are acked at the spouts.", "topology"),
    "failed_tuples_per_second": ("Tuples that fail at the spouts.", "topology"),
    "complete_latency_seconds": (
        "In what time this share of the tuples is acked, over about the last minute.",
        "topology quantile",
    ),
    "predicted_gain_tuples_per_second": (
        "What the moves of the last cycle add to the traffic inside nodes.",
        "topology",
    ),
    "move_gain_ratio": (
        "Share of the traffic that a move in the history brings inside nodes, mean of all. kind "
        "is predicted, or measured 30 s after its end.",
        "topology kind",
    ),
    "run_cpu_ratio": (
        "By what factor the last run of moves changes the CPU for an input tuple. kind is "
        "predicted, or measured.",
        "topology kind",
    ),
    "executors_taken_back": (
        "Executors that stay since a run of moves was taken back, while the load is like it was.",
        "topology",
    ),
    "plan_version": ("The version of the topology's plan.", "topology"),
    "executors_not_running": ("Executors that their worker has not got.", "topology"),
    "moves_under_way": ("Moves in the plan, void ones left out.", "topology phase"),
    "load_age_seconds": ("Age of the oldest load report in the last cycle.", "topology"),
    "workers": ("Workers, with hooks or without.", "topology hooks"),
    "worker_load_ratio": ("Share of a worker's CPU that all who share it use.", _OF_WORKER),
    "component_queue_tuples": (
        "Tuples that wait at a component's executors.",
        "topology component",
    ),
    "resting": (
        "1 while an operator has deactivated the topology, or switched the hooks off.",
        "topology",
    ),
}
for _row in RESOURCES:
    _GAUGES |= {
        f"worker_{_row.name}_{_row.unit}": (
            f"{_row.shown} that a worker uses, or would use to keep up.",
            _OF_WORKER,
        ),
        f"worker_capacity_{_row.unit}": (f"{_row.shown} that a worker has.", _OF_WORKER),
        f"component_{_row.name}_{_row.unit}": (
            f"{_row.shown} that a component's executors use, or would use to keep up.",
            "topology component",
        ),
    }
_GAUGES |= {f"worker_{meter.column}": (meter.shown, _OF_WORKER) for meter in OF_WORKER}
_GAUGES |= {f"node_{meter.column}": (meter.shown, "host") for meter in OF_NODE}


class Telemetry(Collector):
    """Takes in each cycle, and answers requests, which may come in another thread."""

    def __init__(self, config: Config, pulse: Pulse) -> None:
        self._config = config
        self._pulse = pulse
        self._counted = CollectorRegistry()
        here: dict[str, Any] = {"registry": self._counted}
        labels = ["topology", "outcome"]
        self._decisions = Counter("nstorm_decisions", "Cycles, by how they ended.", labels, **here)
        self._moves = Counter("nstorm_moves", "Moves, by how they ended.", labels, **here)
        labels = ["topology", "verdict", "end"]
        self._runs = Counter(
            "nstorm_runs", "Runs of moves, by what they changed and how they ended.", labels, **here
        )
        self._judged: dict[str, set[float]] = {}  # when the runs began that are counted
        self._ends: tuple[tuple[Counter, Collection[tuple[str, ...]]], ...] = (
            (self._decisions, [(outcome,) for outcome in Outcome]),
            (self._moves, [(outcome,) for outcome in MoveOutcome]),
            (self._runs, list(product(Verdict, (KEPT, TAKEN_BACK)))),
        )
        self._tuples = Counter(
            "nstorm_component_tuples",
            "Tuples sent to a component's executors, as this controller has seen it.",
            ["topology", "component"],
            **here,
        )
        self._totals = TupleTotals()
        self._series: set[tuple[str, str]] = set()  # topology and component of those
        self._phases = Histogram(
            "nstorm_move_phase_seconds", "A phase of a move.", ["phase"], buckets=_PHASES, **here
        )
        for phase in Phase:
            self._phases.labels(phase)
        self._disturbed = Histogram(
            "nstorm_move_disturbance_seconds",
            "From PREPARE until the source has stopped: what an application may notice of a move.",
            buckets=_PHASES,
            **here,
        )
        self._pauses = Histogram(
            "nstorm_move_pause_seconds",
            "The most time a moved spout, or bolt with state, works on nothing: from QUIET to the "
            "end of STOP, or all of CARRY. A live move pauses nothing.",
            buckets=_PHASES,
            **here,
        )
        self._cycles = Histogram(
            "nstorm_cycle_duration_seconds", "Looking, deciding, acting.", buckets=_CYCLES, **here
        )
        self._known: set[str] = set()
        self._gauges = self._idle = Families({})

    def collect(self) -> Iterable[Metric]:
        # Without ZooKeeper no cycle ends, and another controller may lead by now.
        gauges = self._gauges if self._pulse.idles is None else self._idle
        return [*self._counted.collect(), *gauges.collect()]

    def tell(self, topologies: set[str], ended: Iterable[MoveRecord], *cycle: Any) -> None:
        """Take in what there is, what has ended and a `cycle`; a fault stays in here.

        Also while another leads: a move that is taken over has ended before the next scrape.
        """
        try:
            self.know(topologies)
            for move in ended:
                self.ended(move)
            self.cycle(*cycle)
        except Exception:  # the cycle is over, whether it can be shown or not
            log.exception("metrics_failed")

    def ended(self, move: MoveRecord) -> None:
        """Count a move that has ended, also of a topology that has gone in the meantime."""
        name = topology_name(move.topology)
        self._begin({name})
        self._moves.labels(name, move.outcome).inc()
        for phase, seconds in move.phase_s.items():
            self._phases.labels(phase).observe(seconds)
        if move.stopped_after_s is not None:
            self._disturbed.observe(move.stopped_after_s)
        if move.pause_s is not None:
            self._pauses.observe(move.pause_s)

    def cycle(
        self,
        seen: CycleInput | None,
        memory: Memory,
        reports: Sequence[TopologyReport],
        took_s: float,
        moves: Sequence[MoveRecord] = (),
    ) -> None:
        """Take in a cycle: what was seen, what is remembered after it, and how it ended.

        `moves` are those of the history.
        """
        self._cycles.observe(took_s)
        # It may have gone since the look; a cycle without a topology has none.
        self._begin({topology_name(report.topology) for report in reports if report.topology})
        for report in reports:
            self._decisions.labels(topology_name(report.topology), report.outcome).inc()
        if seen is not None:
            self._count_tuples(seen, memory)
            self._count_runs(memory.watches)
        gauges = Families(_GAUGES)
        epoch = seen.epoch if seen else None
        gauges.add("leads", epoch is not None)
        gauges.add("epoch", epoch or 0)
        held = seen and seen.controls.held(EVERYWHERE, seen.time_s)
        gauges.add("paused", held is not None)
        time_s = max(report.time_s for report in reports)
        gauges.add("cycle_timestamp_seconds", time_s)
        for view in seen.topologies if seen else ():
            name, hooked = topology_name(view.id), len(view.observation.hooked)
            gauges.add("plan_version", view.plan.version, name)
            gauges.add("workers", hooked, name, "true")
            gauges.add("workers", len(view.observation.slots) - hooked, name, "false")
            gauges.add("executors_not_running", len(view.observation.not_running), name)
            off = view.observation.switched_off is not None
            gauges.add("resting", off or view.publication.status == "INACTIVE", name)
            phases = [entry.phase for entry in view.plan.entries if entry.void is None]
            for phase in Phase:
                gauges.add("moves_under_way", phases.count(phase), name, phase)
            for kind, gains in _gains([move for move in moves if move.topology == view.id]):
                gauges.add("move_gain_ratio", sum(gains) / len(gains), name, kind)
            watch = memory.watches.get(view.id)
            gauges.add("executors_taken_back", len(watch.stays) if watch else 0, name)
            rates = memory.rates.get(view.id)
            if seen and rates is not None and rates.slots:
                gauges.add("load_age_seconds", seen.now_s - float(rates.seen_s.min()), name)
        for report in reports:
            _add_spouts(gauges, topology_name(report.topology), report.felt.spouts)
            _add_effect(gauges, topology_name(report.topology), report.felt.effect)
            if report.picture is not None:
                _add_picture(gauges, report, report.picture)
        views = seen.topologies if seen else ()
        hosts = hosts_of(views)
        for node, row in nodes_of(reports).items():
            for column, value in row.items():
                gauges.add(f"node_{column}", value, hosts.get(node, node))
        idle = Families(_GAUGES)
        for name, value in (("leads", 0), ("epoch", 0), ("cycle_timestamp_seconds", time_s)):
            idle.add(name, value)
        # At once: a scrape sees one cycle or the next.
        self._gauges, self._idle = gauges, idle

    def _count_tuples(self, seen: CycleInput, memory: Memory) -> None:
        views = tuple(view for view in seen.topologies if view.id in memory.rates)
        for topology, component, tuples in self._totals.since(views, memory.rates):
            series = topology_name(topology), component
            self._tuples.labels(*series).inc(tuples)
            self._series.add(series)

    def _count_runs(self, watches: Mapping[str, Watch]) -> None:
        """Count the runs that have ended since the last cycle."""
        judged = {}
        for topology, watch in watches.items():
            name = topology_name(topology)
            # One that cannot go back is kept, and its end has the reason.
            ends = {e.begun_s: e for e in watch.effects if e.end not in ("", GOING_BACK)}
            for begun_s in ends.keys() - self._judged.get(topology, set()):
                end = TAKEN_BACK if ends[begun_s].end == TAKEN_BACK else KEPT
                if name in self._known:
                    self._runs.labels(name, ends[begun_s].verdict, end).inc()
            judged[topology] = set(ends)
        self._judged = judged

    def know(self, topologies: set[str]) -> None:
        """Begin each series at 0, because a first value is no rise; end those of what is gone."""
        self._begin(topologies)
        for (counter, outcomes), topology in product(self._ends, self._known - topologies):
            for outcome in outcomes:
                counter.remove(topology, *outcome)
        for topology, component in [one for one in self._series if one[0] not in topologies]:
            self._tuples.remove(topology, component)
            self._series.discard((topology, component))
        self._known = set(topologies)

    def _begin(self, topologies: set[str]) -> None:
        """Begin the series of what is not known yet; the next `know` ends them if it is gone."""
        for (counter, outcomes), topology in product(self._ends, topologies - self._known):
            for outcome in outcomes:
                counter.labels(topology, *outcome)
        self._known |= topologies


def _gains(moves: Iterable[MoveRecord]) -> Iterator[tuple[str, list[float]]]:
    """Collect what moves were to gain, and what was measured."""
    made = [move for move in moves if move.outcome == MoveOutcome.MOVED]
    predicted = [
        move.asc_tps / total_tps
        for move in made
        if (total_tps := move.before.get("total_tps")) and move.asc_tps is not None
    ]
    shares = [(m.before.get("inter_node_frac"), m.after.get("inter_node_frac")) for m in made]
    measured = [
        before - after for before, after in shares if before is not None and after is not None
    ]
    return ((kind, of) for kind, of in (("predicted", predicted), ("measured", measured)) if of)


def _add_spouts(gauges: Families, topology: str, spouts: SpoutFigures) -> None:
    rates = (("acked", spouts.acked_tps), ("failed", spouts.failed_tps))
    for kind, tps in rates:
        if tps is not None:
            gauges.add(f"{kind}_tuples_per_second", tps, topology)
    for quantile, ms in (("0.5", spouts.latency_p50_ms), ("0.99", spouts.latency_p99_ms)):
        if ms is not None:
            gauges.add("complete_latency_seconds", ms / MS_PER_S, topology, quantile)


def _add_effect(gauges: Families, topology: str, effect: Effect | None) -> None:
    if effect is None:
        return
    if effect.predicted_cpu is not None:
        gauges.add("run_cpu_ratio", effect.predicted_cpu, topology, "predicted")
    if effect.measured_cpu is not None:
        gauges.add("run_cpu_ratio", effect.measured_cpu, topology, "measured")


def _add_picture(gauges: Families, report: TopologyReport, picture: Picture) -> None:
    name, cluster, snapshot = topology_name(report.topology), picture.cluster, picture.snapshot
    gauges.add("traffic_tuples_per_second", snapshot.traffic.total_tps, name)
    if report.inter_node_frac is not None:
        gauges.add("inter_node_ratio", report.inter_node_frac, name)
    bytes_per_s = inter_node_bytes_per_s(cluster, snapshot)
    if bytes_per_s is not None:
        gauges.add("inter_node_bytes_per_second", bytes_per_s, name)
    left = headroom(cluster, snapshot)
    if left.factor is not None and left.binds is not None:
        gauges.add("headroom_ratio", left.factor, name, left.binds)
    gain_tps = sum(move.asc_tps for move in report.moves)
    gauges.add("predicted_gain_tuples_per_second", gain_tps, name)
    hosts = picture.view.publication.hosts
    fit, resource = picture.fit, picture.fit.resource
    known = known_rows(picture.of_workers, cluster.workers)
    columns = fit.own.tolist(), fit.capacity.tolist(), fit.frac.tolist()
    for worker, used, capacity, frac in zip(
        map(Slot.parse, cluster.workers), *columns, strict=True
    ):
        place = name, hosts.get(worker.supervisor, worker.supervisor), str(worker.port)
        gauges.add(f"worker_{resource.name}_{resource.unit}", used, *place)
        gauges.add(f"worker_capacity_{resource.unit}", capacity, *place)
        if math.isfinite(frac):  # Storm has CPU for the node
            gauges.add("worker_load_ratio", frac, *place)
        for column, value in known.get(str(worker), {}).items():
            gauges.add(f"worker_{column}", value, *place)
    components, row = numbered(snapshot.component_of)
    gauge = f"component_{resource.name}_{resource.unit}"
    for component, used in zip(components, np.bincount(row, fit.demand), strict=True):
        gauges.add(gauge, float(used), name, component)
    for component, waiting in zip(components, np.bincount(row, snapshot.queue), strict=True):
        gauges.add("component_queue_tuples", float(waiting), name, component)
