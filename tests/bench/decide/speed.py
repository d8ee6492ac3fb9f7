"""Times decisions and counts their memory.

Times are of the processor, not of the clock, and are compared within one run only. What else the
machine does makes all of them longer.
"""

import itertools
import time
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from msgspec import structs

from controller.config import Config
from controller.core import metrics, spaces
from controller.core.capacity import Capacity
from controller.core.case import Budget, TopologyCase
from controller.core.choose import choose_each
from controller.core.cluster import Cluster, Level, LoadSnapshot
from controller.core.decision import Vetoes
from controller.core.layout import Layout
from controller.core.limits import Limits
from controller.core.meters import NodeRates
from controller.core.metrics import Rates, observe_each
from controller.core.moved import applied
from controller.core.pairs import Pairs
from controller.core.picture import Picture, picture_each
from controller.core.resources import HEAP, WorkerSpace
from controller.core.veto import veto_each
from controller.ingest.world import Window, WindowWorld
from controller.policies.gather.evaluate import TargetQuestion
from controller.policies.gather.policy import Gather
from controller.policies.greedy import greedy
from controller.policies.options import TargetOptions
from migration.meters import BYTES_PER_MBIT, OF_WORKER, Meter
from migration.model import (
    Component,
    Edge,
    ExecutorId,
    Node,
    NodeLoad,
    PlacedExecutor,
    Publication,
    Slot,
)
from tests.bench.decide.cases import Case, crowd

CYCLE_S = 5.0
MOST_CYCLES = 1000
LINK_MBIT = 10_000.0
TUPLE_BYTES = 120
HEAP_BARE, HEAP_EACH, HEAP_MOST = 20e6, 5e6, 768e6
# A second space, which nstorm does not have.
DISK = WorkerSpace("disk", "a disk", "disk_used_bytes", "disk_bytes", bare=0.0, enough=4.0)
EACH_MB, NODE_MB = 128.0, 8192.0  # declared memory
STEPS = ("rates", "picture", "vetoes", "decision")


def speed(executors: int, repeats: int) -> dict[str, Any]:
    """Time what the controller does in a cycle for one topology in which nothing is to be gained.

    Milliseconds of each step, each time with reports that have come since; some executors rest from
    a move. Seconds of a search for a target, which runs outside the cycle. Memory of the traffic,
    its index, and what a decision takes in addition.
    """
    with _two_spaces():
        cluster, snapshot = at_rest(executors)
        # Memory is there after three.
        times = np.array(list(_cycle_times(cluster, snapshot, repeats + 3))[3:])
    steps = dict(zip(STEPS, times.T, strict=True))
    return {
        "executors": executors,
        "nodes": len(cluster.nodes),
        "workers": len(cluster.workers),
        "pairs": len(snapshot.traffic.tps),
        # CPU, both directions of the links, declared memory.
        "resources": 4 + len(cluster.spaces),
        **{f"{name}_ms": _ms(list(step)) for name, step in steps.items()},
        "target_search_s": _search_s(*crowd(executors)),
        **_memory(cluster, snapshot, Limits()),
    }


def at_rest(executors: int) -> Case:
    """Put the groups of `crowd` together, and move executors until no move gains any more.

    CPU, both directions of the links, declared memory and heaps are known, as in a live run, and
    disks.
    """
    cluster, start = crowd(executors)
    node_cores = np.bincount(cluster.node_of, cluster.capacity_cores).astype(np.float64)
    link_bytes_s = np.full((2, len(cluster.nodes)), LINK_MBIT * BYTES_PER_MBIT)
    cluster = replace(
        cluster,
        node_cores=node_cores,
        link_bytes_s=link_bytes_s,
        memory_mb=np.full(len(cluster.nodes), NODE_MB),
    )
    groups = np.arange(executors) * len(cluster.workers) // executors
    sizes = np.full(len(start.traffic.tps), float(TUPLE_BYTES))
    # Whole tuples in the time of a cycle.
    tps = np.rint(10 * CYCLE_S * start.traffic.tps) / CYCLE_S
    traffic = replace(start.traffic, tps=tps, size_bytes=sizes)
    snapshot = start.at(0.0, groups, start.cpu_cores, traffic)
    snapshot = replace(snapshot, memory_mb=np.full(executors, EACH_MB))
    while True:
        cluster, snapshot = _with_spaces(*_in_use(cluster, snapshot))
        decision = greedy(cluster, snapshot, Limits())
        if not decision.moves:
            return cluster, snapshot
        snapshot = applied(decision.moves, cluster, snapshot)


