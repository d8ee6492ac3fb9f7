"""How large tuples are, from samples of single workers to the pairs of a snapshot."""

import numpy as np
import pytest
from msgspec import structs

from controller.core.capacity import Capacity
from controller.core.cluster import Traffic
from controller.core.layout import Layout, MadeOf
from controller.core.metrics import Rates, by_topology, observe
from controller.core.sizes import pair_keys
from controller.core.tasks import FIRST_COMPONENT
from controller.journal.record import decode, encode
from migration.model import Node, NodeLoad, Plan, SizeRow, Slot, WorkerLoad, traffic_of
from tests.messages import publication

S1, S2 = Slot("s1", 6700), Slot("s2", 6700)
# The second begins with the lower name.
COMPONENTS = ("bolt", "spout")
TARGETS = {name: FIRST_COMPONENT + i for i, name in enumerate(COMPONENTS)}
BOLT, SPOUT = range(2)


def load(slot: Slot, time_s: int, *sizes: SizeRow, incarnation: str = "a") -> NodeLoad:
    worker = WorkerLoad("t", slot, incarnation, time_s * 1000, time_s * 10**9)
    if sizes:
        worker = structs.replace(worker, sizes=sizes)
    return NodeLoad(slot.supervisor, time_s * 1000, (worker,))


def words(tuples: int, size: int) -> SizeRow:
    return "spout", "bolt", tuples, size


def follow(*rounds: list[NodeLoad], ewma: float = 1.0, rates: Rates | None = None) -> Rates:
    rates = Rates() if rates is None else rates
    for loads in rounds:
        reports = by_topology(loads)["t"]
        rates = observe(rates, reports, TARGETS, now_s=0.0, ewma=ewma)
    return rates


def mean_bytes(rates: Rates, source: int = SPOUT, target: int = BOLT) -> float:
    (found,) = rates.sizes.mean_bytes(pair_keys(np.array([source]), np.array([target])))
    return float(found)


def test_what_came_between_two_reports_counts_and_nothing_before() -> None:
    first = [load(S1, 1, words(1000, 1_000_000))]
    assert np.isnan(mean_bytes(follow(first)))
    rates = follow(first, [load(S1, 2, words(1010, 1_000_400))])
    assert mean_bytes(rates) == 40.0
    assert np.isnan(mean_bytes(rates, BOLT, SPOUT))
    assert np.isnan(mean_bytes(rates, BOLT, BOLT))


def test_a_pair_that_was_not_in_the_report_before_was_0_then() -> None:
    rates = follow([load(S1, 1)], [load(S1, 2, words(10, 400), ("bolt", "bolt", 2, 10))])
    assert (mean_bytes(rates), mean_bytes(rates, BOLT, BOLT)) == (40.0, 5.0)


def test_all_workers_count_by_how_many_tuples_they_have_looked_at() -> None:
    rates = follow(
        [load(S1, 1), load(S2, 1)], [load(S1, 2, words(30, 300)), load(S2, 2, words(10, 900))]
    )
    assert mean_bytes(rates) == 30.0


def test_few_tuples_change_little_and_none_change_nothing() -> None:
    many = follow([load(S1, 1)], [load(S1, 2, words(999, 9_990))], ewma=0.5)
    assert mean_bytes(many) == pytest.approx(10.0)
    few = follow([load(S1, 3, words(1000, 10_990))], ewma=0.5, rates=many)
    assert mean_bytes(few) == pytest.approx(10.0, abs=2.0)
    again = follow([load(S1, 3, words(1000, 10_990))], rates=few)
    silent = follow(*([load(S1, t, words(1000, 10_990))] for t in range(4, 2000)), rates=again)
    assert mean_bytes(silent) == mean_bytes(few)


def test_a_jvm_that_begins_again_takes_nothing_away() -> None:
    rates = follow([load(S1, 1)], [load(S1, 2, words(10, 400))])
    for sizes in ((), (words(2, 10),), (words(99, 99_000),)):
        begun = follow([load(S1, 3, *sizes, incarnation="b")], rates=rates)
        assert mean_bytes(begun) == 40.0
        tuples, size = sizes[0][2:] if sizes else (0, 0)
        more = load(S1, 4, words(tuples + 5, size + 50), incarnation="b")
        assert mean_bytes(follow([more], rates=begun)) == 10.0


