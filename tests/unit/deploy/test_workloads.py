"""Each oracle finds right what is right, and wrong what is wrong by one."""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.lab import LabError, workloads
from deploy.lab.cluster import Lab
from deploy.lab.home.versions import REPOSITORY
from deploy.lab.ledger import SATURATE, Ledger, Totals
from deploy.lab.workloads import (
    WORKLOADS,
    Evidence,
    check_rate,
    conf_of,
    configure,
    judge,
    record,
)

JAVA = REPOSITORY / "deploy/lab/workload/src/main/java/nstorm/workload"
KAFKA = REPOSITORY / "deploy/lab/kafka/src/main/java/nstorm/workload"
LINES = {1: ["a b", "b c"], 2: ["c c"]}
# Task 1 has emitted "a b", "b c", "a b", and task 2 "c c".
EMITTED = [(1, 3), (2, 1)]
RIGHT = {"a": 2, "b": 3, "c": 3}
H3 = 1 + 1 / 2 + 1 / 3


def evidence(workload: str, **told: Any) -> Evidence:
    """Make one of four sentences, all acked; what is slow to prepare has prepared."""
    slow = [{"task": task, "prepared_ms": 5000} for task in (8, 9) if workload == "slow-prepare"]
    return replace(
        Evidence(
            conf=configure(workload, {"workload.harmonic.terms": 3}),
            totals=Totals(emitted=4, acked=4, words_emitted=8, words_counted=8),
            emitted=EMITTED,
            lines=LINES,
            told=[{"task": 5, "counts": {"a": 2, "b": 3}}, {"task": 6, "counts": {"c": 3}}, *slow],
            rows={},
        ),
        **told,
    )


def told(found: Evidence, workload: str) -> list[str]:
    return [str(difference) for difference in WORKLOADS[workload].oracle(found)]


COUNTING = ("counters", "unacked", "drift", "slow-prepare", "threads")


@pytest.mark.parametrize("workload", COUNTING)
def test_counts_must_be_what_was_emitted(workload: str) -> None:
    found = evidence(workload)
    assert told(found, workload) == []
    forgotten = replace(found, told=[{"task": 5, "counts": {"a": 1, "b": 3}}, *found.told[1:]])
    assert told(forgotten, workload) == ["count of 'a': 1, must be 2"]
    invented = replace(found, told=[*found.told, {"task": 7, "counts": {"d": 1}}])
    assert told(invented, workload) == ["count of 'd': 1, must be 0"]
    silent = replace(found, told=[found.told[0], *found.told[2:]])
    assert told(silent, workload) == ["count of 'c': 0, must be 3"]


def test_numbers_come_in_their_order_by_each_way() -> None:
    ways = {"spout": 3, "pass": 2, "hold": 4}
    rest = {"spout": 1, "pass": 2}
    rows = [{"task": 11, "lines": ways, "late": {}}, {"task": 12, "lines": rest, "late": {}}]
    found = evidence("numbers", told=rows)
    assert told(found, "numbers") == []
    late = replace(found, told=[rows[0], {**rows[1], "late": {"pass": 1}}])
    assert told(late, "numbers") == ["late lines from 'pass': 1, must be 0"]
    lost = replace(found, told=[{**rows[0], "lines": {**ways, "hold": 3}}, rows[1]])
    assert told(lost, "numbers") == ["lines from 'hold': 3, must be 4"]


ANSWERING = ("counters", "batches", "connections", "page-views", "trident")


@pytest.mark.parametrize("workload", ANSWERING)
def test_a_task_that_keeps_something_must_answer_once(workload: str) -> None:
    rows: list[dict[str, Any]] = [{"task": task, "minutes": {}} for task in (5, 5, 6)]
    found = evidence(workload, keepers={5, 6, 7}, told=rows, emitted=[])
    answers = [line for line in told(found, workload) if line.startswith("answers")]
    assert answers == ["answers of task 5: 2, must be 1", "answers of task 7: 0, must be 1"]


