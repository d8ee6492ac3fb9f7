"""Running totals become rates, and rates a snapshot."""

from collections.abc import Iterable

import pytest
from messages import publication, replace
from msgspec import structs

from controller.core.cluster import LoadSnapshot
from controller.core.metrics import Rates, observe
from controller.core.picture import build_cluster, build_snapshot, stale_workers
from controller.core.tasks import FIRST_COMPONENT
from migration import WireError
from migration.model import (
    ExecutorId,
    ExecutorLoad,
    Node,
    NodeLoad,
    PlacedExecutor,
    Publication,
    Slot,
    WorkerLoad,
    traffic_of,
)
from migration.wire import decode, encode

S1, S2 = Slot("s1", 6700), Slot("s2", 6700)
SECOND_NS = 10**9


def ids(*tasks: int) -> list[ExecutorId]:
    return [ExecutorId(task, task) for task in tasks]


def report(
    slot: Slot,
    time_s: float,
    cpu_s: dict[int, float],
    traffic: Iterable[tuple[int, int, int]] = (),
    *,
    process_s: float | None = None,
    incarnation: str = "a",
) -> NodeLoad:
    executors = tuple(
        ExecutorLoad(ExecutorId(task, task), "c", round(s * SECOND_NS), task * 10, None)
        for task, s in cpu_s.items()
    )
    process = round((sum(cpu_s.values()) if process_s is None else process_s) * SECOND_NS)
    rows = traffic_of(traffic)
    time_ms = round(time_s * 1000)
    worker = WorkerLoad("t", slot, incarnation, time_ms, process, executors, rows)
    return NodeLoad(slot.supervisor, time_ms, (worker,))


def follow(*rounds: list[NodeLoad], ewma: float = 1.0) -> Rates:
    rates: Rates = {}
    for now_s, loads in enumerate(rounds):
        rates = observe(rates, loads, "t", now_s=now_s, ewma=ewma)
    return rates


def published(slots: dict[int, Slot], *, slots_in_use: int = 2) -> Publication:
    nodes = [Node(n, n, 200.0, (6700, 6701), slots_in_use) for n in ("s1", "s2")]
    return publication(slots, nodes, topology="t")


def snapshot_of(rates: Rates, slots: dict[int, Slot]) -> LoadSnapshot:
    storm = published(slots)
    placement = {ExecutorId(t, t): slot for t, slot in slots.items()}
    cluster = build_cluster(storm, storm.slots, None)
    return build_snapshot(cluster, storm, placement, rates, {}, time_s=7.0)


def test_rates_are_what_was_added_over_the_time_between() -> None:
    rates = follow(
        [report(S1, 10, {1: 5.0}, [(1, 2, 100)])],
        [report(S1, 12, {1: 5.5}, [(1, 2, 300), (1, 3, 50)])],
    )
    worker = rates[S1]
    assert worker.cpu_cores[ExecutorId(1, 1)] == pytest.approx(0.25)
    assert worker.sent.tps.tolist() == [100.0, 25.0]


def test_a_lost_report_costs_nothing_and_the_same_report_adds_nothing() -> None:
    first, last = report(S1, 10, {1: 5.0}), report(S1, 20, {1: 6.0})
    assert follow([first], [first], [last])[S1].cpu_cores[ExecutorId(1, 1)] == pytest.approx(0.1)
    again = follow([first], [last], [last])
    assert again[S1].cpu_cores[ExecutorId(1, 1)] == pytest.approx(0.1)
    assert again[S1].seen_s == 1


def test_newest_rate_is_blended_in() -> None:
    rates = follow(
        [report(S1, 0, {1: 0.0}, [])],
        [report(S1, 1, {1: 0.4}, [(1, 2, 100)])],
        [report(S1, 2, {1: 0.4}, [(1, 2, 100), (2, 1, 10)])],
        ewma=0.3,
    )
    assert rates[S1].cpu_cores[ExecutorId(1, 1)] == pytest.approx(0.7 * 0.4)
    assert rates[S1].sent.tps.tolist() == pytest.approx([70.0, 3.0])


@pytest.mark.parametrize(
    "restarted",
    [
        report(S1, 2, {1: 9.0}, [(1, 2, 900)], incarnation="b"),
        report(S1, 2, {1: 0.1}, [(1, 2, 900)]),
        report(S1, 2, {1: 9.0}, [(1, 2, 900)], process_s=0.0),
    ],
)
def test_another_jvm_or_a_cpu_total_that_fell_starts_anew(restarted: NodeLoad) -> None:
    before = [report(S1, 0, {1: 1.0}, [(1, 2, 50)])], [report(S1, 1, {1: 2.0}, [(1, 2, 90)])]
    rates = follow(*before, [restarted])
    assert not rates[S1].known
    assert stale_workers(rates, [S1], now_s=2, limit_s=15) == (f"{S1} has reported only once",)


def test_an_executor_that_comes_back_brings_no_spike() -> None:
    rates = follow(
        [report(S1, 0, {1: 100.0, 2: 1.0}, process_s=200)],
        [report(S1, 1, {2: 1.1}, process_s=201)],
        [report(S1, 2, {1: 100.2, 2: 1.2}, process_s=202)],
    )
    assert rates[S1].cpu_cores[ExecutorId(1, 1)] == pytest.approx(0.2)


