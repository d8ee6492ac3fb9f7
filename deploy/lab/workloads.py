"""Topologies like those that users run, and for each an oracle that checks if it came out right.

A source repeats lines that it has left next to the ledger, so the number of emitted lines names
them all. Bolts report their state when they are asked; their output they write there.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import yaml

from controller.strict import meant
from deploy.lab import LabError
from deploy.lab.ledger import SATURATE, WRITE_DELAY_S, Ledger, Totals
from migration import storm_yaml

_FILE = "workload.json"
# Bolts report at a tick, one a second; on a busy machine ticks come late.
_ASK_EVERY_S = 3.0
_REGIONS = ("africa", "america", "asia", "europe", "oceania")
# Lowest and highest value of the keys "workload.*"; a whole number where both are.
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "workload.batch.size": (1, 100_000),
    "workload.between": (1, 1000),
    "workload.consumes": (1, 1000),
    "workload.count.local.ns": (0, 10**9),
    "workload.count.wait.ns": (0, 10**9),
    "workload.counts": (1, 1000),
    "workload.harmonic.terms": (1, 10**8),
    "workload.heap.chunk.bytes": (1024, 1 << 24),
    "workload.heap.mb": (1, 65_536),
    "workload.holds": (1, 1000),
    "workload.lines": (16, 1 << 20),
    "workload.lookup.threads": (1, 64),
    "workload.minute.lines": (1, 10**9),
    "workload.minutes.kept": (1, 1000),
    "workload.parses": (1, 1000),
    "workload.passes": (1, 1000),
    "workload.places": (1, 1000),
    "workload.prepare.secs": (0.0, 600.0),
    "workload.produces": (1, 1000),
    "workload.seed": (0, 2**31 - 1),
    "workload.sentence.bytes": (0, 1 << 20),
    "workload.sentence.words": (1, 1000),
    "workload.shift.lines": (1, 1 << 20),
    "workload.shift.words": (0, 1 << 20),
    "workload.split.local.ns": (0, 10**9),
    "workload.splits": (1, 1000),
    "workload.spouts": (1, 1000),
    "workload.tick.secs": (0, 3600),
    "workload.views": (1, 1000),
    "workload.vocabulary": (1, 1 << 20),
    "workload.window.line.ms": (1, 60_000),
    "workload.window.ms": (1, 3_600_000),
    "workload.window.slide.ms": (1, 3_600_000),
    "workload.windows": (1, 1000),
    "workload.words": (1, 1 << 20),
    "workload.zipf.exponent": (0.0, 10.0),
}
# Those that are words.
_CHOICES: Mapping[str, Sequence[str]] = {
    "workload.heap.kind": ("arrays", "map"),
    "workload.kafka.guarantee": ("AT_LEAST_ONCE", "NO_GUARANTEE", "AT_MOST_ONCE"),
}
# As in MapBolt.java.
_ENTRIES_PER_MB = 38_000
# The longest word of Sentences.java, and the space between it and the next.
_WORD_BYTES = 7
# How many lines it makes, and how many bytes of them at most.
_LINES = 4096
_POOL_BYTES = 4 << 20
# A filler would make other keys of their lines.
_WHOLE_LINES = ("windows", "page-views")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it must be by the ledger."""

    what: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"{self.what}: {self.found}, must be {self.expected}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that an oracle looks at.

    Attributes
    ----------
    emitted : sequence of (int, int)
        Task (of Trident: partition) and number of lines of each life of a source, which begins at
        line 0.
    lines : mapping of int to sequence of str
        The lines that a task of a source repeats, without filler.
    told : sequence of mapping
        The state of the bolts: the newest account asked for, one row a task.
    rows : mapping of str to sequence of mapping
        The output of the bolts, by kind.
    keepers : set of int
        The tasks that must report their state.
    """

    conf: Mapping[str, Any]
    totals: Totals
    emitted: Sequence[tuple[int, int]]
    lines: Mapping[int, Sequence[str]]
    told: Sequence[Mapping[str, Any]]
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    keepers: Set[int] = frozenset()

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Give each line that was emitted, with its number."""
        for task, count in self.emitted:
            lines = self.lines.get(task, ())
            yield from ((number, lines[number % len(lines)]) for number in range(count))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of an oracle.

    Attributes
    ----------
    answers : int
        How many tasks have reported their state.
    """

    workload: str
    lines: int
    differences: tuple[Difference, ...]
    answers: int
    runs: bool

    @property
    def ok(self) -> bool:
        """Whether everything is as it must be."""
        return self.runs and not self.differences

    def __str__(self) -> str:
        if not self.runs:
            return f"{self.workload}: no bolt answered: is it running?"
        if self.ok:
            return f"{self.workload}: right, {self.lines} lines"
        some = "; ".join(map(str, self.differences[:5]))
        return f"{self.workload}: {len(self.differences)} differences in {self.lines} lines: {some}"


Oracle = Callable[[Evidence], list[Difference]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A topology that the lab can submit."""

    oracle: Oracle
    conf: Mapping[str, Any]


