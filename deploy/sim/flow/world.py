"""What flows: tuples as a fluid through executors, processors and links, a step at a time.

Every tuple carries its share of the sentence (or click) it came of. So at any moment what was
emitted is done, queued or lost, to the last digit that floats have. The spouts count whole ones.
"""

import math
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from controller.core.cluster import MOST, Count, Floats, Ints, Quantity
from deploy.sim.flow.flight import in_flight, stage
from deploy.sim.flow.workload import ACKER, Link, SimulatedTopology, Unbounded

US_PER_S = 1e6
# No tuple is free: a nanosecond, so that nothing is divided by zero.
LEAST_S = 1e-9
# A queue that nothing feeds any more fades away, to numbers by which nothing can be divided.
NOTHING_S = 1e-100


def through(amount: Floats, routes: Floats) -> Floats:
    """Multiply a row, shape (S,), by a matrix, shape (S, T); not by `@`.

    That calls a library which adds in another order on each kind of processor. A last digit that
    differs becomes another decision some steps later, and a run must be the same everywhere.
    """
    product: Floats = np.einsum("s,st->t", amount, routes)
    return product


class Hardware(Struct, frozen=True, forbid_unknown_fields=True):
    """What the topology runs on."""

    nodes: Count = 2
    workers: Count = 4
    cores: Annotated[float, Meta(ge=0.01, le=MOST)] = 4.0
    # worker: each worker has an even share of its node's cores, and no more (004, equation 3).
    # node: all executors of a node share them. all: those of all nodes, as in a lab where all nodes
    # are on one machine.
    shared_by: Literal["worker", "node", "all"] = "worker"
    link_tps: Unbounded = math.inf  # tuples per second from one node to another
    # Processor time of a tuple between workers of a node and between nodes, at either end.
    worker_us: Quantity = 4.0
    node_us: Quantity = 5.0


class Feed(Struct, frozen=True, forbid_unknown_fields=True):
    """What the spouts get."""

    rate_tps: Unbounded = math.inf  # of all spouts together; infinite: as much as goes
    # Sentences in flight that one spout executor allows (topology.max.spout.pending). All of them
    # together should be what comes through in three steps or more, or else the steps bind.
    pending: Count = 5000
    # When what is lost no longer counts as in flight (topology.message.timeout.secs).
    timeout_s: Quantity = 30.0


