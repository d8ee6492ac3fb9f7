"""No decision of a live run empties a worker, and a file and a replay are decided as one."""

import json
from dataclasses import dataclass, field

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controller.config import Config, Mode, build
from controller.core.cluster import LoadSnapshot
from controller.core.decision import Outcome
from controller.cycle import Memory
from controller.ingest.cycle import cycle_with_searches
from controller.policies.options import NAMES
from controller.replay.recording import Ended, Room, Span
from controller.replay.rerun import Rerun
from controller.snapshot import parse
from controller.walk import walk
from migration.model import Node, NodeAcks, NodeLoad, Publication, Slot, WorkerLoad
from tests.messages import node_acks, publication, replace, worker_load
from tests.property.controller.cli.test_decide import two_workers
from tests.property.controller.policies.gather.test_policy import worlds
from tests.property.controller.policies.test_single_move import World
from tests.unit.controller.test_cycle import World as LiveWorld
from tests.watched import cycle

SLOTS = tuple(Slot(node, port) for node in "abc" for port in (1, 2))


def rules(policy: str, max_moves: int, gain_frac: float, weight_worker: float) -> Config:
    keys = {"policy": policy, "max.moves.per.cycle": max_moves, "asc.threshold": gain_frac}
    keys["target.gain"] = 1.0  # a replay has no target in its first cycle, so no file has one
    return build({**keys, "weight.worker": weight_worker, "vetoes": True, "load.low": 0.4})


configs = st.builds(
    rules,
    # Two need profiles, without which they move none.
    st.sampled_from([name for name in NAMES if name not in {"sam", "heterogeneity"}]),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.01]),
    st.sampled_from([0.0, 0.2]),
)


def two_that_would_both_go() -> World:
    """Put two who belong to two other nodes in one worker."""
    document = two_workers()
    names = ("1-1", "2-2", "3-3", "4-4")
    document["nodes"] = [{"id": node} for node in ("n0", "n1", "n2")]
    document["workers"] = [
        {"id": f"{n}:1", "node": n, "cpu_capacity": 1.0} for n in ("n0", "n1", "n2")
    ]
    at = ("n1:1", "n1:1", "n0:1", "n2:1")
    document["executors"] = [
        {"id": name, "component": "b", "worker": w, "cpu": 0.1, "queue": 0}
        for name, w in zip(names, at, strict=True)
    ]
    document["traffic"] = [["1-1", "3-3", 100.0], ["2-2", "4-4", 90.0]]
    return parse(json.dumps(document))


@settings(max_examples=300)
@example(two_that_would_both_go(), rules("gather", 2, 0.01, 0.2))
@example(two_that_would_both_go(), rules("even", 4, 0.01, 0.2))
@given(worlds(), configs)
def test_a_step_has_no_more_moves_than_a_cycle(world: World, config: Config) -> None:
    for step in walk(*world, config, steps=4):
        assert step.decision.is_exchange or len(step.decision.moves) <= config.max_moves


def one_that_opens_a_slot() -> World:
    """Put all into one worker that is too full, next to two without executors."""
    document = two_workers()
    document["nodes"] = [{"id": node} for node in ("n0", "n1")]
    document["workers"] = [
        {"id": name, "node": name[:2], "cpu_capacity": 0.5} for name in ("n0:1", "n0:2", "n1:1")
    ]
    document["executors"] = [
        {"id": f"{i}-{i}", "component": "b", "worker": "n0:1", "cpu": cpu, "queue": 0}
        for i, cpu in enumerate((0.0, 0.05, 0.4))
    ]
    document["traffic"] = []
    return parse(json.dumps(document))


def as_recorded(snapshot: LoadSnapshot) -> LoadSnapshot:
    """Round to what a recording keeps of a number."""
    traffic = snapshot.traffic
    cpu_cores, tps = (
        one.astype(np.float32).astype(float) for one in (snapshot.cpu_cores, traffic.tps)
    )
    return replace(snapshot, cpu_cores=cpu_cores, traffic=replace(traffic, tps=tps))


