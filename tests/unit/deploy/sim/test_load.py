"""Reports have what the hooks and the agent measure, as far as the scenario bounds it."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import UNSET, structs

from controller.core.links import Links
from deploy.sim.engine import run
from deploy.sim.flow.feed import Feed
from deploy.sim.flow.load import Meter, Metering
from deploy.sim.flow.nodes import Hardware, Neighbour, Nodes
from deploy.sim.flow.workload import Link, Part, SimulatedTopology, acked
from deploy.sim.flow.world import World, step_together
from deploy.sim.scenario import parse
from deploy.sim.storm import slots_of
from migration.model import Meters, NodeLoad, SizeRow, WorkerLoad

SLOW = Feed(rate_tps=100.0, pending=5000)
OWN_CORES = Hardware(2, 2, 1.0, "node", worker_us=0.0, node_us=0.0)
NARROW = structs.replace(OWN_CORES, link_bytes_s=1000.0)


def chain(there_bytes: float = 0.0, onward_bytes: float = 0.0) -> SimulatedTopology:
    """Dealt out: `bolt` on the first node, `sink` on the second, `up` on the first."""
    parts = (
        Part("bolt", "bolt", 1, 1000.0, state_mb=100.0),
        Part("sink", "bolt", 1, 1000.0),
        Part("up", "spout", 1, 1.0),
    )
    links = (
        Link("up", "bolt", "shuffle", size_bytes=there_bytes),
        Link("bolt", "sink", "shuffle", size_bytes=onward_bytes),
    )
    return SimulatedTopology(parts, links)


def measured(
    topology: SimulatedTopology,
    hardware: Hardware = OWN_CORES,
    feed: Feed = SLOW,
    neighbours: tuple[Neighbour, ...] = (),
) -> tuple[World, Meter]:
    nodes = Nodes(hardware, neighbours)
    world = World(topology, hardware, feed, np.random.default_rng(1), nodes=nodes)
    return world, Meter(world, Metering(delay_s=0.0), slots_of(world), np.random.default_rng(1))


def pass_time(world: World, meter: Meter, seconds: float) -> None:
    for _ in range(round(seconds / 0.1)):
        step_together([world], 0.1)
    meter.read()


def reported(meter: Meter) -> tuple[list[NodeLoad], dict[str, WorkerLoad]]:
    """Give the report of each node, and of each worker by its slot."""
    meter.report("sim-1")
    loads = list(meter.loads())
    return loads, {str(one.slot): one for load in loads for one in load.workers}


def known(load: NodeLoad | WorkerLoad) -> Meters:
    assert load.meters is not UNSET
    return load.meters


def sizes(load: WorkerLoad) -> tuple[SizeRow, ...]:
    return () if load.sizes is UNSET else load.sizes


def test_sizes_are_of_some_of_the_tuples_that_leave_a_worker() -> None:
    world, meter = measured(chain(50.0, 700.0))
    assert world.place.tolist() == [0, 2, 1]
    pass_time(world, meter, 10)
    _, workers = reported(meter)
    count = int(meter._sent[1, 2, 0] / 31)
    assert 900 / 31 < count <= 1000 / 31
    assert workers["n0:6701"].sizes == (("up", "bolt", count, 50 * count),)
    assert workers["n0:6700"].sizes == (("bolt", "sink", count, 700 * count),)
    assert workers["n1:6700"].sizes is UNSET


def test_a_stream_within_a_worker_has_no_size_and_keeps_what_it_had() -> None:
    world, meter = measured(chain(50.0, 700.0))
    world.move(2, 0)
    pass_time(world, meter, 10)
    _, workers = reported(meter)
    assert [row[:2] for row in sizes(workers["n0:6700"])] == [("bolt", "sink")]
    world.move(1, 0)
    pass_time(world, meter, 10)
    assert reported(meter)[1]["n0:6700"].sizes == workers["n0:6700"].sizes


def test_a_jvm_that_is_started_again_has_measured_no_tuple() -> None:
    world, meter = measured(chain(50.0, 700.0))
    pass_time(world, meter, 10)
    meter.reborn(1)
    _, workers = reported(meter)
    assert workers["n0:6701"].sizes is UNSET
    assert workers["n0:6700"].sizes is not UNSET


def test_a_stream_without_a_size_has_none() -> None:
    world, meter = measured(chain(50.0))
    pass_time(world, meter, 10)
    rows = [row for one in reported(meter)[1].values() for row in sizes(one)]
    assert [row[:2] for row in rows] == [("up", "bolt")]


def test_where_only_acks_have_a_size_none_is_reported() -> None:
    for there_bytes in (0.0, 50.0):
        world, meter = measured(acked(chain(there_bytes), 1, 1.0))
        pass_time(world, meter, 10)
        found = [one.sizes for one in reported(meter)[1].values()]
        assert all(one is UNSET for one in found) is (there_bytes == 0)


def test_what_is_not_bounded_is_not_reported() -> None:
    world, meter = measured(chain(), Hardware(2, 2, worker_us=0.0, node_us=0.0))
    pass_time(world, meter, 1)
    loads, workers = reported(meter)
    assert [load.meters for load in loads] == [UNSET, UNSET]
    assert [one.meters for one in workers.values()] == [{"transport_cpu_ns": 0}] * 4
    assert [one.sizes for one in workers.values()] == [UNSET] * 4


def test_a_worker_reports_its_heap() -> None:
    hardware = Hardware(2, 2, 1.0, "node", heap_mb=256.0, heap_base_mb=64.0)
    world, meter = measured(chain(), hardware)
    meters = {slot: one.meters for slot, one in reported(meter)[1].items()}
    base, rest = 64 << 20, {"heap_max_bytes": 256 << 20, "transport_cpu_ns": 0}
    assert meters["n0:6700"] == {"heap_live_bytes": base + (100 << 20), **rest}
    world.move(0, 2)
    meters = {slot: one.meters for slot, one in reported(meter)[1].items()}
    # The JVM that was left is still there.
    assert meters["n0:6700"] == {"heap_live_bytes": base, **rest}
    assert meters["n1:6700"] == {"heap_live_bytes": base + (100 << 20), **rest}


def test_a_worker_reports_what_waits_for_a_full_link() -> None:
    world, meter = measured(chain(0.0, 100.0), NARROW)
    pass_time(world, meter, 20)
    loads, workers = reported(meter)
    waiting = {slot: known(one) for slot, one in workers.items()}
    # 100 tuples of 100 bytes a second, of which 10 go through.
    assert waiting["n0:6700"]["transfer_queue_tuples"] == pytest.approx(1800, rel=0.02)
    assert world.wire.sum() == pytest.approx(waiting["n0:6700"]["transfer_queue_tuples"], abs=1)
    assert {waiting[slot]["transfer_queue_tuples"] for slot in waiting if slot != "n0:6700"} == {0}
    sent, received = (known(load) for load in loads)
    assert (
        sent["net_sent_bytes"] == received["net_received_bytes"] == pytest.approx(20000, rel=0.01)
    )
    assert sent["net_received_bytes"] == received["net_sent_bytes"] == 0
    assert sent["link_bytes_per_s"] == received["link_bytes_per_s"] == 1000


def test_what_waits_on_a_node_is_of_the_workers_that_send_there() -> None:
    parts = (Part("sink", "bolt", 1, 1.0), Part("up", "spout", 3, 1.0))
    topology = SimulatedTopology(parts, (Link("up", "sink", "shuffle", size_bytes=100.0),))
    world, meter = measured(topology, NARROW)
    for spout, worker in ((1, 2), (2, 3), (3, 3)):
        world.move(spout, worker)
    pass_time(world, meter, 20)
    one, two = world.transfer_queue[2:]
    assert one + two == pytest.approx(world.wire.sum())
    assert two == pytest.approx(2 * one)


def test_a_node_reports_the_cpu_of_all_that_runs_there() -> None:
    neighbour = Neighbour(at_s=0.0, for_s=10.0, node="n0", cores=0.5)
    world, meter = measured(chain(), neighbours=(neighbour,))
    pass_time(world, meter, 20)
    loads, workers = reported(meter)
    ours = dict.fromkeys(("n0", "n1"), 0)
    for one in workers.values():
        ours[one.slot.supervisor] += one.process_cpu_ns
    machines = {load.node: known(load) for load in loads}
    assert machines["n0"]["machine_cores"] == machines["n1"]["machine_cores"] == 1
    assert machines["n0"]["machine_cpu_ns"] == pytest.approx(ours["n0"] + 5e9)
    assert machines["n1"]["machine_cpu_ns"] == pytest.approx(ours["n1"])
    assert "net_sent_bytes" not in machines["n0"]


def test_a_full_node_serves_its_neighbour_in_part() -> None:
    neighbour = Neighbour(at_s=0.0, for_s=20.0, node="n0", cores=3.0)
    world, meter = measured(
        chain(), feed=Feed(rate_tps=2000.0, pending=10_000), neighbours=(neighbour,)
    )
    pass_time(world, meter, 20)
    (first, _), workers = reported(meter)
    meters = known(first)
    assert meters["machine_cpu_ns"] == pytest.approx(20e9, rel=0.01)
    assert workers["n0:6700"].process_cpu_ns == pytest.approx(5e9, rel=0.03)


SHARED = """
seconds: 60
step_s: 0.5
warm_s: 10
window_s: 20
slots: 2
workload: {name: wordcount, splits: 2, counts: 4, sentence_bytes: 100, word_bytes: 10}
cluster: {nodes: 2, workers: 3, cores: 2, shared_by: node, heap_mb: 512, link_bytes_s: 1.0e+7}
feed: {rate_tps: 2000}
controller: {asc.threshold: 1, target.gain: 1}
measure: {period_s: 1, noise: 0.05}
others:
  other: {slots: 2, workload: {name: wordcount, splits: 2, counts: 4}, feed: {rate_tps: 1000}}
