"""Puts the report of a demo together; every number comes out of what was recorded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from controller.config import Config
from controller.storm.move_record import MoveRecord
from deploy.demo.windows import DemoSpan, felt_span, like, pauses_ms
from deploy.lab.ledger import LedgerWindow, Totals
from deploy.lab.pairing import Pair, compared, verdict

DEFINITIONS: Mapping[str, str] = {
    "compared": "both placements at saturation, in turn within the run (A B B A ...), by moves: "
    "mean over the windows of Storm's placement and of the new one, and how many times as much the "
    "new one has, with the 95 per cent interval over the pairs of neighbouring windows",
    "cpu_us_per_sentence": "CPU time of all workers, user and system",
    "link_bytes_per_sentence": "all bytes that left a node over its link",
    "fullest_link_bytes_per_sentence": "those that went over the direction of a link that carried "
    "most; where links bind, this bounds the throughput",
    "ack_p50_ms, ack_p99_ms": "from the emission of a sentence to its ack, saturated; at most 6 "
    "per cent too high",
    "inter_node_tuple_frac": "share of all tuples, acks included, that are sent to an executor on "
    "another node, by the totals that the workers count",
    "inter_node_byte_frac": "share of the bytes between workers that went over a link",
    "gc_frac": "share of the time in which a worker stood still for its collector",
    "move_pause_ms": "of each move of the controller, the longest ack latency in the seconds "
    "between PREPARE and the end of the source's thread. A tuple that meets a pause waits at least "
    "as long, so this bounds the pause; control is the same over as many seconds without a move",
    "move_duration_ms": "from PREPARE to the end of the source's thread, by the controller",
    "zero_throughput_windows": "one-second windows without any ack while fed, among the seconds "
    "of the moves and among those of the control stretch before them",
    "cooldown_executor_s": "how long an executor that has moved rests; the default is made "
    "for days and not for a run of minutes",
    "worker_restarts": "by_pid: workers whose process is another one at the end, of those that had "
    "executors at both placements; by_storm_meters: by how much Storm's own meters of killed and "
    "relaunched workers rose. They also count a worker that ends since it was emptied: the new "
    "placement may need fewer, and each switch back starts and ends one again",
}


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a run of the demo has seen.

    Attributes
    ----------
    inter_node : tuple of (float, float)
        Unix time and share, as seen while it ran.
    rate_tps : float
        Fed while the controller worked, sentences per second.
    quiet : DemoSpan
        Fed at that rate, without a move.
    moves : tuple of MoveRecord
        Those that the controller chose.
    pairs : tuple of Pair
        Storm's placement (A) and the new one (B), saturated; none if they are the same.
    broken_off : str
        Why there are not as many pairs as there should be; empty if there are.
    taken : tuple of (str, DemoSpan)
        "a" or "b", and when it was measured.
    link_bps : int or None
        What a node's link carries in each direction; None without a bound.
    own_cores : float or None
        Of each node; None where nodes share the machine's.
    meters_risen : mapping of str to int
        Storm's meters of killed workers, by how much they rose.
    """

    storm_version: str
    windows: tuple[LedgerWindow, ...]
    inter_node: tuple[tuple[float, float], ...]
    rate_tps: float
    quiet: DemoSpan
    came_to_rest: bool
    cooldown_s: float
    moves: tuple[MoveRecord, ...]
    pairs: tuple[Pair, ...]
    broken_off: str
    taken: tuple[tuple[str, DemoSpan], ...]
    load_averages: tuple[float, ...]
    link_bps: int | None
    own_cores: float | None
    totals: Totals
    restarted_pids: int
    meters_risen: Mapping[str, int]
    took_s: float


def assemble(recording: Recording) -> dict[str, Any]:
    """Make the report."""
    totals, made = recording.totals, [m for m in recording.moves if m.outcome == "MOVED"]
    pairs, loads = recording.pairs, recording.load_averages
    return {
        "storm_version": recording.storm_version,
        "moves": len(made),
        "moves_not_made": [f"{m.executor} {m.outcome}: {m.reason}" for m in _not_made(recording)],
        "came_to_rest": recording.came_to_rest,
        "worker_restarts": {
            "by_pid": recording.restarted_pids,
            "by_storm_meters": sum(recording.meters_risen.values()),
        },
        "failed_tuples": totals.failed,
        "emitted": totals.emitted,
        "acked": totals.acked,
        "words_emitted": totals.words_emitted,
        "words_counted": totals.words_counted,
        "node_link_bps": recording.link_bps,
        "node_own_cores": recording.own_cores,
        "pairs": [asdict(pair) for pair in pairs],
        "compared": compared(pairs),
        "broken_off": recording.broken_off,
        "verdict": _verdict(recording),
        "load_average": {"lowest": min(loads), "highest": max(loads)} if loads else None,
        "fed_tps": recording.rate_tps,
        **_felt(recording, made),
        "cooldown_executor_s": recording.cooldown_s,
        "took_s": round(recording.took_s, 1),
        "definitions": dict(DEFINITIONS),
    }


def _verdict(recording: Recording) -> list[str]:
    if recording.pairs:
        return verdict(recording.pairs)
    if recording.broken_off:
        return ["the two placements could not be compared"]
    return ["the controller left Storm's placement as it was"]