def test_two_copies_of_a_task_must_not_share_its_counts() -> None:
    halves = [{"task": 5, "counts": RIGHT}, {"task": 5, "counts": {}}]
    assert told(evidence("counters", told=halves), "counters") == [
        "answers of task 5: 2, must be 1"
    ]


@pytest.mark.parametrize(
    ("totals", "wrong"),
    [
        (Totals(4, 3, 1), ["sentences 'acked': 3, must be 4", "sentences 'failed': 1, must be 0"]),
        (Totals(4, 3), ["sentences 'acked': 3, must be 4", "sentences 'pending': 1, must be 0"]),
        (Totals(4, 4, 0, 2), ["sentences 'double_acked': 2, must be 0"]),
    ],
)
def test_sentences_must_all_be_acked_once(totals: Totals, wrong: list[str]) -> None:
    assert told(evidence("counters", totals=totals), "counters") == wrong


def test_words_must_arrive_where_nobody_counts_them() -> None:
    assert told(evidence("wordcount"), "wordcount") == []
    lost = Totals(emitted=4, acked=4, words_emitted=8, words_counted=7)
    assert told(evidence("wordcount", totals=lost), "wordcount") == ["words 'sent': 7, must be 8"]


def test_a_partition_must_be_read_by_one_without_a_break() -> None:
    right = {
        "opened": [{"task": 1, "from": 0, "alone": True}, {"task": 1, "from": 3, "alone": True}],
        "closed": [{"task": 1, "from": 0, "to": 3}],
    }
    emitted = [(1, 3), (1, 1), (2, 0)]
    found = evidence("partitions", emitted=emitted, rows=right)
    whole = evidence("partitions", emitted=[(1, 4)], rows={})
    told_of_whole = told(whole, "partitions")
    assert told(found, "partitions") == told_of_whole
    again = {**right, "opened": [right["opened"][0], {"task": 1, "from": 2, "alone": True}]}
    assert told(replace(found, rows=again), "partitions") == [
        "begin of a reader of partition 1: 2, must be an end or 0",
        *told_of_whole,
    ]
    two = {**right, "opened": [right["opened"][0], {"task": 1, "from": 3, "alone": False}]}
    assert told(replace(found, rows=two), "partitions") == [
        "reader of partition 1 at 3: one of two, must be alone",
        *told_of_whole,
    ]


def test_heap_must_be_held() -> None:
    rows = [{"task": 5, "counts": RIGHT, "held": 8}]
    assert told(evidence("heap", told=rows), "heap") == []
    rows[0]["held"] = 7
    assert told(evidence("heap", told=rows), "heap") == ["pieces held by task 5: 7, must be 8"]


def test_heap_is_held_up_to_its_limit() -> None:
    rows = [{"task": 5, "counts": RIGHT, "held": 2}]
    limited = evidence("heap", told=rows)
    conf = {**limited.conf, "workload.heap.mb": 1, "workload.heap.chunk.bytes": 1 << 19}
    assert told(replace(limited, conf=conf), "heap") == []


def of_map(size_mb: int, *held_added: tuple[int, int]) -> list[str]:
    """Judge the maps of two counters, of five words and of three; each adds 9,500 entries."""
    found = evidence("heap")
    rows = [
        {**row, "held": held, "added": added}
        for row, (held, added) in zip(found.told, held_added, strict=True)
    ]
    conf = {"workload.heap.kind": "map", "workload.heap.mb": size_mb}
    conf["workload.heap.chunk.bytes"] = 1 << 18
    return told(replace(found, told=rows, conf=configure("heap", conf)), "heap")


def test_a_map_must_have_its_entries_and_its_words() -> None:
    assert of_map(2, (47_500, 5), (28_500, 3)) == []
    assert of_map(1, (38_000, 5), (28_500, 3)) == []
    assert of_map(1, (38_001, 5), (28_499, 3)) == [
        "pieces held by task 5: 38001, must be 38000",
        "pieces held by task 6: 28499, must be 28500",
    ]
    # Their sum is right.
    assert of_map(1, (38_000, 4), (28_500, 4)) == [
        "added to the map of task 5: 4, must be 5",
        "added to the map of task 6: 4, must be 3",
    ]


