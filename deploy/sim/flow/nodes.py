"""What topologies share: the processors of the nodes, and the links between them."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from controller.core.cluster import Floats, Ints
from controller.core.quantities import MOST, Count, Name, Quantity
from deploy.sim.flow.feed import Span
from deploy.sim.flow.workload import Unbounded

# A queue that nothing feeds any more fades away, to numbers by which nothing can be divided.
NOTHING_S = 1e-100
MB_BYTES = 1 << 20  # as in -Xmx256m
# What rounding leaves of a full link.
NOTHING_FRAC = 1e-9


class Hardware(Struct, frozen=True, forbid_unknown_fields=True):
    """What the topologies run on."""

    nodes: Count = 2
    workers: Count = 4  # slots of a node
    cores: Annotated[float, Meta(ge=0.01, le=MOST)] = 4.0
    # worker: each worker has an even share of its node's cores, and no more (004, equation 3).
    # node: all executors of a node share them, whatever their workers and topologies. all: those of
    # all nodes, as in a lab where all nodes are on one machine.
    shared_by: Literal["worker", "node", "all"] = "worker"
    link_tps: Unbounded = math.inf  # tuples per second from one node to another (004, equation 3)
    # What each node can send, and what it can receive.
    link_bytes_s: Unbounded = math.inf
    # Processor time of a tuple between workers of a node and between nodes, and of each byte of
    # it, at either end.
    worker_us: Quantity = 4.0
    node_us: Quantity = 5.0
    byte_us: Quantity = 0.0
    # A worker that needs more than `heap_mb` dies. Without state it needs `heap_base_mb`. A worker
    # that is started again has no state; all of it is there after `heap_fill_s` of work. When a run
    # begins, executors have `heap_start` of theirs.
    heap_mb: Unbounded = math.inf
    heap_base_mb: Quantity = 64.0
    heap_fill_s: Quantity = 120.0
    heap_start: Annotated[float, Meta(ge=0, le=1)] = 1.0
    # What each node has of the memory that components declare, and whether Storm's scheduler, and
    # so nstorm, counts it.
    memory_mb: Unbounded = math.inf
    counts_memory: bool = True


class Neighbour(Span, frozen=True, kw_only=True):
    """Work outside of Storm on a node, which nobody reports."""

    node: Name
    cores: Quantity


class Nodes:
    """The nodes of one run; each is a machine with meters of its own."""

    def __init__(self, hardware: Hardware, neighbours: Sequence[Neighbour] = ()) -> None:
        self.hardware, self.neighbours = hardware, neighbours
        workers = hardware.nodes * hardware.workers
        self.node_of: Ints = np.arange(workers) // hardware.workers  # of each slot
        self.speed = np.ones(hardware.nodes)  # share of its processors that a node still has
        self.cost_times = np.ones(hardware.nodes)  # what tuples cost there, as a factor
        bounded = not math.isinf(hardware.link_bytes_s)
        self.links = Links(np.full(hardware.nodes, hardware.link_bytes_s)) if bounded else None
        self.cpu_s = np.zeros(hardware.nodes)  # what all that runs on each has used

    def slots(self, taken: Ints, count: int) -> Ints:
        """Choose slots as Storm's even scheduler does: of each node one, then of each another."""
        free = np.setdiff1d(np.arange(len(self.node_of)), taken)
        rank = np.arange(len(free)) - np.searchsorted(self.node_of[free], self.node_of[free])
        room = np.bincount(self.node_of[free], minlength=self.hardware.nodes)[self.node_of[free]]
        return free[np.lexsort((free, -room, rank))][:count]

    def busy_cores(self, now_s: float) -> Floats:
        """Add up what neighbours want of each node's processors, (N,)."""
        busy = np.zeros(self.hardware.nodes)
        for one in self.neighbours:
            if one.covers(now_s):
                busy[int(one.node[1:])] += one.cores
        return busy

    def share(
        self, places: Sequence[Ints], needs_s: Sequence[Floats], now_s: float, dt_s: float
    ) -> list[Floats]:
        """Share the processors among executors by what they have to do, a row a topology."""
        groups = [self._group(place) for place in places]
        have_s = self._have_s(self.hardware.cores * self.speed * dt_s)
        total_s = np.zeros_like(have_s)
        for group, need_s in zip(groups, needs_s, strict=True):
            total_s += np.bincount(group, need_s, len(have_s))
        busy_s = self.busy_cores(now_s) * dt_s if self.neighbours else None
        if busy_s is not None:
            total_s += self._have_s(busy_s)
        some = total_s > NOTHING_S
        scale = np.divide(have_s, total_s, out=np.zeros_like(total_s), where=some)
        if busy_s is not None and self.has_own_cores:
            self.cpu_s += busy_s * np.minimum(scale, 1.0)
        # What is left serves what comes unexpected; one thread has one core at most.
        pairs = zip(groups, needs_s, strict=True)
        return [np.minimum(need_s * scale[group], dt_s) for group, need_s in pairs]

    @property
    def has_own_cores(self) -> bool:
        """Whether the processors of a node are bounded as those of a machine are."""
        return self.hardware.shared_by == "node"

    def cores_left(self, now_s: float) -> Floats:
        """Give what each group that shares processors has, its neighbours served."""
        left = self.hardware.cores * self.speed - self.busy_cores(now_s)
        return self._have_s(np.maximum(left, 0.0))

    def used(self, place: Ints, cores: Floats) -> Floats:
        """Add up by group what executors use."""
        used = np.bincount(self._group(place), cores, len(self._have_s(self.speed)))
        return np.asarray(used, dtype=np.float64)

    def _group(self, place: Ints) -> Ints:
        """Group executors that share processors."""
        if self.hardware.shared_by == "node":
            return self.node_of[place]
        return np.zeros_like(place) if self.hardware.shared_by == "all" else place

    def _have_s(self, node_s: Floats) -> Floats:
        """Split what nodes have, (N,), among the groups."""
        if self.hardware.shared_by == "node":
            return node_s
        if self.hardware.shared_by == "all":
            return np.asarray(node_s.sum(keepdims=True), dtype=np.float64)
        return np.asarray(node_s[self.node_of] / self.hardware.workers, dtype=np.float64)