def test_a_pair_that_one_report_had_no_room_for_is_no_other_jvm_and_brings_no_spike() -> None:
    rows = [(1, 2, 100), (1, 3, 9000)], [(1, 2, 300), (1, 4, 9500)], [(1, 3, 9900), (1, 4, 9700)]
    cut = [replace(report(S1, 10 + 2 * i, {1: 5.0}, r), left_out=1) for i, r in enumerate(rows)]
    for rounds, sent in (
        ((cut[0], cut[1]), [(1, 2, 100.0)]),
        ((cut[1], cut[2]), [(1, 4, 100.0)]),
        ((replace(cut[0], left_out=0), cut[1]), [(1, 2, 100.0)]),
        ((cut[1], replace(cut[2], left_out=0)), [(1, 4, 100.0)]),
    ):
        worker = follow(*([load] for load in rounds))[S1]
        assert worker.known
        traffic = worker.sent
        found = zip(traffic.source, traffic.target, traffic.tps, strict=True)
        assert list(found) == sent


def test_stale_workers_are_named() -> None:
    rates = follow([report(S1, 0, {1: 0.0})], [report(S1, 1, {1: 0.1})])
    assert stale_workers(rates, [S1], now_s=16, limit_s=15) == ()
    assert stale_workers(rates, [S1], now_s=17, limit_s=15) == (f"{S1} reported 16 s ago",)
    assert stale_workers(rates, [S1, S2], now_s=2, limit_s=15) == (f"{S2} has not reported",)


def test_other_topologies_and_vanished_workers_are_left_out() -> None:
    rates = follow([report(S1, 0, {1: 0.0}), report(S2, 0, {2: 0.0})], [report(S1, 1, {1: 0.1})])
    assert set(rates) == {S1}
    assert observe({}, [report(S1, 0, {1: 0.0})], "other", now_s=0, ewma=1) == {}


def test_other_cpu_of_a_jvm_is_shared_by_tuples() -> None:
    traffic = [(1, 2, 300), (1, 3, 100)]
    rates = follow(
        [report(S1, 0, {1: 0.0, 2: 0.0}), report(S2, 0, {3: 0.0})],
        [report(S1, 1, {1: 0.1, 2: 0.1}, traffic, process_s=0.9), report(S2, 1, {3: 0.2})],
    )
    snapshot = snapshot_of(rates, {1: S1, 2: S1, 3: S2})
    # 0.7 cores of the JVM are nobody's: 1 handles 400 tuples, 2 handles 300.
    assert snapshot.cpu_cores.tolist() == pytest.approx([0.1 + 0.4, 0.1 + 0.3, 0.2])
    assert snapshot.traffic.tps.tolist() == [300.0, 100.0]
    assert snapshot.queue.tolist() == [10, 20, 30]
    assert snapshot.executors == ("1-1", "2-2", "3-3")
    assert snapshot.time_s == 7.0


def test_an_idle_jvm_shares_its_cpu_evenly() -> None:
    rates = follow(
        [report(S1, 0, {1: 0.0, 2: 0.0})], [report(S1, 1, {1: 0.0, 2: 0.0}, process_s=0.2)]
    )
    assert snapshot_of(rates, {1: S1, 2: S1}).cpu_cores.tolist() == pytest.approx([0.1, 0.1])


def test_smoothed_load_does_not_jump_when_an_executor_moves() -> None:
    rates = follow(
        [report(S1, 0, {1: 0.0}), report(S2, 0, {2: 0.0})],
        [report(S1, 1, {1: 0.2}, [(1, 2, 100)]), report(S2, 1, {2: 0.0})],
        [
            report(S1, 2, {}, [(1, 2, 100)], process_s=0.2),
            report(S2, 2, {1: 0.2, 2: 0.0}, [(1, 2, 100)]),
        ],
        ewma=0.5,
    )
    snapshot = snapshot_of(rates, {1: S2, 2: S2})
    assert snapshot.cpu_cores[0] == pytest.approx(0.2)  # as before the move
    assert snapshot.traffic.tps.tolist() == pytest.approx([100])


def test_tasks_of_a_range_belong_to_one_executor() -> None:
    rates = follow([report(S1, 0, {1: 0.0})], [report(S1, 1, {1: 0.0}, [(1, 5, 7), (2, 4, 3)])])
    storm = published({1: S1})
    placement = {ExecutorId(1, 2): S1, ExecutorId(3, 5): S1}
    executors = tuple(PlacedExecutor(e, "c", S1, 1) for e in placement)
    storm = replace(storm, executors=executors)
    cluster = build_cluster(storm, storm.slots, None)
    snapshot = build_snapshot(cluster, storm, placement, rates, {}, time_s=0)
    assert snapshot.executors == ("1-2", "3-5")
    assert (snapshot.traffic.source.tolist(), snapshot.traffic.target.tolist()) == ([0], [1])
    assert snapshot.traffic.tps.tolist() == [10.0]


