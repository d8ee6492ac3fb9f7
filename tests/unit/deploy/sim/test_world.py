"""The flow: exact throughput of a bottleneck, back-pressure, links, loss, and what it costs."""

import math
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from deploy.sim.flow.feed import Burst, Day, Feed, Tap
from deploy.sim.flow.nodes import Hardware, Neighbour, Nodes
from deploy.sim.flow.workload import Link, Part, SimulatedTopology, WordCount
from deploy.sim.flow.world import World, step_together
from deploy.sim.scenario import parse

SCENARIOS = Path(__file__).parents[3] / "golden" / "scenarios"
GRAPHS = {run.name: run.topology for run in parse((SCENARIOS / "graphs.txt").read_text()).runs}

SLOWLY = Feed(rate_tps=100.0)
ONE_CORE = Hardware(nodes=2, workers=1, cores=1.0, worker_us=0.0, node_us=0.0)


def world_of(
    topology: SimulatedTopology, hardware: Hardware = ONE_CORE, feed: Feed = SLOWLY
) -> World:
    return World(topology, hardware, feed, np.random.default_rng(1))


def pair(cost_us: float = 1000.0, max_tps: float = math.inf) -> SimulatedTopology:
    """One spout and one bolt; dealt out to two workers, the bolt (by name) to the first."""
    parts = (Part("bolt", "bolt", 1, cost_us, max_tps), Part("spout", "spout", 1, 1.0))
    return SimulatedTopology(parts, (Link("spout", "bolt", "shuffle"),))


def pass_time(world: World, seconds: float, step_s: float = 0.1) -> float:
    """Return the throughput of the second half."""
    half = round(seconds / step_s / 2)
    for _ in range(half):
        world.step(step_s)
    before = world.done
    for _ in range(half):
        world.step(step_s)
    return (world.done - before) / (half * step_s)


def missing(world: World) -> float:
    return world.emitted - world.done - world.queued - world.lost


def test_everything_is_dealt_out_evenly_over_nodes_first() -> None:
    world = world_of(WordCount().topology(), Hardware())
    assert world.place[:10].tolist() == [0, 4, 1, 5, 2, 6, 3, 7, 0, 4]


def test_a_rate_below_capacity_comes_through() -> None:
    world = world_of(pair())
    assert pass_time(world, 20) == pytest.approx(100)
    assert world.queued < 1


def test_a_way_takes_the_processor_time_of_all_on_it() -> None:
    assert world_of(pair()).way_s == pytest.approx(1001e-6, rel=1e-4)
    # Sending and receiving between nodes too, as long as the two are apart.
    world = world_of(pair(), Hardware(2, 1, 1.0, worker_us=0.0, node_us=50.0))
    assert world.way_s == pytest.approx(1101e-6, rel=1e-4)
    world.move(1, 0)
    assert world.way_s == pytest.approx(1001e-6, rel=1e-4)


def test_a_saturated_bolt_does_what_its_processor_allows() -> None:
    world = world_of(pair(), feed=Feed(pending=1000))
    assert pass_time(world, 40) == pytest.approx(1000, rel=1e-3)
    # Back-pressure: not more than the window is in flight.
    assert world.pending <= 1000 * 1.001


def test_shorter_steps_change_nothing_but_the_time_it_takes() -> None:
    rates = []
    for step_s in (0.2, 0.1, 0.05):
        topology, hardware = WordCount(uneven=0.5).topology(), Hardware(link_tps=20000)
        rates.append(pass_time(world_of(topology, hardware, Feed(pending=5000)), 40, step_s))
    assert rates == pytest.approx([rates[0]] * 3, rel=0.02)


@pytest.mark.parametrize(("shared_by", "tps"), [("worker", 500), ("node", 1000), ("all", 2000)])
def test_processors_are_shared_as_said(
    shared_by: Literal["worker", "node", "all"], tps: float
) -> None:
    # Two threads of 1 ms a tuple on one worker, which has half a core of its node's one.
    parts = (Part("bolt", "bolt", 2, 1000.0), Part("spout", "spout", 1, 1.0))
    topology = SimulatedTopology(parts, (Link("spout", "bolt", "shuffle"),))
    hardware = Hardware(2, 2, 1.0, shared_by, worker_us=0.0, node_us=0.0)
    world = world_of(topology, hardware, Feed(pending=2000))
    world.move(1, 0)
    world.move(2, 3)
    assert pass_time(world, 40) == pytest.approx(tps, rel=1e-2)