def differences(
    what: str, expected: Mapping[Any, Any], found: Mapping[Any, Any]
) -> list[Difference]:
    """Compare by key; a key that is missing stands for 0."""
    pairs = {key: (expected.get(key, 0), found.get(key, 0)) for key in {*expected, *found}}
    wrong = [
        Difference(f"{what} {key!r}", *pair) for key, pair in pairs.items() if pair[0] != pair[1]
    ]
    return sorted(wrong, key=lambda difference: difference.what)


def words(evidence: Evidence) -> Counter[str]:
    """Count the words that the sources have emitted."""
    found: Counter[str] = Counter()
    for task, count in evidence.emitted:
        if count:
            lines = evidence.lines[task]
            whole, rest = divmod(count, len(lines))
            for place, line in enumerate(lines):
                for word in line.split(" "):
                    found[word] += whole + (place < rest)
    # Without the words of lines that have not been reached yet.
    return +found


def fates(evidence: Evidence) -> list[Difference]:
    """Every sentence was acked, once."""
    totals = evidence.totals
    wanted = {"acked": totals.emitted, "failed": 0, "double_acked": 0, "pending": 0}
    found = {name: getattr(totals, name) for name in wanted}
    return differences("sentences", wanted, found)


def arrivals(evidence: Evidence) -> list[Difference]:
    """Every sentence was acked, and every word that was sent has arrived."""
    totals = evidence.totals
    lost = differences("words", {"sent": totals.words_emitted}, {"sent": totals.words_counted})
    return fates(evidence) + lost


def answers(evidence: Evidence) -> list[Difference]:
    """Every task that keeps something has reported its state, from one copy only."""
    found = Counter(row["task"] for row in evidence.told)
    return differences("answers of task", dict.fromkeys({*found, *evidence.keepers}, 1), found)


def counts(evidence: Evidence) -> list[Difference]:
    """What the counters hold is what was emitted; each task answers, once."""
    return [
        *fates(evidence),
        *answers(evidence),
        *differences("count of", words(evidence), _summed(evidence.told)),
    ]


def partitions(evidence: Evidence) -> list[Difference]:
    """As `counts`; each reader went on where the one before ended, and was the only one."""
    read: Counter[int] = Counter()
    for task, count in evidence.emitted:
        read[task] += count
    began = {(row["task"], row["from"]) for row in evidence.rows.get("opened", ())}
    ended = {(row["task"], row["to"]) for row in evidence.rows.get("closed", ())}
    wrong = [
        Difference(f"reader of partition {row['task']} at {row['from']}", "alone", "one of two")
        for row in evidence.rows.get("opened", ())
        if not row["alone"]
    ]
    wrong += [
        Difference(f"begin of a reader of partition {task}", "an end or 0", offset)
        for task, offset in sorted(began - ended)
        if offset
    ]
    # A line that was read twice, or left out, shows in the counts: they are of one reader.
    return wrong + counts(replace(evidence, emitted=sorted(read.items())))


def heap_max(conf: Mapping[str, Any]) -> int:
    """Compute how many pieces a counter of `heap` holds at most: arrays, or entries of its map."""
    size_mb: int = conf["workload.heap.mb"]
    if conf["workload.heap.kind"] == "map":
        return size_mb * _ENTRIES_PER_MB
    return (size_mb << 20) // int(conf["workload.heap.chunk.bytes"])


def heap(evidence: Evidence) -> list[Difference]:
    """As `counts`; each counter holds pieces for each word, up to its limit.

    Of a map, what has been added to its entries is the number of words.
    """
    conf, most = evidence.conf, heap_max(evidence.conf)
    is_map = conf["workload.heap.kind"] == "map"
    a_word = conf["workload.heap.chunk.bytes"] * _ENTRIES_PER_MB >> 20 if is_map else 1
    taken = {row["task"]: sum(row["counts"].values()) for row in evidence.told}
    wanted = {task: min(most, a_word * count) for task, count in taken.items()}
    found = {row["task"]: row["held"] for row in evidence.told}
    wrong = counts(evidence) + differences("pieces held by task", wanted, found)
    if is_map:
        added = {row["task"]: row["added"] for row in evidence.told}
        wrong += differences("added to the map of task", taken, added)
    return wrong


