"""The generated cluster is of the stated size, and its messages are what agents write."""

import time
from collections import Counter

import numpy as np
import pytest

from migration.model import NodeLoad, Slot
from migration.wire import LARGEST_NODE_BYTES, decode, encode, packed
from tests.bench.scale.cluster import PORTS, SPOUT_TPS, PaperCluster, paper_cluster
from tests.bench.scale.imitator import AGE_S, World
from tests.bench.scale.report import as_tables


@pytest.fixture(scope="module")
def large() -> PaperCluster:
    return paper_cluster(1000)


def test_a_thousand_nodes_have_ten_thousand_executors_in_thirty_topologies(
    large: PaperCluster,
) -> None:
    assert len(large.nodes) == 1000
    assert large.executors == 10_000
    assert len(large.topologies) == 30
    assert {len(topology.component_of) for topology in large.topologies} <= {333, 334}
    assert {len(topology.nodes) for topology in large.topologies} == {101}
    assert all(3 <= len(topology.components) - 2 <= 5 for topology in large.topologies)


@pytest.mark.parametrize(("nodes", "topologies"), [(10, 1), (100, 3), (300, 9)])
def test_smaller_ones_have_as_many_executors_a_node(nodes: int, topologies: int) -> None:
    paper = paper_cluster(nodes)
    assert (paper.executors, len(paper.topologies)) == (10 * nodes, topologies)


def test_no_slot_is_taken_twice_and_every_worker_has_executors(large: PaperCluster) -> None:
    slots = Counter(slot for topology in large.topologies for slot in topology.slots)
    assert set(slots.values()) == {1}
    assert {slot.port for slot in slots} <= set(PORTS)
    for topology in large.topologies:
        count = Counter(topology.slot_of.values())
        assert min(count.values()) >= 3
        assert max(count.values()) <= 4
    used = Counter(slot.supervisor for slot in slots)
    assert [node.slots_in_use for node in large.supervisors().nodes] == [
        used[node] for node in large.nodes
    ]


def test_a_task_sends_to_all_of_the_next_component(large: PaperCluster) -> None:
    assert large.pairs / large.executors > 70


def test_what_a_spout_sends_passes_every_stage(large: PaperCluster) -> None:
    topology = large.topologies[0]
    components = {component.id: component for component in topology.components}
    total_tps = SPOUT_TPS * components["spout"].parallelism
    of = np.array(["", *topology.component_of.values()])
    for edge in topology.edges:
        between = (of[topology.pairs.source] == edge.source) & (
            of[topology.pairs.target] == edge.target
        )
        assert topology.pairs.tps[between].sum() == pytest.approx(total_tps)


def test_a_publication_fits_and_says_where_everybody_is(large: PaperCluster) -> None:
    topology = large.topologies[3]
    moved = {**topology.slot_of, 5: Slot("elsewhere", 6700)}
    published = topology.publication(moved)
    assert published.slots == {*topology.slots, Slot("elsewhere", 6700)}
    assert len(packed(encode(published))) < LARGEST_NODE_BYTES


def test_totals_of_a_worker_grow() -> None:
    world = World(paper_cluster(10), ("", 0))
    (slot, *_), now_s = sorted(world.workers), time.time()
    one = world.workers[slot].load(now_s, world.began_s)
    later = world.workers[slot].load(now_s + 2, world.began_s)
    assert now_s - world.began_s == pytest.approx(AGE_S, abs=60)
    assert later.process_cpu_ns > one.process_cpu_ns
    assert all(a.cpu_ns > b.cpu_ns for a, b in zip(later.executors, one.executors, strict=True))
    assert all(a[2] >= b[2] > 0 for a, b in zip(later.rows, one.rows, strict=True))
    report = NodeLoad("n", 0, (one,))
    assert decode(NodeLoad, packed(encode(report))) == report


def test_nothing_found_makes_no_table() -> None:
    assert not list(as_tables({"clusters": [], "agent": None}))
