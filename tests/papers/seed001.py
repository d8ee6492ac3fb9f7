"""Figures of 001: threads and slots by LSA and MBA, mappings by DSM, RSM and SAM."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, takewhile
from math import fsum
from typing import Any

from controller.policies.component_graph import input_rates
from controller.policies.model_driven.mapping import (
    Allocation,
    Lacking,
    Placed,
    at,
    dsm,
    rsm,
    sam,
)
from controller.policies.profiles import Performance
from tests.papers import seed001_pairs
from tests.papers.acquisition import (
    cpu_of,
    empty_slots,
    literal_bundles,
    lsa,
    map_growing,
    mba,
    memory_of,
    slots_needed,
    slots_used,
    threads_of,
)
from tests.papers.performance_model import Sweep, Trial, perf_model
from tests.papers.prediction import predicted_rate, task_rate
from tests.papers.seed001_pairs import RATES_TPS, RSM_OPEN, VMS, needs_of, tasks_at
from tests.papers.table import Paper
from tests.papers.task_profiles import TASKS, diamond, linear, star

Allocate = Callable[[Sequence[Performance], float], Allocation]
Tasks = dict[str, Allocation]


def reproduce() -> Paper:
    """Compute all that arithmetic can reach.

    Returns
    -------
    Paper
        Allocations, mapped slots, highest rates on 20 slots and predicted rates.
    """
    paper = Paper("001")
    _profile(paper)
    _lsa_sums(paper)
    _mba_sums(paper)
    for rate in RATES_TPS:
        _lsa_slots(paper, rate)
        _mba_slots(paper, rate)
    _diamond(paper)
    _highest(paper)
    _predicted(paper)
    _examples(paper)
    seed001_pairs.compare(paper)
    _measured(paper)
    return paper


def _cpu(tasks: Tasks) -> float:
    return fsum(map(cpu_of, tasks.values()))


def _memory(tasks: Tasks) -> float:
    return fsum(map(memory_of, tasks.values()))


def _profile(paper: Paper) -> None:
    printed = {("xml", 1): 310, ("pi", 1): 105, ("pi", 2): 110, ("file", 1): 60_000}
    for (task, threads), rate in printed.items():
        what = f"{task}, t/s of {threads} threads; printed: {rate}"
        ours = at(TASKS[task], threads).rate_tps
        paper.row("5.3", what, None, ours, note="an input here, from the authors' scripts")
    _perf_model(paper)
    paper.row(
        "5.3",
        "table, t/s of 60 threads",
        60,
        at(TASKS["table"], 60).rate_tps,
        differs="8.4.1 and the authors' scripts have 40; only so the slots come out",
    )
    paper.row(
        "8.4.1",
        "xml, memory of a thread, %",
        22.98,
        100 * at(TASKS["xml"], 1).memory_frac,
        differs="the authors' scripts have 35.63; the printed 623 % for all tasks needs that",
    )


def _perf_model(paper: Paper) -> None:
    """Let algorithm 1 find the profile of Pi again in a task that behaves as that profile."""

    def trial(threads: int, rate_tps: float) -> Trial:
        known = at(TASKS["pi"], threads)
        stable = rate_tps <= known.rate_tps
        return Trial(0.0 if stable else 1.0, known.cpu_frac, known.memory_frac)

    found = perf_model(trial, Sweep(max_threads=8, max_rate_tps=200.0))
    peaks = tuple(point.rate_tps for point in found)
    note = "an example of ours: Pi as profiled; it looks on for two threads after the peak is flat"
    paper.row("5.1, algorithm 1", "pi, stable t/s of 1, 2, … threads", None, peaks, note=note)


def _lsa_sums(paper: Paper) -> None:
    truncated = "the text cuts digits off"
    cpu, memory = {50: 2.42}, {50: 6.23, 100: 12.47}
    blob, table = {50: 25, 100: 50, 200: 100}, {50: 18}
    for rate in RATES_TPS:
        tasks, what = tasks_at(lsa, linear(), rate), f"linear, {rate} t/s, LSA"
        row = partial(paper.row, "8.4.1")
        row(f"{what}: CPU, slots", cpu.get(rate), _cpu(tasks), differs=truncated, within=0.005)
        row(
            f"{what}: memory, slots",
            memory.get(rate),
            _memory(tasks),
            differs=truncated,
            within=0.005,
        )
        row(f"{what}: Blob threads", blob[rate], threads_of(tasks["blob"]))
        slip = "a slip: the text's own split of them, 4 × 2 + 9, is 17, as 50/3 rounded up"
        row(f"{what}: Table threads", table.get(rate), threads_of(tasks["table"]), differs=slip)
    at_100 = tasks_at(lsa, linear(), 100)["blob"]
    use = (100 * cpu_of(at_100), 100 * memory_of(at_100))
    paper.row("8.4.1", "linear, 100 t/s, LSA: Blob CPU, memory, %", (337, 1196), use, within=0.5)
    memory_50 = 100 * memory_of(tasks_at(lsa, linear(), 50)["blob"])
    paper.row("8.4.1", "linear, 50 t/s, LSA: Blob memory, %", 598, memory_50, within=0.5)


def _mba_sums(paper: Paper) -> None:
    cpu, blob = {50: 3.23}, {100: 170}
    for rate in RATES_TPS:
        tasks, what = tasks_at(mba, linear(), rate), f"linear, {rate} t/s, MBA"
        row = partial(paper.row, "8.4.1")
        row(f"{what}: CPU, slots", cpu.get(rate), _cpu(tasks), within=0.005)
        row(f"{what}: Blob threads", blob.get(rate), threads_of(tasks["blob"]))
        row(f"{what}: Table threads", None, threads_of(tasks["table"]))
    one = tasks_at(mba, linear(), 100)["blob"]
    use = (cpu_of(one), memory_of(one))
    paper.row(
        "8.4.1", "linear, 100 t/s, MBA: Blob CPU, memory, slots", (3.15, 3.26), use, within=0.005
    )
    memory_50 = 100 * memory_of(tasks_at(mba, linear(), 50)["blob"])
    paper.row(
        "8.4.1",
        "linear, 50 t/s, MBA: Blob memory, %",
        128,
        memory_50,
        differs="the text cuts digits off",
        within=0.5,
    )


def _lsa_slots(paper: Paper, rate: int) -> None:
    planned, mapped = {50: (7, 7), 100: (13, 13), 200: (25, 28)}[rate]
    tasks, where = tasks_at(lsa, linear(), rate), "8.4.1, figure 7a"
    plain, what = slots_needed(tasks.values()), f"linear, {rate} t/s"
    orders = [[*list(TASKS)[i:], *list(TASKS)[:i]] for i in range(len(TASKS))]
    by_rsm = [_rsm_slots({name: tasks[name] for name in order}) for order in orders]
    paper.row(where, f"{what}: LSA slots", planned, plain)
    paper.row(where, f"{what}: LSA+RSM slots", mapped, by_rsm[0], differs=RSM_OPEN)
    what = f"{what}: LSA+RSM slots, fewest and most over the task to begin with"
    paper.row(where, what, None, (min(by_rsm), max(by_rsm)))


def _mba_slots(paper: Paper, rate: int) -> None:
    printed, where = {50: 4, 100: 7, 200: 15}[rate], "8.4.1, figure 7a"
    tasks, what = tasks_at(mba, linear(), rate), f"linear, {rate} t/s"
    fewest = slots_needed(tasks.values())
    by_sam, _ = map_growing(fewest, partial(sam, tasks))
    mapped = "the printed one is the mapped count, MBA+SAM"
    paper.row(where, f"{what}: MBA slots", printed, fewest, differs=mapped)
    paper.row(where, f"{what}: MBA+SAM slots", printed, by_sam)
    literal = {name: literal_bundles(task) for name, task in tasks.items()}
    _, placed = map_growing(fewest, partial(sam, literal))
    paper.row(
        where,
        f"{what}: MBA+SAM slots, algorithm 6 to the letter",
        printed,
        slots_used(placed),
        differs="its test for a full bundle gives whole slots to what MBA counted as a share",
    )
    if rate == 50:
        paper.row(
            where,
            f"{what}: slots that SAM needs more than MBA",
            1,
            by_sam - fewest,
            differs="a sentence of the text; its own counts, 4 and 4, say none",
        )


def _rsm_slots(tasks: Tasks) -> int:
    asked, _ = map_growing(slots_needed(tasks.values()), partial(rsm, needs_of(tasks)))
    return asked


def _diamond(paper: Paper) -> None:
    where = "8.4.1, figure 7b"
    for rate in RATES_TPS:
        by_lsa, by_mba = tasks_at(lsa, diamond(), rate), tasks_at(mba, diamond(), rate)
        slots, what = slots_needed(by_mba.values()), f"diamond, {rate} t/s"
        paper.row(where, f"{what}: LSA slots", None, slots_needed(by_lsa.values()))
        paper.row(where, f"{what}: MBA slots", None, slots)
        paper.row(
            where, f"{what}: MBA+SAM slots", None, map_growing(slots, partial(sam, by_mba))[0]
        )
    tasks = tasks_at(lsa, diamond(), 50)
    more = _rsm_slots(tasks) - slots_needed(tasks.values())
    paper.row(
        where,
        "diamond, 50 t/s: slots that RSM needs more than LSA",
        1,
        more,
        differs="no weights of R-Storm give it (row of figure 7)",
    )
    paper.row(
        "8.4.1",
        "diamond, 100 t/s: t/s of Table by the shuffle, with 60 + 60 + 40 threads",
        90,
        task_rate(TASKS["table"], [0] * 60 + [1] * 60 + [2] * 40),
        differs="the paper's is measured: 22.5 t/s, a quarter of it, is more than the profile has"
        " for 40 threads, 20",
    )


def _highest(paper: Paper) -> None:
    """Find the highest rates, in steps of 10, that get 20 slots."""
    where, slots = "8.5.1", sum(VMS)
    printed = {("linear", "LSA"): 160, ("linear", "MBA"): 280}
    for graph in (linear, diamond, star):
        for label, allocate in (("LSA", lsa), ("MBA", mba)):
            name = graph.__name__
            rate = _highest_rate(allocate, graph())
            what = f"{name}, {label}: highest rate on {slots} slots, t/s"
            paper.row(where, what, printed.get((name, label)), rate)
    by_lsa = tasks_at(lsa, linear(), _highest_rate(lsa, linear()))
    by_mba = tasks_at(mba, linear(), _highest_rate(mba, linear()))
    paper.row(
        where, f"linear, LSA on {slots} slots: Table threads", 54, threads_of(by_lsa["table"])
    )
    paper.row(where, f"linear, LSA on {slots} slots: memory, slots", None, _memory(by_lsa))
    paper.row(where, f"linear, MBA on {slots} slots: CPU, slots", None, _cpu(by_mba))
    for task, threads in (("blob", 470), ("table", 420)):
        what = f"linear, MBA on {slots} slots: {task} threads"
        paper.row(where, what, threads, threads_of(by_mba[task]))
    into_xml = input_rates(star(), {}, _highest_rate(mba, star()))["xml"]
    paper.row("8.5.2", f"star, MBA on {slots} slots: t/s into XML", 480, into_xml)


def _highest_rate(allocate: Allocate, graph: Any) -> int:
    fitting = takewhile(
        lambda rate: slots_needed(tasks_at(allocate, graph, rate).values()) <= sum(VMS),
        count(10, 10),
    )
    return max(fitting)


def _predicted(paper: Paper) -> None:
    """Predict the rate of the linear topology on 20 slots for each mapping of MBA's threads."""
    tasks = tasks_at(mba, linear(), _highest_rate(mba, linear()))
    relative = input_rates(linear(), {}, 1.0)

    def predicted(placed: Placed | Lacking) -> float | str:
        if isinstance(placed, Lacking):
            return f"no room for a thread of {placed.task}"
        return predicted_rate(TASKS, relative, placed)

    where, what = "8.5.1, figure 10a", "linear, MBA on 20 slots: predicted t/s with"
    by_dsm = dsm({name: threads_of(task) for name, task in tasks.items()}, sum(VMS))
    paper.row(
        where,
        f"{what} DSM",
        200,
        predicted(by_dsm),
        differs="23 threads a slot, between the profile's 20 and 30: interpolated here; the"
        " 10 t/s of 20 threads on each of 20 slots make the printed 200",
    )
    of_20 = at(TASKS["blob"], 20).rate_tps
    what_if = f"{what} DSM, if each slot has 20 Blob threads"
    paper.row(where, what_if, 200, sum(VMS) * of_20, otherwise=True)
    paper.row(
        where,
        f"{what} RSM",
        315,
        predicted(rsm(needs_of(tasks), empty_slots(VMS))),
        differs="memory of a thread alone is a hard limit in algorithm 5, so four Blob"
        " threads fill a slot; the printed 25 to 30 come with a thread's share (below)",
    )
    paper.row(
        where,
        f"{what} SAM",
        280,
        predicted(sam(tasks, empty_slots(VMS))),
        differs="a shuffle gives every thread the same share, which is too much for the slot"
        " with the rest; the slots' own peaks add up to the printed rate",
        within=5,
    )
    by_sam = sam(tasks, empty_slots(VMS))
    if not isinstance(by_sam, Lacking):
        peaks = predicted_rate(TASKS, relative, by_sam, evenly=False)
        what_if = f"{what} SAM, the slots' own peaks added up"
        paper.row(where, what_if, 280, peaks, otherwise=True)
    paper.row(
        "8.5.1",
        "Table, t/s of 3 threads, interpolated",
        6,
        at(TASKS["table"], 3).rate_tps,
        differs="rounded in the text",
        within=0.5,
    )