def _in_use(cluster: Cluster, snapshot: LoadSnapshot) -> Case:
    """Leave out workers without executors, which a live run does not see; one on each node.

    It sees all nodes.
    """
    used = np.unique(snapshot.place)
    if len(used) == len(cluster.workers):
        return cluster, snapshot
    workers = [(cluster.workers[w], cluster.nodes[cluster.node_of[w]], 1.0) for w in used]
    left = replace(
        Cluster.build(cluster.nodes, workers),
        node_cores=cluster.node_cores,
        link_bytes_s=cluster.link_bytes_s,
        memory_mb=cluster.memory_mb,
    )
    return left, snapshot.placed(np.searchsorted(used, snapshot.place))


@contextmanager
def _two_spaces() -> Iterator[None]:
    """Let nstorm have a disk of each worker as well."""
    meters = (*OF_WORKER, Meter(DISK.held, "What it has."), Meter(DISK.most, "What it may have."))
    with ExitStack() as stack:
        stack.enter_context(patch.object(spaces, "SPACES", (HEAP, DISK)))
        stack.enter_context(patch.object(metrics, "OF_WORKER", meters))
        yield


def _with_spaces(cluster: Cluster, snapshot: LoadSnapshot) -> Case:
    count = np.bincount(snapshot.place, minlength=len(cluster.workers))
    held = (HEAP_BARE + HEAP_EACH * count).astype(np.float64)
    level = Level(held, np.full(len(count), HEAP_MOST))
    after = replace(snapshot, kept=None)  # measured again
    return replace(cluster, spaces={HEAP.name: level, DISK.name: level}), after