def test_half_the_processor_is_half_the_throughput() -> None:
    world = world_of(pair(), feed=Feed(pending=1000))
    world.nodes.speed[0] = 0.5
    assert pass_time(world, 40) == pytest.approx(500, rel=1e-3)


def test_an_executor_that_waits_for_others_has_its_own_limit() -> None:
    world = world_of(pair(max_tps=50.0), feed=Feed(pending=1000))
    assert pass_time(world, 40) == pytest.approx(50, rel=1e-3)


def test_one_thread_uses_one_core_at_most() -> None:
    world = world_of(pair(), Hardware(2, 1, 8.0, worker_us=0.0, node_us=0.0), Feed(pending=2000))
    assert pass_time(world, 40) == pytest.approx(1000, rel=1e-3)


def test_serialisation_costs_at_both_ends() -> None:
    hardware = Hardware(2, 1, 1.0, worker_us=0.0, node_us=1000.0)
    world = world_of(pair(), hardware, Feed(pending=1000))
    # 1 ms to receive and 1 ms to work it off; sending burdens the spout's worker.
    assert pass_time(world, 40) == pytest.approx(500, rel=1e-2)
    sent, thread_s, other_s = world.take()
    assert sent[1, 0] == pytest.approx(world.emitted)
    assert other_s[0] == pytest.approx(thread_s[0], rel=1e-2)


def test_a_link_carries_what_it_may_each_way() -> None:
    hardware = Hardware(2, 1, 1.0, link_tps=70.0, worker_us=0.0, node_us=0.0)
    world = world_of(pair(cost_us=1.0), hardware, Feed(pending=1000))
    assert pass_time(world, 60) == pytest.approx(70, rel=1e-2)
    assert world.wire[1, 0] > 0
    assert missing(world) == pytest.approx(0, abs=1e-6)
    # On the spout's node, no link is in the way.
    world.move(0, 1)
    assert pass_time(world, 20) > 1000


def test_a_dead_worker_loses_its_queue_and_the_spout_learns_of_it_by_the_timeout() -> None:
    world = world_of(pair(), feed=Feed(pending=1000, timeout_s=5.0))
    pass_time(world, 10)
    queued = world.queued
    world.kill(0)
    assert world.lost == pytest.approx(queued)
    assert world.pending == pytest.approx(queued)
    assert pass_time(world, 2) == 0
    world.up[0] = True
    pass_time(world, 10)
    assert world.pending <= 1000 * 1.001
    assert missing(world) == pytest.approx(0, abs=1e-6)


def test_a_stopped_executor_lets_tuples_wait() -> None:
    world = world_of(pair())
    world.running[0] = False
    assert pass_time(world, 4) == 0
    assert world.queue[0] == pytest.approx(400)
    world.running[0] = True
    pass_time(world, 4)
    assert world.lost == 0
    assert world.done == pytest.approx(800, abs=20)


@pytest.mark.parametrize(
    "topology",
    [
        WordCount().topology(),
        WordCount(ackers=2, grouping="near").topology(),
        *GRAPHS.values(),
    ],
)
def test_a_tuple_carries_its_share_of_the_sentence(topology: SimulatedTopology) -> None:
    world = world_of(topology, Hardware())
    spouts = world.is_spout
    assert world.routes[spouts] @ world.weight == pytest.approx(np.ones(spouts.sum()))
    # What leaves an executor weighs as much as what came in, unless it ends there.
    middle = world.routes.any(axis=1) & ~spouts
    assert world.routes[middle] @ world.weight == pytest.approx(world.weight[middle])


def test_acknowledgements_are_about_half_of_all_tuples() -> None:
    world = world_of(WordCount(words=5, ackers=2).topology(), Hardware())
    pass_time(world, 4)
    sent, _, _ = world.take()
    ackers = [world.parts[c].id == "__acker" for c in world.component]
    # 1 sentence, 5 words; 7 to the acker and 1 back.
    assert sent[:, ackers].sum() / sent.sum() == pytest.approx(7 / 14, rel=1e-2)


