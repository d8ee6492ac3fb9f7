"""Rates read straight from a journal's rows are those that the controller measures."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core import metrics
from controller.core.tasks import FIRST_COMPONENT
from controller.replay import rates
from migration import wire
from migration.model import ExecutorId, ExecutorLoad, NodeLoad, Slot, WorkerLoad, traffic_of

SLOT = Slot("s", 6700)
TASKS = st.integers(1, 5)
HERE = {"b": FIRST_COMPONENT}


@st.composite
def reports(draw: st.DrawFn) -> list[WorkerLoad]:
    """Reports of one slot: mostly totals that grow; at times a new JVM, a fall, the same again.

    Pairs come and go, and some are folded.
    """
    found: list[WorkerLoad] = []
    cpu_ns: dict[int, int] = {}
    sent: dict[tuple[int, int], int] = {}
    folded: dict[tuple[int, str], int] = {}
    time_ms, process_ns, jvm = 0, 0, "a"
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.integers(0, 5)) == 0:
            jvm, cpu_ns, sent, folded, process_ns = jvm + "'", {}, {}, {}, 0
        for task in draw(st.sets(TASKS)):
            cpu_ns[task] = cpu_ns.get(task, 0) + draw(st.integers(-1, 50)) * 10**7
        for pair in draw(st.sets(st.tuples(TASKS, TASKS), max_size=6)):
            sent[pair] = max(sent.get(pair, 0) + draw(st.integers(-1, 90)), 0)
        for row in draw(st.sets(st.tuples(TASKS, st.sampled_from(["b", "none"])), max_size=2)):
            folded[row] = folded.get(row, 0) + draw(st.integers(0, 90))
        hidden = draw(st.sets(st.sampled_from(sorted(sent)))) if sent else set()
        time_ms += draw(st.integers(0, 3)) * 700
        process_ns += draw(st.integers(0, 10**9))
        here = draw(st.sets(st.sampled_from(sorted(cpu_ns)))) if cpu_ns else set()
        told = draw(st.permutations(sorted(sent.items())))
        found.append(
            WorkerLoad(
                "t",
                SLOT,
                jvm,
                time_ms,
                process_ns,
                tuple(
                    ExecutorLoad(ExecutorId(e, e), "c", cpu_ns[e], 0, None) for e in sorted(here)
                ),
                traffic_of((a, b, n) for (a, b), n in told if (a, b) not in hidden),
                tuple((a, c, n) for (a, c), n in sorted(folded.items())),
            )
        )
    return found


@given(reports(), st.lists(st.integers(0, 1), min_size=6, max_size=6))
@settings(max_examples=100)
def test_the_rates_are_the_controllers_own(told: list[WorkerLoad], left_out: list[int]) -> None:
    theirs: metrics.Rates = {}
    ours: dict[str, rates.JvmRates] = {}
    for report, missing in zip(told, left_out, strict=False):
        load = NodeLoad("s", report.time_ms, (report,), missing)
        theirs = metrics.observe(theirs, [load], "t", now_s=0.0, ewma=1.0, targets=HERE)
        read = msgspec.json.decode(wire.encode(load), type=rates.NodeReport)
        ours = rates.observe(ours, [read], "t", HERE)
        want, got = theirs[SLOT], ours[str(SLOT)]
        assert got.known == want.known
        assert (got.report.incarnation, got.report.time_ms) == (
            want.incarnation,
            want.time_ms,
        )
        assert got.process_cores == pytest.approx(want.process_cores)
        cpu = {(e.start, e.end): cores for e, cores in want.cpu_cores.items() if cores}
        ranges = [(key >> rates.TASK_BITS, key & 0xFFFF) for key in got.ranges.tolist()]
        cores = dict(zip(ranges, got.cpu_cores.tolist(), strict=got.known))
        assert {e: used for e, used in cores.items() if used} == pytest.approx(cpu)
        ends = zip(want.sent.source.tolist(), want.sent.target.tolist(), strict=True)
        keys = [source << rates.TASK_BITS | target for source, target in ends]
        told_tps = zip(keys, want.sent.tps.tolist(), strict=True)
        tps = {pair: rate for pair, rate in told_tps if rate}
        found = dict(zip(got.pairs.tolist(), got.tps.tolist(), strict=True))
        assert {pair: rate for pair, rate in found.items() if rate} == pytest.approx(tps)