def test_harmonic_sums_must_be_right_to_the_last_bit() -> None:
    sums = {"a": H3 + H3, "b": H3 + H3 + H3, "c": H3 + H3 + H3}
    rows = [{"task": 5, "counts": RIGHT, "sums": sums}]
    assert told(evidence("harmonic", told=rows), "harmonic") == []
    sums["a"] = math.nextafter(sums["a"], 0)
    assert [line[:20] for line in told(evidence("harmonic", told=rows), "harmonic")] == [
        "harmonic sum of 'a':"
    ]


def test_batches_must_be_written() -> None:
    rows = {"batch": [{"counts": {"a": 2, "b": 1}}, {"counts": {"b": 2, "c": 3}}]}
    assert told(evidence("batches", rows=rows), "batches") == []
    rows["batch"].append({"counts": {"c": 1}})
    assert told(evidence("batches", rows=rows), "batches") == ["written 'c': 4, must be 3"]
    del rows["batch"][1:]
    assert len(told(evidence("batches", rows=rows), "batches")) == 2


def test_a_connection_must_have_one_holder_and_be_closed() -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "batch": [{"counts": RIGHT}],
        "connected": [{"connection": one, "alone": True} for one in ("5a", "6a", "6b")],
        "disconnected": [{"connection": "6a"}],
    }
    in_use = [{"task": task, "connection": one} for task, one in ((5, "5a"), (6, "6b"))]
    found = evidence("connections", rows=rows, told=in_use)
    assert told(found, "connections") == []
    leaked = replace(found, rows={**rows, "disconnected": []})
    assert told(leaked, "connections") == ["closed or in use: connection '6a': 0, must be 1"]
    closed = replace(found, rows={**rows, "disconnected": [{"connection": "6a"}] * 2})
    assert told(closed, "connections") == ["closed or in use: connection '6a': 2, must be 1"]
    twice = replace(found, rows={**rows, "batch": [{"counts": RIGHT}, {"counts": {"c": 1}}]})
    assert told(twice, "connections") == ["written 'c': 4, must be 3"]
    rows["connected"][2]["alone"] = False
    assert told(found, "connections") == ["holder of connection 6b: one of two, must be alone"]


def test_prepare_must_take_its_time() -> None:
    found = evidence("slow-prepare")
    rows = [*found.told[:2], {"task": 8, "prepared_ms": 4999}, {"task": 9, "prepared_ms": 5000}]
    assert told(replace(found, told=rows), "slow-prepare") == [
        "milliseconds of prepare of task 8: 4999, must be 5000"
    ]
    rows[2] = {"task": 8}
    assert told(replace(found, told=rows), "slow-prepare") == ["tasks 'slow': 1, must be 2"]


def test_shared_client_must_be_open() -> None:
    found = evidence("threads")
    rows = [*found.told, {"task": 8, "answers": 8, "refusals": 0}]
    assert told(replace(found, told=rows), "threads") == []
    rows[2] = {**rows[2], "refusals": 1}
    assert told(replace(found, told=rows), "threads") == ["refusals in task 8: 1, must be 0"]


def of_windows(*rows: Mapping[str, Any], emitted: int = 6) -> list[str]:
    """Judge windows of 4 lines that slide by 2: lines 0 to 5 are at 10 to 60 ms."""
    sizes = {"workload.window.ms": 40, "workload.window.slide.ms": 20}
    found = evidence("windows", emitted=[(1, emitted)], lines={1: ["x", "y"]})
    found = replace(found, conf={**found.conf, **sizes}, rows={"window": rows})
    return told(replace(found, totals=Totals(emitted, emitted - 3)), "windows")


# x has the numbers 0, 2, 4 at 10, 30, 50 ms; y has 1, 3, 5 at 20, 40, 60 ms.
CLOSED = (
    {"end_ms": 20, "sums": {"x": 0, "y": 1}},
    {"end_ms": 40, "sums": {"x": 2, "y": 4}},
    {"end_ms": 60, "sums": {"y": 8}},
)


