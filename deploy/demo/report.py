"""Puts the report of a demo together; every number comes out of what was recorded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from controller.config import Config
from controller.storm.apply import MoveRecord
from deploy.demo.windows import WINDOW_S, WINDOWS, DemoSpan, felt_span, like, medians_tps, pauses_ms
from deploy.lab.ledger import LedgerWindow, Totals, latency_ms

DEFINITIONS: Mapping[str, str] = {
    "inter_node_ratio": "share of all tuples, acks included, that are sent to an executor on "
    "another node, by the totals that the workers count, over the fed stretches before and after "
    "the moves. Spouts and ackers are pinned where Storm put them and ackers carry about half of "
    "all tuples, so expect about 0.3 and not the 0.06 of the paper",
    "throughput_tps": f"sentences acked per second at saturation: median of {WINDOWS} windows, "
    f"each the median of {WINDOW_S} seconds, once the throughput had stopped growing or the time "
    "for that was over (warm_before, warm_after). JVMs that warm up and other work on the machine "
    "move it, too",
    "worker_cpu_us_per_sentence": "CPU time of all workers, user and system, per sentence acked in "
    "the same seconds: what a sentence costs, whatever else the machine does meanwhile",
    "ack_latency_ms": "from the emission of a sentence to its ack, over the fed stretches before "
    "and after the moves; at most 6 per cent too high",
    "move_pause_ms": "of each move, the longest ack latency in the seconds between PREPARE and "
    "the end of the source's thread. A tuple that meets a pause waits at least as long, so this "
    "bounds the pause; control is the same over as many seconds without a move",
    "move_duration_ms": "from PREPARE to the end of the source's thread, by the controller",
    "zero_throughput_windows": "one-second windows without any ack while fed, among the seconds "
    "of the moves and among those of the control stretch before them",
    "cooldown_executor_s": "how long an executor that has moved rests; the default is made "
    "for days and not for a run of minutes",
    "worker_restarts": "by_pid: workers whose process is another one at the end; "
    "by_storm_meters: by how much Storm's own meters of killed and relaunched workers rose",
}


@dataclass(frozen=True, slots=True)
class Saturated:
    """One measurement at saturation.

    Attributes
    ----------
    inter_node_frac : float or None
        Share of the tuples that crossed between nodes.
    load_average : float
        Of the machine, over the last minute.
    warm : bool
        Whether the throughput had stopped growing before, in the time there was.
    cpu_s : float
        CPU time of the workers.
    """

    span: DemoSpan
    inter_node_frac: float | None
    cpu_s: float
    load_average: float
    warm: bool


@dataclass(frozen=True, slots=True)
class Fed:
    """One stretch at the fixed rate in which nothing moved; `cpu_s` is the workers' CPU time."""

    span: DemoSpan
    inter_node_frac: float | None
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a run of the demo has seen.

    Attributes
    ----------
    windows : tuple of LedgerWindow
        Every second of the ledger.
    inter_node : tuple of (float, float)
        Unix time and share, as seen while it ran.
    rate_tps : float
        Fed outside saturation, sentences per second.
    came_to_rest : bool
        Whether the controller did before its time was over.
    meters_risen : mapping of str to int
        Storm's meters of killed workers, by how much they rose.
    """

    storm_version: str
    windows: tuple[LedgerWindow, ...]
    inter_node: tuple[tuple[float, float], ...]
    rate_tps: float
    saturated: tuple[Saturated, Saturated]
    fed: tuple[Fed, Fed]
    worked: DemoSpan
    came_to_rest: bool
    cooldown_s: float
    moves: tuple[MoveRecord, ...]
    totals: Totals
    restarted_pids: int
    meters_risen: Mapping[str, int]
    took_s: float


def assemble(recording: Recording) -> dict[str, Any]:
    """Make the report.

    Parameters
    ----------
    recording : Recording
        Of a run that went to its end.

    Returns
    -------
    dict
        Ready for JSON; what could not be measured is null.
    """
    totals, made = recording.totals, [m for m in recording.moves if m.outcome == "MOVED"]
    before_tps, after_tps = (_medians(recording, at) for at in recording.saturated)
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
        "inter_node_ratio_before": _rounded(recording.fed[0].inter_node_frac),
        "inter_node_ratio_after": _rounded(recording.fed[1].inter_node_frac),
        "inter_node_ratio_saturated_before": _rounded(recording.saturated[0].inter_node_frac),
        "inter_node_ratio_saturated_after": _rounded(recording.saturated[1].inter_node_frac),
        "throughput_before_tps": median(before_tps),
        "throughput_after_tps": median(after_tps),
        "throughput_windows_tps": {"before": list(before_tps), "after": list(after_tps)},
        "worker_cpu_us_per_sentence_before": _cost_us(recording, recording.fed[0]),
        "worker_cpu_us_per_sentence_after": _cost_us(recording, recording.fed[1]),
        "worker_cpu_us_per_sentence_saturated_before": _cost_us(recording, recording.saturated[0]),
        "worker_cpu_us_per_sentence_saturated_after": _cost_us(recording, recording.saturated[1]),
        "warm_before": recording.saturated[0].warm,
        "warm_after": recording.saturated[1].warm,
        "load_average_before": recording.saturated[0].load_average,
        "load_average_after": recording.saturated[1].load_average,
        "fed_tps": recording.rate_tps,
        "ack_latency_ms_before": _latency(recording, recording.fed[0].span),
        "ack_latency_ms_after": _latency(recording, recording.fed[1].span),
        **_felt(recording, made),
        "cooldown_executor_s": recording.cooldown_s,
        "took_s": round(recording.took_s, 1),
        "definitions": dict(DEFINITIONS),
    }


def lines(report: Mapping[str, Any]) -> list[str]:
    """Say the report in words.

    Parameters
    ----------
    report : mapping
        From `assemble`.

    Returns
    -------
    list of str
        One fact a line.
    """
    restarts, pause = report["worker_restarts"], report["move_pause_ms"]
    before, after = report["ack_latency_ms_before"], report["ack_latency_ms_after"]
    zero = report["zero_throughput_windows"]
    rest = "the controller came to rest" if report["came_to_rest"] else "its time was over before"
    return [
        f"Storm {report['storm_version']}: {report['moves']} executors moved, {rest}; "
        f"{len(report['moves_not_made'])} moves were not made",
        f"workers restarted: {restarts['by_pid']} by process id, {restarts['by_storm_meters']} by "
        "Storm's own meters",
        f"tuples: {report['emitted']} emitted, {report['acked']} acked, "
        f"{report['failed_tuples']} failed; words: {report['words_emitted']} emitted, "
        f"{report['words_counted']} counted",
        f"inter-node traffic: {_of_all(report['inter_node_ratio_before'])} before, "
        f"{_of_all(report['inter_node_ratio_after'])} after "
        "(spouts and ackers are pinned and ackers carry about half: expect about 0.3)",
        f"throughput at saturation: {report['throughput_before_tps']:.0f}/s before, "
        f"{report['throughput_after_tps']:.0f}/s after: {_verdict(report)}",
        f"CPU of the workers per sentence at {report['fed_tps']:.0f}/s: "
        f"{_us(report['worker_cpu_us_per_sentence_before'])} before, "
        f"{_us(report['worker_cpu_us_per_sentence_after'])} after; at saturation "
        f"{_us(report['worker_cpu_us_per_sentence_saturated_before'])} and "
        f"{_us(report['worker_cpu_us_per_sentence_saturated_after'])}",
        f"ack latency at {report['fed_tps']:.0f}/s, p50 and p99: "
        f"{_ms(before['p50'])} and {_ms(before['p99'])} before, "
        f"{_ms(after['p50'])} and {_ms(after['p99'])} after",
        f"longest ack latency around a move (bounds its pause): p50 {_ms(pause['p50'])}, "
        f"p99 {_ms(pause['p99'])}, max {_ms(pause['max'])}; "
        f"without moves: p50 {_ms(report['control_pause_ms']['p50'])}",
        f"seconds without an ack: {zero['moves']} of {zero['moves_seconds']} around moves, "
        f"{zero['control']} of {zero['control_seconds']} of the control",
        f"an executor that had moved rested for {report['cooldown_executor_s']:.0f} s "
        f"(default {Config().cooldown_s:.0f})",
        f"load average of the machine: {report['load_average_before']:.1f} before, "
        f"{report['load_average_after']:.1f} after; it took {report['took_s']:.0f} s",
    ]


def _not_made(recording: Recording) -> list[MoveRecord]:
    return [move for move in recording.moves if move.outcome != "MOVED"]


def _medians(recording: Recording, at: Saturated) -> tuple[float, ...]:
    return medians_tps(at.span.seconds_of(recording.windows))


def _cost_us(recording: Recording, at: Saturated | Fed) -> float | None:
    seconds = at.span.seconds_of(recording.windows)
    # The CPU time is of the whole span, the ledger's seconds lie inside of it.
    acked = (at.span.ended_s - at.span.began_s) * sum(w.acked for w in seconds) / len(seconds)
    return round(1e6 * at.cpu_s / acked, 2) if acked else None


def _latency(recording: Recording, span: DemoSpan) -> dict[str, float | None]:
    seconds = span.seconds_of(recording.windows)
    return {
        "p50": _rounded(latency_ms(seconds, 0.5)),
        "p99": _rounded(latency_ms(seconds, 0.99)),
    }


def _felt(recording: Recording, made: Sequence[MoveRecord]) -> dict[str, Any]:
    """Compare the seconds of the moves with those of the control stretch."""
    spans = [span for span in map(felt_span, made) if span is not None]
    quiet = recording.fed[0].span
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


def _verdict(report: Mapping[str, Any]) -> str:
    before_tps, after_tps = report["throughput_before_tps"], report["throughput_after_tps"]
    if not before_tps:
        return "nothing was acked before, so there is nothing to compare"
    ratio = after_tps / before_tps
    said = f"LESS than before, {ratio:.2f} of it" if ratio < 1 else f"{ratio:.2f} times as much"
    if report["warm_before"]:
        return said
    return f"{said}, but before it was still warming up, so this says little about the placement"


def _of_all(frac: float | None) -> str:
    return "unknown" if frac is None else f"{frac:.3f}"


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} ms"


def _us(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} µs"