def test_a_near_shuffle_takes_the_own_worker_then_the_own_node() -> None:
    world = world_of(WordCount(splits=2, grouping="near").topology(), Hardware(2, 2))
    spout, splits = np.flatnonzero(world.is_spout)[0], np.flatnonzero(world.is_bolt)[-2:]
    for place, shares in ((0, [1.0, 0.0]), (1, [1.0, 0.0])):
        world.place[splits] = [place, 3]
        world.move(int(spout), 0)
        assert world.routes[spout, splits].tolist() == shares
    world.place[splits] = [2, 3]
    world.reroute()
    assert world.routes[spout, splits].tolist() == [0.5, 0.5]


def test_new_keys_move_the_traffic_and_the_cost() -> None:
    world = world_of(WordCount(uneven=0.5).topology(), Hardware())
    before = world.routes.copy()
    world.new_keys()
    assert not np.allclose(before, world.routes)
    assert before.sum() == pytest.approx(world.routes.sum())


def test_a_part_gets_the_tuples_of_all_that_lead_to_it() -> None:
    assert GRAPHS["diamond"].visits()["pi"] == 4
    assert GRAPHS["star"].visits()["sink"] == 4


def test_workers_of_a_node_share_its_processors_with_other_topologies_and_neighbours() -> None:
    hardware = Hardware(1, 2, 1.0, "node", worker_us=0.0, node_us=0.0)
    nodes = Nodes(hardware, (Neighbour(at_s=20.0, for_s=20.0, node="n0", cores=2.0),))
    feed, random = Feed(pending=2000), np.random.default_rng(1)
    worlds = []
    for slot in (0, 1):
        slots = np.array([slot])
        worlds.append(World(pair(), hardware, feed, random, nodes=nodes, slots=slots))

    def done_in(seconds: float) -> list[float]:
        before = [world.done for world in worlds]
        for _ in range(round(seconds / 0.1)):
            step_together(worlds, 0.1)
        return [(world.done - was) / seconds for world, was in zip(worlds, before, strict=True)]

    done_in(10)
    assert done_in(10) == pytest.approx([500, 500], rel=0.01)
    # Four threads' worth of work, two of them the neighbour's, which nobody bounds.
    done_in(5)
    assert done_in(15) == pytest.approx([250, 250], rel=0.01)
    done_in(5)
    assert done_in(10) == pytest.approx([500, 500], rel=0.01)


def sized(size_bytes: float, back_bytes: float = 0.0) -> SimulatedTopology:
    """A spout, a bolt that answers with tuples of another size, and their sink."""
    parts = (
        Part("bolt", "bolt", 1, 1.0),
        Part("sink", "bolt", 1, 1.0),
        Part("up", "spout", 1, 1.0),
    )
    links = (
        Link("up", "bolt", "shuffle", size_bytes=size_bytes),
        Link("bolt", "sink", "shuffle", size_bytes=back_bytes),
    )
    return SimulatedTopology(parts, links)


@pytest.mark.parametrize(
    ("there_bytes", "back_bytes", "tps"), [(1000, 0, 70), (1000, 2000, 35), (100, 1000, 70)]
)
def test_a_link_carries_bytes_each_way_apart(
    there_bytes: float, back_bytes: float, tps: float
) -> None:
    hardware = Hardware(2, 1, 4.0, "node", link_bytes_s=70_000.0, worker_us=0.0, node_us=0.0)
    world = world_of(sized(there_bytes, back_bytes), hardware, Feed(pending=1000))
    world.move(2, 1)
    assert [world.node_of[world.place[e]] for e in range(3)] == [0, 1, 1]
    assert pass_time(world, 60) == pytest.approx(tps, rel=0.02)
    assert missing(world) == pytest.approx(0, abs=1e-6)
    # With all of it on one node no link is in the way.
    world.move(0, 1)
    assert pass_time(world, 20) > 1000


def test_who_receives_of_two_has_one_link() -> None:
    """And what the full receiver leaves of a sender's link goes to another."""
    links = Nodes(Hardware(nodes=4, link_bytes_s=100.0)).links
    assert links is not None
    waiting = np.zeros((4, 4))
    waiting[0, 2], waiting[1, 2], waiting[1, 3] = 100.0, 100.0, 40.0
    links.begin(waiting, 1.0)
    sent = waiting * links.carry(waiting)
    assert [sent[0, 2], sent[1, 2], sent[1, 3]] == pytest.approx([50, 50, 40])