def harmonic(evidence: Evidence) -> list[Difference]:
    """As `counts`; the sum of each word's harmonic numbers is right to the last bit."""
    number = 0.0
    for k in range(1, evidence.conf["workload.harmonic.terms"] + 1):
        number += 1.0 / k
    wanted: dict[str, float] = {}
    for word, count in words(evidence).items():
        # One after the other, as the bolt does: `sum` rounds less from Python 3.12 on.
        wanted[word] = 0.0
        for _ in repeat(None, count):
            wanted[word] += number
    found = {word: total for row in evidence.told for word, total in row["sums"].items()}
    return counts(evidence) + differences("harmonic sum of", wanted, found)


def batches(evidence: Evidence) -> list[Difference]:
    """What was written in batches is what was emitted."""
    written = _summed(evidence.rows.get("batch", ()))
    return fates(evidence) + answers(evidence) + differences("written", words(evidence), written)


def connections(evidence: Evidence) -> list[Difference]:
    """As `batches`; a task's connection had one holder at a time, and was closed or is in use."""
    opened, ended = evidence.rows.get("connected", ()), evidence.rows.get("disconnected", ())
    shared = [
        Difference(f"holder of connection {row['connection']}", "alone", "one of two")
        for row in opened
        if not row["alone"]
    ]
    held = [row for row in evidence.told if "connection" in row]
    begins = Counter(row["connection"] for row in opened)
    ends = Counter(row["connection"] for row in (*ended, *held))
    return batches(evidence) + shared + differences("closed or in use: connection", begins, ends)


def slow(evidence: Evidence) -> list[Difference]:
    """As `counts`; every bolt that is slow to prepare reports it, and took its time."""
    least_ms = evidence.conf["workload.prepare.secs"] * 1000
    took_ms = {row["task"]: row["prepared_ms"] for row in evidence.told if "prepared_ms" in row}
    hasty = [
        Difference(f"milliseconds of prepare of task {task}", least_ms, ms)
        for task, ms in took_ms.items()
        if ms < least_ms
    ]
    # As many as WordCount.java makes.
    wanted = {"slow": evidence.conf.get("workload.between", 2)}
    return counts(evidence) + differences("tasks", wanted, {"slow": len(took_ms)}) + hasty


def threads(evidence: Evidence) -> list[Difference]:
    """As `counts`; the client that bolts share was open whenever one asked it."""
    refusals = {row["task"]: row["refusals"] for row in evidence.told if row.get("refusals")}
    return counts(evidence) + differences("refusals in task", {}, refusals)


