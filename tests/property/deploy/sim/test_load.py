"""Moves and deaths in a simulated cluster: what it reports never falls, and no node does more than
it can.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from deploy.sim.flow.feed import Feed
from deploy.sim.flow.load import Meter, Metering
from deploy.sim.flow.nodes import Hardware, Neighbour, Nodes
from deploy.sim.flow.workload import WordCount
from deploy.sim.flow.world import World, step_together
from deploy.sim.storm import slots_of
from migration.model import NodeLoad

STEP_S, CORES, LINK_BYTES_S = 0.5, 1.0, 50_000.0
HARDWARE = Hardware(2, 2, CORES, "node", link_bytes_s=LINK_BYTES_S, heap_mb=512.0)
TOPOLOGY = WordCount(splits=2, counts=3, ackers=1, sentence_bytes=90, word_bytes=9).topology()
EXECUTORS, WORKERS = 8, 4
BUSY = Neighbour(at_s=1.0, for_s=3.0, node="n1", cores=0.8)


def steps() -> st.SearchStrategy[list[tuple[int, int, int, bool]]]:
    """Draw steps: a topology, an executor, a worker, and whether that ends or it moves there."""
    one = st.tuples(
        st.integers(0, 1), st.integers(0, EXECUTORS - 1), st.integers(0, WORKERS - 1), st.booleans()
    )
    return st.lists(one, min_size=1, max_size=12)


def two_on_nodes() -> tuple[Nodes, list[World], list[Meter]]:
    nodes, worlds, meters = Nodes(HARDWARE, (BUSY,)), [], []
    for slots in ([0, 2], [1, 3]):
        random = np.random.default_rng(1)
        feed = Feed(rate_tps=4000.0)
        world = World(TOPOLOGY, HARDWARE, feed, random, nodes=nodes, slots=np.array(slots))
        worlds.append(world)
        meters.append(Meter(world, Metering(delay_s=0.0), slots_of(world), random))
    return nodes, worlds, meters


def reports(meters: list[Meter]) -> list[NodeLoad]:
    for meter in meters:
        meter.read()
    for number, meter in enumerate(meters):
        meter.report(f"t{number}")
    return [load for meter in meters for load in meter.loads()]


def totals(loads: list[NodeLoad]) -> dict[tuple[str, ...], float]:
    """Name all totals of a report."""
    found: dict[tuple[str, ...], float] = {}
    for load in loads:
        assert load.meters is not UNSET
        for name in ("machine_cpu_ns", "net_sent_bytes", "net_received_bytes"):
            found[load.node, name] = load.meters[name]
        for one in load.workers:
            jvm = one.topology, one.incarnation
            found[*jvm, "cpu"] = one.process_cpu_ns
            for source, target, tuples, size_bytes in () if one.sizes is UNSET else one.sizes:
                found[*jvm, source, target, "tuples"] = tuples
                found[*jvm, source, target, "bytes"] = size_bytes
    return found


@settings(max_examples=30)
@given(steps())
def test_totals_never_fall_and_are_what_nodes_can_do(
    drawn: list[tuple[int, int, int, bool]],
) -> None:
    nodes, worlds, meters = two_on_nodes()
    before, jvms_ns = totals(reports(meters)), dict[tuple[str, ...], float]()
    for topology, executor, worker, ends in drawn:
        world = worlds[topology]
        if ends:
            world.kill(worker)
            meters[topology].reborn(worker)
            world.up[worker] = True
        else:
            world.move(executor, worker)
        for _ in range(2):
            step_together(worlds, STEP_S)
        now = totals(reports(meters))
        assert all(now[key] >= total for key, total in before.items() if key in now)
        before = now
        jvms_ns |= {key: total for key, total in now.items() if key[-1] == "cpu"}
        for world in worlds:
            assert 0 <= world.transfer_queue.sum() <= world.wire.sum() + 1e-6
    seconds = worlds[0].now_s
    used_s = nodes.cpu_s.sum()
    assert nodes.cpu_s.max() <= CORES * seconds * (1 + 1e-6)
    neighbours_s = used_s - sum(jvms_ns.values()) / 1e9
    assert -1e-6 <= neighbours_s <= BUSY.cores * BUSY.for_s + 1e-6
    for n in ("n0", "n1"):
        for name in ("net_sent_bytes", "net_received_bytes"):
            assert before[n, name] <= LINK_BYTES_S * seconds * (1 + 1e-6) + 1