def test_bytes_cost_processor_time_between_workers() -> None:
    hardware = Hardware(2, 1, 1.0, worker_us=0.0, node_us=0.0, byte_us=1.0)
    world = world_of(sized(1000.0), hardware, Feed(pending=1000))
    # 1 ms for a tuple of 1,000 bytes at either end.
    world.move(2, 1)
    world.move(1, 1)
    assert pass_time(world, 40) == pytest.approx(1000, rel=0.02)
    world.move(0, 1)
    assert world.cpu_of_one_s.sum() == pytest.approx(3e-6, rel=0.01)


def test_state_fills_the_heap_of_the_worker_it_is_in() -> None:
    parts = (Part("bolt", "bolt", 2, 1.0, state_mb=100.0), Part("spout", "spout", 1, 1.0))
    topology = SimulatedTopology(parts, (Link("spout", "bolt", "shuffle"),))
    world = world_of(topology, Hardware(3, 1, 1.0, heap_base_mb=50.0))
    assert world.heaps.live_mb(world.place).tolist() == [150, 150, 50]
    world.move(1, 0)
    assert world.heaps.live_mb(world.place).tolist() == [250, 0, 50]


def test_state_that_was_lost_with_its_worker_fills_the_heap_again() -> None:
    parts = (Part("bolt", "bolt", 2, 1.0, state_mb=100.0), Part("spout", "spout", 1, 1.0))
    topology = SimulatedTopology(parts, (Link("spout", "bolt", "shuffle"),))
    world = world_of(topology, Hardware(3, 1, 1.0, heap_base_mb=50.0, heap_fill_s=20.0))
    world.kill(0)
    pass_time(world, 10)
    assert world.heaps.live_mb(world.place).tolist() == [50, 150, 50]
    world.up[0] = True
    pass_time(world, 10)
    assert world.heaps.live_mb(world.place) == pytest.approx([100, 150, 50])
    # A move carries what is there.
    world.move(0, 2)
    assert world.heaps.live_mb(world.place) == pytest.approx([0, 150, 100])
    assert world.heaps.full_mb(world.place).tolist() == [0, 150, 150]
    pass_time(world, 20)
    assert world.heaps.live_mb(world.place) == pytest.approx([0, 150, 150])


def test_slots_are_chosen_from_the_emptiest_node_first() -> None:
    nodes = Nodes(Hardware(nodes=3, workers=2))
    first = nodes.slots(np.zeros(0, np.int64), 2)
    assert first.tolist() == [0, 2]
    assert nodes.slots(first, 3).tolist() == [4, 1, 3]


def test_a_feed_has_bursts_a_day_and_noise() -> None:
    burst = Burst(at_s=10.0, for_s=5.0, times=3.0, every_s=20.0)
    tap = Tap(Feed(bursts=(burst,)), np.random.default_rng(1))
    seen = [tap.times(float(s)) for s in range(50)]
    assert [s for s in range(50) if seen[s] == 3] == [10, 11, 12, 13, 14, 30, 31, 32, 33, 34]
    tap = Tap(Feed(day=Day(10.0, 2.0)), np.random.default_rng(1))
    assert [tap.times(s) for s in (0.0, 150.0, 300.0, 600.0)] == [1, 1.5, 2, 1]
    tap = Tap(Feed(noise=0.2), np.random.default_rng(1))
    drawn = np.array([tap.times(s / 2) for s in range(4000)])
    assert drawn[::2].tolist() == drawn[1::2].tolist()
    assert drawn.mean() == pytest.approx(1, abs=0.02)
    assert np.log(drawn).std() == pytest.approx(0.2, rel=0.05)


def test_what_a_burst_offers_comes_through_where_there_is_room() -> None:
    feed = Feed(rate_tps=100.0, bursts=(Burst(at_s=5.0, for_s=5.0, times=3.0),))
    world = world_of(pair(), feed=feed)
    for _ in range(200):
        world.step(0.1)
    assert world.offered == pytest.approx(100 * 15 + 300 * 5)
    assert world.done == pytest.approx(world.offered, abs=2)
