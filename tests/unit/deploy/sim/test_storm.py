"""What topologies on the same nodes do to each other's workers."""

import numpy as np

from deploy.sim.flow.feed import Feed
from deploy.sim.flow.load import Meter, Metering
from deploy.sim.flow.nodes import Hardware, Nodes
from deploy.sim.flow.workload import Link, Part, SimulatedTopology
from deploy.sim.flow.world import World
from deploy.sim.restart_cost import Delays, System
from deploy.sim.storm import Assigned, Storm, slots_of
from deploy.sim.together import Together
from migration.model import Timing

PARTS = (Part("bolt", "bolt", 1, 1.0), Part("spout", "spout", 1, 1.0))
PAIR = SimulatedTopology(PARTS, (Link("spout", "bolt", "shuffle"),))
HARDWARE = Hardware(nodes=2, workers=3)


def two() -> tuple[list[World], list[Storm], Together]:
    """Make two topologies with two workers each: the first slots of the nodes, and the second."""
    everyones, nodes, random = Assigned(), Nodes(HARDWARE), np.random.default_rng(1)
    worlds, storms, meters = [], [], []
    for name, slots in (("a", [0, 3]), ("b", [1, 4])):
        world = World(PAIR, HARDWARE, Feed(), random, nodes=nodes, slots=np.array(slots))
        meter = Meter(world, Metering(), slots_of(world), random)
        storms.append(
            Storm(
                world,
                meter,
                everyones,
                name=name,
                system=System.NSTORM,
                delays=Delays(),
                timing=Timing(),
                random=random,
            )
        )
        worlds.append(world)
        meters.append(meter)
    return worlds, storms, Together(storms, meters)


def test_a_topology_has_workers_in_its_own_slots_only() -> None:
    worlds, _, together = two()
    assert [np.flatnonzero(world.up).tolist() for world in worlds] == [[0, 3], [1, 4]]
    seen = together.seen(0.0, opens=True)
    assert [view.id for view in seen.topologies] == ["a-1", "b-1"]
    assert sorted(map(str, seen.free)) == ["n0:6702", "n1:6702"]
    for view in seen.topologies:
        assert [node.slots_in_use for node in view.publication.nodes] == [2, 2]
        assert len(view.observation.hooked) == 2
        # The answers of a node are those of all its JVMs, as in ZooKeeper.
        assert [len(acks.workers) for acks in view.acks] == [2, 2]
    assert not together.seen(0.0, opens=False).free


def test_a_worker_that_was_left_ends_where_another_topology_takes_its_slot() -> None:
    worlds, storms, _ = two()
    worlds[0].up[2] = True
    for slot in (2, 0):
        storms[0].leave(slot)
    storms[0].advance()
    assert np.flatnonzero(worlds[0].up).tolist() == [0, 3]


def test_reports_of_a_node_have_the_workers_of_all_topologies() -> None:
    worlds, storms, together = two()
    for world, storm in zip(worlds, storms, strict=True):
        storm._meter.report(storm.topology)
        world.now_s = 1.0
    loads = together.seen(1.0, opens=True).loads
    assert [load.node for load in loads] == ["n0", "n1"]
    assert [[w.topology for w in load.workers] for load in loads] == [["a-1", "b-1"]] * 2
