"""Running totals become rates, and rates a snapshot."""

from collections.abc import Iterable

import pytest
from msgspec import structs

from controller.core.capacity import Capacity
from controller.core.cluster import LoadSnapshot
from controller.core.layout import Layout, MadeOf, build_cluster, layout_of, opened_by
from controller.core.metrics import Rates, by_topology, observe
from controller.core.picture import stale_workers
from controller.core.tasks import FIRST_COMPONENT, ends_of, worker_of
from controller.core.topology import TopologyView
from migration import WireError
from migration.model import (
    Base,
    Entry,
    ExecutorId,
    ExecutorLoad,
    Node,
    NodeLoad,
    Phase,
    PlacedExecutor,
    Plan,
    Publication,
    Slot,
    WorkerLoad,
    traffic_of,
)
from migration.wire import decode, encode
from tests.messages import START_SECS, publication, replace

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
    rates = Rates()
    for now_s, loads in enumerate(rounds):
        rates = seen(rates, loads, now_s, ewma=ewma)
    return rates


def seen(
    before: Rates,
    loads: list[NodeLoad],
    now_s: float,
    *,
    ewma: float = 1.0,
    targets: dict[str, int] | None = None,
) -> Rates:
    reports = by_topology(loads).get("t", ())
    return observe(before, reports, targets or {}, now_s=now_s, ewma=ewma)


def cpu_cores(rates: Rates, slot: Slot, task: int) -> float:
    """Find what one executor used in one worker."""
    row = rates.slots.index(slot), task
    rows = zip(worker_of(rates.executors), ends_of(rates.executors)[0], strict=True)
    return float(rates.cpu_cores[list(rows).index(row)])


def sent(rates: Rates, slot: Slot = S1) -> dict[tuple[int, int], float]:
    """Give what one worker sends, by source and target."""
    source, target = ends_of(rates.pairs)
    here = worker_of(rates.pairs) == rates.slots.index(slot)
    ends = zip(source[here].tolist(), target[here].tolist(), strict=True)
    return dict(zip(ends, rates.tps[here].tolist(), strict=True))


def known(rates: Rates, slot: Slot) -> bool:
    return bool(rates.known[rates.slots.index(slot)])


def published(slots: dict[int, Slot], *, slots_in_use: int = 2) -> Publication:
    nodes = [Node(n, n, 200.0, (6700, 6701), slots_in_use) for n in ("s1", "s2")]
    return publication(slots, nodes, topology="t")


def laid_out(rates: Rates, storm: Publication, *, time_s: float = 7.0) -> LoadSnapshot:
    layout = Layout.of(MadeOf(storm, Plan("c", 1, 0, "t"), {}, Capacity(), {}))
    return layout.fitted(rates).snapshot(rates, time_s=time_s)


def snapshot_of(rates: Rates, slots: dict[int, Slot]) -> LoadSnapshot:
    return laid_out(rates, published(slots))


def test_rates_are_what_was_added_over_the_time_between() -> None:
    rates = follow(
        [report(S1, 10, {1: 5.0}, [(1, 2, 100)])],
        [report(S1, 12, {1: 5.5}, [(1, 2, 300), (1, 3, 50)])],
    )
    assert cpu_cores(rates, S1, 1) == pytest.approx(0.25)
    assert sent(rates) == {(1, 2): 100.0, (1, 3): 25.0}


def test_a_lost_report_costs_nothing_and_the_same_report_adds_nothing() -> None:
    first, last = report(S1, 10, {1: 5.0}), report(S1, 20, {1: 6.0})
    assert cpu_cores(follow([first], [first], [last]), S1, 1) == pytest.approx(0.1)
    again = follow([first], [last], [last])
    assert cpu_cores(again, S1, 1) == pytest.approx(0.1)
    assert again.seen_s.tolist() == [1]
    older = follow([first], [last], [first])
    assert cpu_cores(older, S1, 1) == pytest.approx(0.1)
    assert older.time_ms.tolist() == [20_000]


def test_newest_rate_is_blended_in() -> None:
    rates = follow(
        [report(S1, 0, {1: 0.0}, [])],
        [report(S1, 1, {1: 0.4}, [(1, 2, 100)])],
        [report(S1, 2, {1: 0.4}, [(1, 2, 100), (2, 1, 10)])],
        ewma=0.3,
    )
    assert cpu_cores(rates, S1, 1) == pytest.approx(0.7 * 0.4)
    assert sent(rates) == pytest.approx({(1, 2): 70.0, (2, 1): 3.0})


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
    assert not known(rates, S1)
    assert stale_workers(rates, [S1], now_s=2, limit_s=15) == (f"{S1} has reported only once",)


