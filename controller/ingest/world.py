"""Shows measured arrays to the controller as if Storm's JVMs had reported them.

A log from elsewhere becomes a journal when the controller's cycle sees it window by window.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from controller.config import Config
from controller.core.cluster import Floats, Ints
from controller.core.topology import TopologyView
from controller.cycle import CycleInput, Memory
from controller.ingest.cycle import cycle_with_searches
from controller.journal.recorder import Recorder
from controller.journal.writer import Writer
from controller.report import Report
from migration.model import (
    ExecutorId,
    ExecutorLoad,
    NodeAcks,
    NodeLoad,
    Plan,
    Publication,
    Slot,
    SupervisorAck,
    WorkerAck,
    WorkerLoad,
    traffic_of,
)
from migration.wire import SPEAKS

HOOKS = "none: from a file"
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The load as it was measured up to a moment."""

    time_s: float  # Unix seconds at its end
    span_s: float
    cpu_cores: Floats  # (E,), in the order of the publication
    source: Ints  # (P,), indices of executors
    target: Ints  # (P,)
    tuples: Floats  # (P,), sent from one to the other within the window


class WindowWorld:
    """A world of one topology, all of it placed; a move is done as soon as it is begun."""

    def __init__(self, publication: Publication) -> None:
        self.publication = publication
        self.places: dict[ExecutorId, Slot] = {
            p.executor: p.slot for p in publication.executors if p.slot is not None
        }
        self._executors = [placed.executor for placed in publication.executors]
        self._now_s = 0.0
        self._version = -1
        # Totals of each JVM, which never fall: of executors, and of pairs of their first tasks.
        self._cpu_s: dict[Slot, Floats] = {}
        self._sent: dict[Slot, dict[tuple[int, int], float]] = {}

    def advance(self, window: Window) -> None:
        self._now_s = window.time_s
        here = [self.places[executor] for executor in self._executors]
        index = {slot: i for i, slot in enumerate(sorted(set(here)))}
        at = np.array([index[slot] for slot in here], dtype=np.int64)
        sender = at[window.source]
        for slot, i in index.items():
            total = self._cpu_s.setdefault(slot, np.zeros(len(here)))
            total[at == i] += window.cpu_cores[at == i] * window.span_s
            sent, mine = self._sent.setdefault(slot, {}), sender == i
            rows = zip(
                window.source[mine].tolist(),
                window.target[mine].tolist(),
                window.tuples[mine].tolist(),
                strict=True,
            )
            for source, target, tuples in rows:
                sent[source, target] = sent.get((source, target), 0.0) + tuples

    def seen(self) -> CycleInput:
        """Show the topology where it is now, and the totals up to now."""
        views, loads = (self._view(),), self._loads()
        return CycleInput(self._now_s, self._now_s, epoch=0, topologies=views, loads=loads)

    def write(self, report: Report) -> None:
        for plan in report.plans.values():
            self.places |= {entry.executor: entry.target for entry in plan.entries}
            self._version = plan.version

    def _view(self) -> TopologyView:
        executors = tuple(
            structs.replace(placed, slot=self.places[placed.executor])
            for placed in self.publication.executors
        )
        publication = structs.replace(self.publication, executors=executors)
        plan = Plan(HOOKS, 0, self._version, publication.topology)
        return TopologyView(publication, plan, self._acks())

    def _loads(self) -> tuple[NodeLoad, ...]:
        time_ms = round(self._now_s * 1000)
        return tuple(
            NodeLoad(node.id, time_ms, tuple(map(self._load, self._slots(node.id))))
            for node in self.publication.nodes
        )

    def _slots(self, node: str) -> list[Slot]:
        used = set(self.places.values()) | self._cpu_s.keys()
        return sorted(slot for slot in used if slot.supervisor == node)

    def _acks(self) -> tuple[NodeAcks, ...]:
        def worker(slot: Slot) -> WorkerAck:
            here = tuple(executor for executor, at in self.places.items() if at == slot)
            topology = self.publication.topology
            return WorkerAck(topology, slot, 0, HOOKS, HOOKS, SPEAKS, 0, "", 0, -1, executors=here)

        return tuple(
            NodeAcks(
                node.id,
                0,
                HOOKS,
                SPEAKS,
                HOOKS,
                tuple(map(worker, self._slots(node.id))),
                SupervisorAck(node.id, 0, HOOKS, SPEAKS, 0, ""),
            )
            for node in self.publication.nodes
        )

    def _load(self, slot: Slot) -> WorkerLoad:
        seconds = self._cpu_s.get(slot, np.zeros(len(self._executors)))
        rows = zip(self.publication.executors, seconds.tolist(), strict=True)
        executors = tuple(
            ExecutorLoad(p.executor, p.component, round(cpu_s * NS_PER_S), 0, None)
            for p, cpu_s in rows
            if cpu_s > 0 or self.places[p.executor] == slot
        )
        first = [executor.start for executor in self._executors]
        sent = self._sent.get(slot, {})
        return WorkerLoad(
            self.publication.topology,
            slot,
            HOOKS,
            round(self._now_s * 1000),
            sum(load.cpu_ns for load in executors),
            executors,
            traffic_of((first[s], first[t], round(n)) for (s, t), n in sent.items()),
        )


def record_windows(
    world: WindowWorld, windows: Iterable[Window], config: Config, journal: Writer
) -> Iterator[Report]:
    """Let the controller's cycle decide about window after window, and keep a journal of it.

    The world makes the moves. The journal is closed at the end.
    """
    recorder, memory = Recorder(config, journal), Memory()
    for window in windows:
        world.advance(window)
        after, report, seen = cycle_with_searches(memory, world.seen(), config)
        recorder.record(memory, seen, report)
        world.write(report)
        memory = after
        journal.wait()
        yield report
    recorder.close()
