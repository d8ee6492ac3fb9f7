"""Rates of all workers at once are those of each worker alone, row by row."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.cluster import Floats, Ints
from controller.core.metrics import Rates, observe
from controller.core.tasks import FIRST_COMPONENT, ends_of, worker_of
from migration.model import ExecutorId, ExecutorLoad, Slot, WorkerLoad, traffic_of

SLOTS = [Slot("s", 6700), Slot("s", 6701), Slot("t", 6700)]
TASKS = st.integers(1, 5)
HERE = {"b": FIRST_COMPONENT}
SILENT_TPS = 1e-6

Told = tuple[WorkerLoad, bool]


@dataclass
class Plain:
    """One worker's rates, by a row of a table at a time."""

    report: WorkerLoad
    cut: bool
    known: bool = False
    cpu_ns: dict[int, int] = field(default_factory=dict)
    cpu_cores: dict[int, float] = field(default_factory=dict)
    process_cores: float = 0.0
    # None: the worker had a total that did not find room in its report.
    tuples: dict[tuple[int, int], float | None] = field(default_factory=dict)
    tps: dict[tuple[int, int], float] = field(default_factory=dict)


def rows(report: WorkerLoad) -> dict[tuple[int, int], float]:
    named = {(source, target): float(tuples) for source, target, tuples in report.rows}
    folded = {(a, HERE[c]): float(n) for a, c, n in report.folded if c in HERE}
    return {**named, **folded}


def follow(before: Plain | None, told: Told, ewma: float) -> Plain:
    report, cut = told
    cpu_ns = {one.executor.start: one.cpu_ns for one in report.executors}
    fresh = Plain(report, cut, cpu_ns=cpu_ns, tuples=dict(rows(report)))
    if before is None or before.report.incarnation != report.incarnation:
        return fresh
    span_s = (report.time_ms - before.report.time_ms) / 1e3
    if span_s < 0 and report.process_cpu_ns > before.report.process_cpu_ns:
        return fresh  # by a clock that was set back
    if span_s <= 0:
        return before
    process_ns = report.process_cpu_ns - before.report.process_cpu_ns
    added = {e: ns - before.cpu_ns.get(e, 0) for e, ns in cpu_ns.items()}
    if min([process_ns, *added.values()]) < 0:
        return fresh
    weight = ewma if before.known else 1.0

    def blended(now: float, was: float) -> float:
        return weight * now / span_s + (1 - weight) * was

    after = Plain(report, cut, known=True, cpu_ns={**before.cpu_ns, **cpu_ns})
    for executor in after.cpu_ns:
        cores = added.get(executor, 0) / 1e9
        after.cpu_cores[executor] = blended(cores, before.cpu_cores.get(executor, 0.0))
    after.process_cores = blended(process_ns / 1e9, before.process_cores)
    absent = None if cut or before.cut else 0.0
    for pair in {**before.tuples, **fresh.tuples}:
        was, now = before.tuples.get(pair, absent), fresh.tuples.get(pair)
        gain = 0.0 if was is None or now is None else max(now - was, 0.0)
        tps = blended(gain, before.tps.get(pair, 0.0))
        if now is not None or tps > SILENT_TPS:
            after.tps[pair] = tps
            after.tuples[pair] = (None if cut else 0.0) if now is None else now
    return after


@st.composite
def reports(draw: st.DrawFn, slot: Slot) -> list[Told | None]:
    """Reports of one slot: often totals that grow; at times a new JVM, a fall, none, the same
    again, an older one.

    Pairs come and go, some are folded, and some find no room.
    """
    found: list[Told | None] = []
    cpu_ns: dict[int, int] = {}
    sent: dict[tuple[int, int], int] = {}
    folded: dict[tuple[int, str], int] = {}
    time_ms, process_ns, jvm = 700, 0, "a"
    for _ in range(6):
        if draw(st.integers(0, 5)) == 0:
            jvm, cpu_ns, sent, folded, process_ns = jvm + "'", {}, {}, {}, 0
        for task in draw(st.sets(TASKS)):
            cpu_ns[task] = max(cpu_ns.get(task, 0) + draw(st.integers(-1, 50)) * 10**7, 0)
        for pair in draw(st.sets(st.tuples(TASKS, TASKS), max_size=6)):
            sent[pair] = max(sent.get(pair, 0) + draw(st.integers(-1, 90)), 0)
        for row in draw(st.sets(st.tuples(TASKS, st.sampled_from(["b", "none"])), max_size=2)):
            folded[row] = folded.get(row, 0) + draw(st.integers(0, 90))
        hidden = draw(st.sets(st.sampled_from(sorted(sent)))) if sent else set()
        time_ms += draw(st.integers(-1, 3)) * 700
        process_ns += draw(st.integers(0, 10**9))
        here = draw(st.sets(st.sampled_from(sorted(cpu_ns)))) if cpu_ns else set()
        told = draw(st.permutations(sorted(sent.items())))
        report = WorkerLoad(
            "t",
            slot,
            jvm,
            time_ms,
            process_ns,
            tuple(ExecutorLoad(ExecutorId(e, e), "c", cpu_ns[e], 0, None) for e in sorted(here)),
            traffic_of((a, b, n) for (a, b), n in told if (a, b) not in hidden),
            tuple((a, c, n) for (a, c), n in sorted(folded.items())),
        )
        cut = draw(st.integers(0, 3)) == 0
        found.append(None if draw(st.integers(0, 9)) == 0 else (report, cut))
    return found


@given(st.tuples(*map(reports, SLOTS)), st.sampled_from([0.3, 1.0]))
@settings(max_examples=50)
def test_the_rates_are_those_of_each_worker(
    told: tuple[list[Told | None], ...], ewma: float
) -> None:
    plain: dict[Slot, Plain] = {}
    rates = Rates()
    for step in zip(*told, strict=True):
        here = {slot: one for slot, one in zip(SLOTS, step, strict=True) if one is not None}
        plain = {slot: follow(plain.get(slot), one, ewma) for slot, one in here.items()}
        rates = observe(rates, here.values(), HERE, now_s=0.0, ewma=ewma)
        assert rates.slots == tuple(plain)
        for w, (slot, want) in enumerate(plain.items()):
            assert rates.known[w] == want.known
            assert rates.incarnations[w] == want.report.incarnation
            assert rates.time_ms[w] == want.report.time_ms
            assert rates.process_cores[w] == pytest.approx(want.process_cores)
            cores = {(e, e): used for e, used in want.cpu_cores.items()}
            unknown = {(e, e): 0.0 for e in want.cpu_ns}
            assert by_ends(rates.executors, rates.cpu_cores, w) == pytest.approx(
                cores if want.known else unknown
            ), slot
            found = by_ends(rates.pairs, rates.tps, w)
            assert found == pytest.approx(
                want.tps if want.known else dict.fromkeys(want.tuples, 0.0)
            )


def by_ends(keys: Ints, values: Floats, worker: int) -> dict[tuple[int, int], float]:
    first, second = ends_of(keys)
    here = worker_of(keys) == worker
    ends = zip(first[here].tolist(), second[here].tolist(), strict=True)
    return dict(zip(ends, values[here].tolist(), strict=True))