def test_windows_must_have_their_sums_once() -> None:
    last = {"end_ms": 60, "sums": {"x": 6}}
    assert of_windows(*CLOSED) == []
    assert of_windows(*CLOSED, last) == []
    last["sums"] = {"x": 4}
    assert of_windows(*CLOSED, last) == ["sum of window (60, 'x'): 4, must be 6"]
    assert of_windows(*CLOSED, CLOSED[2]) == ["times that came window (60, 'y'): 2, must be 1"]
    assert of_windows(*CLOSED[:2]) == [
        "times that came window (60, 'y'): 0, must be 1",
        "sum of window (60, 'y'): 0, must be 8",
    ]


def test_a_window_nobody_can_have_seen_is_wrong() -> None:
    assert of_windows(*CLOSED, {"end_ms": 120, "sums": {"x": 1}}) == [
        "times that came window (120, 'x'): 1, must be 0",
        "sum of window (120, 'x'): 1, must be 0",
    ]


LOG = [
    "6.0.0.1 GET /a 200 browser",
    "7.0.0.1 GET /a 200 robot",
    "7.0.0.1 POST /a 200 browser",
    "7.0.0.1 GET /a 404 browser",
    "7.0.0.1 GET /a.png 200 browser",
]


def of_views(written: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    found = evidence("page-views", emitted=[(1, 11)], lines={1: LOG})
    rows = {"views": [{"task": 5, "minutes": written}]}
    whole = replace(found, rows=rows, told=[{"task": 5, "minutes": kept}])
    return told(replace(whole, conf={"workload.minute.lines": 6}), "page-views")


def test_views_must_be_written_or_kept() -> None:
    assert of_views({"0": {"america /a": 2}}, {"1": {"america /a": 1}}) == []
    assert of_views({}, {"1": {"america /a": 1}}) == ["views ('0', 'america /a'): 0, must be 2"]
    assert of_views({"0": {"america /a": 2}}, {"1": {"america /a": 1, "asia /a": 1}}) == [
        "views ('1', 'asia /a'): 1, must be 0"
    ]


def batch(transaction: int, first: int, end: int) -> dict[str, int]:
    return {"partition": 1, "transaction": transaction, "from": first, "to": end}


def test_a_batch_that_comes_again_must_be_the_same() -> None:
    found = evidence("trident", emitted=[(1, 3)])
    right = [{"task": 5, "counts": {"a": 2, "b": 3, "c": 1}}]
    found = replace(found, told=right, totals=Totals())
    rows = [batch(1, 0, 2), batch(2, 2, 3), batch(2, 2, 3)]
    assert told(replace(found, rows={"emitted": rows}), "trident") == []
    twice = replace(found, rows={"emitted": rows}, told=[{"task": 5, "counts": {"a": 4, "b": 3}}])
    assert told(twice, "trident") == ["count of 'a': 4, must be 2", "count of 'c': 0, must be 1"]
    rows[2] = batch(2, 2, 4)
    assert told(replace(found, rows={"emitted": rows}), "trident") == [
        "lines of partition and batch (1, 2): (2, 4), must be (2, 3)"
    ]
    rows[1:] = [batch(2, 1, 3)]
    assert told(replace(found, rows={"emitted": rows}), "trident") == [
        "first line of partition and batch (1, 2): 1, must be 2"
    ]


def write(file: Path, *rows: object) -> None:
    with file.open("a") as stream:
        stream.write("".join(json.dumps(row) + "\n" for row in rows))


def account(emitted: int, double_acked: int = 0) -> dict[str, object]:
    """Make a ledger's row of one spout, whose sentences are all acked."""
    spout = {
        "task": 1, "emitted": emitted, "acked": emitted, "failed": 0, "double_acked": double_acked
    }  # fmt: skip
    counts = {"t_ms": 0, "words_emitted": 0, "words_counted": 0, "ticks": 0}
    return {**counts, "tasks": [1, 5], "keepers": [5], "spouts": [spout]}


COUNTS = {"a": 2, "b": 3, "c": 1}


class Played:
    """Three lines of `counters`, in a time that goes on when the judge sleeps."""

    def __init__(self, directory: Path, tick_s: int) -> None:
        self.ledger = Ledger(directory)
        self.now_s = 0.0
        self.asked_s: dict[int, float] = {}
        self.events: list[tuple[float, dict[str, object]]] = []
        self.file = directory / f"6700-{os.getpid()}.jsonl"
        record(directory, "counters", {"workload.tick.secs": tick_s})
        (directory / "1.lines").write_text("a b\nb c\n")
        write(self.file, account(3))

    def answer(self, at_s: float, number: int, **counts: int) -> None:
        self.events.append((at_s, {"row": f"kept-{number}", "task": 5, "counts": counts}))

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        write(self.file, *[row for at_s, row in self.events if at_s <= self.now_s])
        self.events = [event for event in self.events if event[0] > self.now_s]


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Played]:
    """Give a topology whose ticks come as often as asked for."""

    def play(tick_s: int) -> Played:
        made = Played(tmp_path, tick_s)
        clock = SimpleNamespace(monotonic=lambda: made.now_s, sleep=made.sleep)
        monkeypatch.setattr(workloads, "time", clock)
        return made

    return play