def test_an_executor_that_comes_back_brings_no_spike() -> None:
    rates = follow(
        [report(S1, 0, {1: 100.0, 2: 1.0}, process_s=200)],
        [report(S1, 1, {2: 1.1}, process_s=201)],
        [report(S1, 2, {1: 100.2, 2: 1.2}, process_s=202)],
    )
    assert cpu_cores(rates, S1, 1) == pytest.approx(0.2)


def test_a_pair_that_one_report_had_no_room_for_is_no_other_jvm_and_brings_no_spike() -> None:
    rows = [(1, 2, 100), (1, 3, 9000)], [(1, 2, 300), (1, 4, 9500)], [(1, 3, 9900), (1, 4, 9700)]
    cut = [replace(report(S1, 10 + 2 * i, {1: 5.0}, r), left_out=1) for i, r in enumerate(rows)]
    for rounds, wanted in (
        ((cut[0], cut[1]), {(1, 2): 100.0}),
        ((cut[1], cut[2]), {(1, 4): 100.0}),
        ((replace(cut[0], left_out=0), cut[1]), {(1, 2): 100.0}),
        ((cut[1], replace(cut[2], left_out=0)), {(1, 4): 100.0}),
    ):
        rates = follow(*([load] for load in rounds))
        assert known(rates, S1)
        assert {ends: tps for ends, tps in sent(rates).items() if tps} == wanted


def test_a_pair_without_room_that_was_loud_brings_no_spike_when_it_comes_back() -> None:
    rows = [(1, 3, 9000)], [(1, 3, 9100)], [(1, 2, 10)], [(1, 3, 9800), (1, 2, 20)]
    cut = [replace(report(S1, 1 + i, {1: 5.0}, r), left_out=1) for i, r in enumerate(rows)]
    rates = follow(*([load] for load in cut), ewma=0.5)
    assert sent(rates)[1, 3] == pytest.approx(25.0)


def test_stale_workers_are_named() -> None:
    rates = follow([report(S1, 0, {1: 0.0})], [report(S1, 1, {1: 0.1})])
    assert stale_workers(rates, [S1], now_s=16, limit_s=15) == ()
    assert stale_workers(rates, [S1], now_s=17, limit_s=15) == (f"{S1} reported 16 s ago",)
    assert stale_workers(rates, [S1, S2], now_s=2, limit_s=15) == (f"{S2} has not reported",)


def test_other_topologies_and_vanished_workers_are_left_out() -> None:
    rates = follow([report(S1, 0, {1: 0.0}), report(S2, 0, {2: 0.0})], [report(S1, 1, {1: 0.1})])
    assert rates.slots == (S1,)
    assert by_topology([report(S1, 0, {1: 0.0})]).keys() == {"t"}


def test_other_cpu_of_a_jvm_is_shared_by_tuples() -> None:
    traffic = [(1, 2, 300), (1, 3, 100)]
    rates = follow(
        [report(S1, 0, {1: 0.0, 2: 0.0}), report(S2, 0, {3: 0.0})],
        [report(S1, 1, {1: 0.1, 2: 0.1}, traffic, process_s=0.9), report(S2, 1, {3: 0.2})],
    )
    snapshot = snapshot_of(rates, {1: S1, 2: S1, 3: S2})
    # 0.7 cores of the JVM belong to no executor: 1 handles 400 tuples, 2 handles 300.
    assert snapshot.cpu_cores.tolist() == pytest.approx([0.1 + 0.4, 0.1 + 0.3, 0.2])
    assert snapshot.traffic.tps.tolist() == [300.0, 100.0]
    assert snapshot.queue.tolist() == [10, 20, 30]
    assert snapshot.executors == ("1-1", "2-2", "3-3")
    assert snapshot.time_s == 7.0


def test_an_executor_whose_queue_grows_wants_more_than_it_uses() -> None:
    """It works off 300 of 400 tuples/s; the queue of another goes up and down."""

    def waiting(second: int, tuples: int, noise: int) -> NodeLoad:
        made = report(S1, second, {1: 0.1 * second, 2: 0.3 * second, 3: 0.3 * second})
        (worker,) = made.workers
        queues = (0, tuples, 100 + noise * (-1) ** second)
        executors = tuple(
            structs.replace(one, queue=queue)
            for one, queue in zip(worker.executors, queues, strict=True)
        )
        sent = traffic_of([(1, 2, 400 * second), (1, 3, 400 * second)])
        worker = structs.replace(worker, executors=executors, traffic=sent)
        return structs.replace(made, workers=(worker,))

    def wanted(tps: int, seconds: int, noise: int = 90) -> list[float] | None:
        rounds = [[waiting(second, tps * second, noise)] for second in range(seconds)]
        found = snapshot_of(follow(*rounds, ewma=0.3), {1: S1, 2: S1, 3: S1})
        return None if found.wanted_times is None else found.wanted_times.tolist()

    assert wanted(100, 60) == [1.0, pytest.approx(4 / 3, rel=0.1), 1.0]
    early = wanted(100, 4)
    assert early is not None
    assert early[0] == early[2] == 1.0
    assert 1.02 < early[1] < 4 / 3
    assert wanted(0, 40) is None
    assert wanted(-1, 10) is None
    # Nothing is known of what would be worked off at last.
    assert wanted(400, 40) == [1.0, 2.0, 1.0]


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
    ranges = ExecutorId(1, 2), ExecutorId(3, 5)
    executors = tuple(PlacedExecutor(e, "c", S1, 1) for e in ranges)
    snapshot = laid_out(rates, replace(published({1: S1}), executors=executors))
    assert snapshot.executors == ("1-2", "3-5")
    assert (snapshot.traffic.source.tolist(), snapshot.traffic.target.tolist()) == ([0], [1])
    assert snapshot.traffic.tps.tolist() == [10.0]