class World:
    """The state of the flow; where executors are, and what is down, is set from outside."""

    def __init__(
        self,
        topology: SimulatedTopology,
        hardware: Hardware,
        feed: Feed,
        random: np.random.Generator,
    ) -> None:
        self.topology, self.hardware, self.feed = topology, hardware, feed
        self._random = random
        # Storm's task ids follow the components' names.
        self.parts = sorted(topology.parts, key=lambda part: part.id)
        self.component = np.repeat(np.arange(len(self.parts)), [p.executors for p in self.parts])
        count, workers = len(self.component), hardware.nodes * hardware.workers
        self.node_of: Ints = np.arange(workers) // hardware.workers
        # Storm deals executors out like cards: first slot of each node, second of each node...
        slots = np.argsort(np.arange(workers) % hardware.workers, kind="stable")
        self.place: Ints = slots[np.arange(count) % workers]
        self.up = np.ones(workers, dtype=np.bool_)
        self.speed = np.ones(hardware.nodes)
        self.running = np.ones(count, dtype=np.bool_)
        self.rate_tps = feed.rate_tps
        self.queue = np.zeros(count)
        self.wire = np.zeros((hardware.nodes, count))
        self.now_s = 0.0
        self.emitted = self.done = self.lost = self.backlog = 0.0
        self._held: list[tuple[float, float]] = []
        self._arrived = np.zeros(count)
        # Totals since the flow was last measured, by `take`.
        self._worked, self._cpu_s = np.zeros(count), np.zeros(count)
        self._kinds()
        self.new_keys()

    def _kinds(self) -> None:
        kind = np.array([part.kind for part in self.parts])[self.component]
        self.is_spout: NDArray[np.bool_] = kind == "spout"
        self.movable: NDArray[np.bool_] = kind == "bolt"
        depth = self.topology.depth_of()
        level = np.array([depth[part.id] for part in self.parts])[self.component]
        self._levels = [np.flatnonzero(level == d) for d in sorted(set(level.tolist()))]
        self._is_acker = np.array([part.id == ACKER for part in self.parts])[self.component]
        self._limit_tps = np.array([part.max_tps for part in self.parts])[self.component]

    def new_keys(self) -> None:
        """Draw again which executor gets which keys, and what they cost."""
        self._keys = {link: self._shares(link) for link in self.topology.links}
        base = np.empty(len(self.component))
        for c, part in enumerate(self.parts):
            here = self.component == c
            factor = np.exp(part.uneven * self._random.standard_normal(part.executors)).round(9)
            base[here] = part.cost_us / US_PER_S * factor / factor.mean()
        self._base_s = base
        self.reroute()

    def _shares(self, link: Link) -> Floats:
        """Draw the share of each target executor: keys are hashed, frequent keys weigh more."""
        size = next(part.executors for part in self.parts if part.id == link.target)
        if link.grouping != "fields" or link.zipf == 0:
            return np.full(size, 1 / size)
        weight = np.arange(1, link.keys + 1) ** -link.zipf
        owner = self._random.integers(0, size, link.keys)
        return np.asarray(np.bincount(owner, weight, size) / weight.sum(), dtype=np.float64)

    def reroute(self) -> None:
        """Work out all routes and what they cost, after any change of place or keys."""
        node = self.node_of[self.place]
        same_worker = self.place[:, None] == self.place[None, :]
        same_node = node[:, None] == node[None, :]
        self.routes = self._routes(same_worker, same_node)
        hop_us = np.where(same_node, self.hardware.worker_us, self.hardware.node_us)
        hop_s = np.where(same_worker, 0.0, hop_us) / US_PER_S
        self.remote = ~same_node
        flow = self._flow_of_one()
        send_s = (self.routes * hop_s).sum(axis=1)
        incoming = through(flow, self.routes)
        hops_s = through(flow, self.routes * hop_s)
        receive_s = np.divide(hops_s, incoming, out=np.zeros_like(flow), where=incoming > 0)
        # A spout works off acknowledgements for next to nothing; it sends when it emits.
        thread_s = np.where(self.is_spout, LEAST_S, self._base_s + send_s + LEAST_S)
        self._emit_s = np.where(self.is_spout, self._base_s + send_s + LEAST_S, 0.0)
        self._receive_s = receive_s
        self._cost_s = thread_s + receive_s
        self._stages = [
            stage(rows, flow, self.component, together=bool(self._is_acker[rows[0]]))
            for rows in self._levels
        ]
        self.weight = self._weights(flow)
        self._emit_weight = through(self.weight, self.routes.T)
        self.way_s = self._way()

    def _routes(self, same_worker: NDArray[np.bool_], same_node: NDArray[np.bool_]) -> Floats:
        index = {part.id: c for c, part in enumerate(self.parts)}
        routes = np.zeros((len(self.component),) * 2)
        for link in self.topology.links:
            sources = np.flatnonzero(self.component == index[link.source])
            targets = np.flatnonzero(self.component == index[link.target])
            block = np.tile(self._keys[link], (len(sources), 1))
            if link.grouping == "near":
                rows = np.ix_(sources, targets)
                block = _nearest(same_worker[rows], same_node[rows])
            routes[np.ix_(sources, targets)] = link.selectivity * block
        return routes

    def _flow_of_one(self) -> Floats:
        """Count the tuples of each executor for one sentence of all spouts together."""
        flow = np.where(self.is_spout, 1.0 / self.is_spout.sum(), 0.0)
        for rows in self._levels:
            into = through(flow[rows], self.routes[rows])
            flow += np.where(self.is_spout, 0.0, into)
        return flow

    def _weights(self, flow: Floats) -> Floats:
        """Give a queued tuple's share of its sentence: what it will have finished in the end."""
        acked = self._is_acker.any()
        finish = np.zeros(len(flow))
        if not acked:
            sink = ~self.routes.any(axis=1)
            finish[sink] = 1 / flow[sink].sum()
        self._finish = np.where(self.is_spout, 1.0, finish) if acked else finish
        weight = np.where(self.is_spout, 1.0 if acked else 0.0, finish)
        for rows in reversed(self._levels):
            weight[rows] += np.where(self.is_spout[rows], 0.0, through(weight, self.routes[rows].T))
        return weight

    def _way(self) -> float:
        """Add up the processor time of a tuple's way to its end, in the mean over all ways."""
        way_s = np.zeros(len(self.component))
        onward = self.routes.sum(axis=1)
        for rows in reversed(self._levels):
            further_s = through(way_s, self.routes[rows].T) / np.maximum(onward[rows], LEAST_S)
            way_s[rows] = np.where(self.is_spout[rows], self._emit_s[rows], self._cost_s[rows])
            way_s[rows] += further_s
        return float(way_s[self.is_spout].mean())

    @property
    def _waiting(self) -> Floats:
        # A product less when no link binds, in every step.
        return self.queue if math.isinf(self.hardware.link_tps) else self.queue + sum(self.wire)

    @property
    def queued(self) -> float:
        """Sentences in queues and on links, as shares of them."""
        return float((self.weight * self._waiting).sum())

    @property
    def pending(self) -> float:
        """Sentences that the spouts believe to be in flight."""
        return in_flight(self._stages, self._waiting) + sum(amount for _, amount in self._held)

    def kill(self, worker: int) -> None:
        """End a worker; what waits in it is lost, and the spouts find out by the timeout."""
        self.up[worker] = False
        self.lose(self.place == worker)

    def lose(self, which: NDArray[np.bool_]) -> None:
        """Drop what waits for the marked executors, shape (E,)."""
        gone = np.where(which, self.queue, 0.0)
        self.queue[which] = 0.0
        self.lost += float((self.weight * gone).sum())
        # The spouts replay each that has lost a part, so it is due once more.
        failed = in_flight(self._stages, gone)
        self.backlog += failed
        self._held.append((self.now_s + self.feed.timeout_s, failed))

    def forget_lost(self) -> None:
        """Let the spouts start again: they know nothing of what was in flight."""
        self._held.clear()

    def move(self, executor: int, worker: int) -> None:
        """Let an executor's tuples, those that wait too, go to another worker."""
        self.place[executor] = worker
        self.reroute()

    def step(self, dt_s: float) -> None:
        """Let time pass; tuples that cross no link go all the way within a step."""
        # Or else a thousand steps of 0.1 s are no hundred seconds.
        self.now_s = round(self.now_s + dt_s, 9)
        self._held = [(until, amount) for until, amount in self._held if until > self.now_s]
        want = self._want(dt_s)
        budget_s = self._budget(want, dt_s)
        link = np.full((self.hardware.nodes,) * 2, self.hardware.link_tps * dt_s)
        left = -self.queue
        for rows in self._levels:
            worked = self._work(rows, budget_s, dt_s)
            left[rows] += worked
            if self.is_spout[rows[0]]:
                worked = self._emit(rows, budget_s, worked, want)
            self._worked[rows] += worked
            self._send(rows, worked, link)
        self._arrived = np.maximum(left + self.queue, 0.0)

    def _want(self, dt_s: float) -> Floats:
        """Compute what each spout would emit: what is due, as far as the window allows."""
        spouts = float(self.is_spout.sum())
        room = max(self.feed.pending * spouts - self.pending, 0.0)
        self.backlog += 0.0 if math.isinf(self.rate_tps) else self.rate_tps * dt_s
        due = math.inf if math.isinf(self.rate_tps) else self.backlog
        want: Floats = np.where(self.is_spout, min(room, due) / spouts, 0.0)
        return want

    def _budget(self, want: Floats, dt_s: float) -> Floats:
        """Share the processors among executors by what they have to do."""
        alive = self.up[self.place] & self.running
        # One thread has one core at most.
        need_s = np.minimum((self.queue + self._arrived) * self._cost_s + want * self._emit_s, dt_s)
        need_s = need_s * alive
        group, have_s = self._groups(dt_s)
        total_s = np.bincount(group, need_s, len(have_s))
        some = total_s > NOTHING_S
        scale = np.divide(have_s, total_s, out=np.zeros_like(total_s), where=some)
        # What is left serves what comes unexpected.
        shared: Floats = np.minimum(need_s * scale[group], dt_s)
        return shared

    def _groups(self, dt_s: float) -> tuple[Ints, Floats]:
        """Group executors that share processors, and give what each group has."""
        node_s = self.hardware.cores * self.speed * dt_s
        if self.hardware.shared_by == "node":
            return self.node_of[self.place], node_s
        if self.hardware.shared_by == "all":
            return np.zeros_like(self.place), node_s.sum(keepdims=True)
        return self.place, node_s[self.node_of] / self.hardware.workers

    def _work(self, rows: Ints, budget_s: Floats, dt_s: float) -> Floats:
        """Work off what waits, as far as the budget goes."""
        cost_s = self._cost_s[rows]
        able = np.minimum(budget_s[rows] / cost_s, self._limit_tps[rows] * dt_s)
        worked: Floats = np.minimum(self.queue[rows], able)
        self.queue[rows] -= worked
        self.done += float((self._finish[rows] * worked).sum())
        self._cpu_s[rows] += worked * cost_s
        return worked

    def _emit(self, rows: Ints, budget_s: Floats, worked: Floats, want: Floats) -> Floats:
        """Emit with what the acknowledgements have left of the budget."""
        left_s = budget_s[rows] - worked * self._cost_s[rows]
        emitted: Floats = np.minimum(want[rows], np.maximum(left_s, 0.0) / self._emit_s[rows])
        sentences = float((self._emit_weight[rows] * emitted).sum())
        self.emitted += sentences
        self.backlog = max(self.backlog - sentences, 0.0)
        self._cpu_s[rows] += emitted * self._emit_s[rows]
        return emitted

    def _send(self, rows: Ints, worked: Floats, link: Floats) -> None:
        if math.isinf(self.hardware.link_tps):
            self.queue += through(worked, self.routes[rows])
            return
        home = self.node_of[self.place]
        for node in range(self.hardware.nodes):
            here = home[rows] == node
            sent = through(worked[here], self.routes[rows[here]])
            near = home == node
            self.queue += np.where(near, sent, 0.0)
            self.wire[node] += np.where(near, 0.0, sent)
            # What has come home by a move needs no link any more.
            free = np.where(near, self.wire[node], 0.0)
            waiting = np.bincount(home, self.wire[node] - free, len(link))
            fits = np.minimum(link[node], waiting)
            part = np.divide(fits, waiting, out=np.zeros(len(link)), where=waiting > 0)
            over = (self.wire[node] - free) * part[home]
            link[node] -= np.bincount(home, over, len(link))
            self.queue += over + free
            self.wire[node] -= over + free
        np.maximum(link, 0.0, out=link)

    def take(self) -> tuple[Floats, Floats, Floats]:
        """Hand out what has been done since this was last asked; ask before every change.

        Tuples from executor to executor, shape (E, E), and processor time of each executor's own
        thread and of receiving for it, both of shape (E,).
        """
        sent = self._worked[:, None] * self.routes
        other_s = self._worked * ~self.is_spout * self._receive_s
        thread_s = self._cpu_s - other_s
        self._worked, self._cpu_s = np.zeros_like(self._worked), np.zeros_like(self._cpu_s)
        return sent, thread_s, other_s


def _nearest(same_worker: NDArray[np.bool_], same_node: NDArray[np.bool_]) -> Floats:
    """Spread each row evenly over targets in the own worker, else the own node, else all."""
    scope = np.where(same_worker.any(axis=1, keepdims=True), same_worker, same_node)
    scope = np.where(scope.any(axis=1, keepdims=True), scope, True)
    return np.asarray(scope / scope.sum(axis=1, keepdims=True), dtype=np.float64)