def test_a_second_copy_that_answers_later_is_seen(played: Callable[[int], Played]) -> None:
    topology = played(1)
    topology.answer(0.5, 1, **COUNTS)
    topology.answer(2.0, 1)
    verdict = judge(topology.ledger, 0)
    assert [str(wrong) for wrong in verdict.differences] == ["answers of task 5: 2, must be 1"]
    assert verdict.answers == 2


def test_a_second_ack_that_comes_later_is_seen(played: Callable[[int], Played]) -> None:
    topology = played(1)
    topology.answer(0.5, 1, **COUNTS)
    topology.events.append((2.0, account(3, double_acked=1)))
    verdict = judge(topology.ledger, 0)
    assert [str(wrong) for wrong in verdict.differences] == [
        "sentences 'double_acked': 1, must be 0"
    ]


def test_what_is_late_but_right_is_right(played: Callable[[int], Played]) -> None:
    topology = played(1)
    topology.answer(20.0, 3, **COUNTS)
    verdict = judge(topology.ledger)
    assert verdict.ok
    # Asked at 0.6, 3.6, 9.6, next at 21.6 seconds.
    assert (topology.ledger.directory / "asked").read_text() == "3"
    assert topology.now_s < 22


def test_ticks_may_be_longer_than_the_limit(played: Callable[[int], Played]) -> None:
    topology = played(60)
    topology.answer(61.0, 1, **COUNTS)
    assert judge(topology.ledger, 1.0).ok