class Links:
    """The links of N nodes; what one sends and what one receives are bounded apart."""

    def __init__(self, bytes_s: Floats) -> None:
        self._bytes_s = bytes_s
        self._grant = np.ones((len(bytes_s),) * 2)
        self._out = self._in = bytes_s
        self.carried_bytes = np.zeros((len(bytes_s),) * 2)  # since the nodes started

    def begin(self, expected: Floats, dt_s: float) -> None:
        """Share a step's capacity among those who send; `expected` is in bytes, (N, N).

        Twice: what a full receiver leaves of a sender's link goes to others.
        """
        self._out = self._in = self._bytes_s * dt_s
        part = self._fits(expected)
        sent = expected * part
        self._take(sent)
        is_open = np.minimum(self._out[:, None], self._in[None, :]) > NOTHING_FRAC * self._bytes_s
        self._grant = part + (1 - part) * is_open * self._fits((expected - sent) * is_open)
        self._out = self._in = self._bytes_s * dt_s

    def carry(self, waiting: Floats) -> Floats:
        """Take the share of each (N, N) of the bytes that wait which goes through now."""
        part, sent = self._grant, waiting * self._grant
        if (sent.sum(axis=1) > self._out).any() or (sent.sum(axis=0) > self._in).any():
            part = part * self._fits(sent)
            sent = waiting * part
        self._take(sent)
        self.carried_bytes += sent
        return part

    def _take(self, sent: Floats) -> None:
        self._out = np.maximum(self._out - sent.sum(axis=1), 0.0)
        self._in = np.maximum(self._in - sent.sum(axis=0), 0.0)

    def _fits(self, wanted: Floats) -> Floats:
        out, into = wanted.sum(axis=1), wanted.sum(axis=0)
        ones = np.ones_like(out)
        out = np.divide(self._out, out, out=ones.copy(), where=out > self._out)
        into = np.divide(self._in, into, out=ones, where=into > self._in)
        fits: Floats = np.minimum(out[:, None], into[None, :])
        return fits
