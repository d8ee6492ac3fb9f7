"""Histograms of reports become what half and nearly all tuples do not exceed."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import UNSET

from controller.core.figures import NOT_KNOWN, SpoutFigures
from controller.core.latency import BEGINS_MS, Timed, added, observe_timed, quantile_ms
from controller.core.metrics import Rates, by_topology, observe
from controller.core.spouts import spout_figures
from controller.journal.record import decode, encode
from migration.model import LATENCY_BUCKETS, LatencyRow, Meters, NodeLoad, Slot, WorkerLoad

S1, S2 = Slot("s1", 6700), Slot("s2", 6700)


def report(
    time_s: float, *rows: LatencyRow, slot: Slot = S1, jvm: str = "a", meters: Meters | None = None
) -> WorkerLoad:
    return WorkerLoad(
        "t",
        slot,
        jvm,
        round(time_s * 1000),
        0,
        latency=rows or UNSET,
        meters=meters or UNSET,
    )


def observed(*reports: WorkerLoad) -> dict[Slot, Timed]:
    timed: dict[Slot, Timed] = {}
    for one in reports:
        timed = observe_timed(timed, [one])
    return timed


def tuples(rows: dict[int, float]) -> np.ndarray:
    found = np.zeros(LATENCY_BUCKETS)
    found[list(rows)] = list(rows.values())
    return found


def test_buckets_begin_where_the_hooks_put_tuples() -> None:
    """`SpoutAcksTest` has the same numbers."""
    assert BEGINS_MS[[0, 1, 5, 7, 9]].tolist() == [0, 1, 2, 3, 4]
    assert BEGINS_MS[[13, 14, 15, 16, 17, 22]].tolist() == [8, 10, 12, 14, 16, 40]
    assert BEGINS_MS[-1] == 2**18
    assert (np.diff(BEGINS_MS) > 0).all()


def test_a_quantile_lies_in_its_bucket() -> None:
    assert quantile_ms(tuples({22: 10}), 0.5) == pytest.approx(44)
    many = tuples({9: 98, 33: 2})
    assert quantile_ms(many, 0.5) == pytest.approx(4 + 50 / 98)
    assert quantile_ms(many, 0.99) == pytest.approx(256 + 64 / 2)
    assert quantile_ms(tuples({73: 1000}), 0.99) == 2**18, "no more is known"


@pytest.mark.parametrize(("rows", "share"), [({}, 0.5), ({9: 1}, 0.5), ({9: 99}, 0.99)])
def test_too_few_tuples_show_no_quantile(rows: dict[int, float], share: float) -> None:
    assert quantile_ms(tuples(rows), share) is None


def test_in_memory_of_an_older_journal_tuples_are_of_the_last_report() -> None:
    timed = observed(report(1000, (22, 1000)), report(1010, (22, 1100)))
    older = {S1: replace(timed[S1], grew_ms=0)}
    assert observe_timed(older, [report(1015, (22, 1100))])[S1].recent[22] > 90


def test_what_comes_between_two_reports_counts_and_is_forgotten() -> None:
    timed = observed(report(0, (22, 1000)))
    assert timed[S1].recent.sum() == 0, "of before the first look"
    timed = observed(report(0, (22, 1000)), report(10, (22, 1100), (30, 50)))
    assert timed[S1].recent[[22, 30]].tolist() == [100, 50]
    later = observe_timed(timed, [report(70, (22, 1100), (30, 50))])
    assert later[S1].recent[[22, 30]] == pytest.approx([100 / np.e, 50 / np.e])
    assert observe_timed(timed, [report(10, (22, 9999))])[S1] is timed[S1], "the same report"


def test_what_no_tuple_has_followed_for_a_minute_is_forgotten() -> None:
    """The quantile of a topology that stands was good for some minutes more."""
    timed = observed(report(0, (22, 1000)), report(10, (22, 9000)))
    timed = observe_timed(timed, [report(70, (22, 9000))])
    assert quantile_ms(timed[S1].recent, 0.99) is not None
    timed = observe_timed(timed, [report(75, (22, 9000))])
    assert quantile_ms(timed[S1].recent, 0.99) is None
    timed = observe_timed(timed, [report(80, (22, 9500))])
    assert timed[S1].recent.sum() == 500


def test_another_jvm_begins_again_and_nothing_stays_of_one_that_is_gone() -> None:
    timed = observed(report(0, (22, 1000)), report(5, (22, 1400)))
    assert observe_timed(timed, [report(10, (22, 3), jvm="b")])[S1].recent.sum() == 0
    assert observe_timed(timed, [report(10, jvm="b")]) == {}
    assert observe_timed(timed, []) == {}


def test_what_was_added_between_two_looks_is_of_the_same_jvm() -> None:
    before = observed(report(0, (22, 1000)))
    assert added(before, observed(report(10, (22, 1007), (73, 1)))).sum() == 8
    assert added(before, observed(report(10, (22, 1007), jvm="b"))).sum() == 0
    assert added({}, before).sum() == 0


def figures(reports: list[list[WorkerLoad]], now_s: float = 10) -> SpoutFigures:
    rates = Rates()
    timed: dict[Slot, Timed] = {}
    for time_s, told in enumerate(reports):
        loads = [NodeLoad(one.slot.supervisor, 0, (one,)) for one in told]
        rates = observe(rates, by_topology(loads).get("t", ()), {}, now_s=10.0 * time_s, ewma=1)
        timed = observe_timed(timed, told)
    return spout_figures(rates, timed, now_s)


def test_the_spouts_of_all_workers_are_added_up() -> None:
    first = [
        report(0, (9, 100), meters={"acked_tuples": 100, "failed_tuples": 5}),
        report(0, (33, 7), slot=S2, meters={"acked_tuples": 0, "failed_tuples": 0}),
    ]
    then = [
        report(10, (9, 298), meters={"acked_tuples": 4100, "failed_tuples": 6}),
        report(10, (33, 9), slot=S2, meters={"acked_tuples": 50, "failed_tuples": 0}),
    ]
    found = figures([first, then])
    assert found.acked_tps == pytest.approx(405)
    assert found.failed_tps == pytest.approx(0.1)
    assert found.latency_p50_ms == pytest.approx(4 + 100 / 198)
    assert found.latency_p99_ms == pytest.approx(5)
    alone = figures([first, [*then[:1], report(10, slot=S2)]])
    assert alone.acked_tps == pytest.approx(400), "no spout of the other worker is acked"
    assert figures([first, then], now_s=100) == NOT_KNOWN, "long ago"


def test_without_acks_nothing_is_known_and_nothing_is_0() -> None:
    assert figures([[report(0)], [report(10)]]) == NOT_KNOWN
    meters: Meters = {"heap_live_bytes": 7}
    assert figures([[report(0, meters=meters)], [report(10, meters=meters)]]) == NOT_KNOWN
    assert figures([[], []]) == NOT_KNOWN


def test_what_was_timed_survives_the_journal() -> None:
    timed = observed(report(0, (22, 1000)), report(10, (22, 1100)))
    again = decode(dict[Slot, Timed], encode(timed))
    assert again[S1].total.tolist() == timed[S1].total.tolist()
    assert again[S1].recent.tolist() == timed[S1].recent.tolist()