neighbours: [{at_s: 0, for_s: 100, node: n1, cores: 0.75}]
"""


def test_the_controller_sees_heaps_neighbours_links_and_sizes() -> None:
    (setting,) = parse(SHARED).runs
    result = run(setting, 1)
    assert not result.moves
    last = [report for report in result.reports if report.topology == "sim-1"][-1].picture
    assert last is not None
    used = result.cpu_frac[-20:].mean(axis=0).reshape(2, 3).sum(axis=1) * 2 / 3
    used[1] += 0.75
    assert last.of_nodes["machine_cpu_cores"] == pytest.approx(used, rel=0.05)
    assert last.of_nodes["machine_cores"].tolist() == [2, 2]
    assert last.of_workers["heap_live_bytes"].tolist() == [64 << 20] * 2
    assert last.of_workers["heap_max_bytes"].tolist() == [512 << 20] * 2
    assert last.of_workers["transfer_queue_tuples"].tolist() == [0, 0]
    traffic, components = last.snapshot.traffic, last.snapshot.component_of
    assert traffic.size_bytes is not None
    pairs = zip(traffic.source.tolist(), traffic.target.tolist(), strict=True)
    streams = [(components[source], components[target]) for source, target in pairs]
    size_bytes = dict(zip(streams, traffic.size_bytes.round(6).tolist(), strict=True))
    assert size_bytes == {("spout", "split"): 100, ("split", "count"): 10}
    assert last.of_nodes["link_bytes_per_s"].tolist() == [1e7, 1e7]
    sent, received = Links(last.cluster, last.snapshot).crossing
    assert last.of_nodes["net_sent_bytes_per_s"] == pytest.approx(sent, rel=0.1)
    assert last.of_nodes["net_received_bytes_per_s"] == pytest.approx(received, rel=0.1)
    other = [report for report in result.reports if report.topology == "other-1"][-1].picture
    assert other is not None
    assert other.snapshot.traffic.size_bytes is None
    without = run(replace(setting, neighbours=()), 1).reports[-1].picture
    assert without is not None
    assert without.of_nodes["machine_cpu_cores"][1] < last.of_nodes["machine_cpu_cores"][1] - 0.7
