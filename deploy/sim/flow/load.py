"""Measures the imagined world as workers measure the real one: late, with noise, as totals."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated

import numpy as np
from msgspec import UNSET, Meta, Struct

from controller.core.cluster import Floats
from controller.core.latency import BEGINS_MS
from controller.core.quantities import MOST, Quantity
from deploy.sim.flow.nodes import MB_BYTES, Nodes
from deploy.sim.flow.world import World
from migration.model import (
    LATENCY_BUCKETS,
    ExecutorId,
    ExecutorLoad,
    Meters,
    NodeLoad,
    SizeRow,
    Slot,
    WorkerLoad,
    traffic_of,
)

NS_PER_S, MS_PER_S = 1e9, 1e3
# Of the tuples to other workers, those whose size is measured (`nstorm.load.TupleSizes`).
SAMPLED_FRAC = 1 / 31
# Of the tuples of spouts, those that Storm times (topology.stats.sample.rate).
TIMED_FRAC = 1 / 20
# The times of tuples are log-normal about the one that Little's law gives, as far as this.
_TIMES = np.exp(0.5 * np.array([NormalDist().inv_cdf((k + 0.5) / 50) for k in range(50)])).round(9)


class Metering(Struct, frozen=True, forbid_unknown_fields=True):
    """How well the controller sees."""

    period_s: Annotated[float, Meta(ge=0.1, le=MOST)] = 5.0  # between two reports of a worker
    delay_s: Quantity = 0.5  # from a report to the controller
    # Sigma of the log-normal factor on each count and each CPU time of a report.
    noise: Quantity = 0.0


@dataclass(slots=True)
class Delivered:
    """What has flowed (tuples) and been used (by worker) since the last look."""

    cpu_s: Floats
    total: float = 0.0
    inter_node: float = 0.0
    total_bytes: float = 0.0
    inter_node_bytes: float = 0.0


class Meter:
    """Keeps every worker's totals."""

    def __init__(
        self, world: World, metering: Metering, slots: Sequence[Slot], random: np.random.Generator
    ) -> None:
        self._world, self._metering, self._random = world, metering, random
        self._slots = tuple(slots)
        size, workers = len(world.place), len(slots)
        self._everyone = np.arange(size)
        self._names = [world.parts[c].id for c in world.component]
        self._sent = np.zeros((workers, size, size))
        self._thread_s = np.zeros((workers, size))
        self._process_s = np.zeros(workers)
        self._transport_s = np.zeros(workers)
        # (W, C, C), tuples to other workers, by their two components.
        self._left = np.zeros((workers, *world.size_bytes.shape))
        # Of each worker's spouts, the tuples that were acked and failed, and of those by time.
        self._felt, self._felt_of = np.zeros((2, workers)), np.zeros(2)
        self._timed = np.zeros((workers, LATENCY_BUCKETS))
        self._reported_s = 0.0
        self.born = [1] * workers
        self.done = Delivered(np.zeros(workers))
        self._count_noise, self._cpu_noise = np.ones((size, size)), np.ones(size)
        self._err()
        self._on_the_way: deque[tuple[float, tuple[NodeLoad, ...]]] = deque()
        self._newest: tuple[NodeLoad, ...] = ()

    def read(self) -> None:
        """Take down what has been done; must come before each change of place or keys."""
        world = self._world
        sent, thread_s, other_s = world.take()
        self.done.total += float(sent.sum())
        self.done.inter_node += float(sent[world.remote].sum())
        size_bytes = sent * world.tuple_bytes
        self.done.total_bytes += float(size_bytes.sum())
        self.done.inter_node_bytes += float(size_bytes[world.remote].sum())
        used_s = np.bincount(world.place, thread_s + other_s, len(self._slots))
        self.done.cpu_s = self.done.cpu_s + used_s
        sent = sent * self._count_noise
        thread_s, other_s = thread_s * self._cpu_noise, other_s * self._cpu_noise
        self._sent[world.place, self._everyone] += sent
        self._thread_s[world.place, self._everyone] += thread_s
        process_s = np.bincount(world.place, thread_s + other_s, len(self._slots))
        self._process_s += process_s
        # What comes from other workers is read by threads of their own.
        self._transport_s += np.bincount(world.place, other_s, len(self._slots))
        world.nodes.cpu_s += np.bincount(world.node_of, process_s)
        if world.has_sizes:
            leaving = sent * (world.place[:, None] != world.place)
            begin = np.searchsorted(world.component, np.arange(len(world.parts)))
            by_target = np.add.reduceat(leaving, begin, axis=1)
            np.add.at(self._left, (world.place, world.component), by_target)

    def _err(self) -> None:
        """Draw by how much each count and each CPU time of the next report is wrong."""
        sigma, size = self._metering.noise, len(self._everyone)
        if sigma:
            wrong = np.exp(sigma * self._random.standard_normal((size + 1, size)) - sigma**2 / 2)
            wrong = wrong.round(9)  # its last digits differ with the processor
            self._count_noise, self._cpu_noise = wrong[:-1], wrong[-1]

    def reborn(self, worker: int) -> None:
        """Start a worker's totals at zero, as its process does."""
        self.born[worker] += 1
        self._sent[worker], self._thread_s[worker], self._process_s[worker] = 0.0, 0.0, 0.0
        self._transport_s[worker], self._left[worker] = 0.0, 0.0
        self._felt[:, worker], self._timed[worker] = 0.0, 0.0

    def report(self, topology: str) -> None:
        """Send a report of every live worker on its way; the meters of all topologies are read."""
        now_s, waiting = self._world.now_s, self._world.transfer_queue
        self._feel(now_s)
        up = np.flatnonzero(self._world.up).tolist()
        workers = [self._worker(topology, w, float(waiting[w])) for w in up]
        nodes = sorted({slot.supervisor for slot in self._slots})
        loads = tuple(
            NodeLoad(
                node,
                round(now_s * MS_PER_S),
                tuple(w for w in workers if w.slot.supervisor == node),
                meters=node_meters(self._world.nodes, int(node[1:])) or UNSET,
            )
            for node in nodes
        )
        self._err()
        self._on_the_way.append((now_s + self._metering.delay_s, loads))

    def _feel(self, now_s: float) -> None:
        """Count what was acked and failed at the spouts, and for how long tuples were under way."""
        world, span_s = self._world, now_s - self._reported_s
        felt = np.array([world.done, world.failed])
        more, self._felt_of, self._reported_s = felt - self._felt_of, felt, now_s
        if not world.has_ackers or span_s <= 0:
            return
        spouts = np.bincount(world.place[world.is_spout], minlength=len(self._slots))
        share = spouts / spouts.sum()
        self._felt += more[:, None] * share
        if more[0] > 0:
            late_ms = MS_PER_S * (world.way_s + world.pending * span_s / more[0]) * _TIMES
            buckets = np.searchsorted(BEGINS_MS, late_ms, side="right") - 1
            timed = np.bincount(buckets, minlength=LATENCY_BUCKETS) * more[0] / len(_TIMES)
            self._timed += share[:, None] * timed * TIMED_FRAC

    def _worker(self, topology: str, w: int, waiting: float) -> WorkerLoad:
        here = np.flatnonzero(self._world.place == w)
        source, target = np.nonzero(self._sent[w])
        tuples = self._sent[w][source, target]
        queue = self._world.queue
        return WorkerLoad(
            topology=topology,
            slot=self._slots[w],
            incarnation=f"{self._slots[w]}-{self.born[w]}",
            time_ms=round(self._world.now_s * MS_PER_S),
            process_cpu_ns=round(self._process_s[w] * NS_PER_S),
            executors=tuple(
                ExecutorLoad(
                    ExecutorId(e + 1, e + 1),
                    self._names[e],
                    round(self._thread_s[w, e] * NS_PER_S),
                    round(queue[e]),
                    None,
                )
                for e in here.tolist()
            ),
            traffic=traffic_of(
                (a + 1, b + 1, round(n))
                for a, b, n in zip(source.tolist(), target.tolist(), tuples.tolist(), strict=True)
            ),
            meters=self._meters(w, waiting) or UNSET,
            sizes=self._sizes(w) or UNSET,
            latency=tuple(
                (b, int(self._timed[w, b])) for b in np.flatnonzero(self._timed[w] >= 1).tolist()
            )
            or UNSET,
        )

    def _meters(self, w: int, waiting: float) -> Meters:
        """Read what users feel, and what the scenario bounds."""
        world = self._world
        found = Meters(transport_cpu_ns=round(self._transport_s[w] * NS_PER_S))
        if world.has_ackers and world.is_spout[world.place == w].any():
            found["acked_tuples"], found["failed_tuples"] = self._felt[:, w].round().tolist()
        if not math.isinf(world.hardware.heap_mb):
            # Without executors it is the JVM alone.
            live_mb = max(world.heaps.live_mb(world.place)[w], world.hardware.heap_base_mb)
            found["heap_live_bytes"] = round(live_mb * MB_BYTES)
            found["heap_max_bytes"] = round(world.hardware.heap_mb * MB_BYTES)
        if world.nodes.links is not None:
            found["transfer_queue_tuples"] = round(waiting)
        return found

    def _sizes(self, w: int) -> tuple[SizeRow, ...]:
        """Give what of the tuples to other workers has been measured."""
        names = [part.id for part in self._world.parts]
        sampled = np.floor(self._left[w] * SAMPLED_FRAC)
        size_bytes = self._world.size_bytes
        return tuple(
            (names[a], names[b], int(sampled[a, b]), round(sampled[a, b] * size_bytes[a, b]))
            for a, b in np.argwhere((sampled > 0) & (size_bytes > 0)).tolist()
        )

    def loads(self) -> Sequence[NodeLoad]:
        """Return the newest reports that have come."""
        while self._on_the_way and self._on_the_way[0][0] <= self._world.now_s:
            self._newest = self._on_the_way.popleft()[1]
        return self._newest

    def look(self) -> Delivered:
        """Hand out what has been done since the last look: true values, without noise."""
        done, self.done = self.done, Delivered(np.zeros(len(self._slots)))
        return done


def node_meters(nodes: Nodes, n: int) -> Meters:
    """Read the meters of a node, as far as the scenario bounds what they measure."""
    found = Meters()
    if nodes.has_own_cores:
        found["machine_cpu_ns"] = round(nodes.cpu_s[n] * NS_PER_S)
        found["machine_cores"] = nodes.hardware.cores
    if nodes.links is not None:
        carried_bytes = nodes.links.carried_bytes
        found["net_sent_bytes"] = round(carried_bytes[n].sum())
        found["net_received_bytes"] = round(carried_bytes[:, n].sum())
        found["link_bytes_per_s"] = nodes.hardware.link_bytes_s
    return found