def _cycle_times(
    cluster: Cluster, snapshot: LoadSnapshot, cycles: int
) -> Iterator[tuple[float, ...]]:
    """Time the steps of each cycle in which nothing moves; its reports are made beforehand.

    Measured load has noise, so a few moves may still gain. They are made, and are not timed.
    """
    published, config = _published(cluster, snapshot), Config()
    world, decide = WindowWorld(published), Gather(TargetOptions())
    memories: dict[str, Any] = {}
    rates: dict[str, Rates] = {}
    layouts: dict[str, Layout] = {}
    unheard_s: dict[tuple[str, Slot], float] = {}
    resting = published.executors[:: len(published.executors) // 20 or 1]
    # Kept as in a live run at rest, where neither Storm nor a JVM has reported anything new.
    view = world.seen().topologies[0]
    left = cycles
    for number in itertools.count():
        if not left:
            return
        assert number < MOST_CYCLES, "the topology does not come to rest"
        world.advance(_window(snapshot, number))
        seen = world.seen()
        loads = [_metered(load, number + 1) for load in seen.loads]
        moved_s = {(published.topology, one.executor): seen.now_s for one in resting}
        marks = [time.thread_time()]
        rates = observe_each(rates, loads, (view,), now_s=seen.now_s, ewma=config.ewma)
        marks.append(time.thread_time())
        pictures, unheard_s = picture_each(
            (view,),
            rates,
            layouts,
            unheard_s,
            config.limits,
            nodes=NodeRates(),
            peaks={},
            capacity=Capacity(link_mbit=LINK_MBIT),
            hops={},
            now_s=seen.now_s,
            time_s=seen.time_s,
        )
        marks.append(time.thread_time())
        cases = veto_each(
            [TopologyCase.of(view, pictures[view.id], Vetoes())],
            moved_s,
            config.excluded,
            config,
            unwanted={},
            busy_nodes={},
            now_s=seen.now_s,
            time_s=seen.time_s,
        )
        marks.append(time.thread_time())
        budget = Budget(1, may_exceed=True)
        (case,) = choose_each(
            decide,
            cases,
            memories,
            config.limits,
            budget,
            first=0,
            begins=(),
            cycle_s=config.cycle_s,
            search_left_s={},
        )
        marks.append(time.thread_time())
        assert case.decided is not None
        question, memory = case.decided.question, case.decided.memory
        memories = {view.id: decide.heard(memory, question.failed) if question else memory}
        layouts = {t: made.layout for t, made in pictures.items() if isinstance(made, Picture)}
        if not case.decision.moves:
            left -= 1
            yield tuple(np.diff(marks))
        for move in case.decision.moves:
            world.places[ExecutorId.parse(move.executor)] = Slot.parse(move.target)
            view = world.seen().topologies[0]


def _metered(load: NodeLoad, number: int) -> NodeLoad:
    """Add what workers report of their spaces, and of the tuples that go to other workers."""
    tuples = 100 * number
    return structs.replace(
        load,
        workers=tuple(
            structs.replace(
                worker,
                meters={
                    name: amount
                    for one in (HEAP, DISK)
                    for name, amount in (
                        (one.held, HEAP_BARE + HEAP_EACH * len(worker.executors)),
                        (one.most, HEAP_MOST),
                    )
                },
                sizes=(("bolt", "bolt", tuples, tuples * TUPLE_BYTES),),
            )
            for worker in load.workers
        ),
    )


def _published(cluster: Cluster, snapshot: LoadSnapshot) -> Publication:
    slots = [Slot.parse(name) for name in cluster.workers]
    ports = tuple(sorted({slot.port for slot in slots}))
    placed = zip(snapshot.executors, snapshot.place.tolist(), strict=True)
    return Publication(
        topology="bench-1",
        name="bench",
        status="ACTIVE",
        refresh_poll_secs=10,
        components=(Component("bolt", "bolt", len(snapshot.executors), EACH_MB),),
        edges=(Edge("bolt", "bolt", "default", "fields"),),
        nodes=tuple(
            Node(n, n, 100.0 * len(ports), ports, len(ports), memory_mb=NODE_MB)
            for n in cluster.nodes
        ),
        executors=tuple(
            PlacedExecutor(ExecutorId.parse(name), "bolt", slots[w], 50) for name, w in placed
        ),
    )


def _window(snapshot: LoadSnapshot, number: int) -> Window:
    traffic = snapshot.traffic
    tuples = np.rint(CYCLE_S * traffic.tps)
    ends = traffic.source, traffic.target
    return Window(1.7e9 + CYCLE_S * number, CYCLE_S, snapshot.cpu_cores, *ends, tuples)


def _other_volumes(snapshot: LoadSnapshot, chosen: np.random.Generator) -> LoadSnapshot:
    """Let the same executors send up to a tenth more or less, as from one cycle to the next."""
    traffic = snapshot.traffic
    tps = traffic.tps * chosen.uniform(0.9, 1.1, len(traffic.tps))
    return replace(snapshot, traffic=replace(traffic, tps=tps))


def _search_s(cluster: Cluster, snapshot: LoadSnapshot) -> float:
    question = TargetQuestion(cluster, snapshot, Limits(), TargetOptions(), frozenset())
    begin = time.thread_time()
    question.answer()
    return round(time.thread_time() - begin, 2)


def _memory(cluster: Cluster, snapshot: LoadSnapshot, rules: Limits) -> dict[str, float]:
    traffic, pairs = snapshot.traffic, Pairs.of(snapshot.traffic, len(snapshot.executors))
    index = traffic.source, traffic.target, traffic.tps, pairs.begin, pairs.peer, pairs.row
    next_cycle = _other_volumes(snapshot, np.random.default_rng(0))
    tracemalloc.start()
    greedy(cluster, next_cycle, rules)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "traffic_and_index_mb": _mb(sum(array.nbytes for array in index)),
        "peak_of_a_decision_mb": _mb(peak),
    }


def _ms(times_s: Sequence[float]) -> Mapping[str, float]:
    return {
        "median": round(1e3 * median(times_s), 4),
        "fastest": round(1e3 * min(times_s), 4),
    }


def _mb(size_bytes: float) -> float:
    return round(size_bytes / 1e6, 2)