def test_a_worker_that_goes_leaves_what_others_know_and_its_own_too() -> None:
    rates = follow(
        [load(S1, 1), load(S2, 1, words(7, 7))],
        [load(S1, 2, ("bolt", "bolt", 4, 80)), load(S2, 2, words(17, 407))],
        [load(S2, 3, words(18, 447))],
    )
    assert (mean_bytes(rates), mean_bytes(rates, BOLT, BOLT)) == (40.0, 20.0)


def test_what_is_of_no_component_is_passed_over() -> None:
    odd = ("spout", "gone", 5, 50), ("gone", "bolt", 5, 50), words(10, 400)
    assert mean_bytes(follow([load(S1, 1)], [load(S1, 2, *odd)])) == 40.0


def test_a_journal_keeps_it() -> None:
    rates = follow([load(S1, 1)], [load(S1, 2, words(10, 400))], ewma=0.5)
    read = decode(Rates, encode(rates))
    assert mean_bytes(read) == 40.0
    last = [load(S1, 3, words(20, 1_400))]
    assert mean_bytes(follow(last, rates=read)) == mean_bytes(follow(last, rates=rates)) == 100.0


def test_a_snapshot_has_the_size_of_each_pair_by_its_components() -> None:
    """Spout 1 and bolts 2 and 3; what the spout sends to all bolts is folded."""
    nodes = [Node(n, n, 200.0, (6700,), 1) for n in ("s1", "s2")]
    storm = publication({1: S1, 2: S2, 3: S2}, nodes, spouts={1}, topology="t")

    def sent(time_s: int, *sizes: SizeRow) -> NodeLoad:
        made = load(S1, time_s, *sizes)
        rows = traffic_of([(1, 2, 100 * time_s), (2, 3, 100 * time_s)])
        folded = ((1, "bolt", 100 * time_s),)
        return structs.replace(
            made, workers=(structs.replace(made.workers[0], traffic=rows, folded=folded),)
        )

    def traffic(rates: Rates) -> Traffic:
        layout = Layout.of(MadeOf(storm, Plan("c", 1, 0, "t"), {}, Capacity(), {}))
        return layout.fitted(rates).snapshot(rates, time_s=0.0).traffic

    unknown = follow([sent(1)], [sent(2)])
    assert traffic(unknown).size_bytes is None
    known = traffic(follow([sent(3, words(10, 400))], rates=unknown))
    assert list(zip(known.source, known.target, strict=True)) == [(0, 1), (0, 2), (1, 2)]
    assert known.size_bytes is not None
    assert known.size_bytes.tolist() == pytest.approx([40.0, 40.0, np.nan], nan_ok=True)


def test_bytes_between_nodes_are_not_known_where_a_size_is_not() -> None:
    """Spout 1 is alone, bolts 2 and 3 share a node."""
    nodes = [Node(n, n, 200.0, (6700,), 1) for n in ("s1", "s2")]
    storm = publication({1: S1, 2: S2, 3: S2}, nodes, spouts={1}, topology="t")
    layout = Layout.of(MadeOf(storm, Plan("c", 1, 0, "t"), {}, Capacity(), {}))

    def crossing(*sizes: SizeRow, **sent: int) -> float:
        def report(time_s: int, size: tuple[SizeRow, ...]) -> NodeLoad:
            made = load(S1, time_s, *size)
            rows = traffic_of((int(k[1]), int(k[2]), n * time_s) for k, n in sent.items())
            return structs.replace(made, workers=(structs.replace(made.workers[0], traffic=rows),))

        rates = follow([report(1, ())], [report(2, sizes)])
        return layout.fitted(rates).crossing_bytes(rates.tuples, rates.sizes)

    assert crossing(words(10, 400), t12=50, t23=70) == 100 * 40.0
    assert crossing(words(10, 400), t23=70) == 0.0, "nothing crosses"
    assert np.isnan(crossing(t12=50))
    assert crossing(t23=70) == 0.0


def test_what_is_left_of_traffic_keeps_its_size() -> None:
    ends = np.arange(3)
    tps, size_bytes = np.array([1.0, 2.0, 3.0]), np.array([0.0, 10.0, 20.0])
    whole = Traffic(ends, ends, tps, size_bytes=size_bytes)
    part = whole.of_pairs(ends != 1)
    assert part.size_bytes is not None
    assert (part.tps.tolist(), part.size_bytes.tolist()) == ([1.0, 3.0], [0.0, 20.0])
    assert part.var is None