@settings(max_examples=200)
@example(two_that_would_both_go(), rules("gather", 2, 0.01, 0.2))
@example(one_that_opens_a_slot(), rules("gather", 1, 0.0, 0.0))
@given(worlds(), configs)
def test_a_replay_is_decided_as_a_file(world: World, config: Config) -> None:
    cluster, first = world[0], as_recorded(world[1])
    config = replace(config, cooldown_s=0.0, ewma=1.0)
    (step,) = walk(cluster, first, config, 1)
    expected = [(move.executor, move.source, move.target) for move in step.decision.moves]
    used = {cluster.workers[w] for w in first.place}
    # A slot is opened once a search has ended: in a file that is at once, else in the next cycle.
    ticks = 1 + any(target not in used for _, _, target in expected)
    traffic = first.traffic
    span = Span(
        cluster=cluster,
        hosts={node: node for node in cluster.nodes},
        first=first,
        place=first.place,
        time_s=np.arange(ticks, dtype=np.float64) * config.cycle_s,
        span_s=np.full(ticks, config.cycle_s),
        cpu_cores=np.tile(first.cpu_cores, (ticks, 1)).astype(np.float32),
        traffic_tps=np.tile(traffic.tps, (ticks, 1)).astype(np.float32),
        source=traffic.source,
        target=traffic.target,
        size_bytes=np.full(len(traffic.tps), np.nan),
        held=np.zeros(ticks, dtype=np.bool_),
        ended=Ended.unknown(ticks),
        room=Room.unknown(ticks, len(cluster.nodes)),
        shifts=(),
    )
    for explain in (True, False):
        run = Rerun(config, explain=explain)
        run.take(span)
        moves = run.series().moves
        at_once = [move for move in moves if move.time_s == moves[0].time_s]
        assert [(move.executor, move.source, move.target) for move in at_once] == expected


@dataclass
class Live(LiveWorld):
    """A live run over three nodes."""

    tps: dict[tuple[int, int], int] = field(default_factory=dict)

    def publication(self) -> Publication:
        nodes = [Node(n, f"host-{n}", 200.0, (1, 2), 2) for n in "abc"]
        return publication(self.places, nodes, spouts=[1])

    def acks(self) -> tuple[NodeAcks, ...]:
        taken = sorted(set(self.places.values()))
        return tuple(
            node_acks(node, [self.ack(slot) for slot in taken if slot.supervisor == node], "uuid")
            for node in "abc"
        )

    def loads(self) -> list[NodeLoad]:
        taken = sorted(set(self.places.values()))
        return [
            NodeLoad(node, 0, tuple(self.load(s, self.now) for s in taken if s.supervisor == node))
            for node in "abc"
        ]

    def load(self, slot: Slot, at_s: float) -> WorkerLoad:
        here = self.here(slot)
        sent = {ends: tps for ends, tps in self.tps.items() if ends[0] in here}
        return worker_load(slot, here, at_s, sent)


@st.composite
def live_worlds(draw: st.DrawFn) -> Live:
    tasks = range(1, draw(st.integers(2, 8)) + 1)
    places = {task: draw(st.sampled_from(SLOTS)) for task in tasks}
    task = st.sampled_from(tasks)
    tps = draw(st.dictionaries(st.tuples(task, task), st.integers(1, 100), max_size=12))
    return Live(places=places, tps=tps)


@settings(max_examples=200)
@given(live_worlds(), configs, st.sampled_from([Mode.ADVISE, Mode.AUTO]))
def test_a_live_run_is_decided_as_a_file(world: Live, config: Config, mode: Mode) -> None:
    config = replace(config, mode=mode)
    memory, _ = cycle(Memory(), world.seen(), config)
    world.now += 1
    (report,) = cycle_with_searches(memory, world.seen(), config)[1].topologies
    assert report.picture is not None
    cluster, snapshot = report.picture.cluster, report.picture.snapshot
    (step,) = walk(cluster, snapshot, config, 1)
    assert report.moves == step.decision.moves
    assert report.reason == step.decision.reason
    moves = mode is Mode.AUTO and report.moves
    assert report.outcome is (Outcome.MOVED if moves else step.decision.outcome)