def test_the_rate_is_restored_whatever_comes(
    played: Callable[[int], Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = played(1)
    topology.ledger.set_rate(150.0)
    rates_tps: list[float] = []
    sleep = topology.sleep

    def noting(seconds: float) -> None:
        rates_tps.append(topology.ledger.rate())
        sleep(seconds)

    monkeypatch.setattr("deploy.lab.workloads.time.sleep", noting)
    assert not judge(topology.ledger, 0).ok
    assert {*rates_tps} == {0}
    assert topology.ledger.rate() == 150


def test_what_does_not_run_is_not_right(tmp_path: Path, played: Callable[[int], Played]) -> None:
    topology = played(1)
    (tmp_path / f"6700-{os.getpid()}.jsonl").unlink()
    write(tmp_path / "6700-0.jsonl", account(3))
    assert str(judge(topology.ledger, 0)) == "counters: no bolt answered: is it running?"
    record(tmp_path, "wordcount", {})
    assert not judge(Ledger(tmp_path), 0).ok


def test_a_ledger_is_judged_by_its_newest_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads, "WRITE_DELAY_S", 0)
    ledger, file = Ledger(tmp_path), tmp_path / f"6700-{os.getpid()}.jsonl"
    with pytest.raises(LabError, match="was ever submitted"):
        judge(ledger)
    record(tmp_path, "counters", {})
    write(file, {**account(0), "spouts": []})
    assert "lines emitted: 0, must be 1 or more" in str(judge(ledger, 0))
    (tmp_path / "1.lines").write_text("a b\nb c\n")
    older = {"row": "kept-2", "task": 5, "counts": {"a": 2, "b": 3, "c": 1}}
    write(file, account(3), older)
    assert judge(ledger, 0).ok
    # The third account has not come.
    verdict = judge(ledger, 0)
    assert (verdict.ok, verdict.lines, len(verdict.differences)) == (False, 3, 4)
    assert str(verdict).startswith(
        "counters: 4 differences in 3 lines: answers of task 5: 0, must be 1; count of 'a': 0, must"
    )
    write(file, {**older, "row": "kept-4"})
    assert str(judge(Ledger(tmp_path), 0)) == "counters: right, 3 lines"


def test_what_a_trident_task_leaves_replaces_what_it_left(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    write(tmp_path / "6700-0.jsonl", {"row": "emitted", "task": 9, **batch(1, 0, 3)}, account(0))
    (tmp_path / f"5-{os.getpid()}.kept").write_text('{"task": 5, "counts": {"a": 2}}')
    # No process has this number: what it kept is lost.
    (tmp_path / "5-0.kept").write_text('{"task": 5, "counts": {"a": 1}}')
    found = workloads.gather(ledger, {}, 1)
    assert found.emitted == [(1, 0), (1, 3)]
    assert found.keepers == {5}
    assert found.told == [{"task": 5, "counts": {"a": 2}}]


def test_java_and_python_know_the_same_workloads_and_settings() -> None:
    java = "".join(file.read_text() for one in (JAVA, KAFKA) for file in one.glob("*.java"))
    names = re.findall(r'Map\.entry\("([\w-]+)"', (JAVA / "Workloads.java").read_text())
    assert sorted(names) == sorted(WORKLOADS)
    # The lab itself has where things are.
    of_lab = {"workload.ledger.dir", "workload.kafka.host", "workload.kafka.port"}
    known = {*re.findall(r'"(workload\.[\w.]+)"', java)} - of_lab
    assert known == {*workloads._BOUNDS, *workloads._CHOICES}
    assert f" COUNT = {workloads._LINES};" in (JAVA / "Sentences.java").read_text()
    assert f" ENTRIES_PER_MB = {workloads._ENTRIES_PER_MB:_};" in java
    assert f" POOL_BYTES = {workloads._POOL_BYTES >> 20} << 20;" in java


def test_every_workload_has_its_row_in_the_page() -> None:
    page = (REPOSITORY / "docs/workloads.md").read_text()
    assert re.findall(r"^\| `(\w[\w-]*)` ", page, re.MULTILINE) == [*WORKLOADS]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_can_be_submitted(workload: str) -> None:
    own = WORKLOADS[workload].conf
    move = {"spout": "renew", **own.get("nstorm.move", {})}
    assert (
        configure(workload, {"topology.workers": 1}).items()
        >= {
            **own,
            "nstorm.move": move,
        }.items()
    )


@pytest.mark.parametrize(
    ("workload", "conf", "refusal"),
    [
        ("page-view", {}, r"no workload 'page-view': did you mean page-views\?"),
        ("?", {}, r"no workload '\?': known are wordcount, counters, "),
        ("heap", {"workload.heap.nb": 1}, r"workload.heap.nb: unknown key, did you mean workload"),
        (
            "heap",
            {"workload.heap.mb": "9"},
            r"heap.mb: must be a whole number between 1 and 6.*'9'",
        ),
        (
            "heap",
            {"workload.heap.mb": 0},
            r"heap.mb: must be a whole number between 1 and 65536, i",
        ),
        ("heap", {"workload.heap.kind": "list"}, r"kind: must be one of arrays, map, is 'list'"),
        ("heap", {"workload.heap.kin": "map"}, r"heap.kin: unknown key, did you mean .*heap.kind"),
        ("heap", {"workload.heap.mb": True}, r"heap.mb: must be a whole number .* is True"),
        ("drift", {"workload.zipf.exponent": math.nan}, r"zipf.exponent: must be a number betwee"),
        ("counters", {"workload.sentence.bytes": 34}, r"sentence.bytes: must be 35 or more for"),
        (
            "windows",
            {"workload.sentence.bytes": 99},
            r"sentence.bytes: cannot be set for windows, ",
        ),
        ("counters", {"workload.sentence.bytes": 2.5}, r"sentence.bytes: must be a whole number"),
        ("drift", {"workload.sentence.bytes": 2000}, r"shift.lines: must be 1048 or less, .* 4096"),
        (
            "harmonic",
            {"workload.sentence.bytes": 1 << 20},
            r"shift.lines: must be 8 or less, .* 16",
        ),
        ("drift", {"workload.lines": 8191}, r"shift.lines: must be 4095 or less, since .* 8191 li"),
        ("counters", {"workload.shift.words": 9}, r"shift.lines: must be 2048 or less, .* is 4096"),
        ("counters", {"workload.tick.secs": 0}, r"tick.secs: must be 1 or more for counters, whos"),
    ],
)
def test_what_cannot_be_is_refused(workload: str, conf: dict[str, Any], refusal: str) -> None:
    with pytest.raises(LabError, match=refusal):
        configure(workload, conf)


def test_rates() -> None:
    for rate_tps in (0, 0.5, 1e6, SATURATE):
        check_rate(rate_tps)
    for rate_tps in (-2, math.nan, math.inf):
        with pytest.raises(LabError, match="rate: must be sentences per second, 0 or more, is"):
            check_rate(rate_tps)
    with pytest.raises(LabError, match="rate: trident has no SATURATE, since a batch must end"):
        check_rate(SATURATE, "trident")
    check_rate(2, "trident")


def test_settings_as_typed() -> None:
    typed = ["workload.heap.mb=64", "topology.debug=true", "a=b=c", "e=1e-1"]
    assert conf_of(typed) == {
        "workload.heap.mb": 64, "topology.debug": True, "a": "b=c", "e": 0.1
    }  # fmt: skip


@pytest.mark.parametrize("wrong", ["a", "=5", "a={", "a=2026-11-23", "a=.nan", "a=&b [*b]"])
def test_settings_that_are_none(wrong: str) -> None:
    with pytest.raises(LabError) as refusal:
        conf_of([wrong])
    assert str(refusal.value).startswith(f"--set {wrong}: ")
    assert "\n" not in str(refusal.value)


class OneRuns(Lab):
    """A lab of the topology "wc"; notes what else is asked of Nimbus."""

    def __init__(self, run_dir: Path) -> None:
        self.layout: Any = SimpleNamespace(run_dir=run_dir)
        self._rates_at_start: dict[str, float] = {}
        self.asked: list[str] = []
        self._client: Any = SimpleNamespace(ask=self._ask)

    def _ask(self, command: str, *_: object) -> dict[str, Any]:
        self.asked.append(command)
        return {"topologies": [{"name": "wc"}], "id": "id"}


@pytest.mark.parametrize("name", ["wc", "../..", "..", "", "a/b", ".", "a\n"])
def test_a_refused_name_destroys_no_ledger(tmp_path: Path, name: str) -> None:
    lab = OneRuns(tmp_path / "lab")
    kept = tmp_path / "lab/ledgers/wc/workload.json"
    kept.parent.mkdir(parents=True)
    kept.touch()
    with pytest.raises(LabError, match=r"runs: kill it first|must be of letters"):
        lab.submit(name)
    assert kept.exists()
    assert "submit" not in lab.asked


def test_a_new_name_begins_a_new_ledger(tmp_path: Path) -> None:
    lab = OneRuns(tmp_path)
    old = tmp_path / "ledgers/wc-2/1.lines"
    old.parent.mkdir(parents=True)
    old.touch()
    assert lab.submit("wc-2") == "id"
    assert not old.exists()
