"""Measures the imagined world as workers measure the real one: late, with noise, as totals."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from controller.core.cluster import MOST, Floats, Quantity
from deploy.sim.flow.world import World
from migration.model import ExecutorId, ExecutorLoad, NodeLoad, Slot, WorkerLoad, traffic_of

NS_PER_S, MS_PER_S = 1e9, 1e3


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
        self._process_s += np.bincount(world.place, thread_s + other_s, len(self._slots))

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

    def report(self, topology: str) -> None:
        """Send a report of every live worker on its way."""
        now_s = self._world.now_s
        workers = [self._worker(topology, w) for w in np.flatnonzero(self._world.up).tolist()]
        nodes = sorted({slot.supervisor for slot in self._slots})
        loads = tuple(
            NodeLoad(
                n, round(now_s * MS_PER_S), tuple(w for w in workers if w.slot.supervisor == n)
            )
            for n in nodes
        )
        self._err()
        self._on_the_way.append((now_s + self._metering.delay_s, loads))

    def _worker(self, topology: str, w: int) -> WorkerLoad:
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