def is_lossless(report: Mapping[str, Any]) -> bool:
    """Check whether nothing failed, and every word was counted."""
    return not report["failed_tuples"] and bool(report["words_counted"] >= report["words_emitted"])


def lines(report: Mapping[str, Any]) -> list[str]:
    """Put the report into sentences."""
    restarts, pause = report["worker_restarts"], report["move_pause_ms"]
    zero, loads = report["zero_throughput_windows"], report["load_average"]
    rest = "the controller came to rest" if report["came_to_rest"] else "its time was over before"
    load = f"load average {loads['lowest']:.1f} to {loads['highest']:.1f}; " if loads else ""
    return [
        f"Storm {report['storm_version']}: {report['moves']} executors moved, {rest}; "
        f"{len(report['moves_not_made'])} moves were not made",
        f"workers restarted: {restarts['by_pid']} by process id, of those never emptied; "
        f"{restarts['by_storm_meters']} by Storm's own meters, which count the emptied ones",
        f"tuples: {report['emitted']} emitted, {report['acked']} acked, "
        f"{report['failed_tuples']} failed; words: {report['words_emitted']} emitted, "
        f"{report['words_counted']} counted",
        f"links: {_link(report['node_link_bps'])}",
        f"cores: {_cores(report['node_own_cores'])}",
        f"Storm's placement and the new one in turn, saturated, {len(report['pairs'])} pairs, as "
        "times Storm's with the 95 % interval:",
        *(f"  {_NAMES[figure]}: {_said(row)}" for figure, row in report["compared"].items()),
        *report["verdict"],
        *(
            [f"broken off, so pairs are missing: {report['broken_off']}"]
            * bool(report["broken_off"])
        ),
        f"longest ack latency around a move (bounds its pause): p50 {_ms(pause['p50'])}, "
        f"p99 {_ms(pause['p99'])}, max {_ms(pause['max'])}; "
        f"without moves: p50 {_ms(report['control_pause_ms']['p50'])}",
        f"seconds without an ack: {zero['moves']} of {zero['moves_seconds']} around moves, "
        f"{zero['control']} of {zero['control_seconds']} of the control",
        f"an executor that had moved rested for {report['cooldown_executor_s']:.0f} s "
        f"(default {Config().cooldown_s:.0f})",
        f"{load}it took {report['took_s']:.0f} s",
    ]


_NAMES: Mapping[str, str] = {
    "acked_tps": "sentences/s",
    "cpu_us_per_sentence": "CPU of the workers per sentence, µs",
    "link_bytes_per_sentence": "bytes on the links per sentence",
    "fullest_link_bytes_per_sentence": "bytes on the fullest direction of a link per sentence",
    "ack_p50_ms": "ack latency p50, ms",
    "ack_p99_ms": "ack latency p99, ms",
    "inter_node_tuple_frac": "inter-node share of tuples",
    "inter_node_byte_frac": "inter-node share of bytes",
    "gc_frac": "share of the collector's pauses",
}


def _said(row: Mapping[str, float | None] | None) -> str:
    if row is None:
        return "not taken"
    if row["ratio"] is None:  # nothing is no multiple
        return f"{row['storm']:.4g} and {row['new']:.4g}"
    low, high = row["low"], row["high"]
    between = f"{low:.3f} to {high:.3f}" if high is not None else "one pair alone has no interval"
    return f"{row['storm']:.4g} and {row['new']:.4g}: {row['ratio']:.3f} ({between})"


def _link(bps: int | None) -> str:
    return "without a bound" if bps is None else f"{bps / 1e6:g} Mbit/s a node and direction"


def _cores(own: float | None) -> str:
    if own is not None:
        return f"{own:g} of its own for each node; decided at saturation, as measured"
    return (
        "the nodes share them, and each worker is told it has half of the machine, so a placement "
        "that empties a node loses no CPU; decided at 40 % of saturation"
    )


def _not_made(recording: Recording) -> list[MoveRecord]:
    return [move for move in recording.moves if move.outcome != "MOVED"]


def _felt(recording: Recording, made: Sequence[MoveRecord]) -> dict[str, Any]:
    """Compare the seconds of the moves with those of the control stretch."""
    spans = [span for span in map(felt_span, made) if span is not None]
    quiet = recording.quiet
    control = quiet.seconds_of(recording.windows)
    moving = {w.t_s: w for span in spans for w in span.seconds_touched(recording.windows)}
    durations_ms = [1000 * (span.ended_s - span.began_s) for span in spans]
    return {
        "move_pause_ms": _quantiles(pauses_ms(recording.windows, spans)),
        "control_pause_ms": _quantiles(pauses_ms(control, like(spans, quiet))),
        "move_duration_ms": _quantiles(durations_ms),
        "zero_throughput_windows": {
            "moves": sum(w.acked == 0 for w in moving.values()),
            "moves_seconds": len(moving),
            "control": sum(w.acked == 0 for w in control),
            "control_seconds": len(control),
        },
    }


def _quantiles(values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {"p50": None, "p99": None, "max": None}
    p50, p99 = (float(np.quantile(values, q, method="higher")) for q in (0.5, 0.99))
    return {"p50": _rounded(p50), "p99": _rounded(p99), "max": _rounded(max(values))}


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} ms"