def _examples(paper: Paper) -> None:
    """Map figure 4: four tasks onto three machines of two slots."""
    sizes, threads = (2, 3, 3, 4), {"B": 5, "O": 4, "Y": 3, "G": 5}
    tasks = {
        name: Allocation(count // size, size, count % size, 0.2, 0.2)
        for (name, count), size in zip(threads.items(), sizes, strict=True)
    }
    by_dsm = "B: s11 s12 s21 s22 s31, O: s32 s11 s12 s21, Y: s22 s31 s32, G: s11 s12 s21 s22 s31"
    by_sam = "B: s11 s11 s31 s31 s32, O: s12 s12 s12 s32, Y: s21 s21 s21, G: s22 s22 s22 s22 s32"
    placed = sam(tasks, empty_slots([2, 2, 2]))
    paper.row("figure 4", "mapping by DSM", by_dsm, _slots_text(dsm(threads, 6)))
    if not isinstance(placed, Lacking):
        paper.row("figure 4", "mapping by SAM", by_sam, _slots_text(placed))


def _slots_text(placed: Placed) -> str:
    return ", ".join(
        f"{name}: " + " ".join(f"s{slot // 2 + 1}{slot % 2 + 1}" for slot in slots)
        for name, slots in placed.items()
    )


def _measured(paper: Paper) -> None:
    wiring = "the wiring of the application topologies is a figure that is not in our text"
    paper.beyond("8.4.2", "slots of MBA+SAM below LSA+RSM, applications", "33 to 50 %", wiring)
    run = "a measurement on their cluster"
    paper.beyond("8.4", "reached rate below plan", "5-10 % MBA+SAM, 30-40 % LSA+RSM", run)
    paper.beyond("8.5.1", "R² of predicted and actual rate", "0.71 to 0.95", run)
    paper.beyond("8.5.2", "R² of CPU and of memory", "at least 0.81 and 0.55", run)
    paper.beyond("8.6, figure 13", "latency of the five pairs", "–", run)