def test_capacity_is_the_nodes_cpu_by_its_slots_in_use() -> None:
    storm = published({1: S1, 2: S2})
    assert build_cluster(storm, storm.slots, Capacity(), {}).capacity_cores.tolist() == [1.0, 1.0]
    assert build_cluster(storm, storm.slots, Capacity(0.5), {}).capacity_cores.tolist() == [
        0.5,
        0.5,
    ]
    assert build_cluster(
        published({1: S1}, slots_in_use=0), [S1], Capacity(), {}
    ).capacity_cores.tolist() == [2.0]


def test_a_slot_that_opens_lowers_every_workers_share_of_its_host_at_once() -> None:
    storm, base = published({1: S1}), Base(S1, START_SECS)
    entry = Entry("m1", ExecutorId(1, 1), S1, Slot("s2", 6701), Phase.OPEN, base, opens="h")
    opening = TopologyView(storm, Plan("c", 1, 1, "wc-1", (entry,)), ())
    neighbour = replace(published({1: S2}), topology="other-1")
    views = (opening, TopologyView(neighbour, Plan("c", 1, 0, "other-1"), ()))

    def shares() -> dict[str, float]:
        opened = opened_by(views)
        clusters = [layout_of(view, Capacity(), None, opened).cluster for view in views]
        pairs = [zip(c.workers, c.capacity_cores.tolist(), strict=True) for c in clusters]
        return {worker: cores for one in pairs for worker, cores in one}

    third = pytest.approx(2 / 3)
    assert shares() == {str(S1): 1.0, "s2:6701": third, str(S2): third}
    # Once Storm counts the slot, it is among those in use.
    counted = published({1: S1, 2: Slot("s2", 6701)})
    views = (replace(opening, publication=counted), views[1])
    assert opened_by(views) == {}


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
    assert known(rates, S1)
    assert sent(rates) == {(1, 2): 90.0, (1, 3): 10.0}
    again = follow(
        [report(S1, 0, {1: 1.0}, [(1, 2, 900), (1, 3, 10)])],
        [report(S1, 1, {1: 2.0}, [(1, 2, 5), (1, 3, 20)])],
    )
    assert sent(again) == {(1, 2): 0.0, (1, 3): 10.0}


def test_a_pair_that_comes_and_one_that_goes() -> None:
    rates = follow(
        [report(S1, 0, {1: 1.0}, [(1, 2, 900)])],
        [report(S1, 1, {1: 2.0}, [(1, 3, 20)])],
    )
    assert sent(rates) == {(1, 3): 20.0}


def folding(time_s: float, named: int, folded: int) -> NodeLoad:
    load = report(S1, time_s, {1: time_s}, [(1, 2, named)] if named else [])
    worker = structs.replace(load.workers[0], folded=((1, "sink", folded), (1, "gone", 7)))
    return structs.replace(load, workers=(worker,))


def test_what_a_worker_has_folded_is_kept_by_component() -> None:
    targets = {"sink": FIRST_COMPONENT}
    rates = Rates()
    for now_s, load in enumerate([folding(0, 0, 0), folding(1, 60, 400)]):
        rates = seen(rates, [load], now_s, targets=targets)
    assert sent(rates) == {(1, 2): 60.0, (1, FIRST_COMPONENT): 400.0}
    # The pair is folded again from here on: nothing jumps, and nothing but its own rest is lost.
    rates = seen(rates, [folding(2, 0, 800)], 2, targets=targets)
    assert sent(rates) == {(1, FIRST_COMPONENT): 400.0}


def test_a_pair_that_sends_no_more_is_forgotten() -> None:
    rounds = [[report(S1, 0, {1: 0.0}, [(1, 2, 0), (1, 3, 0)])]]
    rounds += [[report(S1, 1, {1: 1.0}, [(1, 2, 100), (1, 3, 100)])]]
    rounds += [[report(S1, t, {1: t}, [(1, 3, 100 * t)])] for t in range(2, 80)]
    assert sent(follow(*rounds, ewma=0.3)).keys() == {(1, 3)}