def windows(evidence: Evidence) -> list[Difference]:
    """Every window that had to close has the sum of each of its words, once.

    Tuples in the last windows stay un-acked: nothing comes after it that would close them. The
    windows of each word up to its last line have closed for certain, later ones perhaps.
    """
    conf, totals = evidence.conf, evidence.totals
    slide_ms = conf["workload.window.slide.ms"]
    wanted: Counter[tuple[int, str]] = Counter()
    last_ms: dict[str, int] = {}
    for number, word in evidence.numbered():
        at_ms = (number + 1) * conf["workload.window.line.ms"]
        last_ms[word] = at_ms
        first_ms = -(-at_ms // slide_ms) * slide_ms
        for end_ms in range(first_ms, at_ms + conf["workload.window.ms"], slide_ms):
            wanted[end_ms, word] += number
    found = [
        ((row["end_ms"], word), total)
        for row in evidence.rows.get("window", ())
        for word, total in row["sums"].items()
    ]
    times = Counter(key for key, _ in found)
    closed = {
        key: total for key, total in wanted.items() if key in times or key[0] <= last_ms[key[1]]
    }
    lost = {"failed": totals.failed, "double_acked": totals.double_acked}
    return [
        *differences("sentences", {}, lost),
        *differences("times that came window", dict.fromkeys(closed, 1), times),
        *differences("sum of window", closed, dict(found)),
    ]


def page_views(evidence: Evidence) -> list[Difference]:
    """The written minutes and the kept ones are together every view of the log."""
    wanted: Counter[tuple[str, str]] = Counter()
    for number, line in evidence.numbered():
        address, method, page, status, agent = line.split(" ")
        if (method, status) == ("GET", "200") and agent != "robot" and not page.endswith(".png"):
            minute = number // evidence.conf["workload.minute.lines"]
            region = _REGIONS[int(address.partition(".")[0]) % len(_REGIONS)]
            wanted[str(minute), f"{region} {page}"] += 1
    found: Counter[tuple[str, str]] = Counter()
    for written in (*evidence.rows.get("views", ()), *evidence.told):
        for minute, views in written["minutes"].items():
            found.update({(minute, view): count for view, count in views.items()})
    return fates(evidence) + answers(evidence) + differences("views", wanted, found)


def numbers(evidence: Evidence) -> list[Difference]:
    """Each line came by each of the three ways, and after all with a lower number of its way."""
    ways = dict.fromkeys(("spout", "pass", "hold"), evidence.totals.emitted)
    lines: Counter[str] = Counter()
    late: Counter[str] = Counter()
    for row in evidence.told:
        lines.update(row["lines"])
        late.update(row["late"])
    return [
        *fates(evidence),
        *answers(evidence),
        *differences("lines from", ways, lines),
        *differences("late lines from", {}, late),
    ]


def kafka(evidence: Evidence) -> list[Difference]:
    """Each record of a topic was read, none again, and none after a later one of its partition."""
    sums = {what: _total(evidence.told, what) for what in ("next", "again", "left_out")}
    wanted = {"next": evidence.totals.emitted, "again": 0, "left_out": 0}
    return fates(evidence) + answers(evidence) + differences("records", wanted, sums)


def trident(evidence: Evidence) -> list[Difference]:
    """Batches are the same each time and leave no line out; the counts hold each batch once."""
    ranges: dict[tuple[int, int], tuple[int, int]] = {}
    wrong = []
    for row in evidence.rows.get("emitted", ()):
        batch, found = (row["partition"], row["transaction"]), (row["from"], row["to"])
        if ranges.setdefault(batch, found) != found:
            wrong.append(Difference(f"lines of partition and batch {batch}", ranges[batch], found))
    reached: dict[int, int] = {}
    for batch, (first, end) in sorted(ranges.items()):
        if first != reached.get(batch[0], 0):
            wrong.append(
                Difference(
                    f"first line of partition and batch {batch}", reached.get(batch[0], 0), first
                )
            )
        reached[batch[0]] = end
    return [
        *wrong,
        *answers(evidence),
        *differences("count of", words(evidence), _summed(evidence.told)),
    ]


_TICKS = {"workload.tick.secs": 1}
_SHIFTING = {"workload.lines": 32_768, "workload.shift.lines": 4096, **_TICKS}

# What each stands for is in docs/workloads.md.
WORKLOADS: Mapping[str, Workload] = {
    "wordcount": Workload(
        arrivals,
        # Its splits lead to the ledger of their JVM, which is nobody's memory.
        {"nstorm.move": {"count": "live", "split": "live"}},
    ),
    "counters": Workload(counts, _TICKS),
    "partitions": Workload(partitions, _TICKS),
    "unacked": Workload(
        counts,
        {"topology.acker.executors": 0, **_TICKS},
    ),
    "drift": Workload(
        counts,
        {"workload.shift.words": 100, **_SHIFTING},
    ),
    "harmonic": Workload(
        harmonic,
        {
            "workload.harmonic.terms": 10_000,
            "workload.shift.words": 1000,
            "workload.words": 8000,
            **_SHIFTING,
        },
    ),
    "heap": Workload(
        heap,
        {
            "workload.heap.kind": "arrays",
            "workload.heap.mb": 16,
            "workload.heap.chunk.bytes": 65_536,
            **_TICKS,
        },
    ),
    "batches": Workload(
        batches,
        {
            "workload.batch.size": 100,
            # Apart from tuples it keeps the number of the account that it gave last.
            "nstorm.move": {"count": "drain"},
            "nstorm.state": {"count": ["batch"]},
            **_TICKS,
        },
    ),
    "connections": Workload(
        connections,
        {
            "workload.batch.size": 100,
            "nstorm.move": {"count": "renew"},
            "nstorm.state": {"count": ["batch"]},
            **_TICKS,
        },
    ),
    "slow-prepare": Workload(
        slow,
        {"workload.prepare.secs": 5, **_TICKS},
    ),
    "threads": Workload(
        threads,
        {"workload.lookup.threads": 2, **_TICKS},
    ),
    "windows": Workload(
        windows,
        {
            "workload.sentence.words": 1,
            "workload.vocabulary": 16,
            "workload.window.line.ms": 10,
            "workload.window.ms": 2000,
            "workload.window.slide.ms": 500,
            # Tuples in the last windows are not acked before more come.
            "topology.message.timeout.secs": 120,
        },
    ),
    "page-views": Workload(
        page_views,
        {"workload.minute.lines": 500, "workload.minutes.kept": 3, **_TICKS},
    ),
    "numbers": Workload(
        numbers,
        # A new spout counts from 0 again.
        {
            "nstorm.move": {"spout": "never", "pass": "live", "hold": "drain", "tally": "carry"},
            "nstorm.state": {"hold": ["held"], "tally": ["last", "lines", "late"]},
            **_TICKS,
        },
    ),
    "kafka": Workload(
        kafka,
        # How Kafka's own move is known by their classes.
        {
            "nstorm.move": {"offsets": "carry"},
            "nstorm.state": {"offsets": ["next", "again", "leftOut"]},
            "workload.kafka.guarantee": "AT_LEAST_ONCE",
            **_TICKS,
        },
    ),
    "trident": Workload(
        trident,
        {"workload.spouts": 1, "topology.trident.batch.emit.interval.millis": 200},
    ),
}


def configure(workload: str, conf: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a topology's configuration over its workload's.

    Raises
    ------
    LabError
        When there is no such workload, or a key "workload.*" cannot be what it is.
    """
    if workload not in WORKLOADS:
        raise LabError(f"no workload {workload!r}: {meant(workload, WORKLOADS)}")
    whole = {**WORKLOADS[workload].conf, **conf}
    for key, value in whole.items():
        if key.startswith("workload."):
            _check(key, value)
    if workload in _WHOLE_LINES and "workload.sentence.bytes" in whole:
        raise LabError(
            f"workload.sentence.bytes: cannot be set for {workload}, which takes lines as they are"
        )
    longest = _WORD_BYTES * whole.get("workload.sentence.words", 5)
    if 0 < whole.get("workload.sentence.bytes", 0) < longest:
        raise LabError(
            f"workload.sentence.bytes: must be {longest} or more for the words of a sentence, "
            f"is {whole['workload.sentence.bytes']}"
        )
    if whole.get("workload.tick.secs", 0) < 1 and "workload.tick.secs" in WORKLOADS[workload].conf:
        raise LabError(
            f"workload.tick.secs: must be 1 or more for {workload}, whose bolts answer then"
        )
    _check_shift(whole)
    # What a spout of the lab holds in memory its ledger has, or its partition gives again.
    return {**whole, "nstorm.move": {"spout": "renew", **whole.get("nstorm.move", {})}}


def _check_shift(conf: Mapping[str, Any]) -> None:
    """Refuse a shift that no line comes after."""
    # As in Sentences.java.
    lines = conf.get("workload.lines", _LINES)
    size_bytes = conf.get("workload.sentence.bytes", 0)
    if size_bytes:
        lines = max(16, min(lines, _POOL_BYTES // size_bytes))
    every = conf.get("workload.shift.lines", lines)
    if conf.get("workload.shift.words", 0) and every > lines // 2:
        raise LabError(
            f"workload.shift.lines: must be {lines // 2} or less, since a source has {lines} "
            f"lines, is {every}"
        )


def conf_of(settings: Iterable[str]) -> dict[str, Any]:
    """Read settings as they are typed, KEY=VALUE, the value as in a storm.yaml.

    Raises
    ------
    LabError
        When one is nothing of the kind, or a value that Storm, which takes JSON, cannot have.
    """
    conf: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not (key and equals):
            raise LabError(f"--set {setting}: type KEY=VALUE, the value as in a storm.yaml")
        try:
            conf[key] = storm_yaml.load(text)
            json.dumps(conf[key], allow_nan=False)
        except yaml.YAMLError as error:
            raise LabError(f"--set {setting}: no YAML: {storm_yaml.problem(error)}") from None
        except (TypeError, ValueError, RecursionError) as error:
            raise LabError(f"--set {setting}: Storm cannot have this value: {error}") from None
    return conf


def check_rate(rate_tps: float, workload: str = "wordcount") -> None:
    """Refuse a text that is no rate, or no rate for a workload."""
    if rate_tps == SATURATE and workload == "trident":
        raise LabError("rate: trident has no SATURATE, since a batch must end: give a rate")
    if rate_tps != SATURATE and not 0 <= rate_tps < math.inf:
        raise LabError(f"rate: must be sentences per second, 0 or more, is {rate_tps}")


def record(directory: Path, workload: str, conf: Mapping[str, Any]) -> None:
    """Note the submission next to the ledger, for `judge`."""
    (directory / _FILE).write_text(json.dumps({"workload": workload, "conf": dict(conf)}))


def judge(ledger: Ledger, limit_s: float = 30.0) -> Verdict:
    """Pause the sources, ask the bolts for their state, and let the workload's oracle judge.

    Then the sources have the rate again that they had.

    Parameters
    ----------
    limit_s : float
        How long to wait for tuples that are still on their way; two ticks at least.

    Returns
    -------
    Verdict
        The first that finds nothing wrong, nor a tick later, else the last within the limit. Of
        `windows` it holds for the two minutes until the tuples in open windows time out.
    """
    file = ledger.directory / _FILE
    if not file.exists():
        raise LabError(f"no topology {file.parent.name!r} was ever submitted to this lab")
    submitted = json.loads(file.read_text())
    name, conf = submitted["workload"], submitted["conf"]
    rate_tps = ledger.rate()
    ledger.set_rate(0)
    try:
        time.sleep(WRITE_DELAY_S)
        return _settled(ledger, name, conf, limit_s)
    finally:
        ledger.set_rate(rate_tps)


def _settled(ledger: Ledger, name: str, conf: Mapping[str, Any], limit_s: float) -> Verdict:
    """Ask again and again, ever more rarely, until nothing is wrong or the limit is reached."""
    tick_s = conf.get("workload.tick.secs", 0)
    wait_s = max(_ASK_EVERY_S, 2 * tick_s)
    now_s = time.monotonic()
    deadline_s, ask_s, account = now_s + max(limit_s, 2 * tick_s), now_s, 0
    while True:
        now_s = time.monotonic()
        if now_s >= ask_s:
            account, ask_s, wait_s = ledger.ask(), now_s + wait_s, 2 * wait_s
        verdict = _verdict(name, gather(ledger, conf, account), ledger)
        if verdict.ok:
            # A second copy may answer later, or ack what is acked.
            time.sleep(tick_s + WRITE_DELAY_S)
            verdict = _verdict(name, gather(ledger, conf, account), ledger)
        if verdict.ok or time.monotonic() >= deadline_s:
            return verdict
        time.sleep(0.5)


def _verdict(name: str, evidence: Evidence, ledger: Ledger) -> Verdict:
    lines = sum(count for _, count in evidence.emitted)
    # Of nothing nothing can be wrong.
    nothing = [] if lines else [Difference("lines emitted", "1 or more", 0)]
    found = (*nothing, *WORKLOADS[name].oracle(evidence))
    return Verdict(name, lines, found, len(evidence.told), bool(ledger.tasks()))


def gather(ledger: Ledger, conf: Mapping[str, Any], account: int) -> Evidence:
    """Read a ledger for an oracle; `account` is the number of the one that was asked for."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in ledger.rows():
        rows.setdefault(row["row"], []).append(row)
    reached: Counter[int] = Counter()
    for batch in rows.get("emitted", ()):
        reached[batch["partition"]] = max(reached[batch["partition"]], batch["to"])
    return Evidence(
        conf=conf,
        totals=ledger.totals(),
        emitted=[*ledger.emitted(), *reached.items()],
        lines=ledger.lines(),
        told=[*rows.get(f"kept-{account}", ()), *ledger.kept()],
        rows=rows,
        keepers=ledger.keepers(),
    )


def _total(rows: Iterable[Mapping[str, Any]], what: str) -> int:
    return sum(sum(row[what].values()) for row in rows)


def _summed(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        found.update(row.get("counts", {}))
    return found


def _check(key: str, value: object) -> None:
    if key == "workload.ledger.dir":
        return
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise LabError(f"{key}: must be one of {', '.join(_CHOICES[key])}, is {value!r}")
        return
    if key not in _BOUNDS:
        raise LabError(f"{key}: unknown key, {meant(key, (*_BOUNDS, *_CHOICES))}")
    low, high = _BOUNDS[key]
    whole = isinstance(low, int)
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        number = "whole number" if whole else "number"
        raise LabError(f"{key}: must be a {number} between {low} and {high}, is {value!r}")
