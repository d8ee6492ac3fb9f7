"""What flows: tuples as a fluid through executors, processors and links, a step at a time.

Every tuple carries its share of the sentence (or click) it came of. So at any moment what was
emitted is done, queued or lost, to the last digit that floats have. The spouts count whole ones.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from controller.core.cluster import Floats, Ints
from deploy.sim.flow.feed import Feed, Tap
from deploy.sim.flow.flight import in_flight, stage
from deploy.sim.flow.heap import Heaps
from deploy.sim.flow.nodes import Hardware, Links, Nodes
from deploy.sim.flow.workload import ACKER, Link, SimulatedTopology

US_PER_S = 1e6
# No tuple is free: a nanosecond, so that nothing is divided by zero.
LEAST_S = 1e-9


def through(amount: Floats, routes: Floats) -> Floats:
    """Multiply a row, shape (S,), by a matrix, shape (S, T); not by `@`.

    That calls a library which adds in another order on each kind of processor. A last digit that
    differs becomes another decision some steps later, and a run must be the same everywhere.
    """
    product: Floats = np.einsum("s,st->t", amount, routes)
    return product


class World:
    """The flow of one topology; where executors are, and what is down, is set from outside.

    `nodes` are shared with other topologies, or its own. `slots` are those that Storm gave it, in
    its order; all if there are no others.
    """

    def __init__(
        self,
        topology: SimulatedTopology,
        hardware: Hardware,
        feed: Feed,
        random: np.random.Generator,
        *,
        nodes: Nodes | None = None,
        slots: Ints | None = None,
    ) -> None:
        self.topology, self.hardware, self.feed = topology, hardware, feed
        self._random = random
        self.nodes = nodes or Nodes(hardware)
        self._tap = Tap(feed, random)
        # Storm's task ids follow the components' names.
        self.parts = sorted(topology.parts, key=lambda part: part.id)
        self.component = np.repeat(np.arange(len(self.parts)), [p.executors for p in self.parts])
        count, workers = len(self.component), hardware.nodes * hardware.workers
        self.node_of = self.nodes.node_of
        # Storm deals executors out like cards: first slot of each node, second of each node...
        if slots is None:
            slots = self.nodes.slots(np.zeros(0, np.int64), workers)
        self.place: Ints = slots[np.arange(count) % len(slots)]
        self.up = np.isin(np.arange(workers), slots)
        self.running = np.ones(count, dtype=np.bool_)
        self.rate_tps = feed.rate_tps
        self.queue = np.zeros(count)
        self.wire = np.zeros((hardware.nodes, count))
        self._wire_bytes = np.zeros((hardware.nodes, count))
        self._sent_bytes = np.zeros((hardware.nodes,) * 2)
        self.now_s = 0.0
        self.offered = self.emitted = self.done = self.lost = self.failed = self.backlog = 0.0
        self._held: list[tuple[float, float]] = []
        self._arrived = np.zeros(count)
        # Totals since the flow was last measured, by `take`.
        self._worked, self._cpu_s = np.zeros(count), np.zeros(count)
        self._kinds()
        self.new_keys()

    def _kinds(self) -> None:
        kind = np.array([part.kind for part in self.parts])[self.component]
        self.is_spout: NDArray[np.bool_] = kind == "spout"
        self.is_bolt: NDArray[np.bool_] = kind == "bolt"
        depth = self.topology.depth_of()
        level = np.array([depth[part.id] for part in self.parts])[self.component]
        self._levels = [np.flatnonzero(level == d) for d in sorted(set(level.tolist()))]
        self._is_acker = np.array([part.id == ACKER for part in self.parts])[self.component]
        self._limit_tps = np.array([part.max_tps for part in self.parts])[self.component]
        state_mb = np.array([part.state_mb for part in self.parts])[self.component]
        self.heaps = Heaps(self.hardware, state_mb)
        self.memory_mb = np.array([part.memory_mb for part in self.parts])[self.component]
        index = {part.id: c for c, part in enumerate(self.parts)}
        self.has_sizes = any(link.size_bytes for link in self.topology.data_links)
        # (C, C), of a tuple from one component to another; 0 where it is not known.
        self.size_bytes = np.zeros((len(self.parts),) * 2)
        for link in self.topology.links:
            self.size_bytes[index[link.source], index[link.target]] = link.size_bytes
        # (E, E), of a tuple from one to another.
        self.tuple_bytes: Floats = self.size_bytes[np.ix_(self.component, self.component)]

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
        # (N, E), 1 for the node of each executor.
        self._home: Floats = (np.arange(self.hardware.nodes)[:, None] == node).astype(np.float64)
        self._route_bytes = self.routes * self.tuple_bytes
        # By level, so that no step copies them: from which node, where to, and of how many bytes.
        self._ways = [
            (self._home[:, rows], self.routes[rows], self._route_bytes[rows])
            for rows in self._levels
        ]
        self._away = 1 - self._home
        hop_us = np.where(same_node, self.hardware.worker_us, self.hardware.node_us)
        hop_us = hop_us + self.hardware.byte_us * self.tuple_bytes
        hop_s = np.where(same_worker, 0.0, hop_us) / US_PER_S
        self.remote = ~same_node
        flow = self._flow_of_one()  # (E,), tuples for one sentence
        send_s = (self.routes * hop_s).sum(axis=1)
        incoming = through(flow, self.routes)
        hops_s = through(flow, self.routes * hop_s)
        receive_s = np.divide(hops_s, incoming, out=np.zeros_like(flow), where=incoming > 0)
        own_s = self._base_s * self.nodes.cost_times[node] + send_s + LEAST_S
        # A spout works off acknowledgements for next to nothing; it sends when it emits.
        thread_s = np.where(self.is_spout, LEAST_S, own_s)
        self._emit_s = np.where(self.is_spout, own_s, 0.0)
        self._receive_s = receive_s
        self._cost_s = thread_s + receive_s
        self.flow = flow
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
    def has_ackers(self) -> bool:
        return bool(self._is_acker.any())

    @property
    def _links_bind(self) -> bool:
        return self.nodes.links is not None or not math.isinf(self.hardware.link_tps)

    @property
    def _waiting(self) -> Floats:
        # A product less when no link binds, in every step.
        return self.queue + sum(self.wire) if self._links_bind else self.queue

    @property
    def cpu_of_one_s(self) -> Floats:
        """(E,), processor time for one sentence."""
        cpu_s: Floats = self.flow * (self._cost_s + self._emit_s)
        return cpu_s

    @property
    def tuples_of_one(self) -> Floats:
        """(N, N), the tuples of one sentence from node to node."""
        return self._crossing(self.flow[:, None] * self.routes)

    @property
    def bytes_of_one(self) -> Floats:
        """(N, N), the bytes of one sentence from node to node."""
        return self._crossing(self.flow[:, None] * self._route_bytes)

    def _crossing(self, sent: Floats) -> Floats:
        onward: Floats = np.einsum("ne,ef->nf", self._home, sent) * (1 - self._home)
        return self._by_node(onward)

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
        here = self.place == worker
        self.heaps.lose(here)
        self.lose(here)

    def lose(self, which: NDArray[np.bool_]) -> None:
        """Drop what waits for the marked executors, shape (E,)."""
        gone = np.where(which, self.queue, 0.0)
        self.queue[which] = 0.0
        self.lost += float((self.weight * gone).sum())
        # The spouts replay each that has lost a part, so it is due once more.
        failed = in_flight(self._stages, gone)
        self.backlog += failed
        self.failed += failed
        self._held.append((self.now_s + self.feed.timeout_s, failed))

    def forget_lost(self) -> None:
        """Let the spouts start again: they know nothing of what was in flight."""
        self._held.clear()

    def move(self, executor: int, worker: int) -> None:
        """Let an executor's tuples, those that wait too, go to another worker."""
        self.place[executor] = worker
        self.reroute()

    def step(self, dt_s: float) -> None:
        """Let time pass where there is no other topology."""
        step_together([self], dt_s)

    def want(self, dt_s: float) -> Floats:
        """Begin a step: compute what each spout would emit, all that is due and the window lets."""
        rate_tps, times = self.rate_tps, self._tap.times(self.now_s)
        rate_tps = rate_tps if math.isinf(rate_tps) else rate_tps * times
        # Or else a thousand steps of 0.1 s are no hundred seconds.
        self.now_s = round(self.now_s + dt_s, 9)
        self._held = [(until, amount) for until, amount in self._held if until > self.now_s]
        self.heaps.fill(self._alive, dt_s)
        spouts = float(self.is_spout.sum())
        room = max(self.feed.pending * spouts - self.pending, 0.0)
        self.offered += rate_tps * dt_s
        self.backlog += 0.0 if math.isinf(rate_tps) else rate_tps * dt_s
        due = math.inf if math.isinf(rate_tps) else self.backlog
        want: Floats = np.where(self.is_spout, min(room, due) / spouts, 0.0)
        return want

    def need_s(self, want: Floats, dt_s: float) -> Floats:
        """Compute the processor time that each executor could use."""
        # One thread has one core at most.
        need_s = np.minimum((self.queue + self._arrived) * self._cost_s + want * self._emit_s, dt_s)
        able_s: Floats = need_s * self._alive
        return able_s

    @property
    def _alive(self) -> NDArray[np.bool_]:
        alive: NDArray[np.bool_] = self.up[self.place] & self.running
        return alive

    def pass_on(self, want: Floats, budget_s: Floats, dt_s: float) -> None:
        """End a step; tuples that cross no link go all the way within it."""
        link = np.full((self.hardware.nodes,) * 2, self.hardware.link_tps * dt_s)
        self._sent_bytes = np.zeros_like(link)
        left = -self.queue
        for level, rows in enumerate(self._levels):
            worked = self._work(rows, budget_s, dt_s)
            left[rows] += worked
            if self.is_spout[rows[0]]:
                worked = self._emit(rows, budget_s, worked, want)
            self._worked[rows] += worked
            self._send(level, rows, worked, link)
        self._arrived = np.maximum(left + self.queue, 0.0)

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

    def _send(self, level: int, rows: Ints, worked: Floats, link: Floats) -> None:
        if self.nodes.links is not None:
            self._send_bytes(level, worked, self.nodes.links)
            return
        if math.isinf(self.hardware.link_tps):
            self.queue += through(worked, self._ways[level][1])
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

    @property
    def transfer_queue(self) -> Floats:
        """(W,), tuples in each worker that wait for links.

        What waits on a node is split among its workers by how much they send there.
        """
        sent = np.zeros((len(self.up), len(self.place)))
        np.add.at(sent, self.place, self.flow[:, None] * self.routes)
        by_node = np.zeros_like(self.wire)
        np.add.at(by_node, self.node_of, sent)
        part = np.divide(self.wire, by_node, out=np.zeros_like(self.wire), where=by_node > 0)
        waiting: Floats = np.einsum("we,we->w", sent, part[self.node_of])
        return waiting

    @property
    def bytes_to_send(self) -> Floats:
        """What waits for each link, and what came within the last step, (N, N)."""
        waiting: Floats = self._by_node(self._wire_bytes) + self._sent_bytes
        return waiting

    def _by_node(self, by_executor: Floats) -> Floats:
        """Add up by target node what is by target executor, (N, E)."""
        found: Floats = np.einsum("ne,me->nm", by_executor, self._home)
        return found

    def _send_bytes(self, level: int, worked: Floats, links: Links) -> None:
        home, routes, route_bytes = self._ways[level]
        by_node = home * worked
        size = np.einsum("nr,re->ne", by_node, route_bytes)
        self.wire += np.einsum("nr,re->ne", by_node, routes)
        self._wire_bytes += size
        self._sent_bytes += self._by_node(size * self._away)
        # What stays on its node, or has come home by a move, needs no link.
        waiting = self._by_node(self._wire_bytes * self._away)
        part = links.carry(waiting)[:, self.node_of[self.place]]
        part = np.where(self._away > 0, part, 1.0)
        over = self.wire * part
        self.queue += over.sum(axis=0)
        self.wire -= over
        self._wire_bytes -= self._wire_bytes * part

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


def step_together(worlds: Sequence[World], dt_s: float) -> None:
    """Let time pass for topologies on the same nodes."""
    nodes, now_s = worlds[0].nodes, worlds[0].now_s
    wants = [world.want(dt_s) for world in worlds]
    needs_s = [world.need_s(want, dt_s) for world, want in zip(worlds, wants, strict=True)]
    budgets_s = nodes.share([world.place for world in worlds], needs_s, now_s, dt_s)
    if nodes.links is not None:
        nodes.links.begin(np.sum([world.bytes_to_send for world in worlds], axis=0), dt_s)
    for world, want, budget_s in zip(worlds, wants, budgets_s, strict=True):
        world.pass_on(want, budget_s, dt_s)


def _nearest(same_worker: NDArray[np.bool_], same_node: NDArray[np.bool_]) -> Floats:
    """Spread each row evenly over targets in the own worker, else the own node, else all."""
    scope = np.where(same_worker.any(axis=1, keepdims=True), same_worker, same_node)
    scope = np.where(scope.any(axis=1, keepdims=True), scope, True)
    return np.asarray(scope / scope.sum(axis=1, keepdims=True), dtype=np.float64)