def test_capacity_is_the_nodes_cpu_by_its_slots_in_use() -> None:
    storm = published({1: S1, 2: S2})
    assert build_cluster(storm, storm.slots, None).capacity_cores.tolist() == [1.0, 1.0]
    assert build_cluster(storm, storm.slots, 0.5).capacity_cores.tolist() == [0.5, 0.5]
    assert build_cluster(
        published({1: S1}, slots_in_use=0), [S1], None
    ).capacity_cores.tolist() == [2.0]


def test_order_of_executors_is_that_of_their_tasks() -> None:
    slots = {10: S1, 9: S1, 100: S2}
    rates = follow([report(S1, 0, {9: 0.0, 10: 0.0}), report(S2, 0, {100: 0.0})])
    assert snapshot_of(rates, slots).executors == ("9-9", "10-10", "100-100")
    assert ids(9, 10) == sorted(ids(10, 9))


def test_a_pair_that_was_given_up_and_named_again_counts_nothing_once() -> None:
    rates = follow(
        [report(S1, 0, {1: 1.0}, [(1, 2, 900), (1, 3, 10)])],
        [report(S1, 1, {1: 2.0}, [(1, 2, 990), (1, 3, 20)])],
        [report(S1, 2, {1: 3.0}, [(1, 2, 5), (1, 3, 30)])],
        [report(S1, 3, {1: 4.0}, [(1, 2, 95), (1, 3, 40)])],
    )
    found = dict(zip(rates[S1].sent.target.tolist(), rates[S1].sent.tps.tolist(), strict=True))
    assert rates[S1].known
    assert found == {2: 90.0, 3: 10.0}
    again = follow(
        [report(S1, 0, {1: 1.0}, [(1, 2, 900), (1, 3, 10)])],
        [report(S1, 1, {1: 2.0}, [(1, 2, 5), (1, 3, 20)])],
    )
    assert again[S1].sent.tps.tolist() == [0.0, 10.0]


def test_a_pair_that_comes_and_one_that_goes() -> None:
    rates = follow(
        [report(S1, 0, {1: 1.0}, [(1, 2, 900)])],
        [report(S1, 1, {1: 2.0}, [(1, 3, 20)])],
    )
    assert rates[S1].sent.target.tolist() == [3]
    assert rates[S1].sent.tps.tolist() == [20.0]


def folding(time_s: float, named: int, folded: int) -> NodeLoad:
    load = report(S1, time_s, {1: time_s}, [(1, 2, named)] if named else [])
    worker = structs.replace(load.workers[0], folded=((1, "sink", folded), (1, "gone", 7)))
    return structs.replace(load, workers=(worker,))


def test_what_a_worker_has_folded_is_kept_by_component() -> None:
    targets = {"sink": FIRST_COMPONENT}
    rates: Rates = {}
    for now_s, load in enumerate([folding(0, 0, 0), folding(1, 60, 400)]):
        rates = observe(rates, [load], "t", now_s=now_s, ewma=1.0, targets=targets)
    sent = rates[S1].sent
    assert sent.target.tolist() == [2, FIRST_COMPONENT]
    assert sent.tps.tolist() == [60.0, 400.0]
    # The pair is folded again from here on: nothing jumps, and nothing but its own rest is lost.
    rates = observe(rates, [folding(2, 0, 800)], "t", now_s=2, ewma=1.0, targets=targets)
    assert rates[S1].sent.target.tolist() == [FIRST_COMPONENT]
    assert rates[S1].sent.tps.tolist() == [400.0]


def test_a_pair_that_sends_no_more_is_forgotten() -> None:
    rounds = [[report(S1, 0, {1: 0.0}, [(1, 2, 0), (1, 3, 0)])]]
    rounds += [[report(S1, 1, {1: 1.0}, [(1, 2, 100), (1, 3, 100)])]]
    rounds += [[report(S1, t, {1: t}, [(1, 3, 100 * t)])] for t in range(2, 80)]
    assert follow(*rounds, ewma=0.3)[S1].sent.target.tolist() == [3]


def test_a_report_that_cannot_be_stops_no_other() -> None:
    odd = report(S1, 1, {1: 1.0}, [(1, 2, 9), (2**40, 1, 1), (1, 3, -7)])
    whole = [report(S2, t, {2: float(t)}, [(2, 1, 100 * t)]) for t in range(3)]
    rates = follow([report(S1, 0, {1: 0.0}), whole[0]], [odd, whole[1]], [odd, whole[2]])
    assert rates[S2].sent.tps.tolist() == [100.0]
    assert rates[S1].sent.target.tolist() == [2]


@pytest.mark.parametrize("traffic", [b"5", b"-1", b"[1,2,[]]", b"[[1,2]]", b'[["1",2,3]]', b"[[]]"])
def test_traffic_that_is_no_rows_is_refused(traffic: bytes) -> None:
    text = encode(report(S1, 1, {1: 1.0})).replace(b'"traffic":[]', b'"traffic":' + traffic)
    with pytest.raises(WireError, match="traffic is no list of"):
        decode(NodeLoad, text)