def test_a_clock_that_is_set_ahead_makes_no_rate() -> None:
    rates = Rates()
    for now_s in range(0, 40, 4):
        ahead_s = 3600 if now_s >= 20 else 0
        rates = seen(rates, [report(S1, now_s + ahead_s, {1: 0.8 * now_s})], now_s, ewma=0.3)
        assert known(rates, S1) == (now_s not in (0, 20))
        if known(rates, S1):
            assert cpu_cores(rates, S1, 1) == pytest.approx(0.8)


def test_the_first_report_that_a_leader_finds_may_be_old() -> None:
    rates = seen(Rates(), [report(S1, 0, {1: 0})], 4)
    assert known(seen(rates, [report(S1, 4.5, {1: 1.8})], 4.5), S1)


def test_a_report_that_cannot_be_stops_no_other() -> None:
    odd = report(S1, 1, {1: 1.0}, [(1, 2, 9), (2**40, 1, 1), (1, 3, -7)])
    whole = [report(S2, t, {2: float(t)}, [(2, 1, 100 * t)]) for t in range(3)]
    rates = follow([report(S1, 0, {1: 0.0}), whole[0]], [odd, whole[1]], [odd, whole[2]])
    assert sent(rates, S2) == {(2, 1): 100.0}
    assert sent(rates).keys() == {(1, 2)}


def test_workers_that_come_and_go_take_nothing_from_the_others() -> None:
    slots = [Slot("s1", port) for port in (6700, 6701, 6702)]

    def loads(time_s: float, *there: int) -> list[NodeLoad]:
        return [
            report(slots[w], time_s, {w + 1: time_s / 4}, [(w + 1, 9, round(100 * time_s))])
            for w in there
        ]

    rates = follow(loads(1, 0, 2), loads(2, 1, 2), loads(3, 0, 1, 2), ewma=0.5)
    assert [known(rates, slot) for slot in slots] == [False, True, True]
    assert sent(rates, slots[1]) == {(2, 9): 100.0}
    assert sent(rates, slots[2]) == {(3, 9): 100.0}
    assert cpu_cores(rates, slots[2], 3) == pytest.approx(0.25)


def test_rows_stay_the_very_same_while_none_comes_or_goes() -> None:
    rounds = [[report(S1, t, {1: float(t)}, [(1, 2, t), (1, 3, 2 * t)])] for t in range(4)]
    before = follow(*rounds[:3])
    after = seen(before, rounds[3], 3)
    assert after.pairs is before.pairs
    assert after.executors is before.executors
    assert sent(after) == {(1, 2): 1.0, (1, 3): 2.0}


@pytest.mark.parametrize(
    "traffic", [b"5", b"-1", b"[1,2,[]]", b"[[1,2]]", b'[["1",2,3]]', b"[[]]", b"[[1,2,3,4,5],[]]"]
)
def test_traffic_that_is_no_rows_is_refused(traffic: bytes) -> None:
    text = encode(report(S1, 1, {1: 1.0})).replace(b'"traffic":[]', b'"traffic":' + traffic)
    with pytest.raises(WireError, match="traffic is no list of"):
        decode(NodeLoad, text)


def test_the_variance_of_a_rate_is_that_of_its_own_history() -> None:
    """Executor 1 goes up and down, executor 2 is steady; so are the pairs that they send to."""
    used_s, sent, rates = [0.0, 0.0], [0, 0], Rates()
    for round_ in range(400):
        wild = 1.5 if round_ % 2 else 0.5
        used_s = [used_s[0] + wild, used_s[1] + 1.0]
        sent = [sent[0] + round(100 * wild), sent[1] + 100]
        traffic = [(1, 3, sent[0]), (2, 3, sent[1])]
        loads = [report(S1, float(round_), dict(enumerate(used_s, 1)), traffic)]
        rates = seen(rates, loads, float(round_), ewma=0.3)
    # Half a core off the mean each time; as alternating reports are, 1.18 of it off the average.
    off = 0.5 * 2 / (2 - 0.3)
    assert rates.cpu_var == pytest.approx([0.15 * off**2, 0.0], rel=0.01, abs=1e-12)
    assert rates.tps_var == pytest.approx([0.15 * (100 * off) ** 2, 0.0], rel=0.01, abs=1e-9)


def test_another_jvm_has_no_history() -> None:
    rounds = [[report(S1, float(t), {1: float(t * t)})] for t in range(9)]
    assert follow(*rounds, ewma=0.3).cpu_var > 0
    anew = [report(S1, 9.0, {1: 99.0}, incarnation="b")]
    assert follow(*rounds, anew, ewma=0.3).cpu_var == 0
